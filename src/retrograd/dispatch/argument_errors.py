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
from types import FrameType, FunctionType
from typing import Any

from ..compat.type_names import type_name
from ..core import torch_function
from ..core.grad_mode import in_inference
from ..core.tensor import Tensor, graded_leaf, new
from ..runtime import user_frame
from . import signatures
from .introspection import ShownAsParsed
from .node_classes import PASSED_OVER, compile_source, lazy_function
from .op import MISSING
from .out_argument import into
from .promotion import SCALARS, annotated_numbers, broadcast_error, plain_number
from .torch_function_overrides import Overridable, overridable

#: Lines that do what ``wrap`` does, which takes twice as long.
FRESH = (
    "_made = _new(_Tensor)",
    "_made._array = _array",
    "_made._view = _made._grad = _made._grad_edge = None",
    "_made._counter = () if _in_inference() else None",
)
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


# --- Public functions -----------------------------------------------------------------------------------------------


def guarded(target: Callable[..., Any], space: str, name: str) -> Any:
    """``target`` as the public function ``name``; its code is written when it is first called."""
    made = lazy_function(name, _write, {"target": target, "space": space, "name": name})
    made.__doc__, made.__module__, made.__qualname__ = target.__doc__, "retrograd", name
    loose = target.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if loose and not hasattr(target, "__wrapped__"):
        made.__wrapped__ = ShownAsParsed(target, space, name)  # type: ignore[attr-defined]
    else:
        made.__wrapped__ = target  # type: ignore[attr-defined]
    return made


def _write(function: FunctionType) -> None:
    """Write the code for just the arguments of its target: 90 ns a call; ``*args, **kwargs`` would cost 150."""
    space = function.__globals__
    target, name = space["target"], space["name"]
    code = getattr(target, "own_code", target.__code__)  # while others have exchanged it, what it was
    spread = code.co_flags & inspect.CO_VARARGS  # then what it is given goes on to it as it came
    names = () if spread else code.co_varnames[: code.co_argcount]
    given = () if spread else target.__defaults__ or ()
    defaults = {**dict(zip(names[len(names) - len(given) :], given, strict=True)), **(target.__kwdefaults__ or {})}
    # A method does not know of out=, so that even None is one too many.
    passed = {each: value for each, value in defaults.items() if each != "out" or space["space"] != "Tensor"}
    space.update(
        _call=target, _explain=explain, _noticed=noticed, _brief=user_frame.strip_frames, _vet=vet, _MISSING=MISSING, _defaults=passed,
        _common=getattr(target, "common", None), _new=new, _Tensor=Tensor, _leaf=graded_leaf, _in_inference=in_inference,
        _known=frozenset(target.__kwdefaults__ or ()), _into=into, _space=space["space"], _name=name,
        _SCALARS=SCALARS, _plain=plain_number,
        **{f"_{each}": value for each, value in defaults.items()},
    )  # fmt: skip
    takes_out = "out" in defaults or "out" in (getattr(target, "__wrapped__", target).__kwdefaults__ or ())
    taken = [f"{each}=_{each}" if each in defaults else f"{each}=_MISSING" for each in names]
    missing = " or ".join(f"{each} is _MISSING" for each in names if each not in defaults)
    loose = code.co_flags & inspect.CO_VARKEYWORDS
    lines = [
        f"def guard({', '.join([*taken, '*_rest', '**_named'])}):",
        "    try:",
        *(_commonly(names) if space["_common"] is not None else []),
        f"        if {missing}: raise TypeError" if missing and not loose else "",
        # What takes names that it does not list would take any.
        f"        if _named and not _known.issuperset(_named): _vet({space['space']!r}, {name!r}, _named)"
        if loose
        else "",
        *_numbers(space["space"], name, target, names),
        *(_given_out(space["space"], names) if takes_out else []),
        f"        if _named: return _call({', '.join([*names, '*_rest', '**_named'])})",
        f"        if _rest: return _call({', '.join([*names, '*_rest'])})" if names else "        return _call(*_rest)",
        f"        if {missing}: raise TypeError" if missing and loose else "",
        f"        return _call({', '.join(names)})" if names else "",
        "    except Exception as _error:",
        f"        _values = {{{', '.join(f'{each!r}: {each}' for each in names)}}}",
        f"        _again = _noticed({space['space']!r}, {name!r}, _values, _rest, _named, _defaults, 1)",
        "        if _again is None:",
        f"            _error = _explain(_error, _call, {space['space']!r}, {name!r}, _values, _rest, _named, _defaults, 1)"
        " or _brief(_error)",
        *("            " + each for each in user_frame.RERAISE),
        "    return _again()",  # out of the handler, so that errors are raised without this one
    ]
    made = compile_source(f"<guard of {name}>", [each for each in lines if each], dict(space), "guard")
    function.__defaults__ = made.__defaults__
    function.__code__ = made.__code__.replace(co_name=name, co_qualname=name)


def _commonly(names: tuple[str, ...]) -> list[str]:
    """Lines for a call without names of what makes a tensor of no other (see ``table.surface``)."""
    given, more = (", ".join(names), " and not _rest") if names else ("_rest", "")
    return [
        f"        if not _named{more}:",
        f"            _array = _common({given})",
        "            if _array is not None:",
        *("                " + each for each in FRESH),
        "                return _made",
        f"        elif len(_named) == 1 and _named.get('requires_grad') is True{more}:",
        f"            _array = _common({given})",
        "            if _array is not None: return _leaf(_array)",
    ]


def _numbers(space: str, name: str, target: Any, names: tuple[str, ...]) -> list[str]:
    """Lines that make Python numbers of the NumPy scalars among the arguments that PyTorch takes as numbers."""
    known = signatures.numbers(space, name) | annotated_numbers(target)
    return [
        *(f"        if {each}.__class__ in _SCALARS: {each} = _plain({each})" for each in names if each in known),
        *(f"        if _named and _named.get({each!r}).__class__ in _SCALARS: _named[{each!r}] = _plain(_named[{each!r}])"
          for each in sorted(known.difference(names).intersection(target.__kwdefaults__ or ()))),
    ]  # fmt: skip


def _given_out(space: str, names: tuple[str, ...]) -> list[str]:
    """Lines for a call with ``out=``, which methods do not have."""
    if space == "Tensor":
        return ["        if 'out' in _named: raise TypeError"]
    if "out" in names:  # which may stand without a name here; what comes after it is given by name
        before, after = names[: names.index("out")], names[names.index("out") :]
        return [
            "        if out is not None:",
            f"            _named = {{**_named, {', '.join(f'{each!r}: {each}' for each in after)}}}",
            f"            return _into(_call, _space, _name, [{', '.join(before)}], _named)",
        ]
    given = "".join(f"{each}, " for each in names)
    return [
        "        if _named and _named.get('out') is not None:",
        f"            return _into(_call, _space, _name, [{given}*_rest], _named)",
    ]


def vet(space: str, name: str, named: dict[str, Any]) -> None:
    """Refuse names that PyTorch's function does not have, before a function that takes any name is called."""
    known = signatures.signatures(space, name)
    for key in named if known else ():
        if not any(each.find({key: None}) for one in known for each in one.parameters):
            raise signatures.Misfit(f"{name}() got an unexpected keyword argument '{key}'")


def explained(apply: Callable[..., Any], op: Any, space: str, name: str) -> Callable[..., Any]:
    """``apply``, to which the written code of a block leaves what is not the common case, for its public function."""
    free = (*("input" if each == "self" else each for each in op.tensors), *op.params[: op.positional])
    only = op.params[op.positional :]

    def slow(op: Any, given: tuple[Any, ...], params: tuple[Any, ...], rest: Any = (), out: Any = None) -> Any:
        try:
            if rest or any(each is MISSING for each in (*given, *params)):
                raise TypeError
            if out is not None:
                return into(lambda *given: apply(op, given, params), space, name, given, {"out": out})
            return apply(op, given, params)
        except Exception as error:
            values = dict(zip(free, (*given, *params), strict=False))
            named = {**dict(zip(only, params[op.positional :], strict=True)), "out": out}
            defaults = {"out": None, **op.defaults}
            again = noticed(space, name, values, rest, named, defaults, 2)
            if again is None:
                error = explain(error, None, space, name, values, rest, named, defaults, 2)  # type: ignore[assignment]
                if error is None:
                    raise
                raise error from None
        return again()

    return slow
