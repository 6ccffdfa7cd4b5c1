"""``torch.jit.isinstance``, which also checks the types of the elements of containers.

The function is in a separate file because its name shadows the built-in ``isinstance``.
"""

from __future__ import annotations

import builtins
import types
import typing
from typing import Any

from ..runtime.user_frame import warn

_EXAMPLES = {list: "list[int]", dict: "dict[int, int]", tuple: "tuple[int]"}


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether ``obj`` is an instance of ``target_type``, such as ``list[int]`` or ``Optional[dict[str, int]]``.

    The types of the elements, keys and values of containers are also checked.

    >>> from typing import Optional
    >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance([1, "a"], list[int])
    (True, False)
    >>> torch.jit.isinstance({"a": None}, dict[str, Optional[int]])
    True
    >>> torch.jit.isinstance([1], list)
    Traceback (most recent call last):
        ...
    RuntimeError: Attempted to use list without a contained type. Please add a contained type, e.g. list[int]
    """
    origin, inner = typing.get_origin(target_type), typing.get_args(target_type)
    if target_type in _EXAMPLES:
        raise RuntimeError(
            f"Attempted to use {target_type.__name__} without a contained type. Please add a contained type, e.g. "
            f"{_EXAMPLES[target_type]}"
        )
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, each) for each in inner)
    if origin is None:
        return builtins.isinstance(obj, type(None) if target_type is None else target_type)
    if not builtins.isinstance(obj, origin):
        return False
    if not obj:
        warn(
            "The inner type of a container is lost when calling torch.jit.isinstance in eager mode. For example, List[int] "
            "would become list and therefore falsely return True for List[float] or List[str].",
        )
        return True
    if origin is list:
        return all(isinstance(each, inner[0]) for each in obj)
    if origin is dict:
        return all(isinstance(key, inner[0]) and isinstance(value, inner[1]) for key, value in obj.items())
    return len(obj) == len(inner) and all(isinstance(each, kind) for each, kind in zip(obj, inner, strict=True))
