"""``torch._jit_internal``: decorators for TorchScript, which change nothing."""

from __future__ import annotations

from typing import Any, TypeVar

from .futures import Future as Future
from .jit import Final as Final
from .jit import _overload as _overload
from .jit import _overload_method as _overload_method
from .jit import export as export
from .jit import ignore as ignore
from .jit import is_scripting as is_scripting
from .jit import is_tracing as is_tracing
from .jit import unused as unused

Callee = TypeVar("Callee")


def _copy_to_script_wrapper(fn: Callee) -> Callee:
    """Return ``fn`` unchanged."""
    return fn


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: Any, func_name: Any
) -> Any:  # fmt: skip
    """Return a function that calls ``if_true`` if the argument ``arg_name`` is true, otherwise ``if_false``."""

    def chosen(*args: Any, **kwargs: Any) -> Any:
        value = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if value else if_false)(*args, **kwargs)

    chosen.__name__, chosen.__module__ = func_name or if_true.__name__, module_name or if_true.__module__
    return chosen


__all__ = ["Final", "Future", "boolean_dispatch", "export", "ignore", "is_scripting", "is_tracing", "unused"]
