"""The HTML file of a graph page: one file, texts of a program embedded so that they cannot act. No browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser

import pytest

from retrograd.inspection.page.html import frame_html, page_html
from tests.browser import documents


def embedded(html: str, name: str) -> str:
    """Return the content of the compressed element with the id ``name``."""
    found = re.search(rf'<script id="{name}" type="text/plain">([\w+/=]*)</script>', html)
    assert found
    return zlib.decompress(base64.b64decode(found[1])).decode()


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attributes:
            self.attributes.setdefault(name, []).append(value or "")


def parsed(html: str) -> Elements:
    parser = Elements()
    parser.feed(html)
    return parser


def test_document_is_embedded_unchanged() -> None:
    document = documents.hostile()
    assert json.loads(embedded(page_html(document), "document")) == document


def test_hostile_texts_add_no_element_and_no_address() -> None:
    hostile, plain = parsed(page_html(documents.hostile())), parsed(page_html(documents.line_fit()))
    assert hostile.tags == plain.tags
    assert hostile.attributes.keys() == plain.attributes.keys()
    assert not {name for name in hostile.attributes if name.startswith("on")}
    assert "src" not in hostile.attributes
    assert hostile.attributes["href"] == ["data:,"]


def test_title_with_a_lone_surrogate_can_be_encoded() -> None:
    html = page_html({"title": "name of a file \udcff"})
    assert "<title>name of a file ?</title>" in html
    assert html.encode()


def test_policy_names_the_scripts_and_the_style_of_the_page() -> None:
    html = page_html(documents.line_fit())
    (policy,) = (each for each in parsed(html).attributes["content"] if each.startswith("default-src 'none'"))
    style, loader = re.search(r"<style>(.*?)</style>", html, re.S), re.search(r"<script>(.*?)</script>", html, re.S)
    assert style and loader
    for text in (style[1], loader[1], embedded(html, "code")):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert "unsafe" not in policy


def test_small_page_is_smaller_than_60_kilobytes() -> None:
    assert len(page_html(documents.line_fit()).encode()) < 60_000


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        page_html({"title": "x", "values": [{"mean": float("nan")}]})


def test_frame_is_sandboxed_and_holds_the_page() -> None:
    html = page_html(documents.hostile())
    frame = parsed(frame_html(html, 500))
    assert frame.tags == ["iframe"]
    assert frame.attributes["srcdoc"] == [html]
    assert frame.attributes["sandbox"] == ["allow-scripts"]
