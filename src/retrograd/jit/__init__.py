"""What programs write for TorchScript, as ``torch.jit``: accepted, with the program running as the Python that it is.

``script`` and ``trace`` give back what they are given. Only what cannot be meant otherwise is refused: archives of
scripts, and looking at the graph of one.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, NoReturn

from ..compat.missing_names import PAGE
from ..core.grad_mode import no_grad
from ..nn import Module
from ..runtime.user_frame import warn
from .types import isinstance


class Attribute(NamedTuple):
    """A value and the type that a script is to take it for."""

    value: Any
    type: Any


class ScriptModule(Module):
    """A module; that it is a script makes no difference here."""


class ScriptFunction:
    """The class of compiled functions, of which there are none: ``script`` gives back the function itself."""


class Error(RuntimeError):
    """A mistake in a script."""


class Future:
    """What ``fork`` gives: a result that is there already."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def wait(self) -> Any:
        """The result."""
        return self._value

    value = wait

    def done(self) -> bool:
        """True."""
        return True


def _old(name: str, instead: str = "Please switch to `torch.compile` or `torch.export`.") -> None:
    warn(f"`torch.jit.{name}` is deprecated. {instead}", DeprecationWarning)


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """``obj``: a function, a class or a module, which runs as the Python that it is.

    A DeprecationWarning says so, as PyTorch's does.
    """
    _old("script")
    return obj


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn``."""
    _old("script_method")
    return fn


def _run_once(function: Any, inputs: Any) -> None:
    if inputs is not None:
        with no_grad():
            function(*(inputs if builtins.isinstance(inputs, (tuple, list)) else (inputs,)))


def trace(func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, **options: Any) -> Any:
    """``func``, after it has been called once with ``example_inputs``; it stays the Python that it is.

    What depends on the inputs' values or shapes is not fixed by the example.
    """
    _old("trace")
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
    """``mod``, after each of its methods that ``inputs`` names has been called once."""
    _old("trace_method")
    for name, given in inputs.items():
        _run_once(getattr(mod, name), given)
    return mod


def is_scripting() -> bool:
    """False: functions run as Python."""
    return False


def is_tracing() -> bool:
    """False: what is called within ``trace`` is not fixed by it."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """``the_value``."""
    return the_value


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn``, which a script is to contain."""
    return fn


def unused(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn``, which a script is not to contain."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """``@ignore`` or ``@ignore(drop=…)``: the function itself, which a script is to leave to Python."""
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


def interface(obj: Any) -> Any:
    """``obj``, a class that says which methods a module of a script has."""
    return obj


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn``."""
    return fn


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """``mod``, which must be in evaluation; RuntimeError else."""
    _old("freeze", "Please use `torch.compile` instead.")
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before "
            "freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """``mod``."""
    return mod


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """The result of ``func``, which is called at once."""
    _old("fork", "Please use `torch.compile` instead.")
    return Future(func(*args, **kwargs))


def wait(future: Any) -> Any:
    """The result of what ``fork`` gave."""
    _old("wait", "Please use `torch.compile` instead.")
    return future.wait()


def _no_archives(what: str) -> NoReturn:
    raise RuntimeError(
        f"torch.jit.{what}: there are no archives of TorchScript in retrograd, where a script is the Python that it is made "
        f"of. Remedy: torch.save(module.state_dict(), f) and module.load_state_dict(torch.load(f)); see {PAGE}"
    )


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Refused: a script is nothing that could be written; RuntimeError says what to do."""
    _no_archives("save")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Refused: an archive of TorchScript holds a program in its language; RuntimeError says what to do."""
    _no_archives("load")


def enable_onednn_fusion(enabled: bool) -> None:
    """Nothing: no operations are joined."""


def onednn_fusion_enabled() -> bool:
    """False."""
    return False


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Nothing; what is told back is what was set before: nothing."""
    return []


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block like any other."""
    yield


class strict_fusion:
    """A block like any other."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


__all__ = [
    "Attribute", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "annotate", "enable_onednn_fusion",
    "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load",
    "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "save", "script", "script_if_tracing",
    "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip
