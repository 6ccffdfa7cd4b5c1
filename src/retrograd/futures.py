"""``Future``, ``collect_all`` and ``wait_all`` of ``torch.futures``: results that are set later."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class Future(Generic[Value]):
    """Result of a computation, a value or an error, which is set later in this thread or in another thread.

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
        """Whether a value or an error has been set."""
        return self._complete.is_set()

    def wait(self) -> Value:
        """Wait until a value or an error is set; return the value or raise the error."""
        self._complete.wait()
        return self.value()

    def value(self) -> Value:
        """Return the value of this completed future.

        Raises the error if an error was set, and RuntimeError if the future is not complete.
        """
        if not self.done():
            raise RuntimeError("the future is not complete: there is no value yet")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: Value) -> None:
        """Complete this future with the value ``result`` and call the callbacks.

        Raises RuntimeError if a value or an error has been set already.
        """
        self._settle(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Complete this future with the error ``result`` and call the callbacks.

        :meth:`wait` and :meth:`value` raise ``result``. Raises RuntimeError if a value or an error has been set
        already.
        """
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
        """Call ``callback(self)`` when this future is complete, and return a new future for its result.

        If ``callback`` raises an exception, the new future has this error.
        """
        made: Future[Any] = Future()

        def go_on() -> None:
            try:
                made.set_result(callback(self))
            except Exception as error:
                made.set_exception(error)

        self._when_done(go_on)
        return made

    def add_done_callback(self, callback: Callable[[Future[Value]], None]) -> None:
        """Call ``callback(self)`` when this future is complete, or immediately if it is complete already.

        Errors that ``callback`` raises are printed to standard error.
        """

        def call() -> None:
            try:
                callback(self)
            except Exception as error:
                text = f"Got the following error when running the callback: {type(error).__name__}: {error}"
                print(text, file=sys.stderr)

        self._when_done(call)


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a future with the value ``futures``, as a list, which completes when all ``futures`` are complete.

    If some of ``futures`` have errors, the returned future has the first of these errors, in the order of the list.
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
    """Wait until all ``futures`` are complete, and return the list of their values.

    If some of ``futures`` have errors, the first error in the order of the list is raised.
    """
    return [each.wait() for each in collect_all(futures).wait()]


__all__ = ["Future", "collect_all", "wait_all"]
