"""Samples of views, shapes and joining."""

from __future__ import annotations

from . import Sample, booleans, complexes, integers, normal

EXPRESSIONS = {
    "view": ["x.view(3, 4)", "x.view(-1)", "x.view((2, -1))", "x.view(2, 3, 2, 1)", "x[0].view(6)"],
    "view_as": ["x.view_as(torch.zeros(12))"],
    "reshape": ["torch.reshape(x, (4, 3))", "x.reshape(-1)", "x.transpose(0, 1).reshape(-1)", "x.reshape(2, 6).t().reshape(3, 4)"],
    "flatten": ["torch.flatten(x)", "x.flatten(1)", "x.flatten(0, 1)", "x.flatten(1, 1)"],
    "unflatten": ["x.unflatten(1, (3, 1))", "torch.unflatten(x.flatten(), 0, (3, -1))"],
    "ravel": ["x.ravel()", "x.transpose(0, 2).ravel()"],
    "squeeze": ["x[:, :1].squeeze()", "x[:, :1].squeeze(1)", "x.squeeze(1)", "x[:1, :, :1].squeeze((0, 2))"],
    "unsqueeze": ["x.unsqueeze(0)", "torch.unsqueeze(x, -1)"],
    "expand": ["x.expand(4, 2, 3, 2)", "x[:, :1].expand(2, 5, 2)", "x[:, :1].expand(-1, 3, -1)"],
    "expand_as": ["x[:, :1].expand_as(x)"],
    "broadcast_to": ["torch.broadcast_to(x, (2, 2, 3, 2))"],
    "broadcast_tensors": ["torch.broadcast_tensors(x, x[0])"],
    "transpose": ["x.transpose(0, 2)", "torch.swapaxes(x, 1, -1)", "x.swapdims(0, 1)"],
    "t": ["x[0].t()", "x[0, 0].t()"],
    "T": ["x[0].T", "x.mT", "x[0].H", "x.mH"],
    "permute": ["x.permute(2, 0, 1)", "torch.permute(x, (1, 2, 0))"],
    "movedim": ["torch.movedim(x, 0, 2)", "x.movedim((0, 1), (1, 2))"],
    "flip": ["torch.flip(x, (0,))", "x.flip(0, 2)", "torch.fliplr(x)", "torch.flipud(x)"],
    "roll": ["torch.roll(x, 1)", "x.roll(1, 0)", "torch.roll(x, (1, -1), (0, 2))"],
    "rot90": ["torch.rot90(x)", "torch.rot90(x, 2, (0, 2))", "torch.rot90(x, 3, (1, 2))", "torch.rot90(x, 0)"],
    "narrow": ["torch.narrow(x, 1, 1, 2)", "x.narrow(0, -1, 1)"],
    "select": ["torch.select(x, 1, 2)", "x.select(-1, -1)"],
    "unbind": ["torch.unbind(x)", "x.unbind(1)", "x.unbind(2)[0] * 2"],
    "split": ["torch.split(x, 2, 1)", "x.split(1)", "x.split([1, 2], 1)", "x.split_with_sizes([2, 1], 1)[1]"],
    "chunk": ["torch.chunk(x, 2, 1)", "x.chunk(3, 1)[1]"],
    "tensor_split": ["torch.tensor_split(x, 2, 1)", "x.tensor_split((1, 2), 1)"],
    "hsplit": ["torch.hsplit(x, 3)", "torch.vsplit(x, 2)", "torch.dsplit(x, 2)"],
    "diagonal": ["torch.diagonal(x[0])", "x.diagonal(1, 0, 2)", "x.diagonal(0, 1, 2)", "x.diagonal(-1, 1, 2)"],
    "diag": ["torch.diag(x[0, 0])", "torch.diag(x[0], 1)", "x[0].diag(-1)"],
    "diag_embed": ["torch.diag_embed(x[0])", "torch.diag_embed(x[0], 1, 0, 2)"],
    "diagflat": ["torch.diagflat(x[0, 0])", "torch.diagflat(x[0, 0], -1)"],
    "tril": ["torch.tril(x[0])", "x.tril(-1)", "x[0].clone().tril_()"],
    "triu": ["torch.triu(x[0])", "x.triu(1)", "x[0].clone().triu_(1)"],
    "trace": ["torch.trace(x[0])"],
    "unfold": ["x.unfold(1, 2, 1)", "x.flatten().unfold(0, 4, 2)", "x.flatten().unfold(0, 3, 3)"],
    "as_strided": ["torch.as_strided(x, (2, 2), (3, 1))", "x.as_strided((3, 3), (1, 2), 1)", "x[1].as_strided((2, 2), (1, 1))"],
    "clone": ["x.clone()", "torch.clone(x.transpose(0, 2))"],
    "contiguous": ["x.transpose(0, 1).contiguous()", "x.contiguous()"],
    "cat": ["torch.cat([x, x * 2])", "torch.cat((x, x[:, :1]), 1)", "torch.cat([x, torch.zeros(0)])", "torch.concat([x, x], -1)"],
    "stack": ["torch.stack([x, x * 2])", "torch.stack([x[0], x[1]], 1)", "torch.stack((x, x), -1)"],
    "hstack": ["torch.hstack([x, x])", "torch.vstack([x, x])", "torch.dstack([x[0], x[1]])", "torch.column_stack([x[0], x[0, :, 0]])"],
    "repeat": ["x.repeat(2, 1, 1)", "x.repeat(2, 1, 2, 1)", "torch.tile(x, (2,))"],
    "repeat_interleave": ["torch.repeat_interleave(x, 2)", "x.repeat_interleave(2, 1)", "x.repeat_interleave(torch.tensor([1, 2, 0]), dim=1)"],
    "meshgrid": ["torch.meshgrid(x[0, :, 0], x[0, 0], indexing='ij')", "torch.meshgrid(x[0, :, 0], x[0, 0], indexing='xy')"],
    "block_diag": ["torch.block_diag(x[0], x[1])"],
    "cartesian_prod": ["torch.cartesian_prod(x[0, 0], x[1, 0])"],
    "combinations": ["torch.combinations(x[0, :, 0])", "torch.combinations(x[0, :, 0], with_replacement=True)"],
    "atleast_1d": ["torch.atleast_1d(x[0, 0, 0])", "torch.atleast_2d(x[0, 0])", "torch.atleast_3d(x[0])"],
    "kron": ["torch.kron(x[0], x[1])"],
    "reshape strided": ["x[:, :, ::2].reshape(6)", "x.expand(2, 2, 3, 2).reshape(4, 6)", "x.transpose(0, 1).view(3, 2, 2, 1)", "x.view(size=(6, 2))", "torch.reshape(x, shape=(-1, 4))"],
    "copies": [
        "torch.view_copy(x, (4, 3))", "torch.expand_copy(x[:, :1], (2, 5, 2))", "torch.permute_copy(x, (2, 0, 1))", "torch.transpose_copy(x, 0, -1)",
        "torch.t_copy(x[0])", "torch.squeeze_copy(x[:1])", "torch.squeeze_copy(x[:1], 0)", "torch.squeeze_copy(x[:1, :1], (0, 1))",
        "torch.unsqueeze_copy(x, 1)", "torch.select_copy(x, 1, -1)", "torch.slice_copy(x, 1, 0, 3, 2)", "torch.slice_copy(x)", "torch.narrow_copy(x, 1, 1, 2)",
        "x.narrow_copy(0, 1, 1)", "torch.unbind_copy(x, 1)", "torch.split_copy(x, 2, 1)", "torch.split_with_sizes_copy(x, (1, 2), 1)",
        "torch.diagonal_copy(x, 1, 0, 2)", "torch.unfold_copy(x, 1, 2, 1)", "torch.as_strided_copy(x, (2, 2), (3, 1), 1)", "torch.alias_copy(x)",
    ],
    "unsafe": ["torch.unsafe_split(x, 2, 1)", "torch.unsafe_chunk(x, 2, 1)", "torch.unsafe_split_with_sizes(x, (1, 2), 1)", "torch.unsafe_split(x * 1, 1)[0].mul_(2)"],
    "scatters": [
        "torch.select_scatter(x, x[:, 0] * 2, 1, 2)", "x.select_scatter(x[0], 0, -1)", "torch.slice_scatter(x, x[:, 1:] * 2, 1, 0, 2)",
        "x.slice_scatter(x[:, :2], 1, 0, None, 2)", "torch.diagonal_scatter(x[0], x[1, :2, 0], -1)",
        "x.diagonal_scatter(x.diagonal(0, 0, 2) * 3, 0, 0, 2)", "torch.slice_inverse(x[:, 1:2], x, 1, 1, 2)",
    ],
    "constant_pad_nd": ["torch.constant_pad_nd(x, (1, 2))", "torch.constant_pad_nd(x, (1, -1, 0, 1), 2.5)", "torch.constant_pad_nd(x, (0, 0, -1, -1, 1, 0))", "torch.constant_pad_nd(x, ())"],
    "diff": ["torch.diff(x)", "x.diff(2, 1)", "torch.diff(x, dim=0, prepend=x[:1])", "torch.diff(x, 1, 1, x[:, :1], x[:, 1:])", "torch.diff(x, 0)", "torch.diff(x, 5)"],
    "gradient": [
        "torch.gradient(x)", "torch.gradient(x, dim=1)", "torch.gradient(x, spacing=2.0, dim=(0, 1))", "torch.gradient(x, spacing=(0.5, 2.0), dim=(1, 2))",
        "torch.gradient(x, spacing=[torch.tensor([0.0, 1.0, 3.0])], dim=1)", "torch.gradient(x, dim=1, edge_order=2)",
        "torch.gradient(x, spacing=[torch.tensor([0.0, 1.0, 3.0])], dim=1, edge_order=2)", "torch.gradient(x, spacing=[x[0, :, 0] + torch.tensor([0.0, 9.0, 18.0])], dim=[1])",
    ],
    "sum_to_size": ["x.sum_to_size(3, 2)", "x.sum_to_size((1, 1, 2))", "x.sum_to_size(2, 3, 2)", "x.sum_to_size(())"],
    "swapped": ["torch.swapaxes(x, axis0=0, axis1=2)", "torch.moveaxis(x, 0, -1)", "x.moveaxis((0, 2), (2, 0))", "torch.adjoint(x)", "x.adjoint()", "x[0, 0, 0].movedim(0, 0)"],
    "scalars": [
        "x[0, 0, 0].reshape(1, 1)", "x[0, 0, 0].flatten()", "x[0, 0, 0].squeeze()", "x[0, 0, 0].squeeze(0)", "x[0, 0, 0].unsqueeze(0)", "x[0, 0, 0].expand(2, 3)",
        "x[0, 0, 0].repeat(2, 2)", "x[0, 0, 0].flip(())", "x[0, 0, 0].roll(1)", "torch.diag_embed(x[0, 0])", "torch.diagflat(x[0, 0, 0])", "x[0, 0, 0].ravel()",
        "x[0, 0, 0].transpose(0, 0)", "x[0, 0, 0].unfold(0, 1, 1)", "torch.atleast_1d(x[0, 0, 0], x[0])", "torch.atleast_2d(x[0, 0, 0])", "torch.atleast_3d(x[0, 0, 0])", "torch.atleast_3d(x[0, 0])",
        "torch.atleast_2d([x[0, 0], x])",
    ],
    "empty": [
        "x[:0].reshape(0, 6)", "x[:0].flatten()", "x[:0].repeat(2, 2, 1)", "x[:0].flip(0)", "x[:0].roll(1, 0)", "torch.cat([x[:0], x])", "x[:, :0].sum(1)", "x[:0].unbind(1)[0]",
        "x[:0].chunk(3)[0]", "x[:0].split(1)[0]", "x[:, :, :0].diagonal(0, 0, 2)", "torch.diff(x[:1], dim=0)", "x[:0].tril()", "torch.block_diag(x[0, :0], x[0])",
    ],
    "strided input": [
        "x.transpose(0, 2).flip(0)", "x.transpose(0, 2).roll(1, 0)", "torch.rot90(x.transpose(0, 2))", "x[0].t().tril()", "x.transpose(0, 1).repeat(1, 2, 1)",
        "torch.cat([x.transpose(0, 2), x.transpose(0, 2)])", "torch.stack([x.transpose(0, 2), x.transpose(0, 2)], 1)", "x[:, :1].expand(2, 3, 2).clone()",
        "torch.diff(x.transpose(0, 1))", "x.transpose(0, 2).unfold(1, 2, 1)", "x.transpose(0, 2).diagonal(0, 0, 2)", "x.expand(2, 2, 3, 2).as_strided((2, 2), (2, 1))",
        "x.transpose(0, 1).contiguous().transpose(0, 1).flatten(1)", "x.transpose(1, 2).split(1, 1)", "torch.constant_pad_nd(x.transpose(0, 2), (1, 1))",
    ],
    "splits": [
        "torch.tensor_split(x, torch.tensor([1, 2]), 1)", "torch.tensor_split(x, torch.tensor(2), 1)", "torch.tensor_split(x, sections=3, dim=1)", "torch.tensor_split(x, indices=(1,), dim=1)",
        "x.tensor_split((-1,), 1)", "torch.hsplit(x, (1, 2))", "torch.vsplit(x, [1])", "torch.dsplit(x, (1,))", "torch.hsplit(x[0, 0], 2)", "x.split(split_size=2, dim=1)",
    ],
    "interleave": [
        "x.repeat_interleave(torch.tensor(2), dim=1)", "x.repeat_interleave(torch.tensor([2]), dim=1)", "x.repeat_interleave(torch.tensor([1, 0, 2]), dim=1, output_size=3)",
        "x[0, 0, 0].repeat_interleave(3)", "x.tile(2)", "x.tile((2, 1, 1, 2))", "x.tile(dims=(2,))", "x.repeat(repeats=(1, 2, 1))",
    ],
    "choices": [
        "torch.cartesian_prod(x[0, 0], x[1, 0], x[0, 1])", "torch.cartesian_prod(x[0, 0])", "torch.combinations(x[0, :, 0], 3)", "torch.combinations(x[0, :, 0], 1)",
        "torch.combinations(x[0, :, 0], 3, True)", "torch.block_diag(x[0], x[0, 0], x[0, 0, 0])", "torch.meshgrid(x[0, :, 0], x[0, 0], x[0, 0], indexing='xy')", "torch.meshgrid([x[0, :, 0], x[0, 0, 0]], indexing='ij')",
    ],
    "where": [
        "torch.where(x > 0, x, x * 2)", "torch.where(x > 0, x, 1.5)", "torch.where(x > 0, 2, x)", "torch.where(x > 0, x[0], x[:, :1])", "x.where(x > 0, 0.0)", "torch.where(x[0] > 0, x, x[0, 0, 0])",
    ],
    "in place shapes": [
        "(lambda c: (c.swapaxes_(0, 1), c * 2)[1])(x.clone())", "(lambda c: (c.swapdims_(0, 2), c * 2)[1])(x.clone())", "(lambda c: (c.squeeze_(0), c * 2)[1])(x[:1].clone())",
        "(lambda c: (c.squeeze_((0, 1)), c * 2)[1])(x[:1, :1].clone())", "(lambda c: (c.as_strided_((2, 2), (1, 3)), c * 2)[1])(x.clone())", "x[0].clone().t_()",
        "x.clone().unsqueeze_(-1)", "x.clone().squeeze_()", "x.clone().transpose_(0, 1)", "torch.as_strided_(x.clone(), (2, 2), (1, 1))", "x[0].clone().tril_(1)", "x.clone().triu_()",
        "x[0].clone().fill_diagonal_(2.0)", "torch.cat([x[0], x[1]]).fill_diagonal_(2.0, wrap=True)",
        "(lambda c: (torch.slice_inverse(c[:, 1:], c, 1, 1).mul_(2), c)[1])(x.clone())",
        "(lambda c: (c.unfold(1, 2, 2).mul_(2), c)[1])(x.clone())", "(lambda c: (c.movedim(0, 1).exp_(), c)[1])(x.clone())", "(lambda c: (c.mT.mul_(3), c)[1])(x.clone())",
        "(lambda c: (torch.view_as_complex(c).mul_(2j), c)[1])(x.clone())", "(lambda c: (torch.view_as_complex(c)[0].mul_(x[0, 0, 0]), c * c)[1])(x.clone())",
    ],
    "in place": [
        "(lambda c: (c[0].mul_(2), c)[1])(x.clone())", "(lambda c: (c.view(-1)[1:3].exp_(), c)[1])(x.clone())",
        "(lambda c: (c.t_(), c * c)[1])(x[0].clone())", "(lambda c: (c.squeeze_(), c)[1])(x[:1].clone())",
        "(lambda c: (c.unsqueeze_(1), c)[1])(x.clone())", "(lambda c: (c.transpose_(0, 2), c * 3)[1])(x.clone())",
        "(lambda c: (c[0].sigmoid_(), c[1].mul_(c[0]), c)[2])(x.clone())",
        "(lambda c, v: (c.mul_(2), v * v)[1])(*(lambda c: (c, c[0]))(x.clone()))",
        "(lambda c: (c.diagonal(0, 1, 2).mul_(3), c.exp())[1])(x.clone())",
        "(lambda c: (c[:, 1].add_(c[:, 0]), c)[1])(x.clone())",
    ],
}  # fmt: skip
SAMPLES = [
    Sample(name, expression, x=normal(2, 3, 2)) for name, several in EXPRESSIONS.items() for expression in several
]
#: Complex numbers: every view and copy has a gradient of its own kind there.
COMPLEX = (
    "z.conj()", "z.mH", "z.H", "torch.adjoint(z)", "z.resolve_conj()", "torch.resolve_neg(z)", "torch.conj_physical(z)", "z.clone().conj_physical_()",
    "torch.view_as_real_copy(z)", "z.real * 2", "z.t().imag", "(lambda c: (c.real.mul_(2), c)[1])(z.clone())", "torch.diff(z)", "torch.constant_pad_nd(z, (1, 0), 1j)", "torch.gradient(z, dim=1)", "z.sum_to_size(3)",
    "z.flip(0)", "z.roll(1, 1)", "torch.rot90(z)", "z.diagonal()", "torch.diag(z)", "z.tril()", "torch.trace(z)", "z.unfold(1, 2, 1)", "z.as_strided((2, 2), (1, 2))", "torch.cat([z, z.conj()])",
    "torch.stack([z, z], -1)", "z.repeat(1, 2)", "z.expand(2, 2, 3)", "torch.block_diag(z, z[0])", "torch.where(z.real > 0, z, z * 2)", "torch.gradient(z, spacing=2, dim=0)",
)  # fmt: skip
SAMPLES += [Sample(f"complex {each.split('(')[0]}", each, z=complexes(2, 3)) for each in COMPLEX]
#: Without derivatives: integers and booleans, out=, and what PyTorch does not differentiate.
PLAIN = (
        "torch.diff(i)", "torch.constant_pad_nd(i, (1, 1), 7)", "torch.gradient(i)", "i.sum_to_size(1, 3)", "torch.trace(i)", "torch.diag(i[0])", "i.repeat_interleave(2, 0)", "torch.repeat_interleave(i[0])",
        "torch.cat([i, i.bool()])", "torch.stack([i, i * 2])", "i.view(dtype=torch.int32)", "i.view(torch.uint8)", "i.view(torch.float64)", "i.t().view(torch.float64)", "torch.view_copy(i, torch.int32)", "torch.block_diag(i, i.double())",
        "torch.combinations(i[0], 2)", "torch.cartesian_prod(i[0], i[1])", "torch.broadcast_shapes((2, 1), 3, (1,))", "torch.diff(i.bool())", "i.clone().fill_diagonal_(3)", "i.dim_order()", "i.t().dim_order()",
        "i.is_set_to(i)", "torch.is_same_size(i, i.t())", "i.clone().resize_(2, 2)", "i.clone().resize_(1, 6)", "i[1].clone().resize_as_(i[:1, :2])", "torch.resize_as_(i.clone(), i[0])", "i.clone().apply_(lambda v: v + 1)",
        "i.clone().map_(i, lambda v, w: v * w)", "i.clone().map2_(i, i[0], lambda v, w, u: v * w - u)", "torch.where(i > 2, i, 0.5)", "torch.where(i > 2, 1, 0)", "torch.where(i > 2)", "torch.tril_indices(3, 3, -1, dtype=torch.int32)",
        "torch.triu_indices(2, 3, offset=1)", "i.tril()", "i.flip(1)", "i.roll((1, 1), (0, 1))", "torch.rot90(i, -1)", "i.unfold(1, 2, 1)", "i.real", "i.conj()", "i.clone().set_(i.t())",
        "torch.cat([i, i], out=torch.zeros(0, dtype=torch.int64))", "torch.stack([i, i], out=torch.zeros(0, dtype=torch.int64))", "torch.diff(i, out=torch.zeros(0, dtype=torch.int64))",
        "torch.permute_copy(i, (1, 0), out=torch.zeros(3, 2, dtype=torch.int64))", "torch.narrow_copy(i, 1, 0, 2, out=torch.zeros(2, 2, dtype=torch.int64))", "torch.hstack([i, i], out=torch.zeros(2, 6, dtype=torch.int64))",
        "torch.diag(i, out=torch.zeros(0, dtype=torch.int64))", "torch.column_stack([i, i[:, 0]])", "torch.dstack([i, i])", "torch.vstack([i[0], i])", "torch.row_stack([i[0], i])", "torch.concatenate([i, i], axis=1)",
)  # fmt: skip
SAMPLES += [Sample("plain", each, smooth=False, i=integers(0, 5, 2, 3)) for each in PLAIN]
SAMPLES += [
    Sample("as_strided_scatter", "torch.as_strided_scatter(x.detach(), y, (2, 2), (1, 2))", smooth=False, x=normal(2, 3), y=normal(2, 2)),
    Sample("view_as_complex_copy", "torch.view_as_complex_copy(x.detach())", smooth=False, x=normal(3, 2)),
    Sample("detach_copy", "torch.detach_copy(x.detach())", smooth=False, x=normal(3, 2)),
    Sample("view_as_real", "torch.view_as_real(z)", z=complexes(2, 3)),
    Sample("view_as_complex", "torch.view_as_complex(x)", x=normal(3, 2)),
    Sample("real", "torch.real(z)", z=complexes(2, 3)),
    Sample("imag", "z.imag", z=complexes(2, 3)),
    Sample("complex", "torch.complex(x, y)", x=normal(3), y=normal(3)),
    Sample("tril_indices", "torch.tril_indices(3, 4)", smooth=False, x=normal(1)),
    Sample("triu_indices", "torch.triu_indices(3, 4, 1)", smooth=False, x=normal(1)),
    Sample("cat", "torch.cat([i, x])", smooth=False, i=integers(0, 4, 3), x=normal(2)),
    Sample("flip", "torch.flip(b, (0,))", smooth=False, b=booleans(4)),
    Sample("view", "x.view(torch.int64)", smooth=False, x=normal(3)),
    Sample("view", "i.view(torch.int32)", smooth=False, i=integers(0, 9, 3)),
]
