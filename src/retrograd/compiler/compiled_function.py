"""Compiled functions: their calls run the program's Python, with a cursor that defers operations (``cursor.py``)."""

from __future__ import annotations

import functools
import weakref
from collections import Counter
from collections.abc import Sequence
from threading import get_ident
from typing import TYPE_CHECKING

from ..core import dtypes
from ..core.deferral import active_cursor, set_cursor
from ..core.grad_mode import in_inference, recording
from ..core.tensor import Tensor
from ..core.torch_function import HANDLERS, listen, unlisten
from ..dispatch.transform_tensor import active_levels
from ..kernels.thresholds import LARGE
from ..nn import Module
from ..runtime import user_frame
from .cursor import INTERCEPTED, MAX_ENTRIES, Cursor, is_intercepting
from .entries import Entry, Unsupported, describe, fits
from .replay import RecordedCalls, Replay

if TYPE_CHECKING:
    from ..core.typing import Function, PyTree
    from .segments import Segment

#: Fewest steps of a segment that is worth deferring: if its tensors have less than 1,000 elements, less than ``LARGE``,
#: and more. Break-even was measured at 7 to 10 steps on 10 elements, and at 4 to 5 on 1,000.
FEWEST_STEPS = [10, 4, 2]
#: Largest number of roots of a compiled function: combinations of modes and shapes of its arguments.
MAX_ROOTS = 64


def compiled_form(function: Function, fullgraph: bool, pure: bool = False) -> Function:
    """Return the compiled form of ``function``, which defers the operations of each call.

    If ``fullgraph`` is true, a call that reads elements raises an error. If ``pure`` is true, a call that was one segment
    is replayed without running the function. The attribute ``_compiled`` of the returned function is its
    :class:`Compiled` object.
    """
    held, recorded = Compiled(function, fullgraph), RecordedCalls(function)

    def compiled(*args: object, **kwargs: object) -> PyTree:
        outer = active_cursor()
        if outer is not None and outer.thread == get_ident():
            return function(*args, **kwargs)  # within another compiled function, which defers its operations
        if recorded.programs and (found := recorded.run(args, kwargs)):
            return found[0]
        inputs = [each for each in args if isinstance(each, Tensor)]
        if kwargs:
            inputs += [each for each in kwargs.values() if isinstance(each, Tensor)]
        root = held.beginning(inputs)
        if root is None or root.small:
            return function(*args, **kwargs)
        if pure:
            for each in root.replays:
                if each.matches(args, kwargs):
                    return each.run(inputs)
        cursor = Cursor(held, root, inputs)
        del inputs  # which also has the results of the first segment
        try:
            listen(cursor)
            set_cursor(cursor)
            result = function(*args, **kwargs)
            if pure and cursor.root is root and cursor.steps == ():
                root.replays += Replay.of(cursor, args, kwargs, result)
            cursor.finish("the call returns")
            if cursor.steps and not any(map(is_worthwhile, cursor.steps)):
                root.small = True
            if pure and not root.replays:
                recorded.record(args, kwargs)
            return result
        except BaseException:
            cursor.finish("an exception is raised")
            raise
        finally:
            try:
                leave(cursor, outer)
            except BaseException:  # an interrupt
                leave(cursor, outer)
                raise

    functools.update_wrapper(compiled, function)
    vars(compiled).update(_compiled=held, _torchdynamo_orig_callable=function)
    return compiled


def leave(cursor: Cursor, outer: Cursor | None) -> None:
    """End the call of ``cursor``; this can be repeated. ``outer`` is the cursor before the call."""
    set_cursor(outer)
    cursor.close()
    unlisten(cursor)


class Compiled:
    """State of a compiled function: the trees of its entries, by mode, and what is known of its segments.

    ``count`` is the number of entries, ``recent`` the root of the last call, and ``firsts`` has the entries with which the
    segments of the last call began, by their number. ``ends`` are the reasons why segments ended, with the line, in calls
    that were recorded. ``eager`` has the names of functions that ran in eager mode, with the reasons, and descriptions of
    calls that did, with empty strings. ``breaking`` are the functions among them that end a segment in every call.
    """

    def __init__(self, function: Function, fullgraph: bool) -> None:
        self.function, self.fullgraph = function, fullgraph
        self.forget()
        _every.add(self)

    def forget(self) -> None:
        """Delete the entries and programs of this function."""
        self.roots: dict[tuple[object, ...], Entry] = {}
        self.recent: Entry | None = None
        self.firsts: dict[int, Entry] = {}
        self.breaking: set[Function] = set()
        self.count = 0
        self.ends: Counter[str] = Counter()
        self.eager: dict[str, str] = {}

    def full(self) -> bool:
        """Whether the function has so many entries that it runs in eager mode."""
        return self.count >= MAX_ENTRIES

    def beginning(self, inputs: list[Tensor]) -> Entry | None:
        """Return the root of the first segment of a call with the tensors ``inputs`` among its arguments.

        The result is None if no operation may be deferred in the present modes. ``inputs`` becomes empty if one of them
        cannot be an input of a segment.
        """
        mode = recording()
        if self.count >= MAX_ENTRIES:
            return None
        if active_levels() or (mode is not True and mode is not False and mode is not None):
            self.eager[INTERCEPTED] = ""
            return None
        if HANDLERS and is_intercepting():
            self.eager[INTERCEPTED] = ""
            return None
        modes, recent = (mode, in_inference(), dtypes.default.floating), self.recent
        if (
            recent is not None
            and recent.constants == modes
            and len(recent.inputs) == len(inputs)
            and all(map(fits, inputs, recent.inputs))
        ):
            return recent
        try:
            key = *modes, *map(describe, inputs)
        except Unsupported:
            inputs.clear()
            key = modes
        root = self.roots.get(key)
        if root is None:
            if len(self.roots) >= MAX_ROOTS:
                self.eager["calls with other shapes or modes than the first ones"] = ""
                return None
            root = self.root(key, len(inputs))
        root.constants, root.inputs = modes, list(key[3:])  # type: ignore[arg-type]
        self.recent = root
        return root

    def root(self, key: tuple[object, ...], count: int = 0) -> Entry:
        """Return the root for ``key``: the modes and settings, and descriptions of ``count`` tensors."""
        root = self.roots.get(key)
        if root is None:
            root = self.roots[key] = Entry(None, count - 1)
        return root

    def entries(self) -> list[Entry]:
        """Return all entries."""
        found = list(self.roots.values())
        for each in found:
            found += each.children
        return found[len(self.roots) :]

    def segments(self) -> list[Segment]:
        """Return the compiled segments."""
        found = [each for entry in self.entries() for each in entry.segments.values() if each is not None]
        return list(dict.fromkeys(found))

    def observe(self, cursor: Cursor, path: Sequence[Entry], cause: str) -> None:
        """Note the end of a segment that was recorded: its entries, and why it ended."""
        place = user_frame.describe(*user_frame.user_location())
        if cause != "the call returns":
            self.ends[f"{cause}{' in ' + place if place else ''}"] += 1
        steps = sum(each.called is not None for each in path), max((each.size for each in path), default=0)
        if path and path[0].brief is None:
            path[0].brief = not is_worthwhile(steps)
            if path[0].brief:
                path[0].function = None
        if cursor.steps is not None:
            cursor.steps += (steps,)


def is_worthwhile(steps: tuple[int, int]) -> bool:
    """Whether a segment is worth deferring, by its number of steps and the number of elements of its largest result."""
    count, size = steps
    return count >= FEWEST_STEPS[(size >= 1000) + (size >= LARGE)]


def is_compiling() -> bool:
    """Whether a compiled function is running in this thread, so that operations may be deferred."""
    return active_cursor() is not None


def exclude(function: Function) -> Function:
    """Return ``function``, a function or a module, marked to run without compilation.

    If a compiled function calls it, the pending operations are computed, and none is deferred while it runs.
    """
    if isinstance(function, Module):
        function._retrograd_disabled = True
        return function

    def plainly(*args: object, **kwargs: object) -> PyTree:
        cursor = active_cursor()
        if cursor is None:
            return function(*args, **kwargs)
        return cursor.broken_by(plainly, args, kwargs, True)

    functools.update_wrapper(plainly, function)
    vars(plainly)["_retrograd_disabled"] = True
    return plainly


#: All live compiled functions.
_every: weakref.WeakSet[Compiled] = weakref.WeakSet()


def forget_all() -> None:
    """Delete the entries and programs of all compiled functions."""
    for each in list(_every):
        each.forget()
