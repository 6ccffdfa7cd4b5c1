"""``ReduceOp``: the operations that combine the tensors of all ranks."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ..runtime.user_frame import warn


class _ReduceOpMeta(type):
    """Metaclass for which the members of ``RedOpType`` are instances of ``ReduceOp``, as in PyTorch."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, ReduceOp.RedOpType)


class ReduceOp(metaclass=_ReduceOpMeta):
    """Operation that combines the tensors of all ranks: ``SUM``, ``AVG``, ``PRODUCT``, ``MIN``, ``MAX`` and others.

    >>> import retrograd as torch
    >>> torch.distributed.ReduceOp.SUM
    <RedOpType.SUM: 0>
    """

    class RedOpType(IntEnum):
        """Enumeration of the operations."""

        SUM = 0
        AVG = 1
        PRODUCT = 2
        MIN = 3
        MAX = 4
        BAND = 5
        BOR = 6
        BXOR = 7
        PREMUL_SUM = 8

        def __str__(self) -> str:
            return f"RedOpType.{self.name}"

    SUM, AVG, PRODUCT, MIN, MAX = RedOpType.SUM, RedOpType.AVG, RedOpType.PRODUCT, RedOpType.MIN, RedOpType.MAX
    BAND, BOR, BXOR, PREMUL_SUM = RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR, RedOpType.PREMUL_SUM

    def __init__(self, op: int) -> None:
        self.op: ReduceOp.RedOpType = ReduceOp.RedOpType(op)

    def __eq__(self, other: object) -> bool:
        return self.op == (other.op if type(other) is ReduceOp else other)

    def __hash__(self) -> int:
        return hash(self.op)


def reduce_type(op: Any) -> ReduceOp.RedOpType:
    """Return the member of ``RedOpType`` that ``op`` is, or that it contains."""
    found: ReduceOp.RedOpType = op.op if type(op) is ReduceOp else ReduceOp.RedOpType(op)
    return found


class _DeprecatedReduceOp:
    """Object ``reduce_op``, the former name of ``ReduceOp``."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        warn(
            "`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead",
            FutureWarning,
        )
        return getattr(ReduceOp, name)


reduce_op = _DeprecatedReduceOp()


def supports_complex(reduceOp: Any) -> bool:
    """Whether ``reduceOp`` is defined for complex tensors: ``SUM``, ``AVG`` and ``PREMUL_SUM`` are.

    >>> from retrograd import distributed as dist
    >>> dist.supports_complex(dist.ReduceOp.SUM), dist.supports_complex(dist.ReduceOp.MAX)
    (True, False)
    """
    return reduce_type(reduceOp) in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)


__all__ = ["ReduceOp", "reduce_op", "supports_complex"]
