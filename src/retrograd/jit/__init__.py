"""``torch.jit``: the functions of TorchScript. They do not compile: functions and modules run as ordinary Python.

``script`` and ``trace`` return their argument unchanged. Functions that save or load archives raise an error.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, NoReturn

from ..compat.missing_names import DIFFERENCES_PAGE
from ..core.grad_mode import no_grad
from ..nn import Module
from ..runtime.user_frame import warn
from .types import isinstance


class Attribute(NamedTuple):
    """Attribute of a TorchScript module: a pair of its ``value`` and the ``type`` that TorchScript assumes for it.

    >>> scale = torch.jit.Attribute(2.0, float)
    >>> scale.value, scale.type
    (2.0, <class 'float'>)
    """

    value: Any
    type: Any


class ScriptModule(Module):
    """Base class of TorchScript modules, without any difference from ``Module``.

    >>> class Double(torch.jit.ScriptModule):
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Double()(torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """


class ScriptFunction:
    """Class of compiled TorchScript functions. It exists for ``isinstance`` checks and has no instances.

    :func:`script` returns the Python function unchanged instead.

    >>> function = torch.jit.script(lambda x: x + 1)
    >>> isinstance(function, torch.jit.ScriptFunction)
    False
    """


class Error(RuntimeError):
    """Exception for an error in a TorchScript program.

    >>> issubclass(torch.jit.Error, RuntimeError)
    True
    """


class TracerWarning(Warning):
    """Category of warnings of PyTorch's ``trace``. No warning of this category is issued.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", torch.jit.TracerWarning)
    ...     torch.jit.trace(lambda x: 2 * x if x.sum() > 0 else x, torch.ones(2))(-torch.ones(2))
    tensor([-1., -1.])
    """

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing, because no warning of this category is issued."""


class Future:
    """Result of :func:`fork`, which runs its function immediately; the result is therefore always available.

    >>> future = torch.jit.fork(torch.add, torch.ones(2), 1)
    >>> future.done(), future.wait()
    (True, tensor([2., 2.]))
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    def wait(self) -> Any:
        """Return the result of the function that :func:`fork` has called."""
        return self._value

    value = wait

    def done(self) -> bool:
        """Return True, because :func:`fork` returns only after the function has ended."""
        return True


def _warn_deprecated(name: str, instead: str = "Please switch to `torch.compile` or `torch.export`.") -> None:
    warn(f"`torch.jit.{name}` is deprecated. {instead}", DeprecationWarning)


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """Warn that ``script`` is deprecated, as PyTorch does, and return ``obj`` unchanged.

    ``obj`` is a function, a class or a module. The other parameters have no effect.
    """
    _warn_deprecated("script")
    return obj


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Warn that ``script_method`` is deprecated, and return ``fn`` unchanged.

    >>> class Double(torch.jit.ScriptModule):
    ...     @torch.jit.script_method
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Double()(torch.ones(2))
    tensor([2., 2.])
    """
    _warn_deprecated("script_method")
    return fn


def _run_once(function: Any, inputs: Any) -> None:
    if inputs is not None:
        with no_grad():
            function(*(inputs if builtins.isinstance(inputs, (tuple, list)) else (inputs,)))


def trace(func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, **options: Any) -> Any:
    """Call ``func`` once with ``example_inputs``, and return ``func`` unchanged.

    The result runs as ordinary Python. Unlike in PyTorch, branches that depend on values or shapes are therefore
    evaluated in every call, and not fixed by ``example_inputs``.

    >>> def relu(x):
    ...     return x if x.sum() > 0 else 0 * x
    >>> traced = torch.jit.trace(relu, torch.ones(2))
    >>> traced(torch.tensor([1.0, 2.0])), traced(torch.tensor([-1.0, -2.0]))
    (tensor([1., 2.]), tensor([-0., -0.]))
    """
    _warn_deprecated("trace")
    kwargs = options.get("example_kwarg_inputs")
    if kwargs is None:
        _run_once(func, example_inputs)
    else:
        with no_grad():
            func(**kwargs)
    return func


def trace_module(
    mod: Any, inputs: dict[str, Any], optimize: Any = None, check_trace: bool = True, **options: Any
) -> Any:
    """Call the methods of the module ``mod`` that ``inputs`` lists, once each, and return ``mod`` unchanged.

    The keys of ``inputs`` are the names of the methods, and the values are their arguments.

    >>> layer = torch.nn.Linear(3, 2)
    >>> traced = torch.jit.trace_module(layer, {"forward": torch.ones(4, 3)})
    >>> traced is layer
    True
    """
    _warn_deprecated("trace_method")
    for name, given in inputs.items():
        _run_once(getattr(mod, name), given)
    return mod


def is_scripting() -> bool:
    """Return False, because functions always run as Python and never as TorchScript."""
    return False


def is_tracing() -> bool:
    """Return False, because :func:`trace` does not record operations."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return ``the_value`` unchanged; ``the_type`` has no effect.

    >>> torch.jit.annotate(list[int], [])
    []
    """
    return the_value


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the decorated function ``fn`` unchanged, because nothing is compiled."""
    return fn


def unused(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the decorated function ``fn`` unchanged, because nothing is compiled."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return the decorated function unchanged, for both forms ``@ignore`` and ``@ignore(drop=…)``.

    In the first form, ``drop`` is the function.
    """
    if callable(drop):
        return drop
    if not builtins.isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    if drop:
        warn(
            "ignore(True) has been deprecated. TorchScript will now drop the function call on compilation. Use "
            "torch.jit.unused now. {}",
            FutureWarning,
        )
    return unused


def _overload(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``func``, a signature of a function that is defined later, unchanged."""
    return func


_overload_method = _overload


def interface(obj: Any) -> Any:
    """Return ``obj``, a class that declares the methods of a TorchScript interface, unchanged.

    >>> @torch.jit.interface
    ... class Scale:
    ...     def scale(self, x: torch.Tensor) -> torch.Tensor: ...
    >>> Scale.__name__
    'Scale'
    """
    return obj


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the decorated function ``fn`` unchanged, because :func:`trace` does not record operations.

    >>> @torch.jit.script_if_tracing
    ... def relu(x):
    ...     return x if x.sum() > 0 else 0 * x
    >>> torch.jit.trace(relu, torch.ones(2))(-torch.ones(2))
    tensor([-0., -0.])
    """
    return fn


_script_if_tracing = script_if_tracing


def _get_trace_graph(f: Any, args: Any = (), kwargs: Any = None, **options: Any) -> NoReturn:
    """Raise RuntimeError, because programs are not recorded as graphs of TorchScript."""
    raise RuntimeError(
        "torch.jit._get_trace_graph: retrograd does not record programs as graphs of TorchScript. To count operations, "
        "use torch.utils.flop_counter.FlopCounterMode."
    )


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """Return the module ``mod`` unchanged; raise RuntimeError if it is in training mode.

    >>> layer = torch.nn.Linear(2, 1)
    >>> torch.jit.freeze(layer.eval()) is layer
    True
    >>> torch.jit.freeze(layer.train())
    Traceback (most recent call last):
        ...
    RuntimeError: Freezing is currently only implemented for modules in eval mode. ...
    """
    _warn_deprecated("freeze", "Please use `torch.compile` instead.")
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before "
            "freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """Return the module ``mod`` unchanged, because nothing is compiled.

    >>> layer = torch.nn.Linear(2, 1).eval()
    >>> torch.jit.optimize_for_inference(torch.jit.script(layer)) is layer
    True
    """
    return mod


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Call ``func`` with ``args`` and ``kwargs`` immediately, and return a :class:`Future` that holds the result.

    >>> futures = [torch.jit.fork(torch.pow, torch.tensor(2), n) for n in (2, 3)]
    >>> [torch.jit.wait(each) for each in futures]
    [tensor(4), tensor(8)]
    """
    _warn_deprecated("fork", "Please use `torch.compile` instead.")
    return Future(func(*args, **kwargs))


def wait(future: Any) -> Any:
    """Return the result of ``future``, a :class:`Future` that :func:`fork` has returned.

    >>> torch.jit.wait(torch.jit.fork(lambda x, y: x + y, torch.ones(2), y=1))
    tensor([2., 2.])
    """
    _warn_deprecated("wait", "Please use `torch.compile` instead.")
    return future.wait()


def _raise_no_archives(what: str) -> NoReturn:
    raise RuntimeError(
        f"torch.jit.{what}: there are no archives of TorchScript in retrograd, where a script is the Python that it is made "
        f"of. Remedy: torch.save(module.state_dict(), f) and module.load_state_dict(torch.load(f)); see {DIFFERENCES_PAGE}"
    )


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Raise RuntimeError, because Python code cannot be saved as a TorchScript archive.

    The error message names an alternative.

    >>> torch.jit.save(torch.nn.Linear(2, 1), "model.pt")
    Traceback (most recent call last):
        ...
    RuntimeError: torch.jit.save: there are no archives of TorchScript in retrograd, ...
    """
    _raise_no_archives("save")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Raise RuntimeError, because TorchScript programs cannot be loaded.

    The error message names an alternative.

    >>> torch.jit.load("model.pt")
    Traceback (most recent call last):
        ...
    RuntimeError: torch.jit.load: there are no archives of TorchScript in retrograd, ...
    """
    _raise_no_archives("load")


def enable_onednn_fusion(enabled: bool) -> None:
    """Do nothing, because operations are not fused; ``enabled`` has no effect.

    >>> torch.jit.enable_onednn_fusion(True)
    >>> torch.jit.onednn_fusion_enabled()
    False
    """


def onednn_fusion_enabled() -> bool:
    """Return False, because operations are not fused.

    >>> torch.jit.onednn_fusion_enabled()
    False
    """
    return False


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return an empty list, the previous fusion strategy; ``strategy`` has no effect.

    >>> torch.jit.set_fusion_strategy([("STATIC", 2), ("DYNAMIC", 10)])
    []
    """
    return []


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Return a context manager without effect, because programs are not optimised.

    >>> with torch.jit.optimized_execution(False):
    ...     torch.ones(2) + 1
    tensor([2., 2.])
    """
    yield


class strict_fusion:
    """Context manager without effect, because operations are not fused.

    >>> with torch.jit.strict_fusion():
    ...     torch.ones(2) + 1
    tensor([2., 2.])
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


__all__ = [
    "Attribute", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate",
    "enable_onednn_fusion", "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load",
    "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "save", "script", "script_if_tracing",
    "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip
