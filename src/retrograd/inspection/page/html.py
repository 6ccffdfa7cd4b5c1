"""``page_html``: join the static files of the page and a document to one HTML file, which loads nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def page_html(document: Mapping[str, Any]) -> str:
    """Return the text of an HTML file that shows ``document``, a dictionary in the form that ``document.py`` describes.

    The document and the script ``page.js`` are embedded compressed, in base 64: no text in them can end an element or
    begin another, and the script takes 27 kB instead of 67. The script inserts texts as text nodes only. The content
    security policy has the hashes of the page's own script and style: the browser executes no other, and requests
    nothing.

    Raises ValueError if the document contains a float that is NaN or infinite, which JSON lacks.
    """
    loader, style, code = _static("loader.js"), _static("page.css"), _static("page.js")
    parts = {
        "title": escape(str(document.get("title", "Graph"))).encode(errors="replace").decode(),  # lone surrogates
        "style": style,
        "style-hash": _hash(style),
        "loader": loader,
        "loader-hash": _hash(loader),
        "code": _packed(code),
        "code-hash": _hash(code),
        "document": _packed(json.dumps(document, allow_nan=False, separators=(",", ":"))),
    }
    return re.sub(r"\{\{([a-z-]+)\}\}", lambda found: parts[found[1]], _static("page.html"))


def frame_html(html: str, height: int = 640) -> str:
    """Return an ``<iframe>`` with the page ``html``, ``height`` pixels high, for a notebook.

    The frame is sandboxed: its scripts run, but cannot reach the document around it.
    """
    return (
        f'<iframe srcdoc="{escape(html)}" sandbox="allow-scripts" title="graph" width="100%" height="{height}" '
        'style="display: block; box-sizing: border-box; border: 1px solid #8886; border-radius: 6px"></iframe>'
    )


def _static(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _hash(text: str) -> str:
    """Return the source expression with which a content security policy allows an inline element with ``text``."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


__all__ = ["frame_html", "page_html"]
