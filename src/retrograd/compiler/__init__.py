"""The compiler, as ``torch.compiler``: a call is recorded once and replayed without the engine.

``trace`` records a call on a tape (``ir``); ``backward`` appends its derivative; ``passes`` removes unused and repeated
steps; ``fusion`` groups pointwise chains into single loops, which ``loop_codegen`` and ``scalar_code`` write;
``program`` writes one function of arrays; ``guards`` writes the check that a recording is valid for a call;
``compiled_function`` combines them. ``docs/compile.md`` is the user's page.
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
    """Wrapper that ``compile`` returns for a module; its calls are recorded and replayed."""

    __module__ = "torch._dynamo.eval_frame"

    def __init__(self, mod: Module, **options: Any) -> None:
        super().__init__()
        self._orig_mod = mod
        object.__setattr__(self, "_call", _compiled(mod, options))
        object.__setattr__(self, "training", mod.training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the wrapped module's call."""
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
    """Return a compiled form of ``model``, a function or a module: one call is recorded, later calls replay it.

    The first call runs eagerly. Later calls with tensors of the same shapes, dtypes and strides, and with the same
    Python values, run the recorded program: without repeated and unused work, and, if Numba is installed, with chains
    of pointwise operations and their sums as single loops. A call that can not be recorded (a branch on a tensor's
    elements, for example) runs eagerly; :func:`explain` gives the reason, and ``fullgraph=True`` makes it an error. A
    module is wrapped in an :class:`OptimizedModule`. Without ``model``, return a decorator. ``backend="eager"`` records
    nothing.

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
    """Return the compiled form of ``function``, or ``function`` itself if the options disable compilation."""
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
    """Return False, because there is no export."""
    return False


def reset() -> None:
    """Delete all recordings of all compiled functions."""
    compiled_function.forget_all()


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of the available compilers."""
    return ["inductor"]


def get_default_backend() -> Any:
    """Return the backend that :func:`set_default_backend` has set."""
    return _default[0]


def set_default_backend(backend: Any) -> None:
    """Store the name of the default backend; it has no effect on :func:`compile`."""
    _default[0] = "inductor" if backend is None else backend


_default: list[Any] = ["inductor"]


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Exclude ``fn`` from compilation; also a decorator, with or without parentheses.

    If ``fn`` is called while a call is recorded, that recording is abandoned and the call runs eagerly.
    """
    return compiled_function.exclude if fn is None else compiled_function.exclude(fn)


def allow_in_graph(fn: Any) -> Any:
    """Return ``fn`` unchanged."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Return ``fn`` unchanged."""
    return fn


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """Return ``fn`` unchanged, or a decorator that does."""
    return (lambda function: function) if fn is None else fn


def cudagraph_mark_step_begin() -> None:
    """Do nothing, because there are no CUDA graphs."""


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors that computes with ``fn``, a function of NumPy arrays."""

    @functools.wraps(fn)
    def wrap(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(lambda x: x.numpy() if isinstance(x, Tensor) else x, (args, kwargs))
        return tree_map(lambda x: from_numpy(x) if type(x).__name__ == "ndarray" else x, fn(*args, **kwargs))

    return wrap


class set_stance:
    """Accept a stance as a call, a context manager or a decorator; it has no effect."""

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
