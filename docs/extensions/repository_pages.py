"""Add pages of the repository that lie outside of ``docs/`` to the site, if pages of ``docs/`` link to them.

Such a page, for example ``benchmarks/results/overhead.md``, is copied to ``docs/repository/`` when a build begins, and
links to it are changed while the linking page is read. The copies are not part of the repository.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

FOLDER = "repository"
_LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def linked_pages(docs: Path) -> set[Path]:
    """Return the Markdown pages outside of ``docs`` to which its pages link."""
    found = set()
    for page in docs.glob("*.md"):
        for target, _ in _LINK.findall(page.read_text(encoding="utf-8")):
            path = (docs / target).resolve()
            if path.suffix == ".md" and path.exists() and not path.is_relative_to(docs):
                found.add(path)
    return found


def copy_pages(app: Sphinx) -> None:
    """Write the linked pages to the folder of copies; a link that would leave the site becomes plain text."""
    docs = Path(app.srcdir).resolve()
    root, pages = docs.parent, linked_pages(docs)
    for page in pages:
        copy = docs / FOLDER / page.relative_to(root)

        def changed(link: re.Match[str], page: Path = page, copy: Path = copy) -> str:
            target = (page.parent / link[1]).resolve()
            place = docs / FOLDER / target.relative_to(root) if target in pages else target
            if place.suffix != ".md" or not (target in pages or target.is_relative_to(docs)):
                return "]"
            return f"]({os.path.relpath(place, copy.parent)}{link[2] or ''})"

        text = re.sub(r"\[([^\]]*)\]$", r"\1", _LINK.sub(changed, page.read_text(encoding="utf-8")), flags=re.MULTILINE)
        text = "---\norphan: true\n---\n\n" + text
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")


def change_links(app: Sphinx, document: str, source: list[str]) -> None:
    """Direct the links of a page of ``docs/`` to the copies."""
    docs = Path(app.srcdir).resolve()
    if "/" in document:
        return

    def changed(link: re.Match[str]) -> str:
        path = (docs / link[1]).resolve()
        copy = docs / FOLDER / path.relative_to(docs.parent) if path.is_relative_to(docs.parent) else None
        if path.suffix == ".md" and not path.is_relative_to(docs) and copy is not None and copy.exists():
            return f"]({copy.relative_to(docs)}{link[2] or ''})"
        return link[0]

    source[0] = _LINK.sub(changed, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hooks of this extension."""
    app.connect("builder-inited", copy_pages)
    app.connect("source-read", change_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
