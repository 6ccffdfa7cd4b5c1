"""Report of ``retrograd check-gpu``: a page in Markdown, written again after each part."""

from __future__ import annotations

import pathlib
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

#: What needs a card to be written and tested, and is left out of the package.
LEFT_OUT = (
    "cuDNN (convolutions and attention use cuBLAS and CuPy's kernels)",
    "CUDA graphs (`torch.cuda.CUDAGraph` raises RuntimeError)",
    "TF32 (`torch.backends.cuda.matmul.allow_tf32` has no effect)",
    "NCCL (`torch.distributed` copies tensors of GPUs through the memory of the host)",
)
#: The most differences that are listed for a part.
LISTED = 4000


class Report:
    """Page with one section per part. ``failures`` counts what differs or raises an error."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.failures = 0
        self._sections: list[list[str]] = []
        self._started = time.monotonic()
        self._lines: list[str] = []
        self._found: list[str] = []

    def run(self, name: str, part: Callable[[Any], None], context: Any) -> None:
        """Run ``part(context)`` as the section ``name``; an error is reported, and does not end the check."""
        self._lines, self._found = [], []
        started = time.monotonic()
        try:
            part(context)
        except Exception as error:  # of the part itself
            self.fail(f"the part {name}", "".join(traceback.format_exception(error)).strip())
        took = time.monotonic() - started
        section = [f"## {name.capitalize()}", "", *self._lines]
        if self._found:
            section += ["", f"### Differences and errors: {len(self._found)}", "", *self._found[:LISTED]]
            if len(self._found) > LISTED:
                section.append(f"- and {len(self._found) - LISTED} more")
        self._sections.append([*section, "", f"{took:.0f} s", ""])
        self.write()
        print(f"{name}: {len(self._found)} differences, {took:.0f} s", flush=True)

    def line(self, text: str = "") -> None:
        """Add a line to the section."""
        self._lines.append(text)

    def table(self, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Add a table to the section."""
        self._lines += ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
        self._lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
        self._lines.append("")

    def fail(self, what: str, text: str) -> None:
        """Count a difference or an error of ``what``, and list it."""
        self.failures += 1
        self._found.append(f"- {what}: `{' '.join(text.split())[-600:].replace('`', chr(39))}`")

    def summary(self) -> str:
        """Return the last line of the check."""
        state = "all agree" if not self.failures else f"{self.failures} differences and errors"
        return f"check-gpu: {state}; {time.monotonic() - self._started:.0f} s; report in {self.path}"

    def write(self) -> None:
        """Write the page."""
        lines = ["# Report of retrograd check-gpu", "", self.summary(), ""]
        for section in self._sections:
            lines += section
        lines += ["## Not checked", "", "Left out of the package, because it needs a card to be written:", ""]
        lines += [f"- {each}" for each in LEFT_OUT]
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")


__all__ = ["LEFT_OUT", "LISTED", "Report"]
