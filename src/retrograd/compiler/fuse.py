"""Fusing."""

from typing import Any


class Loop:
    source = ""

    def call(self, writer: Any) -> list[str]:
        return []
