"""The first half of PyTorch's compiler, as ``torch._dynamo``: ``retrograd.compiler`` by these names."""

from __future__ import annotations

from typing import Any

from ..compat.missing_names import absent, listed
from ..compiler import (
    OptimizedModule,
    allow_in_graph,
    assume_constant_result,
    disable,
    explain,
    is_compiling,
    list_backends,
    reset,
    set_stance,
)
from ..compiler.compiled_function import disabled
from . import config


def optimize(*args: Any, **kwargs: Any) -> Any:
    """A decorator that gives a function back."""
    return lambda function: function


def run(fn: Any = None) -> Any:
    """``fn``."""
    return fn


def graph_break(msg: str = "") -> None:
    """Leave a call that is being recorded to the eager library."""
    disabled(lambda: None)()


def mark_dynamic(t: Any, index: Any, **bounds: Any) -> None:
    """Nothing: no sizes are taken for constant."""


maybe_mark_dynamic = mark_static = mark_static_address = mark_dynamic

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "explain", "graph_break", "is_compiling",
    "list_backends", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "optimize", "reset", "run",
    "set_stance",
]  # fmt: skip
__getattr__, __dir__ = absent(__name__), listed(globals())
