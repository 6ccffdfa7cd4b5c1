"""Calls that failed: whether their arguments were to blame, and then PyTorch's words for it.

A public function that raises, of whatever kind and from however deep, comes here with the arguments as they were
given; if no signature takes them (``dispatch/signatures.py``), its error becomes the one that PyTorch's parser of arguments
raises before anything is done. So no function checks the types of its arguments, and a call that succeeds pays nothing
but a ``try``. Arguments that are missing are MISSING, which nothing can compute with.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from ..compat.type_names import type_name
from ..core import torch_function
from ..core.tensor import Tensor
from ..runtime import user_frame
from . import signatures
from .codegen import PASSED_OVER
from .op import MISSING
from .operand_promotion import broadcast_error
from .torch_function_overrides import Overridable, overridable

#: What written code holds as ``public`` when it stands between a caller and a guard (see ``table.public_form``).
PUBLIC = ("function", "method")


def explain(
    error: Exception, target: Callable[..., Any] | None, space: str, name: str, values: dict[str, Any], rest: tuple[Any, ...],
    named: dict[str, Any], defaults: dict[str, Any], depth: int,
) -> Exception | None:  # fmt: skip
    """PyTorch's error if it was the arguments of ``name`` that made a call fail, otherwise None.

    ``values``: the arguments that may stand without a name, in order; ``rest`` and ``named``: all others; ``depth``: how
    many frames above this one the call was made.
    """
    args, named = _as_given(values, rest, named, defaults, depth + 1)
    if space == "Tensor" and args and not isinstance(args[0], Tensor):
        kind = type(args[0]).__name__
        return TypeError(f"descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply to a '{kind}' object")
    said = signatures.refusal(space, name, args[1:] if space == "Tensor" else args, named)
    if said is None:
        said = _no_tensor(name, args) or _python_said(error, target, args, named, _full_name(space, name))
    if said is None and target is not None and space in ("nn", "Tensor") and name in GIVEN_ON:
        said = _given_on_said(name, target, args, named)
    if said is not None:
        return TypeError(said)
    given = {**dict(zip(values, args, strict=False)), **named}
    if (instead := INSTEAD.get(name)) is not None and (other := instead(given)) is not None:
        return other
    if isinstance(error, ValueError) and any(words in str(error) for words in NUMPYS_TOO_BIG):
        return RuntimeError(f"Storage size calculation overflowed with sizes={_ints(*args, named.get('size'))}")
    return _leaked(error, name, given)


#: What to ask first about the arguments of a public function whose call failed, where its own error is not PyTorch's.
INSTEAD: dict[str, Callable[[dict[str, Any]], Exception | None]] = {}


def _as_given(
    values: dict[str, Any], rest: tuple[Any, ...], named: dict[str, Any], defaults: dict[str, Any], depth: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call (see :func:`explain`) without names and with names, as they were written."""
    given = {key: value for key, value in values.items() if value is not MISSING}
    keywords = [key for key in _keywords(sys._getframe(depth + 1)) if key in given]
    unnamed = {key: value for key, value in named.items() if value is not defaults.get(key, MISSING)}
    named = {**{key: given.pop(key) for key in keywords}, **unnamed}
    if not rest:  # what ends the list and is as if it had not been given was not
        for key in reversed(list(given)):
            if given[key] is not defaults.get(key, MISSING):
                break
            del given[key]
    return (*given.values(), *rest), named


def noticed(
    space: str, name: str, values: dict[str, Any], rest: tuple[Any, ...], named: dict[str, Any], defaults: dict[str, Any],
    depth: int,
) -> Callable[[], Any] | None:  # fmt: skip
    """The call again if an argument's class has a ``__torch_function__``, of which nobody had heard; else None."""
    if not torch_function.register_overriding((*values.values(), *rest, *named.values()), Tensor):
        return None
    found = overridable(space, name)
    return None if found is None else partial(found.look, *_as_given(values, rest, named, defaults, depth + 1))


#: What NumPy says of shapes of more elements than it can count.
NUMPYS_TOO_BIG = ("array is too big", "Maximum allowed dimension")


def _ints(*given: Any) -> list[int]:
    """The ints among arguments, and among the elements of those that are sequences."""
    listed = [each for one in given for each in (one if isinstance(one, (tuple, list)) else [one])]
    return [each for each in listed if each.__class__ is int]


def _leaked(error: Exception, name: str, given: dict[str, Any]) -> Exception | None:
    """What stands for an error of NumPy's or of the inside that got out, as no signature knows ``name``."""
    if isinstance(error, AttributeError) and error.name in INSIDE and not isinstance(error.obj, Tensor):
        for position, (key, value) in enumerate(given.items()):
            if value is error.obj:
                place = f"'{key}' (position {position + 1}) must be Tensor, not {type_name(value)}"
                return TypeError(f"{name}(): argument {place}")
    if isinstance(error, ValueError) and "broadcast" in str(error):
        return broadcast_error([each for each in given.values() if isinstance(each, Tensor)])
    if isinstance(error, TypeError) and type(error).__module__.startswith("numpy"):
        wrong = next((key for key, each in given.items() if isinstance(each, (str, bytes))), None)
        return None if wrong is None else TypeError(f"{name}(): argument '{wrong}' must be Number, not str")
    return None


#: What only a Tensor has.
INSIDE = ("_array", "_grad_edge", "_view", "dtype", "requires_grad")


def _full_name(space: str, name: str) -> str:
    return f"Tensor.{name}" if space == "Tensor" else name


#: Functions of any number of tensors, which PyTorch gives on as a list to one that parses it.
OF_TENSORS = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod", "chain_matmul", "meshgrid",
)  # fmt: skip


def _no_tensor(name: str, args: tuple[Any, ...]) -> str | None:
    """What is said of an element of a list of tensors that is none."""
    if name not in OF_TENSORS and not (name == "einsum" and args and isinstance(args[0], str)):
        return None
    start = int(name == "einsum")
    listed = args[start] if len(args) == start + 1 and isinstance(args[start], (tuple, list)) else args[start:]
    if all(isinstance(each, Tensor) for each in listed):
        return None
    if name.startswith("atleast") and len(listed) == 1 and listed is args:
        return (
            f"{name}() received an invalid combination of arguments - got ({type_name(args[0])}), but expected one of:"
        )
    for index, each in enumerate(listed):
        if not isinstance(each, Tensor):
            kind = type_name(each)
            return f"expected Tensor as element {index} in argument {start}, but got {kind}"
    return None


def _python_said(error: Exception, target: Any, args: Any, named: dict[str, Any], name: str) -> str | None:
    """What Python says of a call for which a function has no parameters, as if the function were called ``name``."""
    if target is None:
        return None
    try:
        inspect.signature(target).bind(*args, **named)
    except TypeError:
        try:
            target(*args, **named)
        except TypeError as found:
            error = found
    else:
        return None
    return str(error).replace(f"{target.__qualname__}()", f"{name}()", 1)


#: What functions that PyTorch has in Python give on to those that parse arguments.
GIVEN_ON = {
    "batch_norm": "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps)",
    "celu": "celu(Tensor input, Number alpha)",
    "cross_entropy": "cross_entropy_loss(Tensor input, Tensor target, Tensor? weight, int reduction, int ignore_index, "
    "float label_smoothing)",
    "elu": "elu(Tensor input, Number alpha)",
    "embedding": "embedding(Tensor weight, Tensor indices)",
    "hardshrink": "hardshrink(Tensor input, Number lambd)",
    "hardtanh": "hardtanh(Tensor input, Number min_val, Number max_val)",
    "layer_norm": "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps)",
    "leaky_relu": "leaky_relu(Tensor input, Number negative_slope)",
    "log_softmax": "log_softmax(int dim)",
    "pad": "pad(Tensor input, int[] pad)",
    "softmax": "softmax(int dim)",
    "threshold": "threshold(Tensor input, Number threshold, Number value)",
    "unflatten": "unflatten(int dim, int[] sizes)",
}
#: Arguments that go by other names there, or are given as something else.
GIVEN_AS = {"indices": "input", "reduction": ""}


def _given_on_said(name: str, target: Any, args: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """What is said of arguments that are given on to a function which parses them."""
    bound = inspect.signature(target).bind(*args, **named)
    bound.apply_defaults()
    line = signatures.Signature(GIVEN_ON[name])
    given = [bound.arguments.get(GIVEN_AS.get(each.name, each.name), 0) for each in line.parameters]
    try:
        line.check(tuple(given), {})
    except signatures.Misfit as misfit:
        return str(misfit)
    return None


def _keywords(frame: FrameType | None) -> tuple[str, ...]:
    """The names that the call under way in this frame gave to arguments, for errors that show a call as it was written.

    They are read from the source; where there is none, all names for arguments in the frame's code count.
    """
    while frame is not None and (
        frame.f_code.co_filename.startswith(PASSED_OVER) or frame.f_globals.get("public") in PUBLIC
    ):
        frame = frame.f_back
    if frame is None:
        return ()
    if frame.f_code is Overridable.look.__code__:
        return tuple(frame.f_locals["kwargs"])
    call = user_frame.expression(frame)
    if call is not None:
        return tuple(each.arg for each in call.keywords if each.arg) if isinstance(call, ast.Call) else ()
    tuples = [each for each in frame.f_code.co_consts if isinstance(each, tuple)]
    return tuple(dict.fromkeys(name for names in tuples for name in names if isinstance(name, str)))
