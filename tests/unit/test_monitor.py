"""``torch.monitor``: events and statistics. Expectations are PyTorch 2.13's."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

import retrograd as torch
from retrograd import monitor
from retrograd.monitor import Aggregation, Event, Stat, log_event

NOW = datetime(2026, 1, 2)
ALL = [Aggregation.SUM, Aggregation.MEAN, Aggregation.COUNT, Aggregation.MAX, Aggregation.MIN]


@pytest.fixture
def events() -> Iterator[list[Event]]:
    found: list[Event] = []
    handle = monitor.register_event_handler(found.append)
    yield found
    monitor.unregister_event_handler(handle)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [1000.0]
    monkeypatch.setattr(monitor.time, "monotonic", lambda: time[0])
    return time


def test_events_reach_every_handler(events: list[Event]) -> None:
    more: list[Event] = []
    handle = monitor.register_event_handler(more.append)
    event = Event("epoch", NOW, {"loss": 0.5, "step": 3, "note": "good", "best": True})
    log_event(event)
    monitor.unregister_event_handler(handle)
    log_event(event)
    assert events == [event, event] and more == [event]
    assert event.data == {"loss": 0.5, "step": 3, "note": "good", "best": 1.0} and type(event.data["best"]) is float
    assert (event.name, event.timestamp) == ("epoch", NOW)


def test_window_is_logged_by_the_next_value(events: list[Event], clock: list[float]) -> None:
    stat = Stat("loss", ALL, timedelta(seconds=10))
    for value in (1, 2.0, 5.0):
        stat.add(value)
    assert stat.count == 3 and set(stat.get().values()) == {0.0} and not events
    clock[0] += 10
    assert stat.count == 3 and not events
    stat.add(9.0)
    assert stat.count == 1 and [event.name for event in events] == [monitor.STAT_EVENT]
    told = {"loss.sum": 8.0, "loss.mean": 8 / 3, "loss.count": 3.0, "loss.max": 5.0, "loss.min": 1.0}
    assert events[0].data == told
    assert stat.get() == dict(zip(ALL, told.values(), strict=True))
    del stat
    gc.collect()
    assert events[1].data["loss.sum"] == 9.0


def test_max_samples_limits_a_window(events: list[Event], clock: list[float]) -> None:
    stat = Stat("loss", [monitor.SUM], timedelta(seconds=10), 2)
    for value in (1.0, 2.0, 50.0):
        stat.add(value)
    assert stat.count == 0 and stat.get() == {Aggregation.SUM: 3.0} and len(events) == 1
    clock[0] += 10
    stat.add(4.0)
    assert stat.count == 1 and stat.get() == {Aggregation.SUM: 0.0} and len(events) == 1


def test_statistics_are_written_for_tensorboard() -> None:
    class Writer:
        def add_scalar(self, *given: Any, **named: Any) -> None:
            written.append((given, named))

    written: list[Any] = []
    handler = monitor.TensorboardEventHandler(Writer())
    handler(Event(monitor.STAT_EVENT, NOW, {"a.sum": 1.0}))
    handler(Event("other", NOW, {"b": 1.0}))
    assert written == [(("a.sum", 1.0), {"walltime": NOW.timestamp()})]


@pytest.mark.parametrize(
    "call",
    [
        lambda: Event("n", 3, {}),  # type: ignore[arg-type]
        lambda: Event("n", NOW, {"a": [1]}),  # type: ignore[dict-item]
        lambda: Stat(3, [], timedelta(seconds=1)),  # type: ignore[arg-type]
        lambda: Stat("a", [1], timedelta(seconds=1)),  # type: ignore[list-item]
    ],
)
def test_errors(call: Any) -> None:
    with pytest.raises(TypeError, match=r"^__init__\(\): incompatible constructor arguments\. The following argument"):
        call()
    with pytest.raises(TypeError, match="incompatible function arguments"):
        log_event(3)  # type: ignore[arg-type]
    assert repr(torch.monitor.Aggregation.SUM) == "<Aggregation.SUM: 4>" and int(monitor.MAX) == 5
