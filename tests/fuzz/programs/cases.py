"""Recorded cases: programs in which the engines once disagreed, with what PyTorch shows of them (``cases.txt``)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .engine import Engine

FILE = Path(__file__).with_name("cases.txt")


def read_cases() -> list[tuple[str, Any]]:
    """Return the programs, and what was observed of them with PyTorch."""
    parts = FILE.read_text(encoding="utf-8").strip().split("\n\n") if FILE.exists() else []
    pairs = [part.rpartition("\n# ") for part in parts]
    return [(text, json.loads(answer)) for text, _, answer in pairs]


def record(oracle: Engine, texts: list[str]) -> None:
    """Write the file with these programs, each once, and what ``oracle`` observes of them."""
    whole = dict.fromkeys(re.sub(r"\n\s*\n", "\n", text.strip()) for text in texts if text.strip())
    parts = [f"{text}\n# {json.dumps(oracle.run(text), separators=(',', ':'))}\n" for text in whole]
    FILE.write_text("\n".join(parts), encoding="utf-8")
