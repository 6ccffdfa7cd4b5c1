"""The device ``meta``: layouts of all operations and of their gradients, and what needs elements."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn
from tests.conformance.meta_cases import compare, second_gradients
from tests.conformance.samples import FAMILIES, Sample, samples

#: Samples, by a part of their text, whose results are on the CPU also while ``meta`` is the default device, as in PyTorch.
ON_THE_CPU = ("frombuffer", "Tensor([")
#: The samples that need elements: family, expression and class of the error, separated by tabs.
NEED_ELEMENTS = Path(__file__).with_name("meta_refusals.txt").read_text(encoding="utf-8").splitlines()


def found(family: str) -> list[tuple[Sample, Any]]:
    return [(each, outcome) for each in samples(family) if (outcome := compare(each)) is not None]


@pytest.mark.parametrize("family", FAMILIES)
def test_layouts_are_those_of_the_cpu(family: str) -> None:
    """Shape, dtype, strides and node of all results, and the gradients; or an error where elements are needed."""
    outcomes = found(family)
    assert outcomes
    wrong = [
        f"{sample.expression}: {outcome.difference}" for sample, outcome in outcomes
        if outcome.difference and not any(part in sample.expression for part in ON_THE_CPU)
    ]  # fmt: skip
    assert wrong == []
    refused = [
        f"{family}\t{sample.expression}\t{type(outcome.error).__name__}"
        for sample, outcome in outcomes
        if outcome.error
    ]
    assert refused == [each for each in NEED_ELEMENTS if each.startswith(f"{family}\t")]


@pytest.mark.parametrize("family", ["pointwise", "arithmetic", "reductions", "indexing", "losses", "normalization"])
def test_gradients_of_gradients(family: str) -> None:
    wrong, refused = [], {each.split("\t")[1] for each in NEED_ELEMENTS}
    for sample in samples(family):
        if not sample.smooth or sample.expression in refused:
            continue
        try:
            expected = second_gradients(sample, "cpu")
        except RuntimeError:
            continue
        if second_gradients(sample, "meta") != expected:
            wrong.append(sample.expression)
    assert wrong == []


META = {"device": "meta"}


def test_text() -> None:
    x = torch.empty(3, 4, **META)
    assert repr(x) == "tensor(..., device='meta', size=(3, 4))"
    assert str(x.sum()) == f"{x.sum()}" == "tensor(..., device='meta', size=())"
    assert repr(torch.ones(3, **META, requires_grad=True) * 2) == (
        "tensor(..., device='meta', size=(3,), grad_fn=<MulBackward0>)"
    )
    assert repr(x.long()) == "tensor(..., device='meta', size=(3, 4), dtype=torch.int64)"
    assert repr(nn.Parameter(x)) == (
        "Parameter containing:\ntensor(..., device='meta', size=(3, 4), requires_grad=True)"
    )
    assert repr(x.untyped_storage()) == "...\n[torch.storage.UntypedStorage(device=meta) of size 48]"
    assert (x.type(), x.is_meta, x.is_cpu, x.get_device()) == ("torch.meta.FloatTensor", True, False, -1)
    assert (x.data_ptr(), x[1:].data_ptr(), x[1:].storage_offset(), x.t().stride()) == (0, 16, 4, (1, 4))


ERRORS = {
    "x.item()": (RuntimeError, "a Tensor with 12 elements cannot be converted to Scalar"),
    "s.item()": (RuntimeError, "Tensor.item() cannot be called on meta tensors"),
    "float(s)": (RuntimeError, "Tensor.item() cannot be called on meta tensors"),
    "bool(s)": (RuntimeError, "Tensor.item() cannot be called on meta tensors"),
    "bool((x < 0).any())": (RuntimeError, "Tensor.item() cannot be called on meta tensors"),
    "torch.allclose(x, x)": (RuntimeError, "Tensor.item() cannot be called on meta tensors"),
    "torch.nn.functional.one_hot(i)": (RuntimeError, "Tensor.item() cannot be called on meta tensors"),
    "x.tolist()": (NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    "x.cpu()": (NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    "x.to('cpu')": (NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    "c.copy_(x)": (NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    "x.numpy()": (
        TypeError,
        "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host",
    ),
    "torch.nonzero(x)": (
        NotImplementedError,
        "The register_meta function for torch.nonzero() raises unimplemented by default,",
    ),
    "x[b]": (NotImplementedError, "The register_meta function for torch.nonzero() raises unimplemented by default,"),
    "torch.equal(x, x)": (NotImplementedError, "aten::equal: attempted to run this operator with Meta tensors"),
    "x.masked_select(b)": (
        NotImplementedError,
        "aten::masked_select: attempted to run this operator with Meta tensors",
    ),
    "torch.unique_consecutive(x)": (
        NotImplementedError,
        "aten::unique_consecutive: attempted to run this operator with",
    ),
    "torch.bincount(i)": (NotImplementedError, "aten::bincount: attempted to run this operator with Meta tensors"),
    "torch.repeat_interleave(i)": (RuntimeError, "cannot repeat_interleave a meta tensor without output_size"),
    "x.tensor_split(i)": (
        RuntimeError,
        "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on meta",
    ),
    "x + c": (RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
    "c + x": (RuntimeError, "Tensor on device meta is not on the expected device cpu!"),
    "torch.cat([x, c])": (RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
    "torch.where(b, x, c)": (RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
    "torch.ones(1) + x": (RuntimeError, "Tensor on device meta is not on the expected device cpu!"),
    "c.add_(x)": (RuntimeError, "Tensor on device meta is not on the expected device cpu!"),
    "x @ c.t()": (RuntimeError, "Tensor on device cpu is not on the expected device meta!"),
    "x.view(5)": (RuntimeError, "shape '[5]' is invalid for input of size 12"),
    "x[5]": (IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    "torch.Generator('meta')": (RuntimeError, "META device type not an accelerator."),
    "x.pin_memory()": (RuntimeError, "cannot pin 'MetaFloatType' only dense CPU tensors can be pinned"),
    "x.share_memory_()": (RuntimeError, "_share_fd_: only available on CPU"),
    "x.__dlpack__()": (BufferError, "Cannot pack tensors on meta"),
    "nn.Linear(2, 3, device='meta').to('cpu')": (
        NotImplementedError,
        "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
        "when moving module from meta to a different device.",
    ),
}


@pytest.mark.parametrize("expression", ERRORS)
def test_errors_are_those_of_pytorch(expression: str) -> None:
    kind, text = ERRORS[expression]
    x, c = torch.empty(3, 4, **META), torch.ones(3, 4)
    names = {"torch": torch, "nn": nn, "x": x, "c": c, "s": x.sum(), "b": x > 0, "i": torch.zeros(3, **META).long()}
    with pytest.raises(kind) as raised:
        eval(expression, names)
    assert type(raised.value) is kind and str(raised.value).startswith(text)
    assert torch.equal(c, torch.ones(3, 4))


def test_numbers_on_the_cpu_take_part() -> None:
    x = torch.empty(3, 4, **META)
    for each in (
        x + torch.tensor(2.0),
        torch.tensor(2.0) * x,
        torch.tensor(2.0) - x,
        torch.where(x > 0, x, torch.tensor(1.0)),
    ):
        assert each.is_meta and each.shape == (3, 4)
    assert x[torch.tensor([0, 1])].shape == (2, 4) and x[torch.tensor([True, False, True])].shape == (2, 4)


def test_pairs_of_indices_are_counted() -> None:
    assert torch.nn.functional.pdist(torch.empty(5000, 4, **META)).shape == (12_497_500,)
    for arguments in ((3, 4, 1), (5, 2, -3), (4, 0), (2, 3, 9)):
        for function in (torch.triu_indices, torch.tril_indices):
            found, expected = function(*arguments, dtype=torch.int32, **META), function(*arguments, dtype=torch.int32)
            assert (found.shape, found.dtype, found.stride()) == (expected.shape, expected.dtype, expected.stride())
    assert torch.tril_indices(10**6, 10**6, -1, **META).shape == (2, 10**6 * (10**6 - 1) // 2)


def test_default_device() -> None:
    with torch.device("meta"):
        layer, x = nn.Linear(2, 3), torch.randn(4, 2)
        assert layer.weight.is_meta and x.is_meta and torch.tensor([1.0]).is_meta and torch.arange(3).is_meta
    assert torch.ones(1).is_cpu
    torch.set_default_device("meta")
    try:
        assert torch.zeros(2).is_meta and torch.randperm(3).is_meta and torch.get_default_device().type == "meta"
    finally:
        torch.set_default_device(None)
    assert torch.empty_like(torch.ones(2), device="meta").is_meta and torch.ones(2).to("meta").is_meta
    assert torch.empty_like(x, device="cpu").is_cpu


def test_random_functions_leave_the_generator() -> None:
    before = torch.get_rng_state()
    x = torch.rand(5, **META)
    nn.Linear(3, 3, **META)
    nn.functional.dropout(x)
    torch.bernoulli(x), torch.poisson(x), torch.normal(x, x), torch.multinomial(x, 2), x.exponential_(), x.uniform_()
    for name in ("xavier_uniform_", "kaiming_normal_", "orthogonal_", "trunc_normal_", "eye_"):
        assert getattr(nn.init, name)(torch.empty(3, 4, **META)).shape == (3, 4)
    assert torch.equal(before, torch.get_rng_state())


def test_loading_state() -> None:
    state = nn.Linear(2, 3).state_dict()
    layer = nn.Linear(2, 3, **META)
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        layer.load_state_dict(state)
    text = (
        ": copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a no-op. "
        "(Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in the "
        "module instead of copying them in place?)"
    )
    assert [str(each.message) for each in issued] == [f"for weight{text}", f"for bias{text}"]
    assert layer.weight.is_meta
    layer.load_state_dict(state, assign=True)
    assert torch.equal(layer.weight, state["weight"]) and layer.weight.requires_grad
    with pytest.raises(RuntimeError, match="Cannot copy out of meta tensor; no data!"):
        layer.load_state_dict(nn.Linear(2, 3, **META).state_dict())
    made = nn.BatchNorm1d(4, **META).to_empty(device="cpu")
    assert made.weight.is_cpu and made.running_mean.is_cpu and made.weight.requires_grad


def test_saving_and_copying() -> None:
    state = {"x": torch.empty(3, 4, **META).t(), "p": nn.Parameter(torch.empty(2, **META))}
    file = io.BytesIO()
    torch.save(state, file)
    for again in (torch.load(io.BytesIO(file.getvalue())), pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
        assert (again["x"].shape, again["x"].stride(), again["x"].is_meta) == ((4, 3), (1, 4), True)
        assert isinstance(again["p"], nn.Parameter) and again["p"].requires_grad and again["p"].is_meta


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "RMSprop", "NAdam", "Rprop"])
def test_optimizers_step(name: str) -> None:
    layer = nn.Linear(3, 4, **META)
    optimizer = getattr(torch.optim, name)(layer.parameters(), lr=0.1)
    for _ in range(2):
        layer(torch.ones(2, 3, **META)).sum().backward()
        optimizer.step()
    assert layer.weight.grad.is_meta and layer.weight.grad.shape == (4, 3)


def test_transforms_and_views() -> None:
    x = torch.ones(2, 3, **META)
    assert torch.func.vmap(lambda v: v * 2)(x).is_meta
    assert torch.func.grad(lambda v: (v**2).sum())(x).shape == (2, 3)
    leaf = x.clone().requires_grad_()
    (first,) = torch.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), leaf)
    assert second.is_meta and second.shape == (2, 3)
    changed = x.clone()
    changed[0], changed[changed > 0] = 1, 2.0
    assert changed._version == 2 and changed.view(-1)._base is changed


LARGE = """
import resource
import retrograd as torch
from retrograd import nn

torch.empty(1, device="meta") + 1
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with torch.device("meta"):
    layer = nn.Linear(10**6, 10**6)
    block = nn.TransformerEncoderLayer(4096, 32, 4 * 4096, batch_first=True, norm_first=True)
    table, head = nn.Embedding(50_000, 4096), nn.Linear(4096, 50_000)
    blocks = nn.ModuleList(nn.TransformerEncoderLayer(4096, 32, 4 * 4096, batch_first=True) for _ in range(50))
    x = table(torch.zeros(8, 2048, dtype=torch.long))
assert layer(torch.empty(10**6, device="meta")).shape == (10**6,)
for each in blocks:
    x = each(x)
assert head(x).shape == (8, 2048, 50_000)
assert sum(each.numel() for each in blocks.parameters()) > 10**10
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024)
"""


def test_ten_billion_parameters_take_little_memory() -> None:
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 50  # megabytes


def test_package_is_loaded_on_demand() -> None:
    code = "import sys, retrograd as torch; torch.ones(2) + 1; print('retrograd.kernels.meta' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_warnings_are_not_hidden() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.empty(2, **META).log().is_meta


@pytest.mark.parametrize(("rows", "columns", "sides"), [(3, 4, 7), (7, 4, 3), (4, 4, 9), (9, 2, 4)])
def test_sizes_of_lapack_results(rows: int, columns: int, sides: int) -> None:
    """Routines of LAPACK are called for smaller matrices."""
    torch.manual_seed(0)
    a, b = torch.randn(2, rows, columns), torch.randn(2, rows, sides)
    for function in (
        lambda x, y: torch.linalg.lstsq(x, y),
        lambda x, y: torch.geqrf(x),
        lambda x, y: torch.linalg.lu(x),
    ):
        expected, found = function(a, b), function(a.to("meta"), b.to("meta"))
        assert [tuple(each.shape) for each in found] == [tuple(each.shape) for each in expected]


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "complex32"])
def test_stored_dtypes(name: str) -> None:
    dtype = getattr(torch, name)
    moved = [torch.ones(2, 3).to(dtype).to("meta"), torch.ones(2, 3, device="meta").to(dtype)]
    moved.append(torch.empty(2, 3, device="meta", dtype=dtype))
    for each in moved:
        assert each.is_meta and each.dtype is dtype and each.t().stride() == (1, 3)
        chosen = each.index_select(0, torch.zeros(1, dtype=torch.int64, device="meta"))
        assert chosen.is_meta and chosen.dtype is dtype and chosen.shape == (1, 3)
        assert (each == each).dtype is torch.bool
