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
import re
import sys
import warnings
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy

from ..core import devices, dtypes, views, where
from ..core.modes import in_inference, recording
from ..core.node import Output, next_number
from ..core.tensor import Tensor, new
from ..core.views import current, view_of
from .nodes import FIXED, compiled, full_class, node_class
from .operation import MISSING
from .promote import F32, F64, INTEGERS, NUMBERS, OTHERS, PLAIN, unite

INLINE, FIRST = "inline", "first"


class Front:
    """A surface that a block may stand in for: called with the block's operands and nothing else, it does the block's
    work itself, in generated code, and is not called at all.

    ``guard``: what else must hold, in Python (beginning with INLINE: what the block's expression asks for too).
    ``fixed``: the block's parameters that the surface does not have, or that ``guard`` leaves no choice. ``gives``: what
    the surface makes of several results: a tuple of this class, or FIRST: only the first. ``operands``: what it calls the
    block's tensors (its first parameters, if nothing is said). ``other``: the front of another block, which takes over
    what is not for this one.
    """

    def __init__(
        self, op: Any, surface: Any, guard: str, fixed: dict[str, Any], gives: Any = None,
        operands: Sequence[str] = (), other: Front | None = None,
    ) -> None:  # fmt: skip
        code = surface.__code__
        self.op, self.guard, self.fixed, self.gives, self.other = op, guard, fixed, gives, other
        self.target = self.surface = surface  # the second is what is called if the block can not stand in
        self.names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.positional: int = code.co_argcount
        self.operands = tuple(operands) or self.names[: len(op.tensors)]
        given = surface.__defaults__ or ()
        self.defaults: dict[str, Any] = dict(zip(self.names[code.co_argcount - len(given) :], given, strict=False))
        self.defaults.update(surface.__kwdefaults__ or {})

    def behind(self, surface: Any) -> Front:
        """The same before ``surface``, which takes the same arguments."""
        made = copy.copy(self)
        made.surface = surface
        return made


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
        next_number=next_number, _getframe=sys._getframe, Node=full_class(op), view_of=view_of, View=views.View,
        CPU=devices.CPU, MISSING=MISSING, taken=taken, unite=unite, Output=Output, brief=where.brief,
        **{f"default_{key}": value for key, value in (front or op).defaults.items()},
        **{f"Node{i}": node_class(op, only=i) for i in range(len(op.tensors)) if len(op.tensors) < 3},
    )  # fmt: skip
    if op.inline is not None:
        space.update(*op.inline[2:])
    if front is not None:
        space.update(Given=front.gives, tuple_of=tuple.__new__)
        space.update({f"fixed_{each}": value for each, value in front.fixed.items()})
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
    names = [{"self": "input"}.get(each, each) for each in op.tensors] if front is None else list(front.operands)
    every = ", ".join(names) + ("," if count == 1 else "")
    params = ", ".join(op.params) + ("," if op.params else "")
    if front is None:
        out = "None" if public == "method" else "out"
        slow = f"return slow(op, ({every}), ({params}), {out})"
        lines = [f"def caller({_signature(op, names, public)}):"]
        if public:
            lines.append(f"    if {'rest' if public == 'method' else 'rest or out is not None'}: {slow[:-1]}, rest)")
        if op.several or count == 0:
            return _brief([*lines, f"    {slow}"])
        if not public:
            lines.append(f"    if out is not None: {slow}")
    else:
        keyed = [each if k < front.positional else f"{each}={each}" for k, each in enumerate(front.names)]
        slow = f"return slow({', '.join(keyed)})"
        lines = [f"def caller({_signature(front, names, public)}):"]
        if public:
            every = ", ".join([*front.names[: front.positional], "*rest", *keyed[front.positional :], "**unknown"])
            lines.append(f"    if rest or unknown: return slow({every})")
        others = [each for each in front.names if each not in op.params and each not in names]
        unusual = [_unlike(each, front.defaults[each]) for each in others]
        if unusual:
            lines.append(f"    if {' or '.join(unusual)}: {slow}")
        guard = front.guard.removeprefix(INLINE).removeprefix(" and ")
        if guard:
            lines.append(f"    if not ({guard}): {slow}")
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
        if op.tensors[i] in op.optional:
            lines.append(f"    elif {name} is None: _a{i} = _n{i} = None")
        lines.append(f"    else: {slow}")
    plan = Plan(op, names, front)
    needed, call = _call(plan, front)
    done = _done(plan, call)
    if needed:
        done = [f"        if {needed}:", *_lines(*done), "        else: _m = None"]
    # What is left to others is called outside the handler, so that an error raised there does not drag this one along,
    # and what a hook raises is not taken for a reason to try another way.
    return _brief(
        [*lines, "    try:", *done, "    except Exception: pass", *_watched(plan, bool(needed)), f"    {slow}"]
    )


def _brief(lines: list[str]) -> list[str]:
    """A function that raises without the frames below it (a handler costs nothing until it is needed)."""
    caught = ["    except Exception as _error:", "        _error = brief(_error)"]
    return [lines[0], "    try:", *_lines(*lines[1:]), *caught, *_lines(*_lines(*where.RAISE))]


class Plan:
    """What the lines of a caller have in common: the names of tensors, parameters and plan.

    ``every``: what is appended to the name of each result; ``shown``: of those that become tensors; ``returned``: what is
    returned; ``single``: only the first result has a gradient, which then arrives at the node itself; ``records``: whether
    there is anything to record.
    """

    def __init__(self, op: Any, names: Sequence[str], front: Front | None) -> None:
        gives, fixed = (None, {}) if front is None else (front.gives, front.fixed)
        self.op, self.names = op, names
        self.params = [f"fixed_{each}" if each in fixed else each for each in op.params]
        self.every = ["", *map(str, range(1, len(op.outputs)))]
        self.shown = self.every[:1] if gives is FIRST else self.every
        self.single = not op.outputs or op.differentiable == 1
        self.records = op.has_rules and op.result is None
        several = f"({', '.join(f'_y{k}' for k in self.shown)})"
        self.returned = "_y" if len(self.shown) == 1 else several if gives is None else f"tuple_of(Given, {several})"


def _call(plan: Plan, front: Front | None) -> tuple[str, str]:
    """What must hold for the call of a kernel (nothing: an empty string), and the expression that calls it."""
    op = plan.op
    operands = ", ".join(f"_a{i}" for i in range(len(op.tensors)))
    given = list(zip(op.params, plan.params, strict=True))
    keywords = [name if k < op.positional else f"{each}={name}" for k, (each, name) in enumerate(given)]
    call = f"kernel({', '.join(['np', operands, *keywords])})"
    if op.ufunc is not None:
        plain = " and ".join(f"{name} == {op.defaults[each]!r}" for each, name in given)
        return "", f"ufunc({operands})" + (f" if {plain} else {call}" if plain else "")
    if op.inline is None:
        return "", call
    guard, inlined = (_as_called(plan, each) for each in op.inline[:2])
    guard = guard.replace("FLOATS", "(_d is F32 or _d is F64)")
    if front is not None and front.guard.startswith(INLINE):
        return guard, inlined
    return "", f"{inlined} if {guard} else {call}"


def _done(plan: Plan, call: str) -> list[str]:
    """Lines that do the work and return its results, indented as the body of a ``try`` in a function."""
    op, names = plan.op, plan.names
    operands = ", ".join(f"_a{i}" for i in range(len(names)))
    lines = []
    if op.kind == "pointwise":
        strange = "_u or " * (len(names) > 1) + "_d is not F32 and _d is not F64 and _d not in taken"
        lines.append(f"        if {strange}: ({operands}{',' * (len(names) == 1)}), _d = unite(op, taken, {operands})")
    lines.append(f"        {', '.join(f'_r{k}' for k in plan.every)} = {call}")
    for k in plan.every:
        lines.append(f"        if _r{k}.__class__ is not ndarray: _r{k} = asarray(_r{k})")
        if op.in_order:
            lines.append(f"        if _r{k}.ndim > 1 and not _r{k}.flags.c_contiguous: _r{k} = _r{k}.copy()")
    lines += _view_result(names) if op.kind == "view" else _fresh_results(plan)
    if not plan.records:
        return [*lines, f"        return {plan.returned}"]
    return [*lines, "        if _m is True:", *_lines(*_lines(*_lines(*_record(plan), f"return {plan.returned}")))]


def _watched(plan: Plan, needed: bool) -> list[str]:
    """Lines for a call whose work is done, but what is saved has to be shown to hooks (see ``modes.WATCHED``)."""
    if not plan.records:
        return []
    operands = range(len(plan.names))
    outs = [f"_y{k}" if k in plan.shown else f"_r{k}" for k in plan.every]
    parts = (plan.names, [f"_a{i}" for i in operands], plan.params, [f"_n{i}" for i in operands], outs)
    given = ", ".join("(" + "".join(f"{each}, " for each in part) + ")" for part in parts)
    done = [f"watched(op, {given})", f"return {plan.returned}"]
    return ["    else:", *_lines(*_lines(*(["if _m is not None:", *_lines(*done)] if needed else done)))]


def _signature(of: Any, names: Sequence[str], public: str) -> str:
    """The parameters of a caller: those of a front's surface, or an operation's tensors, parameters and ``out``.

    A public one takes any number of arguments, so that it is us who say what is wrong with them.
    """
    front = isinstance(of, Front)
    every, positional = (of.names, of.positional) if front else ((*names, *of.params), len(names) + of.positional)
    unset = "=MISSING" if public else ""
    parts = [f"{each}=default_{each}" if each in of.defaults else each + unset for each in every]
    if public or positional < len(every) or not front:
        parts.insert(positional, "*rest" if public else "*")
    if front:
        return ", ".join([*parts, "**unknown"] if public else parts)
    return ", ".join(parts if public == "method" else [*parts, "out=None"])


def _unlike(name: str, default: Any) -> str:
    """A condition: the argument is not what it is by default."""
    if default.__class__ in (int, float, str):
        return f"{name} != {default!r}"
    return f"{name} is not {default if default is None or default.__class__ is bool else f'default_{name}'}"


def _as_called(plan: Plan, code: str) -> str:
    """``code`` in terms of a kernel's tensors and parameters as a caller says it."""
    arrays = [f"_a{i}" for i in range(len(plan.names))]
    for each, name in zip((*plan.op.tensors, *plan.op.params), (*arrays, *plan.params), strict=True):
        code = re.sub(rf"(?<![\w.]){each}\b", name, code)
    return code


def _fresh_results(plan: Plan) -> list[str]:
    lines = []
    for k in plan.shown:
        lines += [
            f"        _y{k} = new(Tensor)",
            f"        _y{k}._array = _r{k}",
            f"        _y{k}._view = _y{k}._grad = _y{k}._node = _y{k}._count = None",
        ]
    return [
        *lines,
        "        _m = recording()",
        "        if not _m:",
        f"            if in_inference(): {' = '.join(f'_y{k}._count' for k in plan.shown)} = ()",
        f"            return {plan.returned}",
    ]


def _view_result(names: Sequence[str]) -> list[str]:
    return [
        "        _m = recording()",
        f"        if not _m: return view_of({names[0]}, _r)",
        f"        _y, _v, _o, _c = new(Tensor), new(View), {names[0]}._view, {names[0]}._count",
        f"        if _c is None: _c = {names[0]}._count = [0, None]",
        "        _y._array, _y._count, _y._view = _r, _c, _v",
        "        _y._node = _y._grad = None",
        f"        _v.base, _v.made = ({names[0]}, 0) if _o is None else (_o.base, _o.made)",
        "        _v.seen = _c[0]",
    ]


def _record(plan: Plan) -> list[str]:
    """Lines that make the node, indented as the body of a function."""
    op, names = plan.op, plan.names
    count = len(names)
    places = [f"_n{i}," if rule is not None or i == 0 else "None," for i, rule in enumerate(op.rules)]
    every = _lines("_node = new(Node)", f"_node.edges = ({' '.join(places)})")
    every += _lines(*_saves(plan, None))
    head = "if " + " or ".join(f"_n{i} is not None" for i in range(count)) + ":"
    if count == 1 and plan.single:
        made = _lines(*_lone(plan, 0))
    elif count == 2 and plan.single:
        made = _lines("if _n1 is None:", *_lines(*_lone(plan, 0)), "elif _n0 is None:")
        made += _lines(*_lines(*_lone(plan, 1)), "else:", *every)
    else:
        made = every
    if op.kind != "pointwise":  # integers have no derivative
        made = [*_lines("_t = _r.dtype", f"if _t is not _d and _t.kind not in 'fcV': return {plan.returned}"), *made]
    return [head, *made, *_lines(*_facts(plan))]


def _lines(*lines: str) -> list[str]:
    return ["    " + line for line in lines]


def _lone(plan: Plan, i: int) -> list[str]:
    """Lines that make the node of a call of which only operand ``i`` has a place in the graph."""
    return [f"_node = new(Node{i})", f"_node.edge = _n{i}", *_saves(plan, i)]


def _saves(plan: Plan, only: int | None) -> list[str]:
    """Lines that keep on the node what its rules need."""
    lines = []
    for each in plan.op.saved():
        store = _store(plan, each, only)
        if only is None and len(each.rules) < len(plan.names) > 2:
            lines += [f"if {_any_place(each.rules)}:", *_lines(*store)]
        elif only is None or only in each.rules:
            lines += store
    return lines


def _any_place(rules: Sequence[int]) -> str:
    return " or ".join(f"_n{i} is not None" for i in rules)


def _facts(plan: Plan) -> list[str]:
    """Lines that note on the node its age, the form of its result and the line of the user's program.

    A pointwise result that has the shape of an operand takes over the very tuple: the sweep then sees at a glance that
    a gradient fits.
    """
    op, names = plan.op, plan.names
    lines = ["_node.number = next_number()", "_node.hooks = None"]
    if plan.single:
        lines.append("_y._node = _node")
    else:
        lines.append("_y._node = Output(_node, 0, _r.shape, _t)")
        for k in plan.shown[1 : op.differentiable]:
            lines.append(f"if _r{k}.dtype.kind in 'fcV': _y{k}._node = Output(_node, {k}, _r{k}.shape, _r{k}.dtype)")
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


def _store(plan: Plan, each: Any, only: int | None) -> list[str]:
    """Lines that keep one value. The shape of an operand that has a place in the graph stands there already."""
    op, names = plan.op, plan.names
    slot = f"_node.s_{each.name}"
    if each.kind == "result":
        k = plan.every[each.index]
        cell = f"_y{k}._count = [0, None]" if k in plan.shown else "FIXED"
        return [f"{slot} = _r{k}", f"_node.c_{each.name} = {cell}", f"_node.v_{each.name} = 0"]
    if each.kind == "tensor":
        i = each.index
        plain = [f"_c = {names[i]}._count", f"if _c is None: _c = {names[i]}._count = [0, None]",
                 f"{slot} = _a{i}; _node.c_{each.name} = _c; _node.v_{each.name} = _c[0]"]  # fmt: skip
        if each.name in op.optional:
            nothing = f"{slot} = _node.c_{each.name} = None; _node.v_{each.name} = 0"
            return [f"if _a{i} is None: {nothing}", "else:", *_lines(*plain)]
        if i == 0 or op.kind != "pointwise":
            return plain
        number = f"{slot} = _a{i}; _node.c_{each.name} = FIXED; _node.v_{each.name} = 0"
        return [f"if _a{i} is {names[i]}: {number}", "else:", *_lines(*plain)]
    sources = {
        "shape": f"_{'n' if each.index == only else 'a'}{each.index}.shape", "dtype": f"_a{each.index}.dtype",
        "device": "CPU", "out_shape": "_r.shape", "out_dtype": "_r.dtype",
    }  # fmt: skip
    return [f"{slot} = {sources.get(each.kind) or plan.params[each.index]}"]
