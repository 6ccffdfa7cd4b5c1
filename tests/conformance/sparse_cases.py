"""Calls of functions of sparse tensors, with results, printed text, gradients and errors; and random sparse tensors.

``CALLS`` are expressions of tensors that :func:`namespace` creates for each call. The answer has the text of the
result (its kind alone if an error is retrograd's own), and the gradients at the stored elements. PyTorch gives some
gradients of sparse tensors as dense tensors, or with other indices; what is compared are their elements at the indices
of the tensor. ``None`` is a gradient that PyTorch cannot compute.
"""

from __future__ import annotations

import math
import warnings
from types import ModuleType
from typing import Any

import numpy

#: Functions of the leaves L (coalesced), U (uncoalesced, with repeated indices), K (another pattern), H (hybrid, with a
#: dense dimension), C (compressed rows), B (compressed columns), and of the dense D (2, 3), E (3, 4) and V (3).
CALLS = """
L + K|L - K|L.add(K, alpha=3)|torch.sub(L, K, alpha=2)|D + L|D - L|torch.add(D, K, alpha=3)|D + U|C + D|C + C|L + L.double()
L * D|D * L|U * D|L * K|L * 2|2 * L|U * 2.5|L / 2|U / 2|L * V|H * torch.ones(2, 2, 3)|H * V|L * torch.tensor(2.0)|C * 2|C * D|C * C
L / torch.tensor(2)|H + H|H - H|H * 2|-H|L * True
-L|-U|L.abs()|U.abs()|L.sin()|U.sin()|L.sqrt()|L.tanh()|L.relu()|L.floor()|L.round()|L.sgn()|L.sign()|L.neg()|L ** 2|U ** 2|L.square()
L.asin().isnan()|L.erf()|L.expm1()|L.log1p()|L.trunc()|L.ceil()|L.frac()|L.rad2deg()|L.deg2rad()|L.isnan()|L.isinf()|L.signbit()
L.nan_to_num()|L.atan()|L.asinh()|L.sinh()|L.tan()|-C|C.sin()|C.abs()|abs(L)|+L|L.floor_divide(2).detach()|L.pow(3)|torch.nn.functional.relu(L)
L.pow(0)|L.exp()|L.cos()|L + D|L - D|L + 1|L / D|L / K|2 / L|L == K|L.max()|L.mean()|L.softmax(1)|L.reshape(3, 2)|L.view(3, 2)
L.expand(2, 2, 3)|L.nonzero()|L[0:1, ::2]|L[torch.tensor([0, 1])]|torch.where(D > 0, L, L)|L.masked_fill(D > 0, 1.0)|torch.exp(L)
torch.ones_like(L)|torch.rand_like(L)|torch.equal(L, L)|torch.allclose(L, L)|L.clamp(0)|L.unique()|L.diagonal()|torch.diag(L)
torch.nn.functional.dropout(L)|torch.nn.functional.layer_norm(L, (3,))|torch.fft.fft(L)|torch.linalg.norm(L)|torch.cdist(L, D)
torch.einsum('ij,jk->ik', L, E)|torch.flatten(L)|L.repeat(2, 2)|torch.flip(L, [0])|torch.cumsum(L, 0)|torch.sort(L)|L.argmax()
L.sum()|U.sum()|H.sum()|L.sum(0)|L.sum(dim=1)|L.sum(1, keepdim=True)|H.sum(0)|H.sum(2)|H.sum((0, 2))|torch.sum(L)|C.sum()|C.sum(1, keepdim=True)
C.sum(0)|L.sum(dtype=torch.float64)|U.sum(0)|L.sum((0, 1)).detach()|H.sum((0, 1)).detach()|H.sum((0, 1, 2)).detach()|H.sum((1, 2), keepdim=True).detach()
L.detach().int().sum(0)|torch.sparse.sum(L.detach().int(), 0)|L.sum((0, 1), keepdim=True).detach()|torch.sparse_coo_tensor((2, 3)).coalesce()
torch.sparse_coo_tensor((2, 3)) @ torch.ones(3, 2)|torch.sparse.softmax(torch.sparse_coo_tensor((2, 3)), 1)|torch.sparse_coo_tensor((0, 3)).to_dense()
torch.sparse_coo_tensor([[0, 0]], [True, True], (2,)).coalesce()|torch.sparse_coo_tensor([[0, 0]], [1 + 2j, 3j], (2,)).to_dense()
torch.sparse.sum(L)|torch.sparse.sum(L, 0)|torch.sparse.sum(L, [0, 1])|torch.sparse.sum(L, 0, dtype=torch.float64)|torch.sparse.sum(H, 2)
torch.sparse.sum(H, (0, 1))|torch.sparse.sum(U, 1)|torch.sparse.sum(H, 1)|torch.sparse.sum(H)|torch.sparse.sum(L, 5)|torch.sparse.sum(D)
torch.sparse.softmax(L, 1)|torch.sparse.softmax(U, 1)|torch.sparse.softmax(L, 0)|torch.sparse.log_softmax(L, 0)|torch.sparse.log_softmax(U, 1)
torch.sparse.softmax(H, 2)|torch.sparse.softmax(H, 0)|torch.sparse.softmax(L, 1, dtype=torch.float64)
L.t()|U.transpose(0, 1)|L.permute(1, 0)|L.T|L.mT|H.transpose(0, 1)|H.transpose(0, 2)|C.t()|C.transpose(0, 1)|C.t().to_sparse_csr()|L.transpose(0, 0)
torch.cat([L, K])|torch.cat([L, K], 1)|torch.cat([H, H])|torch.cat([H, H], 2)|torch.stack([L, K])|torch.stack([L, K], 2)|torch.cat([L, D])
torch.stack([L, D])|torch.cat([L, L.t()])
L.index_select(0, torch.tensor([1, 1]))|L.index_select(1, torch.tensor([2, 0]))|H.index_select(2, torch.tensor([2, 0]))|L.select(0, 1)|L[1]
L[0]|L[:, 2]|L[0, 2]|L[0, 0]|H[0]|H[0, 1]|L[None]|L.unsqueeze(0)|L.unsqueeze(2)|H.select(2, 1)|L.select(0, 5)|C[0]|C[0, 1]|L[-1]
L.narrow_copy(1, 1, 2)|list(L)[1].detach()|len(L)|L.unsqueeze(1)
L.clone()|L.detach()|L.coalesce()|U.coalesce()|U.coalesce().values()|L.values()|L.indices()|U.values()|U.indices()|U._indices()|U._values()
U._nnz()|L._nnz()|C._nnz()|L.is_coalesced()|U.is_coalesced()|L.sparse_dim()|H.dense_dim()|H.sparse_dim()|D.sparse_dim()|D.dense_dim()
C.crow_indices()|C.col_indices()|C.values()|B.ccol_indices()|B.row_indices()|C.ccol_indices()|B.crow_indices()|C.indices()|C.coalesce()
C.is_coalesced()|D.coalesce()|D.is_coalesced()|D.indices()|D.values()|D.crow_indices()|L.crow_indices()
L.to_dense()|U.to_dense()|H.to_dense()|C.to_dense()|B.to_dense()|D.to_dense()
L.to_sparse()|L.to_sparse(1)|L.to_sparse(2)|L.to_sparse(layout=torch.sparse_csr).detach()|C.to_sparse_coo().detach()|C.to_sparse().detach()
C.to_sparse_csc().detach()|B.to_sparse_csr().detach()|U.to_sparse_csr().detach()|L.to_sparse_csc().detach()|D.to_sparse()|D.to_sparse(1)
D.to_sparse(2)|D.to_sparse(3)|D.to_sparse(0)|D.to_sparse(-1)|D.detach().to_sparse_csr()|D.detach().to_sparse_csc()|D.detach().to_sparse_coo()
D.detach().to_sparse(layout=torch.sparse_csr)|torch.tensor(5.0).to_sparse()|torch.zeros(2, 0).to_sparse()|torch.zeros(0, 2).to_sparse_csr()
H.detach().to_sparse_csr()|torch.tensor([[0, 1], [2, 0]]).to_sparse()|torch.tensor([True, False]).to_sparse()
L.to(torch.float64)|L.double()|L.float()|L.half().detach()|L.int()|L.long()|L.bool()|L.to(torch.int32)|C.double().detach()|L.to(D)|L.cpu()|L.type()
L.layout|C.layout|B.layout|D.layout|L.is_sparse|C.is_sparse|L.is_sparse_csr|C.is_sparse_csr|L.shape|L.size(1)|L.dim()|L.ndim|L.numel()|L.dtype
L.device|L.element_size()|L.itemsize|L.stride()|L.storage_offset()|L.is_contiguous()|L.is_floating_point()|L.is_complex()|C.stride()|L.nbytes
L.requires_grad|L.is_leaf|L.grad_fn|L.numpy()|C.numpy()|L.tolist()|L.item()|bool(L)|L.data_ptr()|L.contiguous()|numpy.asarray(L)|L.is_cuda
torch.mm(L, E)|L @ E|L.matmul(E)|torch.matmul(L, E)|torch.sparse.mm(L, E)|torch.sparse.mm(U, E)|torch.spmm(L, E)|torch.mm(U, E)|L.mm(E)|C @ E|B @ E
torch.mm(C, E)|torch.sparse.mm(C, E)|D @ L.detach().t()|D.t().detach() @ L.detach()|torch.sparse.mm(L, K.t())|L @ K.t()|torch.mm(U, K.t())|torch.sparse.mm(L, L.t())
C.detach() @ C.detach().t().to_sparse_csr()|torch.sparse.addmm(torch.ones(2, 4), L, E)|torch.sparse.addmm(torch.ones(2, 4), L, E, beta=2, alpha=3)
torch.addmm(torch.ones(2, 4), L, E)|torch.addmm(torch.ones(2, 4), L, E, beta=0.5, alpha=2)|torch.addmm(torch.ones(2, 4), C, E)
torch.mv(L, V)|L @ V|L.mv(V)|C @ V|torch.mv(U, V)|torch.smm(L.detach(), E.detach())|torch.mm(L, D)|torch.sparse.mm(L, D)|torch.mm(L, E.double())
torch.mm(L, L)|torch.mv(L, torch.ones(2))|torch.bmm(torch.stack([L, K]), torch.ones(2, 3, 4))|torch.sspaddmm(torch.sparse_coo_tensor((2, 4)), L.detach(), E.detach())
torch.matmul(L, torch.ones(2, 3, 4)).detach()|torch.matmul(torch.ones(2, 4, 2), L.detach())|torch.nn.functional.linear(D.detach(), L).detach()
torch.sparse.sampled_addmm(C.detach(), torch.ones(2, 4), torch.ones(4, 3))|torch.sparse.sampled_addmm(C.detach(), torch.ones(2, 4), torch.ones(4, 3), beta=2.0, alpha=3.0)
D.sparse_mask(L)|L.sparse_mask(K)|U.detach().coalesce().sparse_mask(K)|D.sparse_mask(H)|D.sparse_mask(D)
L.norm().detach()|L.norm(1).detach()|torch.norm(L).detach()|U.norm().detach()|L.any()|torch.zeros_like(L)|torch.empty_like(L)|L.new_zeros((2, 2))|torch.zeros_like(C)
torch.zeros_like(L, dtype=torch.int64)|torch.is_same_size(L, K)|torch.is_tensor(L)|torch.is_floating_point(L)|L.is_same_size(E)
L.mul_(2)|L.zero_()|L.add_(K)|L.detach().clone().mul_(2)|L.detach().clone().add_(K.detach())|L.detach().clone().zero_()|L.detach().clone().sub_(K.detach())
L.detach().clone().div_(2)|L.detach().clone().neg_()|L.detach().clone().abs_()|L.detach().clone().copy_(K.detach())|L.detach().clone().sin_()
D.detach().clone().add_(K.detach())|D.detach().clone().add_(U.detach(), alpha=2)|D.detach().clone().sub_(K.detach())|L.detach().clone().add_(D)
torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0, 1]), (3, 3))|torch.sparse.spdiags(torch.arange(6.0).reshape(2, 3), torch.tensor([0, -1]), (3, 4))
torch.nn.Parameter(L.detach())|torch.sparse_coo|torch.sparse_csr|torch.sparse_csc|str(L)|repr(U.coalesce())
"""

#: Calls of functions that create sparse tensors; the answer is the text or the error.
CREATION = """
torch.sparse_coo_tensor(i, v, (2, 3))|torch.sparse_coo_tensor(i, v)|torch.sparse_coo_tensor(i, v, (2, 3), requires_grad=True)
torch.sparse_coo_tensor(i, v, (2, 3), dtype=torch.float64)|torch.sparse_coo_tensor((2, 3))|torch.sparse_coo_tensor([2, 3])
torch.sparse_coo_tensor([[0], [1]], [[1, 2]], (2, 3, 2))|torch.sparse_coo_tensor([[0], [1]], torch.ones(1, 0), (2, 3, 0))
torch.sparse_coo_tensor(torch.zeros(2, 40, dtype=torch.long), torch.arange(40.0) / 3, (2, 3))|torch.sparse_coo_tensor(i, v * 1j, (2, 3))
torch.sparse_coo_tensor([[0, 1], [0, 5]], [1.0, 2.0], (2, 3))|torch.sparse_coo_tensor([[0, 1], [0, 5]], [1.0, 2.0], (2, 3), check_invariants=True)
torch.sparse_coo_tensor([[0, -1], [0, 1]], [1.0, 2.0])|torch.sparse_coo_tensor([[0, -1], [0, 1]], [1.0, 2.0], (2, 3))
torch.sparse_coo_tensor([[0, 1], [0, 1]], [1.0, 2.0, 3.0])|torch.sparse_coo_tensor([[0, 1], [0, 1]], [1.0, 2.0, 3.0], (2, 3))
torch.sparse_coo_tensor([[0, 1], [0, 1]], [1.0, 2.0], (2, 3, 4))|torch.sparse_coo_tensor([[0, 1], [0, 1]], [1.0, 2.0], (2,))
torch.sparse_coo_tensor([[0, 1], [0, 1]], [[1.0, 2.0], [3.0, 4]], (2, 3, 4))|torch.sparse_coo_tensor([0, 1], [1.0, 2.0])
torch.sparse_coo_tensor([0, 1], [1.0, 2.0], (3,))|torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,))|torch.sparse_coo_tensor([[0, 1]], 5.0, (3,))
torch.sparse_coo_tensor([[0]], 5.0, (3,))|torch.sparse_coo_tensor(torch.zeros(0, 1, dtype=torch.long), [5.0], ())
torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.long), [])|torch.sparse_coo_tensor([[0, 1]], [1, 2], (3,), dtype=torch.float16)
torch.sparse_coo_tensor([[0, 1]], [1, 2], (3,), requires_grad=True)|torch.sparse_coo_tensor([[0, 1]], [True, False], (3,))
torch.sparse_coo_tensor([[0, 1]], [1.0, 2], (3,), is_coalesced=True)|torch.sparse_coo_tensor([[0, 0]], [1.0, 2], (3,), is_coalesced=True, check_invariants=True)
torch.sparse_coo_tensor(i.int(), v, (2, 3))|torch.sparse_coo_tensor(i, v.requires_grad_(), (2, 3))|torch.sparse_coo_tensor([[0, 1]], v[:2], (3,), is_coalesced=True).is_coalesced()
torch.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3))|torch.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0])
torch.sparse_csr_tensor(torch.tensor([0, 2, 3], dtype=torch.int32), torch.tensor([0, 2, 1], dtype=torch.int32), [1.0, 2.0, 3.0], (2, 3), requires_grad=True)
torch.sparse_csc_tensor([0, 1, 2, 3], [0, 1, 0], [1.0, 3.0, 2.0], (2, 3))|torch.sparse_csr_tensor([0, 2, 3], [0, 2, 1], v, (2, 3), dtype=torch.float64)
torch.sparse_compressed_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3), layout=torch.sparse_csr)
torch.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [[1.0, 1], [2.0, 2], [3.0, 3]], (2, 3, 2))
torch.sparse_csr_tensor([0, 2, 4], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([1, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 2, 3], [2, 0, 1], [1.0, 2.0, 3.0], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 2, 3], [2, 0, 1], [1.0, 2.0, 3.0], (2, 3))
torch.sparse_csr_tensor([0, 2, 3], [0, 5, 1], [1.0, 2.0, 3.0], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 2, 1, 3], [0, 2, 1], [1.0, 2.0, 3.0], (3, 3), check_invariants=True)
torch.sparse.check_sparse_tensor_invariants.is_enabled()|torch.sparse.check_sparse_tensor_invariants()(torch.sparse_coo_tensor)([[0, 1], [0, 5]], [1.0, 2.0], (2, 3))
"""

#: Random tensors: functions of ``a`` and ``b`` (sparse, of the same shape) and of ``d`` (dense).
PROGRAMS = (
    "a", "a.coalesce()", "a + b", "a - b", "d + a", "a * b", "a * d", "a * 3", "-a", "a.sin()", "a ** 2",
    "a.sum()", "torch.sparse.sum(a, 0)", "torch.sparse.sum(a, -1)", "a.transpose(0, 1)", "torch.cat([a, b], 0)",
    "torch.stack([a, b])", "a.index_select(0, i)", "a.select(0, 0)", "d.sparse_mask(a.coalesce())", "a.clone()",
    "torch.sparse.softmax(a, 0)", "torch.sparse.log_softmax(a, 1)", "d.to_sparse(1)", "d.to_sparse()", "a.to_sparse_csr()",
    "a.to_sparse_csc().to_sparse_coo()", "torch.sparse.mm(a, e)", "torch.mm(a, b.t())", "torch.mv(a, e[:, 0])", "a.double()",
    "torch.sparse.addmm(f, a, e, beta=2, alpha=3)", "a.to_sparse_csr() @ e", "(a.to_sparse_csr() @ b.t().to_sparse_csr())",
)  # fmt: skip


def split(text: str) -> list[str]:
    return [call for line in text.strip().splitlines() for call in line.split("|")]


CALLS_LIST, CREATION_LIST = split(CALLS), split(CREATION)
LEAVES = "LUKHCBDEV"
#: Number of random cases that are recorded.
COUNT = 170


def namespace(torch: ModuleType) -> dict[str, Any]:
    """Return the leaves of the calls."""

    def coo(indices: Any, values: Any, size: tuple[int, ...], coalesced: bool) -> Any:
        made = torch.sparse_coo_tensor(torch.tensor(indices), torch.tensor(values), size)
        return (made.coalesce() if coalesced else made).requires_grad_()

    return {
        "torch": torch,
        "numpy": numpy,
        "L": coo([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), True),
        "U": coo([[0, 1, 1, 1], [2, 0, 2, 0]], [3.0, 4.0, 5.0, 6.0], (2, 3), False),
        "K": coo([[0, 0], [2, 0]], [1.0, 2.0], (2, 3), True),
        "H": coo([[0, 1], [1, 0]], [[1.0, 2.0, 3.0], [-1.0, 0.5, 2.5]], (2, 2, 3), True),
        "C": torch.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3), requires_grad=True),
        "B": torch.sparse_csc_tensor([0, 1, 2, 3], [0, 1, 0], [1.0, 3.0, 2.0], (2, 3), requires_grad=True),
        "D": torch.arange(6.0).reshape(2, 3).requires_grad_(),
        "E": torch.arange(12.0).reshape(3, 4).requires_grad_(),
        "V": torch.tensor([1.0, -2.0, 3.0], requires_grad=True),
    }


def answer(torch: ModuleType, call: str) -> list[Any]:
    """Return the text of the result or the error of ``call``, and the gradients of the leaves if it has a node."""
    names = namespace(torch)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(call, names)
    except Exception as error:
        return [failure(error), None]
    text = repr(result)
    if not isinstance(result, torch.Tensor) or result.grad_fn is None:
        return [text, None]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            weighted(torch, result).backward()
    except Exception:
        return [text, None]
    return [text, {name: gradient(names[name]) for name in LEAVES if names[name].grad is not None}]


def created(torch: ModuleType, call: str) -> str:
    """Return the text of the result or the error of ``call``, one of ``CREATION_LIST``."""
    names = {"torch": torch, "i": torch.tensor([[0, 1, 1], [2, 0, 2]]), "v": torch.tensor([3.0, 4.0, 5.0])}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return repr(eval(call, names))
    except Exception as error:
        return failure(error)


def failure(error: Exception) -> str:
    """Return the text of an error; only the kind of those that name PyTorch's backends, or retrograd's remedies."""
    text = str(error)
    own = isinstance(error, NotImplementedError) or any(each in text for each in _VAGUE)
    text = "" if own else text.splitlines()[0].partition(" Remedy:")[0].partition(" (see ")[0]
    kind = "RuntimeError" if isinstance(error, RuntimeError) else type(error).__name__
    return f"{kind}: {text}"


#: Parts of PyTorch's errors for functions that sparse tensors do not have.
_VAGUE = (
    "but expected one of", "is not implemented for sparse", "is unsupported for Sparse", "unsupported memory format option",
)  # fmt: skip


def weighted(torch: ModuleType, result: Any) -> Any:
    """Return the sum of the elements of ``result`` times 1, 2, 3 …; those of a compressed tensor have the factor 1."""
    if result.layout is not torch.strided:
        if result.layout is torch.sparse_coo and result.dtype.is_floating_point:
            flat = torch.arange(1.0, result.numel() + 1, dtype=result.dtype).reshape(result.shape)
            return torch.sparse.sum(result * flat)
        return result.to_dense().sum()
    return (result * torch.arange(1.0, result.numel() + 1, dtype=result.dtype).reshape(result.shape)).sum()


def gradient(x: Any) -> list[float]:
    """Return the elements of the gradient of ``x`` at the indices of ``x`` as a list."""
    layout, grad = str(x.layout), x.grad.detach()
    dense = grad if str(grad.layout) == "torch.strided" else grad.to_dense()
    if layout != "torch.strided":
        kept = x.detach().to_dense()
        mask = kept != 0
        dense = dense[mask]
    return [round(float(each), 4) for each in dense.reshape(-1)]


# -- Random tensors --------------------------------------------------------------------------------------------------


def program(seed: int) -> dict[str, Any]:
    """Return the arrays and the expression of random case ``seed``."""
    rng = numpy.random.default_rng(seed)
    expression = PROGRAMS[seed % len(PROGRAMS)]
    flat = any(each in expression for each in ("mm", "mv", "csr", "csc", "@"))
    dense = 0 if flat else int(rng.integers(0, 2))
    outer = tuple(int(each) for each in rng.integers(1, 6, 2 if flat else int(rng.integers(2, 4))))
    inner = tuple(int(each) for each in rng.integers(1, 4, dense))
    if "log_softmax(a, 1)" in expression or "sum(a, -1)" in expression:
        inner = ()

    def tensor() -> Any:
        count = int(rng.integers(0, 2 * math.prod(outer) + 1)) if rng.random() > 0.1 else 0
        indices = numpy.stack([rng.integers(0, size, count) for size in outer])
        return indices, rng.integers(-4, 5, (count, *inner)) / 2.0

    return {
        "expression": expression, "shape": (*outer, *inner), "a": tensor(), "b": tensor(),
        "d": rng.integers(-1, 2, (*outer, *inner)) * 1.5, "e": rng.integers(-4, 5, (outer[-1], 3)) / 2.0,
        "f": rng.integers(-4, 5, (outer[0], 3)) / 2.0, "i": rng.integers(0, outer[0], 4),
        "dtype": ("float32", "float64")[int(rng.integers(0, 2))], "coalesced": bool(rng.integers(0, 2)),
    }  # fmt: skip


def run_program(torch: ModuleType, seed: int) -> list[Any]:
    """Return layout, dtype, shape and dense elements of the result of random case ``seed``, and its gradients."""
    case = program(seed)
    dtype = getattr(torch, case["dtype"])
    names: dict[str, Any] = {"torch": torch, "i": torch.tensor(case["i"])}
    for name in "ab":
        indices, values = case[name]
        made = torch.sparse_coo_tensor(torch.tensor(indices), torch.tensor(values, dtype=dtype), case["shape"])
        names[name] = (made.coalesce() if case["coalesced"] else made).requires_grad_()
    for name in "def":
        names[name] = torch.tensor(case[name], dtype=dtype).requires_grad_()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(case["expression"], names)
    except Exception as error:
        return [failure(error)]
    dense = result if str(result.layout) == "torch.strided" else result.to_dense()
    elements = [round(float(each), 4) for each in dense.detach().reshape(-1)]
    return [str(result.layout), str(result.dtype), list(result.shape), elements]


# -- Sparse gradients ------------------------------------------------------------------------------------------------

#: Optimizers of a table with sparse gradients; those that do not support them raise.
OPTIMIZERS = """
SGD(p, lr=0.1)|SGD(p, lr=0.1, momentum=0.9)|SGD(p, lr=0.1, momentum=0.9, nesterov=True)|SGD(p, lr=0.1, momentum=0.5, dampening=0.3, maximize=True)
SGD(p, lr=0.1, weight_decay=0.1)|Adagrad(p, lr=0.1)|Adagrad(p, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.2, maximize=True)
Adagrad(p, weight_decay=0.1)|SparseAdam(p, lr=0.1)|SparseAdam(p, lr=0.1, betas=(0.8, 0.9), maximize=True)|SparseAdam(p, lr=-1.0)
SparseAdam(p, betas=(1.0, 0.9))|SparseAdam(p, eps=-1.0)|Adam(p)|AdamW(p)|RMSprop(p)|Adadelta(p)|NAdam(p)|RAdam(p)|Adamax(p)|ASGD(p)|Rprop(p)
Adafactor(p)|Muon(p)|LBFGS(p, lr=0.1, max_iter=3)
"""
TABLES = (
    "Embedding(6, 3, sparse=True)", "Embedding(6, 3, sparse=True, padding_idx=2)",
    "EmbeddingBag(6, 3, sparse=True, mode='sum')", "EmbeddingBag(6, 3, sparse=True, mode='mean')",
)  # fmt: skip


def train(torch: ModuleType, optimizer: str, table: str) -> list[Any]:
    """Return the text of the second gradient, the weights after four steps, and the entries of the state."""
    module = eval(f"torch.nn.{table}", {"torch": torch})
    with torch.no_grad():
        module.weight.copy_(torch.arange(18.0).reshape(6, 3) / 7 - 1)
    try:
        made = eval(f"torch.optim.{optimizer}", {"torch": torch, "p": list(module.parameters())})
        text = ""
        for step in range(4):

            def closure(step: int = step) -> Any:
                made.zero_grad()
                rows = module(torch.tensor([[0, step, 2], [step, 5, 0]]))
                loss = (rows * rows).sum() + (rows * torch.arange(3)).sum()
                loss.backward()
                return loss

            if "LBFGS" in optimizer:
                made.step(closure)
                continue
            closure()
            text = repr(module.weight.grad) if step == 1 else text
            made.step()
    except Exception as error:
        return [failure(error)]
    weights = [round(float(each), 4) for each in module.weight.detach().reshape(-1)]
    return [text, weights, sorted(made.state_dict()["state"].get(0, {}))]


__all__ = [
    "CALLS_LIST", "COUNT", "CREATION_LIST", "OPTIMIZERS", "TABLES", "answer", "created", "program", "run_program", "split", "train",
]  # fmt: skip
