"""Execution of a program, and what is observed of it."""

from __future__ import annotations

import ast
import gc
import warnings
from typing import Any

from .namespace import program_namespace

Observed = dict[str, Any]


def run(torch: Any, text: str, compiler: Any = None, whole: bool = False) -> Observed:
    """Run a program and return what is observed: errors, tensors, the log of its hooks, and derivatives.

    A statement that raises an exception is skipped. ``compiler`` is the function ``compiled`` of the program, by default
    the identity. If ``whole`` is true, it is also applied to the program, as the body of a function.
    """
    torch.manual_seed(0)
    log: list[Any] = []
    space = program_namespace(torch, log, compiler)
    seen: Observed = {"errors": {}, "tensors": {}, "log": log}
    versions: dict[str, int] = {}  # of new tensors: copies begin with different versions
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if whole:
            body = "\n".join("    " + line for line in text.splitlines())
            exec(f"def program():\n{body}\n    return locals()", space)
            space.update(compiler(space["program"])())
        else:
            for number, statement in enumerate(ast.parse(text).body):
                before = {key: id(value) for key, value in space.items()}
                try:
                    exec(compile(ast.Module([statement], []), "<program>", "exec"), space)
                except Exception as error:
                    seen["errors"][str(number)] = describe_error(error)
                for key, value in space.items():
                    if is_variable(key) and id(value) != before.get(key) and isinstance(value, torch.Tensor):
                        versions[key] = 0 if value.is_inference() else value._version
        torch.set_grad_enabled(True)
        found = {key: value for key, value in space.items() if is_variable(key)}
        space.clear()
        for key in sorted(found, key=lambda key: int(key[1:])):
            try:
                seen["tensors"][key] = observe_tensor(torch, found[key], versions.get(key, 0))
            except RuntimeError as error:
                seen["tensors"][key] = [describe_error(error)]
        derivatives(
            torch,
            {key: found[key] for key, state in seen["tensors"].items() if isinstance(state, dict) and "leaf" in state},
            seen,
        )
    return seen


def is_variable(name: str) -> bool:
    """Whether ``name`` is that of an observed variable: ``t`` and a number."""
    return name[0] == "t" and name[1:].isdigit()


def describe_error(error: BaseException) -> str:
    """Return the type and the first line of the message of an exception."""
    return f"{type(error).__name__}: {error}".partition("\n")[0][:300]


def numbers(torch: Any, x: Any) -> list[Any]:
    """Return the elements of a tensor as a flat list of real numbers."""
    x = x.detach()
    if getattr(x, "_is_zerotensor", bool)():
        x = x.clone()
    x = x.resolve_conj().resolve_neg().reshape(-1)
    x = x[:: 1 + x.numel() // 200]  # of large tensors not all
    if x.is_complex():
        x = torch.view_as_real(x.to(torch.complex128)).reshape(-1)
    found: list[Any] = x.tolist()
    return found


def observe_tensor(torch: Any, x: Any, version: int) -> Any:
    """Return the public state of a tensor, which at first had the version ``version``, or the text of another value."""
    if not isinstance(x, torch.Tensor):
        return x if isinstance(x, (int, float, str)) else [str(x) if isinstance(x, tuple) else type(x).__name__]
    state: Observed = {"shape": list(x.shape), "dtype": str(x.dtype).rpartition(".")[2], "values": numbers(torch, x)}
    state["requires_grad"] = x.requires_grad
    inference = x.is_inference()
    if not inference:
        state["version"] = x._version - version
    state["view"] = x._is_view()
    try:
        state["node"] = type(x.grad_fn).__name__
    except RuntimeError as error:
        state["node"] = describe_error(error)
        return state
    state["leaf"], state["retains"] = x.is_leaf, x.retains_grad
    dense = x.numel() > 0
    state["strides"] = [step for step, size in zip(x.stride(), x.shape, strict=True) if size > 1] if dense else []
    return state


def total_of(torch: Any, tensors: dict[str, Any]) -> Any:
    """Return a sum over the elements of all tensors that require gradients; numbers of float16 do not overflow it."""
    total = torch.zeros((), dtype=torch.float64)
    for index, x in enumerate(tensors.values()):
        if x.is_complex():
            x = torch.view_as_real(x.resolve_conj())
        total = total + (0.5 + 0.1 * index) * x.double().sin().sum()
    return total


def derivatives(torch: Any, tensors: dict[str, Any], seen: Observed) -> None:
    """Observe a backward pass from all tensors, and derivatives of both orders by the leaves."""
    tracked = {key: x for key, x in tensors.items() if x.requires_grad and not x.is_inference()}
    leaves = {key: x for key, x in tracked.items() if x.is_leaf}
    if not tracked:
        return
    try:
        total_of(torch, tracked).backward(retain_graph=True)
    except Exception as error:
        seen["backward"] = describe_error(error)
        for key, x in tracked.items():  # which of the results cannot be differentiated
            try:
                first = torch.autograd.grad(
                    total_of(torch, {key: x}), list(leaves.values()), allow_unused=True, retain_graph=True
                )
                seen[f"d{key}"] = by_leaf(torch, first, leaves)
            except Exception as error:
                seen[f"d{key}"] = describe_error(error)
        return
    kept = {key: x.grad for key, x in tracked.items() if x.is_leaf or x.retains_grad}
    seen["grads"] = {key: None if x is None else observed_grad(torch, x) for key, x in kept.items()}
    seen["log"].append("second")
    if not leaves:
        return
    try:
        first = torch.autograd.grad(
            total_of(torch, tracked), list(leaves.values()), create_graph=True, allow_unused=True
        )
        seen["first"] = by_leaf(torch, first, leaves)
        again = {str(i): x for i, x in enumerate(first) if x is not None and x.requires_grad}
        if again:
            second = torch.autograd.grad(total_of(torch, again), list(leaves.values()), allow_unused=True)
            seen["second"] = by_leaf(torch, second, leaves)
    except Exception as error:
        seen["second"] = describe_error(error)


def observed_grad(torch: Any, x: Any) -> Any:
    """Return dtype, shape and elements of a gradient."""
    return [str(x.dtype).rpartition(".")[2], list(x.shape), numbers(torch, x)]


def by_leaf(torch: Any, grads: Any, leaves: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the elements of the gradients of leaves; no gradient is a gradient of zeros."""
    pairs = zip(grads, leaves.items(), strict=True)
    return {key: numbers(torch, torch.zeros_like(leaf) if x is None else x) for x, (key, leaf) in pairs}


def round_observation(seen: Any) -> Any:
    """Return what was observed with numbers of seven digits and short errors, as it is recorded."""
    if isinstance(seen, dict):
        return {key: round_observation(each) for key, each in seen.items()}
    if isinstance(seen, list):
        return [round_observation(each) for each in seen]
    if isinstance(seen, str) and ": " in seen:
        return seen[:120]
    return float(f"{seen:.7g}") if isinstance(seen, float) else seen


def collect() -> None:
    """Free what programs with reference cycles have left."""
    gc.collect()
