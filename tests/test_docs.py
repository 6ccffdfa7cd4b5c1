"""What the pages and the docstrings show is what happens."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import retrograd
from retrograd.core.absent import LEFT_OUT, PAGE, why_absent
from tests.pages import PAGES, ROOT, blocks, run_page

MODULES = ["retrograd"] + [
    found.name
    for found in pkgutil.walk_packages(retrograd.__path__, "retrograd.")
    if not found.name.endswith("__main__") and "._as_torch" not in found.name
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_pages_blocks_run_in_order(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run_page(page)


def test_there_is_something_to_run() -> None:
    assert sum(len(blocks(page)) for page in PAGES) > 10


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    names = {"torch": retrograd, "retrograd": retrograd, **module.__dict__}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    report: list[str] = []
    for test in doctest.DocTestFinder().find(module, name, globs=names):
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


def test_the_page_of_differences_lists_what_is_left_out() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert [what for what in LEFT_OUT if f"| {what} (" not in page] == []
    for names in re.findall(r"^\| [^|]* \(([^)]*)\) \|", page, re.MULTILINE):
        for name in re.findall(r"`([\w.]+)`", names):
            assert why_absent(f"torch.{name.removeprefix('torch.')}").startswith("left out"), name
