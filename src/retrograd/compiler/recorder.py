"""Recording of a pure straight-line function: each operation on traced tensors is recorded as a step.

A :class:`Recorder` is a transform level. Every operation with a :class:`Traced` operand calls ``Recorder.process``,
which runs the operation on the wrapped tensors and appends a step. The recorder also intercepts the calls of public
functions, because one that computes a tensor without recorded operations must not become a constant of the program. A
function that writes to a tensor, reads elements or draws random numbers cannot be recorded: :class:`Unrecorded` is
raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import ref

import numpy

from ..core import torch_function
from ..core.grad_mode import HOOKED, recording
from ..core.graph import AccumulateGrad, OutputEdge
from ..core.pytree import tree_leaves, tree_map
from ..core.tensor import Tensor, wrap
from ..dispatch.generic_path import apply
from ..dispatch.op import TENSORS
from ..dispatch.operand_promotion import PLAIN
from ..dispatch.transform_tensor import INTERNAL_LEAVES, TransformLevel, TransformTensor, wrap_in
from ..kernels import indexing
from ..operations.creation.random import default_generator
from ..operations.indexing.getitem import MASK_DTYPES
from ..runtime import user_frame
from . import errors
from .backward import differentiate
from .ir import CONSTANT, INPUT, RESULT, ExtraOp, Step, Tape, Value

if TYPE_CHECKING:
    from ..autograd.function import Function as CustomFunction
    from ..core.typing import (
        Args,
        Array,
        ArrayDType,
        ArrayModule,
        Function,
        Gradient,
        Kwargs,
        PyTree,
        RuleNamespace,
        Scalar,
        Shape,
    )
    from .typing import Members, Operand, Operands, Operation, Params, Results, RuleArgument

#: Functions that read only the shape and dtype of their tensors: the result is the same in every call.
SHAPE_ONLY = frozenset(
    """
    zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty new_tensor empty_strided new_empty_strided
    """.split()  # noqa: SIM905
)


class Unrecorded(errors.Unsupported):
    """Error for a function that cannot be recorded."""


Unrecorded.__name__ = Unrecorded.__qualname__ = "Unsupported"
Unrecorded.__module__ = "torch._dynamo.exc"


class Traced(TransformTensor):
    """Tensor in a function that is being recorded.

    It wraps the tensor that was computed. ``_value`` is the :class:`Value` that represents it in the recorded steps.
    """

    __slots__ = ()
    sliced = True  # functions that read elements in Python then call by_slices
    _run: Recorder
    _value: Value
    _unread: Array | None = None

    def process(self, op: Operation, tensors: Operands, params: Params, in_place: bool) -> Results:
        return self._run.process(op, tensors, params, in_place)

    def picked(self, x: Tensor, picks: list[Tensor | None]) -> Results:
        """Return ``x`` indexed by ``picks``, and record the indexing; ``x`` or some of ``picks`` are traced tensors.

        ``picks`` has an index tensor for each dimension of ``x``, or None where the index is ``:``.
        """
        return self._run.picked(x, picks)

    def put_picked(self, x: Tensor, picks: list[Tensor | None], values: Tensor, accumulate: bool) -> None:
        raise Unrecorded("assigns to indices in a tensor")

    def joined(self, tensors: Members, dim: int, join: Function) -> Results:
        return self._run.joined(tensors, dim, join)

    def by_slices(self, surface: Function, args: Args, kwargs: Kwargs) -> PyTree:
        raise Unrecorded(f"{surface.__name__}() reads the elements of its tensors")

    def dynamic(self, name: str) -> Exception:
        return Unrecorded(f"{name}: the size of its result depends on the elements")

    def custom(self, function: type[CustomFunction], args: Args) -> PyTree:
        raise Unrecorded(f"calls the custom Function {function.__name__}")

    def refuse_out(self, name: str) -> Exception:
        return Unrecorded(f"{name}(out=)")

    def spread_as(self, made: Tensor) -> Tensor:
        return made

    @property
    def _array(self) -> Array:  # type: ignore[override]
        return self._inner._array if self._unread is None else self._unread

    def check_elements(self, check: Function, name: str) -> None:
        self._run.checks.append((self._value, check, name))

    def blank(self, members: Members, shape: Shape, dtype: ArrayDType) -> Tensor:
        return self._run.blank(shape, dtype)

    def gradients(
        self, outs: Members, inputs: Members, grads: Members, solve: Function, record: bool
    ) -> list[Gradient]:
        return self._run.gradients(outs, inputs, grads, record)

    def merged(self, members: Members, build: Function) -> Results:
        raise Unrecorded("a transformation")

    def detach(self) -> Tensor:
        """Return a tensor that shares the memory of ``self`` and has no gradient."""
        return self._run.detached(self)

    data = property(lambda self: self._run.detached(self), doc="Tensor with the same elements and no gradient.")

    @property
    def _grad(self) -> Tensor | Array | None:
        if self._inner._grad is not None:
            raise Unrecorded("reads grad")
        return None

    @_grad.setter
    def _grad(self, grad: Tensor | Array | None) -> None:
        raise Unrecorded("writes grad")

    def _set_requires_grad(self, requires_grad: bool = True) -> Tensor:
        self._inner._set_requires_grad(requires_grad)
        self._value.graded = self._inner.requires_grad
        return self


def _refusing(name: str) -> Function:
    """Return a method ``name`` that raises :class:`Unrecorded`, because it reads elements."""

    def refuse(self: object, *args: object, **kwargs: object) -> object:
        raise Unrecorded(f"reads elements by {name}()")

    return refuse


for _name in (
    "item", "tolist", "numpy", "data_ptr", "__array__", "__bool__", "__float__", "__int__", "__complex__", "__index__",
    "__repr__", "__format__",
):  # fmt: skip
    setattr(Traced, _name, _refusing(_name))

Traced.__name__ = Traced.__qualname__ = "Tensor"


class Unread(numpy.ndarray):
    """Array of a traced tensor of which only the shape, the strides and the dtype may be read.

    A public function that reads elements, as to check them, then raises :class:`Unrecorded`.
    """

    def __array_ufunc__(self, *args: object, **kwargs: object) -> object:
        raise Unrecorded("reads elements")

    __array_function__ = __array_ufunc__


for _name in (
    "item", "tolist", "tobytes", "__bool__", "__float__", "__int__", "__complex__", "__index__", "__iter__",
    "__contains__", "any", "all", "max", "min", "sum", "prod", "mean", "argmax", "argmin", "nonzero", "astype", "copy",
    "fill", "sort", "argsort", "take", "dot", "__setitem__",
):  # fmt: skip
    setattr(Unread, _name, _refusing(_name))


# -- Operations that exist only in recordings --------------------------------------------------------------------------


def _cat_rule(F: RuleNamespace, g: Gradient, step: Step) -> list[Gradient]:
    dim, at, found = step.params[0], 0, []
    for each in step.operands:
        size = each.shape[dim] if each.shape != (0,) or len(step.results[0].shape) == 1 else 0
        found.append(F.slice(g, dim, at, at + size, 1) if size else None)
        at += size
    return found


def _cat_kernel(np: ArrayModule, *given: RuleArgument) -> Array:
    *arrays, dim = given
    return np.ascontiguousarray(np.concatenate(arrays, dim))


CAT = ExtraOp("cat", _cat_kernel, _cat_rule)
STACK = ExtraOp(
    "stack",
    lambda np, *given: np.ascontiguousarray(np.stack(given[:-1], given[-1])),
    lambda F, g, step: [F.select(g, step.params[0], i) for i in range(len(step.operands))],
)
CAT.again = lambda given, params: TENSORS.cat(list(given), *params)
STACK.again = lambda given, params: TENSORS.stack(list(given), *params)


def _index_kernel(np: ArrayModule, *given: RuleArgument) -> Array:
    *operands, places, _ = given
    return indexing.take(np, operands[0], _full_index(operands[1:], places))


def _full_index(picks: Sequence[Array], places: tuple[bool, ...]) -> tuple[Array | None, ...]:
    """Return the index of a recorded indexing ``x[…]`` as a tuple of index arrays, and None for ``:``.

    A step stores the index in two parts: ``picks`` are the index arrays in their order, and ``places`` has a bool for
    each dimension of ``x``, which is true if the dimension is indexed by an array.
    """
    rest = iter(picks)
    return tuple([numpy.asarray(next(rest), numpy.int64) if each else None for each in places])


def _index_backward_kernel(np: ArrayModule, *given: RuleArgument) -> Array:
    *operands, places, shape = given
    return indexing.add_to_zeros(np, operands[0], shape, _full_index(operands[1:], places))


def _index_rule(F: RuleNamespace, g: Gradient, step: Step) -> list[Gradient]:
    if g.__class__ is not Traced:
        raise Unrecorded("the gradient of indexing, in a transform")
    run, shape = g._run, step.operands[0].shape
    picks = [run.read(step, each) for each in step.operands[1:]]
    params = step.params[0], shape
    back = TENSORS.index_backward(g._inner, shape, _full_index([each._inner._array for each in picks], params[0]))
    return [run.noted(INDEX_BACKWARD, (g, *picks), params, back), *[None] * len(picks)]


def _index_again(given: Operands, params: Params) -> Tensor:
    picks = iter(given[1:])
    return given[0][tuple(next(picks) if each else slice(None) for each in params[0])]


INDEX, INDEX_BACKWARD = ExtraOp("index", _index_kernel, _index_rule), ExtraOp("index_backward", _index_backward_kernel)
INDEX.again = _index_again
ZEROS = ExtraOp("zeros", lambda np, shape, dtype: np.zeros(shape, dtype))
#: A view without a gradient, also if it requires gradients afterwards.
DETACH = ExtraOp("detach", lambda np, x: x.view())
DETACH.again = lambda given, params: given[0].detach()


#: Most elements of a result that is computed from constants when a pure function is recorded.
FOLDED = 64


class Recorder(TransformLevel):
    """Recorder of a pure straight-line function; ``tape`` has the recorded steps.

    ``standing`` has the traced tensor of each recorded value. ``reads`` has the values that the gradient rules of a step
    have read; the dictionary is empty if they have read only numbers. ``count`` is the number of the first new value.
    With ``guarded``, public functions cannot read elements in their own code, except by :func:`check_elements`:
    ``checks`` has the value, the function and the name of each such check, to be repeated in each run. With ``detaches``,
    tensors that require gradients and are not inputs are constants, because their gradients are not wanted.
    """

    strict = False
    size = 1

    def __init__(self, count: int = 0, guarded: bool = False, detaches: bool = False) -> None:
        super().__init__()
        self.guarded, self.detaches = guarded, detaches
        self.checks: list[tuple[Value, Function, str]] = []
        self._used: dict[int, tuple[ref[Tensor], Array, int]] = {}
        self.tape = Tape()
        self.tape.count = count
        self.standing: dict[Value, Traced] = {}
        self.reads: dict[Step, dict[Value, None]] = {}
        self._arrays: dict[int, Value] = {}  # by identity of the array
        self._kept: list[tuple[Tensor, Array]] = []  # references that keep the identities valid
        self._quiet = False  # whether derivatives are being recorded, which have no user's line

    def __enter__(self) -> Recorder:
        self._random = _rng_state()
        torch_function.enter_mode(self)
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        torch_function.leave_mode(self)
        if error[0] is None and _rng_state() != self._random:
            raise Unrecorded("draws random numbers")

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Context manager in which gradient rules are recorded: their operations, without lines of the user's program.

        Calls of public functions are not intercepted in it; only the operations on traced tensors are recorded.
        """
        before, self._quiet = self._quiet, True
        if self.alive:  # a gradient within the recorded function
            try:
                yield
            finally:
                self._quiet = before
            return
        TransformLevel.__enter__(self)
        try:
            yield
        finally:
            TransformLevel.__exit__(self)

    def __torch_function__(
        self, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> PyTree:
        name = str(getattr(func, "__name__", func))
        given = tree_leaves((args, kwargs))
        for each in given:
            if isinstance(each, Tensor) and each.__class__ in PLAIN:
                self.note_use(each)
        if name == "__getitem__" and any(isinstance(each, Tensor) and each.dtype in MASK_DTYPES for each in given[1:]):
            raise Unrecorded("indexing by a mask, because the result's size depends on its elements")
        result = func(*args, **(kwargs or {}))
        if any(map(_is_traced, given)):
            for each in tree_leaves(result):
                if isinstance(each, Tensor) and not _is_traced(each) and name not in SHAPE_ONLY:
                    raise Unrecorded(f"{name}() is not recorded")
        return result

    def note_use(self, x: Tensor) -> None:
        """Note that the function uses ``x``, which is not traced."""
        if self.guarded and id(x) not in self._used:
            self._used[id(x)] = ref(x), x._array, x._version

    def captured(self) -> list[tuple[ref[Tensor], Array, int]]:
        """Return weak references to the tensors that the function has used and not created, with arrays and versions.

        They are those that exist when the function has returned and the recorder is released.
        """
        return [each for each in self._used.values() if each[0]() is not None]

    def has_hooks(self) -> bool:
        """Whether hooks have been registered on a recorded tensor or its node."""
        edges = {id(edge): edge for inner, _ in self._kept if (edge := inner._grad_edge) is not None}
        nodes = [edge.node if isinstance(edge, OutputEdge) else edge for edge in edges.values()]
        found = [each.hooks for each in (*edges.values(), *nodes) if each.hooks is not None]
        return any(each.tensor or each.before or each.after or each.accumulated for each in found)

    def release(self) -> None:
        """Delete the references to traced tensors, which refer to the recorder, so that their arrays are freed."""
        self.standing.clear()
        self._kept.clear()

    # -- Tensors and their traced wrappers

    def traced(self, inner: Tensor, value: Value) -> Traced:
        """Return a new traced tensor that wraps ``inner`` and is represented by ``value`` in the recorded steps.

        Raises :class:`Unrecorded` if programs do not support the array of ``inner``.
        """
        if inner._array.__class__ is not numpy.ndarray:
            raise Unrecorded("a tensor on a GPU")
        if inner._array.dtype.kind == "c":
            raise Unrecorded("complex numbers")
        made: Traced = wrap_in(Traced, self, inner)
        made._value = value
        if self.guarded:
            made._unread = inner._array.view(Unread)
            self._arrays[id(made._unread)] = value
            self._kept.append((inner, made._unread))
        self._arrays[id(inner._array)] = value
        self._kept.append((inner, inner._array))
        self.standing[value] = made
        return made

    def input(self, sample: Tensor) -> Traced:
        """Return a traced tensor for a new input of the recorded function; ``sample`` has its shape and elements."""
        return self.traced(sample, self.tape.value(INPUT, sample._array, sample.requires_grad))

    def read(self, step: Step, value: Operand) -> RuleArgument:
        """Return the traced tensor of ``value``, which a gradient rule of ``step`` reads; a number is returned as it is."""
        reads = self.reads.setdefault(step, {})
        if value.__class__ is not Value:
            return value
        reads[value] = None
        return self.standing[value]

    def constant(self, made: Tensor) -> Traced:
        """Return a traced tensor for ``made``, a tensor that has the same elements in every call."""
        if made.requires_grad:
            if not self.detaches:
                raise Unrecorded("uses a tensor that requires gradients and is not an input")
            for each in _leaves(made):  # from which it was computed, perhaps by this function
                self.note_use(each)
            made = wrap(made._array)
        return self.traced(made, self.tape.value(CONSTANT, made._array.copy()))

    def blank(self, shape: Shape, dtype: ArrayDType) -> Tensor:
        """Return a new tensor of zeros that requires gradients.

        The gradients with respect to it do not depend on its elements.
        """
        inner = wrap(numpy.zeros(shape, dtype))._set_requires_grad()
        INTERNAL_LEAVES.add(inner._grad_edge)  # type: ignore[arg-type]
        value = self.tape.value(RESULT, inner._array, True)
        self.tape.steps.append(Step(ZEROS, (), (shape, dtype), (value,), False))
        return self.traced(inner, value)

    def detached(self, x: Traced) -> Tensor:
        """Return a tensor that shares the memory of ``x`` and has no gradient, and record the operation."""
        with torch_function.disabled_overrides(torch_function.NONE):
            inner = x._inner.detach()
        return self.noted(DETACH, (x,), (), inner)

    def operand(self, x: Tensor | Scalar | None) -> Operand:
        """Return the :class:`Value` that represents the operand ``x``; numbers and None are returned unchanged."""
        if x.__class__ is Traced:
            return x._value
        if not isinstance(x, Tensor):
            return x
        known = self._arrays.get(id(x._array))
        if known is not None:
            return known
        if x.__class__ in PLAIN:
            self.note_use(x)
        return self.constant(x)._value

    # -- Operations

    def process(self, op: Operation, tensors: Operands, params: Params, in_place: bool) -> Results:
        """Run and record the operation ``op``, and return its results as traced tensors.

        ``tensors`` are the operands and ``params`` the parameters. :class:`Unrecorded` is raised if ``in_place`` is
        true.
        """
        if in_place:
            raise Unrecorded(f"{op.shown}_() modifies a tensor")
        if recording() is HOOKED:
            raise Unrecorded("saved-tensor hooks or anomaly detection")
        if op.vmap == "dynamic":
            raise Unrecorded(f"{op.shown}: the size of its result depends on the elements")
        for each in tree_leaves(params):
            known = self._arrays.get(id(each)) if isinstance(each, numpy.ndarray) else None
            if isinstance(each, Tensor) or (known is not None and known.kind is not CONSTANT):
                raise Unrecorded(f"{op.name} with a tensor as a parameter")
        return self.noted(op, tensors, params, apply(op, plain(tensors), params))

    def noted(self, op: Operation, tensors: Operands, params: Params, result: Results) -> Results:
        """Record a step that computes ``result``, a tensor or a tuple of tensors, and return traced tensors for it.

        The step applies ``op`` to ``tensors`` with the parameters ``params``.
        """
        operands = tuple(map(self.operand, tensors))
        several = isinstance(result, tuple)
        outs = result if several else (result,)
        constant = all(each.__class__ is not Value or each.kind is CONSTANT for each in operands)
        if constant and (not self.guarded or all(out._array.size <= FOLDED for out in outs)):
            found = [self.constant(out) for out in outs]
            return tuple(found) if several else found[0]
        values = []
        for out in outs:
            value = self.tape.value(RESULT, out._array, out.requires_grad)
            self._find_root(value, out._array, tensors)
            values.append(value)
        line = (None, -1) if self._quiet else user_frame.user_location()
        self.tape.steps.append(Step(op, operands, params, values, several, line))
        found = [self.traced(out, value) for out, value in zip(outs, values, strict=True)]
        return tuple(found) if several else found[0]

    def gradients(self, outs: Members, inputs: Members, grads: Members, record: bool) -> list[Gradient]:
        """Return the gradients of ``outs`` with respect to ``inputs``, by the gradient rules of the recorded steps.

        ``grads`` are the incoming gradients; None means ones. A gradient is None if ``outs`` do not depend on the input.
        """
        if any(each.requires_grad and not isinstance(each, Traced) for each in (*outs, *inputs)):
            raise Unrecorded("the gradient of a tensor that is not an input")
        pairs = [
            (out._value, self.ones(out) if grad is None else grad)
            for out, grad in zip(outs, grads, strict=True)
            if isinstance(out, Traced) and out.requires_grad
        ]
        wanted = [each._value if isinstance(each, Traced) else None for each in inputs]
        values = [value for value, _ in pairs]
        given = [grad if isinstance(grad, TransformTensor) else self.constant(grad) for _, grad in pairs]
        return differentiate(self, values, given, wanted, list(self.tape.steps), record)

    def ones(self, x: Traced) -> Traced:
        """Return a traced tensor of ones like ``x``."""
        return self.constant(wrap(numpy.ones(x._array.shape, x._array.dtype)))

    def _find_root(self, value: Value, array: Array, tensors: Operands) -> None:
        """Store in ``value.root`` of which recorded array the result ``array`` is a view, if of any.

        ``value`` describes ``array``, and ``tensors`` are the operands of the operation that returned ``array``.
        """
        for each in tensors:
            if isinstance(each, Tensor) and array.size and numpy.may_share_memory(array, plain(each)._array):
                value.root = self.operand(each).root
                return

    def picked(self, x: Tensor, picks: list[Tensor | None]) -> Results:
        """Return ``x`` indexed by ``picks``, a list of integer tensors and None for ``:``, and record the indexing."""
        inner, given = plain((x, picks))
        result = inner[tuple(slice(None) if each is None else each for each in given)]
        places = tuple(each is not None for each in picks)
        return self.noted(INDEX, (x, *[each for each in picks if each is not None]), (places, None), result)

    def joined(self, tensors: Members, dim: int, join: Function) -> Results:
        """Return ``join(tensors, dim)`` and record the call; ``join`` is ``cat`` or ``stack``."""
        if join.__name__ not in ("cat", "stack") or not isinstance(dim, int):
            raise Unrecorded(f"{join.__name__}() is not recorded")
        inner = plain(list(tensors))
        if len({each._array.dtype for each in inner}) > 1 or any(each._array.shape == (0,) for each in inner):
            raise Unrecorded("cat of several dtypes, or of empty tensors")
        result = join(inner, dim)
        op = STACK if join.__name__ == "stack" else CAT
        return self.noted(op, tuple(tensors), (dim % result._array.ndim,), result)


def _rng_state() -> tuple[object, ...]:
    """Return the parts of the default random generator's state that change when it draws numbers or is seeded."""
    stream = default_generator._stream
    return id(stream._words), stream._position, stream.kept, stream.initial_seed


def _is_traced(x: object) -> bool:
    """Whether ``x`` is a traced tensor, or one that a transform such as ``vmap`` has wrapped."""
    while isinstance(x, TransformTensor) and x.__class__ is not Traced:
        if _is_traced(getattr(x, "_tangent", None)):
            return True
        x = x._inner
    return x.__class__ is Traced


def _leaves(x: Tensor) -> list[Tensor]:
    """Return the leaves of the graph of ``x``, and ``x``."""
    found, pending, seen = [x], [x._grad_edge], set[int]()
    while pending:
        edge = pending.pop()
        node = edge.node if isinstance(edge, OutputEdge) else edge
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, AccumulateGrad):
            leaf = node.variable_ref()
            found += [] if leaf is None else [leaf]
        else:
            pending += [each for each, _ in node.next_functions]
    return found


def plain(tree: PyTree) -> PyTree:
    """Return ``tree``, a nested structure, with each traced tensor replaced by the tensor that it wraps."""
    return tree_map(lambda each: each._inner if each.__class__ is Traced else each, tree)


__all__ = ["Recorder", "Traced", "Unrecorded", "plain"]
