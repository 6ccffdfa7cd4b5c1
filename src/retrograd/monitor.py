"""``torch.monitor``: events that a program logs, and statistics of values in time windows."""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

Value = int | float | str
#: Name of the events that a :class:`Stat` logs.
STAT_EVENT = "torch.monitor.Stat"


class Event:
    """Event with a ``name``, a ``timestamp``, and ``data``, a dictionary from names to numbers or strings.

    >>> from datetime import datetime
    >>> from retrograd import monitor
    >>> event = monitor.Event("loss", datetime(2026, 1, 1), {"value": 0.5})
    >>> event.name, event.data
    ('loss', {'value': 0.5})
    """

    def __init__(self, name: str, timestamp: datetime, data: Mapping[str, Value]) -> None:
        if not isinstance(name, str) or not isinstance(timestamp, datetime) or not isinstance(data, Mapping):
            raise _argument_error(
                "Event", "(name: str, timestamp: datetime.datetime, data: Mapping[str, int | float | str])"
            )
        if not all(isinstance(key, str) and isinstance(value, Value) for key, value in data.items()):
            raise _argument_error("Event", "whose data are numbers and texts by their names")
        self.name, self.timestamp = name, timestamp
        self.data: dict[str, Value] = {
            key: float(value) if isinstance(value, bool) else value for key, value in data.items()
        }


def _argument_error(name: str, arguments: str) -> TypeError:
    supported = "The following argument types are supported:"
    return TypeError(
        f"__init__(): incompatible constructor arguments. {supported}\n    1. torch.monitor.{name}{arguments}"
    )


class EventHandlerHandle:
    """Handle of a registered event handler, which :func:`unregister_event_handler` accepts.

    >>> from datetime import datetime
    >>> from retrograd import monitor
    >>> handle = monitor.register_event_handler(print)
    >>> isinstance(handle, monitor.EventHandlerHandle)
    True
    >>> monitor.unregister_event_handler(handle)
    """

    def __init__(self, callback: Callable[[Event], None]) -> None:
        self._callback = callback


_handles: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Register ``callback``, which is called with every event that is logged later; return its handle.

    >>> from datetime import datetime
    >>> handle = register_event_handler(lambda event: print(event.name, event.data))
    >>> log_event(Event("epoch", datetime.now(), {"loss": 0.5}))
    epoch {'loss': 0.5}
    >>> unregister_event_handler(handle)
    """
    if not callable(callback):
        raise TypeError(f"register_event_handler(): incompatible function arguments: {callback!r} can not be called")
    handle = EventHandlerHandle(callback)
    _handles.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Remove the event handler with the handle ``handler``, if it is registered.

    >>> from datetime import datetime
    >>> from retrograd import monitor
    >>> handle = monitor.register_event_handler(lambda event: print(event.name))
    >>> monitor.log_event(monitor.Event("first", datetime.now(), {}))
    first
    >>> monitor.unregister_event_handler(handle)
    >>> monitor.log_event(monitor.Event("second", datetime.now(), {}))
    """
    if not isinstance(handler, EventHandlerHandle):
        raise TypeError(f"unregister_event_handler(): incompatible function arguments: {handler!r} is no handle")
    if handler in _handles:
        _handles.remove(handler)


def log_event(event: Event) -> None:
    """Call all registered event handlers with ``event``.

    >>> from datetime import datetime
    >>> from retrograd import monitor
    >>> handle = monitor.register_event_handler(lambda event: print(event.name, event.data))
    >>> monitor.log_event(monitor.Event("epoch", datetime.now(), {"loss": 0.5}))
    epoch {'loss': 0.5}
    >>> monitor.unregister_event_handler(handle)
    """
    if not isinstance(event, Event):
        raise TypeError(f"log_event(): incompatible function arguments: {event!r} is no torch.monitor.Event")
    for handle in list(_handles):
        handle._callback(event)


class Aggregation(enum.Enum):
    """Statistics that :class:`Stat` can compute from the values in a time window; ``VALUE`` is the last value.

    >>> from retrograd import monitor
    >>> [each.name for each in monitor.Aggregation]
    ['VALUE', 'MEAN', 'COUNT', 'SUM', 'MAX', 'MIN']
    """

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6

    def __int__(self) -> int:
        return self.value


#: Functions of the values in a window, of which there is at least one.
_FUNCTIONS: dict[Aggregation, Callable[[Sequence[float]], float]] = {
    Aggregation.VALUE: lambda found: found[-1],
    Aggregation.MEAN: lambda found: sum(found) / len(found),
    Aggregation.COUNT: lambda found: float(len(found)),
    Aggregation.SUM: sum,
    Aggregation.MAX: max,
    Aggregation.MIN: min,
}


class Stat:
    """Collector of values, which computes their statistics in consecutive time windows of length ``window_size``.

    For each window, an event with the statistics in ``aggregations`` is passed to :func:`log_event`. This happens when
    the first value after the end of the window is added, or when the object is deleted. If ``max_samples`` values are
    added before the end of the window, the event is logged immediately, and further values in the window are ignored.

    >>> stat = Stat("loss", [Aggregation.MEAN, Aggregation.COUNT], timedelta(minutes=1), max_samples=2)
    >>> stat.add(1.0)
    >>> stat.add(2.0)
    >>> stat.get()
    {<Aggregation.MEAN: 2>: 1.5, <Aggregation.COUNT: 3>: 2.0}
    """

    def __init__(
        self, name: str, aggregations: Sequence[Aggregation], window_size: timedelta, max_samples: int = 2**63 - 1
    ) -> None:
        self._numbers: list[float] = []
        if not isinstance(name, str) or not isinstance(window_size, timedelta):
            raise _argument_error(
                "Stat", "(name: str, aggregations: Sequence[Aggregation], window_size: datetime.timedelta)"
            )
        if not all(isinstance(each, Aggregation) for each in aggregations):
            raise _argument_error("Stat", " of a sequence of torch.monitor.Aggregation")
        self._name, self._ways, self._most = name, list(aggregations), max_samples
        self._size, self._window, self._full = (
            window_size.total_seconds(),
            self._now(window_size.total_seconds()),
            False,
        )
        self._before = dict.fromkeys(self._ways, 0.0)
        self._lock = threading.Lock()

    @staticmethod
    def _now(size: float) -> float:
        return time.monotonic() // size if size else time.monotonic()

    @property
    def name(self) -> str:
        """Name of this object, which is the prefix of the names of its statistics in events."""
        return self._name

    @property
    def count(self) -> int:
        """Number of values in the current window."""
        return len(self._numbers)

    def add(self, v: float) -> None:
        """Add the value ``v`` to the current window; log the event of the previous window if the window has ended."""
        with self._lock:
            now, event = self._now(self._size), None
            if now != self._window:
                event = self._closed()
                self._window, self._full = now, False
            if not self._full:
                self._numbers.append(float(v))
                if len(self._numbers) >= self._most:
                    event, self._full = self._closed(), True
        if event is not None:
            log_event(event)

    def get(self) -> dict[Aggregation, float]:
        """Return the statistics of the last complete window, as a dictionary with :class:`Aggregation` keys."""
        return self._before.copy()

    def _closed(self) -> Event | None:
        """Compute the statistics of the current window and start a new window.

        Return the event with the statistics, or None if the window has no values.
        """
        numbers, self._numbers = self._numbers, []
        self._before = {way: _FUNCTIONS[way](numbers) if numbers else 0.0 for way in self._ways}
        if not numbers:
            return None
        told = {f"{self._name}.{way.name.lower()}": value for way, value in self._before.items()}
        return Event(STAT_EVENT, datetime.now(), told)

    def __del__(self) -> None:
        if self._numbers:
            event = self._closed()
            if event is not None:
                log_event(event)


class TensorboardEventHandler:
    """Event handler that writes the statistics of :class:`Stat` as scalars to ``writer``, a ``SummaryWriter``.

    >>> from datetime import datetime
    >>> from retrograd import monitor
    >>> class Writer:
    ...     def add_scalar(self, name, value, **options):
    ...         print(name, value)
    >>> handle = monitor.register_event_handler(monitor.TensorboardEventHandler(Writer()))
    >>> data = {"loss.mean": 0.5}
    >>> monitor.log_event(monitor.Event("torch.monitor.Stat", datetime.now(), data))
    loss.mean 0.5
    >>> monitor.unregister_event_handler(handle)
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation
__all__ = [
    "COUNT", "MAX", "MEAN", "MIN", "STAT_EVENT", "SUM", "VALUE", "Aggregation", "Event", "EventHandlerHandle", "Stat",
    "TensorboardEventHandler", "log_event", "register_event_handler", "unregister_event_handler",
]  # fmt: skip
