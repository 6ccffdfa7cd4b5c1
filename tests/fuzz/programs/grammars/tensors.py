"""Grammar of tensors: views, in-place operations, modes, hooks, custom functions, copies, of all dtypes and many shapes.

Each statement is first executed by retrograd, which shows the shapes and dtypes of its results. A statement that raises an
exception is dropped, except for some.
"""

from __future__ import annotations

import math
import random
import re
import warnings
from typing import Any

from ..namespace import program_namespace

SHAPES = [
    (),
    (),
    (0,),
    (1,),
    (2,),
    (3,),
    (3,),
    (2, 2),
    (2, 3),
    (2, 3),
    (3, 2),
    (1, 3),
    (2, 1),
    (2, 0),
    (2, 1, 3),
    (2, 2, 2),
]
DTYPES = (
    ["float64"] * 6
    + ["float32"] * 5
    + ["float16", "bfloat16", "complex64", "complex128", "int64", "int32", "uint8", "bool"]
)
KINDS = [
    "float64", "float32", "float16", "bfloat16", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8", "bool",
]  # fmt: skip

VIEWS = [
    "{a}[{i}]", "{a}[{i}]", "{a}[{i}]", "{a}.view(-1)", "{a}.t()", "{a}.transpose(0, {d})", "{a}.unsqueeze({d})", "{a}.detach()",
    "{a}.diagonal()", "{a}.view_as({a})", "{a}.reshape(-1)", "{a}.squeeze()", "{a}.squeeze({d})", "{a}.narrow({d}, 0, 1)",
    "{a}.as_strided((2,), (1,))", "{a}.as_strided((1, 2), (2, 1), 1)", "{a}.unbind({d})[-1]", "{a}.chunk(2, {d})[-1]", "{a}.split(1, {d})[0]",
    "{a}.permute(1, 0)", "{a}.flatten()", "{a}.expand(2, *{a}.shape)", "{a}.expand(2, 3)", "{a}.select({d}, -1)", "{a}.movedim(0, -1)",
    "{a}.mT", "{a}.T", "{a}.swapaxes(0, {d})", "{a}.tensor_split(2, {d})[1]", "{a}.real", "{a}.imag",
    "torch.view_as_real({a})", "torch.view_as_complex({a})", "{a}.data", "{a}.broadcast_to((2, *{a}.shape))", "{a}.unflatten(0, (1, -1))",
    "torch.atleast_2d({a})", "{a}.alias_copy()" , "{a}.contiguous()", "{a}.to({a}.dtype)", "{a}.ravel()",
    "torch.split({a}, [1, {a}.shape[0] - 1])[1]", "{a}.hsplit(1)[0]", "{a}.mH", "{a}.adjoint()", "{a}.conj()", "{a}.view(2, -1)",
    "{a}.swapdims(0, {d})", "{a}.expand_as({b})", "{a}.positive()", "{a}.diagonal(1)", "{a}.narrow_copy(0, 0, 1)", "{a}.requires_grad_()",
]  # fmt: skip
INDICES = [
    "0", "-1", ":1", "1:", ":", "...", "None", "::2", ":, 0", ":, 1:", "..., -1", "..., None", "0:0", "-2:", "[0]", "[0, -1]", "[0, 0]",
    "torch.tensor([0, 1])", "torch.tensor(0)", "{a} > 0", "None, 0", ":, [0, -1]", "[0, 1], [1, 0]", "True", "..., ::2", "{a}.isnan()",
    "torch.tensor([True, False])", "0, 0", "1, :1", "{b} > {b}", "torch.tensor([[0], [1]])", "[[0, 1]], 0", "0, [0, 1]", "False",
]  # fmt: skip
POINTWISE = [
    "{a} * 2", "{a}.exp()", "{a}.clone()", "{a}.tanh()", "-{a}", "{a} ** 2", "{a}.sin()", "{a}.sigmoid()", "{a}.abs()", "{a} + 1", "1 - {a}",
    "2 / ({a} * {a} + 1)", "{a} / 2", "({a} * {a} + 1).log()", "({a} * {a} + 0.5).sqrt()", "{a}.clamp(-0.5, 0.75)", "{a} // 1", "{a} % 2",
    "{a}.round()", "{a}.floor()", "torch.relu({a})", "F.gelu({a})", "F.softplus({a})", "F.silu({a})", "F.elu({a})", "F.leaky_relu({a})",
    "F.hardtanh({a})", "F.mish({a})", "F.logsigmoid({a})", "{a}.erf()", "{a}.sign()", "{a}.square()", "{a}.reciprocal()", "{a}.expm1()",
    "{a} ** 0.5", "2 ** {a}", "{a}.nan_to_num()", "torch.zeros_like({a})", "torch.ones_like({a}, requires_grad=True)", "{a}.new_zeros(2)",
    "torch.full_like({a}, 0.5)", "torch.rand_like({a})", "F.dropout({a}, 0.5)", "F.dropout({a}, 0.5, False)", "{a}.masked_fill({b} > 0, 0.5)",
    "{a}.atan()", "{a}.sinc()", "{a}.logit(0.1)", "{a}.deg2rad()", "{a}.frac()", "{a}.trunc()", "{a}.cosh()", "{a}.rsqrt()", "~{a}", "{a} == 0",
    "{a}.lgamma()", "{a}.digamma()", "torch.special.entr({a})", "torch.special.i0({a})", "F.threshold({a}, 0.1, 2.0)", "{a}.log1p()",
    "torch.angle({a})", "{a}.sgn()", "F.relu6({a})", "F.selu({a})", "F.celu({a})", "F.softsign({a})", "F.hardswish({a})", "F.hardsigmoid({a})",
    "F.tanhshrink({a})", "F.softshrink({a})", "F.hardshrink({a})", "F.glu({a}, {d})", "{a}.asinh()", "{a}.logical_not()", "{a} * 1j", "{a} << 1",
    "{a}.item()", "{a}.tolist()", "bool(({a} == {a}).all())", "len({a})", "str({a}.shape)", "{a}.numel()", "float({a}.sum())", "{a}.detach().bernoulli(0.5)",
]  # fmt: skip
PAIRS = [
    "{a} + {b}", "{a} * {b}", "{a} - {b}", "{a} / ({b} * {b} + 1)", "torch.maximum({a}, {b})", "torch.where({b} > 0, {a}, {b})", "{a} @ {b}",
    "torch.lerp({a}, {b}, 0.3)", "torch.addcmul({a}, {a}, {b})", "torch.addcdiv({a}, {b}, {a} * {a} + 1)", "{a} > {b}", "{a} == {b}", "torch.hypot({a}, {b})",
    "torch.atan2({a}, {b} + 2)", "torch.cat([{a}, {b}])", "torch.stack([{a}, {b}])", "torch.outer({a}, {b})", "torch.dot({a}, {b})", "{a} ** {b}",
    "torch.cat([{a}, {a}], -1)", "torch.stack([{a}, {b}, {a}], -1)", "F.mse_loss({a}, {b})", "{a}.matmul({b})", "torch.einsum('i,i->i', {a}, {b})",
    "{a}.add({b}, alpha=2)", "torch.fmod({a}, {b} + 3)", "torch.remainder({a}, 2)", "torch.logaddexp({a}, {b})", "torch.xlogy({a}, {b} * {b} + 1)",
    "F.l1_loss({a}, {b})", "F.smooth_l1_loss({a}, {b})", "torch.cdist({a}, {b})", "F.linear({a}, {b})", "torch.minimum({a}, {b})", "torch.fmax({a}, {b})",
     "F.prelu({a}, {b}.reshape(-1)[:1])", "torch.complex({a}, {b})", "torch.polar({a}, {b})", "{a} & {b}", "{a} | {b}",
    "torch.heaviside({a}, {b})", "torch.dist({a}, {b})", "F.cosine_similarity({a}, {b}, {d})", "torch.bmm({a}, {b})", "torch.mv({a}, {b})",
    "torch.mm({a}, {b})", "torch.inner({a}, {b})", "torch.cross({a}, {b}, -1)", "torch.ldexp({a}, {b})", "{a} != {b}",
    "F.binary_cross_entropy_with_logits({a}, {b}.sigmoid())", "F.kl_div({a}, {b}.softmax(-1), reduction='sum')", "F.huber_loss({a}, {b})",
    "torch.addmm({a}, {a}, {b})", "{a}.type_as({b})", "torch.broadcast_tensors({a}, {b})[0]", "{a}.floor_divide({b})", "torch.nextafter({a}, {b})",
    "torch.allclose({a}, {b})", "torch.equal({a}, {b})", "{a}.gather({d}, ({b} > 0).long())", "{a}.index_select({d}, torch.tensor([0, 0]))",
    "{a}.take(torch.tensor([0, -1]))", "{a}.scatter({d}, ({a} > 9).long(), {b})", "{a}.index_add({d}, torch.tensor([0]), {b}.narrow({d}, 0, 1))",
    "{a}.masked_scatter({b} > 0, {b})", "{a}.index_put((torch.tensor([0]),), {b}[0])", "{a}.scatter_add({d}, ({a} > 9).long(), {b})", "{a}.masked_select({b} > 0)",
    "{a}.index_copy({d}, torch.tensor([0]), {b}.narrow({d}, 0, 1))", "torch.bucketize({a}, torch.tensor([0.0, 1.0]))", "torch.vstack([{a}, {b}])",
]  # fmt: skip
REDUCTIONS = [
    "{a}.sum()", "{a}.mean()", "{a}.sum({d})", "{a}.mean({d}, keepdim=True)", "{a}.prod()", "{a}.prod({d})", "{a}.max()", "{a}.max({d})[0]", "{a}.amax({d})",
    "{a}.min({d}, keepdim=True)[0]", "{a}.var()", "{a}.std({d})", "{a}.norm()", "{a}.norm(1, {d})", "{a}.logsumexp({d})", "{a}.softmax({d})", "{a}.cumsum({d})",
    "{a}.cumprod({d})", "{a}.argmax()", "{a}.argmin({d})", "{a}.any()", "{a}.all({d})", "{a}.sort({d})[0]", "{a}.flip({d})", "{a}.roll(1, {d})", "{a}.median()",
    "{a}.cummax({d})[0]", "{a}.log_softmax({d})", "{a}.topk(1, {d})[0]", "{a}.unique()", "{a}.nonzero()", "{a}.trace()", "{a}.tril()", "{a}.triu(1)", "{a}.diag()",
    "F.layer_norm({a}, {a}.shape[-1:])", "{a}.repeat(2, *[1] * {a}.dim())", "{a}.repeat_interleave(2, {d})", "F.pad({a}, (1, 0))", "torch.diff({a})", "{a}.tile(2)",
    "F.normalize({a}, dim={d})", "torch.linalg.vector_norm({a}, 3)", "{a}.kthvalue(1, {d})[0]", "{a}.quantile(0.5)", "{a}.nansum()", "{a}.count_nonzero()",
    "torch.trapezoid({a})", "{a}.diag_embed()", "torch.rot90({a})", "{a}.logcumsumexp({d})", "torch.aminmax({a})[1]", "torch.var_mean({a}, {d})[0]", "{a}.renorm(2, 0, 1.0)",
    "torch.logdet({a} @ {a}.mT + torch.eye({a}.shape[-1], dtype={a}.dtype))", "torch.linalg.inv({a} + 3 * torch.eye({a}.shape[-1], dtype={a}.dtype))",
    "torch.fft.fft({a})", "torch.fft.rfft({a}).real", "F.one_hot({a})", "torch.histc({a}, 3, -1, 1)", "{a}.sum(dtype=torch.float64)", "{a}.mean((-1, -2))",
    "F.avg_pool1d({a}, 1)", "F.max_pool2d({a}, 1)", "F.cross_entropy({a}, ({a}.sum(-1) > 0).long())", "F.rms_norm({a}, {a}.shape[-1:])", "torch.linalg.det({a})",
    "F.interpolate({a}[None], scale_factor=2)", "F.batch_norm({a}, None, None, training=True)", "{a}.nanmean({d})", "{a}.std(correction=0)", "{a}.var({d}, keepdim=True)",
]  # fmt: skip
CHANGES = [
    "{a}.mul_(2)", "{a}.add_({b})", "{a}.mul_({b})", "{a}.sigmoid_()", "{a}.exp_()", "{a}.zero_()", "{a}.copy_({b})", "{a}.sub_(0.5)", "{a}[{i}] = {b}", "{a}[{i}] = 1.5",
    "{a}.fill_(0.5)", "{a}.tanh_()", "{a}.neg_()", "{a}.clamp_(-1, 1)", "{a} += {b}", "{a} *= 2", "{a} -= {b}", "{a} /= 2", "{a}[{i}] += 1", "{a}[{i}] *= {b}", "{a}.sin_()",
    "{a}.masked_fill_({b} > 0, 0.25)", "{a}.fill_({b}.sum())", "{a}.add_({a})", "{a}.copy_({a})", "{a}.addcmul_({a}, {b})", "{a}.lerp_({b}, 0.5)", "{a}.relu_()",
    "{a}.index_fill_({d}, torch.tensor([0]), 0.5)", "{a}.scatter_({d}, ({a} > 9).long(), 0.5)", "{a}.index_add_({d}, torch.tensor([0]), {b}.narrow({d}, 0, 1))", "{a}.t_()",
    "{a}.unsqueeze_({d})", "{a}.squeeze_()", "{a}.squeeze_({d})", "{a}.transpose_(0, {d})", "{a}.swapaxes_(0, -1)", "{a}.detach_()", "{a}.requires_grad_()",
    "{a}.requires_grad_(False)", "torch.add({a}, {b}, out={c})", "torch.mul({a}, 2, out={c})", "torch.sum({a}, {d}, out={c})", "torch.sin({a}, out={a})", "{a}.round_()",
    "{a}.data = {b}.data", "{a}.data.mul_(2)", "{a}.detach().set_({c}.detach())", "{a}.resize_(0)", "{a}.normal_()", "{a}.uniform_()", "{a}.random_(5)", "{a}.bernoulli_(0.5)", "{a}.dropout_(0.5)",
    "F.relu_({a})", "F.elu_({a})", "F.leaky_relu_({a})", "F.dropout({a}, 0.5, inplace=True)", "F.hardtanh_({a})", "{a}.as_strided_((1,), (1,))", "{a}.cumsum_({d})", "{a}.tril_()",
    "{a}.index_put_((torch.tensor([0]),), {b}[0], accumulate=True)", "{a}.masked_scatter_({b} > 0, {b})", "{a}.fill_diagonal_(1.0)", "{a}.logical_not_()", "{a}.pow_(2)",
    "{a}.sqrt_()", "{a}.abs_()", "{a}.clamp_min_({b})", "{a}.floor_()", "{a}.index_copy_({d}, torch.tensor([0]), {b}.narrow({d}, 0, 1))", "{a}.squeeze_().unsqueeze_(0)",
    "{a}[{i}].mul_(2)", "{a}.view(-1)[:1].add_(1)", "{a}.unbind(0)[0].mul_(2)", "torch.cat([{a}, {b}], out={c})", "{a}.put_(torch.tensor([0]), {b}.reshape(-1)[:1])",
    "{a}.resize_as_({a})", "{a}.erf_()", "{a}.remainder_(2)", "{a}.real.mul_(2)", "torch.view_as_real({a}).mul_(2)", "{a}.detach().mul_(2)", "{a}.diagonal().fill_(3)", "{a}.addmm_({a}, {b})",
    "torch.max({a}, {d}, out=({c}, torch.empty(0, dtype=torch.int64)))", "{a}.expand(2, *{a}.shape).mul_(2)", "{a}.swapdims_(0, {d})", "{a}.xlogy_({b})", "{a}.renorm_(2, 0, 1.0)", "{a}.atan2_({b})", "{a}.div_({b}, rounding_mode='floor')",
]  # fmt: skip
COPIES = [
    "deepcopy({a})", "pickled({a})", "saved({a})", "torch.tensor({a}.tolist())", "torch.as_tensor({a})", "{a}.numpy(force=True).sum().item()", "torch.from_numpy({a}.detach().numpy())",
    "{a}.to(torch.{k})", "{a}.to(torch.{k})", "{a}.type(torch.{k})", "{a}.double()", "{a}.half().float()", "{a}.bool()", "{a}.to({b})", "{a}.new_tensor([1, 2])", "torch.asarray({a})", "{a}.view(torch.{k})",
    "torch.nn.Parameter({a}.detach().clone())", "torch.nn.Parameter({a})", "torch.tensor({a})", "{a}.clone().requires_grad_()", "{a}.detach().requires_grad_()", "{a}.grad", "torch.empty_like({a}).copy_({b})",
    "deepcopy([{a}, {a}])[1]", "saved([{a}, {a}.detach()])[1]", "{a}.contiguous().view(-1)", "{a}.cpu()", "{a}.new_full((2,), 3)", "{a}.__deepcopy__({{}})",
]  # fmt: skip
TRANSFORMS = [
    "torch.vmap(lambda x: {f})({a})", "torch.vmap(lambda x: {f}, -1, -1)({a})", "torch.func.grad(lambda x: ({f}).sum())({a})", "torch.func.jvp(lambda x: {f}, ({a},), ({b}.to({a}.dtype) * 1,))[1]",
    "torch.func.vjp(lambda x: {f}, {a})[1](torch.ones_like({a}))[0]", "torch.func.jacrev(lambda x: {f})({a})", "torch.func.hessian(lambda x: ({f}).sum())({a})", "torch.func.jacfwd(lambda x: {f})({a})",
    "torch.autograd.functional.jacobian(lambda x: {f}, {a})", "torch.func.linearize(lambda x: {f}, {a})[1]({b}.to({a}.dtype) * 1)", "torch.autograd.functional.vjp(lambda x: {f}, {a}, {b})[1]",
    "torch.func.grad(lambda x: torch.func.grad(lambda x: ({f}).sum())(x).sum())({a})", "torch.vmap(torch.func.grad(lambda x: ({f}).sum()))({a})", "compiled(lambda x: {f})({a})", "compiled(lambda x, y: x.mul_(2) + {f})({a}, {b})",
    "torch.autograd.functional.jvp(lambda x: {f}, {a}, {b}.to({a}.dtype) * 1)[1]", "torch.autograd.functional.hvp(lambda x: ({f}).sum(), {a}, {b})[1]", "compiled(lambda x, y: y.add_(1) * {f})({a}, {b})", "torch.vmap(lambda x, y: {f} * y)({a}, {b})",
]  # fmt: skip
INNER = [
    "x * x", "x.sin()", "x * {b}", "x.exp() * 0.1", "x.clone().mul_(x)", "x.cumsum(0)", "x * 2 + {a}", "x.sum() * x", "x.softmax(-1)", "x.tanh()[..., :1]", "x.t()", "x.reshape(-1)", "x @ x", "Cube.apply(x)", "x.abs()", "torch.relu(x)",
    "x.detach() * x", "x.prod()", "torch.cat([x, x])", "x.flip(0)", "x.max()", "x + 1", "{b} * 2", "x ** 3", "x.norm()", "checkpoint(plain, x, x, use_reentrant=False)", "x.unsqueeze(0)", "x.expand(2, *x.shape)", "torch.stack([x, {b}])",
]  # fmt: skip
DUAL = [
    "fwAD.unpack_dual({f})[0]", "fwAD.unpack_dual({f})[1]", "fwAD.unpack_dual(x.mul_(2) + {f})[1]", "fwAD.unpack_dual(x[0])[1]", "fwAD.unpack_dual({f})[1]", "fwAD.unpack_dual(torch.vmap(lambda x: {f})(x))[1]", "fwAD.unpack_dual({f})[1]",
    "fwAD.unpack_dual(x.view(-1).mul_(3))[1]",
]  # fmt: skip
CUSTOM = [
    "Cube.apply({a})", "Product.apply({a}, {b})", "Two.apply({a})[0]", "sum(Two.apply({a}))", "Half.apply({a})", "Half.apply({a} * 1)", "Straight.apply({a})", "Stingy.apply({a})[0]", "Same.apply({a})", "View.apply({a})",
    "checkpoint(plain, {a}, {b}, use_reentrant={r})", "checkpoint(deep, {a}, {b}, use_reentrant={r})", "checkpoint(own, {a}, {b}, use_reentrant=False)", "checkpoint(hooked, {a}, {b}, use_reentrant=False)", "checkpoint(packed, {a}, {b}, use_reentrant=False)",
    "checkpoint(nested, {a}, {b}, use_reentrant=False)", "checkpoint(drawn, {a}, {b}, use_reentrant={r})", "checkpoint(torch.matmul, {a}, {b}, use_reentrant=False)", "checkpoint(torch.sin, {a}, use_reentrant=False)",
]  # fmt: skip
EFFECTS = [
    "{a}.register_hook(see('{a}'))", "{a}.register_hook(lambda g: g * 2)", "{a}.retain_grad()", "{a}.grad_fn.register_hook(node('{a}'))", "{a}.grad_fn.register_prehook(before('{a}'))", "{a}.register_post_accumulate_grad_hook(accumulated('{a}'))",
    "several([{a}, {b}], many('{a} {b}'))", "{a}.sum().backward()", "{a}.sum().backward(retain_graph=True)", "({a} * {b}).sum().backward()", "{a}.backward(torch.ones_like({a}))", "del {a}", "{a}.grad = None", "{a}.grad = torch.ones_like({a})",
    "{a}.grad.zero_()", "{a}.grad.mul_(2)", "log.append(shown({a}))", "{a} = {b}", "{a}, {b} = {b}, {a}", "log.append({a} is {b})", "log.append({a}._base is {b})", "log.append({a}.numel() and {a}.data_ptr() == {b}.data_ptr())", "{a}.sum().backward(create_graph=True)",
    "log.append({a}.is_contiguous())", "{a}.attribute = 3", "torch.autograd.backward([{a}.sum(), {b}.sum()])", "{a}.sum().backward(inputs=[{b}])", "log.append(hasattr({a}, 'attribute'))",
]  # fmt: skip
GRADS = [
    "torch.autograd.grad({a}.sum(), {b}, allow_unused=True)[0]", "torch.autograd.grad({a}.sum(), {b}, create_graph=True, allow_unused=True)[0]", "torch.autograd.grad({a}.sum(), {b}, retain_graph=True)[0]",
    "torch.autograd.grad(({a} * {a}).sum(), {a}, create_graph=True)[0]", "torch.autograd.grad({a}, {b}, torch.ones_like({a}), materialize_grads=True)[0]", "torch.autograd.grad([{a}.sum(), ({b} * 2).sum()], [{a}, {b}], create_graph=True)[1]",
]  # fmt: skip
MODES = [
    "torch.no_grad()", "torch.no_grad()", "torch.no_grad()", "torch.enable_grad()", "torch.inference_mode()", "torch.autocast('cpu')", "torch.autograd.detect_anomaly(check_nan=False)", "saving(lambda t: t * 2, lambda t: (t / 2).to(t.dtype))",
    "saving(lambda t: (t,), lambda p: p[0])", "torch.set_grad_enabled(False)", "torch.autograd.graph.save_on_cpu()", "torch.autograd.graph.allow_mutation_on_saved_tensors()", "torch.random.fork_rng()", "torch.autocast('cpu', torch.float16)",
    "torch.autograd.set_multithreading_enabled(False)", "torch.inference_mode(False)",
]  # fmt: skip
#: Families of statements with their weights.
FAMILIES: list[tuple[list[str], float]] = [
    (VIEWS, 5), (POINTWISE, 3), (PAIRS, 3), (REDUCTIONS, 2), (CHANGES, 5.5), (COPIES, 1.2), (TRANSFORMS, 1), (CUSTOM, 1), (EFFECTS, 1.8), (GRADS, 0.5),
]  # fmt: skip
MOST = 48  # elements of a tensor


class Writer:
    """Writer of one random program."""

    def __init__(
        self,
        seed: int,
        dtypes: list[str] = DTYPES,
        families: list[tuple[list[str], float]] = FAMILIES,
        banned: str | None = None,
    ) -> None:
        """Make a writer with tensors of some dtypes, and statements of some families that match no ``banned`` pattern."""
        import retrograd as torch

        self.dtypes, self.families, self.banned = dtypes, families, banned

        self.torch: Any = torch
        self.rng = random.Random(seed)
        self.space = program_namespace(torch, [])
        self.lines: list[str] = []
        self.count = 0

    def program(self) -> str:
        """Return the text of the program."""
        rng = self.rng
        kinds = [rng.choice(self.dtypes)] if rng.random() < 0.6 else self.dtypes
        shape = rng.choice(SHAPES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.torch.manual_seed(0)
            for _ in range(rng.randint(2, 3)):
                self.create(rng.choice(kinds), shape if rng.random() < 0.6 else rng.choice(SHAPES))
            wanted = len(self.lines) + rng.randint(2, 9)
            for _ in range(60):
                if len(self.lines) >= wanted or not self.tensors():
                    break
                self.statement()
        self.torch.set_grad_enabled(True)
        return "\n".join(self.lines)

    def tensors(self) -> list[str]:
        """Return the names of the tensors."""
        return [
            key
            for key, x in self.space.items()
            if key[0] == "t" and key[1:].isdigit() and isinstance(x, self.torch.Tensor)
        ]

    def create(self, dtype: str, shape: tuple[int, ...]) -> None:
        """Add a statement that creates a tensor."""
        rng, size = self.rng, math.prod(shape)
        floating = dtype.startswith(("float", "bfloat", "complex"))
        if dtype == "bool":
            values: list[Any] = [rng.random() < 0.5 for _ in range(size)]
        elif not floating:
            values = [rng.randrange(0, 4) for _ in range(size)]
        elif dtype.startswith("complex"):
            values = [complex(rng.choice([0.5, -0.25, 1.0]), rng.choice([0.75, -0.5, 0.0])) for _ in range(size)]
        else:
            values = [rng.choice([0.5, -0.25, 0.75, 1.25, -0.5, 1.5, -1.0, 0.0, 0.3]) for _ in range(size)]
        tracked = ", requires_grad=True" if floating and rng.random() < 0.6 else ""
        text = f"torch.tensor({values[0] if shape == () else values}, dtype=torch.{dtype}{tracked})"
        if len(shape) > 1:
            text = f"torch.tensor({values}, dtype=torch.{dtype}).reshape({shape})" + (
                ".requires_grad_()" if tracked else ""
            )
        self.add(f"t{self.count} = {text}")

    def statement(self) -> None:
        """Add a random statement."""
        rng = self.rng
        if self.families is FAMILIES and rng.random() < 0.03:
            self.add(self.block())
            return
        family = rng.choices([each for each, _ in self.families], [weight for _, weight in self.families])[0]
        line = self.filled(rng.choice(family))
        if family is not CHANGES and family is not EFFECTS:
            line = f"t{self.count} = {line}"
        if self.families is FAMILIES and rng.random() < 0.12:
            line = f"with {rng.choice(MODES)}:\n    {line}"
        self.add(line)

    def block(self) -> str:
        """Return a block with a dual tensor."""
        inner = (
            self.filled("x * {b} + " + self.rng.choice(INNER))
            if self.rng.random() < 0.5
            else self.filled(self.rng.choice(INNER))
        )
        line = self.rng.choice(DUAL).replace("{f}", inner)
        return (
            self.filled(
                f"with fwAD.dual_level():\n    x = fwAD.make_dual({{a}} * 1, {{b}}.to({{a}}.dtype) * 1)\n    t{self.count} = "
            )
            + line
        )

    def filled(self, template: str) -> str:
        """Return a template with its places filled."""
        rng, tensors = self.rng, self.tensors()
        a = rng.choice(tensors[-3:] if rng.random() < 0.6 else tensors)
        x = self.space[a]
        alike = [each for each in tensors if self.space[each].shape == x.shape]
        b = rng.choice(alike if rng.random() < 0.8 else tensors)
        text = template
        if "{f}" in text:
            text = text.replace("{f}", rng.choice(INNER))
        text = text.replace("{i}", rng.choice(INDICES)).replace("{d}", str(rng.choice([0, 0, -1, -1, 1])))
        text = text.replace("{k}", rng.choice(KINDS)).replace("{r}", str(rng.random() < 0.3))
        text = (
            text.replace("{a}", a)
            .replace("{b}", b)
            .replace("{c}", rng.choice([each for each in tensors if each not in (a, b)] or ["None"]))
        )
        return text.replace("{{", "{").replace("}}", "}")

    def add(self, line: str) -> None:
        """Execute a statement, and add it to the program if it is of use."""
        if self.banned is not None and re.search(self.banned, line):
            return
        version = {key: self.space[key] for key in self.tensors()}
        try:
            exec(line, self.space)
        except Exception:
            keep = self.rng.random() < 0.06
        else:
            keep = self.has_moderate_values()
        self.torch.set_grad_enabled(True)
        if not keep:  # what the statement has changed in place remains changed: later statements only see other numbers
            for key in self.tensors():
                if key not in version:
                    del self.space[key]
            self.space.update(version)
            return
        self.lines.append(line)
        self.count = max([self.count, *(int(key[1:]) + 1 for key in self.space if key[0] == "t" and key[1:].isdigit())])

    def has_moderate_values(self) -> bool:
        """Whether the tensors are small, and finite except for some."""
        for key in self.tensors():
            x = self.space[key]
            if x.numel() > MOST or x.dim() > 5:
                return False
            if x.is_floating_point() or x.is_complex():
                size = float(x.detach().abs().double().nan_to_num(1e9, 1e9).max()) if x.numel() else 0.0
                if size > 1e3 and self.rng.random() < 0.97:
                    return False
        return True


def program(seed: int) -> str:
    """Return the text of program number ``seed``."""
    return Writer(seed).program()
