"""Restricted unpickler, which builds plain containers and calls only permitted functions.

A pickle is a program for a stack machine, and Python's unpickler calls any function that the program names. The
unpickler in this module executes the same instructions, but with three restrictions. Names that are not on the caller's
list raise an error. Only functions and classes from this list are called. Attributes are set only on objects that the
unpickler has created. This module does not depend on tensors or files.

Source: the opcodes as CPython's ``pickletools`` documents them.
"""

from __future__ import annotations

import pickletools
import struct
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

from .formatting import shortened


class Refused(UnpicklingError):
    """Error for a pickle that is invalid or that requires an operation that is not allowed."""


class NotAllowed(Refused):
    """Error for a name that is not on the list of permitted names, but that the user may add to the list."""


class Blocked(Refused):
    """Error for a name that is not on the list of permitted names and that the user may not add to the list."""


#: Maximum number of nested parts of a key. Python hashes nested tuples recursively on the C stack, and shared ones once
#: for each reference.
PARTS = 10_000
#: Maximum number of different keys of one container with the same hash. Each of them is compared with all others, and
#: the hash of a number does not depend on the process: multiples of 2**61 - 1 have the hash 0.
EQUAL_HASHES = 1000
#: Number of items that calls may copy, for each byte of the pickle, and in addition for each pickle. A pickle can pass
#: the same large container to any number of calls, by an instruction of two bytes.
_COPIED, _COPIED_AT_LEAST = 4, 100_000
_MODULUS = sys.hash_info.modulus  # ints of smaller magnitude have different hashes, except -1 and -2
_CODES = {ord(each.code): each for each in pickletools.opcodes}
#: Instructions that push their argument; ``pickletools`` decodes it.
_PUSHED_ARGUMENTS = {
    "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BINSTRING", "SHORT_BINSTRING", "INT", "LONG", "FLOAT", "UNICODE",
}  # fmt: skip
_PUSHED_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False, "EMPTY_LIST": list, "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple, "EMPTY_SET": set,
}  # fmt: skip


class Source:
    """Bytes of a pickle with a read position; ``pickletools`` reads from this object as from a file.

    A read returns at most the remaining bytes, even if the pickle specifies a greater length.
    """

    data: bytes
    position: int

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data, self.position = data, position

    def read(self, count: int) -> bytes:
        """Return the next ``count`` bytes, or fewer at the end of the data."""
        found = self.data[self.position : self.position + count]
        self.position += len(found)
        return found

    def readline(self) -> bytes:
        end = self.data.find(b"\n", self.position)
        return self.read((len(self.data) if end < 0 else end + 1) - self.position)


def check_attributes(state: dict[Any, Any]) -> dict[str, Any]:
    """Return ``state``, a dict of attributes by name; raise Refused if a name is not a string."""
    for name in state:
        if not isinstance(name, str):
            raise Refused(f"The name of an attribute must be a string, but got {shortened(name)}")
    return state


class Interpreter:
    """Restricted unpickler: executes the pickle in ``source`` and builds the object that the pickle describes.

    Args:
        source: Bytes of the pickle, as a :class:`Source`.
        find: Function ``find(module, name)`` that returns the permitted object with this name, or raises an error.
        persistent: Function that returns the object, usually a storage, for a persistent id, by which a pickle refers
            to it.
        classes: Classes of which the pickle may create instances and set attributes.
    """

    classes: tuple[type, ...]
    source: Source
    budget: int

    def __init__(
        self, source: Source, find: Callable[[str, str], Any], persistent: Callable[[Any], Any],
        classes: tuple[type, ...] = (),
    ) -> None:  # fmt: skip
        self.source, self.find, self.persistent, self.classes = source, find, persistent, classes
        self.stack: list[Any] = []
        self.outer: list[list[Any]] = []  # for each mark, the stack below it: an instruction cannot reach below a mark
        self.memo: dict[int, Any] = {}
        self.named: set[int] = set()  # identities of the objects that `find` returned: only these are called
        self.budget = _COPIED * (len(source.data) - source.position) + _COPIED_AT_LEAST
        self.hashes: Counter[tuple[int, int]] = Counter()  # of keys, by identity of the container and hash

    def run(self) -> Any:
        """Execute the pickle and return the object that it describes.

        Raises Refused if the pickle requires an operation that is not allowed. A damaged pickle raises Refused or one
        of the exceptions in the tuple ``BROKEN``, such as EOFError.
        """
        source: Any = self.source
        while True:
            byte = source.read(1)
            if not byte:
                raise EOFError("Ran out of input")
            code = _CODES.get(byte[0])
            argument = None if code is None or code.arg is None else code.arg.reader(source)
            name = "" if code is None else code.name
            if name == "STOP":
                return self.stack.pop()
            if name in _PUSHED_ARGUMENTS:
                self.stack.append(argument)
            elif name in _PUSHED_CONSTANTS:
                self.stack.append(_PUSHED_CONSTANTS[name]())
            else:
                step = getattr(self, f"_{name.lower()}", None)
                if step is None or not name:
                    raise Refused(f"Unsupported operand {byte[0]}")
                step(argument)

    def since_mark(self) -> list[Any]:
        """Remove the last mark from the stack with all objects above it, and return a list of these objects.

        A pickle puts a mark on the stack before the items of a container, by the instruction MARK.
        """
        found, self.stack = self.stack, self.outer.pop()
        return found

    def spend(self, count: int) -> None:
        """Record that ``count`` items are copied or visited; raise Refused if there are too many in this pickle."""
        self.budget -= count
        if self.budget < 0:
            raise Refused("The pickle copies its objects too often")

    def check_keys(self, found: Any, container: Any = None) -> Any:
        """Return ``found``, a list of keys of a dict or elements of a set; raise Refused for a key that is too large.

        A key is too large if it is a tuple or frozen set with more than :data:`PARTS` elements, including nested
        elements. To hash or compare such keys can take very long: the comparison of two equal frozen sets with 60 nested
        levels can take 2**60 steps. For the same reason, Refused is raised if more than :data:`EQUAL_HASHES` keys of
        ``container``, the dict or set of the keys, have the same hash.
        """
        for key in found:
            kind = key.__class__
            if kind is str or kind is bytes or (kind is int and -_MODULUS < key < _MODULUS):
                continue
            if kind is tuple or kind is frozenset:
                parts, count = list(key), len(key)
                while parts and count <= PARTS:
                    if (part := parts.pop()).__class__ in (tuple, frozenset):
                        parts += part
                        count += len(part)
                if count > PARTS:
                    raise Refused("A key of too many parts")
                self.spend(count)
            place = id(found if container is None else container), hash(key)
            self.hashes[place] += 1
            if self.hashes[place] > EQUAL_HASHES:
                raise Refused("Too many keys with the same hash")
        return found

    # -- the instructions

    def _proto(self, version: int) -> None:
        if version > 5:
            raise Refused(f"unsupported pickle protocol: {version}")

    def _frame(self, length: int) -> None:
        """Do nothing for the instruction FRAME of ``length`` bytes, because the whole pickle is already in memory."""

    def _mark(self, _: Any) -> None:
        self.outer.append(self.stack)
        self.stack = []

    def _binput(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    _long_binput = _put = _binput

    def _memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def _binget(self, index: int) -> None:
        self.stack.append(self.memo[index])

    _long_binget = _get = _binget

    def _pop(self, _: Any) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self.since_mark()

    def _pop_mark(self, _: Any) -> None:
        self.since_mark()

    def _dup(self, _: Any) -> None:
        self.stack.append(self.stack[-1])

    def _tuple(self, _: Any) -> None:
        items = self.since_mark()  # replaces the stack
        self.stack.append(tuple(items))

    def _tuple1(self, _: Any) -> None:
        self.stack[-1:] = [(self.stack[-1],)]

    def _tuple2(self, _: Any) -> None:
        self.stack[-2:] = [(self.stack[-2], self.stack[-1])]

    def _tuple3(self, _: Any) -> None:
        self.stack[-3:] = [(self.stack[-3], self.stack[-2], self.stack[-1])]

    def _list(self, _: Any) -> None:
        items = self.since_mark()
        self.stack.append(items)

    def _dict(self, _: Any) -> None:
        items = self.since_mark()
        self.stack.append(dict(zip(self.check_keys(items[::2]), items[1::2], strict=True)))

    def _frozenset(self, _: Any) -> None:
        items = self.check_keys(self.since_mark())
        self.stack.append(frozenset(items))

    def _append(self, _: Any) -> None:
        value = self.stack.pop()
        self._top(list).append(value)

    def _appends(self, _: Any) -> None:
        values = self.since_mark()
        self._top(list).extend(values)

    def _additems(self, _: Any) -> None:
        values = self.since_mark()
        target = self._top(set)
        target.update(self.check_keys(values, target))

    def _setitem(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        target = self._top(dict)
        target[self.check_keys([key], target)[0]] = value

    def _setitems(self, _: Any) -> None:
        items = self.since_mark()
        target = self._top(dict)
        for key, value in zip(self.check_keys(items[::2], target), items[1::2], strict=True):
            target[key] = value

    def _top(self, kind: Any) -> Any:
        target = self.stack[-1]
        if not isinstance(target, (kind, *self.classes)):
            raise Refused(f"Can not put items into a {type(target).__name__}")
        return target

    def _global(self, names: str) -> None:
        module, _, name = names.partition(" ")
        self._name(module, name)

    def _stack_global(self, _: Any) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise Refused("STACK_GLOBAL requires str")
        self._name(module, name)

    def _name(self, module: str, name: str) -> None:
        found = self.find(module, name)
        self.named.add(id(found))
        self.stack.append(found)

    def _reduce(self, _: Any) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        self._check_call(function, arguments)
        self.stack.append(function(*arguments))

    def _newobj(self, _: Any) -> None:
        arguments, cls = self.stack.pop(), self.stack.pop()
        self._check_call(cls, arguments)
        if not isinstance(cls, type):
            raise Refused(f"Can only create new object for classes, but got {shortened(cls)}")
        self.stack.append(cls.__new__(cls, *arguments) if cls in self.classes else cls(*arguments))

    def _check_call(self, function: Any, arguments: Any) -> None:
        if id(function) not in self.named or not callable(function):
            raise Refused(f"Trying to call reduce for unrecognized function {shortened(function)}")
        if not isinstance(arguments, tuple):
            raise Refused("Arguments of a call are no tuple")
        self._spend_on(arguments, 3)
        if function not in self.classes and isinstance(function, type) and issubclass(function, (set, dict, tuple)):
            for each in arguments:  # no tensor, which can have 2**60 elements in a storage of one element
                if not isinstance(each, (list, tuple, dict, set, frozenset)):
                    raise Refused(f"Can not make a {function.__name__} of a {type(each).__name__}")
        if function is set or function is Counter or function is OrderedDict:
            for each in arguments:
                # The items are the keys, or pairs of a key and a value.
                items = each if isinstance(each, (list, tuple)) else ()
                self.check_keys(items)
                self.check_keys([part for item in items if isinstance(item, (list, tuple)) for part in item])

    def _spend_on(self, value: Any, depth: int) -> None:
        """Call :meth:`spend` with the number of items of ``value``, including containers in it up to ``depth``."""
        if isinstance(value, (str, bytes, bytearray, tuple, list, dict, set, frozenset)):
            self.spend(len(value))
            if depth > 1 and isinstance(value, (tuple, list)):
                for each in value:
                    self._spend_on(each, depth - 1)

    def _build(self, _: Any) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, self.classes) and hasattr(target, "__setstate__"):
            target.__setstate__(state)
        elif type(target) in (OrderedDict, Counter, *self.classes) and isinstance(state, dict):
            self.spend(len(state))
            target.__dict__.update(check_attributes(state))
        else:
            raise Refused(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{type(target)}"
            )

    def _binpersid(self, _: Any) -> None:
        self.stack.append(self.persistent(self.stack.pop()))


#: Errors that a damaged or hostile pickle can cause in the interpreter.
BROKEN = (
    EOFError, ValueError, IndexError, KeyError, TypeError, AttributeError, struct.error, UnicodeError, OverflowError,
    RecursionError, MemoryError,
)  # fmt: skip

__all__ = ["BROKEN", "Blocked", "Interpreter", "Refused", "Source", "NotAllowed", "check_attributes"]
