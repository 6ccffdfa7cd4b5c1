"""Extract and run the code blocks of a Markdown page, in order and in one namespace.

Blocks marked ``python`` are executed; those with ``>>>`` are compared as doctests. Blocks marked ``python
retrograd-only`` do not run under PyTorch (``golden/check_docs.py`` runs the others there).
"""

import doctest
import re
from pathlib import Path
from typing import Any, NamedTuple

from tests import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```python([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A code block: the number of its first line, whether only retrograd runs it, and its text."""

    line: int
    only_retrograd: bool
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the code blocks of a page, with the numbers of their first lines."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(text.count("\n", 0, match.start(2)) + 1, "retrograd-only" in match[1], match[2])
        for match in FENCE.finditer(text)
    ]


def run_page(page: Path, only_common: bool = False) -> int:
    """Run the blocks of a page and return their number. An error names the line of the failing block."""
    names: dict[str, Any] = {"__name__": "page"}
    chosen = [block for block in blocks(page) if not (only_common and block.only_retrograd)]
    for block in chosen:
        where = f"{page.name}:{block.line}"
        if ">>>" in block.text:
            run_doctest(block, names, where)
        else:
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True), names)
    return len(chosen)


def run_doctest(block: Block, names: dict[str, Any], where: str) -> None:
    """Run one block of ``>>>`` lines and raise an error that contains every difference."""
    test = doctest.DocTestParser().get_doctest(block.text, names, where, None, block.line - 1)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    if runner.failures:
        raise AssertionError(f"{where}\n{''.join(report)}")
