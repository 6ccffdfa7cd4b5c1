"""Calls of functions of nested tensors, with texts, components, gradients and errors.

``CALLS`` are expressions of the tensors that :func:`namespace` creates for each call. The answer has the text of the
result, its components, and the gradients of the leaves. ``GENERIC`` are called with each nested leaf in place of ``X``.
"""

from __future__ import annotations

import re
import warnings
from types import ModuleType
from typing import Any

#: Functions of the strided leaf S, the jagged leaves J (2, j, 3), H (2, j, 2, 2) and T (2, 2, j, 2).
GENERIC = """
X|X.size(0)|X.size(-1)|X.dim()|X.ndim|X.numel()|X.layout|X.is_nested|X.is_leaf|X.unbind()|X.dtype|X.device|X.requires_grad|X.is_floating_point()
X.to_padded_tensor(0)|torch.nested.to_padded_tensor(X, 9.0)|X * 2|2 * X|X + X|X - 1|1 - X|2 / X|X * X|X / X|-X|X.sin()|X.relu()|X.sigmoid()|X.tanh()|X.exp()|X.abs()|X.sqrt()|X.log()
X.neg()|X.square()|X.clamp(0, 2)|X.isnan()|X > 2|X <= 2|torch.nn.functional.silu(X)|torch.nn.functional.relu(X)|torch.nn.functional.leaky_relu(X)
X.transpose(-1, -2)|X.transpose(0, 1)|X[0]|X[1]|X[-1]|X[0][1]|X.select(0, 1)|X.softmax(-1)|torch.softmax(X, -1)|torch.nn.functional.softmax(X, -1)
X.detach()|X.clone()|X.double()|X.to(torch.float64)|X.half()|X.to('cpu')|X.cpu()|X.contiguous()|X.tolist()|X.item()|bool(X)|X.unsqueeze(-1)|X.unsqueeze(0)
torch.cat([X, X], -1)|X.sum(-1, keepdim=True)|X.is_contiguous()|X.element_size()|torch.ones_like(X)|torch.zeros_like(X)|X.masked_fill(X > 2, 0)
X.detach().add_(1)|X.detach().mul_(2)|X.detach().fill_(2)|X.detach().zero_()|X.detach().relu_()
X.grad_fn is None|torch.is_tensor(X)|X.is_sparse|X.bool()|X.sgn()|X.erf()|X.cos()|torch.logical_not(X)|X.sum(0)|X.requires_grad_(False)|X.values().sum()
"""
CALLS = """
S.shape|S.size()|S.size(1)|S.size(2)|S.stride()|len(S)|S.values()|S._nested_tensor_size()|S._nested_tensor_strides()|S._nested_tensor_storage_offsets()|S.is_contiguous()
S.to_padded_tensor(-1, (2, 4, 5))|S.to_padded_tensor(0, (1,))|S.to_padded_tensor(0, (2, 1, 3))|S.sum(1)|S.sum(-1)|S.transpose(1, 2)|S.chunk(2, 0)|S.view(2, -1, 3)|S.view(2, -1, 3, 1)
S.reshape(2, -1, 3, 1)|S.reshape(2, -1)|S.view(3, -1, 3)|torch.cat([S.detach(), S.detach()])|torch.matmul(S, S.transpose(1, 2))|torch.bmm(S, S.transpose(1, 2))|S @ W3|S + S2|S * S2
torch.nn.functional.linear(S, W3)|torch.nn.functional.linear(S, W3, torch.ones(2))|torch.nn.functional.layer_norm(S, (3,), V3, V3)|torch.nn.functional.layer_norm(S, (3,))
S.narrow(-1, 0, 1)|S.view(2, -1, 1, 3).transpose(1, 2)|S + V3|S.unbind()[1].sum()
Q.transpose(1, 2)|Q.transpose(1, 2).softmax(-1)
torch.matmul(Q.transpose(1, 2), Q.transpose(1, 2).transpose(-1, -2)).softmax(-1)|Q.view(2, -1, 4)|Q.reshape(2, -1, 4)|torch.nn.Linear(3, 2)(S).dim()|torch.nn.LayerNorm(3)(S).dim()
J.shape|J.size()|J.size(1)|J.size(2)|J.stride()|len(J)|list(J)|J.values()|J.offsets()|J.lengths()|J._values|J._offsets|J._lengths|J._ragged_idx|J._size|J._strides|J._get_max_seqlen()|J._min_seqlen
J.to_padded_tensor(0, (2, 2, 3))|J + J2|J == J2|J == J|J + V3|V3 + J|J + torch.ones(4)|J + torch.ones(2, 2, 3)|torch.ones(2, 3, 3) * J|P * J|J + P|J + torch.ones(1, 1, 3)
J + torch.ones(1, 3)|J + torch.ones(2, 1, 1)|J * torch.ones(2, 3, 1)|H + torch.arange(2.0)|H + torch.arange(4.0).reshape(2, 2)|H * torch.arange(8.0).reshape(2, 1, 2, 2)|T + torch.arange(2.0)
T * torch.arange(4.0).reshape(2, 2, 1, 1)|J.sum()|J.sum(1)|J.sum(-1)|J.sum((1, 2))|J.sum((0, 1))|J.sum((0, 1, 2))|J.sum(1, keepdim=True)|J.sum((0, 1), keepdim=True)|J.mean()|J.mean(1)
J.mean(-1)|J.mean((1, 2))|J.mean((0, 1))|J.mean(1, keepdim=True)|J.amin(1)|J.amax(1)|J.amax(-1)|J.max()|J.min()|J.max(1)|J.min(1)|J.max(2)|J.argmax(1)|J.argmin(1)|J.argmax(2)|(J > 2).all(1)
(J > 2).any(2)|(J > 2).all()|(J > 2).any()|J.prod()|J.prod(1)|J.prod(2)|J.var(1)|J.std(-1)|J.norm()|J.logsumexp(-1)|J.cumsum(1)|H.sum(1)|H.sum(2)|H.sum((2, 3))|H.sum(-1, keepdim=True)|T.sum(1)|T.sum(2)
T.mean(-1)|T.amax(2)|J.log_softmax(1)|J.log_softmax(-1)|T.softmax(2)|T.softmax(-1)|J.transpose(1, 2)|H.transpose(1, 2)|H.transpose(2, 3)|T.transpose(1, 2)|T.transpose(2, 3)
H.permute(0, 2, 3, 1)|H.permute(0, 3, 1, 2)|H.permute(1, 0, 2, 3)|J.T|J.mT|H.flatten(2, 3)|H.flatten(2)|H.flatten()|J.flatten(1, 2)|H.view(2, -1, 4)|H.reshape(2, -1, 1, 4)|H.view(2, 5, 4)|H.view(3, -1, 4)
H.view(2, H.size(1), 4)|H.view(H.shape)|J.view(2, -1, 3, 1)|J.reshape(2, -1)|J.unflatten(-1, (3, 1))|J.unflatten(-1, (1, 3))|T.contiguous()|T.transpose(1, 2).flatten(2)|H.squeeze(1)|H.squeeze()
J.unsqueeze(1)|J.unsqueeze(2)|J.unsqueeze(-1).squeeze(-1)|J.chunk(2, 0)|J.chunk(2, 1)|J.split(1, 1)|torch.cat([H, H], 2)
torch.cat([J, J])|torch.cat([J, J], 1)|torch.cat([J, J2], 2)|torch.stack([H, H], 2)|torch.stack([J, J], -1)|torch.stack([J, J])|J @ W3.t()|H @ torch.ones(2, 3)|J @ P4|J.bmm(P4)|torch.bmm(J, P4)
J.transpose(1, 2) @ J|torch.bmm(J.transpose(1, 2), J)|J @ J.transpose(1, 2)|J @ torch.ones(3)|H @ torch.ones(2, 2, 3)|J.select(1, 0)|J.select(2, 1)|J.select(0, 5)
J[0, 0]|J[1, 2, 1]|J[5]|J[None]|J[:, 0]|J[0:1]|J[1:]|H[..., :1]|H[..., 0]|J[[1, 0]]|J[torch.tensor([1, 0])]|J.narrow(-1, 0, 1)|J.narrow(1, 0, 1)|J.narrow(0, 0, 1)|J.index_select(0, torch.tensor([1]))
torch.nn.functional.layer_norm(J, (3,))|torch.nn.functional.layer_norm(J, (3,), V3, V3)|torch.nn.functional.layer_norm(H, (2, 2))|torch.nn.functional.rms_norm(J, (3,))|torch.nn.functional.linear(J, W3)
torch.nn.functional.linear(J, W3, torch.ones(2))|torch.nn.functional.linear(H, torch.ones(3, 2))|torch.nn.functional.embedding(I, W3)|torch.nn.Embedding(3, 2)(I).shape|I + 1|I.float()|I * 2.5|I.sum()|I.max()
torch.nn.functional.scaled_dot_product_attention(J, J, J)
torch.where(J > 2, J, -1.0)|torch.where(J > 2, J, J * 2)|J.masked_fill(J > 2, 0.0)|torch.logical_and(J > 1, J < 3)|~(J > 1)|torch.isclose(J, J)|J.pow(2)|J ** 2|J.expand(2, -1, 3)
J.unsqueeze(-1).expand(2, -1, 3, 2)|J.expand_as(J)|torch.full_like(J, 2.0)|torch.rand_like(J).shape|torch.empty_like(J).shape|torch.randint_like(J, 3).dtype|J.new_empty(2)|J.new_zeros(2)|J.type(torch.int64)
J.to(J2)|torch.is_same_size(J, J2)|torch.is_same_size(J, J)|torch.numel(J)|J.nelement()|torch.nn.functional.dropout(J, 1.0)|J.masked_select(J > 2)|J.size(1) == J.size(1)|J.size(1) == J2.size(1)
J.size(1) * 2|J.shape == J2.shape|J.shape == J.shape|J.size(1) > 1|J.size(1) >= 2|J.size(1) == 3|type(J.size(1)).__name__|isinstance(J.size(1), torch.SymInt)|type(J).__name__|J.roll(1, -1)|J.sort(-1)
torch.nn.functional.mse_loss(J, J)|torch.nn.functional.pad(J, (0, 1))|torch.frexp(J).exponent|J.numpy()|torch.nested._internal.ops.extract_kwargs(J).keys()|J.is_same_size(J)|torch.maximum(J, J * 2)
nested([])|nested([A, 1])|nested([[1, 2], [3]])|nested([[1, 2], [3.0]], dtype=torch.float64)|nested(5)|nested(A)|nested([A, A[0]])|nested([A, B.double()])|nested([A, B], layout=torch.sparse_coo)
nested([A, torch.ones(2, 5)])|nested([A, torch.ones(2, 5)], layout=torch.jagged)|nested([torch.ones(2, 2), torch.ones(3, 4)], layout=torch.jagged)|nested([torch.tensor(1.0), torch.tensor(2.0)])
nested([], layout=torch.jagged)|nested([A > 2, B > 11])|nested([A.half(), B.half()])|nested([A.long(), B.long()])|nested([torch.ones(0, 3), B])|nested([torch.ones(0, 3), B], layout=torch.jagged)
nested([torch.ones(1200), torch.ones(2)])|nested([torch.ones(2, dtype=torch.int64)], requires_grad=True)|nested([A, B], dtype=torch.float64)|nested([A, B], requires_grad=True) * 2|nested([A, B], pin_memory=False)
nested([[1.5, 2], [3]], layout=torch.jagged)|nested([A, B], layout=torch.jagged, dtype=torch.int32)|nested([A, B], layout=torch.jagged, requires_grad=True)|nested([A, B.double()], layout=torch.jagged)
nested([A, A], layout=torch.jagged)|nested([A, V3.detach()], layout=torch.jagged)|nested([torch.tensor(1.0)], layout=torch.jagged)
as_nested([V3 * 2, V3[:1]])|as_nested([V3 * 2, V3[:1]], layout=torch.jagged)|as_nested(A)|as_nested(P, layout=torch.jagged)|as_nested([1, 2])|as_nested(S)|as_nested(S, layout=torch.jagged)
as_nested(J, layout=torch.jagged)|as_nested((V3, V3[:2]), layout=torch.jagged).sum(1)|as_nested([V3, V3[:2]]).to_padded_tensor(0)|as_nested(torch.tensor(1.0))|as_nested([V3, V3[:2]], dtype=torch.float64)
from_jagged(torch.ones(5, 3), torch.tensor([0, 2, 5]))|from_jagged(W3, lengths=torch.tensor([1, 1]))|from_jagged(torch.arange(5.0), torch.tensor([0, 2, 5]), torch.tensor([1, 2]))|from_jagged(torch.ones(5, 3))
from_jagged(torch.arange(15.0).reshape(3, 5), torch.tensor([0, 2, 5]), jagged_dim=2)|from_jagged([1], torch.tensor([0, 2, 5]))|from_jagged(torch.arange(5.0), torch.tensor([0, 2, 5]), torch.tensor([1, 2])).contiguous()
from_jagged(torch.arange(5.0), torch.tensor([0, 2, 5]), torch.tensor([1, 2])).lengths()
from_jagged(torch.arange(5.0), torch.tensor([0, 2, 5]), torch.tensor([1, 2])) * 2|from_jagged(torch.arange(5.0), torch.tensor([0, 2, 5]), torch.tensor([1, 2])).numel()|from_jagged(V3, torch.tensor([0, 1, 3])) * 2
from_jagged(V3, torch.tensor([0, 1, 3])).sum()|from_jagged(W3, torch.tensor([0, 1, 2])).sum(1)|torch.nested.narrow(M, 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=torch.jagged)
torch.nested.narrow(M, 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=torch.jagged).unbind()|torch.nested.narrow(M, 1, 0, torch.tensor([2, 3]), layout=torch.jagged)|torch.nested.narrow(M, 1, 0, 2, layout=torch.jagged)
torch.nested.narrow(M, 1, torch.tensor([0, 1]), torch.tensor([2, 3]))|torch.nested.narrow(M, 0, 0, torch.tensor([2, 3]), layout=torch.jagged)|torch.nested.narrow(M, 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=torch.jagged) + 1
torch.nested.masked_select(M, M > 3)|torch.nested.masked_select(M, torch.tensor([True, False] * 3))|torch.nested.masked_select(M, M)|torch.nested.masked_select(J, J > 2)|torch.nested.masked_select(M, M > 3).sum(1)
torch._nested_tensor_from_mask(P, torch.tensor([[True, True, False], [True, False, False]]))|torch._nested_tensor_from_mask(P, torch.tensor([[True, False, True], [True, False, False]]))
torch._nested_tensor_from_mask_left_aligned(P, torch.tensor([[True, False, True], [True, False, False]]))|torch._nested_tensor_from_mask_left_aligned(P, torch.tensor([[True, True, False], [True, False, False]]))
torch._nested_from_padded(P, torch.tensor([[2, 2], [1, 2]]))|torch._nested_tensor_from_tensor_list([A, B])|torch.nested._internal.nested_tensor.NestedTensor(torch.ones(5, 3), torch.tensor([0, 2, 5]))|A.is_nested|torch.jagged
torch.nested._internal.nested_tensor.NestedTensor(torch.ones(5, 3), torch.tensor([[0, 2, 5]]))|A.to_padded_tensor(0)|torch.nested.to_padded_tensor(A, 0)|sorted(torch.nested.__all__)|pickle.loads(pickle.dumps(J.detach()))|copy.deepcopy(J)
"""


def split(text: str) -> list[str]:
    return [call for line in text.strip().splitlines() for call in line.split("|")]


#: Calls that only PyTorch refuses, or refuses in other words.
UNLIKE = {
    *(("S", call) for call in split("1 - X|2 / X|X.sigmoid()|X.exp()|X.log()|X.square()|X.clamp(0, 2)|X <= 2|X.erf()|torch.cat([X, X], -1)")),
    ("S", "torch.nn.functional.leaky_relu(X)"), ("T", "X.transpose(0, 1)"),
}  # fmt: skip
CALLS_LIST = [
    *(re.sub(r"\bX\b", name, call) for name in "SJHT" for call in split(GENERIC) if (name, call) not in UNLIKE),
    *split(CALLS),
]
LEAVES = ("S", "J", "H", "T", "Q", "V3", "W3", "P", "P4", "M")


def namespace(torch: ModuleType) -> dict[str, Any]:
    """Return the tensors of the calls."""
    import copy
    import pickle

    a, b = torch.arange(6.0).reshape(2, 3) + 1, (torch.arange(9.0) * 5 % 7).reshape(3, 3) + 0.5
    nested, jagged = torch.nested.nested_tensor, torch.jagged
    h = (torch.arange(20.0) * 3 % 11 + 0.25).reshape(5, 2, 2)
    heads = nested([h[:2].transpose(0, 1), h[2:].transpose(0, 1)], layout=jagged, requires_grad=True)
    return {
        "torch": torch, "copy": copy, "pickle": pickle, "A": a, "B": b, "nested": nested, "as_nested": torch.nested.as_nested_tensor,
        "from_jagged": torch.nested.nested_tensor_from_jagged, "S": nested([a, b], requires_grad=True), "S2": nested([b, a]),
        "J": nested([a, b], layout=jagged, requires_grad=True), "J2": nested([a, b], layout=jagged),
        "H": nested([h[:2], h[2:]], layout=jagged, requires_grad=True), "T": heads,
        "Q": nested([h[:2], h[2:]], requires_grad=True), "I": nested([torch.tensor([1, 0]), torch.tensor([2])], layout=jagged),
        "V3": torch.tensor([1.0, 2.0, 0.5], requires_grad=True), "W3": torch.arange(6.0).reshape(2, 3).requires_grad_(),
        "P": (torch.arange(18.0) % 5).reshape(2, 3, 3).requires_grad_(), "P4": (torch.arange(24.0) % 7).reshape(2, 3, 4).requires_grad_(),
        "M": torch.arange(12.0).reshape(2, 6).requires_grad_(),
    }  # fmt: skip


def answer(torch: ModuleType, call: str) -> list[Any]:
    """Return the text of the result or the error of ``call``, the components, and the gradients of the leaves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = namespace(torch)
        try:
            result = eval(call, names)
            text = _plain(repr(result))
        except Exception as error:
            return [failure(error), None, None]
        if isinstance(result, (tuple, list)) and len(result):
            result = result[0]
        if not isinstance(result, torch.Tensor):
            return [text, None, None]
        parts: list[Any]
        parts = [result] if not result.is_nested else list(result.unbind())
        elements = [_rounded(each.detach()) for each in parts] if result.is_nested else None
        if not result.requires_grad:
            return [text, elements, None]
        try:
            total = 0
            for part in parts:
                total = total + (part * torch.arange(1.0, part.numel() + 1, dtype=part.dtype).reshape(part.shape)).sum()
            total.backward()
        except Exception:
            return [text, elements, None]
        return [text, elements, {each: gradient(names[each]) for each in LEAVES if names[each].grad is not None}]


def _plain(text: str) -> str:
    """Return ``text`` without the names of nodes and the numbers of the ragged sizes, which differ between programs."""
    text = re.sub(r",\s+grad_fn=<[^>]*>", "", text)
    return re.sub(r"\bj\d+", "j", text)


def failure(error: Exception) -> str:
    """Return the type and the first line of an error; the type alone if PyTorch's names its own parts."""
    text = str(error).splitlines()[0].partition(" Remedy:")[0].partition(" (at <")[0] if str(error) else ""
    own = isinstance(error, NotImplementedError) or any(
        each in text for each in ("No viable backend", "A view was created")
    )
    return f"{type(error).__name__}: {'' if own else _plain(text)}"


def _rounded(x: Any) -> list[float]:
    return [round(float(each), 4) for each in x.reshape(-1).tolist()]


def gradient(x: Any) -> list[Any]:
    """Return the elements of the gradient of ``x``; a list for each component of a nested tensor."""
    return [_rounded(each) for each in x.grad.unbind()] if x.is_nested else _rounded(x.grad)


__all__ = ["CALLS_LIST", "answer", "split"]
