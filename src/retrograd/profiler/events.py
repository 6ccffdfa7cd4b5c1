"""``FunctionEvent``, ``EventList`` and other classes of ``torch.autograd.profiler_util``: events of a profiler."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple, cast

from ..runtime.user_frame import warn
from .table import format_time, table

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"


class DeviceType(Enum):
    """Type of the device on which an event of a profiler happened."""

    CPU = 0
    CUDA = 1

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"


class ProfilerActivity(Enum):
    """Kind of activity that a profiler records, such as operations on the CPU or kernels on a GPU.

    >>> import retrograd as torch
    >>> torch.profiler.ProfilerActivity.CPU in torch.profiler.supported_activities()
    True
    """

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5

    def __str__(self) -> str:
        return f"ProfilerActivity.{self.name}"


class Interval:
    """Interval of time from ``start`` to ``end``, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Return the length of the interval in microseconds."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Kernel that an event launched on a GPU, with its duration in microseconds."""

    name: str
    device: int
    duration: float


def _with_unit(name: str) -> property:
    return property(lambda self: format_time(getattr(self, name)), doc=f"Value of ``{name}`` as text with a unit.")


def _deprecated(name: str, new: str) -> property:
    """Return a deprecated property called ``name``, which warns and returns the value of the attribute ``new``."""

    def get(self: Any) -> Any:
        warn(f"`{name}` is deprecated, please use `{new}` instead.", FutureWarning)
        return getattr(self, new)

    return property(get, doc=f"Deprecated name of ``{new}``.")


def _without_children(name: str, what: str) -> property:
    """Return a property of an event: its attribute ``name``, such as a time, minus the values of nested events.

    Only the values of the events directly inside are subtracted, because they include the events inside those. For
    asynchronous events the property is 0. ``what`` is the beginning of the property's docstring.
    """

    def get(self: Any) -> Any:
        return 0 if self.is_async else getattr(self, name) - sum(getattr(child, name) for child in self.cpu_children)

    return property(get, doc=f"{what}, without nested events.")


class FormattedTimesMixin:
    """Mixin for events of a profiler that adds average times, and properties with times as text."""

    count: int
    cpu_time_total: float
    device_time_total: float

    cpu_time_str = _with_unit("cpu_time")
    device_time_str = _with_unit("device_time")
    cpu_time_total_str = _with_unit("cpu_time_total")
    device_time_total_str = _with_unit("device_time_total")
    self_cpu_time_total_str = _with_unit("self_cpu_time_total")
    self_device_time_total_str = _with_unit("self_device_time_total")
    cuda_time = _deprecated("cuda_time", "device_time")

    @property
    def cpu_time(self) -> float:
        """Average CPU time of a call in microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Average time of a call on the GPU in microseconds."""
        return self.device_time_total / self.count if self.count else 0.0


class FunctionEvent(FormattedTimesMixin):
    """Event of a profiler: a call of an operation, a node of a backward pass, or a block named by the user.

    Times are in microseconds since the start of the profiler. ``cpu_parent`` is the enclosing event, and
    ``cpu_children`` are the events directly inside this event. An operation and the node of its derivative have the
    same ``sequence_nr``.
    """

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: Any = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: Any = None,
        kwinputs: Any = None,
        is_user_annotation: bool = False,
    ) -> None:
        self.id, self.node_id, self.name, self.overload_name, self.trace_name = (
            id,
            node_id,
            name,
            overload_name,
            trace_name,
        )
        self.time_range = Interval(start_us, end_us)
        self.thread, self.fwd_thread = thread, fwd_thread
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes, self.concrete_inputs, self.kwinputs = input_shapes, concrete_inputs, kwinputs
        self.structured_input_shapes: Any = input_shapes
        self.structured_input_strides: Any = None
        self.input_dtypes: list[str] = []
        self.stack, self.scope, self.use_device = stack, scope, use_device
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.sequence_nr = is_async, is_remote, sequence_nr
        self.device_type, self.device_index = device_type, device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_legacy, self.flops, self.is_user_annotation = is_legacy, flops, is_user_annotation
        self.self_cpu_percent = self.total_cpu_percent = self.total_device_percent = -1

    cuda_time_total = _deprecated("cuda_time_total", "device_time_total")
    self_cuda_time_total = _deprecated("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = _deprecated("self_cuda_memory_usage", "self_device_memory_usage")

    @property
    def key(self) -> str:
        """Name of the event, by which :meth:`EventList.key_averages` groups events."""
        return self.name

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Add a kernel that this event launched on the GPU with index ``device``; ``duration`` is in microseconds."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Add ``child`` to the events directly inside this event."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Set the enclosing event of this event to ``parent``."""
        self.cpu_parent = parent

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Duration on the CPU in microseconds, including nested events."""
        return self.time_range.elapsed_us()

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        """Duration on the GPU in microseconds, including nested events."""
        if self.is_async or not self.use_device:
            return 0
        inside = sum(child.device_time_total for child in self.cpu_children)
        return inside + sum(kernel.duration for kernel in self.kernels)

    self_cpu_time_total = _without_children("cpu_time_total", "Duration on the CPU in microseconds")
    self_device_time_total = _without_children("device_time_total", "Duration on the GPU in microseconds")
    self_cpu_memory_usage = _without_children("cpu_memory_usage", "Bytes allocated minus bytes released on the CPU")
    self_device_memory_usage = _without_children(
        "device_memory_usage", "Bytes allocated minus bytes released on the GPU"
    )

    def __repr__(self) -> str:
        device = self.use_device
        parts = {
            "id": self.id, "name": self.name, "overload_name": self.overload_name, "device_type": self.device_type,
            "node_id": self.node_id, "cpu_time": self.cpu_time_str, "start_us": self.time_range.start,
            "end_us": self.time_range.end, "cpu_children": [child.id for child in self.cpu_children],
            f"{device}_time": self.device_time_str, "name ": self.name, "thread": self.thread,
            "input_shapes": self.input_shapes, "cpu_memory_usage": self.cpu_memory_usage,
            f"{device}_memory_usage": self.device_memory_usage, "is_async": self.is_async, "is_remote": self.is_remote,
            "seq_nr": self.sequence_nr, "is_legacy": self.is_legacy,
        }  # fmt: skip
        return f"<FunctionEvent {' '.join(f'{key.strip()}={value}' for key, value in parts.items())}>"


#: Attributes that an average copies from its first event, and attributes that it sums.
_COPIED = ("node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name", "input_shapes", "stack",
          "scope", "device_type", "is_legacy", "use_device", "is_user_annotation")  # fmt: skip
_SUMMED = ("cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total", "cpu_memory_usage",
           "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage", "count")  # fmt: skip


class FunctionEventAvg(FormattedTimesMixin):
    """Sums of the times and bytes of ``count`` events of the same name, as :meth:`EventList.key_averages` returns."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.node_id, self.is_async, self.is_remote, self.is_legacy = 0, False, False, False
        self.use_device: str | None = None
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: list[str] | None = None
        self.scope: int | None = None
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = DeviceType.CPU
        self.is_user_annotation = False
        self.flops = 0
        for each in _SUMMED:
            setattr(self, each, 0)

    def add(self, other: Any) -> FunctionEventAvg:
        """Add the times and bytes of ``other``, an event or sum of events with the same name, and return ``self``."""
        if self.key is None:
            self.key = other.key
            for each in _COPIED:
                setattr(self, each, getattr(other, each))
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for each in _SUMMED:
            setattr(self, each, getattr(self, each) + getattr(other, each))
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        totals = cast(Any, self)
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={totals.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={totals.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={totals.cpu_memory_usage} {device}_memory_usage={totals.device_memory_usage}>"
        )


class EventList(list[Any]):
    """List of events or of sums of events, with methods that format, sum and export them.

    ``use_device`` is the type of GPU that was profiled. If ``profile_memory`` or ``with_flops`` is true, tables have
    columns for memory or for floating-point operations.
    """

    def __init__(
        self, *args: Any, use_device: str | None = None, profile_memory: bool = False, with_flops: bool = False
    ) -> None:
        super().__init__(*args)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of the CPU times of all events in microseconds, without counting nested events twice."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Return a table of the events as text.

        ``sort_by`` is the attribute of the events by which they are sorted in descending order, such as
        ``"cpu_time_total"``, ``"self_cpu_memory_usage"`` or ``"count"``. ``row_limit`` is the number of rows, -1 for
        all. ``header`` is a line of text above the table. If ``top_level_events_only`` is true, events inside other
        events are omitted. ``time_unit`` is ``"s"``, ``"ms"`` or ``"us"``; with None, each time is shown in a suitable
        unit. The ``max_*_column_width`` are in characters.
        """
        widest = max_src_column_width, max_name_column_width, max_shapes_column_width
        return table(
            self, sort_by, row_limit, widest, header, self._profile_memory, self._with_flops, top_level_events_only,
            time_unit,
        )  # fmt: skip

    def _like(self, events: Any) -> EventList:
        return EventList(
            events, use_device=self._use_device, profile_memory=self._profile_memory, with_flops=self._with_flops
        )

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return a list with one item for each event name: the sum of all events with this name.

        If ``group_by_input_shapes`` is true, events of the same name are summed only if their inputs have the same
        shapes. If ``group_by_stack_n`` is greater than 0, events are summed only if the first ``group_by_stack_n``
        lines of their call stacks are the same. If ``group_by_overload_name`` is true, the sums have the overload name
        of their first event.
        """
        groups: dict[tuple[Any, ...], FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            key = [event.key, event.node_id, event.device_type, event.is_legacy, event.is_user_annotation]
            key += [str(event.input_shapes)] if group_by_input_shapes else []
            key += (event.stack or [])[:group_by_stack_n] if group_by_stack_n > 0 else []
            groups[tuple(key)].add(event)
        for average in groups.values():
            average.stack = (average.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return self._like(groups.values())

    def total_average(self) -> FunctionEventAvg:
        """Return the sum of the times and bytes of all events, as one event named ``Total``."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None
            total.add(event)
        total.key = "Total"
        return total

    def supported_export_stacks_metrics(self) -> list[str]:
        """Return a list of the values that :meth:`export_stacks` accepts as the argument ``metric``."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write the call stack and a time of each event to the file ``path``, for flame-graph tools.

        ``metric`` is the name of the attribute with the time, see :meth:`supported_export_stacks_metrics`. The
        outermost line of a stack comes first.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        attribute = "self_cpu_time_total" if metric == "self_cpu_time_total" else "self_device_time_total"
        blanks = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(getattr(event, attribute))
                if event.stack and value > 0:
                    file.write(f"{';'.join(entry.translate(blanks) for entry in reversed(event.stack))} {value}\n")

    def export_chrome_trace(self, path: str) -> None:
        """Write the events to the file ``path`` for ``chrome://tracing``.

        The file written by :meth:`profile.export_chrome_trace` contains more details.
        """
        import json

        events = [
            {"name": event.trace_name, "ph": "X", "ts": event.time_range.start, "dur": event.time_range.elapsed_us(),
             "tid": event.thread, "pid": "CPU functions", "args": {}}
            for event in self if event.trace_name is not None
        ]  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump(events, file)


class StringTable(defaultdict[str, str]):
    """Dictionary in which the value of every missing key is the key itself, for programs that use PyTorch's class.

    In PyTorch, the values are demangled C++ names.
    """

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """List of memory records of PyTorch's profiler, sorted by their times ``record[0].start_ns()``."""

    def __init__(self, mem_records: Any) -> None:
        self._records = sorted(mem_records, key=_begins)

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[Any]:
        """Yield the records whose time is between ``start_ns`` and ``end_ns``, in nanoseconds."""
        from bisect import bisect_left, bisect_right

        first, end = bisect_left(self._records, start_ns, key=_begins), bisect_right(self._records, end_ns, key=_begins)
        yield from self._records[first:end]


_begins: Callable[[Any], Any] = lambda record: record[0].start_ns()  # noqa: E731 - a key

__all__ = [
    "DeviceType", "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel",
    "MEMORY_EVENT_NAME", "MemRecordsAcc", "OUT_OF_MEMORY_EVENT_NAME", "ProfilerActivity", "StringTable",
]  # fmt: skip
