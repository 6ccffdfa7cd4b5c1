"""Compare retrograd with PyTorch on the samples of PyTorch's own operator database, live.

    python -m tests.conformance.golden.compare_operators [--samples 6] [--show 2] [name …]

For every operator that the database names and for each of its samples in several dtypes: values, dtypes, shapes, strides,
names of nodes, first and second derivatives, or the error, as function, method and in-place form. A name may end in ``*``.
Needs PyTorch (whose ``torch.testing._internal`` holds the database); the test suite does not. Results that are random or
not set at all are not compared; an error agrees if its kind and PyTorch's first line are there.
"""

from __future__ import annotations

import argparse
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from typing import Any

import numpy
import torch as oracle

import retrograd

# The database is written for PyTorch's own suite, which has this package; the database itself does not use it.
sys.modules.setdefault(
    "expecttest", types.SimpleNamespace(TestCase=unittest.TestCase, assert_expected_inline=None)  # type: ignore[arg-type]
)  # fmt: skip
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

DTYPES = ("float64", "complex128", "int64", "bool", "float32", "float16", "bfloat16")
TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 2e-4, "int64": 1e-5, "bool": 1e-5}
OURS = {
    getattr(oracle, name): getattr(retrograd, name)
    for name in (*DTYPES, "complex64", "int8", "int16", "int32", "uint8")
}
#: Operators whose results are random or uninitialised.
UNSET = ("empty*", "new_empty*", "rand*", "normal", "bernoulli", "multinomial", "*dropout*", "*rrelu", "resize*")


def converted(value: Any) -> Any:
    """Return the equivalent of one of PyTorch's arguments, in the same memory layout."""
    if isinstance(value, oracle.Tensor):
        plain = value.detach().resolve_conj().resolve_neg()
        source = (plain.float() if plain.dtype is oracle.bfloat16 else plain).numpy()
        array = numpy.empty_like(source, order="K")
        array[...] = source
        made = retrograd.from_numpy(array)
        if value.dtype is oracle.bfloat16:
            made = made.to(retrograd.bfloat16)
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, oracle.dtype):
        return OURS[value]
    if isinstance(value, (oracle.memory_format, oracle.layout, oracle.device)):
        return reached_value(str(value))
    if type(value) in (list, tuple):
        return type(value)(converted(each) for each in value)
    if isinstance(value, dict):
        return {key: converted(each) for key, each in value.items()}
    return value


def reached_value(shown: str) -> Any:
    """Return the equivalent of a value that PyTorch prints as ``torch.channels_last`` or ``cpu``."""
    return getattr(retrograd, shown.removeprefix("torch."), None) or retrograd.device(shown)


def numbers(tensor: Any) -> numpy.ndarray:
    """Return a tensor's elements."""
    tensor = tensor.detach()
    if tensor.dtype in (oracle.complex32, retrograd.complex32):  # NumPy has neither it nor bfloat16
        tensor = tensor.cfloat()
    if isinstance(tensor, oracle.Tensor):
        tensor = tensor.resolve_conj().resolve_neg()
    return numpy.asarray((tensor.float() if tensor.dtype in (oracle.bfloat16, retrograd.bfloat16) else tensor).numpy())


def flat(value: Any) -> list[Any]:
    """Return the tensors in nested tuples and lists."""
    if isinstance(value, (list, tuple)):
        return [tensor for each in value for tensor in flat(each)]
    if isinstance(value, dict):
        return flat(list(value.values()))
    return [value] if hasattr(value, "requires_grad") else []


def weighted(torch: Any, tensors: list[Any]) -> Any:
    """Return one number that depends on every element."""
    total: Any = 0
    for each in tensors:
        if each.requires_grad:
            real = each.real + 0.5 * each.imag if each.is_complex() else each
            weights = numpy.cos(numpy.arange(real.numel())).reshape(tuple(real.shape))
            total = total + (real * torch.from_numpy(weights).to(real.dtype)).sum()
    return total


def answer(torch: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the result of a call."""
    torch.manual_seed(0)
    try:
        outs = flat(call(*args, **kwargs))
    except Exception as error:
        return {"error": (type(error).__name__, (str(error) or " ").splitlines()[0])}
    found: dict[str, Any] = {
        "kinds": [f"{each.dtype} {tuple(each.shape)}" for each in outs],
        "strides": [each.stride() if each.numel() else None for each in outs],
        "nodes": [type(each.grad_fn).__name__ if each.grad_fn is not None else None for each in outs],
        "values": [numbers(each) for each in outs],
    }
    leaves, total = [each for each in flat([args, kwargs]) if each.requires_grad], weighted(torch, outs)
    if leaves and getattr(total, "requires_grad", False):
        try:
            first = torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
            found["first"] = [None if each is None else numbers(each) for each in first]
            again = weighted(torch, [each for each in first if each is not None])
            if getattr(again, "requires_grad", False):
                second = torch.autograd.grad(again, leaves, allow_unused=True)
                found["second"] = [None if each is None else numbers(each) for each in second]
        except RuntimeError as error:
            found["refused"] = str(error)
    return found


def differences(ours: dict[str, Any], theirs: dict[str, Any], dtype: str, unset: bool) -> Iterator[str]:
    """Return the differences between two results."""
    if "error" in theirs or "error" in ours:
        a, b = ours.get("error"), theirs.get("error")
        if a is None or b is None or a[0] != b[0] or b[1] not in a[1]:
            yield f"error: {a} / PyTorch {b}"
        return
    for key in ("kinds", "strides", "nodes"):
        if ours[key] != theirs[key]:
            yield f"{key}: {ours[key]} / PyTorch {theirs[key]}"
    for key in ("values", "first", "second"):
        if unset or key not in theirs:
            continue
        if key not in ours:
            # A linear function's gradient does not depend on its input: no derivative, or one that is zero.
            if not all(_close(None, each, 0) for each in theirs[key]):
                yield f"{key}: {ours.get('refused')} / PyTorch has it"
            continue
        for a, b in zip(ours[key], theirs[key], strict=False):
            if not _close(a, b, TOLERANCE.get(dtype, 1e-8)):
                yield f"{key}: {str(a)[:120]} / PyTorch {str(b)[:120]}".replace("\n", "")


def _close(a: Any, b: Any, tolerance: float) -> bool:
    if a is None or b is None:
        return (a is None or not numpy.any(a)) and (b is None or not numpy.any(b))
    return a.shape == b.shape and bool(numpy.allclose(a, b, tolerance, tolerance, equal_nan=True))


def reached(torch: Any, path: str) -> Any:
    """Return the object with a dotted name in a package, or among Tensor's methods, or None."""
    value = torch
    for part in path.split("."):
        value = getattr(value, part, None)
    if isinstance(value, (oracle.dtype, retrograd.dtype)) or value is None:
        value = getattr(torch.Tensor, path, None)
    return value if callable(value) else None


def forms(name: str, dtype: str) -> Iterator[tuple[Any, Any]]:
    """Return the forms of an operator in both packages: the function, and in float64 the method and the in-place form."""
    yield reached(oracle, name), reached(retrograd, name)
    last = name.rpartition(".")[2]
    if dtype == "float64" and name == last:
        for each in (last, last + "_"):
            theirs, ours = (getattr(torch.Tensor, each, None) for torch in (oracle, retrograd))
            if callable(theirs):
                yield tuple(_on_clone(call) if each != last else call for call in (theirs, ours))  # type: ignore[misc]


def _on_clone(method: Any) -> Any:
    return None if method is None else lambda x, *args, **kwargs: method(x.clone(), *args, **kwargs)


def compare(operator: Any, count: int, show: int) -> tuple[int, int]:
    """Return the number of calls of an operator that agree, and the number of calls."""
    good = total = shown = 0
    unset = any(fnmatch(operator.name, each) for each in UNSET)
    for dtype in DTYPES:
        kind = getattr(oracle, dtype)
        if kind not in operator.supported_dtypes("cpu"):
            continue
        oracle.manual_seed(0)
        graded = operator.supports_autograd and dtype in ("float64", "complex128")
        for sample, _ in zip(operator.sample_inputs("cpu", kind, requires_grad=graded), range(count), strict=False):
            args = (*sample.input, *sample.args) if operator.name == "einsum" else (sample.input, *sample.args)
            if operator.name == "einsum":
                args = (*sample.args, *sample.input)
            for theirs, ours in forms(operator.name, dtype):
                if theirs is None:
                    continue
                total += 1
                expected = answer(oracle, theirs, args, sample.kwargs)
                given = converted(args), converted(sample.kwargs)
                got = {"error": ("missing", "")} if ours is None else answer(retrograd, ours, *given)
                found = list(differences(got, expected, dtype, unset))
                good += not found
                if found and shown < show:
                    shown += 1
                    print(f"    {dtype} {args} {sample.kwargs}"[:300].replace("\n", ""), *found, sep="\n        ")
    return good, total


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--samples", type=int, default=6, help="samples per operator and dtype")
    options.add_argument("--show", type=int, default=2, help="differences shown per operator")
    options.add_argument("names", nargs="*", default=["*"])
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    whole = calls = agreeing = operators = 0
    for operator in op_db:
        private = any(part.startswith("_") and not part.endswith("__") for part in operator.name.split("."))
        if private or not any(fnmatch(operator.name, each) for each in chosen.names):
            continue
        if reached(oracle, operator.name) is None or reached(retrograd, operator.name) is None:
            print(f"{operator.name}: not there")
            continue
        good, total = compare(operator, chosen.samples, chosen.show)
        operators, whole, calls, agreeing = operators + 1, whole + (good == total), calls + total, agreeing + good
        if good != total:
            print(f"{operator.name} {operator.variant_test_name}: {good} of {total}", flush=True)
    print(f"{whole} of {operators} operators agree on every call; {agreeing} of {calls} calls agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
