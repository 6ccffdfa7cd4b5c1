"""``profile`` and ``record_function`` of ``torch.autograd.profiler``: time and memory used by operations.

``profiler/recorder.py`` records the calls of operations. This module converts the recorded calls to events.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import get_ident
from time import perf_counter_ns
from types import CodeType
from typing import Any, Self, TypeVar

from ..compat.module_names import shown_in
from ..core import devices, dtypes
from ..runtime import user_frame
from . import recorder
from .chrome_trace import write
from .event_names import arguments_of
from .events import (
    MEMORY_EVENT_NAME,
    DeviceType,
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    MemRecordsAcc,
    ProfilerActivity,
)
from .flops import flops_of

Callee = TypeVar("Callee", bound=Callable[..., Any])


class record_function:
    """Context manager or decorator that records a block, or each call of a function, as one event called ``name``.

    >>> import retrograd as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     with torch.autograd.profiler.record_function("twice"):
    ...         y = torch.ones(3) * 2
    >>> [event.name for event in prof.function_events]
    ['twice', 'aten::ones', 'aten::mul']
    """

    __module__ = shown_in("torch.autograd.profiler", __name__)

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._open: list[recorder.Call | None] = []

    def __enter__(self) -> Self:
        session = recorder.sessions.get(get_ident())
        self._open.append(None if session is None else session.begin(self.name, (), recorder.USER))
        return self

    def __exit__(self, *error: object) -> None:
        call = self._open.pop() if self._open else None
        session = recorder.sessions.get(get_ident())
        if call is not None and session is not None and call in session.open:
            session.close(call, perf_counter_ns())

    def __call__(self, function: Callee) -> Callee:
        """Return ``function`` decorated so that each of its calls is recorded as an event called ``name``."""

        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name, self.args):
                return function(*args, **kwargs)

        return within  # type: ignore[return-value]


@dataclass
class Seen:
    """Calls, memory allocations and memory releases recorded in one :class:`profile` block; times in nanoseconds."""

    start: int
    end: int
    calls: list[recorder.Call]
    changes: list[tuple[int, int, str, recorder.Call | None]]


class profile:
    """Context manager that records the time and memory used by operations of the current thread.

    Args:
        enabled: if false, nothing is recorded.
        record_shapes: if true, record the shapes of arguments, so that events can be grouped by shapes.
        with_flops: if true, compute the number of floating-point operations of matrix products, convolutions,
            elementwise sums and elementwise products.
        profile_memory: if true, record the memory that results allocate, and its release.
        with_stack: if true, record the lines of the program from which operations were called.
        use_device: ``"cuda"`` to measure the time on the GPU too.

    >>> import retrograd as torch
    >>> x = torch.ones(3, requires_grad=True)
    >>> with torch.autograd.profiler.profile() as prof:
    ...     (x * x).sum().backward()
    >>> for event in prof.key_averages():
    ...     print(event.key, event.count)
    aten::mul 1
    aten::sum 1
    aten::ones_like 1
    autograd::engine::evaluate_function: SumBackward0 1
    SumBackward0 1
    aten::expand 1
    autograd::engine::evaluate_function: MulBackward0 1
    MulBackward0 1
    autograd::engine::evaluate_function: torch::autograd::AccumulateGrad 1
    torch::autograd::AccumulateGrad 1
    """

    __module__ = shown_in("torch.autograd.profiler", __name__)

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        self.enabled = enabled
        if use_cuda:
            user_frame.warn(
                "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
                FutureWarning,
            )
            use_device = "cuda"
        if use_device not in (None, "cuda"):
            user_frame.warn(f"The {use_device} is not a valid device option.")
            use_device = None
        if use_device == "cuda" and devices.gpu_count() == 0:
            user_frame.warn("CUDA is not available, disabling CUDA profiling")
            use_device, use_cuda = None, False
        self.use_cuda, self.use_device, self.use_cpu = use_cuda, use_device, use_cpu
        self.record_shapes, self.with_flops = record_shapes or with_flops, with_flops
        self.profile_memory, self.with_stack, self.with_modules = profile_memory, with_stack, with_modules
        self.acc_events, self.custom_trace_id_callback, self.trace_id = acc_events, custom_trace_id_callback, ""
        self.profiling_start_time_ns = self.profiling_end_time_ns = 0
        self.entered = False
        self.seen: Seen | None = None  # the last block
        self._events: EventList | None = None
        self._session: Any = None

    # -- The block

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    def _prepare_trace(self) -> None:
        self.entered = True
        if self.custom_trace_id_callback is not None:
            self.trace_id = self.custom_trace_id_callback()

    def _start_trace(self) -> None:
        self.entered = True
        self._session = session = recorder.start(
            self, self.record_shapes, self.with_stack, self.profile_memory, self.use_device == "cuda"
        )
        self._from = len(session.calls), len(session.changes)
        self.profiling_start_time_ns = perf_counter_ns()

    def __exit__(self, *error: object) -> bool | None:
        if not self.enabled or self._session is None:
            return None
        self.profiling_end_time_ns = now = perf_counter_ns()
        session, self._session = self._session, None
        recorder.stop(self, session)
        calls, changes = session.calls[self._from[0] :], session.changes[self._from[1] :]
        before = self.function_events if self.acc_events and self.seen is not None else None
        self.seen, self._events = Seen(self.profiling_start_time_ns, now, calls, changes), None
        if before is not None:
            self.function_events.extend(before)
        return False

    # -- Results

    @property
    def function_events(self) -> EventList:
        """Recorded events in the order in which they began.

        Events for memory that was allocated or released while no recorded operation was running are at the end of the
        list.
        """
        if self._events is None:
            events = [] if self.seen is None else list(_events(self, self.seen))
            self._events = EventList(
                events, use_device=self.use_device, profile_memory=self.profile_memory, with_flops=self.with_flops
            )
        return self._events

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.seen is None else repr(self.function_events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.seen is None else str(self.function_events)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Return a table of all events as text; the parameters have the same meaning as for :meth:`EventList.table`."""
        return self.function_events.table(
            sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
            top_level_events_only,
        )  # fmt: skip

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return a list with one item for each event name: the sum of all events with this name.

        The parameters have the same meaning as for :meth:`EventList.key_averages`, where the first one is called
        ``group_by_input_shapes``.
        """
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """Return one event with the sum of the times and bytes of all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of the CPU times of all events in microseconds, without counting nested events twice."""
        return self.function_events.self_cpu_time_total

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the call stack and a time of each event to the file ``path``, for flame-graph tools.

        ``metric`` is the name of the attribute with the time, see :meth:`EventList.supported_export_stacks_metrics`.
        Raises AssertionError unless the profiler was created with ``with_stack=True``.
        """
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def export_chrome_trace(
        self, path: str, metadata: dict[str, str] | None = None, use_python_export: bool = False
    ) -> None:
        """Write the events to the file ``path`` for ``chrome://tracing`` or Perfetto.

        The trace shows arrows from operations to their derivatives. ``metadata`` is added to the JSON file: a
        dictionary from names to values, which are texts in JSON.
        """
        if self.seen is None:
            raise RuntimeError("Profiler must be run before exporting chrome trace")
        write(self, path, metadata or {})

    def toggle_collection_dynamic(self, enabled: bool, activities: Any) -> None:
        """Resume recording if ``enabled`` is true, otherwise pause recording; ``activities`` has no effect."""
        if self._session is not None:
            self._session.resting = not enabled


# --- From calls to events -------------------------------------------------------------------------------------------


def _events(profiler: profile, seen: Seen) -> Iterator[FunctionEvent]:
    """Yield the events for the calls recorded in ``seen``.

    A call that is still running when the profiler stops ends at that time.
    """
    event_of: dict[recorder.Call, FunctionEvent] = {}
    parents = {call.parent for call in seen.calls}
    stacks: dict[int, list[str]] = {}  # of operations, by the number of their node
    number = 0
    memory = _memory(seen) if profiler.profile_memory else {}
    for call in seen.calls:
        outer, *inner = call.name.split(">") if call.scope == recorder.FUNCTION else [call.name]
        *instants, name = outer.split("+") if call.scope == recorder.FUNCTION else [outer]
        end = call.end or seen.end
        stack = _stack(call, stacks) if profiler.with_stack else []
        parent = event_of.get(call.parent) if call.parent is not None else None
        layers = [name, *inner] if call not in parents else [name]
        for depth, each in enumerate([*instants, *layers]):
            number += 1
            until = call.start if depth < len(instants) else end
            event = _event(profiler, seen, number, each, call, until, stack)
            if depth >= len(instants):
                event.cpu_memory_usage, event.device_memory_usage = memory.get(call, (0, 0))
            if parent is not None:
                event.set_cpu_parent(parent)
                parent.append_cpu_child(event)
            if depth == len(instants):
                event_of[call] = event
            if depth >= len(instants):
                parent = event
            yield event
    if profiler.profile_memory:
        yield from _outside(profiler, seen, number)


def _event(
    profiler: profile, seen: Seen, number: int, name: str, call: recorder.Call, end: int, stack: list[str]
) -> FunctionEvent:
    backward = call.scope == recorder.BACKWARD or name.startswith(recorder.EVALUATE)
    inputs = call.inputs or ()
    if inputs and call.scope == recorder.FUNCTION:  # with the number of arguments of PyTorch's operation
        count = arguments_of(name.removeprefix("aten::"), len(inputs) - len(call.keywords), call.keywords)
        inputs = (*inputs[:count], *((None, None),) * (count - len(inputs)))
    keywords = {key: each[1] for key, each in zip(reversed(call.keywords), reversed(call.inputs or ()), strict=False)}
    shown = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
    event = FunctionEvent(
        id=number, name=shown, trace_name=name, overload_name="", thread=1, fwd_thread=int(backward),
        start_us=(call.start - seen.start) / 1000, end_us=(end - seen.start) / 1000,
        input_shapes=[_shape(each) for each in inputs], concrete_inputs=[each[1] for each in inputs if each[0] is None],
        kwinputs=keywords, stack=stack, scope=call.scope, use_device=profiler.use_device, sequence_nr=call.sequence,
        flops=flops_of(name, call) if profiler.with_flops else 0, is_user_annotation=call.scope == recorder.USER,
    )  # fmt: skip
    event.structured_input_shapes = [
        [list(one[0]) for one in each[1]] if each[0] is recorder.SEVERAL else _shape(each) for each in inputs
    ]
    event.structured_input_strides = [[] if each[0] in (None, recorder.SEVERAL) else list(each[1]) for each in inputs]
    event.input_dtypes = [_type_name(each) for each in inputs]
    if call.on_device > 0:
        event.append_kernel(name, 0, call.on_device)
    return event


def _shape(described: tuple[Any, ...]) -> list[int]:
    return [] if described[0] is None or described[0] is recorder.SEVERAL else list(described[0])


def _type_name(described: tuple[Any, ...]) -> str:
    """Return PyTorch's name for the type of an argument, such as ``float`` for a float32 tensor.

    ``described`` is the tuple that :func:`recorder.described` returned for the argument.
    """
    if described[0] is recorder.SEVERAL:
        return "TensorList"
    if described[0] is not None:
        return dtypes.scalar_name(dtypes.dtype_of(described[2])).lower().replace("long", "long int")
    return "Scalar" if described[1].__class__ in (int, float, bool) else ""


#: Prefixes of files whose frames are not the user's.
_NOT_THE_USERS = ("<frozen ", os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ""))


def _line(code: CodeType, instruction: int) -> str:
    return f"{code.co_filename}({user_frame.line_of(code, instruction)}): {code.co_name}"


def _stack(call: recorder.Call, stacks: dict[int, list[str]]) -> list[str]:
    """Return the call stack of ``call``: lines of the user's program, innermost first.

    For a forward operation, it is the stack at the time of the call. This stack is also stored in ``stacks`` under the
    number of the graph node that the operation created. For a call in a backward pass, it is the stack of the forward
    operation that created the graph node, read from ``stacks``.
    """
    around: recorder.Call | None = call
    while around is not None and around.scope != recorder.BACKWARD and not around.name.startswith(recorder.EVALUATE):
        around = around.parent
    if around is not None:
        return stacks.get(around.sequence) or ([_line(*around.place)] if around.place is not None else [])
    stack = [_line(*place) for place in call.stack if not place[0].co_filename.startswith(_NOT_THE_USERS)]
    if call.sequence >= 0:
        stacks.setdefault(call.sequence, stack)
    return stack


def _memory(seen: Seen) -> dict[recorder.Call, tuple[int, int]]:
    """Return the memory that each call in ``seen`` allocated, as a dictionary from calls to (CPU bytes, GPU bytes).

    The numbers are the bytes allocated minus those released, including nested calls.
    """
    totals: dict[recorder.Call, tuple[int, int]] = {}
    known = set(seen.calls)
    for _, count, place, inside in seen.changes:
        call = inside
        while call is not None and call in known:
            cpu, gpu = totals.get(call, (0, 0))
            totals[call] = (cpu + count, gpu) if place == "cpu" else (cpu, gpu + count)
            call = call.parent
    return totals


def _outside(profiler: profile, seen: Seen, number: int) -> Iterator[FunctionEvent]:
    """Yield an event for each allocation or release of memory in ``seen`` while no recorded call was running.

    The events are numbered from ``number + 1``.
    """
    known = set(seen.calls)
    for moment, count, place, call in seen.changes:
        if call is None or call not in known:
            number += 1
            at = (moment - seen.start) / 1000
            yield FunctionEvent(
                number, MEMORY_EVENT_NAME, 1, at, at, overload_name="", fwd_thread=0, input_shapes=[], stack=[],
                use_device=profiler.use_device, cpu_memory_usage=count if place == "cpu" else 0,
                device_memory_usage=0 if place == "cpu" else count, flops=0,
            )  # fmt: skip


def kineto_available() -> bool:
    """Return True, because the profiler has the features of PyTorch's profiler library Kineto."""
    return True


class emit_nvtx:
    """Context manager that passes names of operations to NVIDIA's profiler; entering it raises RuntimeError."""

    __module__ = shown_in("torch.autograd.profiler", __name__)

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self) -> emit_nvtx:
        if self.enabled:
            raise RuntimeError("NVIDIA's profiler is not supported")
        return self

    def __exit__(self, *error: object) -> None:
        return None


def _profiler_enabled() -> bool:
    """Whether a profiler is active in this thread."""
    return get_ident() in recorder.sessions


__all__ = [
    "DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "MemRecordsAcc", "ProfilerActivity", "kineto_available",
    "emit_nvtx", "profile", "record_function",
]  # fmt: skip
