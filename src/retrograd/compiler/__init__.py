"""The compiler, as ``torch.compiler``: a call is recorded once and replayed without the engine.

``tracing`` records a call on a ``tape``; ``adjoint`` appends its derivative; ``simplify`` leaves out what nobody needs;
``fuse`` makes single loops of pointwise chains; ``replay`` writes one function of arrays; ``guards`` writes what asks
whether a recording holds; ``wrapper`` puts it together. ``docs/compile.md`` tells it to users.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.pytree import tree_map
from ..core.tensor import Tensor
from ..nn import Module
from ..operations.creation.from_data import from_numpy
from . import compiled_function
from .explanation import explain

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


class OptimizedModule(Module):
    """A module that ``compile`` was given; its calls are recorded and replayed."""

    __module__ = "torch._dynamo.eval_frame"

    def __init__(self, mod: Module, **options: Any) -> None:
        super().__init__()
        self._orig_mod = mod
        object.__setattr__(self, "_call", _compiled(mod, options))
        object.__setattr__(self, "training", mod.training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if name == "_orig_mod":
            return modules["_orig_mod"]
        return getattr(modules["_orig_mod"], name)

    def __reduce__(self) -> Any:
        return OptimizedModule, (self._orig_mod,)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """``model`` (a function or a module), of which a call is recorded, made faster, and replayed by later calls of its kind.

    The first call runs as always. Later ones with tensors of the same shapes, dtypes and strides, and with the same
    Python values, run the recorded program: without repeated and unused work, chains of pointwise operations and their
    sums as single loops where there is Numba. What can not be recorded (a decision by a tensor's numbers, say) runs as
    always; :func:`explain` says why, and ``fullgraph=True`` makes it an error. A module comes within an
    :class:`OptimizedModule`. With other arguments only: a decorator. ``backend="eager"`` records nothing.

    >>> import retrograd as torch
    >>> @torch.compile
    ... def double(x):
    ...     return x * 2
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, **kwargs
        )
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    given = {"fullgraph": fullgraph, "backend": backend, "off": bool(kwargs.get("disable"))}
    if isinstance(model, Module):
        return model if isinstance(model, OptimizedModule) or given["off"] else OptimizedModule(model, **given)
    return _compiled(model, given)


def _compiled(function: Any, options: dict[str, Any]) -> Any:
    """The function that records and replays, if it is to."""
    backend = options.get("backend", "inductor")
    if options.get("off") or backend in ("eager", "eager_noexcept") or getattr(function, "_retrograd_disabled", False):
        return function
    return compiled_function.compiled_form(function, options.get("fullgraph", False))


def is_compiling() -> bool:
    """Whether a call is being recorded."""
    return compiled_function.is_recording()


def is_dynamo_compiling() -> bool:
    """Whether a call is being recorded."""
    return compiled_function.is_recording()


def is_exporting() -> bool:
    """False."""
    return False


def reset() -> None:
    """Forget all recordings."""
    compiled_function.forget_all()


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The compilers that there are."""
    return ["inductor"]


def get_default_backend() -> Any:
    """What :func:`set_default_backend` has set."""
    return _default[0]


def set_default_backend(backend: Any) -> None:
    """Kept without effect."""
    _default[0] = "inductor" if backend is None else backend


_default: list[Any] = ["inductor"]


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """``fn``, which is not to be compiled; as a decorator with and without parentheses.

    Where it is called while a call is recorded, that call is left to the eager library.
    """
    return compiled_function.disabled if fn is None else compiled_function.disabled(fn)


def allow_in_graph(fn: Any) -> Any:
    """``fn``."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """``fn``."""
    return fn


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """``fn``."""
    return (lambda function: function) if fn is None else fn


def cudagraph_mark_step_begin() -> None:
    """Nothing."""


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors that computes with ``fn``, a function of NumPy arrays."""

    @functools.wraps(fn)
    def wrap(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(lambda x: x.numpy() if isinstance(x, Tensor) else x, (args, kwargs))
        return tree_map(lambda x: from_numpy(x) if type(x).__name__ == "ndarray" else x, fn(*args, **kwargs))

    return wrap


class set_stance:
    """What the compiler shall do from now on, in a block, or in a function: kept without effect."""

    __module__ = "torch._dynamo.decorators"

    def __init__(self, stance: str = "default", **options: Any) -> None:
        self.stance = stance

    def __call__(self, fn: Any) -> Any:
        return fn

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "explain", "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends",
    "nested_compile_region", "reset", "set_default_backend", "set_stance", "wrap_numpy",
]  # fmt: skip
