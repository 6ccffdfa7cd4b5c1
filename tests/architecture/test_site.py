"""The documentation site: facts of the API reference, and the list of questions behind the recipes."""

import importlib.util
import operator
import re
import sys
from types import ModuleType

import pytest

import retrograd as torch
from tests import ROOT

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def facts() -> ModuleType:
    """Return the module that reads signatures, shapes and errors of an entry."""
    spec = importlib.util.spec_from_file_location("api_facts", DOCS / "extensions" / "api_facts.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["api_facts"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_signatures_have_types(facts: ModuleType) -> None:
    (signature,) = facts.typed_signatures("nn.functional.gelu", torch.nn.functional.gelu, "function")
    assert signature == "(input: Tensor, *, approximate: str='none', out: Tensor | None=None) -> Tensor"
    assert len(facts.typed_signatures("max", torch.max, "function")) == 3
    assert facts.typed_signatures("Tensor.t", torch.Tensor.t, "method") == ["() -> Tensor"]
    (layer,) = facts.typed_signatures("nn.AvgPool1d", torch.nn.AvgPool1d, "class")
    assert layer.startswith("(kernel_size: int | Sequence[int], stride: ")


def test_shapes_and_errors_are_those_of_calls(facts: ModuleType) -> None:
    assert "``torch.max(x, 1)``: x (3, 4) → (3,), (3,)" in facts.shapes("max", torch.max)
    found = facts.errors("cat")
    assert found
    for kind, call, message in found:
        with pytest.raises(Exception, match=re.escape(message)) as caught:
            eval(call, {"torch": torch})
        assert type(caught.value).__name__ == kind


def test_functions_with_the_name_of_an_operation_have_no_shapes_of_it(facts: ModuleType) -> None:
    assert facts.shapes("gather", torch.gather)
    for name in ("distributed.gather", "masked.argmax", "jit.trace"):
        assert facts.shapes(name, operator.attrgetter(name)(torch)) == []


def headings(page: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^## (.*)$", text, re.MULTILINE)


def test_every_recipe_has_a_question() -> None:
    rows = re.findall(
        r"^\| .+ \| \[(… .+\?)\]\((how-to-\w+\.md)#.+\) \|$", (DOCS / "questions.md").read_text("utf-8"), re.MULTILINE
    )
    recipes = [(heading, page.name) for page in DOCS.glob("how-to-*.md") for heading in headings(page.name)]
    assert len(recipes) >= 40
    assert sorted(rows) == sorted(recipes)
