"""Answers recorded from PyTorch 2.13 (JSON and checkpoint files), and the scripts that record them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parent


def load(name: str) -> Any:
    """Return the contents of ``<name>.json``."""
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
