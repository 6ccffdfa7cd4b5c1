"""Reasons why parameters of a module wrapped by ``DistributedDataParallel`` received no gradient, for its error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ..core.engine import Plan
from ..core.tensor import Tensor
from ..inspection.explain import explain

#: Reason, as the end of a sentence that begins with the name of a parameter.
Reason = str

#: Reason if the graph of the outputs, the only thing that is known, does not contain the parameter.
NOT_IN_GRAPH = (
    "not in the graph of the outputs of `forward`: its module was not called, or what it computed was not returned, was "
    "detached, or was computed under torch.no_grad()"
)


def tensors_in(value: Any, path: str = "output") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in ``value``, nested lists, tuples, dictionaries and data classes, with their paths.

    >>> import retrograd as torch
    >>> [path for path, _ in tensors_in({"loss": torch.ones(1), "states": (torch.ones(1), 2)})]
    ["output['loss']", "output['states'][0]"]
    """
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for index, each in enumerate(value):
            yield from tensors_in(each, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from tensors_in(each, f"{path}[{key!r}]")
    elif is_dataclass(value):
        for each in fields(value):
            yield from tensors_in(getattr(value, each.name), f"{path}.{each.name}")


def reasons(
    outputs: Sequence[tuple[str, Tensor]], missing: Mapping[int, Tensor], names: Sequence[str],
    edges: Sequence[tuple[str, Any]] = (), dropped: bool = False,
) -> dict[int, Reason]:  # fmt: skip
    """Return the reason for each of the ``missing`` parameters, by index.

    Args:
        outputs: Outputs of the forward pass, if their graph has not been used yet.
        missing: The parameters without a gradient.
        names: Names of all parameters.
        edges: Paths and gradient edges of the outputs that still exist after the backward pass.
        dropped: Whether other outputs do not exist any more.
    """
    found = {
        index: "requires_grad was set to False after the construction of DistributedDataParallel"
        for index, each in missing.items()
        if not each.requires_grad
    }
    for path, edge in edges:
        reached = Plan([(edge, None)], None, True).awaited or {}
        for index, each in missing.items():
            if each._grad_edge in reached:
                found.setdefault(
                    index, f"{path} of `forward` depends on it, but did not take part in computing the loss"
                )
    graphs = [each for _, each in outputs if each.requires_grad]
    if graphs:
        by_name = {names[index]: index for index in missing}
        told = explain(graphs, {names[index]: each for index, each in missing.items()})
        for operand in told.unreached:
            if operand.label in by_name:
                step = operand.users[0][0]
                at = f" at {step.line}" if step.line else ""
                why = f"used by `{step.operation}`{at}, but detached there"
                found.setdefault(by_name[operand.label], why)
    if not edges or dropped:
        end = ", or the output that depends on it did not take part in computing the loss" if dropped else ""
        return {**dict.fromkeys(missing, NOT_IN_GRAPH + end), **found}
    return {**dict.fromkeys(missing, NOT_IN_GRAPH), **found}


__all__ = ["Reason", "reasons", "tensors_in"]
