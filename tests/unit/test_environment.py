"""Environment queries that the transcripts cannot compare: versions, shared memory, a GPU."""

from __future__ import annotations

import multiprocessing
import os
import tomllib
from pathlib import Path

import numpy
import pytest

import retrograd as torch
from retrograd.runtime import extras
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


def test_hints_name_the_requirements_of_the_extras() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra, packages in extras.REQUIREMENTS.items():
        declared = [each.partition(";") for each in project["optional-dependencies"][extra]]
        here = [name.strip() for name, _, marker in declared if not marker or ("!=" in marker) == (os.name == "posix")]
        assert list(packages) == here
    assert extras.how_to_install("fast") == 'pip install "numba>=0.62" (the extra [fast])'


def test_no_hint_names_a_package_of_the_index_with_this_name() -> None:
    folder = Path(torch.__file__).parent
    assert not [
        each.name for each in folder.rglob("*.py") if "pip install 'retrograd" in each.read_text(encoding="utf-8")
    ]
