"""Entries: the operations that a compiled function has called, as a tree with one branch for each path.

An entry has a public function, its arguments, and what is known of its result. An argument is a constant, or the place
of a tensor in the segment; the tensors of a segment are its inputs and results in the order of appearance.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import ref

from numpy import array, ndarray

from ..core import dtypes
from ..core.devices import device
from ..core.shared_memory import SHARED, is_shared
from ..core.size import Size
from ..core.tensor import Tensor, layout, memory_format, share_memory, wrap
from ..core.views import current_edge
from ..nn.parameter import Buffer, Parameter
from ..runtime.codegen import compile_source
from .pure_functions import CLASS_LOSS, INDEXING, PURE_OF_ONE, errors_depend_on_elements, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from weakref import ReferenceType

    from ..core.typing import ArrayDType, Function, PyTree, Shape
    from .replay import Replay
    from .segments import Segment
    from .typing import Constant, Description

#: Classes of the inputs of a segment.
INPUTS = frozenset[object]((Tensor, Parameter, Buffer))
#: Classes of constants: immutable, and equal if their values are equal.
CONSTANTS = frozenset(
    {int, float, bool, str, type(None), type(Ellipsis), slice, dtypes.dtype, device, layout, memory_format}
)
SEQUENCES: frozenset[object] = frozenset({tuple, list, Size})
#: The place of a constant, and of a list or tuple that has tensors.
CONSTANT, SEQUENCE = -1, -2
#: Constant that matches every constant.
ANY = object()
#: Largest number of results of a call that is deferred.
MAX_RESULTS = 32
#: Functions of a tensor and a number that have the same result for a 0-d tensor of the tensor's dtype.
OF_NUMBERS = frozenset({
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rdiv__", "add", "sub", "mul",
    "div", "subtract", "multiply", "divide", "true_divide",
})  # fmt: skip


class Unsupported(Exception):
    """Signal that a call has an argument that no entry can have."""


class Entry:
    """Call of ``called`` with the arguments described by ``places`` and ``constants``, after the calls of ``parent``.

    ``places[i]`` is the place of argument i, or ``CONSTANT`` or ``SEQUENCE``; then ``constants[i]`` is the constant, or
    a list of pairs (place, constant) with the class of the sequence. The arguments after the first ``positional`` are
    passed by the keywords ``names``. ``inputs`` describes the tensors that appear here first. A number that has changed
    in earlier calls may be an input, too, as a 0-d tensor; its description is its class and the dtype. ``function`` is
    ``called``, or None if the comparison in the generated functions does not apply: the entry has inputs or sequences,
    or is a loss whose class indices must be checked.

    A call with several results has one entry for each. They follow each other, and ``items`` of the first one are all of
    them; the others have no ``called``. ``head`` is the first, ``item`` the index of the result, and ``kind`` the class of
    the list or tuple that the function returns. For a call with one result, ``items`` is empty and ``head`` is None.

    An entry without parent is a root, the beginning of segments; its ``place`` is that of the last argument, and
    ``constants`` are the modes and settings. ``known`` is true if a call is deferred as soon as its arguments match: the
    call is neither run in eager mode nor a loss whose class indices must be checked.

    ``place`` is the place of the result, which has ``shape``, ``dtype``, ``strides`` and ``graded`` (requires_grad).
    ``aliases`` is true if it shares the memory of an operand, is a view of a tensor that the function has created, or was
    written by the function; programs compute none of these. ``same`` is the place of the operand that is the result
    itself, or None. ``reason`` is why the call is not deferred, or None.

    ``children`` are the entries that have followed this one, and ``next`` is the one that is expected to follow.
    ``segments`` are the compiled segments that end here, by the reference counts of their results. ``brief`` is true if
    the first segment that began here was not worth deferring, and None if none did; then the call runs in eager mode.
    ``small`` is true for a root if the calls that begin here are not worth deferring, and ``replays`` are those of a
    function that the user has declared pure. ``match`` is the function of :func:`fresh_matcher`, or None before ``hits``
    calls.
    """

    __slots__ = (
        "aliases", "brief", "called", "children", "constants", "contiguous", "dtype", "function", "graded", "head",
        "hits", "inputs", "item", "items", "kind", "known", "match", "names", "next", "parent", "picked", "place",
        "places", "positional", "reason", "replays", "same", "segments", "shape", "size", "small", "strides",
    )  # fmt: skip
    parent: Entry | None
    hits: int
    small: bool

    function: Function | None
    called: Function
    places: tuple[int, ...]
    constants: tuple[Constant, ...]
    positional: int
    names: tuple[str, ...]
    inputs: list[Description]
    place: int
    shape: Shape
    dtype: ArrayDType
    strides: Shape
    size: int
    graded: bool
    contiguous: bool
    aliases: bool
    same: int | None
    picked: Function | None
    next: Entry
    known: bool
    head: Entry | None
    item: int
    items: list[Entry]
    kind: type
    match: Callable[[Sequence[Tensor], Sequence[Constant]], list[Tensor] | None] | None

    def __init__(self, parent: Entry | None, place: int) -> None:
        self.parent, self.place = parent, place
        self.children: list[Entry] = []
        self.segments: dict[object, Segment | None] = {}
        self.function = self.same = self.picked = self.head = None
        self.items: list[Entry] = []
        self.reason: str | None = None
        self.next, self.small, self.known, self.hits, self.match = NOTHING, False, False, 0, None
        self.brief: bool | None = None
        self.replays: list[Replay] = []

    def path(self) -> list[Entry]:
        """Return the entries from the first of the segment to this one."""
        found, entry = [], self
        while entry.parent is not None:
            found.append(entry)
            entry = entry.parent
        return found[::-1]

    def call(self, values: Sequence[Tensor]) -> PyTree:
        """Call the function, with the tensors of the segment from ``values``, and return the result."""
        given = []
        for place, constant in zip(self.places, self.constants, strict=True):
            if place == SEQUENCE:
                kind, items = constant
                found = [values[k] if k >= 0 else each for k, each in items]
                given.append(found if kind is list else kind(found))
            else:
                given.append(values[place] if place >= 0 else constant)
        named = dict(zip(self.names, given[self.positional :], strict=True))
        return self.called(*given[: self.positional], **named)

    def compute(self, values: Sequence[Tensor]) -> PyTree:
        """Call the function, with the tensors of the segment from ``values``, and return the result of this entry."""
        return self.call(values) if self.head is None else self.head.call(values)[self.item]

    def equals(self, arguments: Arguments) -> bool:
        """Whether a call of the same function with ``arguments`` is the call of this entry."""
        return (
            self.places == arguments.places
            and self.inputs == arguments.inputs
            and all(map(_same_argument, self.places, self.constants, arguments.constants))
        )

    def child(self, called: Function, positional: int, names: tuple[str, ...], arguments: Arguments) -> Entry | None:
        """Return the child entry that matches the call, or None."""
        for each in self.children:
            same = each.called is called and each.positional == positional and each.names == names
            if same and each.equals(arguments):
                return each
        return None

    def variants(self, called: Function, positional: int, names: tuple[str, ...], arguments: Arguments) -> list[Entry]:
        """Return the entries after this one that differ from the given call in constants alone."""
        return [
            each
            for each in self.children
            if each.called is called
            and each.positional == positional
            and each.names == names
            and each.places == arguments.places
            and each.inputs == arguments.inputs
        ]

    def count(self) -> int:
        """Return the number of entries from this one on."""
        found = [self]
        for each in found:
            found += each.children
        return len(found)

    def replace(self, variants: Sequence[Entry], entry: Entry) -> None:
        """Remove the entries ``variants``, and expect ``entry`` in their place."""
        self.children = [each for each in self.children if each not in variants]
        self.next = entry

    def finish(self, result: object, learned: Places, fresh: Sequence[Tensor]) -> None:
        """Note the properties of ``result``, which the recorded call has returned.

        ``learned`` are the tensors of the segment, and ``fresh`` the inputs that this call has added.
        """
        self.aliases, self.size = False, 0
        if self.reason is not None:
            return
        if isinstance(result, (tuple, list)):
            self._finish_several(result, learned, fresh)
            return
        self._finish(result, learned, fresh)
        if (
            self.reason is None
            and self.same is None
            and self.graded
            and self.needs_check()
            and getattr(self.called, "__name__", "") == "__getitem__"
        ):
            self.reason = "its backward pass uses a copy of the indices, so that these may be modified"
        self.known = self.reason is None and self.same is None and not self.needs_check()
        if self.known and not self.inputs and SEQUENCE not in self.places:
            self.function = self.called

    def needs_check(self) -> bool:
        """Whether elements must be compared before the call is deferred: indices or classes that must be in range."""
        kind = kind_of(self.called)
        if kind is PURE_OF_ONE:
            return SEQUENCE in self.places or max(self.places[1:], default=-1) >= 0
        return kind is CLASS_LOSS or kind is INDEXING

    def _finish_several(self, results: Sequence[object], learned: Places, fresh: Sequence[Tensor]) -> None:
        """Note the properties of the results of a call that returns a list or tuple of tensors."""
        if not 0 < len(results) <= MAX_RESULTS:
            self.reason = f"it has more than {MAX_RESULTS} results" if results else "it has no result"
            return
        items = [self]
        for index, result in enumerate(results):
            if index:
                item = Entry(items[-1], self.place + index)
                item.called = None  # type: ignore[assignment]
                item.places, item.constants, item.inputs = (), (), []
                item.positional, item.names = 0, ()
                items.append(item)
            item = items[-1]
            item.aliases, item.size, item.head, item.item = False, 0, self, index
            item._finish(result, learned, fresh)
            if item.reason is None and (item.same is not None or any(result is each for each in results[:index])):
                item.reason = "it returns an argument, or a tensor twice"
            if item.reason is not None:
                self.reason, self.head, self.same = item.reason, None, None
                return
        for one, two in pairwise(items):
            one.children, one.next = [two], two
        self.items, self.kind, self.known = items, results.__class__, not self.needs_check()

    def _finish(self, result: object, learned: Places, fresh: Sequence[Tensor]) -> None:
        """Note the properties of one result."""
        self.same = learned.find(result, fresh)
        if getattr(result, "_counter", None) == () and self.same is not None:
            self.reason = "it may have written the inference tensor that it returns"  # which has no version
            return
        if result.__class__ is not Tensor:
            if self.same is None:
                self.reason = f"its result is of class {type(result).__name__}"
            return
        array = result._array
        if array.__class__ is not ndarray or array.dtype.kind == "c":
            self.reason = "its result is complex, or not on the CPU"
            return
        if array.dtype.kind != "f" and errors_depend_on_elements(
            self.called if self.head is None else self.head.called
        ):
            self.reason = "its errors depend on elements"
            return
        self.shape, self.dtype, self.strides = array.shape, array.dtype, array.strides
        self.graded, self.size = result.requires_grad, array.size
        self.contiguous = bool(array.flags.c_contiguous)
        operands = [learned.get(k, fresh) for k in self.used()]
        self.aliases = (
            result._view is not None
            or bool(result._counter and result._counter[0])
            or any(x is not None and share_memory(array, x._array) for x in operands)
        )

    def used(self) -> list[int]:
        """Return the places of the operands."""
        if self.head not in (None, self):
            return self.head.used()
        found = [place for place in self.places if place >= 0]
        for place, constant in zip(self.places, self.constants, strict=True):
            if place == SEQUENCE:
                found += [k for k, _ in constant[1] if k >= 0]
        return found


#: Entry that no call matches.
NOTHING: Entry = Entry.__new__(Entry)
NOTHING.function, NOTHING.next, NOTHING.children, NOTHING.known, NOTHING.parent = None, NOTHING, [], False, None


def describe(x: Tensor) -> Description:
    """Return what an entry requires of the input ``x``: shape, dtype, strides, requires_grad, and whether it is inference.

    Raises Unsupported if no operation on ``x`` may be deferred.
    """
    if x.__class__ not in INPUTS:
        raise Unsupported(f"a tensor of class {x.__class__.__name__}")
    array = x._array
    if array.__class__ is not ndarray or array.dtype.kind == "c":
        raise Unsupported("an array that is not on the CPU" if array.__class__ is not ndarray else "complex numbers")
    if is_shared(array):
        raise Unsupported("memory that a NumPy array shares")
    try:
        edge = x._grad_edge if x._view is None else current_edge(x)
    except RuntimeError as error:
        raise Unsupported("a view that must not be used in the graph") from error
    return array.shape, array.dtype, array.strides, edge is not None, x._counter == ()


def fits(x: PyTree, description: Description) -> bool:
    """Whether ``x`` is a tensor with this description (:func:`describe`)."""
    if x.__class__ not in INPUTS:
        return False
    array = x._array
    shape, dtype, strides, graded, inference = description
    if (
        array.__class__ is not ndarray
        or array.shape != shape
        or array.dtype != dtype
        or array.strides != strides
        or (x._counter == ()) is not inference
        or is_shared(array)
    ):
        return False
    if x._view is None:
        return (x._grad_edge is not None) is graded
    try:
        return (current_edge(x) is not None) is graded
    except RuntimeError:
        return False


def _same_argument(place: int, one: PyTree, two: PyTree) -> bool:
    if place != SEQUENCE or one is ANY:
        return place >= 0 or same_constant(one, two)
    return (
        one[0] is two[0]
        and len(one[1]) == len(two[1])
        and all(a[0] == b[0] and same_constant(a[1], b[1]) for a, b in zip(one[1], two[1], strict=True))
    )


def same_constant(a: Constant, b: Constant) -> bool:
    """Whether the constants ``a`` and ``b`` have equal classes and values; NaN equals NaN, and -0.0 differs from 0.0."""
    if a is b or a is ANY:
        return True
    kind = a.__class__
    if kind is not b.__class__:
        return False
    if kind is float:
        return str(a) == str(b) if a == 0 or a != a else a == b
    if kind in SEQUENCES:
        return len(a) == len(b) and all(map(same_constant, a, b))
    if kind is slice:
        parts = [(each.start, each.stop, each.step) for each in (a, b)]
        return same_constant(*parts)
    return kind in CONSTANTS and bool(a == b)


def frozen(value: Constant) -> Constant:
    """Return the constant ``value`` without lists that the program may change; raise Unsupported for other objects."""
    kind = value.__class__
    if kind in SEQUENCES:
        found = [frozen(each) for each in value]
        return found if kind is list else kind(found)
    if kind is slice:
        for each in (value.start, value.stop, value.step):
            if each.__class__ is not int and each is not None:
                raise Unsupported("a slice by a tensor")
    if kind not in CONSTANTS:
        raise Unsupported(f"an argument of class {kind.__name__}")
    return value


def has_tensor(value: Constant) -> bool:
    """Whether the list or tuple ``value`` contains a tensor."""
    return any(isinstance(each, Tensor) for each in value)


#: Bound below which a number is finite in float32 and float64, and rounded at most once.
LARGEST = 2**53
FLOATS = (dtypes.float32, dtypes.float64)


def describe_number(called: Function, given: Sequence[Constant]) -> Description | None:
    """Return the description of the number given[1] if it may be an input; ``given`` are the arguments of ``called``."""
    if len(given) < 2 or getattr(called, "__name__", "") not in OF_NUMBERS or not isinstance(given[0], Tensor):
        return None
    x, number, *rest = given
    if any(each != 1 for each in rest):  # alpha
        return None
    if number.__class__ not in (int, float) or not -LARGEST < number < LARGEST or x.dtype not in FLOATS:
        return None
    return number.__class__, x.dtype.numpy


def number_tensor(number: Constant, description: Description) -> Tensor:
    """Return ``number`` as a 0-d tensor."""
    return wrap(array(number, description[1]))  # type: ignore[call-overload]


class Places:
    """Tensors of a segment whose calls are being recorded, as weak references; their index is the place."""

    def __init__(self, values: Iterable[Tensor]) -> None:
        self.references: list[ReferenceType[Tensor]] = []
        self._by_id: dict[int, int] = {}
        for each in values:
            self.add(each)

    def add(self, x: Tensor) -> None:
        """Add ``x`` at the next place."""
        known, reference = self.find(x, ()), ref(x)
        self.references.append(reference)
        place = len(self.references) - 1
        while self.references[place] is not reference:  # a handler has added others: Note [Re-entrancy] in cursor.py
            place -= 1
        if known is None:
            self._by_id[id(x)] = place

    def find(self, x: object, fresh: Sequence[Tensor]) -> int | None:
        """Return the place of ``x``, or None if it is not in the segment, whose last tensors are ``fresh``."""
        place = self._by_id.get(id(x))
        if place is not None:
            if self.references[place]() is x:
                return place
            self._by_id.pop(id(x), None)  # of a tensor that was freed
        return next((len(self.references) + k for k, each in enumerate(fresh) if each is x), None)

    def get(self, place: int, fresh: Sequence[Tensor]) -> Tensor | None:
        """Return the tensor at ``place``, or None if it was freed; ``fresh`` are the last tensors."""
        count = len(self.references)
        return self.references[place]() if place < count else fresh[place - count]


class Arguments:
    """Arguments of a call as an entry has them: ``places`` and ``constants``, and the inputs that appear here first.

    ``values`` are the tensors of the segment. ``fresh`` are the inputs, with their descriptions in ``inputs``. Raises
    Unsupported if no entry can have these arguments.
    """

    places: tuple[int, ...]
    constants: tuple[Constant, ...]

    def __init__(self, values: Places, given: Iterable[Constant]) -> None:
        self.values = values
        self.fresh: list[Tensor] = []
        self.inputs: list[Description] = []
        pairs = [self.argument(each) for each in given]
        self.places = tuple([place for place, _ in pairs])
        self.constants = tuple([constant for _, constant in pairs])

    def ignore(self, other: Entry) -> None:
        """Replace the constants that differ from those of ``other`` by :data:`ANY`, which matches every constant."""
        given = zip(self.places, other.constants, self.constants, strict=True)
        self.constants = tuple([two if _same_argument(place, one, two) else ANY for place, one, two in given])

    def vary(self, number: Constant, description: Description) -> None:
        """Make the second argument, which is ``number``, an input."""
        place = len(self.values.references) + len(self.fresh)
        self.places = self.places[0], place, *self.places[2:]
        self.constants = self.constants[0], None, *self.constants[2:]
        self.inputs.append(description)
        self.fresh.append(number_tensor(number, description))

    def argument(self, value: Constant) -> tuple[int, Constant]:
        """Return (place, constant) for an argument, as in :class:`Entry`."""
        if isinstance(value, Tensor):
            return self.place(value), None
        if value.__class__ in SEQUENCES and has_tensor(value):
            items = [
                (self.place(each), None) if isinstance(each, Tensor) else (CONSTANT, frozen(each)) for each in value
            ]
            return SEQUENCE, (value.__class__, items)
        return CONSTANT, frozen(value)

    def place(self, x: Tensor) -> int:
        """Return the place of ``x``, which becomes an input if it is not in the segment."""
        place = self.values.find(x, self.fresh)
        if place is None:
            self.inputs.append(describe(x))
            self.fresh.append(x)
            place = len(self.values.references) + len(self.fresh) - 1
        return place


def fresh_inputs(entry: Entry, given: Sequence[Constant], values: Sequence[Tensor]) -> list[Tensor] | None:
    """Return the tensors that appear first in the call of ``entry`` with the arguments ``given``; None if it differs.

    ``values`` are the tensors of the segment before the call.
    """
    fresh: list[Tensor] = []
    count = len(values)
    for place, constant, value in zip(entry.places, entry.constants, given, strict=True):
        if place == CONSTANT:
            if value is not constant and not same_constant(constant, value):
                return None
        elif 0 <= place < count:
            if values[place] is not value:
                return None
        elif place == SEQUENCE:
            kind, items = constant
            if value.__class__ is not kind or len(value) != len(items):
                return None
            for (k, each), one in zip(items, value, strict=True):
                if k < 0:
                    if not same_constant(one, each):
                        return None
                elif not _is_at(k, one, values, count, entry, fresh):
                    return None
        elif not _is_at(place, value, values, count, entry, fresh):
            return None
    return fresh


def fresh_matcher(entry: Entry) -> Callable[[Sequence[Tensor], Sequence[Constant]], list[Tensor] | None]:
    """Return a function of ``values`` and ``given`` with the result of :func:`fresh_inputs` for ``entry``.

    The comparisons are written out for the arguments of the entry, which takes a third of the time.
    """
    space: dict[str, object] = {
        "same": same_constant, "number_tensor": number_tensor, "INPUTS": INPUTS, "ndarray": ndarray, "fits": fits,
        "owners": SHARED, "len": len, "tuple": tuple,
    }  # fmt: skip
    given = [f"a{i}" for i in range(len(entry.places))]
    lines = ["def match(values, given):", f"    {''.join(each + ', ' for each in given)}= given"]
    count, fresh = entry.place - len(entry.inputs), list[str]()

    def differs(condition: str) -> None:
        lines.append(f"    if {condition}: return None")

    def compare(name: str, place: int, constant: Constant) -> None:
        if place == CONSTANT:
            space[f"c_{name}"] = constant
            differs(f"{name} is not c_{name} and not same(c_{name}, {name})")
        elif place == SEQUENCE:
            kind, items = constant
            space[f"k_{name}"] = kind
            differs(f"{name}.__class__ is not k_{name}")
            lines.append(f"    {name} = tuple({name})")
            differs(f"len({name}) != {len(items)}")
            inner = [f"{name}_{i}" for i in range(len(items))]
            lines.append(f"    {''.join(each + ', ' for each in inner)}= {name}")
            for each, (k, one) in zip(inner, items, strict=True):
                compare(each, k, one)
        elif place < count:
            differs(f"{name} is not values[{place}]")
        elif place - count < len(fresh):
            differs(f"{name} is not {fresh[place - count]}")
        else:
            fresh.append(name)
            description = space[f"d_{name}"] = entry.inputs[place - count]
            if len(description) == 2:
                space[f"k_{name}"] = description[0]
                differs(f"{name}.__class__ is not k_{name} or not -{LARGEST} < {name} < {LARGEST}")
                lines.append(f"    {name} = number_tensor({name}, d_{name})")
                return
            shape, space[f"t_{name}"], strides, graded, inference = description
            differs(f"{name}.__class__ not in INPUTS")
            lines.append(f"    array = {name}._array")
            differs(
                f"(array.__class__ is not ndarray or array.shape != {shape} or array.strides != {strides} or "
                f"array.dtype != t_{name} or owners or {name}._counter {'!=' if inference else '=='} () or "
                f"{name}._view is not None or {name}._grad_edge is {'' if graded else 'not '}None) and "
                f"not fits({name}, d_{name})"
            )

    for name, place, constant in zip(given, entry.places, entry.constants, strict=True):
        compare(name, place, constant)
    return compile_source("<arguments>", [*lines, f"    return [{', '.join(fresh)}]"], space, "match")


def _is_at(place: int, value: PyTree, values: Sequence[Tensor], count: int, entry: Entry, fresh: list[Tensor]) -> bool:
    """Whether ``value`` is the tensor at ``place``, or an input that ``entry`` describes; this is added to ``fresh``."""
    if place < count:
        return values[place] is value
    if place < count + len(fresh):
        return fresh[place - count] is value
    description = entry.inputs[place - count]
    if value.__class__ is description[0]:
        if not -LARGEST < value < LARGEST:
            return False
        value = number_tensor(value, description)
    elif len(description) == 2 or not fits(value, description):
        return False
    fresh.append(value)
    return True
