"""Base classes of tensors with their own implementation of operations: forward mode, ``vmap``, tracing.

The method ``process`` of a :class:`WrapperTensor` computes the result of an operation. A :class:`TransformTensor`
belongs to one level of a transformation (:class:`TransformLevel`), for example a dual tensor of forward mode or a batch
of ``vmap``. A transform tensor wraps an inner tensor, which belongs to an outer level or is a plain tensor; only plain
tensors are stored in the graph. The attribute ``_array`` has the shape and dtype that the user sees, because public
functions check the shape and dtype of their arguments. Programs without transformations are not slowed down, because
an operation looks for wrapper tensors only if the class of an operand is not exactly Tensor.
"""

from __future__ import annotations

import copy
import functools
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakSet

from ..core.deferral import block
from ..core.devices import array_module_of
from ..core.tensor import Tensor, new, wrap
from ..core.torch_function import DISABLED

if TYPE_CHECKING:
    from ..core.typing import Args, Array, ArrayDType, Edge, Function, Gradient, Kwargs
    from .op import Op
    from .typing import Depth, Operand, Operands, OperandSequence, Override, Params, Result, Returned, Wrapped

_runs: ContextVar[tuple[TransformLevel, ...]] = ContextVar("runs", default=())
#: Return the active transform levels, the outermost first.
active_levels = _runs.get
Tensor._in_transform = staticmethod(lambda: any(each.strict for each in active_levels()))
#: Gradient edges of the leaves that transforms create, as opposed to leaves of the user.
INTERNAL_LEAVES: WeakSet[Edge] = WeakSet()


class TransformLevel:
    """One active call of a transformation of ``torch.func``, such as ``vmap`` or ``jvp``; a context manager.

    Calls of transformations can be nested: ``depth`` is 1 for the outermost.
    """

    __slots__ = ("alive", "depth")
    depth: int

    strict: ClassVar[bool] = True  # whether it is a transformation of torch.func
    sliced: ClassVar[bool] = False  # whether it maps over slices (vmap)
    records_tangents: ClassVar[bool] = False  # whether tangents are recorded also under no_grad
    size: int  # the number of slices, if it does

    def __init__(self) -> None:
        self.alive: bool = False
        self.depth = 0

    def differs(self) -> bool:
        """Whether random functions draw different numbers for each element of the batch of this level.

        At a level of vmap, the argument ``randomness`` of ``vmap`` determines the result; with ``randomness="error"``,
        RuntimeError is raised. At a level of another transformation, which has no batch, the result is False.
        """
        return False

    def met(self, function: type) -> None:
        """Do nothing; subclasses may override this hook.

        It is called before ``function``, a subclass of ``autograd.Function``, runs at this level. An override may raise
        an error if it does not support ``function``, or stop the recording of a call for ``torch.compile``.
        """

    def drawn(self, made: Tensor) -> Wrapped:
        """Return the random numbers ``made`` as a batch of this level of vmap; dimension 0 of ``made`` is the batch."""
        raise NotImplementedError

    def __enter__(self) -> Wrapped:
        block(f"{type(self).__name__} begins", 1)
        outer = active_levels()
        self.alive, self.depth = True, len(outer) + 1
        _runs.set((*outer, self))
        return self

    def __exit__(self, *error: object) -> None:
        try:
            block(f"{type(self).__name__} ends", -1)
        finally:
            self.alive = False
            _runs.set(tuple(each for each in active_levels() if each is not self))

    def around(self, inside: Callable[[], Returned]) -> Returned:
        """Call ``inside()`` while this level is active, and return the result.

        No ``with`` statement is used, because an interrupt at the beginning of ``__exit__`` would leave the level
        active.
        """
        before = active_levels()
        try:
            self.__enter__()
            return inside()
        finally:
            self.alive = False
            _runs.set(before)
            block("a transform ends", -1)


def _inner_field(name: str) -> Override:
    """Return a property that reads and writes the attribute ``name`` of the inner tensor of a wrapper tensor."""
    return property(
        lambda self: getattr(self._inner, name),
        lambda self, value: setattr(self._inner, name, value),
        doc=f"The inner tensor's {name}.",
    )


def _inner_method(name: str) -> Override:
    """Return a method that calls the method ``name`` of the inner tensor of a wrapper tensor."""
    return lambda self, *args, **kwargs: getattr(self._inner, name)(*args, **kwargs)


class WrapperTensor(Tensor):
    """Base class of tensors with their own implementation of all operations, such as the batches of ``vmap``.

    An operation with such an operand does not run its kernel. It calls the method :meth:`process` of the operand, which
    computes the result. If several operands are wrapper tensors, the one with the highest ``level`` is chosen.
    """

    __slots__ = ()  # no slots of its own, because the class of an instance may be set to Tensor
    __torch_function__ = DISABLED
    level: Depth

    @abstractmethod
    def process(self, op: Op, tensors: Operands, params: Params, in_place: bool) -> Result:
        """Return the result of ``op`` for the operands ``tensors`` and the parameters ``params``.

        ``self`` is the wrapper tensor with the highest level among the operands. If ``in_place`` is true, the result is
        written into the first operand, and this operand is returned.
        """

    def refuse_out(self, name: str) -> Exception:
        """Return the error for a call of the function ``name`` with ``out=`` and a tensor of this class."""
        return RuntimeError(f"{name}(): out= is not supported for {type(self).__name__}")


class TransformTensor(WrapperTensor):
    """Base class of the tensors that ``vmap``, ``jvp`` and other transformations pass to a function.

    Such a tensor belongs to one :class:`TransformLevel` and wraps the tensor ``_inner``.
    """

    __slots__ = ()
    __module__ = "torch"
    _run: (
        TransformLevel  # this and _inner are stored in __dict__, because a plain Tensor's class may be set to this one
    )
    _inner: Tensor
    #: Of a view: the tensor that it views, the operation and its parameters.
    viewed: tuple[TransformTensor, Op, Params] | None = None
    level = property(lambda self: self._run.depth)

    _grad_edge = _inner_field("_grad_edge")
    _counter = _inner_field("_counter")
    _grad = _inner_field("_grad")
    _view = _inner_field("_view")
    _view_version = _inner_field("_view_version")
    _creation_meta = _inner_field("_creation_meta")
    _array = _inner_field("_array")

    # Methods that read elements are those of the inner tensor, which may raise.
    item, tolist, numpy, __array__, data_ptr = map(_inner_method, ("item", "tolist", "numpy", "__array__", "data_ptr"))
    __bool__, __float__, __int__ = map(_inner_method, ("__bool__", "__float__", "__int__"))
    __complex__, __index__ = map(_inner_method, ("__complex__", "__index__"))

    #: PyTorch's name of the class, for errors.
    shown: ClassVar[str] = "TensorWrapper"

    def stored(self) -> Tensor:
        """Return the tensor without wrappers that is copied or pickled in place of this one.

        Raises NotImplementedError while a transformation of ``torch.func`` is active, to which this tensor belongs.
        """
        if self._run.alive and self._run.strict:
            raise NotImplementedError(f"Cannot access storage of {self.shown}")
        inner = self._inner
        return inner.stored() if isinstance(inner, TransformTensor) else inner

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        return copy.deepcopy(self.stored(), memo)

    def __copy__(self) -> Tensor:
        return copy.copy(self.stored())

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return self.stored().__reduce_ex__(protocol)  # type: ignore[return-value, arg-type]

    def become(self, other: Tensor) -> None:
        """Replace the inner tensor and all other attributes of ``self`` by those of the tensor ``other``.

        An in-place operation computes its result as a new tensor, and calls this method with the new tensor.
        """
        self.__dict__.update(other.__dict__)
        self.viewed = None

    @abstractmethod
    def blank(self, members: OperandSequence, shape: tuple[int, ...], dtype: ArrayDType) -> Tensor:
        """Return a tensor of zeros with ``shape`` and ``dtype`` that requires gradients.

        This is the result of :func:`placeholder` for ``members``, tensors of one or several levels, among which
        ``self`` has the innermost level. If ``members`` contain a batch of vmap, the result is a batch, too.
        """

    @abstractmethod
    def gradients(
        self,
        outs: Sequence[Operand],
        inputs: Sequence[Operand],
        grads: Sequence[Operand],
        solve: Function,
        record: bool,
    ) -> list[Gradient]:
        """Return the gradients of ``outs`` with respect to ``inputs``; a gradient that does not exist is None.

        ``self`` has the innermost level among ``outs`` and ``inputs``. ``grads`` are the incoming gradients of ``outs``
        (None means ones). The method calls ``solve(outs, inputs, grads, last)`` with the inner tensors, which belong to
        outer levels. ``solve`` returns the list of their gradients. ``last`` must be true in the last of these calls,
        which frees the graph unless it is retained. If ``record`` is true, the result has a graph.
        """

    @abstractmethod
    def custom(self, function: type, args: Args) -> Result:
        """Return the result of ``function``, a subclass of ``autograd.Function``, for the arguments ``args``.

        ``self`` is the tensor with the innermost level among ``args``.
        """

    @abstractmethod
    def joined(self, tensors: OperandSequence, dim: Operand, join: Function) -> Result:
        """Return ``join(tensors, dim)``, where ``join`` is linear in the tensors, for example ``cat``.

        ``self`` is the tensor with the innermost level among ``tensors``.
        """

    @abstractmethod
    def spread_as(self, made: Tensor) -> Wrapped:
        """Return ``made``, a new tensor that was created for ``self``, as a tensor of the same class and level.

        For example, if ``self`` is a batch of vmap, the result is a batch with a copy of ``made`` for each element.
        """

    #: Whether it has slices: it is a batch of vmap.
    sliced: ClassVar[bool] = False

    def by_slices(self, surface: Function, args: Args, kwargs: Kwargs) -> Result:
        """Call the function ``surface`` for each element of a batch of vmap, and return the stacked results.

        ``args`` and ``kwargs`` are the arguments, which contain the batch.
        """
        raise NotImplementedError

    def dynamic(self, name: str) -> Exception:
        """Return the error for the operation ``name``, which vmap does not support.

        vmap does not support the operation because the shape of its result depends on the values of the elements.
        """
        raise NotImplementedError

    def check_elements(self, check: Function, name: str) -> None:
        """Call ``check(name, array)`` for the array of this tensor, and in each run of a program that is recorded."""
        check_elements(self._inner, check, name)

    @abstractmethod
    def merged(self, members: OperandSequence, build: Function) -> Result:
        """Return a tensor of this level that wraps the result of ``build`` for the inner tensors of ``members``.

        ``build`` has one parameter for each of ``members``. At a level of forward mode, ``build`` is also called with
        the tangents of ``members``, to compute the tangent of the result.
        """


def check_elements(x: Tensor, check: Function, name: str) -> None:
    """Call ``check(name, array)``, which may raise an error, for the array of ``x``, an integer tensor."""
    if isinstance(x, TransformTensor):
        x.check_elements(check, name)
    else:
        check(name, x._array)


def innermost(tensors: OperandSequence) -> Wrapped:
    """Return the wrapper tensor with the highest level among ``tensors``, or None if there is none.

    The transformation of this tensor is the first to process an operation.
    """
    wrappers = [each for each in tensors if isinstance(each, WrapperTensor)]
    return max(wrappers, key=lambda each: each.level) if wrappers else None


def innermost_batch(values: Sequence[object]) -> Wrapped:
    """Return the batch of the innermost level of vmap among ``values``, or None if there is none.

    The elements of lists and tuples among ``values`` are searched, too.
    """
    flat = [each for value in values for each in (value if isinstance(value, (tuple, list)) else (value,))]
    return innermost([batch for each in flat if (batch := _batch_in(each)) is not None])


def _batch_in(x: object) -> TransformTensor | None:
    """Return the batch of vmap that ``x`` is or wraps, or None.

    If several levels of vmap have a batch in ``x``, the result is the batch of the innermost level.
    """
    while isinstance(x, TransformTensor):
        if x.sliced:
            return x
        x = x._inner
    return None


def slicewise(surface: Function) -> Function:
    """Decorate ``surface``, a function that reads the elements of tensors, so that it supports vmap.

    If an argument is a batch of vmap, ``surface`` is called once for each element of the batch.
    """

    @functools.wraps(surface)
    def checked(*args: object, **kwargs: object) -> Result:
        batch = innermost_batch([*args, *kwargs.values()]) if active_levels() else None
        return surface(*args, **kwargs) if batch is None else batch.by_slices(surface, args, kwargs)

    return checked


def copy_per_slice(x: object, made: Tensor) -> Wrapped:
    """Return ``made``, or, if ``x`` is a batch of vmap, a batch that has a copy of ``made`` for each element.

    ``made`` is a new tensor created for ``x``, for example by ``zeros_like``.
    """
    return x.spread_as(made) if isinstance(x, TransformTensor) else made


def batch_levels(x: object) -> set[TransformLevel]:
    """Return the levels of vmap at which ``x``, its inner tensors or their tangents are batches."""
    if not isinstance(x, TransformTensor):
        return set()
    levels = batch_levels(x._inner) | batch_levels(getattr(x, "_tangent", None))
    return levels | {x._run} if x.sliced else levels


def in_vmap() -> bool:
    """Whether the current code runs in a function that ``vmap`` calls."""
    levels = active_levels()
    return bool(levels) and any(each.sliced for each in levels)


def draw(sample: Callable[[tuple[int, ...]], Array], shape: tuple[int, ...]) -> Tensor:
    """Return a tensor of random numbers with the given ``shape``; ``sample(shape)`` draws them as an array.

    Under ``vmap(randomness="different")`` the result is a batch, with different numbers for each of its elements.
    """
    levels = [each for each in active_levels() if each.differs()]
    result = wrap(sample((*[each.size for each in levels], *shape)))
    for each in levels:
        result = each.drawn(result)
    return result


def wrap_in(kind: type[TransformTensor], run: TransformLevel, inner: Tensor) -> Wrapped:
    """Return a new tensor of the class ``kind`` that wraps ``inner`` and belongs to the level ``run``."""
    wrapper = new(kind)
    wrapper._run, wrapper._inner = run, inner
    return wrapper


def placeholder(members: OperandSequence, shape: tuple[int, ...], dtype: ArrayDType) -> Tensor:
    """Return a tensor of zeros with ``shape`` and ``dtype`` that requires gradients, on the device of ``members``.

    If there are batches of vmap among ``members``, the result is a batch with the same number of elements.
    """
    special = innermost(members)
    if special is not None:
        return special.blank(members, shape, dtype)
    array = next(each._array for each in members if isinstance(each, Tensor))
    leaf = wrap(array_module_of(array).zeros(shape, dtype))._set_requires_grad()
    if leaf._grad_edge is not None:
        INTERNAL_LEAVES.add(leaf._grad_edge)
    return leaf
