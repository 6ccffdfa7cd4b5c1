"""Calls of ``torch.masked``: functions with a mask, and masked tensors, with texts, gradients and errors.

``FUNCTIONS`` are the combinations of functions and arguments, ``CALLS`` expressions of the tensors that
:func:`namespace` creates for each call. The answer has the text of the result, and the gradients of the leaves.
"""

from __future__ import annotations

import itertools
import math
import warnings
from types import ModuleType
from typing import Any

#: Functions of the leaf X (2, 3, 4) and the masks: M of its shape with a fully masked row, W (4), N without any element.
ARGUMENTS = {
    "reduction": ["", "0", "1", "-1", "(0, 2)", "1, keepdim=True", "2, dtype=torch.float64", "()"],
    "index": ["", "0", "-1", "1, keepdim=True", "0, dtype=torch.int32"],
    "along": ["0", "1", "-1", "2, dtype=torch.float64"],
    "median": ["", "0", "1", "-1, keepdim=True"],
    "norm": ["", "1.0", "3.0, 0", "math.inf, 1", "-math.inf, -1", "2, 1, keepdim=True", "2, dtype=torch.float64"],
    "normalize": ["2.0, 1", "1.0, -1", "math.inf, 0", "2.0, 1, eps=10.0"],
    "variance": ["", "0", "1, False", "-1, True", "1, correction=0", "(0, 2), correction=2, keepdim=True", "2, dtype=torch.float64"],
}  # fmt: skip
KINDS = {
    "sum": "reduction", "prod": "reduction", "amax": "reduction", "amin": "reduction", "mean": "reduction",
    "logsumexp": "reduction", "argmax": "index", "argmin": "index", "median": "median", "norm": "norm", "var": "variance",
    "std": "variance", "cumsum": "along", "cumprod": "along", "softmax": "along", "log_softmax": "along",
    "softmin": "along", "normalize": "normalize",
}  # fmt: skip
MASKS = ("", "M", "W", "N")


def _functions() -> list[str]:
    calls = []
    for (name, kind), mask in itertools.product(KINDS.items(), MASKS):
        for arguments in ARGUMENTS[kind]:
            given = [each for each in ("X", arguments, f"mask={mask}" if mask else "") if each]
            calls.append(f"torch.masked.{name}({', '.join(given)})")
    return calls


#: Unary functions of masked tensors, called with V.
UNARY = """
abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac lgamma log
log10 log1p log2 logit i0 isnan nan_to_num neg positive rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh
sqrt square tan tanh trunc absolute arccos arcsin arctan negative fix conj_physical
"""
BINARY = """
add sub mul div atan2 fmod remainder floor_divide logaddexp logaddexp2 maximum minimum fmax fmin eq ne lt le gt ge true_divide
multiply subtract divide greater less nextafter
"""

#: Functions of the masked leaves A (3), B (3, the same mask), E (3, another mask), F (2, 3), Z (all masked out), I (integers), L (bool),
#: S (a masked number) and of the leaves D (3), G (2, 3).
CALLS = """
A + 1|1 + A|A - 2|A * 3|3 * A|A / 2|2 / A|A ** 2|-A|+A|abs(A)|A + B|A * B|A - B|A / B|A + E|A * E|A + D|D + A|D * A|A * D|D / A|A > 1|A < B|A >= 2
A == B|A != 1|A <= 2|A // 2|A % 2|F + A|F * 2|F + D|G * F|F * G|I + 1|I * I|I / 2|I % 2|~L|L & L|L | L|L ^ L|I & 1|A.pow(2)|torch.pow(A, 3)
torch.pow(A, D)|A.clamp(0, 2)|torch.clamp(A, 0)|A.sin().cos()|A.exp().log() + A|A.clone()|A.detach()|A.contiguous()|A.to(torch.float64)|A.double()
A.long()|I.float()|A.half()|I.double().mean()|A.sum()|A.mean()|A.prod()|A.amax()|A.amin()|A.argmax()|A.argmin()|A.var()|A.std()|L.all()
F.sum()|F.sum(0)|F.sum(1)|F.sum(-1)|F.sum(dim=1)|F.sum(1, keepdim=True)|F.mean(0)|F.mean(1)|F.prod(1)|F.amax(0)|F.amin(1)|F.amax(1, keepdim=True)|F.argmax(1)
F.argmin(0)|F.var(1)|F.std(0)|F.var(0)|F.mean((0, 1))|F.sum((0, 1))|Z.sum()|Z.mean()|Z.amax()|Z.prod()|Z.argmax()|I.sum()|I.prod()|I.amax()
I.argmax()|I.mean()|torch.sum(F, 1)|torch.mean(F, 0)|torch.amax(F, 0)|torch.prod(F, 0)|torch.std(F, 1)|torch.argmin(F, 1)|torch.all(L)
torch.sum(F)|torch.amin(F, 1, True)|L.all(0)|F.max()|F.median()|F.cumsum(0)|F.sort()|F @ F|F.matmul(D)|F.nonzero()|F.topk(1)|torch.linalg.norm(F)
A[0]|A[1]|A[:2]|A[::2]|F[0]|F[1, 2]|F[:, 1]|F[..., :2]|F[torch.tensor([1, 0])]|F[None]|F.select(0, 1)|F.transpose(0, 1)|F.t()|F.view(3, 2)|F.view(-1)
F.reshape(6)|F.flatten()|F.unsqueeze(1)|A.expand(2, 3)|F.split(1)|torch.cat([A, B])|torch.stack([A, B])|torch.cat([F, F], 1)
F.chunk(3, 1)|F.unfold(1, 2, 1)|len(F)|torch.where(D > 2, A, B)|torch.where(D > 2, A, E)|torch.where(D > 2, A, D)|torch.where(D > 2, D, A)
A.get_data()|A.get_mask()|A.to_tensor(0)|A.to_tensor(7.5)|F.to_tensor(-1).sum()|A.get_data() * 2|(A * 2).get_data()|A.sum().item()|Z.sum().item()|S|S + 1
S.item()|float(S)|S * D|A * S|torch.softmax(F, 1)|F.softmax(0)|torch.softmax(Z, 0)|torch.nn.functional.softmax(F, 1)|torch.ones_like(A)
A.shape|A.dtype|A.layout|A.device|A.dim()|A.ndim|A.numel()|A.size(0)|F.size()|A.requires_grad|A.is_leaf|A.is_sparse|A.is_sparse_coo()|A.is_sparse_csr()|A.is_floating_point()
A.stride()|A.is_contiguous()|F.t().is_contiguous()|A.grad_fn|str(F)|f"{A}"|isinstance(A, torch.Tensor)|torch.is_tensor(A)|torch.masked.is_masked_tensor(A)
torch.masked.is_masked_tensor(D)|type(A).__name__|A.detach().add_(1)|A.detach().mul_(B.detach())|A.detach().sin_()|A.detach().clamp_(0, 1)|A.detach().add_(E.detach())
A.add_(1)|torch.is_same_size(A, B)|torch.exp(A)|torch.sqrt(A)|torch.isnan(A)|A.isnan().sum()|torch.maximum(A, B)|torch.atan2(A, B)|torch.masked.sum(A)|torch.masked.mean(A)
torch.masked.amax(F, 1)|torch.masked.softmax(F, 1)|torch.masked.sum(F, 0)|torch.masked.mean(F, 0)|torch.masked.std(F, 0, mask=F.get_mask())|torch.masked.prod(F, 0)
torch.masked.norm(F, 2, 1)|torch.masked.logsumexp(F, 1)|torch.masked.cumsum(F, 1)|torch.masked.argmax(F, 1)|torch.masked.normalize(F, 2, 1)
as_masked(D, D > 1)|as_masked(D, D > 1).sum()|as_masked(D / (D - 2), D != 2).sum()|as_masked(G, G > 2).mean(0)|as_masked(G, G > 2).exp()|as_masked(D, D > 1).to_tensor(0)
as_masked(D, D > 1) * as_masked(D, D > 1)|as_masked(D * 2, D > 1) + D|as_masked(G * D, G > 2)[1]|as_masked(G.sqrt(), G > 0).sum()
as_masked(D.log(), D > 0) / 2|as_masked(G, G > 2).amax(1)|as_masked(G, G > 2).prod(0)|as_masked(G, G > 2).var(1)|as_masked(G, G > 2).softmax(1)
as_masked(G, G > 2).view(-1)[2:]|torch.cat([as_masked(D, D > 1), A])|as_masked(D, D > 9).sum()|as_masked(D, D > 1).mean() * 3
masked(1, M)|masked(D, 1)|masked(A, D > 1)|masked(D, A)|masked(D, D)|masked(D, W)|masked(D, torch.ones(1, 3).bool())|masked(D.to(torch.bfloat16), D > 1)
masked(D.to_sparse(), D > 1)|masked(D, (D > 1).to_sparse())|masked(D + 0j, D > 1)|masked(D.detach().to(torch.uint8), D > 1)|as_masked(D, 1)|as_masked(A, D > 1)
masked(torch.zeros(2, 0), torch.zeros(2, 0).bool()).shape|masked(torch.arange(24.0).reshape(2, 3, 4), torch.arange(24).reshape(2, 3, 4) % 3 == 0)
masked(torch.tensor([True, False, True]), torch.tensor([True, True, False]))|masked(torch.tensor([100, -5, 12345678901]), torch.tensor([True, False, True]))
masked(torch.tensor([1e10, -3.14159, 1e-8]), torch.tensor([True, True, False]))|masked(torch.tensor([math.nan, math.inf]), torch.tensor([True, True]))
masked(torch.tensor(3.5), torch.tensor(True))|masked(torch.tensor(3.5), torch.tensor(False))|masked(torch.tensor(3), torch.tensor(True))|masked(D.detach().half(), D > 1)
masked(D.detach(), D > 1, requires_grad=True).requires_grad|masked(D.detach(), D > 1, True).exp().sum()|A.to_sparse()|F.to_sparse()|F.to_sparse_csr()|F.to_sparse().to_dense()
F.to_sparse().sum()|F.to_sparse() * 2|F.to_sparse().sin()|F.to_sparse() + F.to_sparse()|F.to_sparse_csr() * 2|F.to_sparse_csr().sum()|F.to_sparse().layout|F.to_sparse_csr().layout
F.to_sparse_csr().to_dense()|A.to_sparse_csr()|F.to_sparse().mean()|F.to_sparse().amax()|F.to_sparse().sum(0)|F.to_sparse().is_sparse_coo()|F.to_sparse_csr().is_sparse_csr()
torch.masked.sum(X, 5)|torch.masked.sum(X, (0, 0))|torch.masked.sum(D, mask=M)|torch.masked.sum(X, mask=torch.ones(5).bool())|torch.masked.mean(I.get_data())|torch.masked.mean(I.get_data(), dtype=torch.float32, mask=I.get_mask())
torch.masked.mean(D, dtype=torch.int64)|torch.masked.sum(I.get_data(), mask=I.get_mask())|torch.masked.prod(I.get_data().int(), mask=I.get_mask())|torch.masked.amax(I.get_data(), mask=N[0, 0, :3])
torch.masked.amin(I.get_data().to(torch.uint8), mask=N[0, 0, :3])|torch.masked.amax(L.get_data(), mask=L.get_mask())|torch.masked.median(I.get_data(), mask=I.get_mask())
torch.masked.median(I.get_data(), mask=N[0, 0, :3])|torch.masked.var(I.get_data(), mask=I.get_mask())|torch.masked.std(D, 0, True, correction=1)|torch.masked.sum(D + 1j, mask=D > 1)
torch.masked.amax(D + 1j, mask=D > 1)|torch.masked.logsumexp(I.get_data().double(), mask=I.get_mask())|torch.masked.logaddexp(D, D * 2)|torch.masked.var(D + 1j * D, mask=D > 1)
torch.masked.logaddexp(D, D * 2, input_mask=D > 1, other_mask=D > 2)|torch.masked.logaddexp(D, D, dtype=torch.float64, other_mask=D > 1)
torch.masked.sum(X.half(), 1, mask=M)|torch.masked.std(X, 1, mask=M, dtype=torch.float64)|torch.masked.norm(X, mask=M.int())
torch.masked.sum(G.detach().to_sparse(), 0, mask=(G > 2).to_sparse()).to_dense()|torch.masked.sum(G.detach().to_sparse(), 1).to_dense()|torch.masked.prod(G.detach().to_sparse())
torch.masked.amax(G.detach().to_sparse(), 0, mask=G > 2).to_dense()|torch.masked.softmax(G.detach().to_sparse(), 1)|torch.masked.mean(G.detach().to_sparse(), 1)
torch.masked.sum(G.detach().to_sparse_csr(), 1, keepdim=True).to_dense()|torch.masked.amax(G.detach().to_sparse_csr(), 1, keepdim=True)
torch.masked._canonical_dim(None, 3)|torch.masked._canonical_dim((2, -3), 3)|torch.masked._canonical_dim((), 2)|torch.masked._canonical_dim(-1, 0)|torch.masked._canonical_dim(3, 3)
torch.masked._reduction_identity('sum', D)|torch.masked._reduction_identity('amax', I.get_data())|torch.masked._reduction_identity('amin', D)|torch.masked._reduction_identity('mean', D)
torch.masked._reduction_identity('median', I.get_data())|torch.masked._reduction_identity('norm', D, -math.inf)|torch.masked._reduction_identity('torch.masked.prod', D.half())
torch.masked._output_mask(torch.masked.sum, X, 1, mask=M)|torch.masked._output_mask(torch.masked.norm, X, 2, 1, mask=M)|torch.masked._output_mask(torch.masked.softmax, X, 1, mask=W)
torch.masked._output_mask(torch.sin, X, mask=M)|torch.masked._output_mask(torch.masked.sum, X, mask=M, dim=(0, 1), keepdim=True)|torch.masked._input_mask(X, mask=W)|torch.masked._input_mask(X)
torch.masked._where(G > 2, G, torch.tensor(0.0))|torch.masked._combine_input_and_mask(torch.masked.amax, G, G > 2)|torch.masked._ops.sum is torch.masked.sum
torch.masked.maskedtensor.core.is_masked_tensor(A)|sorted(torch.masked.__all__)
copy.deepcopy(A)|pickle.loads(pickle.dumps(F.detach()))|copy.copy(F.detach())|torch.masked.MaskedTensor(torch.ones(2), torch.tensor([True, False]))
"""


def split(text: str) -> list[str]:
    return [call for line in text.strip().splitlines() for call in line.split("|")]


def _split(text: str) -> list[str]:
    """Split at ``|`` that is not an operator (surrounded by spaces)."""
    marked = text.strip().replace(" | ", " \0 ")
    return [call.replace("\0", "|") for line in marked.splitlines() for call in line.split("|")]


FUNCTIONS = _functions()
CALLS_LIST = [
    *_split(CALLS), *(f"V.{name}()" for name in UNARY.split()), *(f"torch.{name}(A, B)" for name in BINARY.split()),
    *(f"F.{name}(2)" for name in ("add", "mul", "remainder", "floor_divide", "gt")),
]  # fmt: skip
LEAVES = "ABDEFGSVXZ"


def namespace(torch: ModuleType) -> dict[str, Any]:
    """Return the leaves of the calls."""
    import copy
    import pickle

    masked = torch.masked.masked_tensor

    def leaf(data: Any, mask: Any) -> Any:
        data = torch.tensor(data)
        return masked(data, torch.tensor(mask), requires_grad=data.dtype.is_floating_point)

    x = (torch.arange(24.0) * 7 % 11 - 4).reshape(2, 3, 4) * 0.37
    m = (torch.arange(24) * 5 % 7 < 4).reshape(2, 3, 4)
    m[0, 1] = False
    return {
        "torch": torch, "math": math, "copy": copy, "pickle": pickle, "masked": masked,
        "as_masked": torch.masked.as_masked_tensor,
        "X": x.requires_grad_(), "M": m, "W": torch.tensor([True, False, True, True]), "N": torch.zeros(2, 3, 4, dtype=torch.bool),
        "A": leaf([1.0, -2.0, 3.0], [True, False, True]), "B": leaf([4.0, 5.0, 0.5], [True, False, True]),
        "E": leaf([4.0, 5.0, 0.5], [True, True, False]), "F": leaf([[1.0, 2.0, 4.0], [-1.0, 0.5, 3.0]], [[True, False, True], [True, False, True]]),
        "Z": leaf([1.0, 2.0], [False, False]), "I": leaf([3, 5, 7], [True, False, True]), "L": leaf([True, False, True], [True, False, True]),
        "S": leaf(2.5, True), "V": leaf([0.25, -0.5, 0.75, 0.125], [True, True, True, False]),
        "D": torch.tensor([1.0, 2.0, 3.0], requires_grad=True), "G": torch.arange(6.0).reshape(2, 3).requires_grad_(),
    }  # fmt: skip


def answer(torch: ModuleType, call: str) -> list[Any]:
    """Return the text of the result or the error of ``call``, and the gradients of the leaves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = namespace(torch)
        try:
            result = eval(call, names)
            text = repr(result)
        except Exception as error:
            return [failure(error), None]
        result = result[0] if isinstance(result, (tuple, list)) and result else result
        if not isinstance(result, torch.Tensor) or not result.requires_grad:
            return [_without_node(text), None]
        try:
            if not isinstance(result, torch.masked.MaskedTensor):
                result = result * torch.arange(1.0, result.numel() + 1, dtype=result.dtype).reshape(result.shape)
            result.sum().backward()
        except Exception:
            return [_without_node(text), None]
        return [_without_node(text), {each: gradient(names[each]) for each in LEAVES if names[each].grad is not None}]


def _without_node(text: str) -> str:
    """Return ``text`` without the name of the node: masked tensors have their own nodes."""
    head, mark, tail = text.partition(", grad_fn=")
    return head + (tail[tail.index(">") + 1 :] if mark else "")


def failure(error: Exception) -> str:
    """Return the type and the first line of an error; the type alone if the text names parts of PyTorch."""
    text = str(error).splitlines()[0].partition(" Remedy:")[0].partition(" (at <")[0] if str(error) else ""
    vague = "no implementation found" in text or "Multiple dispatch failed" in text or "aten::" in text
    return f"{type(error).__name__}: {'' if vague else text}"


def gradient(x: Any) -> list[Any] | None:
    """Return the elements of the gradient of ``x``; None for those that are masked out.

    The result is None if the gradient has no elements, as PyTorch's for some ordinary tensors.
    """
    grad = x.grad
    try:
        data = getattr(grad, "_masked_data", grad).detach().to_dense().reshape(-1).tolist()
        mask = grad.get_mask().to_dense().reshape(-1).tolist() if hasattr(grad, "get_mask") else [True] * len(data)
    except RuntimeError:
        return None
    return [round(each, 4) if keep else None for each, keep in zip(data, mask)]  # noqa: B905


__all__ = ["CALLS_LIST", "FUNCTIONS", "answer", "split"]
