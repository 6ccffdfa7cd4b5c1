"""``Future``, ``collect_all`` and ``wait_all``: results that are set later, as ``torch.futures``."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class Future(Generic[Value]):
    """Result of a computation, a value or an error, that is set later in this thread or in another one.

    >>> later = Future()
    >>> twice = later.then(lambda done: 2 * done.value())
    >>> later.set_result(21)
    >>> twice.wait()
    42
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._complete = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._value: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Whether a value or an error is set."""
        return self._complete.is_set()

    def wait(self) -> Value:
        """Wait until a value or an error is set; return the value or raise the error."""
        self._complete.wait()
        return self.value()

    def value(self) -> Value:
        """Return the value. Raises the error if one is set, and RuntimeError if neither is set."""
        if not self.done():
            raise RuntimeError("the future is not complete: there is no value yet")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: Value) -> None:
        """Set the value to ``result`` and call the callbacks. Raises RuntimeError if a value or an error is set
        already.
        """
        self._settle(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set the error ``result``, which :meth:`wait` and :meth:`value` raise, and call the callbacks."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._settle(None, result)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                    "completed once."
                )
            self._value, self._error = value, error
            self._complete.set()
            callbacks, self._callbacks = self._callbacks, []
        for each in callbacks:
            each()

    def _when_done(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback()

    def then(self, callback: Callable[[Future[Value]], Any]) -> Future[Any]:
        """Return a new future for the result of ``callback(self)``, which is called when this future is complete."""
        made: Future[Any] = Future()

        def go_on() -> None:
            try:
                made.set_result(callback(self))
            except Exception as error:
                made.set_exception(error)

        self._when_done(go_on)
        return made

    def add_done_callback(self, callback: Callable[[Future[Value]], None]) -> None:
        """Call ``callback(self)`` when this future is complete, or at once if it is complete already.

        Errors that ``callback`` raises are printed.
        """

        def call() -> None:
            try:
                callback(self)
            except Exception as error:
                text = f"Got the following error when running the callback: {type(error).__name__}: {error}"
                print(text, file=sys.stderr)

        self._when_done(call)


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a future whose value is the list ``futures``, and which is complete when all ``futures`` are complete.

    If one of them has an error, the returned future has this error.
    """
    made: Future[list[Future[Any]]] = Future()
    left, lock = [len(futures)], threading.Lock()

    def one_less() -> None:
        with lock:
            left[0] -= 1
            if left[0]:
                return
        error = next((each._error for each in futures if each._error is not None), None)
        made._settle(None if error else list(futures), error)

    for each in futures:
        each._when_done(one_less)
    if not futures:
        made.set_result([])
    return made


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """Wait for all ``futures`` and return the list of their values. Raises the first error."""
    return [each.wait() for each in collect_all(futures).wait()]


__all__ = ["Future", "collect_all", "wait_all"]
