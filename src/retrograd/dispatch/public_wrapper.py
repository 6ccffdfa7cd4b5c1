"""Public wrappers: generated functions that call a Python function and raise PyTorch's argument errors.

A wrapper accepts any arguments (``*_rest, **_named``), so that wrong arguments raise PyTorch's error and not Python's.
A wrapper also implements ``out=`` and converts NumPy scalars to Python numbers where PyTorch expects numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..core.grad_mode import in_inference
from ..core.tensor import Tensor, leaf_from_array, new
from ..runtime import user_frame
from . import signatures
from .argument_errors import explain, retry_with_override
from .codegen import compile_source, lazy_function
from .introspection import RecordedSignature
from .op import MISSING
from .operand_promotion import SCALARS, annotated_numbers, plain_number
from .out_argument import call_into_out

#: Source lines equivalent to ``_made = wrap(_array)``, inlined because the call takes twice as long.
FRESH = (
    "_made = _new(_Tensor)",
    "_made._array = _array",
    "_made._view = _made._grad = _made._grad_edge = None",
    "_made._counter = () if _in_inference() else None",
)


def public_wrapper(target: Callable[..., Any], space: str, name: str) -> Any:
    """Return the public wrapper of ``target``, called ``name`` in the namespace ``space``, such as ``torch``.

    The first call of the wrapper generates its code.
    """
    made = lazy_function(name, _write, {"target": target, "space": space, "name": name})
    made.__doc__, made.__module__, made.__qualname__ = target.__doc__, "retrograd", name
    loose = target.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if loose and not hasattr(target, "__wrapped__"):
        made.__wrapped__ = RecordedSignature(target, space, name)  # type: ignore[attr-defined]
    else:
        made.__wrapped__ = target  # type: ignore[attr-defined]
    return made


def _write(function: FunctionType) -> None:
    """Generate the code of the wrapper ``function``, with the same parameters as the function that the wrapper calls.

    A call of the wrapper takes 90 ns; with ``*args, **kwargs`` instead of these parameters it would take 150 ns.
    """
    space = function.__globals__
    target, name = space["target"], space["name"]
    code = getattr(target, "own_code", target.__code__)  # own_code: the original, while __code__ is replaced
    spread = code.co_flags & inspect.CO_VARARGS  # a target with *args gets the positional arguments as they are
    names = () if spread else code.co_varnames[: code.co_argcount]
    given = () if spread else target.__defaults__ or ()
    defaults = {**dict(zip(names[len(names) - len(given) :], given, strict=True)), **(target.__kwdefaults__ or {})}
    # Methods have no out=, so that even out=None is an error.
    passed = {each: value for each, value in defaults.items() if each != "out" or space["space"] != "Tensor"}
    space.update(
        _call=target, _explain=explain, _noticed=retry_with_override, _brief=user_frame.strip_frames, _vet=vet,
        _MISSING=MISSING, _defaults=passed,
        _common=getattr(target, "common", None), _new=new, _Tensor=Tensor, _leaf=leaf_from_array, _in_inference=in_inference,
        _known=frozenset(target.__kwdefaults__ or ()), _into=call_into_out, _space=space["space"], _name=name,
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
        # A target with **kwargs would accept any keyword.
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
        "    return _again()",  # outside the handler, so that its errors do not have this one as context
    ]
    made = compile_source(f"<guard of {name}>", [each for each in lines if each], dict(space), "guard")
    function.__defaults__ = made.__defaults__
    function.__code__ = made.__code__.replace(co_name=name, co_qualname=name)


def _commonly(names: tuple[str, ...]) -> list[str]:
    """Return source lines that call the ``array_factory`` (see ``declare.public``) for calls with positional arguments.

    ``names`` are the wrapper's parameters.
    """
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
    """Return source lines that convert NumPy scalars to Python numbers, for parameters that are numbers in PyTorch.

    ``names`` are the parameters of the function ``target``, which is called ``name`` in ``space``.
    """
    known = signatures.numbers(space, name) | annotated_numbers(target)
    return [
        *(f"        if {each}.__class__ in _SCALARS: {each} = _plain({each})" for each in names if each in known),
        *(f"        if _named and _named.get({each!r}).__class__ in _SCALARS: _named[{each!r}] = _plain(_named[{each!r}])"
          for each in sorted(known.difference(names).intersection(target.__kwdefaults__ or ()))),
    ]  # fmt: skip


def _given_out(space: str, names: tuple[str, ...]) -> list[str]:
    """Return source lines that implement the argument ``out=`` of a public function.

    For a method, which has no ``out=``, the lines raise TypeError. ``names`` are the wrapper's parameters.
    """
    if space == "Tensor":
        return ["        if 'out' in _named: raise TypeError"]
    if "out" in names:  # out may be positional; the parameters after it are passed by name
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
    """Raise ArgumentMismatch if ``named`` has a keyword that no signature of the function ``name`` of ``space`` has.

    Wrappers of functions with ``**kwargs`` call this check, because such functions would accept any keyword.
    """
    known = signatures.signatures(space, name)
    for key in named if known else ():
        if not any(each.find({key: None}) for one in known for each in one.parameters):
            raise signatures.ArgumentMismatch(f"{name}() got an unexpected keyword argument '{key}'")


def with_argument_errors(apply: Callable[..., Any], op: Any, space: str, name: str) -> Callable[..., Any]:
    """Return a fallback for ``op`` that calls ``apply``, implements ``out=`` and raises PyTorch's argument errors.

    ``name`` is the public name of the operation in the namespace ``space``.
    """
    free = (*("input" if each == "self" else each for each in op.tensors), *op.params[: op.positional])
    only = op.params[op.positional :]

    def slow(op: Any, given: tuple[Any, ...], params: tuple[Any, ...], rest: Any = (), out: Any = None) -> Any:
        try:
            if rest or any(each is MISSING for each in (*given, *params)):
                raise TypeError
            if out is not None:
                return call_into_out(lambda *given: apply(op, given, params), space, name, given, {"out": out})
            return apply(op, given, params)
        except Exception as error:
            values = dict(zip(free, (*given, *params), strict=False))
            named = {**dict(zip(only, params[op.positional :], strict=True)), "out": out}
            defaults = {"out": None, **op.defaults}
            again = retry_with_override(space, name, values, rest, named, defaults, 2)
            if again is None:
                error = explain(error, None, space, name, values, rest, named, defaults, 2)  # type: ignore[assignment]
                if error is None:
                    raise
                raise error from None
        return again()

    return slow
