"""Environment queries that the transcripts cannot compare: versions, shared memory, a GPU."""

from __future__ import annotations

import multiprocessing
import sys
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.core import devices
from retrograd.torch_version import TorchVersion
from retrograd.version import OWN, PYTORCH


def test_version_is_pytorchs_with_local_part() -> None:
    assert torch.__version__ == f"{PYTORCH}+retrograd.{OWN}" == torch.version.__version__
    assert torch.__version__ >= "2.0" and torch.__version__ < "3" and torch.__version__ >= (2, 13)
    assert torch.__version__.split("+")[0] == PYTORCH
    assert tuple(int(each) for each in torch.__version__.split(".")[:2]) == (2, 13)
    packaging = pytest.importorskip("packaging.version")
    assert packaging.parse(str(torch.__version__)).release == (2, 13, 0)


@pytest.mark.parametrize(
    "ordered",
    [
        ["1.0.dev1", "1.0a1", "1.0a2", "1.0b1", "1.0rc1", "1.0", "1.0+cpu", "1.0+cu118", "1.0.post1", "1.0.1", "1.10"],
        ["1.9.1", "1.10.0", "2.0.0a0+git1", "2.0", "1!0.1"],
    ],
)
def test_versions_compare_as_versions(ordered: list[str]) -> None:
    for i, a in enumerate(ordered):
        for j, b in enumerate(ordered):
            version = TorchVersion(a)
            assert (version < b, version <= b, version == b, version != b, version > b, version >= b) == (
                i < j, i <= j, i == j, i != j, i > j, i >= j,
            )  # fmt: skip
    assert TorchVersion("1.0") == "1.0.0" == TorchVersion("1.0.0") and TorchVersion("x1") < "y"
    with pytest.raises(ValueError, match="compare"):
        _ = TorchVersion("1.0") > 3


def test_shared_memory_is_seen_by_a_child() -> None:
    x = torch.zeros(3)
    assert not x.is_shared() and x.share_memory_() is x and x.is_shared()
    child = multiprocessing.get_context("fork").Process(target=lambda: x.add_(2))
    child.start()
    child.join()
    assert x.tolist() == [2.0, 2.0, 2.0]
    assert isinstance(x.untyped_storage(), torch.UntypedStorage) and x.untyped_storage().is_shared()


def test_dlpack_capsule_is_consumed_once() -> None:
    x = torch.arange(3.0)
    capsule = torch.utils.dlpack.to_dlpack(x)
    y = torch.from_dlpack(capsule)
    y[0] = 7
    assert x.tolist() == [7, 1, 2] and torch.from_dlpack(numpy.arange(2)).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="consumed only once"):
        torch.from_dlpack(capsule)
    assert numpy.from_dlpack(x)[0] == 7


def test_flags_hold_for_a_block() -> None:
    cudnn = torch.backends.cudnn
    with cudnn.flags(enabled=False, benchmark=True):
        assert not cudnn.enabled and cudnn.benchmark
    assert cudnn.enabled and not cudnn.benchmark
    with pytest.raises(RuntimeError, match="set_enabled_cudnn expects a bool, but got int"):
        cudnn.enabled = 1
    assert not torch.set_flush_denormal(True)


class _Pool:
    used, total = 100, 200

    def used_bytes(self) -> int:
        return self.used

    def total_bytes(self) -> int:
        return self.total

    def free_all_blocks(self) -> None:
        self.total = self.used


def fake_cupy() -> Any:
    """Return the part of CuPy that queries about a GPU use."""
    pool = _Pool()
    properties = {
        "name": b"A GPU", "major": 9, "minor": 0, "totalGlobalMem": 2**30, "multiProcessorCount": 4, "warpSize": 32,
        "maxThreadsPerMultiProcessor": 2048, "sharedMemPerBlock": 1, "l2CacheSize": 1, "integrated": 0,
    }  # fmt: skip
    runtime = SimpleNamespace(
        getDeviceCount=lambda: 1, getDeviceProperties=lambda index: properties, memGetInfo=lambda: (1, 2)
    )
    gpu = SimpleNamespace(id=0, synchronize=lambda: None, use=lambda: None)
    return SimpleNamespace(
        cuda=SimpleNamespace(runtime=runtime, Device=lambda index=0: gpu),
        get_default_memory_pool=lambda: pool,
        pool=pool,
    )


def test_queries_with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = fake_cupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    cuda = torch.cuda
    assert devices.gpu_count() == 1 and cuda.is_available() and torch.backends.cuda.is_built()
    assert cuda.get_device_name() == "A GPU" and cuda.get_device_capability(0) == (9, 0) and cuda.is_bf16_supported()
    assert repr(cuda.get_device_properties("cuda:0")) == (
        "_CudaDeviceProperties(name='A GPU', major=9, minor=0, total_memory=1024MB, multi_processor_count=4)"
    )
    cuda.reset_peak_memory_stats()
    assert (cuda.memory_allocated(), cuda.memory_reserved(), cuda.mem_get_info()) == (100, 200, (1, 2))
    cupy.pool.used = 60
    assert (cuda.memory_allocated(), cuda.max_memory_allocated()) == (60, 100)
    assert cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"] == {"current": 60, "peak": 100}
    assert "Allocated memory" in cuda.memory_summary()
    cuda.empty_cache()
    assert cuda.memory_reserved() == 60 and torch.accelerator.memory_reserved() == 60
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    with cuda.device(0):
        cuda.synchronize()
