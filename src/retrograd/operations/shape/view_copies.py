"""Views as copies, and the other way round: ``*_copy`` gives a view's elements in memory of their own, ``*_scatter`` a
copy of the whole tensor in which a view's elements are others."""

from __future__ import annotations

from typing import Any

from ...core.grad_mode import recording
from ...core.graph import OutputEdge
from ...core.tensor import Tensor, contiguous_format, dimension, wrap
from ...core.views import StridedLayout, strided_layout
from ...dispatch.declare import op, public
from ...dispatch.transform_tensor import TransformTensor, batched
from ..creation.conversion import clone
from ..elementwise.complex import view_as_complex, view_as_real
from ..engine_ops import strided_write
from .slicing import (
    as_strided,
    as_strided_block,
    diagonal,
    diagonal_block,
    narrow,
    select,
    select_block,
    slice_block,
    split,
    split_with_sizes,
    unbind,
    unfold,
)
from .views import alias, expand_method, permute, renamed, squeeze, t, transpose, unsqueeze, view

# -- Copies ----------------------------------------------------------------------------------------------------------


def slice_(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """Every ``step``-th element of dimension ``dim`` from ``start`` to below ``end``, as a view."""
    at = dimension(dim, input._array.ndim)
    if not input._array.ndim:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    first, last, _ = slice(start, end).indices(input._array.shape[at])
    return slice_block(input, at, first, max(first, last), step)


def copied(shown: Tensor, input: Tensor) -> Tensor:
    """The elements of ``shown``, a view of ``input``, in memory of their own, at the view's place in the graph."""
    if isinstance(shown, TransformTensor):
        return clone(shown, memory_format=contiguous_format)
    out = wrap(shown._array.copy(order="C"))
    place = shown._grad_edge
    if recording() and place is not None and place is not input._grad_edge:
        node = place.node if place.__class__ is OutputEdge else place
        if not node.__class__.__name__.endswith("_copy"):
            node.__class__ = renamed(node.__class__, node.__class__.__name__ + "_copy")
        out._grad_edge = place
    return out


def _copy_form(name: str, of: Any) -> None:
    """The function ``name``, which copies what the view function ``of`` shows."""

    def copy_form(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        shown = of(input, *args, **kwargs)
        if isinstance(shown, Tensor):
            return copied(shown, input)
        return tuple(copied(each, input) for each in shown)

    copy_form.__name__ = copy_form.__qualname__ = name
    copy_form.__doc__ = f"As :func:`{name.removesuffix('_copy')}`, in memory of its own."
    public(method=False, name=name)(copy_form)


def _pairs(input: Tensor) -> Tensor:
    if input.requires_grad:
        raise RuntimeError(
            "view_as_complex_copy does not support automatic differentiation for outputs with complex dtype."
        )
    return view_as_complex(input)


for _name, _function in {
    "alias": alias, "as_strided": as_strided, "detach": lambda input: input.detach(), "diagonal": diagonal,
    "expand": expand_method,
    "permute": permute, "select": select, "slice": slice_, "split": split, "split_with_sizes": split_with_sizes,
    "squeeze": squeeze, "t": t, "transpose": transpose, "unbind": unbind, "unfold": unfold, "unsqueeze": unsqueeze,
    "view": view, "view_as_complex": _pairs, "view_as_real": view_as_real,
}.items():  # fmt: skip
    _copy_form(_name + "_copy", _function)


@public()
def narrow_copy(input: Tensor, dim: int, start: int, length: int, *, out: Any = None) -> Tensor:
    """``length`` elements of dimension ``dim`` from ``start`` on, in memory of their own."""
    shown = narrow(input, dim, start, length)
    result = copied(shown, input)
    if result._grad_edge is not None:
        result._grad_edge.__class__ = renamed(type(result._grad_edge), "NarrowCopyBackward0")
    return result


# -- Copies of the whole with another part ---------------------------------------------------------------------------


def _scatter_form(name: str, block: Any, backward: str) -> Any:
    """The block that gives a copy of ``self`` whose part, as the view ``block`` shows it, is ``src``."""
    part_of = block.op.kernel

    def scatter(np: Any, self: Any, src: Any, /, arguments: tuple[Any, ...]) -> Any:
        out = np.array(self, order="C")
        part = part_of(np, out, *arguments)
        if part.shape != src.shape:
            raise RuntimeError(
                "expected src to have a size equal to the slice of self. "
                f"src size = {list(src.shape)}, slice size = {list(part.shape)}"
            )
        part[...] = src
        return out

    def hole(np: Any, self: Any, /, arguments: tuple[Any, ...]) -> Any:
        out = np.array(self, order="C")
        part_of(np, out, *arguments)[...] = 0
        return out

    scatter.__name__, hole.__name__ = name, name + "_hole"
    scatter.__doc__, hole.__doc__ = "A copy with another part.", "A copy with zeros in a part."
    made = op(backward=backward, function=False, method=False, linear=True)(scatter)
    zeroed = op(function=False, method=False, linear=True)(hole)

    def hole_rule(F: Any, g: Any, arguments: Any) -> Any:
        return getattr(F, name + "_hole")(g, arguments)

    def part_rule(F: Any, g: Any, arguments: Any) -> Any:
        return getattr(F, block.op.name)(g, *arguments)

    made.derivative(self=hole_rule, src=part_rule)
    zeroed.derivative(self=hole_rule)
    return made


select_scatter_block = _scatter_form("select_scatter_block", select_block, "SelectScatterBackward0")
slice_scatter_block = _scatter_form("slice_scatter_block", slice_block, "SliceScatterBackward0")
diagonal_scatter_block = _scatter_form("diagonal_scatter_block", diagonal_block, "DiagonalScatterBackward0")


@public()
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of the tensor with ``src`` at ``index`` of dimension ``dim``.

    >>> import retrograd as torch
    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    shape = input._array.shape
    at = dimension(dim, len(shape))
    if not -shape[at] <= index < shape[at]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {at}")
    return select_scatter_block(input, src, (at, index))


@public()
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1, *,
    out: Any = None,
) -> Tensor:  # fmt: skip
    """A copy of the tensor with ``src`` in the slice from ``start`` to below ``end`` of dimension ``dim``."""
    at = dimension(dim, input._array.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    first, last, _ = slice(start, end).indices(input._array.shape[at])
    return slice_scatter_block(input, src, (at, first, max(first, last), step))


@public()
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of the tensor with ``src`` on the diagonal of dimensions ``dim1`` and ``dim2``."""
    ndim = input._array.ndim
    first, second = dimension(dim1, ndim), dimension(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return diagonal_scatter_block(input, src, (offset, first, second))


@op(name="as_strided_scatter_block", backward="AsStridedScatterBackward0", function=False, method=False, linear=True)
def as_strided_scatter_block(np: Any, self: Any, src: Any, /, whole: StridedLayout, part: StridedLayout) -> Any:
    """A copy of ``self``, which lies in memory as ``whole``, with ``src`` where ``part`` shows that memory."""
    return strided_write.op.kernel(np, self, src, whole, part)


as_strided_scatter_block.derivative(
    self=lambda F, g, whole, part: F.strided_write(g, None, whole, part),
    src=lambda F, g, whole, part: F.strided_read(g, whole, part),
)


@public()
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A copy of the tensor with ``src`` in the elements that :func:`as_strided` shows with the same arguments."""
    shown = as_strided(input.detach(), size, stride, storage_offset)
    if shown._array.shape != src._array.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src._array.shape)}, slice size = "
            f"{list(shown._array.shape)}"
        )
    part = strided_layout(shown._array, input._array)
    return as_strided_scatter_block(input, src, strided_layout(input._array, input._array), part)


@op(view=True, name="slice_inverse_block", backward="SliceInverseBackward0", function=False, method=False, linear=True)
def slice_inverse_block(np: Any, self: Any, src: Any, /, whole: StridedLayout, part: StridedLayout) -> Any:
    """The memory of a slice shown as a whole tensor again."""
    return as_strided_block.op.kernel(np, self, part, whole)


slice_inverse_block.derivative(
    self=lambda F, g, whole, part: F.strided_read(g, whole, part),
    src=lambda F, g, whole, part: F.strided_write(g, None, whole, part),
)


@public()
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1, *,
    out: Any = None,
) -> Tensor:  # fmt: skip
    """The tensor of the shape of ``src`` of which ``input`` is the slice with these arguments, as a view of it."""
    if (special := batched((input, src))) is not None:
        raise special.refuse_out("slice_inverse")
    return slice_inverse_block(
        input, src, strided_layout(src._array, src._array), strided_layout(input._array, input._array)
    )
