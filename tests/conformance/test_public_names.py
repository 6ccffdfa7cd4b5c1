"""PyTorch's public names: missing ones are listed, and unsupported ones raise an error with the reason."""

from __future__ import annotations

import importlib.util
from collections import Counter
from types import ModuleType

import pytest

from retrograd.compat import unsupported
from retrograd.compat.missing_names import DIFFERENCES_PAGE
from tests.conformance import name_families as families
from tests.conformance.name_families import below_torch, equivalent, recorded, supported_names

LEFT_OUT = [
    (place, name, why)
    for place, names in recorded().items()
    for name in names
    if (why := unsupported.reason(below_torch(place, name)))
]


def test_no_name_is_lost() -> None:
    missing = families.missing()
    print(f"{len(missing)} of {len(supported_names())} names are missing:", *missing, sep="\n")
    allowed = families.allowed_missing()
    lost = [name for name in missing if name not in allowed]
    assert not lost, "these names of PyTorch existed before, or are new (tests/conformance/missing_names.txt)"
    come = [name for name in allowed if name not in missing]
    if come:
        print(
            "Remove from tests/conformance/missing_names.txt (python3 scripts/coverage.py --write):",
            *come,
            sep="\n",
        )


def test_missing_names_are_names_of_pytorch() -> None:
    allowed = families.allowed_missing()
    assert len(set(allowed)) == len(allowed)
    assert set(allowed) <= {f"{place}.{name}" for place, name in supported_names()}


@pytest.mark.parametrize("place", recorded())
def test_unsupported_names_raise_with_the_reason(place: str) -> None:
    found = equivalent(place)
    for name, why in ((name, why) for where, name, why in LEFT_OUT if where == place and found is not None):
        with pytest.raises(AttributeError, match="has no attribute") as caught:
            getattr(found, name)
        assert f"{name!r} (left out of retrograd on purpose: {why}; see {DIFFERENCES_PAGE})" in str(caught.value)


def test_every_reason_has_names() -> None:
    # Modules and underscored names are not recorded.
    of_modules = {"named tensors", "private names"}
    assert {why for _, _, why in LEFT_OUT} | of_modules == unsupported.LEFT_OUT.keys()


def test_unsupported_tensor_names_on_class_and_instance() -> None:
    x = equivalent("torch").ones(2)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"^'Tensor' object has no attribute 'dequantize' \(left out"):
        x.dequantize()
    with pytest.raises(AttributeError, match=r"^type object 'Tensor' has no attribute 'dequantize' \(left out"):
        type(x).dequantize
    assert "sum" in dir(x) and "dequantize" not in dir(x)
    assert not hasattr(x, "dequantize") and getattr(x, "q_scale", 3) == 3
    x.name = "a name of the program's own"
    assert x.name == "a name of the program's own" and "name" in dir(x)


def test_families_contain_existing_names_once() -> None:
    listed = Counter(name for names in families.OPERATIONS.values() for name in names.split())
    assert [name for name, times in listed.items() if times > 1] == []
    known = {families.operation(name) for place in ("torch", "torch.Tensor") for name in recorded()[place]}
    # Names used by samples only: operators, x[i], and constructors.
    extra = {"operator", "getitem", "setitem", "make", "from"}
    assert {name for name in listed if not name.startswith("__")} - known == extra
    assert set(families.OPERATIONS) | set(families.PLACES.values()) | {families.THE_REST} == set(families.FAMILIES)


#: Names that PyTorch has and does not list, a setting of retrograd's, and legacy complex types.
OURS = {
    "to_device",
    "SavedTensor",
    "is_multithreading_enabled",
    "AccumulateGrad",
    "set_retain_grad_last",
    "draw",
    "empty_cache",
    "set_notebook_display",
    "hessian",
    "value_and_grad",
    "explain",
    "memory",
    "page",
    "recording",
    "tracing",
    "watch_leaks",
    "ComplexFloatTensor",
    "AcceleratorError",
    "OutOfMemoryError",
    "default_generators",
    "has_half",
    "has_magma",
    "matmul",
    "Final",
    "ComplexDoubleTensor",
    "set_vital",
}


@pytest.mark.parametrize("place", recorded())
def test_dir_lists_pytorchs_names_only(place: str) -> None:
    module = equivalent(place)
    shown = {name for name in dir(module) if not name.startswith("_")} if module is not None else set()
    parts = {
        name for name in shown if f"{place}.{name}" in recorded() or isinstance(getattr(module, name, 0), ModuleType)
    }
    unknown = shown - parts - set(recorded()[place]) - OURS
    assert {name for name in unknown if unsupported.reason(below_torch(place, name)) is None} == set()
    assert not parts & {
        "compat",
        "core",
        "dispatch",
        "inspection",
        "kernels",
        "operations",
        "cli",
        "runner",
        "runtime",
        "import_hook",
    }


def test_star_import_excludes_modules() -> None:
    given: dict[str, object] = {}
    exec("from retrograd import *", given)
    assert {"add", "Tensor", "float32", "pi"} <= given.keys()
    assert not {name for name, value in given.items() if isinstance(value, ModuleType)}


@pytest.mark.parametrize(
    ("program", "kind", "words"),
    [
        (
            "import retrograd.nowhere",
            ModuleNotFoundError,
            "No module named 'retrograd.nowhere' (not in retrograd; see ",
        ),
        (
            "import retrograd.nn.nowhere",
            ModuleNotFoundError,
            "No module named 'retrograd.nn.nowhere' (not in retrograd; ",
        ),
        (
            "from retrograd.nowhere import x",
            ModuleNotFoundError,
            "No module named 'retrograd.nowhere' (not in retrogra",
        ),
        (
            "import retrograd.export",
            ModuleNotFoundError,
            "No module named 'retrograd.export' (left out of retrograd on",
        ),
        ("from retrograd import nothing", ImportError, "cannot import name 'nothing' from 'torch' (not in retrograd; "),
        (
            "retrograd.autograd.graph.nowhere",
            AttributeError,
            "module 'torch.autograd.graph' has no attribute 'nowhere' (",
        ),
        (
            "retrograd.autograd.function.nowhere",
            AttributeError,
            "module 'torch.autograd.function' has no attribute 'no",
        ),
    ],
)
def test_missing_names_without_the_import_hook(program: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as caught:
        exec(program, {"retrograd": equivalent("torch")})
    assert type(caught.value) is kind and str(caught.value).startswith(words)
    assert importlib.util.find_spec("retrograd.nowhere") is None  # hasattr does not raise


def test_misspelt_name_suggests_the_nearest() -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'Lineer' from 'torch.nn'\. Did you mean: 'Linear'\?$"):
        exec("from retrograd.nn import Lineer")
    with pytest.raises(AttributeError, match=r"has no attribute 'zeross'\. Did you mean: 'zeros'\?$"):
        equivalent("torch").zeross  # type: ignore[attr-defined]
