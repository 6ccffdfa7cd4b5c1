"""Functions of ``torch.distributed`` that older programs and libraries call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core.tensor import Tensor
from ..runtime.user_frame import warn
from .collectives import Group, all_gather_single, reduce_scatter_single
from .reductions import ReduceOp
from .work import Work


def _all_gather_base(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:  # fmt: skip
    """Former name of :func:`all_gather_single`."""
    _warn("_all_gather_base", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def _reduce_scatter_base(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:  # fmt: skip
    """Former name of :func:`reduce_scatter_single`."""
    _warn("_reduce_scatter_base", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)


def _warn(old: str, new: str) -> None:
    warn(
        f"`torch.distributed.{old}` is a private function and will be deprecated. Please use `torch.distributed.{new}` "
        "instead.",
        FutureWarning,
    )


class _CoalescingManager:
    """Works that a program has appended, to wait for all of them."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Add ``work``."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all works."""
        for each in self.works:
            each.wait()


@contextmanager
def _coalescing_manager(
    group: Group = None, device: Any = None, async_ops: bool = False
) -> Iterator[_CoalescingManager]:
    """Return a context manager around collective operations, which run one after the other."""
    manager = _CoalescingManager()
    yield manager
    if not async_ops:
        manager.wait()
