"""Kernels use the array module of their arguments, so that a GPU needs no code of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial, wraps
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.dispatch import fast_path
from retrograd.dispatch.op import ARRAYS, OPS
from tests.conformance.sample_comparison import leaves
from tests.conformance.sample_derivatives import derivatives
from tests.conformance.samples import Sample, samples

#: Functions of types and shapes, which read no array.
HARMLESS = {
    "broadcast_shapes", "dtype", "ndarray", "generic", "errstate", "float32", "float64", "int64", "bool_", "polynomial",
}  # fmt: skip
#: Functions that compute small index tables on the CPU for any device.
PLANNED = {"retrograd.operations.shape.padding", "retrograd.operations.nn.interpolation"}
#: Random numbers come from the CPU's generator on every device (docs/differences.md).
DRAWN = {"bernoulli_block", "to_device"}
FAMILIES = (
    "pointwise", "arithmetic", "special", "reductions", "shape", "indexing", "linalg", "decompositions", "activation", "losses",
    "normalization", "embedding", "fft", "scan", "distance",
)  # fmt: skip


class Watched:
    """The numpy module; using it while a kernel runs is an error."""

    inside = False

    def __getattr__(self, name: str) -> Any:
        assert not Watched.inside or name in HARMLESS, f"a kernel uses numpy.{name} instead of its array module"
        return getattr(numpy, name)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, module in list(sys.modules.items()):
        arrays_only = not name.endswith((".random", ".formatting"))
        if (
            name.startswith(("retrograd.operations.", "retrograd.kernels."))
            and arrays_only
            and "numpy" in module.__dict__
        ):
            monkeypatch.setattr(module, "numpy", Watched())
    for op in OPS.values():
        if op.name in DRAWN or op.kernel.__module__ in PLANNED:
            continue
        guarded = guard(op.kernel)
        monkeypatch.setattr(op, "kernel", guarded)
        monkeypatch.setitem(ARRAYS.__dict__, op.name, partial(guarded, numpy))
        fast_path.install_all_fast_paths(op)
    yield
    Watched.inside = False
    monkeypatch.undo()
    for op in OPS.values():
        fast_path.install_all_fast_paths(op)


def guard(kernel: Any) -> Any:
    @wraps(kernel)
    def run(*args: Any, **kwargs: Any) -> Any:
        before, Watched.inside = Watched.inside, True
        try:
            return kernel(*args, **kwargs)
        finally:
            Watched.inside = before

    return run


def test_kernels_do_not_use_numpy_directly(watched: None) -> None:
    for family in FAMILIES:
        for sample in samples(family):
            once(sample)


def once(sample: Sample) -> None:
    tensors = leaves(sample)
    try:
        outs = sample.evaluate(torch, tensors)
        if sample.smooth:
            derivatives(torch, outs, list(tensors.values()))
    except (RuntimeError, TypeError, ValueError):
        pass  # calls that fail are tested elsewhere
    except AssertionError as error:
        raise AssertionError(f"{sample.expression}: {error}") from error


def test_error_without_gpu_names_cuda_and_the_package() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    for move in (lambda: torch.ones(2).cuda(), lambda: torch.ones(2).to("cuda"), lambda: torch.ones(2, device="cuda")):
        with pytest.raises((AssertionError, RuntimeError), match="CUDA"):
            move()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU and CuPy")
@pytest.mark.parametrize("family", FAMILIES)
def test_gpu_matches_cpu(family: str) -> None:
    failed = []
    for sample in samples(family):
        if (
            "torch.zeros" in sample.expression
            or "torch.tensor" in sample.expression
            or "torch.empty" in sample.expression
        ):
            continue  # creates a tensor on the CPU
        try:
            here = [each for each in sample.evaluate(torch, leaves(sample)) if hasattr(each, "cpu")]
        except (RuntimeError, TypeError):
            continue
        there = sample.evaluate(torch, {name: each.detach().cuda() for name, each in leaves(sample).items()})
        for a, b in zip(here, (each for each in there if hasattr(each, "cpu")), strict=True):
            if not numpy.allclose(a.detach().numpy(), b.detach().cpu().numpy(), 1e-6, 1e-6, equal_nan=True):
                failed.append(sample.expression)
    assert not failed
