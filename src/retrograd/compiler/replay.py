"""Replay of a call without its Python, for functions compiled with ``pure=True``: of one segment, or of any operations."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from numpy import argsort, ascontiguousarray, ndarray

from ..core import dtypes
from ..core.grad_mode import recording
from ..core.lazy_tensor import Lazy
from ..core.pytree import tree_flatten
from ..core.tensor import Tensor, new, wrap
from ..core.torch_function import HANDLERS
from ..dispatch.operand_promotion import PLAIN
from ..dispatch.transform_tensor import active_levels
from ..func.numpy_functions import MAX_PROGRAMS, RENEWALS
from .cursor import is_intercepting
from .entries import CONSTANTS, Entry, Unsupported, describe, frozen, same_constant
from .ir import INPUT
from .pure_gradients import program_of
from .recorder import Traced, Unrecorded
from .segments import Segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.pytree import TreeSpec
    from ..core.typing import Args, Array, Function, Kwargs, PyTree
    from .cursor import Cursor
    from .pure_gradients import Run


class Replay:
    """Call that was one segment: its arguments, the tensors that it read besides, and the structure of its result.

    ``of(cursor, args, kwargs, result)`` returns a list with the replay of the call that ``cursor`` has just deferred, or
    an empty list if the call cannot be replayed.
    """

    @staticmethod
    def of(cursor: Cursor, args: Args, kwargs: Kwargs, result: PyTree) -> list[Replay]:
        values = cursor.values
        if not values or values[-1].__class__ is not Lazy:
            return []
        try:
            return [Replay(values, cursor.root.place + 1, args, kwargs, result)]
        except Unsupported:
            return []

    def __init__(self, values: Sequence[Tensor], count: int, args: Args, kwargs: Kwargs, result: PyTree) -> None:
        self.arguments, self.names = [_constant(each) for each in (*args, *kwargs.values())], tuple(kwargs)
        #: The entry of each result, and the other tensors.
        self.values: list[Entry | Tensor] = [x._creation_meta if x.__class__ is Lazy else x for x in values]
        self.count = count
        self.others = [(x, describe(x)) for x in values[count:] if x.__class__ is not Lazy]
        leaves, self.structure = tree_flatten(result)
        places = [next((k for k, x in enumerate(values) if x is each), None) for each in leaves]
        self.leaves = [(k, None if k is not None else _constant(each)) for k, each in zip(places, leaves, strict=True)]
        if any(k is None and isinstance(each, Tensor) for k, each in zip(places, leaves, strict=True)):
            raise Unsupported("a result that is not of the segment")
        if any(k is not None and k >= count and values[k].__class__ is not Lazy for k in places):
            raise Unsupported("a result that the call may have created")
        self.identities = _identities((*args, *kwargs.values()))
        self.live = sorted({k for k in places if k is not None and values[k].__class__ is Lazy})
        self.segment: Segment | None = None

    def matches(self, args: Args, kwargs: Kwargs) -> bool:
        """Whether a call with equal shapes of its tensors is this call: equal constants, and the same other tensors."""
        given = (*args, *kwargs.values())
        if len(given) != len(self.arguments) or tuple(kwargs) != self.names:
            return False
        for each, constant in zip(given, self.arguments, strict=True):
            if constant is Tensor:
                if not isinstance(each, Tensor):
                    return False
            elif not same_constant(each, constant):
                return False
        if _identities(given) != self.identities:
            return False
        try:
            return all(describe(x) == description for x, description in self.others)
        except Unsupported:
            return False

    def run(self, inputs: Sequence[Tensor]) -> PyTree:
        """Return the result of the call for the tensors ``inputs``."""
        values = [*inputs]
        for each in self.values[self.count :]:
            if isinstance(each, Entry):
                pending: Lazy = new(Lazy)
                pending._creation_meta = last = each
                values.append(pending)
            else:
                values.append(each)
        if self.live:
            if self.segment is None:
                self.segment = Segment(last, self.live, values, "the call returns")
            self.segment.run(values)
        found = [constant if k is None else values[k] for k, constant in self.leaves]
        return found[0] if self.structure.is_leaf() else self.structure.unflatten(found)


class RecordedCalls:
    """Programs of whole calls of ``function``, whose operations need not be one segment.

    They may be, for example, derivatives by ``torch.func``. A program computes the results from the arrays of the
    arguments, if none requires gradients (``pure_gradients.py``).
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.programs: dict[object, RecordedCall | None] = {}
        self.renewed: Counter[object] = Counter()

    def record(self, args: Args, kwargs: Kwargs) -> None:
        """Compile the program of a call with these arguments, if it can be recorded."""
        key = _key_of((*args, *kwargs.values()), tuple(kwargs))
        if key is not None and key not in self.programs and len(self.programs) < MAX_PROGRAMS:
            self.programs[key] = RecordedCall.of(self.function, args, kwargs)

    def run(self, args: Args, kwargs: Kwargs) -> list[PyTree]:
        """Return a list with the result of the call, or an empty list if there is no program for the arguments."""
        given = (*args, *kwargs.values())
        key = _key_of(given, tuple(kwargs))
        call = self.programs.get(key) if key is not None else None
        if call is None or active_levels() or (HANDLERS and is_intercepting()):
            return []
        arrays = [each._array for each in given if isinstance(each, Tensor)]
        found = call.program(arrays)
        if found is None:  # a tensor that the function uses has been modified
            self.renewed[key] += 1
            self.programs[key] = None
            if self.renewed[key] <= RENEWALS:
                del self.programs[key]
            return []
        return [call.result(found)]


class RecordedCall:
    """Program of a call, with the structure of its result.

    ``leaves`` are the items of the result, with ``TENSOR_ITEM`` for a tensor, and ``orders`` the orders of its dimensions.
    """

    program: Run
    leaves: list[object]
    orders: list[tuple[int, ...] | None]
    structure: TreeSpec

    @staticmethod
    def of(function: Function, args: Args, kwargs: Kwargs) -> RecordedCall | None:
        """Return the program of ``function(*args, **kwargs)``, or None if the call cannot be recorded."""
        call: RecordedCall = new(RecordedCall)
        given = [*args, *kwargs.values()]

        def flat(*values: object) -> list[Tensor]:
            result = function(*values[: len(args)], **dict(zip(kwargs, values[len(args) :], strict=True)))
            call.leaves, call.structure = tree_flatten(result)
            tensors = [each for each in call.leaves if isinstance(each, Tensor)]
            if not tensors or any(each.__class__ is not Traced or each.requires_grad for each in tensors):
                raise Unrecorded("a result that is no new tensor without a gradient")
            if any(each._value.root.kind is INPUT for each in tensors):
                raise Unrecorded("a result that is a view of an argument")
            if len({each._value.root for each in tensors}) < len(tensors):
                raise Unrecorded("results that share their memory")
            call.orders = [_order(each._inner._array) for each in tensors]
            call.leaves = [TENSOR_ITEM if isinstance(each, Tensor) else frozen(each) for each in call.leaves]
            return tensors

        arrays = [each._array if isinstance(each, Tensor) else each for each in given]
        program = program_of(flat, arrays, (), bool(recording()), not recording())
        if program is None:
            return None
        call.program = program
        return call

    def result(self, arrays: Sequence[Array]) -> PyTree:
        """Return the result of the call, of which ``arrays`` are the arrays."""
        tensors = iter([
            array if order is None else ascontiguousarray(array.transpose(order)).transpose(argsort(order))
            for array, order in zip(arrays, self.orders, strict=True)
        ])  # fmt: skip
        leaves = [wrap(next(tensors)) if each is TENSOR_ITEM else each for each in self.leaves]
        return leaves[0] if self.structure.is_leaf() else self.structure.unflatten(leaves)


#: Item in a list of results at the place of a tensor.
TENSOR_ITEM = object()


def _order(array: Array) -> tuple[int, ...] | None:
    """Return the dimensions of ``array`` by decreasing strides, or None if this is their order."""
    order = tuple(sorted(range(array.ndim), key=lambda axis: (-array.strides[axis], axis)))
    return None if order == tuple(range(array.ndim)) or array.flags.c_contiguous else order


def _key_of(given: Args, names: tuple[str, ...]) -> tuple[object, ...] | None:
    """Return the key of the program for a call with the arguments ``given``, or None if there can be none."""
    mode = recording()
    if mode is not True and mode is not False:  # inference mode, or hooks on saved tensors
        return None
    parts: list[object] = [mode, dtypes.default.floating, names]
    arrays: list[int] = []
    for each in given:
        if isinstance(each, Tensor):
            array = each._array
            if each.__class__ not in PLAIN or array.__class__ is not ndarray or (mode and each.requires_grad):
                return None
            arrays.append(id(each))
            strides = None if array.flags.c_contiguous else array.strides  # results have the order of the arguments
            parts.append((array.shape, array.dtype, arrays.index(id(each)), strides))
        elif each.__class__ in CONSTANTS:
            parts.append((each.__class__, repr(each)))
        else:
            return None
    return tuple(parts)


def _identities(arguments: Sequence[object]) -> list[int]:
    """Return, for each of the tensors among ``arguments``, the index of the first that is the same object."""
    found = [id(each) for each in arguments if isinstance(each, Tensor)]
    return [found.index(each) for each in found]


def _constant(value: object) -> object:
    """Return the constant ``value``, or the class Tensor for a tensor."""
    return Tensor if isinstance(value, Tensor) else frozen(value)
