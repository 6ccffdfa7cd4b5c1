"""Raise KeyboardInterrupt at the start of every function that some work calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy

import retrograd as torch


def interrupt_at_every_call(work: Callable[[], Any]) -> Iterator[int]:
    """Repeat ``work``, interrupted at the start of its first function call, its second, … until it completes.

    Yields the number of the call after each interruption, once grad mode and NumPy's error settings are found restored.
    """

    def interrupting(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    work()
    warned = numpy.geterr()
    for begin in range(1, 1000):
        left = begin
        sys.settrace(interrupting)
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert torch.is_grad_enabled() and numpy.geterr() == warned, begin
        yield begin
        if left > 0:
            return
    raise AssertionError("1000 functions were begun")
