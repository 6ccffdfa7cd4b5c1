"""Operations on the values of sparse tensors, in pairs of adjoints, and the products with dense matrices.

Note [Graphs of sparse tensors]. Only dense tensors are in the graph: a sparse tensor consists of constant indices and
of its values, a dense tensor, which has the gradient edge. Every function of sparse tensors is composed of operations
on values. Two of them are each other's adjoint: ``gather`` selects elements of a dense tensor by indices, and ``add_at``
adds elements at indices. So gradients of every order, ``vmap`` and forward mode need no rules for sparse tensors. PyTorch
has one node for each function, so each operation exists in several forms, whose nodes have different names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ..dispatch.declare import op
from ..kernels import indexing, sparse


def _gather(node: str) -> Callable[..., Any]:
    @op(function=False, method=False, name=f"sparse_gather_{node}", backward=node, linear=True, vmap="slices")
    def gather(np: Any, self: Any, index: Any, /, dims: int) -> Any:
        """Return the elements of ``self`` at ``index``, a 1-d tensor of flat indices into its first ``dims`` dimensions."""
        return self.reshape((math.prod(self.shape[:dims]), *self.shape[dims:]))[index]

    gather.derivative(
        self=lambda F, g, index, self_shape, dims: F.sparse_add_at_IndexAddBackward0(g, index, self_shape[:dims])
    )
    return gather


def _add_at(node: str) -> Callable[..., Any]:
    @op(
        function=False, method=False, name=f"sparse_add_at_{node}", backward=node, linear=True, vmap="slices", opmath=True
    )  # fmt: skip
    def add_at(np: Any, self: Any, index: Any, /, shape: tuple[int, ...]) -> Any:
        """Return zeros of the sizes ``shape`` and those of one row, to which the rows of ``self`` are added.

        ``index`` has the flat index of each row in ``shape``.
        """
        rows, count = self.shape[1:], math.prod(shape)
        result = np.zeros((count, *rows), self.dtype)
        if self.size:
            indexing.add(np, result, (index,), self)
        return result.reshape((*shape, *rows))

    add_at.derivative(self=lambda F, g, index, shape: F.sparse_gather_IndexSelectBackward0(g, index, len(shape)))
    return add_at


def _alias(node: str) -> Callable[..., Any]:
    @op(
        view=True, function=False, method=False, name=f"sparse_alias_{node}", backward=node, linear=True, vmap="leading"
    )
    def alias(np: Any, self: Any, /) -> Any:
        """Return a view of all elements of ``self``."""
        return self.view()

    alias.derivative(self=lambda F, g: g)
    return alias


def _product(node: str) -> Callable[..., Any]:
    @op(
        function=False, method=False, name=f"sparse_product_{node}", backward=node, linear="each", vmap="slices",
        opmath=True,
    )  # fmt: skip
    def product(np: Any, self: Any, rows: Any, columns: Any, other: Any, /, count: int) -> Any:
        """Return the product of a sparse matrix of ``count`` rows and ``other``, a dense matrix or vector.

        The sparse matrix has the elements ``self`` at ``rows`` and ``columns``; repeated elements are added.
        """
        return sparse.product(self, rows, columns, other, count)

    product.derivative(
        self=lambda F, g, rows, columns, other: F.sparse_sampled(g, other, rows, columns),
        other=lambda F, g, self, rows, columns, other_shape: F.sparse_product_MmBackward0(
            self, columns, rows, g, other_shape[0]
        ),
    )
    return product


def _sum_of_product(node: str) -> Callable[..., Any]:
    @op(function=False, method=False, name=f"sparse_addmm_{node}", backward=node, vmap="slices", opmath=True)
    def addmm(
        np: Any, bias: Any, self: Any, rows: Any, columns: Any, other: Any, /, count: int, beta: Any, alpha: Any
    ) -> Any:
        """Return ``beta * bias + alpha * A @ other`` for the sparse matrix ``A`` of ``sparse_product``.

        If ``beta`` is 0, ``bias`` is ignored, also where it is nan.
        """
        result = sparse.product(self, rows, columns, other, count)
        result = result if alpha == 1 else result * alpha
        added = np.broadcast_to(bias, result.shape)
        return result if beta == 0 else result + added if beta == 1 else result + added * beta

    addmm.derivative(
        bias=lambda F, g, beta: g * beta,
        self=lambda F, g, rows, columns, other, alpha: F.sparse_sampled(g * alpha, other, rows, columns),
        other=lambda F, g, self, rows, columns, other_shape, alpha: F.sparse_product_MmBackward0(
            self, columns, rows, g * alpha, other_shape[0]
        ),
    )
    return addmm


@op(function=False, method=False, name="sparse_sampled", backward="SparseSampledAddmmBackward0", linear="each",
    vmap="slices", opmath=True)  # fmt: skip
def sampled(np: Any, self: Any, other: Any, rows: Any, columns: Any, /) -> Any:
    """Return the elements of ``self @ other.T`` at ``rows`` and ``columns``; two vectors have the outer product."""
    return sparse.sampled(self, other, rows, columns)


sampled.derivative(
    self=lambda F, g, other, rows, columns, self_shape: F.sparse_product_MmBackward0(
        g, rows, columns, other, self_shape[0]
    ),
    other=lambda F, g, self, rows, columns, other_shape: F.sparse_product_MmBackward0(
        g, columns, rows, self, other_shape[0]
    ),
)


@op(function=False, method=False, name="sparse_softmax", backward="SparseSoftmaxBackward0", vmap="slices")
def softmax(np: Any, self: Any, group: Any, /, count: int) -> Any:
    """Return the softmax of the rows of ``self`` that have the same number in ``group``, column by column."""
    shifted = np.exp(self - sparse.maxima(self, group, count)[group])
    return shifted / indexing.add(np, np.zeros((count, *self.shape[1:]), self.dtype), (group,), shifted)[group]


softmax.derivative(
    self=lambda F, g, out, group, count: (
        out
        * (
            g
            - F.sparse_gather_IndexSelectBackward0(
                F.sparse_add_at_IndexAddBackward0(g * out, group, (count,)), group, 1
            )
        )
    )
)


@op(function=False, method=False, name="sparse_log_softmax", backward="SparseLogSoftmaxBackward0", vmap="slices")
def log_softmax(np: Any, self: Any, group: Any, /, count: int) -> Any:
    """Return the logarithm of the softmax of the rows of ``self`` that have the same number in ``group``."""
    shifted = self - sparse.maxima(self, group, count)[group]
    total = indexing.add(np, np.zeros((count, *self.shape[1:]), self.dtype), (group,), np.exp(shifted))
    return shifted - np.log(total)[group]


log_softmax.derivative(
    self=lambda F, g, out, group, count: (
        g
        - F.exp(out)
        * F.sparse_gather_IndexSelectBackward0(F.sparse_add_at_IndexAddBackward0(g, group, (count,)), group, 1)
    )
)


class Named:
    """Operation in several forms, whose graph nodes have different names: ``Named(_gather)["SelectBackward0"]``."""

    def __init__(self, create: Callable[[str], Callable[..., Any]], first: str) -> None:
        self.create, self.forms = create, {first: create(first)}

    def __getitem__(self, node: str) -> Callable[..., Any]:
        if node not in self.forms:
            self.forms[node] = self.create(node)
        return self.forms[node]


GATHER, ADD_AT, ALIAS = (
    Named(_gather, "IndexSelectBackward0"),
    Named(_add_at, "IndexAddBackward0"),
    Named(_alias, "ValuesBackward0"),
)
PRODUCT, ADDMM = Named(_product, "MmBackward0"), Named(_sum_of_product, "AddmmBackward0")
INT = numpy.dtype(numpy.int64)

__all__ = ["ADDMM", "ADD_AT", "ALIAS", "GATHER", "INT", "PRODUCT", "log_softmax", "sampled", "softmax"]
