"""From a declaration to a caller: the hot path.

What a user calls is generated for each operation on its first use, as one would write it by hand for this operation and
nothing else: positional calls, plain stores, no loops. It serves tensors on the CPU in all dtypes that the kernel takes;
anything else (short floats beside numbers, complex numbers, ``out=``, subclasses, GPUs, errors) goes to ``apply`` in
``calls.py``, which is written to be read. Measured with 8 elements: a recorded operation costs 1.2 µs generated and 7 to
10 µs through ``apply``; calling the table's kernel alone costs 0.35 µs.
``python -c "import retrograd; print(retrograd.mul.op.source)"`` after a first call shows what was generated.
"""

from __future__ import annotations

import copy
import inspect
import re
import sys
import warnings
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy

from ..core import devices, dtypes, views, where
from ..core.modes import in_inference, recording
from ..core.node import next_number
from ..core.tensor import Tensor, new
from ..core.views import current, view_of
from .nodes import FIXED, compiled, node_class
from .operation import MISSING, arguments
from .promote import F32, F64, INTEGERS, NUMBERS, OTHERS, PLAIN, unite

INLINE = "inline"
#: Say of a parameter that it is a dimension, which the block wants counted from the front: one there is, or a new one.
AXIS, NEW_AXIS = "axis", "new axis"


class Front:
    """A surface that a block may stand in for: called in the common way it does the block's work itself, in generated
    code, and is not called at all. ``guard``: what else must hold, in Python (INLINE: what the block's expression asks
    for). ``fixed``: the block's parameters that the surface does not have or has in another form: a value, AXIS, an
    expression of the surface's arguments, or a function, which is given the array and those of these arguments that it
    names (or the ones without a name). What raises an error is no common call.
    """

    def __init__(self, op: Any, surface: Any, guard: str, fixed: dict[str, Any]) -> None:
        code = surface.__code__
        self.op, self.surface, self.guard, self.fixed = op, surface, guard, fixed
        count = code.co_argcount + code.co_kwonlyargcount
        self.names: tuple[str, ...] = code.co_varnames[:count]
        self.spread = code.co_varnames[count] if code.co_flags & inspect.CO_VARARGS else ""
        self.named = code.co_varnames[count + bool(self.spread)] if code.co_flags & inspect.CO_VARKEYWORDS else ""
        self.positional: int = code.co_argcount
        given = surface.__defaults__ or ()
        self.defaults: dict[str, Any] = dict(zip(self.names[code.co_argcount - len(given) :], given, strict=False))
        self.defaults.update(surface.__kwdefaults__ or {})

    def behind(self, surface: Any) -> Front:
        """The same before ``surface``, which takes the same arguments."""
        made = copy.copy(self)
        made.surface = surface
        return made

    def passed_on(self, rest: str = "") -> str:
        """The arguments as they go on to the surface; ``rest``: the name under which more came than it has."""
        parts = [each if k < self.positional else f"{each}={each}" for k, each in enumerate(self.names)]
        spread = self.spread or rest
        if spread:
            parts.insert(self.positional, f"*{spread}")
        return ", ".join([*parts, f"**{self.named}"] if self.named else parts)

    def values(self) -> dict[str, str]:
        """How the block's parameters are called in the written code."""
        found = {each: each for each in self.op.params}
        for each, value in self.fixed.items():
            found[each] = f"_p_{each}" if callable(value) or value.__class__ is str else repr(value)
        return found

    def readings(self) -> list[str]:
        """Lines that find the block's parameters by the surface's arguments."""
        lines = []
        for each, value in self.fixed.items():
            if value in (AXIS, NEW_AXIS):
                count = "_a0.ndim" if value == AXIS else "_a0.ndim + 1"
                lines.append(f"_p_{each} = {each} if {each} >= 0 else {each} + {count}")
                lines.append(f"if not 0 <= _p_{each} < {count}: raise IndexError")
            elif callable(value):
                asked = self.spread or ", ".join(arguments(value)[1:])
                lines.append(f"_p_{each} = read_{each}(_a0, {asked})")
            elif value.__class__ is str:
                lines.append(f"_p_{each} = {value}")
        return lines


def specialise(op: Any, function: FunctionType, slow: Any) -> None:
    """Give a public function of ``op`` its own code, which leaves to ``slow`` what is not the common case."""
    op.ufunc, op.united = ufunc_of(op), {}
    taken = taken_by(op)
    front = slow if isinstance(slow, Front) else None
    space = function.__globals__
    space.update(
        slow=front.surface if front else slow, op=op, kernel=op.kernel, ufunc=op.ufunc, np=numpy, ndarray=numpy.ndarray,
        Tensor=Tensor, PLAIN=PLAIN, NUMBERS=NUMBERS, F32=F32, F64=F64, INTEGERS=INTEGERS, FIXED=FIXED, MARK=where.MARK,
        asarray=numpy.asarray, current=current, recording=recording, in_inference=in_inference, new=new,
        next_number=next_number, _getframe=sys._getframe, Node=node_class(op), view_of=view_of,
        CPU=devices.CPU, MISSING=MISSING, taken=taken, unite=unite,
        **{f"default_{key}": value for key, value in (front or op).defaults.items()},
        **{f"Node{i}": node_class(op, only=i) for i in range(len(op.tensors)) if len(op.tensors) < 3},
        **{f"read_{key}": value for key, value in (front.fixed.items() if front else ()) if callable(value)},
    )  # fmt: skip
    if op.inline is not None:
        space.update(*op.inline[2:])
    lines = _caller(op, front, space.get("public", ""))
    op.source = "\n".join(lines)
    made = compiled(f"<{function.__name__}>", lines, dict(space), "caller")
    function.__defaults__ = made.__defaults__
    function.__kwdefaults__ = made.__kwdefaults__
    function.__code__ = made.__code__.replace(co_name=function.__name__, co_qualname=function.__name__)


def specialise_all(op: Any) -> None:
    """Generate the code of every public function of ``op`` anew."""
    for function, slow in op.forms:
        specialise(op, function, slow)


class _Probe:
    """Stands for the array module and for arrays, to see whether a kernel is nothing but one ufunc."""

    def __getattr__(self, name: str) -> Any:
        return lambda *given: (name, given)


def ufunc_of(op: Any) -> Any:
    """The ufunc that a kernel calls with just its operands and does nothing else, or None.

    Calling it directly saves the kernel's own call, 60 ns of 1200.
    """
    if op.kind != "pointwise" or len(op.defaults) < len(op.params):
        return None
    operands = [_Operand() for _ in op.tensors]
    try:
        name, given = op.kernel(_Probe(), *operands, **op.defaults)
    except Exception:  # the kernel looks at its operands: it is more than one ufunc
        return None
    found = getattr(numpy, name, None)
    same = len(given) == len(operands) and all(a is b for a, b in zip(given, operands, strict=True))
    return found if isinstance(found, numpy.ufunc) and same else None


class _Operand:
    """An operand without properties."""

    __slots__ = ()


def taken_by(op: Any) -> frozenset[Any]:
    """The dtypes besides float32 and float64 that generated callers of ``op`` may pass to its kernel as they are.

    A pointwise kernel must keep the dtype, which is tried out. Of short floats it must be a ufunc: NumPy calculates
    each in float32 by itself. Other kernels know what they do, but for short floats to be calculated in float32.
    """
    if op.kind != "pointwise":
        return frozenset({F32, F64} | OTHERS - dtypes.SHORT if op.opmath else {F32, F64} | OTHERS)
    found = set()
    for dtype in OTHERS:
        short = dtype in dtypes.SHORT
        kinds = "" if op.refuses is None else op.refuses[1]
        refused = "bif"[dtypes.of(dtype).category] in kinds or (short and "h" in kinds)
        if refused or (op.floats and not short) or (short and op.ufunc is None) or (op.check and dtype.kind == "b"):
            continue
        one = numpy.ones(1, dtype)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = op.kernel(numpy, *(one for _ in op.tensors), **op.defaults)
        except Exception:  # this kernel does not take such numbers, or has parameters to be given
            continue
        if isinstance(result, (numpy.ndarray, numpy.generic)) and result.dtype == (op.result or dtype):
            found.add(dtype)
    return frozenset(found)


def _caller(op: Any, front: Front | None = None, public: str = "") -> list[str]:
    count = len(op.tensors)
    names = [{"self": "input"}.get(each, each) for each in op.tensors] if front is None else list(front.names[:count])
    every = ", ".join(names) + ("," if count == 1 else "")
    params = ", ".join(op.params) + ("," if op.params else "")
    values = {each: each for each in op.params} if front is None else front.values()
    if front is None:
        out = "None" if public == "method" else "out"
        slow = f"return slow(op, ({every}), ({params}), {out})"
        lines = [f"def caller({_signature(op, names, public)}):"]
        if public:
            lines.append(f"    if {'rest' if public == 'method' else 'rest or out is not None'}: {slow[:-1]}, rest)")
        if op.several or op.outputs or count == 0:
            return [*lines, f"    {slow}"]
        if not public:
            lines.append(f"    if out is not None: {slow}")
    else:
        slow = f"return slow({front.passed_on()})"
        lines = [f"def caller({_signature(front, names, public)}):"]
        if public and not front.spread:
            lines.append(f"    if rest: return slow({front.passed_on('rest')})")
        read = [each for value in front.fixed.values() if callable(value) for each in arguments(value)]
        others = [each for each in front.names[count:] if each not in op.params and each not in read]
        unusual = [f"{each} {_unlike(front.defaults[each])}" for each in others]
        if front.named:
            unusual.append(front.named)
        if unusual:
            lines.append(f"    if {' or '.join(unusual)}: {slow}")
        if front.guard and front.guard != INLINE:
            lines.append(f"    if not ({front.guard}): {slow}")
    for i, name in enumerate(names):
        lines.append(f"    _k = {name}.__class__")
        lines.append("    if _k is Tensor or _k in PLAIN:")
        lines.append(f"        _a{i} = {name}._array")
        lines.append(f"        _n{i} = {name}._node if {name}._view is None else current({name})")
        if i == 0:
            lines += [f"        if _a0.__class__ is not ndarray: {slow}", "        _d = _a0.dtype"]
        if op.kind == "general":
            usual = f"_a{i}.dtype is not _d" if i else "_d is not F32 and _d is not F64"
            lines.append(f"        if {usual} and _a{i}.dtype not in taken: {slow}")
        elif op.kind == "pointwise" and i:
            lines.append(f"        _u = {'_u or ' * (i > 1)}_a{i}.dtype is not _d")
        if op.kind == "pointwise" and i and op.numbers:
            # A float beside integers makes floats of them, and short floats are calculated in float32.
            usual = "_d is F32 or _d is F64 or (_k is int and _d in INTEGERS)"
            if op.check is not None:
                usual = f"_k is not bool and ({usual})"
            lines += ["    elif _k in NUMBERS:", f"        _a{i}, _n{i}, _u = {name}, None, not ({usual})"]
        lines.append(f"    else: {slow}")
    keywords = [f"{each}={values[each]}" if k >= op.positional else values[each] for k, each in enumerate(op.params)]
    operands = ", ".join(f"_a{i}" for i in range(count))
    call = f"kernel({', '.join(['np', operands, *keywords])})"
    if op.ufunc is not None:
        plain = " and ".join(f"{each} == {op.defaults[each]!r}" for each in op.params)
        call = f"ufunc({operands})" + (f" if {plain} else {call}" if plain else "")
    elif op.inline is not None:
        guard, inlined = (_of_arrays(op, each, values) for each in op.inline[:2])
        if op.kind == "general":
            alike = [f"_a{i}.dtype is _d" for i in range(1, count)]
            guard = " and ".join(["(_d is F32 or _d is F64)", *alike, guard])
        always = guard == "True" or (front is not None and front.guard == INLINE)
        call = inlined if always else f"{inlined} if {guard} else {call}"
    lines.append("    try:")
    if front is not None:
        lines += _lines(*_lines(*front.readings()))
        lines += [f"        if not ({guard}): raise ValueError"] if front.guard == INLINE else []
    if op.kind == "pointwise":
        strange = "_u or " * (count > 1) + "_d is not F32 and _d is not F64 and _d not in taken"
        lines.append(f"        if {strange}: ({operands}{',' * (count == 1)}), _d = unite(op, taken, {operands})")
    lines.append(f"        _r = {call}")
    if op.kind != "view":
        lines.append("        if _r.__class__ is not ndarray: _r = asarray(_r)")
    if op.in_order:
        lines.append("        if _r.ndim > 1 and not _r.flags.c_contiguous: _r = _r.copy()")
    lines += _view_result(names) if op.kind == "view" else _fresh_result()
    lines += _lines(*_lines(*_record(op, names, values)))
    # Outside the handler, so that an error raised there does not drag this one along.
    lines += ["        return _y", "    except Exception: pass", f"    {slow}"]
    return lines


def _signature(of: Any, names: Sequence[str], public: str) -> str:
    """The parameters of a caller: those of a front's surface, or an operation's tensors, parameters and ``out``.

    A public one takes any number of arguments, so that it is us who say what is wrong with them.
    """
    front = isinstance(of, Front)
    every, positional = (of.names, of.positional) if front else ((*names, *of.params), len(names) + of.positional)
    unset = "=MISSING" if public else ""
    parts = [f"{each}=default_{each}" if each in of.defaults else each + unset for each in every]
    spread = f"*{of.spread}" if front and of.spread else "*rest" if public else "*"
    if spread != "*" or positional < len(every) or not front:
        parts.insert(positional, spread)
    if front and of.named:
        parts.append(f"**{of.named}")
    return ", ".join(parts if front or public == "method" else [*parts, "out=None"])


def _unlike(default: Any) -> str:
    """The end of a condition: not what it is by default."""
    return f"is not {default}" if default is None or default.__class__ is bool else f"!= {default!r}"


def _of_arrays(op: Any, code: str, values: dict[str, str]) -> str:
    """``code`` in terms of a kernel's tensors and parameters as a caller says it."""
    said = {**values, **{each: f"_a{i}" for i, each in enumerate(op.tensors)}}
    return re.sub(r"(?<!\.)\b[a-z]\w*\b", lambda found: said.get(found[0], found[0]), code)


def _fresh_result() -> list[str]:
    return [
        "        _y = new(Tensor)",
        "        _y._array = _r",
        "        _y._view = _y._grad = _y._node = _y._count = None",
        "        if not recording():",
        "            if in_inference(): _y._count = ()",
        "            return _y",
    ]


def _view_result(names: Sequence[str]) -> list[str]:
    return [
        f"        if not recording(): return view_of({names[0]}, _r)",
        f"        _y, _b, _c = new(Tensor), {names[0]}._view, {names[0]}._count",
        f"        if _c is None: _c = {names[0]}._count = [0, None]",
        "        _y._array, _y._count, _y._seen = _r, _c, _c[0]",
        "        _y._node = _y._grad = None",
        f"        if _b is None: _y._view, _y._made = {names[0]}, 0",
        f"        else: _y._view, _y._made = _b, {names[0]}._made",
    ]


def _record(op: Any, names: Sequence[str], values: dict[str, str]) -> list[str]:
    """Lines that make the node, indented as the body of a function."""
    if not op.has_rules or op.result is not None:
        return []
    count = len(names)
    every = _lines("_node = new(Node)", f"_node.edges = ({', '.join(f'_n{i}' for i in range(count))})")
    every += _lines(*_saves(op, names, None, values))
    head = "if " + " or ".join(f"_n{i} is not None" for i in range(count)) + ":"
    if count == 1:
        made = _lines(*_lone(op, names, 0, values))
    elif count == 2:
        made = _lines("if _n1 is None:", *_lines(*_lone(op, names, 0, values)), "elif _n0 is None:")
        made += _lines(*_lines(*_lone(op, names, 1, values)), "else:", *every)
    else:
        made = every
    if op.kind != "pointwise":  # integers have no derivative
        made = [*_lines("_t = _r.dtype", "if _t is not _d and _t.kind not in 'fcV': return _y"), *made]
    return [head, *made, *_lines(*_facts(op, names))]


def _lines(*lines: str) -> list[str]:
    return ["    " + line for line in lines]


def _lone(op: Any, names: Sequence[str], i: int, values: dict[str, str]) -> list[str]:
    """Lines that make the node of a call of which only operand ``i`` has a place in the graph."""
    return [f"_node = new(Node{i})", f"_node.edge = _n{i}", *_saves(op, names, i, values)]


def _saves(op: Any, names: Sequence[str], only: int | None, values: dict[str, str]) -> list[str]:
    """Lines that keep on the node what its rules need."""
    lines = []
    for each in op.saved():
        if only is None and len(each.rules) < len(names) > 2:
            lines += [f"if {_any_place(each.rules)}:", *_lines(*_store(op, each, names, only, values))]
        elif only is None or only in each.rules:
            lines += _store(op, each, names, only, values)
    return lines


def _any_place(rules: Sequence[int]) -> str:
    return " or ".join(f"_n{i} is not None" for i in rules)


def _facts(op: Any, names: Sequence[str]) -> list[str]:
    """Lines that note on the node its age, the form of its result and the line of the user's program.

    A pointwise result that has the shape of an operand takes over the very tuple: the sweep then sees at a glance that
    a gradient fits.
    """
    lines = ["_y._node = _node", "_node.number = next_number()", "_node.hooks = None"]
    if op.kind != "pointwise":
        lines.append("_node.shape = _r.shape")
    elif len(names) == 1:
        lines.append("_node.shape = _n0.shape")
    else:
        found = " else ".join(f"_n{i}.shape if _n{i} is not None" for i in range(len(names) - 1))
        lines.append(f"_s = {found} else _n{len(names) - 1}.shape")
        tensor = f"_a1 is not {names[1]} and " if len(names) == 2 and op.numbers else ""
        lines += [f"if {tensor}_r.shape != _s: _s = _r.shape", "_node.shape = _s"]
    lines.append(f"_node.dtype = {'_d' if op.kind == 'pointwise' else '_t'}")
    return [*lines, "_f = _getframe(1)", "while MARK in _f.f_globals: _f = _f.f_back",
            "_node.code = _f.f_code", "_node.instruction = _f.f_lasti"]  # fmt: skip


def _store(op: Any, each: Any, names: Sequence[str], only: int | None, values: dict[str, str]) -> list[str]:
    """Lines that keep one value. The shape of an operand that has a place in the graph stands there already."""
    slot = f"_node.s_{each.name}"
    if each.kind == "result":
        return [f"{slot} = _r", f"_node.c_{each.name} = _y._count = [0, None]", f"_node.v_{each.name} = 0"]
    if each.kind == "tensor":
        i = each.index
        plain = [f"_c = {names[i]}._count", f"if _c is None: _c = {names[i]}._count = [0, None]",
                 f"{slot} = _a{i}; _node.c_{each.name} = _c; _node.v_{each.name} = _c[0]"]  # fmt: skip
        if i == 0 or op.kind != "pointwise":
            return plain
        number = f"{slot} = _a{i}; _node.c_{each.name} = FIXED; _node.v_{each.name} = 0"
        return [f"if _a{i} is {names[i]}: {number}", "else:", *_lines(*plain)]
    sources = {
        "shape": f"_{'n' if each.index == only else 'a'}{each.index}.shape", "dtype": f"_a{each.index}.dtype",
        "device": "CPU", "out_shape": "_r.shape", "out_dtype": "_r.dtype",
    }  # fmt: skip
    return [f"{slot} = {sources.get(each.kind) or values[op.params[each.index]]}"]
