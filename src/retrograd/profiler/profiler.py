"""``profile`` and ``schedule`` of ``torch.profiler``: profilers that record selected training steps of a program."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Self

from ..compat.module_names import shown_in
from ..core import devices
from ..runtime.user_frame import warn
from . import autograd_profiler as autograd_profiler
from .events import EventList, ProfilerActivity

PROFILER_STEP_NAME = "ProfilerStep"


class ProfilerAction(Enum):
    """Action of a profiler in one training step, selected by the function that :func:`schedule` returns.

    >>> import retrograd as torch
    >>> torch.profiler.schedule(wait=1, warmup=1, active=1)(2)
    <ProfilerAction.RECORD_AND_SAVE: 3>
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """Return the set of activities that can be profiled on this machine.

    >>> import retrograd as torch
    >>> torch.profiler.ProfilerActivity.CPU in torch.profiler.supported_activities()
    True
    """
    return {ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if devices.gpu_count() else [])}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a function that takes the number of a step and returns the action of the profiler in this step.

    The first ``skip_first`` steps are not recorded. Then a cycle repeats: ``wait`` steps without recording, ``warmup``
    steps that prepare the recording, and ``active`` recorded steps. ``repeat`` is the number of cycles, 0 for no limit.
    If ``skip_first_wait`` is not 0, the first cycle has no ``wait`` steps.

    >>> import retrograd as torch
    >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results")
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step += (wait if skip_first_wait else 0) - skip_first
        within = step % cycle
        if (repeat and step >= repeat * cycle) or within < wait:
            return ProfilerAction.NONE
        if within < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if within == cycle - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[Any], None]:
    """Return a function for ``on_trace_ready`` that writes each trace to a new TensorBoard file in ``dir_name``.

    The name of the file begins with ``worker_name``, by default the host name and the process number. If ``use_gzip``
    is true, the file is compressed.

    >>> import retrograd as torch
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with torch.profiler.profile(on_trace_ready=torch.profiler.tensorboard_trace_handler(folder)):
    ...     _ = torch.ones(2) + 1
    >>> [name.endswith(".pt.trace.json") for name in os.listdir(folder)]
    [True]
    """

    def write(prof: Any) -> None:
        import socket

        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(
            os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}")
        )

    return write


def _default_schedule_fn(_: int) -> ProfilerAction:
    """Return ``ProfilerAction.RECORD``: without a schedule, every step is recorded."""
    return ProfilerAction.RECORD


class _KinetoProfile:
    """Profiler that is started and stopped by method calls instead of a ``with`` statement.

    Its parameters have the same meaning as for :class:`profile`; ``schedule`` and ``on_trace_ready`` are not among
    them.
    """

    __module__ = shown_in("torch.profiler.profiler", __name__)

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = _activities(activities)
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules, self.acc_events = with_flops, with_modules, acc_events
        self.experimental_config, self.execution_trace_observer = experimental_config, execution_trace_observer
        self.custom_trace_id_callback = custom_trace_id_callback
        self.use_device = "cuda" if ProfilerActivity.CUDA in self.activities else None
        self.profiler: autograd_profiler.profile | None = None
        self.preset_metadata: dict[str, str] = {}
        self._metadata: dict[str, str] = {}

    def start(self) -> None:
        """Start recording: call :meth:`prepare_trace` and :meth:`start_trace`."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Stop recording: call :meth:`stop_trace`."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Create the state for a new trace.

        Earlier events are deleted, unless the profiler was created with ``acc_events=True``.
        """
        if self.profiler is None or not self.acc_events:
            self.profiler = autograd_profiler.profile(
                use_cpu=ProfilerActivity.CPU in self.activities, use_device=self.use_device,
                record_shapes=self.record_shapes, with_flops=self.with_flops, profile_memory=self.profile_memory,
                with_stack=self.with_stack, with_modules=self.with_modules, use_kineto=True,
                acc_events=self.acc_events, custom_trace_id_callback=self.custom_trace_id_callback,
            )  # fmt: skip
        self.profiler._prepare_trace()

    def start_trace(self) -> None:
        """Start recording, after :meth:`prepare_trace`."""
        self._recorded("starting trace")._start_trace()
        for name in ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops"):
            if getattr(self, name):
                self._metadata[name] = "1"
        self._metadata |= self.preset_metadata

    def stop_trace(self) -> None:
        """Stop recording."""
        self._recorded("stopping trace").__exit__(None, None, None)

    def _recorded(self, what: str) -> autograd_profiler.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def events(self) -> EventList:
        """Return all recorded events in the order in which they began."""
        return self._recorded("accessing events").function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return a list with one item for each event name: the sum of all events with this name.

        The parameters have the same meaning as for :meth:`EventList.key_averages`, where the first one is called
        ``group_by_input_shapes``.
        """
        return self._recorded("getting key averages").key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the events to the file ``path`` for ``chrome://tracing`` or Perfetto.

        The file is compressed if its name ends with ``.gz``.
        """
        self._recorded("exporting chrome trace").export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the call stack and a time of each event to the file ``path``, for flame-graph tools.

        ``metric`` is the name of the attribute with the time, see :meth:`EventList.supported_export_stacks_metrics`.
        Raises AssertionError unless the profiler was created with ``with_stack=True``.
        """
        self._recorded("exporting stacks").export_stacks(path, metric)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Resume recording if ``enable`` is true, otherwise pause recording.

        The call has no effect unless ``activities`` contains ``ProfilerActivity.CPU``.
        """
        if self.profiler is not None and ProfilerActivity.CPU in set(activities):
            self.profiler.toggle_collection_dynamic(enable, activities)

    def add_metadata(self, key: str, value: str) -> None:
        """Add the text ``value`` to the metadata of the trace, under the name ``key``."""
        import json

        self._metadata[key] = json.dumps(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add ``value``, a text in JSON, to the metadata of the trace, under the name ``key``."""
        self._metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Add ``value``, a text in JSON, to the metadata of all later traces, under the name ``key``."""
        self.preset_metadata[key] = value

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Set ``callback``, a function that is called for each later trace and returns the identifier of the trace."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """Return the identifier of the current trace, or None before the first trace."""
        return None if self.profiler is None else self.profiler.trace_id


def _activities(activities: Iterable[Any] | None) -> set[ProfilerActivity]:
    """Return ``activities`` as a set, or the set of all supported activities if ``activities`` is None.

    An item of ``activities`` is an activity or a dictionary whose keys are activities.
    """
    if activities is None:
        return supported_activities()
    selected: set[ProfilerActivity] = set()
    for each in activities:
        selected |= set(each) if isinstance(each, dict) else {each}
    return selected


class profile(_KinetoProfile):
    """Context manager that records operations of the current thread, in all steps or those selected by ``schedule``.

    Args:
        activities: the activities to record (:class:`ProfilerActivity`); None means all supported activities.
        schedule: a function that takes the number of a step and returns its :class:`ProfilerAction`. Each call of
            :meth:`step` begins a new step.
        on_trace_ready: a function that is called with this profiler whenever a trace is complete.
        record_shapes: if true, record the shapes of arguments.
        profile_memory: if true, record the memory that results allocate, and its release.
        with_stack: if true, record the lines of the program from which operations were called.
        with_flops: if true, compute the number of floating-point operations of matrix products, convolutions,
            elementwise sums and elementwise products.
        acc_events: if true, keep the events of all cycles of ``schedule``, not only those of the last cycle.

    >>> import retrograd as torch
    >>> from retrograd.profiler import profile, record_function
    >>> model = torch.nn.Linear(4, 2)
    >>> with profile(record_shapes=True) as prof:
    ...     with record_function("model_inference"):
    ...         y = model(torch.ones(3, 4))
    >>> for event in prof.key_averages(group_by_input_shape=True):
    ...     print(event.key, event.count, event.input_shapes)
    model_inference 1 []
    aten::ones 1 [[], [], [], [], []]
    aten::linear 1 [[3, 4], [2, 4], [2]]
    aten::t 1 [[2, 4]]
    aten::addmm 1 [[2], [3, 4], [4, 2], [], []]

    See https://docs.pytorch.org/docs/stable/profiler.html.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        selected = _activities(activities)
        if use_cuda is not None:
            warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning)
            selected = selected | {ProfilerActivity.CUDA} if use_cuda else selected - {ProfilerActivity.CUDA}
        if not selected:
            raise AssertionError("No valid profiler activities found")
        super().__init__(
            activities=selected, record_shapes=record_shapes, profile_memory=profile_memory, with_stack=with_stack,
            with_flops=with_flops, with_modules=with_modules, experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer, acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
        )  # fmt: skip
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn: autograd_profiler.record_function | None = None
        self.current_action = self._scheduled(0)

    def _scheduled(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        if action == ProfilerAction.DEVICE_STOPPED:
            raise ValueError(
                "ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be returned by a "
                "user-provided schedule"
            )
        return action

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin the first step of the schedule."""
        self._change_action(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End the last step, and complete the trace if one is being recorded."""
        self._end_step()
        self._change_action(self.current_action, None)

    def step(self) -> None:
        """End the current step and begin the next."""
        self._end_step()
        before, following = self.current_action, self._scheduled(self.step_num + 1)
        self.step_num += 1
        self.current_action = following
        self._change_action(before, following)
        self._begin_step()

    def _begin_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = autograd_profiler.record_function(f"{PROFILER_STEP_NAME}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _change_action(self, before: ProfilerAction, following: ProfilerAction | None) -> None:
        """Start or stop recording when a step with the action ``before`` ends.

        ``following`` is the action of the next step, or None after the last step.
        """
        goes_on = before == ProfilerAction.RECORD and following in _RECORDING
        if before in _RECORDING and not goes_on:
            if before == ProfilerAction.RECORD and following is not None:
                warn(f"Incorrect schedule: RECORD followed by {following.name}")
            self.stop_trace()
            if before == ProfilerAction.RECORD_AND_SAVE or following is None:
                self._trace_ready()
        if before == ProfilerAction.WARMUP and following in (ProfilerAction.NONE, None):
            if following is not None:
                warn("Incorrect schedule: WARMUP followed by NONE")
            self.start_trace()
            self.stop_trace()
        ready = before == ProfilerAction.WARMUP
        if following == ProfilerAction.WARMUP and not ready and before != ProfilerAction.RECORD:
            self.prepare_trace()
        if following in _RECORDING and not goes_on:
            if not ready:
                self.prepare_trace()
            self.start_trace()

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)


__all__ = [
    "ProfilerAction", "ProfilerActivity", "profile", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip
