"""The kind of attribute that an imported submodule is in its package; used by the test and by its recorder."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any


def kind_of_attribute(modules: Mapping[str, Any], name: str) -> str:
    """``module``, ``class``, ``function`` or ``absent``: what the package of module ``name`` has under its last part."""
    package, _, last = name.rpartition(".")
    value = vars(modules[package]).get(last)
    if isinstance(value, types.ModuleType):
        return "module"
    return "class" if isinstance(value, type) else "absent" if value is None else "function"
