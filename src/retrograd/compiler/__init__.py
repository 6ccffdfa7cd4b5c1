"""``compile`` and the other functions of ``torch.compiler``: operations of a call are deferred and computed together.

``compiled_function`` runs a function with a cursor. ``cursor`` defers the calls that are equal to an entry, and
``entries`` has the tree of the entries; ``pure_functions`` declares which functions may be deferred. ``segments``
computes the pending results by a program. ``segment_program`` generates it: ``recorder`` records the operations as a
list of steps, and ``ir`` defines the class of a step; ``backward`` appends the steps of the backward pass; ``passes``
removes unused and repeated steps; ``fusion`` replaces groups of pointwise steps by single loops, whose source text
``loop_codegen`` and ``scalar_code`` generate; ``program`` generates one Python function of arrays. ``replay`` repeats
calls of functions that the user has declared pure. The documentation for users is ``docs/compile.md``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.pytree import tree_map
from ..core.tensor import Tensor
from ..nn import Module
from ..operations.creation.from_data import from_numpy
from . import compiled_function
from .errors import InvalidBackend
from .explanation import explain

if TYPE_CHECKING:
    from ..core.typing import Function, Kwargs

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
#: Names of backends that return the function itself, and of those that compile it.
_EAGER, _COMPILING = ("eager", "eager_noexcept", "aot_eager"), ("inductor", "cudagraphs")


class OptimizedModule(Module):
    """Compiled form of a module, as returned by :func:`compile`: the operations of its calls are deferred."""

    __module__ = "torch._dynamo.eval_frame"

    def __init__(self, mod: Module, **options: Any) -> None:  # Note [Any in public signatures]
        super().__init__()
        self._orig_mod = mod
        object.__setattr__(self, "_call", _compiled(mod, options))
        object.__setattr__(self, "training", mod.training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # Note [Any in public signatures]
        """Call the wrapped module, compiled, with ``args`` and ``kwargs``, and return its result."""
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:  # Note [Any by attribute name]
        modules = self.__dict__.get("_modules", {})
        if name == "_orig_mod":
            return modules["_orig_mod"]
        return getattr(modules["_orig_mod"], name)

    def __reduce__(self) -> Any:  # Note [Any in public signatures]
        return OptimizedModule, (self._orig_mod,)


# Note [Any in public signatures]
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    pure: bool = False,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Return a compiled form of ``model``, a function or a module, with the same results and side effects.

    The Python code of ``model`` runs in every call. Operations that a call has recorded are deferred in later calls, and
    computed by a generated program when a value is needed. The program computes repeated operations once and omits
    unused operations. If Numba is installed, it computes chains of pointwise operations, and sums of their results, in
    single loops. :func:`explain` shows the programs and what is not deferred.

    With ``fullgraph=True``, a call that branches on elements or shows them raises an error. With
    ``pure=True``, which is a promise of the user, calls are replayed without their Python code: ``model`` must depend on
    its arguments and on unchanged tensors alone, and have no effect but its result. A module is wrapped in an
    :class:`OptimizedModule`. If ``model`` is None, the result is a decorator. If ``backend`` is "eager",
    "eager_noexcept" or "aot_eager", the function runs without compilation; "inductor", "cudagraphs" and functions
    select the same compiler. Valid values of ``mode`` and names in ``options`` have no effect, nor has ``dynamic``.

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
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            pure=pure,
            backend=backend,
            mode=mode,
            options=options,
            **kwargs,
        )
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if isinstance(backend, str) and backend not in (*_EAGER, *_COMPILING):
        raise InvalidBackend(
            f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends."
        )
    if options and backend == "inductor":
        for name in options:
            if name.replace("-", "_") not in (known := known_options()):
                raise RuntimeError(f"Unexpected optimization option {name}, known options are {known}")
    given = {"fullgraph": fullgraph, "pure": pure, "backend": backend, "off": bool(kwargs.get("disable"))}
    if isinstance(model, Module):
        return model if isinstance(model, OptimizedModule) or given["off"] else OptimizedModule(model, **given)
    return _compiled(model, given)


@functools.cache
def known_options() -> list[str]:
    """Return the names of the options of PyTorch's compiler, which have no effect."""
    with open(os.path.join(os.path.dirname(__file__), "options.txt"), encoding="utf-8") as file:
        return file.read().split()


def _compiled(function: Function, options: Kwargs) -> Function:
    """Return the compiled form of ``function``, or ``function`` itself if ``options`` disable compilation.

    ``options`` is a dictionary with the keys ``"fullgraph"``, ``"backend"`` and ``"off"``. Compilation is disabled if
    ``off`` is true or the backend is one of ``_EAGER``.
    """
    backend = options.get("backend", "inductor")
    if options.get("off") or backend in _EAGER or getattr(function, "_retrograd_disabled", False):
        return function
    return compiled_function.compiled_form(function, options.get("fullgraph", False), options.get("pure", False))


def is_compiling() -> bool:
    """Whether a compiled function is running in this thread, so that operations may be deferred.

    >>> import retrograd as torch
    >>> torch.compiler.is_compiling()
    False
    """
    return compiled_function.is_compiling()


def is_dynamo_compiling() -> bool:
    """Whether a compiled function is running in this thread; the same as :func:`is_compiling`.

    >>> import retrograd as torch
    >>> torch.compiler.is_dynamo_compiling()
    False
    """
    return compiled_function.is_compiling()


def is_exporting() -> bool:
    """Return False, because retrograd has no export of programs.

    >>> import retrograd as torch
    >>> torch.compiler.is_exporting()
    False
    """
    return False


def reset() -> None:
    """Delete the entries of all compiled functions, and the programs generated from earlier calls.

    >>> import retrograd as torch
    >>> torch.compiler.reset() is None
    True
    """
    compiled_function.forget_all()


# Note [Any in public signatures]
def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of the backends that :func:`compile` accepts; ``exclude_tags`` has no effect.

    >>> import retrograd as torch
    >>> "inductor" in torch.compiler.list_backends()
    True
    """
    return ["inductor"]


def get_default_backend() -> Any:  # Note [Any in public signatures]
    """Return the backend that :func:`set_default_backend` has stored.

    >>> import retrograd as torch
    >>> torch.compiler.get_default_backend()
    'inductor'
    """
    return _default[0]


def set_default_backend(backend: Any) -> None:  # Note [Any in public signatures]
    """Store ``backend`` as the default backend; :func:`compile` does not use the default.

    >>> import retrograd as torch
    >>> torch.compiler.set_default_backend("inductor")
    >>> torch.compiler.get_default_backend()
    'inductor'
    """
    _default[0] = "inductor" if backend is None else backend


_default: list[object] = ["inductor"]


# Note [Any in public signatures]
def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return ``fn``, marked to run without compilation; also a decorator, with or without parentheses.

    If a compiled function calls ``fn``, the pending operations are computed, and none is deferred while ``fn`` runs.
    ``recursive`` and ``reason`` have no effect.

    >>> import retrograd as torch
    >>> function = torch.compiler.disable(lambda x: x + 1)
    >>> torch.compile(lambda x: function(x) * 2, backend="eager")(torch.ones(2))
    tensor([4., 4.])
    """
    return compiled_function.exclude if fn is None else compiled_function.exclude(fn)


def allow_in_graph(fn: Any) -> Any:  # Note [Any in public signatures]
    """Return ``fn`` unchanged; the call has no effect, because the operations of all functions may be deferred.

    >>> import retrograd as torch
    >>> torch.compiler.allow_in_graph(torch.sin) is torch.sin
    True
    """
    return fn


def assume_constant_result(fn: Any) -> Any:  # Note [Any in public signatures]
    """Return ``fn`` unchanged; the call has no effect in retrograd.

    >>> import retrograd as torch
    >>> def size():
    ...     return 3
    >>> torch.compiler.assume_constant_result(size) is size
    True
    """
    return fn


def nested_compile_region(fn: Any = None, **options: Any) -> Any:  # Note [Any in public signatures]
    """Return ``fn`` unchanged, or, if ``fn`` is None, a decorator that returns its function unchanged.

    >>> import retrograd as torch
    >>> function = torch.compiler.nested_compile_region(lambda x: x + 1)
    >>> function(torch.ones(2))
    tensor([2., 2.])
    """
    return (lambda function: function) if fn is None else fn


def cudagraph_mark_step_begin() -> None:
    """Do nothing; the function exists for PyTorch programs, and retrograd has no CUDA graphs.

    >>> import retrograd as torch
    >>> torch.compiler.cudagraph_mark_step_begin()
    """


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:  # Note [Any in public signatures]
    """Return a function of Tensors that calls ``fn``, a function of NumPy arrays.

    The Tensors among the arguments are converted to arrays, and the arrays among the results to Tensors.

    >>> import retrograd as torch
    >>> import numpy
    >>> torch.compiler.wrap_numpy(numpy.cumsum)(torch.tensor([1.0, 2.0]))
    tensor([1., 3.])
    """

    @functools.wraps(fn)
    def wrap(*args: object, **kwargs: object) -> object:
        args, kwargs = tree_map(lambda x: x.numpy() if isinstance(x, Tensor) else x, (args, kwargs))
        return tree_map(lambda x: from_numpy(x) if type(x).__name__ == "ndarray" else x, fn(*args, **kwargs))

    return wrap


class set_stance:
    """Function, context manager or decorator by which PyTorch changes the behaviour of compiled functions.

    It has no effect in retrograd.

    >>> import retrograd as torch
    >>> with torch.compiler.set_stance("force_eager"):
    ...     print(torch.compile(lambda x: x + 1)(torch.ones(2)))
    tensor([2., 2.])
    """

    __module__ = "torch._dynamo.decorators"

    def __init__(self, stance: str = "default", **options: Any) -> None:  # Note [Any in public signatures]
        self.stance = stance

    def __call__(self, fn: Any) -> Any:  # Note [Any in public signatures]
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
