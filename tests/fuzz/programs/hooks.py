"""Grammar of hooks, custom functions, checkpoints and saved-tensor hooks."""

from __future__ import annotations

from ..hook_programs import program as statements

LEAVES = """\
t0 = torch.tensor([0.5, -0.25], dtype=torch.float64, requires_grad=True)
t1 = torch.tensor([1.5, 0.75], dtype=torch.float64, requires_grad=True)
"""


def program(seed: int) -> str:
    """Return the text of program number ``seed``."""
    return LEAVES + "\n".join(statements(seed))
