"""Documentation: code blocks of the pages, doctests, signatures, and the lists of unsupported names."""

import ast
import contextlib
import doctest
import functools
import importlib
import importlib.util
import inspect
import operator
import pkgutil
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import retrograd
from retrograd.compat.missing_names import DIFFERENCES_PAGE, why_missing
from retrograd.compat.unsupported import LEFT_OUT
from retrograd.dispatch.op import OPS
from tests.architecture.markdown_pages import PAGES, ROOT, blocks, run_page
from tests.cupy_stand_in import installed

MODULES = ["retrograd"] + [
    found.name
    for found in pkgutil.walk_packages(retrograd.__path__, "retrograd.")
    if not found.name.endswith("__main__") and "._as_torch" not in found.name
]


@pytest.mark.filterwarnings("ignore:Error detected in")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_of_pages_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run_page(page)


def test_pages_have_code_blocks() -> None:
    assert sum(len(blocks(page)) for page in PAGES) > 10


@pytest.mark.filterwarnings("ignore:Error detected in")
class Finder(doctest.DocTestFinder):
    """Doctest finder that includes decorated functions, and classes whose ``__module__`` is PyTorch's."""

    def _from_module(self, module: Any, object: Any) -> bool:
        name = getattr(object, "__name__", "")
        is_defined = name in definitions(module) and vars(module).get(name) is object
        return is_defined or super()._from_module(module, object)  # type: ignore[misc]


@functools.cache
def definitions(module: Any) -> set[str]:
    """Return the names of the classes and functions that the file of ``module`` defines."""
    body = ast.parse(inspect.getsource(module)).body
    return {each.name for each in body if isinstance(each, (ast.ClassDef, ast.FunctionDef))}


def test_docstrings_of_decorated_functions_and_renamed_classes_are_found() -> None:
    for path, name in (("distributed.stores", "HashStore"), ("distributed.checkpoint.state_dict_saver", "save")):
        module = importlib.import_module(f"retrograd.{path}")
        assert [each for each in Finder().find(module, path) if each.name == f"{path}.{name}" and each.examples]


# Examples of deprecated functions, and those of anomaly detection, issue the warnings of these functions.
FILTERS = pytest.mark.filterwarnings("ignore:.*deprecated", "ignore:Anomaly Detection has been enabled")


@FILTERS
@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    try:
        with installed() if name.startswith("retrograd.kernels.cuda") else nullcontext():
            module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "tensorboard"):
            raise
        pytest.skip(f"{error.name} is not installed")
    names = {"torch": retrograd, "retrograd": retrograd, **module.__dict__}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    report: list[str] = []
    for test in Finder().find(module, name, globs=names):
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


def test_differences_page_lists_unsupported_names() -> None:
    page = (ROOT / DIFFERENCES_PAGE).read_text(encoding="utf-8")
    assert [what for what in LEFT_OUT if f"| {what} (" not in page] == []
    for names in re.findall(r"^\| [^|]* \(([^)]*)\) \|", page, re.MULTILINE):
        for name in re.findall(r"`([\w.]+)`", names):
            assert why_missing(f"torch.{name.removeprefix('torch.')}").startswith("left out"), name


@FILTERS
def test_docstrings_of_operations() -> None:
    finder, runner, report = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False), []
    for name, op in OPS.items():
        if ">>>" in (op.doc or ""):
            runner.run(finder.get_doctest(op.doc, {"torch": retrograd}, name, None, 0), out=report.append)
    assert not runner.failures, "".join(report)
    assert runner.tries > 20


# What help() shows of a function is what PyTorch's pages show.
SIGNATURES = {
    "add": "(input, other, *, alpha=1, out=None)",
    "tanh": "(input, *, out=None)",
    "addmm": "(input, mat1, mat2, *, beta=1, alpha=1, out=None)",
    "cat": "(tensors, dim=0, *, out=None)",
    "amax": "(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Tensor",
    "view_as_real": "(input)",
    "unbind": "(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]",
    "split": (
        "(input: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None) -> tuple[Tensor, ...]"
    ),
    "nn.Linear": "(in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None",
    "special.erf": "(input, *, out=None)",
    "nn.functional.logsigmoid": "(input, *, out=None)",
    "Tensor.add": "(self, other, *, alpha=1)",
    "Tensor.add_": "(self, other, *, alpha=1)",
    "Tensor.expand": "(self, *size, implicit=False)",
    "Tensor.uniform_": "(self, from_=0, to=1, *, generator=None)",
}


@pytest.mark.parametrize("name", SIGNATURES)
@pytest.mark.parametrize("called", [False, True])
def test_signatures_match_pytorch(name: str, called: bool) -> None:
    function = operator.attrgetter(name)(retrograd)
    if called:  # the first call replaces its code
        with contextlib.suppress(TypeError):
            function()
    assert str(inspect.signature(function)) == SIGNATURES[name]


def test_functions_have_signature_source_and_docstring() -> None:
    spaces = ("Tensor", "linalg", "fft", "special", "nn.functional", "signal.windows")
    for space in (retrograd, *(operator.attrgetter(each)(retrograd) for each in spaces)):
        for name in dir(space):
            function = getattr(space, name, None)
            if inspect.isfunction(function) and not name.startswith("_"):
                given = inspect.signature(function).parameters.values()
                assert not any("missing" in str(each) or each.name == "_rest" for each in given), name
                assert inspect.getdoc(function), name
                assert "def " in inspect.getsource(function), name


def test_docstrings_name_the_first_parameter_that_the_signature_shows() -> None:
    """A function and a method share a docstring, but the first parameter is ``input`` of one and ``self`` of the other."""
    count, wrong = 0, []
    for space in ("torch", "nn.functional", "linalg", "special", "fft", "signal.windows", "Tensor"):
        holder = retrograd if space == "torch" else operator.attrgetter(space)(retrograd)
        for name in dir(holder):
            function = getattr(holder, name, None)
            if not inspect.isfunction(function) or name.startswith("_"):
                continue
            count += 1
            shown = [*inspect.signature(function).parameters]
            spans = re.findall("``(.*?)``", inspect.getdoc(function) or "", re.DOTALL)
            words = {each for each in spans if each in ("self", "input")}
            # Inside expressions only the other name of the first parameter: those of ``gru`` show another order.
            other = "input" if shown[:1] == ["self"] else "self"
            words |= {other for each in spans if re.search(rf"\b{other}\b", each)}
            wrong += [f"{space}.{name}: ``{each}``" for each in sorted(words.difference(shown))]
    assert not wrong
    assert count > 1200


# PyTorch's public modules.
PYTORCHS_MODULES = [
    "accelerator",
    "amp",
    "ao",
    "autograd",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "export",
    "fft",
    "func",
    "functional",
    "futures",
    "fx",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "monitor",
    "mps",
    "mtia",
    "multiprocessing",
    "nested",
    "nn",
    "onnx",
    "optim",
    "overrides",
    "package",
    "profiler",
    "quasirandom",
    "random",
    "return_types",
    "serialization",
    "signal",
    "sparse",
    "special",
    "storage",
    "testing",
    "types",
    "utils",
    "version",
    "xpu",
    "autograd.forward_ad",
    "autograd.function",
    "autograd.functional",
    "autograd.graph",
    "nn.attention",
    "nn.functional",
    "nn.grad",
    "nn.init",
    "nn.modules",
    "nn.parallel",
    "nn.parameter",
    "utils.checkpoint",
    "utils.data",
    "utils.tensorboard",
]


def reached(name: str) -> bool:
    """Whether PyTorch has ``name``, as an attribute or as a module."""
    try:
        operator.attrgetter(name)(retrograd)
    except AttributeError:
        parent = name.rpartition(".")[0]
        return (not parent or reached(parent)) and importlib.util.find_spec(f"retrograd.{name}") is not None
    return True


def test_differences_page_lists_missing_names() -> None:
    page = (ROOT / DIFFERENCES_PAGE).read_text(encoding="utf-8")
    table = page.partition("## Not there yet")[2].partition("[Coverage]")[0]
    listed = re.findall(r"`([\w.]+)`", table)
    left_out = [name for name in PYTORCHS_MODULES if why_missing(f"torch.{name}").startswith("left out")]
    missing = [name for name in PYTORCHS_MODULES if name not in left_out and not reached(name)]
    assert [name for name in missing if name not in listed] == [], "add these to Not there yet"
    assert [name for name in listed if reached(name)] == [], "these exist: remove them from Not there yet"
