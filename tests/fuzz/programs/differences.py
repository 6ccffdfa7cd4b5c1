"""Disagreements that a heading of ``docs/differences.md`` explains."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from .comparison import Difference, differences, tolerance_of


class Accepted(NamedTuple):
    """An accepted difference: the heading and the first words of the entry in the page, and when it applies."""

    heading: str
    entry: str
    applies: Callable[[Difference, str], bool]


def error(kind: str, pattern: str, side: str = "expected") -> Callable[[Difference, str], bool]:
    """Return the condition that one engine raises an error with a message that contains ``pattern``."""
    return lambda found, text: found.kind == kind and re.search(pattern, str(getattr(found, side))) is not None


def origin(text: str, name: str) -> str:
    """Return the statements of a program that bind ``name``, the last one first."""
    return "\n".join(
        ast.unparse(statement)
        for statement in reversed(ast.parse(text).body)
        if any(
            isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
            for node in ast.walk(statement)
        )
    )


def history(text: str, name: str) -> str:
    """Return the statements of a program from which the value of ``name`` may come."""
    seen: dict[str, str] = {}
    names = [name]
    while names:
        each = names.pop()
        if each not in seen:
            seen[each] = origin(text, each)
            names += re.findall(r"\bt\d+\b", seen[each])
    return "\n".join(seen.values())


def derived(*kinds: str) -> Callable[[Difference, str], bool]:
    """Return the condition that a difference of these kinds is that of a value computed from a transform or derivative."""
    return lambda found, text: found.kind in kinds and TRANSFORM.search(history(text, found.where)) is not None


def unneeded_record(found: Difference, text: str) -> bool:
    """Whether a derivative is recorded although it is constant."""
    return derived("requires_grad", "leaf", "node")(found, text) and found.found not in (False, "NoneType")


def raised_in(pattern: str) -> Callable[[Difference, str], bool]:
    """Return the condition that only PyTorch raises an error, in a statement that contains ``pattern``."""
    return lambda found, text: (
        found.kind == "missing error"
        and re.search(pattern, ast.unparse(ast.parse(text).body[int(found.where)])) is not None
    )


TRANSFORM = re.compile(r"torch\.func|vmap|functional|fwAD|autograd\.grad|\.grad\b|\bp\d+\(")
#: Pairs of errors that PyTorch and retrograd report for a call with several faults.
FAULTS = {"RuntimeError", "IndexError", "TypeError", "ValueError", "NotImplementedError", "AttributeError"}


def several_faults(found: Difference, text: str) -> bool:
    """Whether both engines refuse a call, with different types of errors."""
    kinds = {str(each).partition(":")[0] for each in (found.found, found.expected)}
    return found.kind in ("type of error", "backward") and kinds <= FAULTS


def only_in(*kinds: str, text: str) -> Callable[[Difference, str], bool]:
    """Return the condition that a difference of these kinds is found in a program that matches ``text``."""
    return lambda found, program: found.kind in kinds and re.search(text, program) is not None


def singular(found: Difference, text: str) -> bool:
    """Whether PyTorch's second derivative is nan where retrograd's is finite."""
    return found.kind == "derivative" and found.where == "second" and "nan" in str(found.expected)


def aliased_gradients(found: Difference, text: str) -> bool:
    """Whether PyTorch's gradients of two leaves share memory, so that what is added to one is added to both."""
    if found.kind != "derivative" or found.where != "grads" or "torch.stack(" not in text:
        return False
    pairs = [(found.expected[name], found.found[name]) for name in found.expected]
    return any(
        one[0] is not None and one[0] == two[0] and one[1] != two[1] for i, one in enumerate(pairs) for two in pairs[:i]
    )


def by_its_own_product(found: Difference, text: str) -> bool:
    """Whether a tensor is multiplied by itself in place in a program with forward derivatives or saved-tensor hooks."""
    return (
        found.kind in ("values", "derivative", "log")
        and re.search(r"jvp|jacfwd|hessian|fwAD|saving\(", text) is not None
        and re.search(r"(\w+)(?:\[[^\]]*\])?\.(mul|div|addcmul)_\(\1\b", text) is not None
    )


def overlapping_operand(found: Difference, text: str) -> bool:
    """Whether a tensor is modified in place by an operand that shares memory with it."""
    pairs = re.findall(r"\b(t\d+)\.\w+_\((t\d+)\b", text)
    return found.kind == "values" and any(
        one != two and (re.search(rf"\b{one}\b", history(text, two)) or re.search(rf"\b{two}\b", history(text, one)))
        for one, two in pairs
    )


def refused_in_transform(found: Difference, text: str) -> bool:
    """Whether only PyTorch raises an error, in a statement that calls a transform or a function that calls one."""
    if found.kind != "missing error":
        return False
    statement = ast.parse(text).body[int(found.where)]
    called = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    parts = [
        ast.unparse(each) for each in ast.parse(text).body if isinstance(each, ast.FunctionDef) and each.name in called
    ]
    return TRANSFORM.search("\n".join([ast.unparse(statement), *parts])) is not None


def target_without_graph(found: Difference, text: str) -> bool:
    """Whether PyTorch takes a view for a leaf, because it was made before the tensor that it views required a gradient."""
    if not error("missing error", "a leaf Variable that requires grad")(found, text):
        return False
    statement = ast.unparse(ast.parse(text).body[int(found.where)])
    target = re.search(r"\bt\d+\b", statement)
    return target is not None and "requires_grad" not in origin(text, target[0]) and "(" in origin(text, target[0])


def argument_of_slices(found: Difference, text: str) -> bool:
    """Whether only retrograd refuses to modify an argument of reverse mode in place, because vmap repeats it."""
    return (
        found.kind == "spurious error"
        and "more than one element of the written-to tensor" in str(found.found)
        and re.search(r"vmap|jacfwd|jacrev|hessian", text) is not None
        and re.search(r"grad\(|grad_and_value|vjp|jacrev|hessian", text) is not None
    )


def caught(pattern: str) -> Callable[[Difference, str], bool]:
    """Return the condition that results are missing in PyTorch, because the program catches an error of ``pattern``."""
    return lambda found, text: (
        found.kind == "value"
        and found.expected == ["NoneType"]
        and "except" in text
        and re.search(pattern, text) is not None
    )


ACCEPTED = [
    Accepted("Left out on purpose", "numbers of other sizes", lambda found, text: "complex32" in f"{found.expected}{found.found}"),
    Accepted("What PyTorch does not have", "Derivatives", error("missing error", "not implemented|not supported|does not support|isn't differentiable|differentiable wrt")),
    Accepted("What PyTorch does not have", "Derivatives", error("backward", "not implemented|not supported|isn't differentiable|not differentiable|invalid gradient at index")),
    Accepted("torch", "Calls that PyTorch rejects unnecessarily", error("missing error", "unsupported ScalarType BFloat16")),
    Accepted("torch", "Calls that PyTorch rejects unnecessarily", error("backward", r"isFloatingType\(grad|can't be cast to the desired output type|Found dtype")),
    Accepted("torch", "Calls that PyTorch rejects unnecessarily", error("missing error", r"isFloatingType\(grad")),
    Accepted("torch", "out=", only_in("values", "shape", "missing error", "spurious error", "derivative", text=r"out=|masked_scatter_|addmm_|addr_")),
    Accepted("torch", "out=", overlapping_operand),
    Accepted("Operations", "Rounding.", only_in("values", text=r"\.view\(torch\.")),
    Accepted("Operations", "gelu of infinity", lambda found, text: found.kind in ("values", "derivative") and "nan" in str(found.expected) and "gelu" in text),
    Accepted("Operations", "Non-finite products", lambda found, text: found.kind == "derivative" and "nan" in str(found.found) and "prod" in text),
    Accepted("Operations", "of complex numbers is 1", lambda found, text: found.kind == "values" and "nan" in str(found.expected) and re.search(r"complex.*(\*\*|pow)", text, re.S) is not None),
    Accepted("Operations", "Ties", only_in("values", "derivative", "log", text=r"\bmax|\bmin|amax|amin|norm|prelu|kthvalue|mode|topk|median|sort|argm|quantile")),
    Accepted("Operations", "Singular second derivatives", singular),
    Accepted("Operations", "Empty tensors", error("spurious error", "not implemented for|floating point but you specified", "found")),
    Accepted("Operations", "Empty tensors", lambda found, text: "single memory location" in str(found.expected) and "tensor([]" in text),
    Accepted("Operations", "Empty tensors", lambda found, text: found.kind == "node" and "tensor([]" in text),
    Accepted("Tensor", "Integers", lambda found, text: found.found is False and found.expected is True and "fill_(" in text),
    Accepted("Tensor", "Integers", lambda found, text: found.kind == "requires_grad" and found.found is False and re.search(rf"^{found.where}\[.*\] = t\d+$", text, re.M) is not None),
    Accepted("Tensor", "Integers", error("missing error", "Autograd not support dtype")),
    Accepted("Tensor", "Overwriting an operand by its own product", lambda found, text: found.kind in ("backward", "missing error") and "modified by an inplace operation" in str(found.expected)),
    Accepted("Tensor", "Overwriting an operand by its own product", by_its_own_product),
    Accepted("Tensor", "Memory layout", only_in("strides", text="")),
    Accepted("Tensor", "Memory layout", error("missing error", "view size is not compatible|itemsize")),
    Accepted("Tensor", "Memory layout", caught(r"\.view\(")),
    Accepted("Tensor", "Memory layout", only_in("values", text=r"(?s)\.t\(\)\.contiguous\(\)\.t\(\).*(dropout|rand|bernoulli|normal|uniform)")),
    Accepted("Tensor", "Conjugation is immediate", lambda found, text: re.search(r"\.(conj|mH|adjoint|H)\b", text) is not None),
    Accepted("Tensor", "Views of complex numbers", lambda found, text: found.kind == "node" and found.found == "AsStridedBackward0"),
    Accepted("Tensor", "Refused in-place operations", error("backward", "Inplace update to inference tensor")),
    Accepted("Tensor", "Refused in-place operations", only_in("shape", text=r"(?s)inference_mode.*resize_")),
    Accepted("Tensor", "Refused in-place operations", error("value", "Inference tensors do not track version counter")),
    Accepted("autograd", "Forward mode is complete", error("missing error", "jvp function|forward AD")),
    Accepted("autograd", "register_multi_grad_hook", lambda found, text: found.expected is None and "several(" in text),
    Accepted("autograd", "register_multi_grad_hook", error("missing error", "'NoneType' object has no attribute 'next_functions'")),
    Accepted("autograd", "Saved values", only_in("derivative", "log", "backward", text=r"\.data\b|detach\(\)\.\w+_\(")),
    Accepted("autograd", "Saved values", error("backward", "a second time|outside of the 'allow_mutation_on_saved_tensors'")),
    Accepted("autograd", "Saved values", only_in("derivative", text=r"(?s)for some in .*\n +try:\n +torch\.autograd\.backward.*except")),
    Accepted("torch.func", "Calls that PyTorch refuses", refused_in_transform),
    Accepted("autograd", "Gradients are tensors of their own", aliased_gradients),
    Accepted("autograd", "Gradients are tensors of their own", lambda found, text: found.kind in ("values", "version") and re.search(r"autograd\.(functional\.\w+|grad)\(", text) is not None and re.search(r"\w_\(", text) is not None),
    Accepted("torch.func", "Transformations use the ordinary graph", derived("node", "view", "strides", "version", "leaf")),
    Accepted("torch.func", "Transformations use the ordinary graph", lambda found, text: found.kind == "reason" and TRANSFORM.search(text) is not None),
    Accepted("torch.func", "Transformations use the ordinary graph", lambda found, text: found.kind == "node" and "CopySlices" in (found.found, found.expected) and "torch.func" in text),
    Accepted("torch.func", "Transformations use the ordinary graph", lambda found, text: found.kind == "log" and "fwAD" in text and "grad_fn.register" in text),
    Accepted("torch.func", "Transformations use the ordinary graph", argument_of_slices),
    Accepted("torch.func", "Transformations use the ordinary graph", unneeded_record),
    Accepted("torch.func", "Transformations use the ordinary graph", error("spurious error", "vmap: inplace arithmetic", "found")),
    Accepted("torch.func", "Tangents of 0-d tensors", lambda found, text: derived("dtype")(found, text) and found.expected == "float64"),
    Accepted("autograd", "Saved values", lambda found, text: found.where == "second" and re.search(r"^t\d+\.requires_grad_\(\)$", text, re.M) is not None),
    Accepted("autograd", "Zero gradients", only_in("log", text=r"floor|round|sgn|sign\(|trunc|frac|normal_|uniform_|random_|bernoulli|fill_|zero_|ceil|relu|threshold|clamp|hard|abs|//")),
    Accepted("torch.func", "Transformations use the ordinary graph", error("missing error", "doesn't require gradient|does not require grad|ZeroTensors are immutable")),
    Accepted("torch.func", "Calls that PyTorch refuses", raised_in(TRANSFORM.pattern)),
    Accepted("torch.func", "Saved values", lambda found, text: found.kind == "spurious error" and "modified by an inplace operation" in str(found.found) and "torch.func" in text),
    Accepted("torch.func", "Calls that PyTorch refuses", error("backward", "functorch|vmap")),
    Accepted("torch.func", "vmap supports more", error("value", "alloc_cpu")),
    Accepted("Tensor", "Views of complex numbers", lambda found, text: (found.found, found.expected) == ("FillBackward3", "CopyBackwards")),
    Accepted("linalg and fft", "Fourier transforms of empty batches", error("missing error", "FFT error")),
    Accepted("Errors and warnings", "If a call has several faults", several_faults),
    Accepted("torch", "Calls that PyTorch rejects unnecessarily", target_without_graph),
    Accepted("Tensor", "Refused in-place operations", lambda found, text: found.kind == "spurious error" and "more than one element" in str(found.found) and "expand" in text and re.search(r"fill_|zero_", text) is not None),
    Accepted("Operations", "Integers of 8 bits", lambda found, text: found.kind == "derivative" and "atan2" in text and "uint8" in text),
    Accepted("torch.func", "vmap supports more", lambda found, text: found.kind == "shape" and "vmap" in text and any(size > 2**30 for size in found.expected)),
    Accepted("Tensor", "Memory layout", lambda found, text: found.kind == "values" and "as_strided" in origin(text, found.where)),
    Accepted("torch.func", "Transformations use the ordinary graph", lambda found, text: found.kind == "values" and TRANSFORM.search(origin(text, found.where)) is not None and re.search(rf"^{found.where}\b.*\.\w+_\(", text, re.M) is not None),
    Accepted("torch.func", "Transformations use the ordinary graph", lambda found, text: found.kind == "spurious error" and "a leaf Variable" in str(found.found) and "no_grad" in text and "torch.func" in text),
    Accepted("autograd", "Saved values", lambda found, text: found.where == "second" and re.search(r"^t\d+ = t\d+\.requires_grad_\(\)$", text, re.M) is not None),
    Accepted("Operations", "Singular second derivatives", lambda found, text: found.kind == "derivative" and "nan" in str(found.expected) and "nan" not in str(found.found) and "create_graph=True" in text),
]  # fmt: skip


#: Differences that do not cause others.
STATES = {"node", "view", "strides", "version", "retains"}


def classify(
    found: Any, expected: Any, text: str, tolerance: float | None = None
) -> tuple[Difference | None, Accepted | None]:
    """Return the first difference of two observations of a program that is not explained, or else the first explained one.

    The second item is the explanation. What follows an explained difference of values or errors is not compared.
    """
    known: tuple[Difference | None, Accepted | None] = None, None
    for each in differences(found, expected, tolerance_of(text) if tolerance is None else tolerance):
        accepted = next((entry for entry in ACCEPTED if entry.applies(each, text)), None)
        if accepted is None:
            return each, None
        known = known if known[0] is not None else (each, accepted)
        if each.kind not in STATES:
            break
    return known


def perturb(text: str, size: float, seed: int) -> str:
    """Return the program with its floats changed by about ``size``; equal numbers remain equal."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value:
            node.value *= 1 + size * random.Random(f"{seed} {node.value}").choice([-1, 1])
    return ast.unparse(tree)
