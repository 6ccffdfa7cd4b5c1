"""The generator of type stubs; ``tests/typing/check.py`` checks its result with type checkers."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrograd import cli, stubs
from retrograd.stubs import names


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return stubs.texts()


def definitions(text: str, name: str, cls: str = "") -> Iterator[str]:
    """Yield the heads of the declarations of a function in a stub, without names of aliases."""
    body = ast.parse(text).body
    if cls:
        body = next(each for each in body if isinstance(each, ast.ClassDef) and each.name == cls).body
    for each in body:
        if isinstance(each, ast.FunctionDef) and each.name == name:
            yield f"({ast.unparse(each.args)}) -> {ast.unparse(each.returns or ast.Constant(None))}".replace(
                "_int", "int"
            )


def test_every_public_module_has_a_stub_that_python_can_parse(texts: dict[str, str]) -> None:
    assert set(texts) == set(names.modules()) and len(texts) > 200
    for text in texts.values():
        ast.parse(text)


def test_overloads_follow_the_results(texts: dict[str, str]) -> None:
    root = texts["retrograd"]
    assert [each.rpartition(" -> ")[2] for each in definitions(root, "max")] == ["Tensor", "Tensor", "_max"]
    assert "from .return_types import max as _max" in root
    assert "(self, dim: int) -> int" in list(definitions(root, "size", "Tensor"))
    assert len(list(definitions(root, "unique"))) == 5
    assert list(definitions(root, "tanh")) == ["(input: Tensor, *, out: Tensor | None=None) -> Tensor"]


def test_classes_with_the_name_of_another_class_have_separate_aliases(texts: dict[str, str]) -> None:
    cuda = texts["retrograd.cuda"]  # has a class `device`, too
    assert (
        "from .. import device as _retrograd_device" in cuda and "def device(self) -> _retrograd_device | None:" in cuda
    )
    assert "class device_of(_device):" in cuda and "_device = device" in cuda.splitlines()


def test_nodes_have_the_public_names(texts: dict[str, str]) -> None:
    graph = texts["retrograd.autograd.graph"]
    (declared,) = (each for each in ast.parse(graph).body if isinstance(each, ast.ClassDef) and each.name == "Node")
    assert {each.name for each in declared.body if isinstance(each, ast.FunctionDef)} == {
        *("metadata", "name", "next_functions", "register_hook", "register_prehook", "requires_grad", "__call__")
    }
    assert list(definitions(graph, "next_functions", "Node")) == ["(self) -> tuple[tuple[Node | None, int], ...]"]


def test_modules_are_called_as_forward(texts: dict[str, str]) -> None:
    linear = texts["retrograd.nn.modules.linear"]
    assert list(definitions(linear, "__call__", "Linear")) == ["(self, input: Tensor) -> Tensor"]
    assert "    weight: Parameter\n    bias: Parameter\n    in_features: int\n" in linear
    assert '    """Layer that returns ``input @ weight.T + bias``.' in linear


def test_stubs_have_no_names_that_raise(texts: dict[str, str]) -> None:
    declared = ast.parse(texts["retrograd"]).body
    tensor = next(each for each in declared if isinstance(each, ast.ClassDef) and each.name == "Tensor")
    members = {each.name for each in tensor.body if isinstance(each, ast.FunctionDef)}
    assert {"tanh", "backward", "__add__", "grad"} <= members and not {"dequantize", "rename"} & members


def test_command_writes_a_package_of_stubs(
    tmp_path: Path, texts: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stubs, "texts", lambda: texts)
    assert cli.main(["stubs", str(tmp_path)]) == 0
    assert (tmp_path / "torch-stubs/nn/functional.pyi").exists() and (tmp_path / "torch-stubs/py.typed").exists()
    assert "torch-stubs" in capsys.readouterr().out
    text = (tmp_path / "torch-stubs/__init__.pyi").read_text(encoding="utf-8")
    assert "from retrograd" not in "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    assert cli.main(["stubs"]) == 2 and "needs a folder" in capsys.readouterr().err
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert cli.main(["stubs", str(tmp_path / "file")]) == 2
