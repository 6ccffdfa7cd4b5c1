"""Warnings: NumPy's are not shown, PyTorch's point to the user's line."""

import inspect
import pickle
import sys
import warnings

import numpy
import pytest

import retrograd as torch
from retrograd.runtime.fp_warnings import COMPILED, COMPUTING

NOTHING, HUGE, MIXED = torch.zeros(2, 3), torch.full((3, 3), 3e38), torch.tensor([torch.inf, -torch.inf, torch.nan])

# Ufuncs, composite kernels, casts, NumPy functions written in Python, and the backward pass.
NOISY = {
    "ufunc": lambda: torch.log(NOTHING),
    "operator": lambda: 1 / NOTHING,
    "in place": lambda: HUGE.clone().mul_(HUGE),
    "cast": lambda: HUGE.half(),
    "reduction": lambda: HUGE.sum(),
    "softmax": lambda: torch.softmax(MIXED, 0),
    "running": lambda: HUGE.cumsum(0) + HUGE.cumprod(1),
    "cross": lambda: torch.linalg.cross(HUGE, HUGE.T),
    "matrices": lambda: HUGE @ HUGE,
    "bilinear": lambda: torch.nn.functional.bilinear(HUGE, HUGE, HUGE.expand(2, 3, 3)),
    "exponential": lambda: torch.linalg.matrix_exp(HUGE),
    "trace": lambda: HUGE.trace(),
    "backward": lambda: torch.zeros(2, requires_grad=True).sqrt().sum().backward(),
    "recorded backward": lambda: torch.zeros(2, requires_grad=True).sqrt().sum().backward(create_graph=True),
    "number": lambda: [HUGE * 1e300, HUGE.half() * 1e300, HUGE.clone().mul_(1e-300), HUGE < 1e300],
    "function": lambda: [torch.linspace(-1e308, 1e308, 5, dtype=torch.float64), torch.histc(HUGE[0] * NOTHING[0])],
    "optimizers": lambda: [take_step(each) for each in OPTIMIZERS],
}
OPTIMIZERS = [torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.Rprop]


def take_step(kind: type[torch.optim.Optimizer]) -> None:
    x = torch.nn.Parameter(torch.tensor([1e38, 1e-38, 0.0]))
    x.grad = torch.tensor([3e38, -1e-38, 0.0])
    optimizer = kind([x])
    optimizer.step()
    optimizer.step()


@pytest.mark.parametrize("call", NOISY.values(), ids=NOISY)
def test_numpy_warnings_are_never_shown(call: object) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    assert [str(each.message) for each in seen] == []


# One call for each warning of the package.
POINTING = [
    "leaf.exp().grad",
    "t.T",
    "torch.nn.functional.softmax(x)",
    "torch.nn.functional.gumbel_softmax(x, eps=1e-3)",
    "torch.nn.functional.mse_loss(x, x[:1])",
    "torch.nn.functional.l1_loss(x, x, size_average=True)",
    "torch.nn.functional.kl_div(x, x)",
    "torch.nn.functional.dropout2d(t)",
    "torch.nn.functional.dropout2d(t[None, None])",
    "torch.nn.functional.upsample(t, 4)",
    "torch.nn.functional.grid_sample(t[None], torch.zeros(1, 2, 2, 2))",
    "torch.nn.functional.conv1d(t, torch.ones(2, 2, 2), padding='same')",
    "torch.nn.functional.embedding_bag(torch.ones(3, 2), torch.tensor([[0, 1]]))",
    "torch.tensor(x)",
    "torch.range(0, 3)",
    "torch.meshgrid(x[0], x[1])",
    "torch.var(x[0, :1])",
    "x[0].std(dim=0, correction=5)",
    "torch.where(torch.ones(2, dtype=torch.uint8), 1.0, 2.0)",
    "x[torch.ones(2, dtype=torch.uint8)]",
    "x[torch.ones(2, dtype=torch.uint8)] = torch.ones(2, 3)",
    "torch.add(x, x, out=torch.ones(5))",
    "x.clone().index_reduce_(0, torch.tensor([0]), x[:1], 'amax')",
    "x.scatter(0, torch.tensor([[0]]), x, reduce='add')",
    "float(leaf.sum())",
    "torch.autograd.grad(leaf.sum(), leaf, only_inputs=False)",
    "torch.autograd.backward(leaf.sum(), grad_variables=torch.tensor(1.0))",
    "torch.no_grad()(type('A', (), {}))",
]


@pytest.mark.parametrize("line", POINTING)
def test_a_warning_points_to_the_users_line(line: str) -> None:
    given = {"torch": torch, "leaf": torch.ones(2, requires_grad=True), "x": torch.ones(2, 3), "t": torch.ones(2, 2, 2)}
    program = compile("\n" * 41 + line, "program.py", "exec")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        exec(program, given)
    assert {(each.filename, each.lineno) for each in seen} == {("program.py", 42)}


@pytest.mark.parametrize("call", NOISY.values(), ids=NOISY)
def test_numpy_errors_are_never_raised(call: object) -> None:
    with numpy.errstate(all="raise"):
        call()
        with pytest.raises(FloatingPointError):
            numpy.ones(1) / numpy.zeros(1)


def test_numpy_errors_leave_no_half_written_tensor() -> None:
    x, y = torch.ones(3), torch.full((20000,), 1e300, dtype=torch.float64)
    with numpy.errstate(all="raise"):
        x.add_(torch.tensor([1e300, 1.0, 1.0], dtype=torch.float64))
        y.add_(1e300).mul_(1e300)
    assert x.tolist() == [float("inf"), 2, 2] and x._version == 1
    assert torch.all(y == torch.inf) and y._version == 2


def test_numpy_warnings_of_the_program_are_shown() -> None:
    torch.log(NOTHING)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        numpy.log(numpy.zeros(1))


def test_modules_excluded_from_numpy_warnings() -> None:
    assert (
        torch._int_mm.__module__ == "retrograd.operations.linalg.private_products"
    )  # no public module is loaded with it
    packages = tuple(each.removesuffix(".") for each in COMPILED)
    quiet = [
        (name, module)
        for name, module in sys.modules.items()
        if name.startswith(COMPUTING) and not name.startswith(packages)
    ]
    assert len(quiet) > 50
    for name, module in quiet:
        assert module.__name__ == name and f"'{name}'" in repr(module)
        assert vars(module)["__name__"] is None
    assert inspect.getmodule(quiet[0][1]) is quiet[0][1]
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32
