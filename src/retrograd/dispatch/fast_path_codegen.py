"""Source code of the fast path: generation of functions that return a new tensor or a view, and of in-place functions.

Local names in the generated source, for the operand at index ``i``: ``_a<i>`` is its array (or the number itself), and
``_n<i>`` its gradient edge. ``_d`` is the dtype of the first operand, ``_r`` the array of the result, and ``_y`` the
result. "The fallback" is the function ``slow``: the generated function calls ``slow`` if it does not support a call.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from copy import copy
from typing import Any

from ..kernels.numba_dispatch import LARGE
from ..kernels.threaded_ufuncs import MANY
from ..runtime.user_frame import RERAISE
from . import signatures
from .op import arguments
from .operand_promotion import annotated_numbers

INLINE, FIRST = "inline", "first"
#: Values in ``fixed``: the parameter is a dimension (of the operand, or a new one); negative ones are normalised for the
#: operation.
AXIS, NEW_AXIS = "axis", "new axis"
#: The ``public`` kind of operators, which take operands and no other arguments.
OPERATOR = "operator"


class FastPathSpec:
    """Fast path of a public Python function (``surface``), which calls the operation ``op`` directly for common calls.

    ``declare.public`` has the same options under other names. The arguments of the constructor:

    op        the record of the operation (an ``Op``)
    surface   the public Python function; it is the fallback if the fast path does not apply
    guard     a condition on the function's arguments, as source text, under which the fast path applies; if it begins
              with "inline", the condition of the operation's inline expression (``op.inline``) must hold, too
    fixed     values for parameters of the operation: a value, AXIS or NEW_AXIS, an expression of the function's
              arguments, or a function, called with the array and the arguments that it names (or the positional ones);
              if the function raises an exception, the fast path does not apply
    gives     the tuple class of several results, or FIRST: only the first result is returned
    operands  the names of the function's parameters that are the operation's tensors; the first ones by default
    other     the next fast path, which is tried if this fast path does not apply
    over      if true, the result is written into the first operand
    itself    a condition under which the function returns its first operand
    """

    def __init__(
        self, op: Any, surface: Any, guard: str, fixed: dict[str, Any], gives: Any = None,
        operands: Sequence[str] = (), other: FastPathSpec | None = None, over: bool = False, itself: str = "",
    ) -> None:  # fmt: skip
        code = surface.__code__
        self.op, self.fixed, self.gives, self.other, self.over = op, fixed, gives, other, over
        self.inline, self.itself = guard.startswith(INLINE), itself
        self.guard = guard.removeprefix(INLINE).removeprefix(" and ")
        self.target = self.surface = surface  # surface: the fallback if the fast path does not apply
        count = code.co_argcount + code.co_kwonlyargcount
        self.names: tuple[str, ...] = code.co_varnames[:count]
        self.spread = code.co_varnames[count] if code.co_flags & inspect.CO_VARARGS else ""
        self.named = code.co_varnames[count + bool(self.spread)] if code.co_flags & inspect.CO_VARKEYWORDS else ""
        self.positional: int = code.co_argcount
        self.operands = tuple(operands) or self.names[: len(op.tensors)]
        given = surface.__defaults__ or ()
        self.defaults: dict[str, Any] = dict(zip(self.names[code.co_argcount - len(given) :], given, strict=False))
        self.defaults.update(surface.__kwdefaults__ or {})

    def behind(self, surface: Any) -> FastPathSpec:
        """Return a copy of this fast path with the fallback ``surface``, a function with the same parameters."""
        made = copy(self)
        made.surface = surface
        return made

    def before_operator(self, surface: Any) -> FastPathSpec:
        """Return a copy of this fast path for an operator method, with the fallback ``surface``.

        The copy has only the positional parameters of the public function.
        """
        made = self.behind(surface)
        made.names = self.names[: self.positional]
        return made

    def passed_on(self, spread: str, named: str) -> str:
        """Return the source text of the argument list with which the fallback is called.

        ``spread`` and ``named`` are the names of the variables with further positional and keyword arguments; an empty
        string means that there is no such variable.
        """
        parts = [each if k < self.positional else f"{each}={each}" for k, each in enumerate(self.names)]
        if spread:
            parts.insert(self.positional, f"*{spread}")
        return ", ".join([*parts, f"**{named}"] if named else parts)

    def read(self) -> set[str]:
        """Return the names of the public function's parameters that the operation or the fast path's conditions use."""
        found = [each for value in self.fixed.values() if callable(value) for each in arguments(value)]
        found += [each for value in self.fixed.values() if value.__class__ is str for each in re.findall(r"\w+", value)]
        return {*self.operands, *self.op.params, *found, *re.findall(r"\w+", self.guard)}

    def unusual(self) -> list[str]:
        """Return conditions (source text), each true if a call passes an argument that the fast path does not use."""
        ours = self.read()
        found = [_unlike(each, self.defaults[each]) for each in self.names if each not in ours]
        return [*found, self.named] if self.named else found

    def for_users(self) -> FastPathSpec:
        """Return a copy for a public function, in which ignored keyword-only arguments are collected by ``**unknown``.

        Such arguments are passed rarely, and each parameter with a default would make every call 7 ns slower.
        """
        made, ours = copy(self), self.read()
        made.names = tuple([each for k, each in enumerate(self.names) if k < self.positional or each in ours])
        return made

    def values(self) -> dict[str, str]:
        """Return, for each parameter of the operation, the variable of the generated source that contains its value."""
        found = {each: each for each in self.op.params}
        for each, value in self.fixed.items():
            found[each] = f"_p_{each}" if callable(value) or value.__class__ is str else f"fixed_{each}"
        return found

    def readings(self) -> list[str]:
        """Return source lines that compute the parameters listed in ``fixed`` from the public function's arguments."""
        lines = []
        for each, value in self.fixed.items():
            if value.__class__ is str and value in (AXIS, NEW_AXIS):
                count = "_a0.ndim" if value == AXIS else "_a0.ndim + 1"
                lines.append(f"_p_{each} = {each} if {each} >= 0 else {each} + {count}")
                lines.append(f"if not 0 <= _p_{each} < {count}: raise IndexError")
            elif callable(value):
                asked = self.spread or ", ".join(arguments(value)[1:])
                lines.append(f"_p_{each} = fixed_{each}(_a0, {asked})")
            elif value.__class__ is str:
                lines.append(f"_p_{each} = {value}")
        return lines


def _unlike(name: str, default: Any) -> str:
    """Return a condition (source text) that is true if the argument ``name`` differs from its default ``default``."""
    if default.__class__ in (int, float, str):
        return f"{name} != {default!r}"
    return f"{name} is not {default if default is None or default.__class__ is bool else f'default_{name}'}"


class FunctionWriter:
    """Generator of the source code of one function that calls the operation ``op``.

    ``front`` is the fast path of a public Python function, or None. ``public`` is ``"function"`` or ``"method"`` for a
    function that users call, ``"operator"`` for an operator, which has no parameters besides its operands, and an empty
    string for a function that only the package calls. If ``over`` is true, the function writes the result into its
    first operand. The attributes are:

    every     the suffixes of the variables of the results: ``""`` for ``_r``, ``"1"`` for ``_r1``, …
    shown     the suffixes of those results that become Tensors
    returned  the expression (source text) that the function returns
    slow      the statement (source text) that calls the fallback
    single    whether only the first result can have a gradient; then the node itself is the result's gradient edge
    records   whether the operation has derivative rules, so that its calls can be recorded
    """

    def __init__(self, op: Any, front: FastPathSpec | None = None, public: str = "", over: bool = False) -> None:
        if front is not None and public and public != OPERATOR:
            front = front.for_users()
        self.op, self.front, self.public, self.over = op, front, public, over
        self.count = len(op.tensors)
        gives = None if front is None else front.gives
        self.every = ["", *map(str, range(1, len(op.outputs)))]
        self.shown = self.every[:1] if gives is FIRST else self.every
        self.records = op.has_rules and op.result is None
        self.single = not op.several and (not op.outputs or op.differentiable == 1)
        several = f"({', '.join(f'_y{k}' for k in self.shown)})"
        self.returned = "_y" if len(self.shown) == 1 else several if gives is None else f"tuple_of(Given, {several})"
        if front is None:
            self.names = [{"self": "input"}.get(each, each) for each in op.tensors]
            self.values = {each: f"default_{each}" if public == OPERATOR else each for each in op.params}
            given = ", ".join(self.names) + ("," if self.count == 1 else "")
            params = ", ".join(self.values.values()) + ("," if op.params else "")
            self.takes_out = public == "function" and not over
            self.slow = f"return slow(op, ({given}), ({params}))"
        else:
            self.names = list(front.operands)
            self.values = front.values()
            self.takes_out = False
            self.slow = f"return slow({front.passed_on(front.spread, front.named)})"

    # -- Arguments

    def head(self) -> list[str]:
        """Return the ``def`` line, and source lines that call the fallback if a call has unusual arguments."""
        lines, front = [f"def caller({self.signature()}):"], self.front
        if front is None:
            if self.takes_out:
                lines.append(f"    if rest or out is not None: {self.slow[:-1]}, rest, out)")
            elif self.public and self.public != OPERATOR:
                lines.append(f"    if rest: {self.slow[:-1]}, rest)")
            return lines + self.plain_numbers()
        if self.public and self.public != OPERATOR and not (front.spread and front.named):
            more = [each for each, own in (("rest", front.spread), ("unknown", front.named)) if not own]
            passed = front.passed_on(front.spread or "rest", front.named or "unknown")
            lines.append(f"    if {' or '.join(more)}: return slow({passed})")
        if unusual := front.unusual():
            lines.append(f"    if {' or '.join(unusual)}: {self.slow}")
        lines += self.plain_numbers()
        if front.guard:
            lines.append(f"    if not ({front.guard}): {self.slow}")
        return lines

    def plain_numbers(self) -> list[str]:
        """Return source lines that convert NumPy scalars passed for the operation's parameters to Python numbers."""
        known = signatures.numbers("torch", self.op.shown) | annotated_numbers(self.op.kernel)
        free = self.op.params if self.front is None else self.front.names
        names = [self.values[each] for each in self.op.params if each in known and self.values[each] in free]
        return [
            f"    if {each}.__class__ in SCALARS: {each} = plain_number({each})"
            for each in names if self.public and self.public != OPERATOR
        ]  # fmt: skip

    def signature(self) -> str:
        """Return the parameter list of the generated function, as source text.

        With a fast path (``front``), the parameters are those of its Python function, otherwise the operation's tensors
        and parameters. A public function also has ``*rest`` and ``**unknown``, so that a call with wrong arguments
        reaches the fallback, which raises PyTorch's error.
        """
        of = self.front or self.op
        every, positional = (*self.names, *self.op.params), self.count + self.op.positional
        if self.front is not None:
            every, positional = self.front.names, self.front.positional
        if self.public == OPERATOR:
            return ", ".join(self.names if self.front is None else every)
        unset = "=MISSING" if self.public else ""
        parts = [f"{each}=default_{each}" if each in of.defaults else each + unset for each in every]
        spread = f"*{of.spread}" if self.front and of.spread else "*rest" if self.public else "*"
        if spread != "*" or positional < len(every):
            parts.insert(positional, spread)
        if self.front and (of.named or self.public):
            parts.append(f"**{of.named or 'unknown'}")
        return ", ".join([*parts, "out=None"] if self.takes_out else parts)

    # -- Operands

    def operands(self) -> list[str]:
        """Return source lines that read each operand's array and gradient edge, or call the fallback.

        The fallback is called unless each operand is a number, or a tensor of a common class (``PLAIN``) and of a dtype
        that the kernel accepts without conversion.
        """
        op, slow, lines = self.op, self.slow, []
        for i, name in enumerate(self.names):
            lines.append(f"    _k = {name}.__class__")
            lines.append("    if _k is Tensor or _k in PLAIN:")
            lines.append(f"        _a{i} = {name}._array")
            if not self.over:
                # What `current_edge` does for a view that is in no graph, and for one that is and was not modified since.
                fresh = (
                    f"{name}._grad_edge is not None and {name}._counter and {name}._view_version == {name}._counter[0]"
                )
                known = (
                    f"(_b := {name}._view) is None or ({name}._grad_edge is None if _b._grad_edge is None else {fresh})"
                )
                lines.append(f"        _n{i} = {name}._grad_edge if {known} else current({name})")
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
            if op.tensors[i] in op.optional and not self.over:
                lines.append(f"    elif {name} is None: _a{i} = _n{i} = None")
            lines.append(f"    else: {slow}")
        return lines

    def arrays(self) -> str:
        return ", ".join(f"_a{i}" for i in range(self.count))

    def said(self, code: str) -> str:
        """Return ``code`` with the names of the kernel's parameters replaced by variables of the generated function.

        ``code`` is source text from the declaration of the operation, such as its inline expression.
        """
        names = {**self.values, **{each: f"_a{i}" for i, each in enumerate(self.op.tensors)}}
        code = code.replace("FLOATS", "(_d is F32 or _d is F64)")
        return re.sub(r"(?<!\.)\b[a-z]\w*\b", lambda found: names.get(found[0], found[0]), code)

    def kernel(self) -> str:
        values = [self.values[each] for each in self.op.params]
        keywords = [f"{each}={values[k]}" if k >= self.op.positional else values[k]
                    for k, each in enumerate(self.op.params)]  # fmt: skip
        return f"kernel({', '.join(['np', self.arrays(), *keywords])})"

    def ufunc(self, *more: str) -> str:
        """Return source text that calls the operation's ufunc with the operands and the further arguments ``more``.

        If the second operand is a number, the source converts it to an array first, because the ufunc's own conversion
        of numbers takes longer.
        """
        arrays = [f"_a{i}" for i in range(self.count)]
        if self.count == 2 and self.op.numbers:
            arrays[1] = f"_a1 if _a1 is not {self.names[1]} else asarray(_a1, _d)"
        return f"ufunc({', '.join([*arrays, *more])})"

    def at_defaults(self) -> str:
        """Return a condition (source text) that all parameters have their default values; empty if there are none."""
        if self.public == OPERATOR and self.front is None:
            return ""
        return " and ".join(f"{each} == {self.op.defaults[each]!r}" for each in self.op.params)

    def strange(self) -> str:
        """Return the condition (source text) under which the operands of a pointwise operation must be promoted."""
        return "_u or " * (self.count > 1) + "_d is not F32 and _d is not F64 and _d not in taken"

    def united(self, dtype: str) -> list[str]:
        """Return source lines that promote the operands of a pointwise operation.

        The lines assign the common dtype to the variable called ``dtype``. Other operations need no such lines.
        """
        if self.op.kind != "pointwise":
            return []
        arrays = self.arrays()
        return [f"if {self.strange()}: ({arrays}{',' * (self.count == 1)}), {dtype} = unite(op, taken, {arrays})"]

    # -- A new tensor, or a view

    def caller(self) -> list[str]:
        """Return the source lines of a function that returns its result as a new tensor or as a view."""
        op, front, lines = self.op, self.front, self.head()
        if self.count == 0:
            return _brief([*lines, f"    {self.slow}"])
        needed, call = self.call()
        done = [*(front.readings() if front is not None else []), *self.united("_d")]
        if front is not None and front.itself:
            done.append(f"if {self.said(front.itself)}: return {self.names[0]}")
        if needed:
            done.append(f"if not ({needed}): raise ValueError")
        done.append(f"{', '.join(f'_r{k}' for k in self.every)} = {call}")
        done += (
            self.several_results() if op.several else self.view_result() if op.kind == "view" else self.fresh_results()
        )
        watched = []
        if self.records:
            noted = self.record_several() if op.several else self.record()
            done += ["if _m is True:", *_lines(*noted, f"return {self.returned}")]
            watched = ["    else:", *_lines(*_lines(*self.watched()))]
        else:
            done.append(f"return {self.returned}")
        # What is left to others is called outside the handler, so that an error raised there does not drag this one along,
        # and what a hook raises is not taken for a reason to try another way.
        lines += [*self.operands(), "    try:", *_lines(*_lines(*done)), "    except Exception: pass"]
        return _brief([*lines, *watched, f"    {self.slow}"])

    def watched(self) -> list[str]:
        """Return source lines that record a call by the generic path after its result has been computed.

        The lines run if the recording mode is ``grad_mode.HOOKED``.
        """
        operands, params = range(self.count), [self.values[each] for each in self.op.params]
        outs = ["*_y"] if self.op.several else [f"_y{k}" if k in self.shown else f"_r{k}" for k in self.every]
        parts = (self.names, [f"_a{i}" for i in operands], params, [f"_n{i}" for i in operands], outs)
        given = ", ".join("(" + "".join(f"{each}, " for each in part) + ")" for part in parts)
        return [f"watched(op, {given})", f"return {self.returned}"]

    def call(self) -> tuple[str, str]:
        """Return a condition and the expression that computes the result if the condition holds, both as source text.

        An empty condition means that the expression is always valid.
        """
        op, call = self.op, self.kernel()
        if op.ufunc is not None:
            plain, done = self.at_defaults(), self.ufunc()
            if op.large is not None:
                done = f"({done} if _a0.size < {LARGE} else {done.replace('ufunc', 'large', 1)})"
            return "", done + (f" if {plain} else {call}" if plain else "")
        if op.kind == "pointwise":
            call = f"({call} if _a0.size < {MANY} else {call.replace('kernel', 'stretched', 1)})"
        if op.inline is None:
            return "", call
        guard, inlined = (self.said(each) for each in op.inline[:2])
        if self.front is not None and self.front.inline:
            return guard, inlined
        return "", inlined if guard == "True" else f"({inlined}) if {guard} else {call}"

    def fresh_results(self) -> list[str]:
        lines = []
        for k in self.every:
            lines.append(f"if _r{k}.__class__ is not ndarray: _r{k} = asarray(_r{k})")
            if self.op.in_order:
                lines.append(f"if _r{k}.ndim > 1 and not _r{k}.flags.c_contiguous: _r{k} = _r{k}.copy()")
        for k in self.shown:
            lines += [f"_y{k} = new(Tensor)", f"_y{k}._array = _r{k}"]
            lines.append(f"_y{k}._view = _y{k}._grad = _y{k}._grad_edge = _y{k}._counter = None")
        uncounted = f"    if in_inference(): {' = '.join(f'_y{k}._counter' for k in self.shown)} = ()"
        return [*lines, "_m = recording()", "if not _m:", uncounted, f"    return {self.returned}"]

    def several_results(self) -> list[str]:
        if self.op.kind == "view":
            return [f"_y = views_of({self.names[0]}, _r)", "_m = recording()", "if not _m: return _y"]
        uncounted = ["    if in_inference():", "        for _o in _y: _o._counter = ()"]
        return ["_y = tuple([wrap(_o) for _o in _r])", "_m = recording()", "if not _m:", *uncounted, "    return _y"]

    def view_result(self) -> list[str]:
        first = self.names[0]
        return [
            "_m = recording()",
            f"if not _m: return view_of({first}, _r)",
            f"_y, _b, _c = new(Tensor), {first}._view, {first}._counter",
            f"if _c is None: _c = {first}._counter = [0, None]",
            "_y._array, _y._counter, _y._view_version = _r, _c, _c[0]",
            "_y._grad_edge = _y._grad = None",
            f"if _b is None: _y._view, _y._creation_meta = {first}, 0",
            f"else: _y._view, _y._creation_meta = _b, {first}._creation_meta",
        ]

    # -- Overwriting

    def overwriter(self) -> list[str]:
        """Return the source lines of a function that writes its result into its first operand.

        In these lines, the variable ``_x`` is the version counter of the first operand.
        """
        op, lines, first = self.op, self.head(), self.names[0]
        if op.several or op.outputs or op.kind == "view" or op.result is not None:
            return _brief([*lines, f"    {self.slow}"])
        lines += [
            f"    if before_writing: {self.slow}",
            *self.operands(),
            f"    _x = {first}._counter",
            "    if not _x:",
        ]
        lines += [f"        if _x is not None: {self.slow}", f"        _x = {first}._counter = [0, None]"]
        if op.has_rules:
            lines += ["    _w = recording()", "    if _w:", *_lines(*_lines(*self.places()))]
        lines += _lines(*self.overlapping(), "try:")
        if self.front is not None:
            lines += _lines(*_lines(*self.front.readings()))
        lines += _lines(*_lines(*self.overwriting()))
        # Outside the handler, so that an error raised there does not drag this one along.
        lines += _lines(
            "except Exception: _x = None", f"if _x is None: {self.slow}", "_x[0] += 1", "try: _f = _getframe(1)"
        )
        # A thread may run just this: then nothing is above.
        lines += _lines("except ValueError: _f = None", "while _f is not None and MARK in _f.f_globals: _f = _f.f_back")
        lines.append("    _x[1] = (None, -1) if _f is None else (_f.f_code, _f.f_lasti)")
        if op.has_rules:
            lines += ["    if _w:", f"        _r, _y = _a0, {first}", *_lines(*_lines(*self.record()))]
        return _brief([*lines, f"    return {first}"])

    def if_tensor(self, i: int) -> str:
        """Return a condition (source text), followed by ``and``, that is true if operand ``i`` is a tensor.

        If operand ``i`` is always a tensor, the result is an empty string.
        """
        return f"_a{i} is not {self.names[i]} and " if i and self.op.kind == "pointwise" and self.op.numbers else ""

    def places(self) -> list[str]:
        """Return source lines that read the operands' gradient edges and set ``_w`` to whether the call is recorded.

        The lines call the fallback in rare cases: the first operand is a leaf, a view of a leaf, a view created in a
        special way, complex, or has hooks; a saved operand shares the memory of the first operand; or hooks must see
        the call (see ``grad_mode.HOOKED``).
        """
        op, first = self.op, self.names[0]
        leaf = f"_b._grad_edge.__class__ is Leaf or (_b._grad_edge is None and {first}._grad_edge is not None)"
        lines = [f"_b = {first}._view", f"if _b is not None and ({first}._creation_meta or {leaf}): {self.slow}"]
        lines.append(f"_n0 = {first}._grad_edge if _b is None else current({first})")
        for i, name in enumerate(self.names[1:], 1):
            number = f"None if _a{i} is {name} else " if self.if_tensor(i) else ""
            lines.append(f"_n{i} = {number}{name}._grad_edge if {name}._view is None else current({name})")
        lines.append(f"if {' and '.join(f'_n{i} is None' for i in range(self.count))}: _w = False")
        strange = ["_w is not True", "_d.kind != 'f'"]
        strange.append("_n0 is not None and (_n0.__class__ is Leaf or _n0.hooks is not None)")
        kept = {each.index for each in op.saved() if each.kind == "tensor"}
        strange += [f"{self.if_tensor(i)}{self.names[i]}._counter is _x" for i in kept if i]
        lines += ["if _w:", f"    if {' or '.join(strange)}: {self.slow}"]
        return [*lines, "    _old = _a0.copy()"] if 0 in kept else lines

    def overlapping(self) -> list[str]:
        """Return source lines that call the fallback if elements of the first operand overlap in memory.

        The fallback is also called if another operand shares this memory, unless both operands are the same array.
        """
        lines = [f"if _a0.base is not None and 0 in _a0.strides: {self.slow}"]
        for i in range(1, self.count):
            owners = f"(_a0.base is not None or _a{i}.base is not None) and share_memory(_a{i}, _a0)"
            lines.append(f"if {self.if_tensor(i)}_a{i} is not _a0 and {owners}: {self.slow}")
        return lines

    def overwriting(self) -> list[str]:
        """Return source lines that compute the result and write it into the array of the first operand."""
        op, ways = self.op, []
        if op.over is not None:
            guard, statement = (self.said(each) for each in op.over[:2])
            if op.kind == "general":
                return [statement] if guard == "True" else [f"if not ({guard}): raise ValueError", statement]
            ways = [(" and ".join(["not _u"] * (self.count > 1) + ["(_d is F32 or _d is F64)", guard]), [statement])]
        lines = [f"_r = {self.kernel()}", "if _r.shape != _o.shape or _r.dtype.kind != _d.kind: raise ValueError"]
        lines = ["_o = _a0", *self.united("_t"), *lines, "_o[...] = _r", "_a0 = _o"]
        if op.ufunc is not None:
            # What a user has made of NumPy's warnings: an error that comes when all is written.
            direct = ["try: " + self.ufunc("out=_a0"), "except Warning: pass"]
            if op.large is not None:
                loop = self.ufunc("out=_a0").replace("ufunc", "large", 1)
                direct = [f"if _a0.size < {LARGE}:", *_lines(*direct), f"else: {loop}"]
            ways.insert(0, (" and ".join(filter(None, [f"not ({self.strange()})", self.at_defaults()])), direct))
        found: list[str] = []
        for condition, way in ways:
            found += [f"{'el' * bool(found)}if {condition}:", *_lines(*way)]
        return [*found, "else:", *_lines(*lines)] if found else lines

    # -- The node

    def record(self) -> list[str]:
        """Return source lines that create the graph node of the call, with its edges and saved values."""
        op = self.op
        places = [f"_n{i}," if rule is not None or i == 0 else "None," for i, rule in enumerate(op.rules)]
        shaped = op.kind == "pointwise" and self.count == 2 and not self.over
        every = _lines("_node = Node()", f"_node.edges = ({' '.join(places)})")
        if shaped:
            every += _lines("_s = _n0.shape")
        every += _lines(*self.saves(None))
        head = "if " + " or ".join(f"_n{i} is not None" for i in range(self.count)) + ":"
        if not self.single:
            made = every
        elif self.count == 1 and self.over:
            made = _lines("if _b is None:", *_lines(*self.lone(0)), "else:", *every)
        elif self.count == 1 or (not self.over and all(rule is None for rule in op.rules[1:])):
            head, made = "if _n0 is not None:", _lines(*self.lone(0))
        elif self.count == 2:
            alone = " and _b is None" if self.over else ""  # the node of a view becomes part of another
            made = _lines(f"if _n1 is None{alone}:", *_lines(*self.lone(0)), f"elif _n0 is None{alone}:")
            made += _lines(*_lines(*self.lone(1)), "else:", *every)
        else:
            made = every
        if op.kind != "pointwise" and not self.over:  # integers have no derivative
            made = [
                *_lines("_t = _r.dtype", f"if _t is not _d and _t.kind not in 'fcV': return {self.returned}"),
                *made,
            ]
        return [head, *made, *_lines(*self.facts())]

    def record_several(self) -> list[str]:
        """Return source lines that create the node of an operation whose number of results depends on the arguments."""
        lines = [
            "if _n0 is not None and _d.kind in 'fcV' and _r:",
            "    _t = _d",
            "    _node = counted(Node, len(_r))()",
        ]
        lines += _lines("_node.edges = (_n0,)", *self.saves(None), *self.facts())
        lines += ["    for _i, _r in enumerate(_r):", "        _o = _y[_i]._grad_edge = new(Output)"]
        stores = {"node": "_node", "position": "_i", "shape": "_r.shape", "dtype": "_d", "hooks": "None",
                  "number": "next_number()"}  # fmt: skip
        return [*lines, *_lines(*_lines(*[f"_o.{slot} = {value}" for slot, value in stores.items()]))]

    def lone(self, i: int) -> list[str]:
        """Return source lines that create the node of a call in which only operand ``i`` has a gradient edge."""
        shape = [f"_s = _n{i}.shape"] if self.op.kind == "pointwise" and self.count == 2 and not self.over else []
        return [f"_node = Node{i}()", f"_node.edge = _n{i}", *shape, *self.saves(i)]

    def saves(self, only: int | None) -> list[str]:
        """Return source lines that save on the node the values that its derivative rules need.

        ``only`` is the index of the only operand with a gradient edge, or None if several have one.
        """
        lines = []
        for each in self.op.saved():
            if only is None and len(each.rules) < self.count > 2:
                lines += [f"if {_any_place(each.rules)}:", *_lines(*self.store(each, only))]
            elif only is None or only in each.rules:
                lines += self.store(each, only)
        return lines

    def facts(self) -> list[str]:
        """Return source lines that set the node's number, shape, dtype, and location in the user's program.

        If a pointwise result has the shape of an operand, the node gets the same tuple object as its shape. Then the
        backward pass can compare the shapes by identity, which is fast.
        """
        names, pointwise = self.names, self.op.kind == "pointwise"
        lines = ["_node.number = next_number()", "_node.hooks = None", *self.placed()]
        if self.over:
            lines.append("_node.shape = _r.shape if _n0 is None else _n0.shape")
        elif self.op.one:
            lines.append("_node.shape = ()")
        elif not pointwise:
            lines.append(f"_node.shape = {'_r[0]' if self.op.several else '_r'}.shape")
        elif self.count == 1:
            lines.append("_node.shape = _n0.shape")
        else:
            if self.count > 2:
                found = " else ".join(f"_n{i}.shape if _n{i} is not None" for i in range(self.count - 1))
                lines.append(f"_s = {found} else _n{self.count - 1}.shape")
            tensor = f"_a1 is not {names[1]} and " if self.count == 2 and self.op.numbers else ""
            lines += [f"if {tensor}_r.shape != _s: _s = _r.shape", "_node.shape = _s"]
        lines.append(f"_node.dtype = {'_d' if pointwise or self.over else '_t'}")
        if self.over:
            place = ["if _b is None: _y._grad_edge = _node", "else: rebase(_y, _node)"]
            return [*lines, "_node.code, _node.instruction = _x[1]", *place]
        return [*lines, *_FRAME, "_node.code = _f.f_code", "_node.instruction = _f.f_lasti"]

    def placed(self) -> list[str]:
        """Return source lines that set the gradient edges of the results.

        The list is empty for in-place functions and for operations with a variable number of results, whose edges are
        set in :meth:`facts` and :meth:`record_several`.
        """
        if self.over or self.op.several:
            return []
        if self.single:
            return ["_y._grad_edge = _node"]
        return ["_y._grad_edge = Output(_node, 0, _r.shape, _t)"] + [
            f"if _r{k}.dtype.kind in 'fcV': _y{k}._grad_edge = Output(_node, {k}, _r{k}.shape, _r{k}.dtype)"
            for k in self.shown[1 : self.op.differentiable]
        ]

    def store(self, each: Any, only: int | None) -> list[str]:
        """Return source lines that save on the node one value, described by ``each`` (a :class:`Saved`).

        ``only`` is the index of the only operand with a gradient edge, or None. A saved shape of this operand is read
        from the edge.
        """
        slot = f"_node.s_{each.name}"
        if each.kind == "result":
            k = self.every[each.index]
            cell = (
                ("_x", "_x[0]") if self.over else (f"_y{k}._counter = [0, None]" if k in self.shown else "FIXED", "0")
            )
            return [f"{slot} = _r{k}", f"_node.c_{each.name} = {cell[0]}", f"_node.v_{each.name} = {cell[1]}"]
        if each.kind == "tensor":
            i = each.index
            fixed = f"_node.c_{each.name} = FIXED; _node.v_{each.name} = 0"
            if i == 0 and self.over:
                return [f"{slot} = _old; {fixed}"]
            plain = [f"_c = {self.names[i]}._counter", f"if _c is None: _c = {self.names[i]}._counter = [0, None]",
                     f"{slot} = _a{i}; _node.c_{each.name} = _c; _node.v_{each.name} = _c[0]"]  # fmt: skip
            if each.name in self.op.optional:
                nothing = f"{slot} = _node.c_{each.name} = None; _node.v_{each.name} = 0"
                return [f"if _a{i} is None: {nothing}", "else:", *_lines(*plain)]
            if not self.if_tensor(i):
                return plain
            return [f"if _a{i} is {self.names[i]}: {slot} = _a{i}; {fixed}", "else:", *_lines(*plain)]
        sources = {
            "shape": f"_{'n' if each.index == only else 'a'}{each.index}.shape", "dtype": f"_a{each.index}.dtype",
            "device": "CPU", "out_shape": "_r.shape", "out_dtype": "_r.dtype", "strides": f"_a{each.index}.strides",
        }  # fmt: skip
        value = sources.get(each.kind) or self.values[self.op.params[each.index]]
        if each.kind == "parameter" and each.name in NUMBERS_SAVED and self.op.ufunc is None:
            return [f"{slot} = {value} if {value}.__class__ is not Tensor else number_in({value})"]
        return [f"{slot} = {value}"]


#: Parameters for which a kernel takes a tensor without dimensions; the rules need the number. Of ``add`` and ``sub``, which
#: have a ufunc, the kernels refuse a tensor, so that the usual call pays nothing.
NUMBERS_SAVED = frozenset({"alpha", "beta", "correction", "eps", "max_val", "min_val", "number", "value"})
#: Lines that find the user's frame.
_FRAME = ("_f = _getframe(1)", "while MARK in _f.f_globals: _f = _f.f_back")


def _lines(*lines: str) -> list[str]:
    return ["    " + line for line in lines]


def _brief(lines: list[str]) -> list[str]:
    """Return the source ``lines`` of a function with the body in a ``try`` statement that shortens tracebacks.

    The ``except`` block removes the package's frames from the traceback of an error.
    """
    caught = ["    except Exception as _error:", "        _error = brief(_error)"]
    return [lines[0], "    try:", *_lines(*lines[1:]), *caught, *_lines(*_lines(*RERAISE))]


def _any_place(rules: Sequence[int]) -> str:
    return " or ".join(f"_n{i} is not None" for i in rules)
