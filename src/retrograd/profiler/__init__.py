"""``torch.profiler``: profilers that record the time and memory used by the operations of a program."""

from __future__ import annotations

from . import profiler
from .autograd_profiler import kineto_available, record_function  # noqa: F401 - PyTorch has the first here, but in no list
from .profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "ProfilerAction", "ProfilerActivity", "profile", "profiler", "record_function", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip
