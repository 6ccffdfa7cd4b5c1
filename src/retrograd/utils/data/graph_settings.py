"""``torch.utils.data.graph_settings``: settings of all data pipes of which a data pipe is composed."""

from __future__ import annotations

from typing import Any

from ...core.dtypes import int64
from ...operations.creation.factory import empty
from ...runtime.user_frame import warn
from .datapipes.iter import ShufflerIterDataPipe
from .datapipes.map import ShufflerIterDataPipe as MapShuffler
from .graph import DataPipeGraph, traverse_dps


def get_all_graph_pipes(graph: DataPipeGraph) -> list[Any]:
    """Return the data pipes in ``graph``, a result of ``traverse_dps``, each once.

    >>> from retrograd.utils.data.datapipes.iter import IterableWrapper
    >>> get_all_graph_pipes(traverse_dps(IterableWrapper("ab").zip(IterableWrapper("cd"))))
    [ZipperIterDataPipe, IterableWrapperIterDataPipe, IterableWrapperIterDataPipe]
    """
    found: dict[int, Any] = {}

    def walk(part: DataPipeGraph) -> None:
        for key, (pipe, inside) in part.items():
            found.setdefault(key, pipe)
            walk(inside)

    walk(graph)
    return list(found.values())


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> Any:
    """Give each data pipe with ``apply_sharding`` the number of the parts and which of them it is; return ``datapipe``.

    Raises:
        RuntimeError: A data pipe is divided twice.

    >>> from retrograd.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper(range(10)).sharding_filter()
    >>> list(apply_sharding(pipe, 3, 0)), list(apply_sharding(pipe, 3, 1))
    ([0, 3, 6, 9], [1, 4, 7])
    """

    def walk(graph: DataPipeGraph, divided: Any) -> None:
        for pipe, inside in graph.values():
            applied = None
            if "apply_sharding" in dir(type(pipe)) and getattr(pipe, "is_shardable", lambda: True)():
                if divided is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                        f"Sharding already applied to {divided} while trying to apply to {pipe}"
                    )
                pipe.apply_sharding(num_of_instances, instance_id)
                applied = pipe
            walk(inside, divided if applied is None else applied)

    walk(traverse_dps(datapipe), None)
    return datapipe


def _shuffles(pipe: Any) -> bool:
    return isinstance(pipe, (ShufflerIterDataPipe, MapShuffler)) or "set_shuffle" in dir(type(pipe))


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Switch shuffling on or off in all data pipes that shuffle; append a shuffler if there is none; return the data pipe.

    >>> from retrograd.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper(range(5)).shuffle().batch(5)
    >>> list(apply_shuffle_settings(pipe, shuffle=False))
    [[0, 1, 2, 3, 4]]
    """
    if shuffle is None:
        return datapipe
    shufflers = [each for each in get_all_graph_pipes(traverse_dps(datapipe)) if _shuffles(each)]
    if not shufflers and shuffle:
        warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware that the "
            "default buffer size might not be sufficient for your task."
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for each in shufflers:
        each.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """Return :func:`apply_random_seed` of ``datapipe``.

    >>> from retrograd.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper(range(8)).shuffle()
    >>> first = list(apply_shuffle_seed(pipe, torch.Generator().manual_seed(0)))
    >>> first == list(apply_shuffle_seed(pipe, torch.Generator().manual_seed(0)))
    True
    """
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Set the seeds of all data pipes with ``set_seed``, drawn from the generator ``rng``; return ``datapipe``.

    >>> from retrograd.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper(range(8)).shuffle()
    >>> first = list(apply_random_seed(pipe, torch.Generator().manual_seed(0)))
    >>> first == list(apply_random_seed(pipe, torch.Generator().manual_seed(0)))
    True
    >>> sorted(first)
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    for each in get_all_graph_pipes(traverse_dps(datapipe)):
        if "set_seed" in dir(type(each)):
            each.set_seed(int(empty((), dtype=int64).random_(generator=rng).item()))
    return datapipe


__all__ = [
    "apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes",
]  # fmt: skip
