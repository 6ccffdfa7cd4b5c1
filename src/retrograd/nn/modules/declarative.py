"""Class decorator ``declares_layer`` for layers whose ``forward`` calls one function with the layer's arguments.

The arguments are declared as annotated class attributes:

    @declares_layer(F.leaky_relu, "negative_slope={negative_slope}")
    class LeakyReLU(Module):
        negative_slope: float = 0.01
        inplace: bool = False

The decorator generates three methods: ``__init__``, which stores the arguments, ``forward``, which calls the function
with the stored arguments, and ``extra_repr``. The methods are compiled from generated source code, as in the module
``dataclasses`` of the standard library.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import get_annotations
from typing import Any, TypeVar, dataclass_transform

from ...operations.nn.losses import parse_reduction
from ...runtime.codegen import compile_source
from .module import Module

Layer = TypeVar("Layer", bound=type)
#: Deprecated arguments of losses: they are merged into ``reduction`` and not stored.
LEGACY = ("size_average", "reduce")
REQUIRED: Any = object()


@dataclass_transform(eq_default=False)
def declares_layer(
    function: Callable[..., Any] | None = None,
    shown: str = "",
    *,
    takes: str = "input",
    buffers: tuple[str, ...] = (),
    **fixed: str,
) -> Callable[[Layer], Layer]:
    """Return a class decorator that generates ``__init__``, ``forward`` and ``extra_repr`` of a layer.

    ``__init__`` has a parameter for each annotated class attribute of the layer, and stores the arguments as
    attributes. If a name is in ``buffers``, the argument is registered as a buffer. If the class has a method
    ``_settle``, ``__init__`` calls this method at the end.

    ``forward`` calls ``function`` with the inputs of the layer as positional arguments and the attributes as keyword
    arguments. ``takes`` has the names of the inputs, separated by commas. ``fixed`` has further keyword arguments of
    ``function``; their values are strings of source code, for example ``training="self.training"``. If ``function`` is
    None, ``forward`` is not generated.

    ``extra_repr`` returns the format string ``shown``, in which ``{name}`` is replaced by the attribute of this name.
    If the attribute ``inplace`` is true, ``inplace=True`` is appended.
    """

    def declare(cls: Layer) -> Layer:
        fields = _fields(cls)
        kept = [name for name in fields if name not in LEGACY and name != "_"]
        space: dict[str, Any] = {"Module": Module, "function": function, "chosen": parse_reduction}
        lines = [f"def __init__(self{_parameters(fields, space)}):", "    Module.__init__(self)"]
        if "size_average" in fields:
            lines.append("    if size_average is not None or reduce is not None:")
            lines.append("        reduction = chosen(size_average, reduce, reduction)")
        for name in kept:
            register = f"self.register_buffer({name!r}, {name})" if name in buffers else f"self.{name} = {name}"
            lines.append(f"    {register}")
        if hasattr(cls, "_settle"):
            lines.append("    self._settle()")
        _compile_method(cls, "__init__", lines, space)
        cls._shown = shown or getattr(cls, "_shown", "")  # type: ignore[attr-defined]
        if "extra_repr" not in cls.__dict__:
            cls.extra_repr = _extra_repr  # type: ignore[attr-defined]
        if function is not None and "forward" not in cls.__dict__:
            own = [f"{name}=self.{name}" for name in kept] + [f"{name}={code}" for name, code in fixed.items()]
            call = f"function({', '.join([takes, *own])})"
            _compile_method(cls, "forward", [f"def forward(self, {takes}):", f"    return {call}"], space)
            cls.forward.__doc__ = f"Return {function.__name__}({takes}, …) with the layer's arguments."  # type: ignore
        return cls

    return declare


def _fields(cls: Any) -> dict[str, Any]:
    """Return a dictionary that maps the name of each argument of the layer class ``cls`` to its default value.

    The arguments are the annotated class attributes of ``cls`` and of its base classes. The default values are deleted
    from ``cls``, because class attributes would hide parameters and buffers that are registered under the same names.
    """
    fields: dict[str, Any] = dict(getattr(cls, "_given", {}))
    for name in get_annotations(cls):
        fields[name] = cls.__dict__.get(name, REQUIRED)
        if name in cls.__dict__:
            delattr(cls, name)
    cls._given = fields
    return fields


def _parameters(fields: dict[str, Any], space: dict[str, Any]) -> str:
    """Return the source code of the parameters of a generated ``__init__``: ``", size, alpha=default_alpha"``.

    ``fields`` maps the name of each parameter to its default value. The default values are stored in ``space``, the
    dictionary of global variables of ``__init__``, under names such as ``default_alpha``.
    """
    shown = ""
    for name, default in fields.items():
        if name == "_":
            shown += ", *"
        elif default is REQUIRED:
            shown += f", {name}"
        else:
            space[f"default_{name}"] = default
            shown += f", {name}=default_{name}"
    return shown


def _compile_method(cls: Any, name: str, lines: list[str], space: dict[str, Any]) -> None:
    """Compile the source code ``lines`` of the method ``name`` and assign the method to the class ``cls``.

    ``space`` is the dictionary of global variables of the method.
    """
    made = compile_source(f"<{cls.__name__}.{name}>", lines, {"__name__": cls.__module__, **space}, name)
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
    setattr(cls, name, made)


def _extra_repr(self: Any) -> str:
    """Return the layer's arguments as text: the ``extra_repr`` of classes with the decorator ``declares_layer``.

    The text is the argument ``shown`` of ``declares_layer``, in which ``{name}`` is replaced by the attribute of this
    name. If the attribute ``inplace`` is true, ``inplace=True`` is appended.
    """
    text = self._shown.format(**{**self._buffers, **self.__dict__})
    if self.__dict__.get("inplace") and "inplace" not in self._shown:
        return f"{text}, inplace=True" if text else "inplace=True"
    return text
