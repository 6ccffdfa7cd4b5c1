"""Every overridable function, called with overriding arguments, and the arguments of the handler.

``calls`` (recorded with PyTorch's list of signatures) has for each function the arguments: ``x`` denotes an
overriding object, ``[x, x]`` for a list of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.golden import load


def recorded() -> dict[str, tuple[list[Any], list[Any]]]:
    """Return for each function the arguments and what PyTorch passes to the handler."""
    return load("torch_function")["handed"]  # type: ignore[no-any-return]


def resolve(torch: Any, name: str) -> Any:
    """Return the function called ``name`` below ``torch``, or None."""
    found = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def handler_arguments(torch: Any, name: str, arguments: Sequence[Any], of_class: bool) -> list[Any] | None:
    """Return the handler's arguments: function, types, args and kwargs.

    ``of_class``: whether the argument is a tensor subclass, rather than a duck type.
    """
    given: list[Any] = []

    def asked(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given.append((func, types, args, kwargs))
        return 1

    kind: Any = type("Own", (torch.Tensor,) if of_class else (), {"__torch_function__": classmethod(asked)})
    x = torch.ones(2).as_subclass(kind) if of_class else kind()
    values = [x if each == "x" else [x, x] if each == ["x", "x"] else each for each in arguments]
    try:
        resolve(torch, name)(*values)
    except TypeError:
        if not given:
            raise
    if not given:
        return None
    func, types, args, kwargs = given[0]
    shown = [torch.overrides.resolve_name(func), getattr(func, "__name__", None), [each.__name__ for each in types]]
    return [*shown, [_shown(each) for each in args], {key: _shown(each) for key, each in (kwargs or {}).items()}]


def _shown(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_shown(each) for each in value]
    return value if isinstance(value, (int, float, str, type(None))) else type(value).__name__
