"""Modules with settings: attributes that are checked when they are set, told again, and can be set for a block."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from .type_names import kind_of


class Flag:
    """A setting of a module: True or False, if nothing else is said.

    ``words``: how PyTorch calls what sets it, in its error for a value of another kind.
    """

    def __init__(self, default: Any, words: str = "", kind: type = bool) -> None:
        self.value, self.words, self.kind = default, words, kind

    def check(self, value: Any) -> None:
        """Raise PyTorch's error for a value that can not be set."""
        if self.words and value.__class__ is not self.kind:
            raise RuntimeError(f"{self.words} expects a {self.kind.__name__}, but got {kind_of(value)}")

    def __get__(self, module: Any, owner: Any = None) -> Any:
        return self.value

    def __set__(self, module: Any, value: Any) -> None:
        self.check(value)
        self.value = value


class Precision(Flag):
    """In what precision float32 is calculated: always in float32 here, whatever is set."""

    def __init__(self, default: str = "none") -> None:
        super().__init__(default)

    def check(self, value: Any) -> None:
        if value not in ("none", "ieee", "tf32", "bf16"):
            raise RuntimeError(f"Unknown precision: {value}")


def flagged(module_name: str, **flags: Any) -> None:
    """Give a module settings."""
    module = sys.modules[module_name]
    module.__class__ = type("Settings", (ModuleType,), flags)


def swap(module_name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Set some settings of a module (None: leave it) and tell what all were."""
    module = sys.modules[module_name]
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        if value is not None:
            setattr(module, name, value)
    return before


@contextmanager
def within(module_name: str, values: dict[str, Any]) -> Iterator[None]:
    """Settings for a block."""
    before = swap(module_name, values)
    try:
        yield
    finally:
        module = sys.modules[module_name]
        for name, value in before.items():
            setattr(module, name, value)


class Group:
    """Settings that stand together as an attribute of a module."""

    def __init__(self, **flags: Flag) -> None:
        object.__setattr__(self, "_flags", flags)

    def __getattr__(self, name: str) -> Any:
        if name not in self._flags:
            raise AttributeError(f"Unknown attribute {name}")
        return self._flags[name].__get__(self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._flags:
            raise AttributeError(f"Unknown attribute {name}")
        self._flags[name].__set__(self, value)


#: Ways to compute attention that are allowed; there is one here, whatever they say.
ATTENTION = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "overrideable": True, "reduced": False}
