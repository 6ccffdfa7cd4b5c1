"""Batched tensors: inside ``vmap`` a tensor has the shape of one slice, while operations compute all slices at once.

A slice is the part of a tensor with one index of the batch dimension: the tensor that the user's function sees.
A batching rule (``func/vmap_rules.py``) runs an operation on the tensor that contains all slices. An operation without
a rule runs once for each slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..autograd.dual import Dual, is_recorded
from ..autograd.function import Function
from ..core.devices import array_module_of
from ..core.error_context import describe_definition, with_remedy
from ..core.grad_mode import recording
from ..core.pytree import broadcast_to_and_flatten, tree_flatten, tree_map
from ..core.tensor import REQUIRES_GRAD_IN_TRANSFORM, Tensor, preserve_format, wrap
from ..dispatch.generic_path import apply, check_cast
from ..dispatch.op import TENSORS as F
from ..dispatch.op import arguments
from ..dispatch.transform_tensor import (
    TransformLevel,
    TransformTensor,
    active_levels,
    copy_per_slice,
    placeholder,
    wrap_in,
)
from ..operations.engine_ops import expand
from ..operations.indexing.getitem import index_put_values, index_with_tensors
from ..runtime.user_frame import warn


class VmapRun(TransformLevel):
    """One active call of vmap.

    ``size`` is the number of slices, the size of the batch dimension. ``randomness`` is ``"error"``, ``"same"`` or
    ``"different"``, as for :func:`vmap`.
    """

    __slots__ = ("randomness", "size")
    randomness: str

    sliced = True
    warns = True  # whether an operation that runs once for each slice gives a warning

    def __init__(self, size: int, randomness: str) -> None:
        super().__init__()
        self.size, self.randomness = size, randomness

    def differs(self) -> bool:
        """Whether a random operation draws different numbers for each slice, instead of the same numbers for all.

        Raises RuntimeError if ``randomness`` is ``"error"``.
        """
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
                "randomness flags on vmap or perform the randomness operation out of vmap. Remedy: call "
                "vmap(..., randomness='different')."
            )
        return self.randomness == "different"

    def drawn(self, made: Tensor) -> Any:
        return batch(self, made)


class Batch(TransformTensor):
    """Tensor with the shape of one slice (one element of the batch) that represents all slices of a vmap call.

    The tensor ``_inner`` contains all slices along dimension ``_dim``.
    """

    __slots__ = ()
    _run: VmapRun
    _dim: int
    shown = "BatchedTensorImpl"

    @property
    def _array(self) -> Any:  # type: ignore[override]
        array, dim = self._inner._array, self._dim
        if not array.shape[dim]:  # without slices, an uninitialised array has the shape of one
            shape = array.shape[:dim] + array.shape[dim + 1 :]
            return array.astype(array.dtype, copy=False).__class__(shape, array.dtype)
        return array[(*(slice(None),) * dim, 0, ...)]  # type: ignore[arg-type]

    def process(self, op: Any, tensors: tuple[Any, ...], params: tuple[Any, ...], in_place: bool) -> Any:
        return run_block(self._run, op, tensors, params, in_place)

    def refuse_out(self, name: str) -> Exception:
        return RuntimeError(
            f"Batching rule not implemented for aten::{name}.out; the fallback path doesn't work on out= or view ops."
        )

    def blank(self, members: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Tensor:
        values = [unwrap_batch(each, self._run)[0] for each in members]
        return batch(self._run, placeholder(values, (self._run.size, *shape), dtype))

    def gradients(self, outs: Any, inputs: Any, grads: Any, solve: Callable[..., Any], record: bool) -> list[Any]:
        run = self._run
        batched = [is_batched_at(each, run) for each in outs]
        values = [inner_to_front(each, run) if found else each for each, found in zip(outs, batched, strict=True)]
        given = [
            each if each is None or not (found or is_batched_at(each, run)) else inner_to_front(each, run)
            for each, found in zip(grads, batched, strict=True)
        ]
        values = [
            expand_over_slices(value, run) if not found and grad is not None and is_batched_at(old, run) else value
            for value, found, grad, old in zip(values, batched, given, grads, strict=True)
        ]
        bare = [unwrap_batch(each, run) for each in inputs]
        found = solve(values, [value for value, _ in bare], given, True)
        return [
            grad if grad is None or dim is None else inner_batch(grad, run, dim)
            for grad, (_, dim) in zip(found, bare, strict=True)
        ]

    def custom(self, function: Any, args: tuple[Any, ...]) -> Any:
        return custom(self._run, function, args)

    def joined(self, tensors: Sequence[Any], dim: Any, join: Callable[..., Any]) -> Any:
        run = self._run
        if dim is None:  # block_diag has no batched form
            return by_slices(run, join, (list(tensors), None), {})
        if any(each._array.shape != (0,) for each in tensors):  # PyTorch's old empty tensors, which join anything
            tensors = [each for each in tensors if each._array.shape != (0,)]
        return batch(run, join([slices_to_front(each, run) for each in tensors], dim if dim < 0 else dim + 1))

    sliced = True

    def by_slices(self, surface: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        return by_slices(self._run, surface, args, kwargs)

    def dynamic(self, name: str) -> Exception:
        return dynamic_shape_error(name)

    def spread_as(self, made: Tensor) -> Any:
        return batch(self._run, expand_over_slices(copy_per_slice(self._inner, made), self._run).clone())

    def picked(self, x: Any, picks: list[Any]) -> Any:
        """Return ``x[tuple(picks)]``, computed for all slices, as a batched tensor.

        ``picks[i]`` is the index tensor for dimension ``i`` of a slice of ``x``, or None for all elements along it.
        ``x`` or some of ``picks`` are batched tensors.
        """
        return picked(self._run, x, picks)

    def put_picked(self, x: Any, picks: list[Any], values: Any, accumulate: bool) -> None:
        """Assign ``values`` to ``x[tuple(picks)]`` in place for all slices, or add them if ``accumulate`` is true.

        ``picks[i]`` is the index tensor for dimension ``i`` of a slice of ``x``, or None for all elements along it.
        ``x``, ``values`` or some of ``picks`` are batched tensors.
        """
        x.copy_(self.by_slices(index_put_values, (x, picks, values, accumulate), {}))

    def merged(self, members: Sequence[Any], build: Callable[..., Any]) -> Any:
        if len(members) == 1:
            return batch(self._run, build(self._inner), self._dim)
        return batch(self._run, build(*[slices_to_front(each, self._run) for each in members]))

    def detach(self) -> Tensor:
        """Return a batched tensor that shares memory with this tensor, but is detached from the graph."""
        return batch(self._run, self._inner.detach(), self._dim)

    data = property(
        lambda self: self.detach(),
        doc="Batched tensor that shares memory with this tensor, but is detached from the graph.",
    )

    def _set_requires_grad(self, requires_grad: bool = True) -> Tensor:
        raise RuntimeError(with_remedy(REQUIRES_GRAD_IN_TRANSFORM, "use torch.func.grad within"))

    def _refuse_item(self, *given: Any, **named: Any) -> Any:
        raise RuntimeError(NO_ITEM)

    def _refuse_data(self, *given: Any, **named: Any) -> Any:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def __bool__(self) -> bool:
        raise RuntimeError(NO_CONTROL)

    item = __float__ = __int__ = __complex__ = __index__ = _refuse_item
    tolist = numpy = __array__ = data_ptr = _refuse_data

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return wrapped_text("BatchedTensor", f"lvl={self._run.depth}, bdim={self._dim}", self._inner)


def wrapped_text(name: str, facts: str, inner: Any) -> str:
    """Return the repr of a tensor that wraps ``inner``: ``name(facts, value=...)``.

    ``facts`` is the text of the properties of the wrapper, such as ``"lvl=1, bdim=0"``. The value is the indented repr
    of ``inner``.
    """
    lines = repr(inner.detach() if type(inner) is Tensor else inner).replace("\n", "\n    ")
    return f"{name}({facts}, value=\n    {lines}\n)"


def dynamic_shape_error(name: str) -> Exception:
    """Return the exception for an operation under vmap whose result shape depends on the elements.

    ``name`` is PyTorch's name of the operation.
    """
    return RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"aten::{name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature. Remedy: "
        "use operations whose results have a fixed shape, as torch.where."
    )


NO_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please "
    "try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, "
    "please file a bug report. Remedy: return the tensor, and read its values outside of vmap."
)
NO_CONTROL = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, "
    "please file an issue at https://github.com/pytorch/pytorch/issues . Remedy: use torch.where(condition, a, b)."
)


# --- Wrapping and unwrapping ------------------------------------------------------------------------------------------


def batch(run: VmapRun, value: Any, dim: int = 0) -> Any:
    """Return a batched tensor of the vmap call ``run`` that wraps ``value``.

    Its slices are the slices of ``value`` along dimension ``dim``.
    """
    batched = wrap_in(Batch, run, value)
    batched._dim = dim
    return batched


def unwrap_batch(x: Any, run: VmapRun) -> tuple[Any, int | None]:
    """Return the pair ``(tensor, dim)`` of the tensor that ``x`` wraps and its batch dimension.

    If ``x`` is not batched by the vmap call ``run``, the result is ``(x, None)``.
    """
    return (x._inner, x._dim) if isinstance(x, Batch) and x._run is run else (x, None)


def move_dim(x: Any, source: int, to: int) -> Any:
    """Return ``x`` with dimension ``source`` moved to the position ``to``; neither may be negative."""
    if source == to:
        return x
    order = [each for each in range(x._array.ndim) if each != source]
    order.insert(to, source)
    return F.permute(x, tuple(order))


def expand_over_slices(x: Any, run: VmapRun) -> Any:
    """Return a view that repeats ``x``, which is not batched, along a new first dimension.

    The size of this dimension is the number of slices of the vmap call ``run``: each slice of the view is ``x``.
    """
    return expand(x, (run.size, *x._array.shape))


def slices_to_front(x: Any, run: VmapRun) -> Any:
    """Return the tensor that contains all slices of ``x`` along its first dimension.

    If ``x`` is not batched by the vmap call ``run``, the result repeats ``x`` for each slice.
    """
    value, dim = unwrap_batch(x, run)
    return expand_over_slices(value, run) if dim is None else move_dim(value, dim, 0)


def slices_with_rank(x: Any, run: VmapRun, rank: int) -> Any:
    """Return the tensor that contains all slices of ``x`` along its first dimension, each with ``rank`` dimensions.

    The caller broadcasts the result against other tensors. If a slice has fewer dimensions, dimensions of size 1 are
    inserted before its first dimension. If ``x`` is not batched by the vmap call ``run``, ``x`` is returned unchanged.
    """
    value, dim = unwrap_batch(x, run)
    if dim is None:
        return value
    value = move_dim(value, dim, 0)
    for _ in range(rank + 1 - value._array.ndim):
        value = F.unsqueeze(value, 1)
    return value


def slice_at(x: Any, run: VmapRun, index: int) -> Any:
    """Return slice number ``index`` of ``x``, or ``x`` itself if ``x`` is not batched by the vmap call ``run``."""
    value, dim = unwrap_batch(x, run)
    if dim is not None and not run.size:  # of no slices: zeros, because the shape of the result is needed
        value = value.sum(dim, keepdim=True).to(value.dtype)
    return value if dim is None else F.select(value, dim, index)


def _stacked(rows: list[Any], run: VmapRun) -> Any:
    """Return the results of the slices of the vmap call ``run``, stacked along a new first dimension."""
    return F.stack(rows, 0) if run.size else F.stack(rows, 0)[:0]


def first_slice(x: Any) -> Any:
    """Return the first slice of ``x``, a tensor that is batched by the innermost active call of vmap.

    If ``x`` is not batched by this call, ``x`` is returned. No other transform may be active inside the call.
    """
    return slice_at(x, active_levels()[-1], 0)  # type: ignore[arg-type]


# -- The same inside wrappers of inner levels


def is_batched_at(x: Any, run: VmapRun) -> bool:
    """Whether ``x``, or a tensor that ``x`` wraps, is batched by the vmap call ``run``."""
    if not isinstance(x, TransformTensor):
        return False
    return x._run is run or is_batched_at(x._inner, run) or is_batched_at(getattr(x, "_tangent", None), run)


def inner_to_front(x: Any, run: VmapRun) -> Any:
    """Return ``x`` with its slices of the vmap call ``run`` along an ordinary first dimension.

    ``x`` may also be wrapped, as a batched or dual tensor, by transforms that were called inside ``run``; the result is
    wrapped in the same way. If ``x`` is not batched by ``run``, the result repeats it for each slice.
    """
    if not isinstance(x, TransformTensor) or x._run.depth <= run.depth:
        return slices_to_front(x, run)
    if isinstance(x, Batch):
        value = move_dim(x._inner, x._dim, 0)
        return batch(x._run, move_dim(inner_to_front(value, run), 0, 1))
    assert isinstance(x, Dual)
    return x.merged((x,), lambda each: inner_to_front(each, run))


def inner_batch(x: Any, run: VmapRun, dim: int) -> Any:
    """Return ``x`` as a tensor that is batched by the vmap call ``run``: its slices are those along dimension ``dim``.

    ``x`` may also be wrapped, as a batched or dual tensor, by transforms that were called inside ``run``; the result is
    wrapped in the same way. With ``dim=0`` this is the inverse of :func:`inner_to_front`.
    """
    if not isinstance(x, TransformTensor) or x._run.depth < run.depth:
        return batch(run, x, dim)
    if isinstance(x, Batch):
        value = move_dim(x._inner, x._dim, 0)
        return batch(x._run, inner_batch(value, run, dim + 1))
    return x.merged((x,), lambda each: inner_batch(each, run, dim))


# --- Running ---------------------------------------------------------------------------------------------------------

Rule = Callable[[VmapRun, Any, tuple[Any, ...], tuple[Any, ...]], Any]
#: Batching rules by names of operations, and by the values of their option ``vmap`` that are names; registered by
#: ``func/vmap_rules.py``.
RULES: dict[str, Rule] = {}
#: Names of parameters that are dimensions.
DIMS = frozenset(("dim", "dims", "dim0", "dim1", "dim2", "first", "second"))


def run_block(run: VmapRun, op: Any, tensors: tuple[Any, ...], params: tuple[Any, ...], in_place: bool) -> Any:
    """Return the result of the operation ``op`` for all slices of the vmap call ``run``.

    The result is computed by the batching rule of ``op``, a function that treats all slices at once. If ``op`` has no
    rule, it runs once for each slice. ``tensors`` are the operands and ``params`` the parameters of ``op``. If
    ``in_place`` is true, the first operand is modified.
    """
    if in_place:
        return _apply_inplace(run, op, tensors, params)
    how = op.vmap or (op.name if op.name in RULES else _derived_rule(op))
    if callable(how):
        given = {"F": F, **dict(zip((*op.tensors, *op.params), (*tensors, *params), strict=True))}
        how = how(*[given[name] for name in arguments(how)])
        if not isinstance(how, str):
            return how
    if not isinstance(how, str):
        how = "shared" if isinstance(how, set) else "rows" if isinstance(how[0], str) else "matrices"
    return RULES[how](run, op, tensors, params)


def _derived_rule(op: Any) -> str:
    """Return the name of the general batching rule for ``op``, an operation that does not declare a rule.

    The name is ``"elementwise"`` for a pointwise operation, and ``"leading"`` for an operation of one tensor with a
    parameter such as ``dim``. For any other operation it is ``"unknown"``: the operation runs once for each slice.
    """
    if op.kind == "pointwise":
        return "elementwise"
    return "leading" if len(op.tensors) == 1 and not DIMS.isdisjoint(op.params) else "unknown"


def as_batches(run: VmapRun, result: Any) -> Any:
    """Return ``result`` as a tensor that is batched along dimension 0 by the vmap call ``run``.

    If ``result`` is a tuple of tensors, return the tuple of the batched tensors.
    """
    return tuple([batch(run, each) for each in result]) if isinstance(result, tuple) else batch(run, result)


def slices_with_warning(run: VmapRun, op: Any, tensors: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
    """Warn that ``op`` runs once for each slice, which is slow, and return the result of :func:`apply_by_slices`."""
    if VmapRun.warns:
        warn(
            f"vmap: {op.shown} runs slice by slice, because it has no rule for all slices at once: it is as slow as a loop",
        )  # fmt: skip
    return apply_by_slices(run, op, tensors, params)


def apply_by_slices(run: VmapRun, op: Any, tensors: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
    """Apply ``op`` to each slice of ``tensors`` in turn, and return the stacked results as a batched tensor.

    ``params`` are the parameters of ``op``. If ``op`` has several results, return a tuple of batched tensors.
    """
    rows = [apply(op, tuple([slice_at(each, run, i) for each in tensors]), params) for i in range(run.size or 1)]
    if isinstance(rows[0], tuple):
        return tuple([batch(run, _stacked(list(column), run)) for column in zip(*rows, strict=True)])
    return batch(run, _stacked(rows, run))


def by_slices(run: VmapRun, surface: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call the function ``surface`` for each slice of its arguments, and return the stacked results as batched tensors.

    ``args`` and ``kwargs`` are the arguments, some of which are batched by the vmap call ``run``. The arguments and the
    result may be nested structures (pytrees) of tensors.
    """
    rows = []
    for i in range(run.size or 1):
        some, named = tree_map(lambda each, i=i: inner_slice_at(each, run, i), (args, kwargs))
        rows.append(surface(*some, **named))
    return tree_map(
        lambda *column: (
            inner_batch(_stacked(list(column), run), run, 0) if isinstance(column[0], Tensor) else column[0]
        ),
        *rows,
    )


def inner_slice_at(x: Any, run: VmapRun, index: int) -> Any:
    """Return slice number ``index`` of ``x`` in the vmap call ``run``.

    ``x`` may also be wrapped, as a batched or dual tensor, by transforms that were called inside ``run``; the result is
    wrapped in the same way. If ``x`` is not batched by ``run``, it is returned unchanged.
    """
    if not isinstance(x, TransformTensor) or x._run.depth < run.depth:
        return x
    return slice_at(x, run, index) if x._run is run else x.merged((x,), lambda each: inner_slice_at(each, run, index))


def picked(run: VmapRun, x: Any, picks: list[Any]) -> Any:
    """Return ``x[tuple(picks)]``, computed for all slices of the vmap call ``run``, as a batched tensor.

    ``picks[i]`` is the index tensor for dimension ``i`` of a slice of ``x``, or None for all elements along it. ``x``
    or some of ``picks`` are batched tensors.
    """
    value, dim = unwrap_batch(x, run)
    positions = [i for i, each in enumerate(picks) if each is not None]
    rank = max(picks[i]._array.ndim for i in positions)
    indices = [None if each is None else slices_with_rank(each, run, rank) for each in picks]
    adjacent = positions[-1] - positions[0] + 1 == len(positions)
    if dim is None:
        return batch(run, index_with_tensors(value, indices), positions[0] if adjacent else 0)
    rows = wrap(array_module_of(value._array).arange(run.size).reshape(run.size, *(1,) * rank))
    result = index_with_tensors(move_dim(value, dim, 0), [rows, *indices])
    if adjacent and positions[0]:  # move the dimensions before the indexed ones to their front
        before = [1 + rank + i for i in range(positions[0])]
        after = range(1 + rank + positions[0], result._array.ndim)
        result = F.permute(result, (0, *before, *range(1, 1 + rank), *after))
    return batch(run, result)


class VmapInfo(NamedTuple):
    """Argument ``info`` of the method ``vmap`` of a custom ``autograd.Function``, which describes the call of vmap.

    ``batch_size`` is the number of slices, and ``randomness`` the argument of :func:`vmap`.
    """

    batch_size: int
    randomness: str


def custom(run: VmapRun, function: Any, args: tuple[Any, ...]) -> Any:
    """Return the result of ``function``, a subclass of ``autograd.Function``, for batched ``args``.

    The result is computed by the static method ``vmap`` of ``function``, or for each slice in turn if its attribute
    ``generate_vmap_rule`` is true. Raises RuntimeError if ``function`` defines neither of them, or both.
    """
    own, name = function.vmap is not Function.vmap, function.__name__
    more = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
    if function.generate_vmap_rule:
        if own:
            raise RuntimeError(
                f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap "
                "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
                f"ambiguity. {more}"
            )
        return by_slices(run, function.apply, args, {})
    if not own:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it does not have vmap support. Please override and implement the vmap "
            f"staticmethod or set generate_vmap_rule=True. {more} Its forward is "
            f"defined{describe_definition(function.forward)}. Remedy: set generate_vmap_rule = True in its class."
        )
    values = tree_map(lambda each: unwrap_batch(each, run)[0], args)
    dims = tree_map(lambda each: unwrap_batch(each, run)[1], args)
    returned = function.vmap(VmapInfo(run.size, run.randomness), dims, *values)
    if not (isinstance(returned, tuple) and len(returned) == 2):
        count = len(returned) if isinstance(returned, tuple) else 1
        raise RuntimeError(
            f"Expected the {name}.vmap staticmethod to have two returns: outputs and out_dims with pytree structure "
            f"compatible with the output. Got a {type(returned)} of {count} returns"
        )
    outs, spec = tree_flatten(returned[0])
    out_dims = broadcast_to_and_flatten(returned[1], spec)
    if out_dims is None:
        raise RuntimeError(f"{name}.vmap returned an incompatible (out_dims, outputs) tuple.")
    return spec.unflatten(
        [
            each if dim is None else batch(run, each, dim % each._array.ndim)
            for each, dim in zip(outs, out_dims, strict=True)
        ]
    )


def _apply_inplace(run: VmapRun, op: Any, tensors: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
    """Run the in-place operation ``op`` under vmap, and return its first operand.

    ``tensors`` are the operands and ``params`` the parameters of ``op``. Raises RuntimeError if the first operand is
    not batched by ``run``, because a tensor without slices cannot store the results of all slices.
    """
    x = tensors[0]
    if not (isinstance(x, Batch) and x._run is run):
        raise RuntimeError(CAPTURED)
    operands = tensors
    if recording() and any(map(is_recorded, tensors)):
        # The rules may need the overwritten value.
        operands = (batch(run, F.clone_block(x._inner, preserve_format), x._dim), *tensors[1:])
    if op.name == "copy_block" and tensors[1] is x:
        return x
    result = run_block(run, op, operands, params, False)
    if result._array.shape != x._array.shape:
        raise RuntimeError(
            f"output with shape {list(x._array.shape)} doesn't match the broadcast shape {list(result._array.shape)}"
        )
    check_cast(result.dtype, x.dtype)
    x._inner.copy_(move_dim(slices_to_front(result, run), 0, x._dim))
    return x


CAPTURED = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that "
    "has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in "
    "a vmap. Please try to use out-of-place operators instead of inplace arithmetic. If said operator is being called "
    "inside the PyTorch framework, please file a bug report instead. Remedy: write the operation out of place."
)
