"""Grammars: each is a function that returns the text of the program with a number."""

from __future__ import annotations

from collections.abc import Callable

from . import compiled, hooks, tensors, transforms, views

GRAMMARS: dict[str, Callable[[int], str]] = {
    "tensors": tensors.program, "views": views.program, "hooks": hooks.program, "transforms": transforms.program,
    "compiled": compiled.program,
}  # fmt: skip
#: How many programs of these grammars are recorded (``conformance/golden/random_programs.json``).
RECORDED = {"views": 250, "hooks": 250, "transforms": 150}
