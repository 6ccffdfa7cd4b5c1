"""Cursor: defers the operations of one call of a compiled function, and computes them when a result is needed.

Note [Deferral]. While a compiled function runs, each call of a public function of the library arrives at the cursor. A
call that is equal to an entry of the function's tree becomes a lazy tensor, which is appended to ``values``. The
generated functions contain the comparison with the expected entry (``match_expected`` in ``dispatch/templates.py``); all
other calls arrive at :meth:`Cursor.called`. A pure call that matches no entry computes what is pending, runs in eager
mode and is recorded as a new entry; until the segment ends, the further calls are recorded, too. Every other call
computes what is pending and runs in eager mode.

Note [Re-entrancy]. A signal handler, a destructor, or a callback of the garbage collector may compute with tensors at
any call and at any allocation of a container, so also within the functions of this module. Therefore each change of the
cursor consists of statements that neither call a Python function nor allocate a container, and what it depends on is
read, or read again, directly before. A generated function compares ``expected`` with the call after its last call. The
methods compare ``stamp``, which each change increases; if it has changed meanwhile, the operation runs in eager mode.
:meth:`Cursor.detach` removes the pending results from the cursor before they are computed. Results that were computed
meanwhile, by a handler that has read them, are not changed. A generated function first appends a result to ``values`` and
then changes ``expected``. If an interrupt comes between, ``expected`` has another place than the next tensor, so that no
call is equal to it, and the segment ends at the next call.
"""

from __future__ import annotations

import sys
from sys import getrefcount
from threading import get_ident
from typing import TYPE_CHECKING

from ..core import anomaly_mode, dtypes, engine, torch_function
from ..core.deferral import active_cursor, set_cursor
from ..core.grad_mode import in_inference, recording, restore_recording
from ..core.graph import AccumulateGrad
from ..core.lazy_tensor import Lazy, fill
from ..core.pytree import tree_leaves
from ..core.tensor import Tensor, new, wrap
from ..core.torch_function import GO_ON
from ..core.views import version_of
from ..dispatch.operand_promotion import F32, F64
from ..dispatch.transform_tensor import active_levels
from ..operations.creation.random import default_generator
from ..operations.indexing.getitem import MASK_DTYPES
from ..runtime import user_frame
from . import errors
from .entries import (
    INPUTS,
    NOTHING,
    SEQUENCES,
    Arguments,
    Entry,
    Places,
    Unsupported,
    describe_number,
    fresh_inputs,
    fresh_matcher,
)
from .pure_functions import (
    BACKWARD,
    CLASS_LOSS,
    CLEARS_GRAD,
    COMPOSITION,
    FACTORY,
    GRAD,
    INDEXING,
    METADATA,
    OTHER,
    PURE,
    PURE_OF_ONE,
    READS,
    clears_grad,
    has_valid_classes,
    has_valid_indices,
    kind_of,
)
from .segments import Segment, picker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.typing import Args, Array, Function, Intercepted, Kwargs, PyTree
    from .compiled_function import Compiled
    from .typing import Constant

#: Largest number of entries of a compiled function, and of compiled segments of a path. Beyond them it runs eagerly.
MAX_ENTRIES, MAX_SEGMENTS = 200, 64
#: Largest number of entries that differ only in constants; further calls of the function run in eager mode.
MAX_VARIANTS = 4
#: Number of calls of an entry after which the comparison of its arguments is generated.
MATCHED = 16
#: Description of operations that are not deferred for this reason.
INTERCEPTED = "operations while a mode, a handler or a transformation is active, such as autocast or vmap"
#: Why a call ends a segment, by the kind of its function.
UNKNOWN = "it is not a known pure function"
NOT_KNOWN = {
    CLASS_LOSS: "its classes are not known to be in range",
    INDEXING: "its indices are not known to be in range",
    PURE_OF_ONE: "further arguments than the first are tensors, or indices that are not known to be in range",
}
#: Whether reference counts are exact, so that they show which results the program can still reach.
EXACT = (
    sys.implementation.name == "cpython"
    and sys.version_info < (3, 14)
    and getattr(sys, "_is_gil_enabled", lambda: True)()
)
#: The reference count of a result that only the cursor refers to, in :meth:`Cursor.segment`.
_sample = [object(), object()]
UNREACHED = next(map(getrefcount, picker((0, 1))(_sample)))  # type: ignore[arg-type]


#: Functions that read elements and that ``fullgraph=True`` accepts, as PyTorch's compiler does.
ACCEPTED = frozenset({
    "__float__", "__getitem__", "__int__", "argwhere", "bincount", "data_ptr", "histc", "item", "masked_select", "nonzero",
    "numpy", "unique", "unique_consecutive", "unique_dim", "untyped_storage",
})  # fmt: skip


def _is_accepted(name: str, args: Args) -> bool:
    """Whether ``fullgraph=True`` accepts a call of the function ``name``, although it reads elements."""
    integers = name == "tolist" and isinstance(args[0], Tensor) and args[0]._array.dtype.kind in "iu"
    return name in ACCEPTED or integers


class Pending:
    """Tensors of a segment that has ended, with the ``checks`` and ``mode`` of the cursor, until they are computed.

    ``last`` is the entry of the last result, or None if nothing is pending.
    """

    __slots__ = ("checks", "last", "mode", "values")
    last: Entry | None
    values: list[Tensor]
    checks: list[tuple[Tensor, Array, int]]
    mode: object


class Cursor:
    """State of one call of the compiled function ``held``.

    ``values`` are the tensors of the segment, ``expected`` is the entry that the next call is compared with, and
    ``mode`` is the recording mode of the segment. ``learned`` has the places of the tensors of a segment whose calls are
    being recorded, and ``last`` is the entry of the last recorded call; outside of such a segment, ``last`` is None.
    ``computing`` are the segments that have ended and are not yet computed, ``stamp`` counts the changes of this state,
    and ``turn`` the segments. ``blocked`` is nonzero while a mode or handler that the call entered is active, and after
    the call has ended. ``steps`` has the numbers of steps and elements of the segments that this call has recorded, or
    None if a segment was deferred.
    """

    __slots__ = (
        "blocked", "checks", "computing", "expected", "held", "last", "learned", "mode", "root", "stamp", "steps", "thread",
        "turn", "values",
    )  # fmt: skip
    expected: Entry
    root: Entry

    def __init__(self, held: Compiled, root: Entry, inputs: list[Tensor]) -> None:
        self.held, self.thread, self.blocked, self.stamp, self.turn = held, get_ident(), 0, 0, 0
        self.learned: Places | None = None
        self.last: Entry | None = None
        self.steps: tuple[tuple[int, int], ...] | None = ()
        self.mode: object = recording()
        self.root, self.expected = root, root.next
        self.values = inputs
        # The inputs, each with its array and version.
        self.checks = [(x, x._array, version_of(x)) for x in inputs]
        self.computing: list[Pending] = []

    # -- Segments

    def begin(self) -> bool:
        """Begin a segment in the present modes; return False if no operation may be deferred in them."""
        mode = recording()
        if self.held.full():
            return False
        if self.blocked or mode not in (True, False, None) or is_intercepting():
            self.held.eager[INTERCEPTED] = ""
            return False
        self.detach(self.held.root((mode, in_inference(), dtypes.default.floating)), mode)
        return True

    def detach(self, root: Entry, mode: object) -> Pending:
        """Begin a segment without tensors at ``root``, and return those of the present segment."""
        pending = Pending()
        pending.last = None
        expected = self.held.firsts.get(self.turn + 1, NOTHING)
        if expected.parent is not root:
            expected = root.next
        values: list[Tensor] = []
        checks: list[tuple[Tensor, Array, int]] = []
        # Note [Re-entrancy]
        pending.values = self.values
        if pending.values and pending.values[-1].__class__ is Lazy:
            pending.last = pending.values[-1]._creation_meta
        pending.checks = self.checks
        pending.mode = self.mode
        self.values = values
        self.checks = checks
        self.root = root
        self.expected = expected
        self.mode = mode
        self.last = self.learned = None
        self.stamp += 1
        self.turn += 1
        if pending.last is not None:
            self.computing.append(pending)
        return pending

    def end(self, cause: str) -> None:
        """Compute the pending results because of ``cause``; the next call begins a segment in the modes of that time."""
        if self.thread == get_ident():
            self.settle(NOTHING, GO_ON, cause)

    def block(self, cause: str, change: int) -> None:
        """Compute the pending results, and defer none while the sum of all ``change`` is not 0."""
        if self.thread == get_ident():
            self.settle(NOTHING, GO_ON, cause)
            self.blocked += change

    def finish(self, cause: str) -> None:
        """Compute the pending results at the end of the call, and defer nothing more."""
        self.blocked = 1
        if self.computing:
            self.complete(cause)
        values = self.values
        if self.last is None and not (values and values[-1].__class__ is Lazy):  # nothing is pending
            self.mode = GO_ON
            self.expected = NOTHING
        else:
            self.settle(NOTHING, GO_ON, cause)

    def close(self) -> None:
        """Defer nothing more: the call has ended, but other contexts may still refer to the cursor."""
        self.blocked, self.mode, self.expected = 1, GO_ON, NOTHING

    def holds(self, x: Tensor) -> bool:
        """Whether ``x`` is a pending result of this call, in this thread."""
        return self.thread == get_ident() and (_contains(self.values, x) or self.computed_with(x) is not None)

    def computed_with(self, x: Tensor) -> Pending | None:
        """Return the segment of ``x`` if it has ended."""
        return next((each for each in self.computing if _contains(each.values, x)), None)

    def read(self, x: Tensor, reader: str) -> None:
        """Compute the pending results because the attribute ``reader`` of ``x`` is read."""
        pending = self.computed_with(x)
        if pending is not None:  # read by a signal handler while it is computed, or after an interrupt
            self.compute(pending, "a result is read")
            return
        name = user_frame.called_function()
        direct = name == "__getattr__"  # code outside the package has read the attribute
        self.run(f"{reader} of a result is read" if direct else f"{name}() is called")
        if self.held.fullgraph and self.mode is not GO_ON and (direct or not _is_accepted(name, (x,))):
            raise self.broken(f"reads {reader} of a result" if direct else f"calls {name}()")

    def run(self, cause: str) -> None:
        """Compute the pending results, because of ``cause``, and begin a new segment after them.

        If the call is being recorded, its segment ends.
        """
        if self.computing:
            self.complete(cause)
        if self.values or self.last is not None:
            self.settle(self.held.root((self.mode, in_inference(), dtypes.default.floating)), self.mode, cause)

    def complete(self, cause: str) -> None:
        """Compute the segments that have ended and are not yet computed: in a signal handler, or after an interrupt."""
        for each in [*self.computing]:
            self.compute(each, cause)

    def settle(self, root: Entry, mode: object, cause: str) -> None:
        """Compute the pending results, because of ``cause``, and begin a segment at ``root`` with the recording ``mode``."""
        last = self.last
        pending = self.detach(root, mode)
        if last is not None:
            self.held.observe(self, last.path(), cause)
        self.compute(pending, cause)

    def compute(
        self, pending: Pending, cause: str | None, loss: int | None = None, wanted: tuple[int, ...] | None = None
    ) -> list[Array] | None:
        """Compute the results of a segment, because of ``cause``, or, if this is None, once without a new program.

        If ``loss`` is the place of a result, the same program runs its backward pass, and the result is that of
        :meth:`Segment.run_backward`, None if that is not possible.
        """
        values, last, merged = pending.values, pending.last, None
        if last is not None:
            self.steps = None
            for x, array, version in pending.checks:
                changed = x._array is not array or (x._counter and x._counter[0] != version)
                if changed and values[-1].__class__ is Lazy:  # otherwise a handler has read the results
                    self.computing.remove(pending)
                    raise RuntimeError(
                        "A tensor was modified, without a function of the library or by another thread, while a "
                        "compiled function had deferred operations on it."
                    )
            before, active = recording(), active_cursor()
            try:
                set_cursor(None)
                if before is not pending.mode:
                    restore_recording(pending.mode)  # type: ignore[arg-type]
                if len(values) == last.place + 1 and (cause is not None or last.segments):
                    if loss is not None and values[loss].__class__ is Lazy:
                        segment = self.segment(values, last, cause, loss, wanted)
                        asked = None if wanted is None else [values[k] for k in wanted]
                        merged = segment.run_backward(values, asked) if segment is not None else None
                    if merged is None:
                        segment = self.segment(values, last, cause)
                        if segment is not None:
                            segment.run(values)
                else:
                    for x in values:
                        if x.__class__ is Lazy:
                            fill(x, x._creation_meta.compute(values))
            finally:
                if recording() is not before:
                    restore_recording(before)
                set_cursor(active)
            if pending in self.computing:
                self.computing.remove(pending)
        return merged

    @staticmethod
    def segment(
        values: list[Tensor],
        last: Entry,
        cause: str | None,
        loss: int | None = None,
        wanted: tuple[int, ...] | None = None,
    ) -> Segment | None:
        """Return the program for the path to ``last`` and the results that are still referred to; None without any.

        The program includes the backward pass from the result at the place ``loss`` to the inputs at the places ``wanted``.
        """
        picked = last.picked
        if picked is None:
            places = [each.place for each in last.path()]
            picked = last.picked = picker(places)
        counts = tuple(map(getrefcount, picked(values)))
        known = counts if loss is None else (*counts, loss, wanted)
        if known in last.segments:
            return last.segments[known]
        places = [each.place for each in last.path()]
        live = tuple([k for k, count in zip(places, counts) if count > UNREACHED or not EXACT or k == loss])  # noqa: B905
        key = None, loss, wanted, live
        if key not in last.segments:
            made = Segment(last, live, values, cause or "another call follows", loss, wanted) if live else None
            last.segments[key] = made
        if len(last.segments) < MAX_SEGMENTS:
            last.segments[known] = last.segments[key]
        return last.segments[key]

    # -- Calls

    def called(self, function: Function, args: Args, kwargs: Kwargs) -> Intercepted:
        """Handle a call of the public function ``function``: defer it, or run it, and return the result.

        The result is ``GO_ON`` if the function must compute the result itself.
        """
        if (
            self.expected.known
            and self.expected.called is function
            and (found := self.continued(args, kwargs)) is not None
        ):
            return found
        kind = kind_of(function)
        if kind is METADATA or kind is COMPOSITION or self.thread != get_ident():
            return GO_ON
        if recording() is not self.mode:
            if self.mode is not GO_ON:
                self.end("the grad mode changes")
            if not self.begin():
                if kind is OTHER:
                    self.complete("a signal handler calls a function")
                return GO_ON
        if kind is CLEARS_GRAD:
            if not kwargs and clears_grad(function, args):
                return self.plainly(function, args, kwargs)
            return self.broken_by(function, args, kwargs, False)
        if kind is OTHER:
            return self.broken_by(function, args, kwargs, False)
        if kind is BACKWARD:
            if self.merged(args[0], None, (*args[1:], *kwargs.values()), "backward") is not None:
                return None
            kind = READS
        if kind is GRAD:
            found = self.gradients(*args, **kwargs)
            if found is not None:
                return found
            kind = READS
        given = (*args, *kwargs.values())
        if kind is INDEXING or (kind is PURE_OF_ONE and has_further_tensors(given)):
            if is_mask_index(function, given):
                kind = READS
            elif (kind is INDEXING or function.__name__ == "__getitem__") and has_valid_indices(function, args, kwargs):
                kind = PURE
        elif kind is PURE_OF_ONE or (kind is CLASS_LOSS and has_valid_classes(args)):
            kind = PURE
        if kind is PURE and kwargs.get("out") is None:
            if self.last is None:
                if len(self.values) != self.parent().place + 1:
                    self.run("an interrupt")
                found = self.matched(function, args, kwargs, given)
                if found is not None:
                    return found
            return self.record(function, args, kwargs, given)
        if kind is FACTORY and not any(isinstance(each, Tensor) for each in given):
            return self.plainly(function, args, kwargs)
        return self.broken_by(function, args, kwargs, kind is READS, NOT_KNOWN.get(kind, UNKNOWN))

    def continued(self, args: Args, kwargs: Kwargs) -> PyTree:
        """Return the result of the expected function, a lazy tensor if it is deferred; None if another call is expected."""
        entry, stamp, values = self.expected, self.stamp, self.values
        if (
            self.last is not None
            or recording() is not self.mode
            or self.thread != get_ident()
            or len(args) != entry.positional
            or len(values) + len(entry.inputs) != entry.place
            or tuple(kwargs) != entry.names
        ):
            return None
        self.expected = NOTHING  # so that a call in between arrives at the cursor, and changes the stamp
        if entry.match is None:
            entry.hits += 1
            if entry.hits > MATCHED:
                entry.match = fresh_matcher(entry)
            fresh = fresh_inputs(entry, (*args, *kwargs.values()), values)
        else:
            fresh = entry.match(values, (*args, *kwargs.values()) if kwargs else args)
        if fresh is None:
            return None
        if entry.brief:
            if self.stamp == stamp:
                self.expected = entry
            return self.plainly(entry.called, args, kwargs)
        checks = [(x, x._array, x._counter[0] if x._counter else 0) for x in fresh]
        result, last = defer(entry, fresh)
        if self.stamp != stamp:  # Note [Re-entrancy]
            return None
        self.checks += checks
        values += fresh
        self.expected = last.next
        self.stamp += 1
        return result

    def gradients(
        self, outputs: PyTree, inputs: PyTree, *options: object, **named: object
    ) -> tuple[Tensor, ...] | None:
        """Return the result of ``autograd.grad`` with these arguments if one program computes it, otherwise None."""
        names = "grad_outputs", "retain_graph", "create_graph", "only_inputs"
        named |= dict(zip(names, options, strict=False))
        if named.pop("only_inputs", True) is not True:
            return None
        outs = outputs if outputs.__class__ in SEQUENCES else (outputs,)
        wanted = inputs if inputs.__class__ in SEQUENCES else (inputs,)
        if len(outs) != 1 or not wanted or not all(each.__class__ in INPUTS for each in wanted):
            return None
        found = self.merged(outs[0], wanted, (*named.values(), *options[4:]), "grad")
        return None if found is None else tuple(map(wrap, found))

    def merged(
        self, loss: PyTree, wanted: Sequence[Tensor] | None, options: Sequence[object], name: str
    ) -> list[Array] | None:
        """Compute the pending results and the backward pass from the one that is ``loss`` by one program.

        ``wanted`` and the result are those of :meth:`Segment.run_backward`. ``options`` are the other arguments of the
        function ``name``. If the result is None, the function must run, but results may have been computed.
        """
        values = self.values
        if (
            loss.__class__ is not Lazy
            or self.held.fullgraph
            or self.last is not None
            or self.mode is not True
            or self.computing
            or not all(each is None or each is False for each in options)
            or AccumulateGrad.hooked
            or engine.observers
            or anomaly_mode.setting.enabled
        ):
            return None
        entry = loss._creation_meta
        if not (entry.graded and entry.size == 1 and entry.dtype in (F32, F64)):
            return None
        last = self.parent()
        if len(values) != last.place + 1 or entry.place > last.place or values[entry.place] is not loss:
            return None
        places = None
        if wanted is not None:
            places = tuple([next((k for k, x in enumerate(values) if x is each), -1) for each in wanted])
            if min(places) < 0:
                return None
        pending = self.detach(self.held.root((self.mode, in_inference(), dtypes.default.floating)), self.mode)
        found = self.compute(pending, f"{name}() is called", entry.place, places)
        if found is not None:
            self.held.eager.pop(name, None)
        return found

    def watched(self, function: Function, args: Args, kwargs: Kwargs, watcher: Watcher) -> PyTree:
        """Return the result of the function, which runs in eager mode; ``watcher`` notes whether it reads elements."""
        set_cursor(watcher)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            user_frame.mark_final(error)
            raise
        finally:
            set_cursor(self)

    def plainly(self, function: Function, args: Args, kwargs: Kwargs) -> PyTree:
        """Return the result of the function, which runs in eager mode."""
        set_cursor(None)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            user_frame.mark_final(error)  # the generated function that has called the cursor raises it as it is
            raise
        finally:
            set_cursor(self)

    def broken_by(self, function: Function, args: Args, kwargs: Kwargs, reads: bool, reason: str = UNKNOWN) -> PyTree:
        """Compute the pending results, run the function, which may not be deferred, and return its result."""
        if function in self.held.breaking and not self.values and self.last is None and not self.computing:
            return self.plainly(function, args, kwargs)
        name = name_of(function)
        if self.held.fullgraph and reads and not _is_accepted(name, args):
            raise self.broken(f"calls {name}()")
        if not reads:
            self.held.breaking.add(function)
        if getattr(function, "_retrograd_disabled", False):
            self.held.eager[name] = "it is excluded from compilation"
        else:
            self.held.eager[name] = "it needs elements" if reads else reason
        self.run(f"{name}() is called")
        return self.plainly(function, args, kwargs)

    def broken(self, cause: str) -> errors.Unsupported:
        """Return the error for ``fullgraph=True``."""
        place = user_frame.describe(*user_frame.user_location())
        return errors.Unsupported(
            f"The function {cause}{' at ' + place if place else ''}, so it cannot be compiled as one graph. Remedy: remove "
            "this operation or fullgraph=True."
        )

    def parent(self) -> Entry:
        """Return the entry of the last deferred call, or the root if nothing is pending."""
        values = self.values
        return values[-1]._creation_meta if values and values[-1].__class__ is Lazy else self.root

    def matched(self, function: Function, args: Args, kwargs: Kwargs, given: Sequence[object]) -> PyTree:
        """Return the result if the call is that of an entry, as a lazy tensor if it is deferred; otherwise None."""
        stamp, values = self.stamp, self.values
        parent = self.parent()
        positional, names = len(args), tuple(kwargs)
        if len(values) != parent.place + 1:
            return None
        self.expected = NOTHING  # so that a call in between arrives here, and changes the stamp
        for entry in parent.children:
            if entry.called is not function or entry.positional != positional or entry.names != names:
                continue
            try:
                if (fresh := fresh_inputs(entry, given, values)) is None:
                    continue
            except Unsupported:
                continue
            if entry.brief:
                self.held.firsts[self.turn] = self.expected = entry
                return self.plainly(function, args, kwargs)
            if entry.reason is not None:
                self.run(f"{name_of(function)}() is not deferred, because {entry.reason}")
                return self.plainly(function, args, kwargs)
            if entry.same is not None:
                return values[entry.same] if entry.same < len(values) else fresh[entry.same - len(values)]
            checks = [(x, x._array, version_of(x)) for x in fresh]
            result, last = defer(entry, fresh)
            if self.stamp != stamp:  # Note [Re-entrancy]
                return None
            self.checks += checks
            parent.next = entry
            if parent.parent is None:
                self.held.firsts[self.turn] = entry
            values += fresh
            self.expected = last.next
            self.stamp += 1
            return result
        return None

    def record(self, function: Function, args: Args, kwargs: Kwargs, given: Sequence[object]) -> PyTree:
        """Run a pure call that cannot be deferred, record it as an entry, and return its result."""
        if self.last is None:
            known = any(each.called is function and each.reason for each in self.parent().children)
            if not self.learn(f"{name_of(function)}() is called" if known else None):
                return self.plainly(function, args, kwargs)
        parent, learned, stamp = self.last, self.learned, self.stamp
        if parent is None or learned is None:
            return self.plainly(function, args, kwargs)
        try:
            arguments = Arguments(learned, given)
        except Unsupported as error:
            self.run(f"{name_of(function)}() has arguments that are not supported, {error}")
            return self.plainly(function, args, kwargs)
        key = function, len(args), tuple(kwargs)
        entry, variants = parent.child(*key, arguments), list[Entry]()
        reason = None
        if entry is None:
            variants = parent.variants(*key, arguments)
            number = describe_number(function, given)
            if number is not None:
                variants = [each for each in variants if each.constants[1].__class__ is number[0]]
                varied = Arguments(learned, given)
                varied.vary(given[1], number)
                entry = parent.child(*key, varied)
                if entry is not None or len(variants) > 1:
                    arguments = varied
                else:
                    variants = []
            elif len(variants) >= MAX_VARIANTS:
                arguments.ignore(variants[0])
                reason, variants = "it has other arguments in every call", []
            else:
                variants = []
        if entry is None and self.held.full():
            self.end("the function has too many different calls or shapes")
            return self.plainly(function, args, kwargs)
        operands = [each for each in tree_leaves(given) if isinstance(each, Tensor)]
        state, versions = random_state(), versions_of(operands)
        warned, watcher = user_frame.warned(), Watcher()
        result = self.watched(function, args, kwargs, watcher)
        if self.stamp != stamp:
            return result
        if entry is None:
            entry = Entry(parent, len(learned.references) + len(arguments.fresh))
            entry.called, entry.positional, entry.names = key
            entry.places, entry.constants, entry.inputs = arguments.places, arguments.constants, arguments.inputs
            changed = state != random_state() or versions != versions_of(operands)
            entry.reason = reason
            if changed:
                entry.reason = "it has side effects"
            elif watcher.reads:
                entry.reason = "it reads elements"
            elif warned != user_frame.warned():
                entry.reason = "it warns"
            entry.finish(result, learned, arguments.fresh)
            if variants:  # a number that differs becomes an input
                parent.replace(variants, entry)
                self.held.count -= sum([each.count() for each in variants])
            parent.children.append(entry)
            if parent.next is NOTHING:
                parent.next = entry
            self.held.count += max(1, len(entry.items))
        if entry.reason is not None:
            self.run(f"{name_of(function)}() is not deferred, because {entry.reason}")
        elif entry.same is None and self.stamp == stamp:
            self.stamp += 1
            self.last = entry.items[-1] if entry.items else entry
            for x in (*arguments.fresh, *(result if entry.items else (result,))):
                learned.add(x)
        return result

    def learn(self, cause: str | None) -> bool:
        """Compute the pending results and start recording. Return False if a handler changed the cursor meanwhile."""
        learned, parent = Places(self.values), self.parent()
        pending = self.detach(self.held.root((self.mode, in_inference(), dtypes.default.floating)), self.mode)
        stamp = self.stamp
        self.compute(pending, cause)
        if self.stamp != stamp:  # Note [Re-entrancy]
            return False
        self.last = parent
        self.learned = learned
        self.stamp += 1
        return True


def defer(entry: Entry, fresh: list[Tensor]) -> tuple[PyTree, Entry]:
    """Append the lazy results of the call of ``entry`` to ``fresh``; return what the call returns, and its last entry."""
    if not entry.items:
        result = new(Lazy)
        result._creation_meta = entry
        fresh.append(result)
        return result, entry
    results = []
    for each in entry.items:
        result = new(Lazy)
        result._creation_meta = each
        results.append(result)
    fresh += results
    return results if entry.kind is list else tuple.__new__(entry.kind, results), entry.items[-1]


def _contains(values: Sequence[Tensor], x: Tensor) -> bool:
    return any(each is x for each in values)


class Watcher:
    """Cursor that defers nothing, and notes in ``reads`` whether the function that runs reads elements of tensors."""

    expected, mode, thread, blocked = NOTHING, GO_ON, 0, 0

    def __init__(self) -> None:
        self.reads = False
        self.values: list[Tensor] = []

    def called(self, function: Function, args: Args, kwargs: Kwargs) -> Intercepted:
        """Note a read of elements; the function computes its result itself."""
        self.reads = self.reads or kind_of(function) is READS
        return GO_ON

    def end(self, cause: str) -> None:
        """Do nothing, because no result is pending."""

    def block(self, cause: str, change: int) -> None:
        """Do nothing, because the function that runs leaves the modes that it enters."""

    def holds(self, x: Tensor) -> bool:
        """Return False, because no result is pending."""
        return False

    read = end  # never called


def is_mask_index(function: Function, given: Sequence[object]) -> bool:
    """Whether the call is ``x[index]`` with a mask in the index, so that the result's shape depends on elements."""
    return function.__name__ == "__getitem__" and any(
        isinstance(each, Tensor) and each.dtype in MASK_DTYPES for each in tree_leaves(given[1:])
    )


def has_further_tensors(given: Sequence[Constant]) -> bool:
    """Whether an argument after the first is a tensor, or a list or tuple that contains one, at any depth."""
    for each in given[1:]:
        if isinstance(each, Tensor) or (each.__class__ in SEQUENCES and has_further_tensors((None, *each))):
            return True
    return False


def is_intercepting() -> bool:
    """Whether modes, handlers or transforms intercept calls in this thread."""
    _, modes, handlers, _, _ = torch_function.state()
    return bool(modes or handlers or active_levels())


def name_of(function: Function) -> str:
    """Return the name of a public function; for a getter or setter, that of the attribute."""
    held = getattr(function, "__self__", None)
    if held.__class__ is property:
        return str(getattr(held.fget, "__name__", ""))
    return str(getattr(function, "__name__", function))


def versions_of(tensors: Sequence[Tensor]) -> list[int]:
    """Return the versions of ``tensors``."""
    return [*map(version_of, tensors)]


def random_state() -> tuple[object, ...]:
    """Return the state of the default generator as a tuple; it changes with each draw and each seed."""
    stream = default_generator._stream
    return id(stream._words), stream._position, stream.kept, stream.initial_seed
