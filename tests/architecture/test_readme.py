"""The program on the first screen of README.md prints what the page shows."""

import re

import pytest

from tests.architecture.markdown_pages import ROOT


def test_the_program_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(import retrograd.*?)```\n.*?```text\n(tensor.*?)```", page, re.DOTALL)
    assert found is not None
    exec(compile(found[1], "README.md", "exec"), {"__name__": "page"})
    assert capsys.readouterr().out == found[2]
