"""Recording of calls while a profiler runs: functions are patched with code that times them.

Note [Exchanged code]
A program without a profiler must not take any extra time, not even for a test whether a profiler runs. Therefore the
first profiler to start replaces the code objects (``function.__code__``) of all public operations, of the functions
that run a backward pass, and of the functions decorated with ``profiled`` (``runtime/timed_functions.py``). Every
reference to such a function, under any name, then runs the new code, which calls a copy of the function with the old
code. The kernels that gradient rules call on arrays are entries of a rule namespace, so these entries are replaced
instead. The last profiler to stop restores everything. The old code is also restored while another module changes the
code of functions (Note [Looking for overrides] in ``dispatch/torch_function_overrides.py``). While a profiler runs, the
engine processes leaves one by one in PyTorch's order, as it does for leaves with hooks.

The modules that format events (``events``, ``table``, ``chrome_trace``) are not imported here.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from threading import get_ident
from time import perf_counter_ns
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy

from ..core import accumulate, engine
from ..core.graph import AccumulateGrad, OutputEdge, next_number
from ..core.rule_namespace import RULE_NAMESPACES
from ..core.tensor import Tensor
from ..core.torch_function import installer
from ..dispatch.codegen import TIMED as TIMED_CODE
from ..dispatch.codegen import UNWRITTEN, compile_source
from ..dispatch.op import TENSORS
from ..runtime import user_frame
from ..runtime.timed_functions import PROFILED
from .event_names import name_in_rules, names_of_functions, with_aten_prefix

#: Scopes of calls: a function, a node of a backward pass, a block named by the user (PyTorch's numbers).
FUNCTION, BACKWARD, USER = 0, 1, 7
LEAF = "torch::autograd::AccumulateGrad"
EVALUATE = "autograd::engine::evaluate_function: "


class Call:
    """Recorded call of a function, from which a profiler creates an event; times are in nanoseconds."""

    __slots__ = (
        "end", "inputs", "keywords", "marks", "name", "on_device", "parent", "place", "scope", "sequence", "stack", "start",
        "youngest",
    )  # fmt: skip

    name: str
    parent: Call | None
    start: int
    end: int
    scope: int
    sequence: int  # the number of the node that the call recorded or runs; -1 for none
    youngest: int  # the number of the last node known when the call began
    inputs: tuple[Any, ...] | None  # shape, strides and dtype of the arguments, with record_shapes
    keywords: tuple[str, ...]  # the names of the last of them
    stack: tuple[tuple[CodeType, int], ...]  # the user's lines, innermost first, with with_stack
    place: tuple[CodeType, int] | None  # for a node, the line that recorded it
    marks: list[Any]  # GPU events at the call's begin and end, if the GPU is profiled
    on_device: float  # microseconds between these, without the calls inside


class Session:
    """Recorded calls of one thread, shared by nested profilers."""

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

        ``scope`` is ``FUNCTION``, ``BACKWARD`` or ``USER``. ``sequence`` is the number of the graph node that the call
        runs, or -1.
        """
        call = Call()
        call.name, call.scope, call.sequence, call.youngest = name, scope, sequence, self.youngest
        call.parent, call.place, call.on_device, call.keywords = self.inside(), None, 0, ()
        call.inputs = tuple(map(described, args)) if self.shapes else None
        call.stack = _frames() if self.stack else ()
        self.calls.append(call)
        self.open.append(call)
        call.end = 0
        if self.cuda:
            call.marks = [_mark()]
        call.start = perf_counter_ns()
        return call

    def inside(self) -> Call | None:
        """Return the innermost running call, or None; the unnamed call of a backward pass is skipped."""
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
        """Set the sequence number of ``call`` to that of the graph node of ``result``, if ``call`` recorded this node.

        The condition holds if the node is newer than all nodes that were known when the call began.
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
        """Record the allocation of new memory by the arrays in ``result``, and later the release of this memory.

        Memory that belongs to an argument in ``args`` is not new. ``call`` is the call that returned ``result``, or
        None. Weak references report the release.
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

    For a list of tensors, the tuple is ``SEVERAL`` and the list of their descriptions. For any other argument, it is
    None and ``value``, which is replaced by None unless it is a number, a string, a tuple or a list.
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


# --- Callbacks of patched functions ---------------------------------------------------------------------------------

#: The running sessions, by thread.
sessions: dict[int, Session] = {}


def _begin(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """Record the start of a call of a public function with the event name ``name``, and return the :class:`Call`.

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
    if get_ident() not in sessions:
        return None
    try:
        found = with_aten_prefix(name(*args, **kwargs))
    except Exception:  # wrong arguments, for which the call itself raises
        return None
    return _begin(found, args, kwargs)


def _begin_said(
    name: Callable[..., str], operation: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call | None:
    """Record the start of a call of a function that is decorated with ``profiled``, and return the :class:`Call`.

    The event name is ``name(*args, **kwargs)``. If ``operation`` is true, the event is that of an operation, or there
    is no event if the name is empty. Otherwise the event is like a block named by the user.
    """
    session = sessions.get(get_ident())
    if session is None or session.resting:
        return None
    said = name(*args, **kwargs)
    if operation:
        return session.begin(said, args[1:]) if said else None
    return None if any(each.name == said for each in session.open) else session.begin(said, (), USER)


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


# --- A backward pass ------------------------------------------------------------------------------------------------
#
# The event of an edge ends when the next edge begins or the pass ends: until then its gradients are accumulated.


def _begin_sweep(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """Record the start of a backward pass as a :class:`Call` without a name.

    When the backward pass ends, the calls inside it end too.
    """
    session = sessions.get(get_ident())
    if session is None:
        return None
    sweep = session.begin("", ())
    session.calls.pop()
    return sweep


def _evaluate(session: Session, name: str, sequence: int, place: Any) -> None:
    """End the event of the previous gradient edge of a backward pass, and begin the event of the next.

    ``name`` is the name of the node or leaf, ``sequence`` the number of the node, and ``place`` the user's line that
    recorded the node.
    """
    if session.open and session.open[-1].name.startswith(EVALUATE):
        session.close(session.open[-1], perf_counter_ns())
    session.begin(EVALUATE + name, (), sequence=sequence).place = place


def _begin_place(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Record that the backward pass reaches the node ``args[0]``; called before ``engine._visit``."""
    place, session = args[0], sessions.get(get_ident())
    if session is not None and place.__class__ is not OutputEdge:
        _evaluate(session, place.name(), -place.number, _line(place))


def _begin_node(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """Record that the backward pass calls the node ``args[0]``; called before ``engine._apply``."""
    place, session = args[0], sessions.get(get_ident())
    if session is None:
        return None
    grads = tuple(args[1]) if args[1].__class__ in (tuple, list) else (args[1],)
    call = session.begin(place.name(), grads, BACKWARD, -place.number)
    call.place = _line(place)
    return call


def _line(place: Any) -> tuple[CodeType, int] | None:
    """Return the code object and instruction offset of the user's line that recorded the node ``place``, or None."""
    code = getattr(place, "code", None)
    return None if code is None else (code, place.instruction)


def _begin_leaf(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """Record that a gradient is added to the ``grad`` of a leaf; called before ``accumulate.visit_leaf``."""
    session = sessions.get(get_ident())
    if session is None:
        return None
    _evaluate(session, LEAF, -1, None)
    write, variable = args[5], args[0].variable_ref()
    if session.memory and variable is not None:
        session.hold(None, variable._grad, (variable._grad,))  # memory that is not new
    return session.begin(LEAF, (args[1],), BACKWARD) if write else None


def _end_leaf(call: Call | None, result: Any, args: tuple[Any, ...]) -> None:
    """Record the end of ``accumulate.visit_leaf``, and the memory of the leaf's ``grad`` if the memory is new."""
    _end(call, None, args)
    session, variable = sessions.get(get_ident()), args[0].variable_ref()
    if call is not None and session is not None and session.memory and variable is not None:
        session.hold(call, variable._grad, args)


def _begin_plan(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0]


def _end_plan(plan: Any, result: Any, args: tuple[Any, ...]) -> None:
    """Change ``plan``, the plan of a backward pass, so that the engine calls the timed ``_visit`` for every edge."""
    if get_ident() in sessions and hasattr(plan, "inner"):
        plan.inner[None] = False


#: While a profiler runs, the engine visits leaves one after the other, as if one of them had a hook.
_LEAVES: Any = AccumulateGrad
_FOR_NOW = "while a profiler runs"

# --- Patching -------------------------------------------------------------------------------------------------------


class _State:
    """Callbacks of a patched function, which are stored as a constant in the function's new code.

    ``begin`` and ``end`` are called before and after ``run``, a copy of the function with its original code. ``brief``
    shortens the traceback of an exception.
    """

    __slots__ = ("begin", "brief", "end", "run")

    def __init__(
        self, begin: Callable[..., Any], end: Callable[..., Any], brief: Any = user_frame.strip_frames
    ) -> None:
        self.begin, self.end, self.brief = begin, end, brief
        self.run: Callable[..., Any]


_LINES = [
    "def timed(*args, **kwargs):",
    "    call = 'STATE'.begin(args, kwargs)",
    "    try: result = 'STATE'.run(*args, **kwargs)",
    "    except Exception as _error:",
    "        'STATE'.end(call, None, args)",
    "        _error = 'STATE'.brief(_error)",
    *("        " + each for each in user_frame.RERAISE),
    "    except BaseException:",
    "        'STATE'.end(call, None, args)",
    "        raise",
    "    'STATE'.end(call, result, args)",
    "    return result",
]


def _code(free: int) -> CodeType:
    """Return a code object for patched functions with ``free`` free variables; the code times each call."""
    names = [f"free{i}" for i in range(free)]
    inner = [*_LINES[:1], *([f"    if 0: {', '.join(names)}"] if names else []), *_LINES[1:]]
    lines = [f"def outer({', '.join(names)}):", *("    " + each for each in inner), "    return timed"]
    made: FunctionType = compile_source(TIMED_CODE, lines, {}, "outer")(*names)
    return made.__code__


_codes: dict[int, CodeType] = {}


def _timing(function: FunctionType, state: _State) -> CodeType:
    """Return the new code object of ``function``, which calls and times ``state.run``, a copy of ``function``."""
    free = len(function.__code__.co_freevars)
    if free not in _codes:
        _codes[free] = _code(free)
    code = _codes[free]
    constants = tuple(state if each == "STATE" else each for each in code.co_consts)
    return code.replace(co_consts=constants, co_name=function.__code__.co_name, co_qualname=function.__qualname__)


def _copy(function: FunctionType) -> FunctionType:
    """Return a copy of ``function``, which is not affected when the code of ``function`` is replaced."""
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


class _Exchange:
    """State of the patching: the functions whose code objects are replaced while at least one profiler runs."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.running = 0
        self.states: dict[FunctionType, tuple[_State, CodeType, CodeType]] = {}  # with both codes
        self.exchanged: dict[FunctionType, CodeType] = {}  # with the code to restore
        self.kernels: list[tuple[dict[str, Any], str, Any]] = []
        self.watch: Any = None  # the hooks of ``torch_function.installer`` before the first profiler

    def start(self) -> None:
        """Increment the number of running profilers; for the first profiler, replace the code of functions."""
        with self.lock:
            self.running += 1
            if self.running > 1:
                return
            self.watch = installer.look, installer.loaded, installer.rest
            try:
                self._exchange()
                installer.look, installer.rest = (
                    partial(self._changing, installer.look),
                    partial(self._changing, installer.rest),
                )
                installer.loaded = partial(self._loading, installer.loaded)
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """Decrement the number of running profilers; after the last profiler, restore the code of functions."""
        with self.lock:
            self.running -= 1
            if not self.running:
                installer.look, installer.loaded, installer.rest = self.watch
                self._put_back()

    def _changing(self, change: Callable[[], None]) -> None:
        """Restore the original code of all functions, call ``change``, and replace the code again.

        ``change`` modifies code of functions for another purpose, ``__torch_function__`` overrides.
        """
        with self.lock:
            self._put_back()
            try:
                change()
            finally:
                self._exchange()

    def _loading(self, loaded: Callable[[], None]) -> None:
        """Call ``loaded``, which completes the import of a module, and then replace the code of new functions."""
        with self.lock:
            loaded()
            if self.exchanged:
                self._functions()

    def _functions(self) -> None:
        """Replace the code of all public and ``profiled`` functions, except where it is replaced already."""
        for each, name in names_of_functions().items():
            if each not in self.exchanged:
                self._function(each, partial(_begin, name) if isinstance(name, str) else partial(_begin_varying, name))
        for function, (said, operation) in list(PROFILED.items()):
            if function not in self.exchanged:
                self._function(function, partial(_begin_said, said, operation))

    def _exchange(self) -> None:
        self._functions()
        function: Any
        for function, begin, end in (
            (engine.run_backward, _begin_sweep, _end), (engine._visit, _begin_place, _end), (engine._apply, _begin_node, _end),
            (accumulate.visit_leaf, _begin_leaf, _end_leaf), (engine.Plan.__init__, _begin_plan, _end_plan),
        ):  # fmt: skip
            self._function(function, begin, end, brief=lambda error: None)
        for level in {id(each): each for each in RULE_NAMESPACES.values() if each is not TENSORS}.values():
            for key, kernel in list(level.__dict__.items()):
                self.kernels.append((level.__dict__, key, kernel))
                level.__dict__[key] = _timed_kernel(kernel, name_in_rules(key))
        if not _LEAVES.hooked:
            _LEAVES.hooked = _FOR_NOW

    def _put_back(self) -> None:
        for function, code in list(self.exchanged.items()):
            function.__code__ = code
            del self.exchanged[function]
        while self.kernels:
            names, key, kernel = self.kernels[-1]
            names[key] = kernel
            self.kernels.pop()
        if _LEAVES.hooked is _FOR_NOW:  # otherwise a leaf got a hook meanwhile
            _LEAVES.hooked = False

    def _function(self, function: Any, begin: Any, end: Any = _end, brief: Any = user_frame.strip_frames) -> None:
        known = self.states.get(function)
        if known is None or known[2] is not function.__code__:
            state = _State(begin, end, brief)
            if function.__code__.co_filename == UNWRITTEN:
                state.begin = partial(self._write, function, state, begin)
            state.run = _copy(function)
            known = state, _timing(function, state), function.__code__
            self.states[function] = known
        self.exchanged[function] = function.__code__
        function.__code__ = known[1]

    def _write(self, function: Any, state: _State, begin: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Generate the code of ``function``, which is generated lazily, and return ``begin(args, kwargs)``.

        ``state.run`` becomes a copy of the function with the generated code.
        """
        with self.lock:
            if state.begin is not begin:
                timing = function.__code__
                function.__globals__["write"](function)
                state.begin, state.run = begin, _copy(function)
                self.states[function] = state, timing, function.__code__
                if function in self.exchanged:
                    self.exchanged[function] = function.__code__
                    function.__code__ = timing
        return begin(args, kwargs)


def _timed_kernel(kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        call = _begin(name, args, kwargs)
        result = None
        try:
            result = kernel(*args, **kwargs)
        finally:
            _end(call, result, args)
        return result

    return timed


_exchange = _Exchange()


def start(profiler: Any, shapes: bool, stack: bool, memory: bool, cuda: bool) -> Session:
    """Start recording the calls of this thread for ``profiler``, and return the session to pass to :func:`stop`.

    ``shapes``, ``stack``, ``memory`` and ``cuda`` select what is recorded: the shapes of arguments, the user's lines,
    changes of memory, and times on the GPU.
    """
    _exchange.start()
    session = sessions.get(get_ident()) or Session()
    session.profilers.append(profiler)
    session.shapes, session.stack = session.shapes or shapes, session.stack or stack
    session.memory, session.cuda = session.memory or memory, session.cuda or cuda
    sessions[get_ident()] = session
    return session


def stop(profiler: Any, session: Session) -> None:
    """Stop recording for ``profiler``; if no other profiler uses ``session``, unfinished calls end now."""
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
    _exchange.stop()


def _measure(calls: list[Call]) -> None:
    """Set ``on_device`` of each of ``calls`` to its time on the GPU in microseconds, without nested calls.

    The time is measured by CUDA events that were recorded at the start and end of the call.
    """
    import cupy

    cupy.cuda.Device().synchronize()
    for call in reversed(calls):  # inner calls first, whose time is subtracted from the outer ones
        if len(marks := getattr(call, "marks", ())) == 2:
            spent = 1000 * cupy.cuda.get_elapsed_time(*marks)
            call.on_device += spent
            call.marks = []
            if call.parent is not None:
                call.parent.on_device -= spent
