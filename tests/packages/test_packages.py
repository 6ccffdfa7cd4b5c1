"""The fastest jobs with packages print what they print under PyTorch, where the packages are installed."""

from __future__ import annotations

import pytest

from tests.packages import jobs_of_packages as jobs

FASTEST = (
    "einops",
    "fvcore",
    "higher",
    "nflows",
    "safetensors",
    "torch_optimizer",
    "torchode",
    "torchvision_operators",
)


@pytest.mark.parametrize("name", FASTEST)
def test_job_prints_what_it_prints_under_pytorch(name: str) -> None:
    found, recorded = jobs.version(name), jobs.expected()[name]
    if found is None:
        pytest.skip(f"the package {jobs.DISTRIBUTIONS.get(name, name)} is not installed")
    if found != recorded["version"]:
        pytest.skip(f"{name} {found} is installed; the lines were recorded with {recorded['version']}")
    done = jobs.run(name)
    assert not done.error
    assert jobs.difference(done.lines, recorded["lines"]) == ""


def test_jobs_have_records() -> None:
    assert sorted(jobs.expected()) == jobs.names()


def test_differences_of_lines() -> None:
    assert jobs.difference(["a [2] float32: 1 0.5"], ["a [2] float32: 1.0001 0.5"]) == ""
    assert jobs.difference(["a: 1.001"], ["a: 1"]) == "a: 1.001 instead of a: 1"
    assert jobs.difference(["a: nan"], ["a: nan"]) == "" and jobs.difference(["a: nan"], ["a: 1"])
    assert jobs.difference(["a: 1"], ["b: 1"]) and jobs.difference([], ["a"]) == "0 lines instead of 1"
