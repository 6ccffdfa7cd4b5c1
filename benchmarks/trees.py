"""Source trees of retrograd: the folder of the package, and the environment of a process that imports it."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def package_parent(tree: Path) -> Path:
    """Return the folder of ``tree`` to put on the module path: ``tree/src`` or ``tree`` itself."""
    for folder in (tree / "src", tree):
        if (folder / "retrograd" / "__init__.py").is_file():
            return folder.resolve()
    raise SystemExit(f"{tree} holds neither src/retrograd nor retrograd.")


def environment(parent: Path | None) -> dict[str, str]:
    """Return the environment variables of a process that imports retrograd from ``parent`` (None: any installed one).

    The rows are those of this checkout whichever package is imported, because they must be the same for both trees.
    """
    paths = [str(parent)] if parent else []
    paths += [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"RETROGRAD_FAST": "1", **os.environ, "PYTHONPATH": os.pathsep.join(paths)}
