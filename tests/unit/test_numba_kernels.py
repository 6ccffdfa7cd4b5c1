"""Numba loops for large arrays: accuracy, special values, threads, and behaviour without Numba.

The reference is the same program in float64. Errors are in units of float32's precision, relative to the largest
element.
"""

from __future__ import annotations

import io
import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.kernels import matmul, numba_dispatch, rnn
from retrograd.runtime import blas_threads
from tests.loops import use_loops

compiled = pytest.mark.skipif(not numba_dispatch.permitted(), reason="needs Numba")
SIZE = 200  # 40,000 elements: above the threshold of the loops
UNIT = 2.0**-24

# Each with the allowed error beside intermediate rounding (see `allowed`).
CASES = """
x + y | x * y - p | x / p | 2 - x | 1 / p | x.exp() | x.sigmoid() | x.tanh() | x.relu() | p.sqrt() | p.rsqrt() | p ** 3 | p ** 2
p.reciprocal() | x.clamp(-1, 1) | x.clamp(max=0.5) | torch.where(c, x, y) | x.masked_fill(c, 2.0) | torch.maximum(x, y)
torch.minimum(x, y) | torch.lerp(x, y, 0.3) | torch.addcmul(x, y, p) | x.add(y, alpha=0.5) | x.erf() | x.abs() | -x | p.log1p()
n.gelu(x) | n.silu(x) | n.leaky_relu(x) | n.elu(x) | n.selu(x) | n.celu(x) | n.softplus(x) | n.mish(x) | n.hardswish(x)
n.gelu(x, approximate='tanh') | near.prod(1) | x.max() | x.round().max()
x.round().amax(1) | x.round().min() | p.mean() | x.mean(0) | n.softmax(x, 0) | n.log_softmax(x, 0)
n.logsigmoid(x) | n.threshold(x, 0.1, 0) | x.sum(0) | x.sum(1) | p.sum() | x.mean(1) | x.var() | x.var(1) | x.var(0) | x.std(1)
x.norm() | x.norm(dim=1) | x.norm(dim=0) | x.max(0)[0] | x.min(0)[0] | x.amax(1) | x.amin(1) | x.amax(0) | x.cumsum(0)
x.cumsum(1) | x.flatten().cumsum(0) | near.cumprod(1) | near.cumprod(0) | near.prod() | x.logsumexp(1) | n.softmax(x, 1)
n.log_softmax(x, 1) | n.layer_norm(x, (200,)) | n.layer_norm(x, (200,), row, row) | n.cross_entropy(x, index)
n.batch_norm(image, None, None, each, each, training=True) | n.group_norm(image, 4, each, each) | n.group_norm(image, 2) | n.instance_norm(image)
n.rms_norm(x, (200,), row) | n.mse_loss(x, y) | n.l1_loss(x, y) | n.smooth_l1_loss(x, y)
n.binary_cross_entropy_with_logits(x, p.detach()) | x + row | x * row[:, None] | x.t().exp() * y.t() | x.t().sum(1) | x.t().var(1)
image.mean((2, 3)) | image.sum((0, 2, 3)) | image + each[:, None, None] | x.expand(2, 200, 200) + 1 | x + y.t() | x[:, ::2] * 2
x.t() + y | x.t().contiguous() | image.permute(0, 2, 3, 1).contiguous() | image.permute(1, 0, 2, 3).contiguous()
"""
EXPRESSIONS = [each.strip() for line in CASES.strip().splitlines() for each in line.split("|")]


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Use one thread, for which the loops compile faster."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def drawn() -> dict[str, Any]:
    random = numpy.random.default_rng(0)
    found = {name: random.standard_normal((SIZE, SIZE)) for name in ("x", "y")}
    found["p"] = random.random((SIZE, SIZE)) + 0.5
    found["near"] = 1 + 0.01 * random.standard_normal((SIZE, SIZE))
    found["row"], found["each"] = random.standard_normal(SIZE), random.standard_normal(16)
    found["image"] = random.standard_normal((8, 16, 18, 18))
    return {name: array.astype(numpy.float32) for name, array in found.items()}


DRAWN = drawn()
GRADIENT = numpy.random.default_rng(1).standard_normal(8 * 16 * 18 * 18 * 2).astype(numpy.float32)


def run_with_gradients(expression: str, dtype: Any, even: bool) -> list[Any]:
    """Return the node's name, the result and the gradients; ``even``: the incoming gradient is 1 everywhere."""
    given = {name: torch.tensor(array, dtype=dtype).requires_grad_() for name, array in DRAWN.items()}
    index = torch.tensor(numpy.random.default_rng(2).integers(0, SIZE, SIZE))
    space = {**given, "torch": torch, "n": torch.nn.functional, "c": torch.tensor(DRAWN["y"] > 0.3), "index": index}
    out = eval(expression, space)
    ones = torch.ones((), dtype=dtype).expand(out.shape)
    out.backward(ones if even else torch.tensor(GRADIENT[: out.numel()].reshape(out.shape), dtype=dtype))
    grads = [None if each.grad is None else each.grad.numpy() for each in given.values()]
    return [type(out.grad_fn).__name__, out.stride(), out.detach().numpy(), *grads]


@compiled
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_loops_and_numpy_match_float64(expression: str, monkeypatch: pytest.MonkeyPatch, one_thread: None) -> None:
    for even in (False, True):
        loops, double = (
            run_with_gradients(expression, torch.float32, even),
            run_with_gradients(expression, torch.float64, even),
        )
        with monkeypatch.context() as patch:
            use_loops(patch, False)
            plain, truth = (
                run_with_gradients(expression, torch.float32, even),
                run_with_gradients(expression, torch.float64, even),
            )
        assert loops[:2] == plain[:2]
        for loop, numpy_, double_, true in zip(loops[2:], plain[2:], double[2:], truth[2:], strict=True):
            if true is None:
                assert loop is numpy_ is double_ is None
                continue
            size = max(float(numpy.abs(true).max()), 1e-3)
            by_loop, by_numpy, by_double = (
                float(numpy.abs(each - true).max()) / size for each in (loop, numpy_, double_)
            )
            assert loop.dtype == numpy.float32 and loop.shape == true.shape
            assert by_loop <= max(3 * by_numpy, 6 * UNIT), (
                f"{expression}: {by_loop / UNIT} units, NumPy {by_numpy / UNIT}"
            )
            assert by_double < 1e-12


def units(found: Any, true: Any) -> float:
    """Return the largest error in units in the last place of float32."""
    step = numpy.spacing(numpy.maximum(numpy.abs(true.astype(numpy.float32)), numpy.float32(2.0**-126)))
    return float((numpy.abs(found.astype(numpy.float64) - true) / step).max())


@compiled
@pytest.mark.parametrize(
    ("name", "low", "high", "bound", "exact"),
    [
        ("exp", -87, 88, 0.8, math.exp),
        ("sigmoid", -80, 80, 2.6, lambda x: 1 / (1 + math.exp(-x))),
        ("erf", -4, 4, 1.5, math.erf),
        ("log1p", -0.99, 10, 2.5, math.log1p),
        ("gelu", -3, 10, 8.0, lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2))),
        ("silu", -20, 20, 3.5, lambda x: x / (1 + math.exp(-x))),
    ],
)
def test_errors_of_functions(name: str, low: float, high: float, bound: float, exact: Any, one_thread: None) -> None:
    x = numpy.random.default_rng(0).uniform(low, high, 40_000).astype(numpy.float32)
    true = numpy.array([exact(float(each)) for each in x])
    assert units(numba_dispatch.looped(name, x), true) < bound


@compiled
def test_special_numbers(one_thread: None) -> None:
    ends = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 1e-40, 100.0, -100.0, 1e30]).repeat(5000)
    for name in ("exp", "sigmoid", "erf", "log1p", "relu", "abs", "sign", "sqrt"):
        with numpy.errstate(all="ignore"):
            loop, few = getattr(ends, name)()[:9], getattr(ends[:9], name)()
        assert torch.allclose(loop, few, rtol=1e-6, atol=1e-38, equal_nan=True), name
        assert torch.equal(torch.signbit(loop[3:5]), torch.signbit(few[3:5])), name
    for approximate in ("none", "tanh"):
        found = []
        for count in (1, 4000):
            x = torch.tensor([math.inf, -math.inf, math.nan, 1e30, -1e30, 1e4, -1e4, 10.0, -6.0, 0.5]).repeat(count)
            y = torch.nn.functional.gelu(x.requires_grad_(), approximate=approximate)
            (slope,) = torch.autograd.grad(y, x, torch.ones_like(y))
            found.append(torch.stack([y[:10].detach(), slope[:10]]))
        assert torch.allclose(*found, rtol=1e-5, atol=1e-8, equal_nan=True), approximate
    far = torch.tensor([2.0**125, 2.0**126, 1.3e38, 2.0**127, 3.4e38]).repeat(8000)
    assert torch.allclose(far.log1p()[:5], far[:5].log1p(), rtol=1e-6)
    rows = torch.tensor([[0.0, -math.inf], [math.inf, 1.0], [-math.inf, -math.inf], [math.nan, 1.0]]).repeat(10_000, 1)
    for function in (torch.softmax, torch.log_softmax, torch.logsumexp, torch.amax, torch.amin):
        assert torch.allclose(function(rows, 1)[:4], function(rows[:4], 1), equal_nan=True), function
    assert torch.equal(rows.max(0)[1], torch.tensor([3, 1]))


@compiled
@pytest.mark.parametrize("expression", ["x.exp()", "x + y", "x.sum()", "n.softmax(x, 1)", "x.cumsum(1)"])
def test_number_of_threads_does_not_change_results(expression: str) -> None:
    together = run_with_gradients(expression, torch.float32, False)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    alone = run_with_gradients(expression, torch.float32, False)
    torch.set_num_threads(before)
    for a, b in zip(together[2:], alone[2:], strict=True):
        assert (a is None and b is None) or numpy.allclose(a, b, rtol=2e-7, atol=1e-7)


@compiled
def test_in_place(one_thread: None) -> None:
    x = torch.arange(40_000.0)
    y = x.clone()
    assert x.add_(y) is x and torch.equal(x, y * 2)
    assert torch.equal(x.mul_(0.5), y) and torch.equal(x.sub_(y), torch.zeros(40_000))
    assert torch.equal(x.add_(y, alpha=0.5), y / 2) and torch.equal(x.div_(0.5), y) and torch.equal(x.add_(x), y + y)
    assert x._version == 6


@pytest.mark.parametrize("source", [torch.float32, torch.float64])
def test_large_arrays_convert_to_every_dtype(source: Any, one_thread: None) -> None:
    few = torch.tensor([0.0, -0.0, 1.5, 255.0, -1.0, math.inf, -math.inf, math.nan, 3e9], dtype=source)
    for target in (
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.complex64,
        torch.int32,
        torch.bool,
    ):
        for many in (few.repeat(5000), few.repeat(5000, 2).t()):
            found = many.to(target)
            assert found.dtype is target and repr(found.flatten()[: 9 * 5000 : 5000]) == repr(
                many.flatten()[: 9 * 5000 : 5000].to(target)
            )
    x = torch.ones(40_000, dtype=torch.bfloat16, requires_grad=True)
    (x.to(source) * 2).sum().backward()
    assert x.grad.dtype is torch.bfloat16 and x.grad[0] == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cumsum_before_infinite_or_huge_elements(dtype: Any, one_thread: None) -> None:
    for odd in (math.nan, math.inf, 1e30):
        x = torch.ones(100_000, dtype=dtype)
        x[50_000] = odd
        assert torch.equal(x.cumsum(0)[:50_000], torch.arange(1, 50_001, dtype=dtype))
        assert torch.allclose(x.cumsum(0)[50_000:], torch.tensor(odd + 50_000, dtype=dtype), equal_nan=True)
        y = x.clone().requires_grad_()
        y.cumsum(0).backward(x)
        assert torch.equal(y.grad[50_001:], torch.arange(49_999, 0, -1, dtype=dtype))


@compiled
def test_random_numbers_match_small_arrays() -> None:
    def few(draw: Any, times: int) -> Any:
        torch.manual_seed(7)
        return torch.cat([draw(160) for _ in range(times)])

    for draw in (
        torch.rand,
        torch.randn,
        lambda n: torch.randint(3, 11, (n,)),
        lambda n: torch.full((n,), 0.3).bernoulli(),
    ):
        torch.manual_seed(7)
        many = draw(160 * 250)
        after = torch.rand(3)
        expected = few(draw, 250)
        assert torch.allclose(many, expected, rtol=1e-6, atol=1e-6) and torch.equal(after, torch.rand(3))
    torch.manual_seed(1)
    assert torch.equal(torch.randperm(40_000).sort()[0], torch.arange(40_000))


@pytest.mark.parametrize("steps", [1, 4, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_recurrent_layers_of_one_unit(steps: int, dtype: Any) -> None:
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 2 * steps, dtype=dtype).reshape(steps, 1, 2)
    for kind in ("LSTM", "GRU"):
        layer, cell = getattr(torch.nn, kind)(2, 1, dtype=dtype), getattr(torch.nn, f"{kind}Cell")(2, 1, dtype=dtype)
        cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
        state, found = None, []
        for step in x:
            state = cell(step, state)
            found.append(state[0] if kind == "LSTM" else state)
        torch.testing.assert_close(layer(x)[0], torch.stack(found))


def test_recurrent_layers_without_sequences() -> None:
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        assert kind(3, 5)(torch.zeros(4, 0, 3))[0].shape == (4, 0, 5)


RECURRENT = {
    "lstm": lambda dtype: torch.nn.LSTM(5, 7, 2, bidirectional=True, dtype=dtype),
    "lstm without biases": lambda dtype: torch.nn.LSTM(5, 7, bias=False, dtype=dtype),
    "lstm with projection": lambda dtype: torch.nn.LSTM(5, 7, proj_size=3, dtype=dtype),
    "lstm on all threads": lambda dtype: torch.nn.LSTM(5, 1100, dtype=dtype),
    "gru": lambda dtype: torch.nn.GRU(5, 7, 2, bidirectional=True, dtype=dtype),
    "gru on all threads": lambda dtype: torch.nn.GRU(5, 1100, dtype=dtype),
    "gru cell": lambda dtype: torch.nn.GRUCell(5, 7, dtype=dtype),
}


def run_recurrent(name: str, dtype: Any, packed: bool) -> list[Any]:
    """Return the results and the gradients of a recurrent layer for eight sequences of at most three steps."""
    torch.manual_seed(0)
    layer = RECURRENT[name](dtype)
    with torch.no_grad():
        for each in layer.parameters():
            each.copy_(torch.randn(each.shape, generator=torch.Generator().manual_seed(each.numel())) / 5)
    x = torch.tensor(GRADIENT[: 3 * 8 * 5].reshape(3, 8, 5), dtype=dtype, requires_grad=True)
    if name == "gru cell":
        h = torch.zeros(8, 7, dtype=dtype)
        for step in x:
            h = layer(step, h)
        results = [h]
    else:
        given = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 3, 3, 2, 2, 1, 1, 1])) if packed else x
        out, last = layer(given)
        results = [out.data if packed else out, *(last if isinstance(last, tuple) else (last,))]
    weighted = sum(
        (each * torch.linspace(-1, 1, each.numel(), dtype=dtype).reshape(each.shape)).sum() for each in results
    )
    gradients = torch.autograd.grad(weighted, [x, *layer.parameters()])
    return [each.detach().numpy() for each in (*results, *gradients)]


@compiled
@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers(name: str, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = run_recurrent(name, torch.float64, packed)
    called = []
    with monkeypatch.context() as patch:
        use_loops(patch, True)
        patch.setattr(rnn, "step_loop", lambda *given, plain=rnn.step_loop: called.append(plain(*given)) or called[-1])
        by_loops = run_recurrent(name, torch.float32, packed)
    use_loops(monkeypatch, False)
    by_numpy = run_recurrent(name, torch.float32, packed)
    assert len(called) >= 2 and None not in called
    for loop, array, expected in zip(by_loops, by_numpy, exact, strict=True):
        bound = 100 * UNIT * max(1, numpy.abs(expected).max())
        assert numpy.abs(loop - expected).max() < bound and numpy.abs(array - expected).max() < bound


@compiled
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "maximize": True}, {"betas": (0.3, 0.9)}])
def test_optimizer_steps(options: dict[str, Any], one_thread: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(kind: Any, **options: Any) -> Any:
        w = torch.tensor(DRAWN["x"]).requires_grad_()
        optimizer = kind([w], **options)
        for scale in (1.0, -0.5, 2.0):
            w.grad = torch.tensor(DRAWN["y"] * numpy.float32(scale))
            optimizer.step()
        return w.detach().numpy()

    kinds = [(torch.optim.Adam, options), (torch.optim.AdamW, options)]
    plain = {name: value for name, value in options.items() if name != "betas"}
    kinds += [(torch.optim.RMSprop, plain), (torch.optim.SGD, {"lr": 0.1, **plain}), (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, **plain}),
              (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, **plain})]  # fmt: skip
    for kind, given in kinds:
        loop = trained(kind, **given)
        with monkeypatch.context() as patch:
            use_loops(patch, False)
            assert numpy.allclose(loop, trained(kind, **given), rtol=1e-6, atol=1e-6)


@compiled
def test_parallel_python_threads() -> None:
    x = torch.tensor(DRAWN["x"])
    expected, found = x.exp(), []
    workers = [threading.Thread(target=lambda: found.append(x.exp())) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4 and all(torch.equal(each, expected) for each in found)


def run(program: str, **environment: str) -> str:
    made = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_small_programs_do_not_import_numba() -> None:
    program = (
        "import sys, retrograd as torch; x = torch.ones(1000, requires_grad=True); (x * 2).exp().sum().backward(); "
    )
    assert run(program + "print('numba' in sys.modules)") == "False"


def test_compilation_is_announced_once_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)

    def compiled(module: str, patience: float) -> str:
        def double(x: Any) -> Any:
            return x + x

        double.__module__ = module
        with event.install_listener("numba:compile", waiting):
            waiting.patience = patience
            numba.njit(double)(3)
        return told.getvalue()

    from numba.core import event

    from retrograd.kernels.numba.jit import Waiting

    waiting = Waiting()
    assert compiled("retrograd.kernels.numba.normalization", 0.0) == ""  # stderr is not a terminal
    monkeypatch.setattr(told, "isatty", lambda: True, raising=False)
    assert compiled("mine", 0.0) == "" and compiled("retrograd.kernels.numba.normalization", 600.0) == ""
    line = "retrograd: compiling loops, once (about 10 s for convolutions) ...\n"
    assert compiled("retrograd.kernels.numba.normalization", 0.0) == line
    assert compiled("retrograd.kernels.numba.normalization", 0.0) == line


def test_numba_can_be_disabled() -> None:
    program = "import sys, retrograd as torch; print(float(torch.ones(100000).exp().sum()), 'numba' in sys.modules)"
    value, loaded = run(program, RETROGRAD_FAST="0").split()
    assert abs(float(value) / 271828.18 - 1) < 1e-5 and loaded == "False"


@compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_compiled_loop_and_its_copy_from_the_disk_give_the_same_bits(tmp_path: Path) -> None:
    program = """if True:
        import retrograd as torch
        torch.set_num_threads(1)
        query, key, value = torch.manual_seed(0) and (torch.randn(3, 16, 2, 64, 16))
        print(hash(torch.nn.functional.scaled_dot_product_attention(query, key, value).numpy().tobytes()))
    """
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONHASHSEED": "0"}
    printed = [subprocess.check_output([sys.executable, "-c", program], env=variables, text=True) for _ in range(2)]
    assert list(tmp_path.rglob("*.nbc"))
    assert printed[0] == printed[1]


def test_forked_child_can_compute() -> None:
    program = """
import os, warnings, retrograd as torch
warnings.simplefilter("ignore")
x = torch.ones(100000)
(x + x).sum()
if child := os.fork():
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    os._exit(0 if float((x + x).sum()) == 200000 else 1)
"""
    assert run(program) == "0"


IMPORTED_LATER = """
import os, threading, time
os.environ.pop("OPENBLAS_THREAD_TIMEOUT", None)
os.environ.update({environment!r})
import numpy
x = numpy.arange(250_000.0).reshape(500, 500)
product, more = x @ x, True
def others():
    while more: {other}
other = threading.Thread(target=others)
other.start()
import retrograd as torch
from retrograd.runtime import blas_threads
torch.exp(torch.zeros(1 << 16))  # loads a loop
more = False
other.join()
assert (x @ x == product).all() and (torch.tensor(x) @ torch.tensor(x) == torch.tensor(product)).all()
print(blas_threads.SHORT_SPIN, blas_threads.shorten_spin())
"""


@compiled
@pytest.mark.skipif(not blas_threads.gemm_address("f") or not hasattr(os, "fork"), reason="another BLAS under NumPy")
def test_blas_spin_timeout_after_numpy_import() -> None:
    """Not while another thread may be in a product, nor if the user has set the timeout."""
    waits = "threading.Event().wait(0.3)"
    assert (
        run(IMPORTED_LATER.format(environment={}, other=waits))
        == f"False {blas_threads.restartable_openblas() is not None}"
    )
    assert run(IMPORTED_LATER.format(environment={}, other="x[:50] @ x")) == "False False"
    assert run(IMPORTED_LATER.format(environment={"OPENBLAS_THREAD_TIMEOUT": "26"}, other=waits)) == "False False"


@compiled
def test_unrecorded_operations_give_the_same_results() -> None:
    x, row = torch.tensor(DRAWN["x"]), torch.tensor(DRAWN["row"], requires_grad=True)
    for given in (None, row):
        recorded = torch.nn.functional.rms_norm(x.clone().requires_grad_(), (SIZE,), given)
        with torch.no_grad():
            assert torch.allclose(torch.nn.functional.rms_norm(x, (SIZE,), given), recorded, rtol=1e-6, atol=1e-6)


@compiled
def test_parallel_arithmetic_matches_numpy() -> None:
    for shape in ((40_000,), (4, 100, 100)):
        x, y = (numpy.resize(DRAWN[name], shape) for name in ("x", "p"))
        a, b = torch.tensor(x), torch.tensor(y)
        for _ in range(2):  # the first loop starts the threads
            found = [
                a + b,
                a - b,
                a * b,
                a / b,
                a + 2,
                2 - a,
                a * 0.5,
                1 / b,
                a / 3,
                torch.maximum(a, b),
                a + b[:1] * 0,
            ]
        true = [x + y, x - y, x * y, x / y, x + 2, 2 - x, x * 0.5, 1 / y, x / 3, numpy.maximum(x, y), x]
        assert all(numpy.array_equal(one.numpy(), other) for one, other in zip(found, true, strict=True))


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("shapes", [((300, 70), (70, 90)), ((7, 100, 64), (7, 64, 80)), ((3, 300), (300, 4000))])
def test_matmul_by_numba_threads(kind: str, shapes: Any) -> None:
    """For every memory layout; the number of BLAS threads is restored."""
    draw = numpy.random.default_rng(0)
    torch.exp(torch.zeros(1 << 16))  # a loop has run
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        a, b = (draw.normal(size=shape).astype(kind) for shape in shapes)
        turned_a, turned_b = (numpy.ascontiguousarray(each.swapaxes(-1, -2)).swapaxes(-1, -2) for each in (a, b))
        expected = numpy.matmul(a.astype("float64"), b.astype("float64"))
        for x in (a, turned_a):
            for y in (b, turned_b):
                found = matmul.product(x, y)
                assert found.dtype == kind
                numpy.testing.assert_allclose(found, expected, rtol=1e-3 if kind == "float32" else 1e-10, atol=1e-4)
                out = numpy.empty_like(found)
                assert matmul.product(x, y, out) is out and numpy.array_equal(out, found)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@compiled
def test_local_variables_are_not_arguments_that_may_be_numbers() -> None:
    def body(x: Any, g: Any, out: Any) -> None:
        h = 2
        out[0] = x[0] * g[0] * h

    assert numba_dispatch.loops("jit").loop(body).flexible == {1}
