"""Recording of calls while a profiler runs.

There are three kinds of recorded calls:

- Public functions: a handler intercepts their calls (Note [Interception] in ``dispatch/intercept.py``).
- Nodes and leaves of a backward pass: the engine (``core/engine.py``) calls methods of an observer, which record them.
  With an observer, the engine processes the leaves one by one in PyTorch's order.
- Kernels (functions on arrays) that derivative formulas call: the formulas read the kernels from attributes of a
  namespace. While a profiler runs, these attributes are replaced by functions that time the kernels.

The modules that format events (``events``, ``table``, ``chrome_trace``) are not imported here.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import get_ident
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any

import numpy

from ..core import accumulate, engine
from ..core.graph import AccumulateGrad, OutputEdge, next_number
from ..core.rule_namespace import RULE_NAMESPACES
from ..core.tensor import Tensor
from ..dispatch import intercept
from ..dispatch.intercept import GO_ON, Handler
from ..dispatch.op import TENSORS
from ..runtime import user_frame
from ..runtime.timed_functions import PROFILED
from .event_names import name_in_rules, name_of_function, with_aten_prefix

#: Scopes of calls: a function, a node of a backward pass, a block named by the user (PyTorch's numbers).
FUNCTION, BACKWARD, USER = 0, 1, 7
LEAF = "torch::autograd::AccumulateGrad"
EVALUATE = "autograd::engine::evaluate_function: "


@dataclass(slots=True, eq=False)
class Call:
    """Recorded call of a function, from which a profiler creates an event; times are in nanoseconds."""

    name: str
    parent: Call | None
    scope: int
    sequence: int  # the number of the node that the call recorded or runs; -1 for none
    youngest: int  # the number of the last node known when the call began
    inputs: tuple[Any, ...] | None  # shape, strides and dtype of the arguments, with record_shapes
    stack: tuple[tuple[CodeType, int], ...]  # the user's lines, innermost first, with with_stack
    marks: list[Any]  # GPU events at the call's begin and end, if the GPU is profiled
    keywords: tuple[str, ...] = ()  # the names of the last of ``inputs``
    place: tuple[CodeType, int] | None = None  # for a node, the line that recorded it
    on_device: float = 0  # microseconds between ``marks``, without the calls inside
    start: int = 0
    end: int = 0


class Session:
    """Recording of the calls of one thread; all profilers that run in the thread, such as nested ones, share it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.open: list[Call] = []
        self.profilers: list[Any] = []
        self.shapes = self.stack = self.memory = self.cuda = False
        self.resting = False  # recording is paused
        self.youngest = -next_number()
        #: Changes of memory: time, bytes, device, and the running call.
        self.changes: list[tuple[int, int, str, Call | None]] = []
        self.known: dict[int, Any] = {}  # weak references to arrays that own memory, by identity

    def begin(self, name: str, args: tuple[Any, ...], scope: int = FUNCTION, sequence: int = -1) -> Call:
        """Record the start of a call of the function ``name`` with the arguments ``args``; return a new :class:`Call`.

        ``scope`` is ``FUNCTION``, ``BACKWARD`` (a node of a backward pass) or ``USER`` (a block named by the user). In
        a backward pass, ``sequence`` is the number of the graph node for which the call is made; otherwise it is -1.
        """
        inputs, stack = tuple(map(described, args)) if self.shapes else None, _frames() if self.stack else ()
        marks = [_mark()] if self.cuda else []
        inside = self.inside() if self.open else None
        call = Call(name, inside, scope, sequence, self.youngest, inputs, stack, marks)
        self.calls.append(call)
        self.open.append(call)
        call.start = perf_counter_ns()
        return call

    def inside(self) -> Call | None:
        """Return the innermost running call, or None if no call is running.

        A backward pass as a whole is recorded as an unnamed call, which is skipped.
        """
        call = self.open[-1] if self.open else None
        return call if call is None or call.name else call.parent

    def close(self, call: Call, now: int) -> None:
        """Set the end of ``call``, and of all unfinished calls nested in it, to the time ``now`` in nanoseconds.

        Nested calls are unfinished if an exception was raised.
        """
        while self.open:
            last = self.open.pop()
            last.end = now
            if self.cuda:
                last.marks.append(_mark())
            if last is call:
                return

    def made(self, call: Call, result: Any) -> None:
        """Store the number of the graph node (``grad_fn``) that ``call`` created as the sequence number of ``call``.

        ``result`` is the value that the call returned. The call created the graph node of ``result`` only if the node
        is newer than all nodes that were known when the call began. Otherwise nothing is stored.
        """
        first = result[0] if result.__class__ in (tuple, list) and result else result
        node = getattr(first, "_grad_edge", None)
        if node is not None and node.__class__ is not AccumulateGrad:
            number = -(node.node if node.__class__ is OutputEdge else node).number
            if number > call.youngest:
                call.sequence = number
                self.youngest = max(self.youngest, number)

    # -- Memory

    def hold(self, call: Call | None, result: Any, args: tuple[Any, ...]) -> None:
        """Record how many bytes ``call`` allocated for the arrays in ``result``, and later their release.

        ``result`` is the value that the call returned. Memory that belongs to an argument in ``args`` was not allocated
        by the call. ``call`` is None if no call is known. The release is recorded by a callback of a weak reference to
        the array.
        """
        given = None
        for array in _arrays(result):
            owner = owner_of(array)
            if id(owner) in self.known:
                continue
            if given is None:
                given = {id(owner_of(each)) for each in _arrays(args)}
            place = "cpu" if owner.__class__ is numpy.ndarray else "cuda"
            if id(owner) not in given:
                self.changes.append((perf_counter_ns(), owner.nbytes, place, call))
            self.known[id(owner)] = weakref.ref(owner, partial(self._given_back, id(owner), owner.nbytes, place))

    def _given_back(self, key: int, nbytes: int, place: str, reference: Any) -> None:
        if self.known.pop(key, None) is not None:
            self.changes.append((perf_counter_ns(), -nbytes, place, self.inside()))


SEVERAL: Any = "several tensors"


def described(value: Any) -> tuple[Any, ...]:
    """Return a tuple that describes the argument ``value``: for a tensor, its shape, strides in elements and dtype.

    For a list of tensors, the result is the pair of the constant ``SEVERAL`` and the list of the tensors' descriptions.
    For a number, a string, a tuple or a list, the result is ``(None, value)``, and otherwise ``(None, None)``.
    """
    array = value._array if isinstance(value, Tensor) else value
    if hasattr(array, "strides") and hasattr(array, "dtype") and not isinstance(array, type):
        return array.shape, tuple(each // array.itemsize for each in array.strides), array.dtype
    if value.__class__ in (tuple, list) and value and isinstance(value[0], Tensor):
        return SEVERAL, list(map(described, value))
    return (None, value if value.__class__ in (bool, int, float, str, tuple, list) else None)


def _mark() -> Any:
    """Return a CUDA event that completes when all work launched so far on the GPU has completed."""
    import cupy

    mark = cupy.cuda.Event()
    mark.record()
    return mark


def _frames() -> tuple[tuple[CodeType, int], ...]:
    """Return a pair (code object, instruction offset) for each frame of the user's program, innermost first."""
    frame: FrameType | None = sys._getframe(2)
    found = []
    while frame is not None:
        if user_frame.MARK not in frame.f_globals:
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def _arrays(value: Any) -> Iterator[Any]:
    """Yield the arrays in ``value``, an argument or result that may be a nested structure of tuples and lists."""
    for each in value if value.__class__ in (tuple, list) else (value,):
        if isinstance(each, Tensor):
            yield each._array
        elif hasattr(each, "strides") and hasattr(each, "base") and not isinstance(each, (numpy.generic, type)):
            yield each
        elif each.__class__ in (tuple, list):
            yield from _arrays(each)


def owner_of(array: Any) -> Any:
    """Return the array that owns the memory of ``array``."""
    while array.base.__class__ is array.__class__:
        array = array.base
    return array


# --- Calls of functions ---------------------------------------------------------------------------------------------

#: The running sessions, by thread.
sessions: dict[int, Session] = {}


def _begin(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """Record the start of a call of a function with the event name ``name``, and return the :class:`Call`.

    The result is None if no profiler runs, or if the innermost running call has the same name.
    """
    session = sessions.get(get_ident())
    if session is None or session.resting or (session.open and session.open[-1].name == name):
        return None
    if not kwargs:
        return session.begin(name, args)
    call = session.begin(name, (*args, *kwargs.values()))
    call.keywords = tuple(kwargs)
    return call


def _begin_varying(name: Callable[..., str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """Record the start of a call of a public function whose event name depends on its arguments.

    The name is ``name(*args, **kwargs)``. The result is that of :func:`_begin`.
    """
    try:
        found = with_aten_prefix(name(*args, **kwargs))
    except Exception:  # wrong arguments, for which the call itself raises
        return None
    return _begin(found, args, kwargs)


def _begin_said(
    name: Callable[..., str], operation: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call | None:
    """Record the start of a call of a function that is decorated with ``profiled``, whose calls profilers show.

    The event name is ``name(*args, **kwargs)``. If ``operation`` is true, the event is shown as an operation, otherwise
    like a block of ``record_function``.

    The result is a new :class:`Call`, or None if nothing is recorded. This happens in three cases: no profiler runs;
    the event name of an operation is empty; or a block with the same name is already running.
    """
    session = sessions.get(get_ident())
    if session is None or session.resting:
        return None
    said = name(*args, **kwargs)
    if operation:
        return session.begin(said, args[1:]) if said else None
    return None if any(each.name == said for each in session.open) else session.begin(said, (), USER)


def _run(call: Call | None, args: tuple[Any, ...], function: Callable[..., Any], *rest: Any, **kwargs: Any) -> Any:
    """Return ``function(*rest, **kwargs)``, and record the end of ``call``.

    ``args`` are the arguments of ``call``; their memory is not counted as allocated by the call.
    """
    result = None
    try:
        result = function(*rest, **kwargs)
    finally:
        _end(call, result, args)
    return result


def _end(call: Call | None, result: Any, args: tuple[Any, ...]) -> None:
    now = perf_counter_ns()
    session = None if call is None else sessions.get(get_ident())
    if call is None or session is None:
        return
    session.close(call, now)
    if result is not None and call.scope != USER:
        if call.sequence < 0:
            session.made(call, result)
        if session.memory:
            session.hold(call, result, args)


class _Recording(Handler):
    """Handler of calls of public functions, which records each call in the :class:`Session` of its thread."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}  # results of _begin_of for the functions that were called

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.known.clear()

    def wanted(self, function: Any) -> Any:
        """Return a function that records the start of a call of ``function``, or None if profilers do not show it.

        The returned function takes the positional arguments of the call as a tuple and the keyword arguments as a
        dictionary.
        """
        try:
            return self.known[function]
        except KeyError:
            found = self.known[function] = self._begin_of(function)
            return found

    def _begin_of(self, function: Any) -> Any:
        if (known := PROFILED.get(function)) is not None:
            return partial(_begin_said, *known)
        name = name_of_function(function)
        if name is None:
            return None
        return partial(_begin, name) if isinstance(name, str) else partial(_begin_varying, name)

    def around(self, known: Any, call: intercept.Call) -> Any:
        if call.rest and self in call.rest:  # profilers can be nested
            return GO_ON
        args, result = call.args, None
        record = known(args, call.kwargs)
        if record is None:
            return GO_ON
        try:  # as _run(), which takes 0.3 µs longer
            result = call.go_on()
        finally:
            _end(record, result, args)
        return result


_recording = _Recording()

# --- A backward pass ------------------------------------------------------------------------------------------------
#
# The event of an edge ends when the next edge begins or the pass ends: until then its gradients are accumulated.


class _BackwardObserver:
    """Recorder of the nodes and leaves of one backward pass, whose methods the engine calls while a profiler runs."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.sweep = session.begin("", ())
        session.calls.pop()

    def end(self) -> None:
        """End the recorded call of the backward pass, and all unfinished calls inside."""
        _end(self.sweep, None, ())

    def visit(
        self,
        edge: Any,
        grad: Any,
        edges: Any,
        keep: bool,
        record: bool,
        several: Any,
        heap: Any,
        wanted: Any,
        inner: Any,
    ) -> Any:
        """Return the result of ``engine._visit``, which processes the graph node ``edge``, and record an event for it.

        The other parameters are those of ``engine._visit``. No event is recorded if ``edge`` is only one of several
        outputs of a node.
        """
        if edge.__class__ is not OutputEdge:
            self._evaluate(edge.name(), -edge.number, _line(edge))
        return engine._visit(edge, grad, edges, keep, record, several, heap, wanted, inner, self.apply)

    def apply(self, node: Any, grad: Any, *rest: Any) -> Any:
        """Return the gradients that ``engine._apply`` computes for ``node``, and record the call as an event."""
        grads = tuple(grad) if grad.__class__ in (tuple, list) else (grad,)
        call = self.session.begin(node.name(), grads, BACKWARD, -node.number)
        call.place = _line(node)
        return _run(call, (node, grad, *rest), engine._apply, node, grad, *rest)

    def leaf(self, leaf: Any, grad: Any, owned: bool, record: bool, wanted: Any, write: bool) -> None:
        """Accumulate the gradient ``grad`` of ``leaf`` by ``accumulate.visit_leaf``, and record the call as an event.

        ``accumulate.visit_leaf`` has the same parameters. If memory for the attribute ``grad`` of the leaf is
        allocated, the allocation is recorded too.
        """
        session, variable = self.session, leaf.variable_ref()
        self._evaluate(LEAF, -1, None)
        if session.memory and variable is not None:
            session.hold(None, variable._grad, (variable._grad,))  # memory that is not new
        call = session.begin(LEAF, (grad,), BACKWARD) if write else None
        _run(call, (), accumulate.visit_leaf, leaf, grad, owned, record, wanted, write)
        if call is not None and session.memory and variable is not None:
            session.hold(call, variable._grad, (grad,))

    def _evaluate(self, name: str, sequence: int, place: Any) -> None:
        """End the event of the previous node or leaf of a backward pass, and begin the event of the next.

        ``name`` is the name of the node or leaf, and ``sequence`` the number of the node (-1 for a leaf). ``place`` is
        the location of the user's call that recorded the node, as :func:`_line` returns it.
        """
        session = self.session
        if session.open and session.open[-1].name.startswith(EVALUATE):
            session.close(session.open[-1], perf_counter_ns())
        session.begin(EVALUATE + name, (), sequence=sequence).place = place


def _line(place: Any) -> tuple[CodeType, int] | None:
    """Return the location of the user's call that created the graph node ``place``, or None if it is unknown.

    The location is a pair: a code object, and the offset of an instruction in it.
    """
    code = getattr(place, "code", None)
    return None if code is None else (code, place.instruction)


def _observer(roots: Sequence[Any]) -> _BackwardObserver | None:
    """Return the observer of a backward pass that begins in this thread, or None if no profiler runs in it."""
    session = sessions.get(get_ident())
    return None if session is None else _BackwardObserver(session)


# --- Kernels --------------------------------------------------------------------------------------------------------


class _Kernels:
    """Replacement of the kernels that derivative formulas call by timed kernels, while any profiler runs."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.running = 0
        self.replaced: list[tuple[dict[str, Any], str, Any]] = []

    def start(self) -> None:
        """Count one more running profiler; if it is the first, replace the kernels by timed kernels."""
        with self.lock:
            self.running += 1
            if self.running > 1:
                return
            try:
                for level in {id(each): each for each in RULE_NAMESPACES.values() if each is not TENSORS}.values():
                    for key, kernel in list(level.__dict__.items()):
                        self.replaced.append((level.__dict__, key, kernel))
                        level.__dict__[key] = _timed_kernel(kernel, name_in_rules(key))
                engine.observers.append(_observer)
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """Count one running profiler less; if none is left, restore the original kernels."""
        with self.lock:
            self.running -= 1
            if self.running:
                return
            if _observer in engine.observers:
                engine.observers.remove(_observer)
            while self.replaced:
                names, key, kernel = self.replaced[-1]
                names[key] = kernel
                self.replaced.pop()


def _timed_kernel(kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        return _run(_begin(name, args, kwargs), args, kernel, *args, **kwargs)

    return timed


_kernels = _Kernels()


def start(profiler: Any, shapes: bool, stack: bool, memory: bool, cuda: bool) -> Session:
    """Start recording the calls of this thread for ``profiler``, and return the session to pass to :func:`stop`.

    ``shapes``, ``stack``, ``memory`` and ``cuda`` select what is recorded: the shapes of arguments, the user's lines,
    allocations and releases of memory, and times on the GPU.
    """
    _kernels.start()
    _recording.__enter__()
    session = sessions.get(get_ident()) or Session()
    session.profilers.append(profiler)
    session.shapes, session.stack = session.shapes or shapes, session.stack or stack
    session.memory, session.cuda = session.memory or memory, session.cuda or cuda
    sessions[get_ident()] = session
    return session


def stop(profiler: Any, session: Session) -> None:
    """Stop recording for ``profiler``.

    If no other profiler uses ``session``, calls that are still running end now.
    """
    session.profilers.remove(profiler)
    if session.cuda:
        _measure(session.calls)
    if not session.profilers:
        if session.open:
            session.close(session.open[0], perf_counter_ns())
        session.known.clear()
        for thread, each in list(sessions.items()):
            if each is session:
                del sessions[thread]
    _recording.__exit__()
    _kernels.stop()


def _measure(calls: list[Call]) -> None:
    """Set ``on_device`` of each of ``calls`` to its time on the GPU in microseconds, without nested calls.

    The time is measured by CUDA events that were recorded at the start and end of the call.
    """
    import cupy

    cupy.cuda.Device().synchronize()
    for call in reversed(calls):  # inner calls first, whose time is subtracted from the outer ones
        if len(call.marks) == 2:
            spent = 1000 * cupy.cuda.get_elapsed_time(*call.marks)
            call.on_device += spent
            call.marks = []
            if call.parent is not None:
                call.parent.on_device -= spent
