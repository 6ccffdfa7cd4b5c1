"""``torch.jit.annotations``: annotations of arguments that are a number or a list of numbers."""

from __future__ import annotations

from typing import Any
from typing import Dict as Dict  # noqa: UP035 - packages import these from here
from typing import List as List  # noqa: UP035
from typing import Optional as Optional
from typing import Tuple as Tuple  # noqa: UP035


class BroadcastingListCls:
    """Class of annotations such as ``BroadcastingList2[int]``: a list of two, or one number for both."""

    def __getitem__(self, types: Any) -> None:
        """Return None, which any argument fits."""


BroadcastingList1, BroadcastingList2, BroadcastingList3 = (BroadcastingListCls() for _ in range(3))
BroadcastingList4, BroadcastingList5, BroadcastingList6 = (BroadcastingListCls() for _ in range(3))

__all__ = ["BroadcastingListCls"]
