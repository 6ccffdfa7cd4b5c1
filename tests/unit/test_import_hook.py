"""The import hook: what ``import torch`` resolves to, errors for missing names, and restoring the state.

Most tests use a small package ``retrograd.standin``, so that they do not depend on retrograd's own modules.
"""

import importlib
import importlib.util
import json
import subprocess
import sys
import threading
import types
from collections.abc import Iterator

import pytest

import retrograd
from retrograd import import_hook
from retrograd.compat.lazy_imports import module_getattr
from retrograd.compat.missing_names import DIFFERENCES_PAGE, torch_name, why_missing
from retrograd.compat.unsupported import LEFT_OUT
from tests.conformance.golden import GOLDEN


@pytest.fixture
def standin(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """Create a package ``retrograd.standin`` with a module ``deep`` and, as an attribute, a foreign module."""
    folder = tmp_path / "standin"  # type: ignore[operator]
    folder.mkdir()
    ending = "from retrograd.compat.lazy_imports import module_getattr\n__getattr__ = module_getattr(__name__)\n"
    (folder / "__init__.py").write_text("import sys\nvalue = 1\n" + ending)
    (folder / "deep.py").write_text("class Thing:\n    pass\n" + ending)
    monkeypatch.setattr(retrograd, "__path__", [*retrograd.__path__, str(tmp_path)])
    module = importlib.import_module("retrograd.standin")
    elsewhere = types.ModuleType("retrograd.elsewhere")
    elsewhere.answer = 42  # type: ignore[attr-defined]
    module.reached = elsewhere  # type: ignore[attr-defined]
    yield module
    for name in [name for name in sys.modules if name.startswith("retrograd.standin")]:
        del sys.modules[name]
    del retrograd.standin  # type: ignore[attr-defined]


def imports(text: str) -> dict[str, object]:
    """Run a program under the hook and return its namespace."""
    names: dict[str, object] = {}
    with import_hook.installed():
        exec(text, names)
    return names


def state() -> tuple[object, ...]:
    torches = {name: module for name, module in sys.modules.items() if import_hook.is_torch_name(name)}
    return torches, list(sys.meta_path), list(sys.path)


def test_the_package_is_called_torch_under_the_hook() -> None:
    """Libraries tell PyTorch by this name: ``array_api_compat.is_torch_namespace``."""
    with import_hook.installed():
        with import_hook.installed():
            pass
        assert retrograd.__name__ == "torch"
        assert retrograd.__spec__ is not None and retrograd.__spec__.name == "retrograd"
        names = imports("from retrograd import nn\nfrom retrograd.core import engine\nfrom torch import optim")
        assert names["nn"] is retrograd.nn and names["optim"] is retrograd.optim
        with pytest.raises(ImportError, match="'export' from 'torch'"):
            imports("from torch import export")
    assert retrograd.__name__ == "retrograd"


def test_import_torch_is_retrograd() -> None:
    assert imports("import torch")["torch"] is retrograd
    assert imports("import torch as th")["th"] is retrograd


def test_submodules_are_the_same_objects(standin: types.ModuleType) -> None:
    names = imports("import torch.standin.deep\nimport torch.standin.deep as d\nfrom torch.standin import deep, value")
    own = importlib.import_module("retrograd.standin.deep")
    assert names["torch"] is retrograd
    assert names["d"] is own and names["deep"] is own and names["value"] == 1
    assert own.__name__ == "retrograd.standin.deep"
    assert own.__spec__ is not None and own.__spec__.name == "retrograd.standin.deep"


def test_from_a_submodule_takes_its_own_classes(standin: types.ModuleType) -> None:
    own = importlib.import_module("retrograd.standin.deep")
    assert imports("from torch.standin.deep import Thing")["Thing"] is own.Thing


def test_a_module_that_is_only_an_attribute_is_found(standin: types.ModuleType) -> None:
    names = imports("import torch.standin.reached as r\nfrom torch.standin.reached import answer")
    assert names["r"] is standin.reached and names["answer"] == 42


def test_imports_of_a_module_are_not_its_submodules(standin: types.ModuleType) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'torch\.standin\.sys'"):
        imports("import torch.standin.sys")


def test_importlib_uses_the_hook(standin: types.ModuleType) -> None:
    with import_hook.installed():
        assert importlib.import_module("torch.standin.deep") is importlib.import_module("retrograd.standin.deep")
        assert importlib.util.find_spec("torch.standin") is not None
        assert importlib.util.find_spec("torch.no_such_module") is None


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("import torch.nowhere", ModuleNotFoundError, "No module named 'torch.nowhere'"),
        ("import torch.nowhere.deep", ModuleNotFoundError, "No module named 'torch.nowhere'"),
        ("from torch.nowhere import x", ModuleNotFoundError, "No module named 'torch.nowhere'"),
        ("import torch.standin.nowhere", ModuleNotFoundError, "No module named 'torch.standin.nowhere'"),
        ("from torch.standin import nothing", ImportError, "cannot import name 'nothing' from 'torch.standin'"),
        (
            "from torch.standin.deep import nothing",
            ImportError,
            "cannot import name 'nothing' from 'torch.standin.deep'",
        ),
        (
            "import torch.standin\ntorch.standin.nothing",
            AttributeError,
            "module 'torch.standin' has no attribute 'nothing'",
        ),
    ],
)
def test_errors_for_missing_names_point_to_the_page(
    standin: types.ModuleType, text: str, kind: type[Exception], words: str
) -> None:
    before = state()
    with pytest.raises(kind) as caught:
        imports(text)
    assert type(caught.value) is kind
    assert str(caught.value).startswith(words)
    assert DIFFERENCES_PAGE in str(caught.value)
    assert state() == before


def test_hasattr_and_getattr_with_a_default_work(standin: types.ModuleType) -> None:
    assert not hasattr(standin, "nothing")
    assert getattr(standin, "nothing", 3) == 3
    with pytest.raises(AttributeError) as caught:
        _ = standin.__wrapped__
    assert DIFFERENCES_PAGE not in str(caught.value)
    with pytest.raises(AttributeError) as caught:
        _ = standin.valeu
    assert caught.value.name == "valeu" and str(caught.value).endswith(". Did you mean: 'value'?")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("torch.resize_as_sparse_", "block-sparse and semi-structured tensors"),
        ("torch.sparse.SparseSemiStructuredTensor", "block-sparse and semi-structured tensors"),
        ("torch.sparse_bsr_tensor", "block-sparse and semi-structured tensors"),
        ("torch.quantize_per_tensor", "quantized tensors"),
        ("torch.dequantize", "quantized tensors"),
        ("torch.ao.quantization.quantize", "quantized tensors"),
        ("torch.fake_quantize_per_tensor_affine", "quantized tensors"),
        ("torch.align_tensors", "named tensors"),
        ("torch.export.export", "compiling and exporting programs"),
        ("torch.fx.experimental.proxy_tensor.make_fx", "compiling and exporting programs"),
        ("torch.onnx.export", "compiling and exporting programs"),
        ("torch.distributed.rpc.rpc_sync", "distribution over machines and processes"),
        ("torch.nn.parallel.replicate", "distribution over machines and processes"),
        ("torch.mps", "devices other than the CPU and NVIDIA's GPUs"),
        ("torch._C._cuda_init", "private names"),
        ("torch._cudnn_rnn", "private names"),
        ("torch.nn.functional._pad", "private names"),
    ],
)
def test_unsupported_names(name: str, what: str) -> None:
    assert what in LEFT_OUT
    assert why_missing(name) == f"left out of retrograd on purpose: {what}; see {DIFFERENCES_PAGE}"


@pytest.mark.parametrize("name", ["torch.exp", "torch.quantile", "torch.names_of", "torch.nn.Quiet", "torch.qr"])
def test_other_names_are_just_not_there(name: str) -> None:
    assert why_missing(name) == f"not in retrograd; see {DIFFERENCES_PAGE}"


def test_names_of_modules() -> None:
    assert torch_name("retrograd") == "torch"
    assert torch_name("retrograd.nn.functional") == "torch.nn.functional"
    assert torch_name("elsewhere") == "elsewhere"
    with pytest.raises(AttributeError, match="module 'torch' has no attribute 'foo'"):
        module_getattr("retrograd")("foo")


def test_uninstall_restores_modules() -> None:
    before = state()
    imports("import torch")
    assert state() == before
    with pytest.raises(SystemExit), import_hook.installed():
        raise SystemExit(3)
    assert state() == before


def test_previously_imported_torch_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    real, below = types.ModuleType("torch"), types.ModuleType("torch.nn")
    monkeypatch.setitem(sys.modules, "torch", real)
    monkeypatch.setitem(sys.modules, "torch.nn", below)
    with import_hook.installed():
        assert importlib.import_module("torch") is retrograd
        assert sys.modules.get("torch.nn") is not below
    assert sys.modules["torch"] is real and sys.modules["torch.nn"] is below


def test_nested_blocks() -> None:
    before = state()
    with import_hook.installed():
        with import_hook.installed():
            assert importlib.import_module("torch") is retrograd
        assert importlib.import_module("torch") is retrograd
        assert sum(isinstance(finder, import_hook.TorchFinder) for finder in sys.meta_path) == 1
    assert state() == before


def test_overlapping_blocks_of_threads() -> None:
    before = state()
    entered, leave = threading.Event(), threading.Event()
    found: list[object] = []

    def other() -> None:
        with import_hook.installed():
            entered.set()
            leave.wait(10)
            found.append(importlib.import_module("torch"))

    thread = threading.Thread(target=other)
    with import_hook.installed():
        thread.start()
        assert entered.wait(10)
    leave.set()
    thread.join()
    assert found == [retrograd]
    assert state() == before


def test_other_packages_are_unaffected() -> None:
    with import_hook.installed():
        assert importlib.util.find_spec("torchvision_of_nobody") is None
        with pytest.raises(ModuleNotFoundError) as caught:
            importlib.import_module("torchvision_of_nobody")
    assert DIFFERENCES_PAGE not in str(caught.value)


_WALK = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
from retrograd import import_hook
from tests.conformance.submodule_kinds import kind_of_attribute
with import_hook.installed():
    found = []
    for name in json.load(sys.stdin):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        found.append(name)
    print(json.dumps({name: kind_of_attribute(sys.modules, name) for name in found}))
"""


def test_an_imported_submodule_does_not_replace_the_function_of_its_name() -> None:
    """The kinds are recorded from PyTorch (``golden/submodules.json``), whose packages have functions named as modules.

    Of the modules of single optimisers PyTorch deletes the attribute; that it is there does no harm.
    """
    recorded = json.loads((GOLDEN / "submodules.json").read_text())
    run = [sys.executable, "-c", _WALK]
    out = subprocess.run(run, input=json.dumps(sorted(recorded)), capture_output=True, text=True, check=True)
    found = json.loads(out.stdout)
    assert len(found) > 100
    assert {name for name in found if recorded[name] == "function"} >= {
        "torch.autograd.gradcheck", "torch.autograd.variable", "torch.nn.parallel.data_parallel", "torch.nn.utils.spectral_norm",
        "torch.nn.utils.weight_norm",
    }  # fmt: skip
    wrong = {name: kind for name, kind in found.items() if recorded[name] not in (kind, "absent")}
    assert not wrong


def test_an_error_class_is_imported_beside_the_function_of_its_module() -> None:
    names = imports(
        "from torch.autograd.gradcheck import GradcheckError\nimport torch\nfound = torch.autograd.gradcheck\n"
        "from torch.autograd import gradcheck\nimport torch.autograd.gradcheck as other"
    )
    assert names["found"] is names["gradcheck"] is names["other"] is retrograd.autograd.gradcheck
    assert callable(names["found"])
    assert names["GradcheckError"] is sys.modules["retrograd.autograd.gradcheck"].GradcheckError  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["backward", "variable"])
def test_a_function_of_autograd_hides_the_module_of_its_name(name: str) -> None:
    function = getattr(retrograd.autograd, name)
    module = importlib.import_module(f"retrograd.autograd.{name}")
    assert isinstance(module, types.ModuleType) and getattr(module, name) is function
    found = imports(f"import torch.autograd.{name} as other\nfrom torch.autograd import {name}\nimport torch")
    assert found["other"] is found[name] is getattr(retrograd.autograd, name) is function
    assert function.__module__ == "retrograd.autograd"
