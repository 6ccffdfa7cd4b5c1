"""``torch.jit.annotations``: annotations of arguments that are a number or a list of numbers."""

from __future__ import annotations

from typing import Any


class BroadcastingListCls:
    """Class of annotations such as ``BroadcastingList2[int]``: a list of two, or one number for both."""

    def __getitem__(self, types: Any) -> None:
        """Return None, which any argument fits."""


BroadcastingList1, BroadcastingList2, BroadcastingList3 = (BroadcastingListCls() for _ in range(3))
BroadcastingList4, BroadcastingList5, BroadcastingList6 = (BroadcastingListCls() for _ in range(3))

__all__ = ["BroadcastingListCls"]
