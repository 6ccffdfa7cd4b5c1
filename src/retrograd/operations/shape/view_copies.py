"""View functions that copy: ``*_copy`` (such as ``transpose_copy``) and ``*_scatter`` (such as ``slice_scatter``).

``*_copy`` returns the elements of a view as a new contiguous tensor. ``*_scatter`` returns a copy of the whole tensor
in which the elements of the view are replaced.
"""

from __future__ import annotations

from typing import Any

from ...core.grad_mode import recording
from ...core.graph import OutputEdge
from ...core.tensor import Tensor, contiguous_format, normalize_dim, wrap
from ...core.views import StridedLayout, strided_layout
from ...dispatch.declare import op, public
from ...dispatch.transform_tensor import TransformTensor, innermost_batch
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
from .views import alias, expand_method, permute, renamed_node_class, squeeze, t, transpose, unsqueeze, view

# -- Copies ----------------------------------------------------------------------------------------------------------


def slice_(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """Return the view ``input[start:end:step]``, where the slice is taken along dimension ``dim``."""
    at = normalize_dim(dim, input._array.ndim)
    if not input._array.ndim:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    first, last, _ = slice(start, end).indices(input._array.shape[at])
    return slice_block(input, at, first, max(first, last), step)


def copy_of_view(shown: Tensor, input: Tensor) -> Tensor:
    """Return a contiguous copy of ``shown``, a view of ``input``, for functions such as ``transpose_copy``.

    The copy gets the ``grad_fn`` of the view. The class of this node is replaced by a subclass whose name ends with
    ``_copy``, because PyTorch uses such names.
    """
    if isinstance(shown, TransformTensor):
        return clone(shown, memory_format=contiguous_format)
    out = wrap(shown._array.copy(order="C"))
    edge = shown._grad_edge
    if recording() and edge is not None and edge is not input._grad_edge:
        node = edge.node if edge.__class__ is OutputEdge else edge
        if not node.__class__.__name__.endswith("_copy"):
            node.__class__ = renamed_node_class(node.__class__, node.__class__.__name__ + "_copy")
        out._grad_edge = edge
    return out


def _copy_form(name: str, of: Any) -> None:
    """Define the function ``name``, such as ``transpose_copy``, which returns a copy of a view.

    ``of`` is the view function, such as ``transpose``. If it returns several views, each of them is copied.
    """

    def copy_form(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        shown = of(input, *args, **kwargs)
        if isinstance(shown, Tensor):
            return copy_of_view(shown, input)
        return tuple(copy_of_view(each, input) for each in shown)

    copy_form.__name__ = copy_form.__qualname__ = name
    copy_form.__doc__ = (
        f"Return a copy of the view that :func:`{name.removesuffix('_copy')}` returns, with the same arguments."
    )
    public(method=False, name=name)(copy_form)


def _view_as_complex_without_graph(input: Tensor) -> Tensor:
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
    "view": view, "view_as_complex": _view_as_complex_without_graph, "view_as_real": view_as_real,
}.items():  # fmt: skip
    _copy_form(_name + "_copy", _function)


@public()
def narrow_copy(input: Tensor, dim: int, start: int, length: int, *, out: Any = None) -> Tensor:
    """Return a copy of ``length`` consecutive elements of ``input`` along ``dim``, from index ``start`` on.

    >>> import retrograd as torch
    >>> torch.narrow_copy(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    shown = narrow(input, dim, start, length)
    result = copy_of_view(shown, input)
    if result._grad_edge is not None:
        result._grad_edge.__class__ = renamed_node_class(type(result._grad_edge), "NarrowCopyBackward0")
    return result


# -- Copies with a part replaced -------------------------------------------------------------------------------------


def _scatter_form(name: str, block: Any, backward: str) -> Any:
    """Return a new operation, which copies ``self`` and writes ``src`` to the elements that a view selects.

    ``name`` is the name of the operation, and ``backward`` the name of its autograd node. ``block`` is the operation
    that returns the view, such as ``select_block``. A second operation, whose name is ``name`` followed by ``_hole``,
    writes zeros instead of ``src``. It computes the gradient with respect to ``self``.
    """
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
    scatter.__doc__, hole.__doc__ = (
        "Return a copy of ``self`` with ``src`` written to the elements of a view.",
        "Return a copy of ``self`` with zeros written to the elements of a view.",
    )
    declared = op(backward=backward, function=False, method=False, linear=True)(scatter)
    zeroed = op(function=False, method=False, linear=True)(hole)

    def hole_rule(F: Any, g: Any, arguments: Any) -> Any:
        return getattr(F, name + "_hole")(g, arguments)

    def part_rule(F: Any, g: Any, arguments: Any) -> Any:
        return getattr(F, block.op.name)(g, *arguments)

    declared.derivative(self=hole_rule, src=part_rule)
    zeroed.derivative(self=hole_rule)
    return declared


select_scatter_block = _scatter_form("select_scatter_block", select_block, "SelectScatterBackward0")
slice_scatter_block = _scatter_form("slice_scatter_block", slice_block, "SliceScatterBackward0")
diagonal_scatter_block = _scatter_form("diagonal_scatter_block", diagonal_block, "DiagonalScatterBackward0")


@public()
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy of ``input`` with ``src`` written at ``index`` of dimension ``dim``.

    >>> import retrograd as torch
    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    shape = input._array.shape
    at = normalize_dim(dim, len(shape))
    if not -shape[at] <= index < shape[at]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {at}")
    return select_scatter_block(input, src, (at, index))


@public()
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1, *,
    out: Any = None,
) -> Tensor:  # fmt: skip
    """Return a copy of ``input`` with ``src`` written to the slice ``start:end:step`` of dimension ``dim``.

    >>> import retrograd as torch
    >>> torch.slice_scatter(torch.zeros(5), torch.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0., 0.])
    """
    at = normalize_dim(dim, input._array.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    first, last, _ = slice(start, end).indices(input._array.shape[at])
    return slice_scatter_block(input, src, (at, first, max(first, last), step))


@public()
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a copy of ``input`` with ``src`` written to the diagonal of dimensions ``dim1`` and ``dim2``.

    ``offset`` selects the diagonal: 0 is the main diagonal, positive numbers are above it, negative numbers below.

    >>> import retrograd as torch
    >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    ndim = input._array.ndim
    first, second = normalize_dim(dim1, ndim), normalize_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return diagonal_scatter_block(input, src, (offset, first, second))


@op(name="as_strided_scatter_block", backward="AsStridedScatterBackward0", function=False, method=False, linear=True)
def as_strided_scatter_block(np: Any, self: Any, src: Any, /, whole: StridedLayout, part: StridedLayout) -> Any:
    """Return a copy of ``self`` with ``src`` written to the elements that ``as_strided`` selects.

    ``part`` holds the shape, strides and storage offset of these elements, and ``whole`` those of ``self``.
    """
    return strided_write.op.kernel(np, self, src, whole, part)


as_strided_scatter_block.derivative(
    self=lambda F, g, whole, part: F.strided_write(g, None, whole, part),
    src=lambda F, g, whole, part: F.strided_read(g, whole, part),
)


@public()
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Return a copy of ``input`` with ``src`` written to the elements that :func:`as_strided` selects.

    ``size``, ``stride`` and ``storage_offset`` are the arguments of :func:`as_strided`.
    """
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
    """Return the tensor from which the slice ``self`` was taken, as a view of the storage of ``self``.

    ``whole`` holds the shape, strides and storage offset of the result, and ``part`` holds those of ``self``. The
    elements of ``src`` are not used. It is an operand because PyTorch also computes a gradient with respect to ``src``.
    """
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
    """Return the tensor from which the slice ``input`` was taken, as a view of the storage of ``input``.

    The view has the shape, strides and storage offset of ``src``. ``dim``, ``start``, ``end`` and ``step`` describe the
    slice and have no effect.

    >>> import retrograd as torch
    >>> x = torch.arange(4)
    >>> torch.slice_inverse(x[1:3], x, 0, 1, 3, 1)
    tensor([0, 1, 2, 3])
    """
    if (special := innermost_batch((input, src))) is not None:
        raise special.refuse_out("slice_inverse")
    return slice_inverse_block(
        input, src, strided_layout(src._array, src._array), strided_layout(input._array, input._array)
    )
