"""``torch.utils.data.graph``: the data pipes of which a data pipe is composed."""

from __future__ import annotations

from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe
from .datapipes.iter import _Shared

DataPipeGraph = dict[int, tuple[Any, Any]]


def traverse_dps(datapipe: Any) -> DataPipeGraph:
    """Return ``{id(datapipe): (datapipe, graph)}``, where ``graph`` has the data pipes in its attributes.

    Raises:
        RuntimeError: ``datapipe`` is no data pipe.

    >>> from retrograd.utils.data.datapipes.iter import IterableWrapper
    >>> ((pipe, inside),) = traverse_dps(IterableWrapper([1]).map(str)).values()
    >>> pipe, [each[0] for each in inside.values()]
    (MapperIterDataPipe, [IterableWrapperIterDataPipe])
    """
    if not isinstance(datapipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    return _graph(datapipe, set())


def _graph(datapipe: Any, seen: set[int]) -> DataPipeGraph:
    if id(datapipe) in seen:
        return {}
    seen = seen | {id(datapipe)}
    inside: DataPipeGraph = {}
    for each in _pipes_in(list(vars(datapipe).values()), 0):
        inside.update(_graph(each, seen))
    return {id(datapipe): (datapipe, inside)}


def _pipes_in(values: Any, depth: int) -> Any:
    for each in values:
        if isinstance(each, (IterDataPipe, MapDataPipe)):
            yield each
        elif isinstance(each, _Shared):
            yield each.main_datapipe
        elif isinstance(each, (list, tuple, set)) and depth < 3:
            yield from _pipes_in(each, depth + 1)
        elif isinstance(each, dict) and depth < 3:
            yield from _pipes_in(each.values(), depth + 1)


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> DataPipeGraph:
    """Return :func:`traverse_dps` of ``datapipe``.

    >>> from retrograd.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper([1]).map(str)
    >>> list(traverse(pipe)) == list(traverse_dps(pipe)) == [id(pipe)]
    True
    """
    return traverse_dps(datapipe)


__all__ = ["traverse", "traverse_dps"]
