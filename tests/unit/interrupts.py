"""Interrupts (Ctrl-C) at the beginning of every function that a piece of work begins."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy

import retrograd as torch


def everywhere(work: Callable[[], Any]) -> Iterator[int]:
    """Do ``work`` again and again, interrupted where its first function begins, its second, … until it is done.

    Yields after each how many it was, having seen that recording and NumPy's settings are as they were.
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
