"""Grammar of nested ``torch.func`` transforms."""

from __future__ import annotations

import re

from ..func_programs import program as statements
from ..func_programs import text


def program(seed: int) -> str:
    """Return the text of program number ``seed``."""
    whole = "\n".join(map(text, statements(seed)))
    return re.sub(r"\b([xwu])\b(?!')", lambda found: {"x": "t1001", "w": "t1002", "u": "t1003"}[found[1]], whole)
