"""Guards: generated functions that test whether ``torch.compile`` can replay a recorded call for a new call.

A recorded call can be replayed if the new arguments have the recorded shapes, dtypes, strides and Python values, and if
the other objects that the compiled function reads are unchanged: its global and closure variables, and the attributes
of modules that their ``forward`` reads. The generated function takes 1 to 2 µs.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING

from ..core.dtypes import dtype
from ..core.size import Size
from ..core.tensor import Tensor
from ..nn import Module
from ..optim import Optimizer
from ..runtime.codegen import compile_source
from ..runtime.user_frame import MARK

if TYPE_CHECKING:
    from ..core.typing import Function
    from ..optim.optimizer import Optimizer
    from .typing import Guarded

SIMPLE = (int, bool, str, type(None), bytes, dtype, complex)
#: Maximum depth to which objects are inspected, and maximum number of elements of a container.
MAX_DEPTH, MAX_ITEMS = 6, 64


class Guards:
    """Builder of a guard function, which tests whether a recorded call of a compiled function may be replayed.

    Each string in ``lines`` is a source line of the guard function, which tests one condition or assigns a local
    variable.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.space: dict[str, object] = {"Tensor": Tensor, "__name__": None}
        self.tensors: dict[int, str] = {}  # names of the guarded tensors in the source text, by identity
        self.seen: dict[object, object] = {}
        self.kept: list[object] = []
        self.optimizers: list[Optimizer] = []
        self.unfit: str | None = None  # reason why the call can not be guarded

    def constant(self, thing: object) -> str:
        """Make the object ``thing`` available to the guard function, and return its name in the source text."""
        name = f"k{len(self.space)}"
        self.space[name] = thing
        return name

    def demand(self, condition: str) -> None:
        """Add a condition to the guard function; ``condition`` is the source of an expression that must be true."""
        self.lines.append(f"if not ({condition}): return False")

    # -- Arguments

    def argument(self, path: str, value: Guarded, depth: int = 0) -> None:
        """Add the conditions under which an argument of a later call matches ``value``, the recorded call's argument.

        The guard function reads the argument by the expression ``path``. ``depth`` is the number of enclosing tuples,
        lists and dictionaries.
        """
        kind = value.__class__
        if isinstance(value, Tensor):
            self.tensor_argument(path, value)
        elif kind in (tuple, list, Size) and len(value) <= MAX_ITEMS and depth < MAX_DEPTH:
            self.demand(f"{path}.__class__ is {self.constant(kind)} and len({path}) == {len(value)}")
            for index, each in enumerate(value):
                self.argument(f"{path}[{index}]", each, depth + 1)
        elif (
            kind is dict
            and len(value) <= MAX_ITEMS
            and depth < MAX_DEPTH
            and all(each.__class__ is str for each in value)
        ):
            self.demand(f"{path}.__class__ is dict and [*{path}] == {[*value]!r}")
            for key, each in value.items():
                self.argument(f"{path}[{key!r}]", each, depth + 1)
        elif not self.simple(path, value):
            self.demand(f"{path} is {self.constant(value)}")
            self.thing(value, depth)

    def tensor_argument(self, path: str, x: Tensor) -> None:
        name = self.tensors.get(id(x))
        if name is not None:
            self.demand(f"{path} is {name}")
            return
        name = f"t{len(self.tensors)}"
        self.lines.append(f"{name} = {path}")
        self.demand(f"{name}.__class__ is {self.constant(x.__class__)}")
        for other in self.tensors.values():
            self.demand(f"{name} is not {other}")
        self.tensors[id(x)] = name
        self.kept.append(x)
        array = f"a{name}"
        self.lines.append(f"{array} = {name}._array")
        self.demand(
            f"{array}.shape == {x._array.shape} and {array}.dtype is {self.constant(x._array.dtype)} and "
            f"{array}.strides == {x._array.strides} and {array}.__class__ is {self.constant(x._array.__class__)}"
        )
        self.demand(_grad_condition(name, x))

    def simple(self, path: str, value: Guarded) -> bool:
        """If ``value`` is a plain Python value, add the condition that the expression ``path`` equals ``value``.

        Return whether ``value`` is a plain Python value, such as a number, string or None.
        """
        kind = value.__class__
        if value is None or kind is bool:
            self.demand(f"{path} is {value}")
        elif kind is float:
            self.demand(f"{path}.__class__ is float and repr({path}) == {repr(value)!r}" if value == 0 or value != value else
                        f"{path}.__class__ is float and {path} == {self.constant(value)}")  # fmt: skip
        elif kind is int or kind is str:
            self.demand(f"{path}.__class__ is {kind.__name__} and {path} == {value!r}")
        elif isinstance(value, (SIMPLE, type, slice)):
            self.demand(f"{path} == {self.constant(value)}")
        else:
            return False
        return True

    # -- Captured values

    def held(self, path: str, value: Guarded, depth: int) -> None:
        """Add the conditions that the expression ``path`` still has the value ``value``, with unchanged contents.

        ``value`` is the value of a variable or an attribute, or an item of a container. If it is a tensor, its elements
        may change. ``depth`` is the number of references that lead from the compiled function to ``value``.
        """
        if isinstance(value, Tensor):
            self.captured(path, value)
        elif not self.simple(path, value):
            name = self.constant(value)
            self.demand(f"{path} is {name}")
            self.thing(value, depth)

    def captured(self, path: str, x: Tensor) -> None:
        """Add the condition that the value of the expression ``path`` is still the tensor ``x``, with the same array.

        The elements of the array may change.
        """
        if id(x) in self.tensors:
            self.demand(f"{path} is {self.tensors[id(x)]}")
            return
        name = self.tensors[id(x)] = self.constant(x)
        self.demand(f"{path} is {name} and {name}._array is {self.constant(x._array)} and {_grad_condition(name, x)}")

    def thing(self, value: Guarded, depth: int = 0) -> None:
        """Add the conditions that the contents of ``value`` are unchanged: its items, attributes or closure variables.

        Other conditions test that ``value`` is still the same object. ``depth`` is the number of references that lead
        from the compiled function to ``value``; beyond ``MAX_DEPTH``, no conditions are added.
        """
        if id(value) in self.seen or depth > MAX_DEPTH:
            return
        self.seen[id(value)] = value
        kind = value.__class__
        if kind is FunctionType:
            self.function(value, depth)
        elif kind is MethodType:
            self.thing(value.__func__, depth)
            self.thing(value.__self__, depth)
        elif isinstance(value, Module):
            self.module(value, depth)
        elif isinstance(value, Optimizer):
            self.optimizers.append(value)
        elif kind in (list, tuple):
            name = self.constant(value)
            if kind is list:
                self.demand(f"len({name}) == {len(value)}")
            for index, each in enumerate(value[:MAX_ITEMS]):
                self.held(f"{name}[{index}]", each, depth + 1)
        elif kind is dict:
            name = self.constant(value)
            self.demand(f"len({name}) == {len(value)}")
            for key, each in list(value.items())[:MAX_ITEMS]:
                if key.__class__ in (str, int):
                    self.held(f"{name}[{key!r}]", each, depth + 1)
        elif not isinstance(value, (type, ModuleType)) and not _is_library(type(value).__module__):
            self.attributes(value, None, depth)

    def function(self, value: FunctionType, depth: int) -> None:
        """Add the conditions that the globals, closure variables and defaults of the function ``value`` are unchanged.

        ``depth`` is the number of references from the compiled function to ``value``.
        """
        if MARK in value.__globals__:
            return
        self.globals_of(value.__code__, value.__globals__, depth)
        for cell in value.__closure__ or ():
            try:
                self.held(f"{self.constant(cell)}.cell_contents", cell.cell_contents, depth + 1)
            except ValueError:
                self.unfit = self.unfit or "a closure variable without a value"
        for each in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()):
            if isinstance(each, Tensor):
                self.captured(self.constant(each), each)
            elif not isinstance(each, SIMPLE):
                self.thing(each, depth + 1)

    def globals_of(self, code: CodeType, space: dict[str, object], depth: int = 0) -> None:
        """Add the conditions that the global variables that ``code`` reads are unchanged.

        If such a variable is a Python module, the attributes of the module that ``code`` reads must be unchanged.
        ``space`` is the dictionary of the globals. ``depth`` is the number of references that lead from the compiled
        function to the function with this code.
        """
        key = id(code), id(space)
        if key in self.seen:
            return
        self.seen[key] = code
        names = set(_names(code))
        found = {each: space[each] for each in names if each in space}
        where = self.constant(space) if found else ""
        for name, value in found.items():
            if isinstance(value, ModuleType):
                if not _is_library(value.__name__) and value.__name__.partition(".")[0] not in sys.stdlib_module_names:
                    inner = self.constant(vars(value))
                    for each in names & vars(value).keys():
                        if not isinstance(vars(value)[each], (ModuleType, type)):
                            self.held(f"{inner}[{each!r}]", vars(value)[each], depth + 1)
            elif not isinstance(value, type) and not (isinstance(value, FunctionType) and MARK in value.__globals__):
                self.held(f"{where}[{name!r}]", value, depth + 1)

    def module(self, value: Module, depth: int) -> None:
        """Add the conditions that ``value``, a ``torch.nn.Module``, is unchanged.

        Its training flag, hooks, parameters, buffers and submodules are tested, and the attributes that its ``forward``
        reads. ``depth`` is the number of references that lead from the compiled function to ``value``.
        """
        space = value.__dict__
        name = self.constant(space)
        hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
        if any(space[each] for each in hooks):
            self.unfit = self.unfit or f"{type(value).__name__} has hooks"
        own = self.constant(space["_forward_hooks"]), self.constant(space["_forward_pre_hooks"])
        more = self.constant(space["_backward_hooks"]), self.constant(space["_backward_pre_hooks"])
        self.demand(" ".join([f"{name}['training'] is {value.training} and not", " and not ".join((*own, *more))]))
        for place in ("_parameters", "_buffers", "_modules"):
            inside = self.constant(space[place])
            if space[place]:
                self.demand(f"{name}[{place!r}] is {inside} and len({inside}) == {len(space[place])}")
            for key, each in space[place].items():
                self.held(f"{inside}[{key!r}]", each, depth)
        self.attributes(value, _names_read_by(type(value), "forward"), depth)
        if "forward" in space:
            self.held(f"{name}['forward']", space["forward"], depth + 1)
        elif type(value).forward.__class__ is FunctionType:
            self.thing(type(value).forward, depth)

    def attributes(self, value: Guarded, names: set[str] | None, depth: int) -> None:
        """Add the conditions that the attributes ``names`` of the object ``value`` are unchanged.

        If ``names`` is None, all attributes are tested. ``depth`` is the number of references that lead from the
        compiled function to ``value``.
        """
        space = getattr(value, "__dict__", None)
        if space is None:
            return
        inside = self.constant(space)
        for name, each in list(space.items()):
            if (names is None or name in names) and name not in _MODULE_ATTRIBUTES:
                self.held(f"{inside}[{name!r}]", each, depth + 1)

    def written(self, start: list[str]) -> Function:
        """Compile and return the guard function ``holds(args, kwargs)``, which returns whether all conditions are met.

        ``start`` are the source lines that unpack the arguments.
        """
        body = ["        " + each for each in (*start, *self.lines, "return True")]
        failed = ["    except (KeyError, IndexError, AttributeError, ValueError):", "        return False"]
        lines = ["def holds(args, kwargs):", "    try:", *body, *failed]
        self.source = "\n".join(lines)
        return compile_source("<compiled guard>", lines, self.space, "holds")


_MODULE_ATTRIBUTES = frozenset(vars(Module())) | {"forward"}


def _grad_condition(name: str, x: Tensor) -> str:
    if x._view is not None:
        return f"{name}.requires_grad is {x.requires_grad}"
    return f"{name}._view is None and {name}._grad_edge is {'not ' * x.requires_grad}None"


def _is_library(name: str) -> bool:
    return name.partition(".")[0] in ("retrograd", "torch", "numpy", "builtins", "scipy")


def _nested_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if each.__class__ is CodeType:
            yield from _nested_code(each)


def _names(code: CodeType) -> Iterator[str]:
    for each in _nested_code(code):
        yield from each.co_names


def _names_read_by(kind: type, start: str) -> set[str]:
    """Return the names of globals and attributes that the method ``start`` of the class ``kind`` reads.

    If one of these names is another method of ``kind``, the names that this method reads are included too.
    """
    found: set[str] = set()
    pending = [start]
    while pending:
        method = getattr(kind, pending.pop(), None)
        code = getattr(method, "__code__", None)
        if code is None:
            continue
        for name in _names(code):
            if name not in found:
                found.add(name)
                pending.append(name)
    return found


def describe_assignment(code: CodeType) -> str | None:
    """Return a description of the first assignment in ``code`` to an attribute, a global or an outer variable.

    The result is None if there is no such assignment, or if ``code`` is a constructor, which sets attributes of a new
    object.
    """
    if code.co_name in ("__init__", "__post_init__", "__new__"):
        return None
    for each in dis.get_instructions(code):
        if each.opname == "STORE_ATTR":
            return f"sets the attribute {each.argval}"
        if each.opname == "STORE_GLOBAL":
            return f"sets the global variable {each.argval}"
        if each.opname == "STORE_DEREF" and each.argval in code.co_freevars:
            return f"sets the outer variable {each.argval}"
    return None
