"""Write type stubs of the package for a checkout: ``python3 scripts/stubs.py [FOLDER]``.

The default is ``build/stubs``. An editor or type checker that is pointed to the folder reads them instead of the sources
(``docs/types.md``). The build of the wheel calls :func:`write` too.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write(folder: Path, package: str = "retrograd") -> list[Path]:
    """Write the stubs below ``folder / package`` and return the paths of the files."""
    sys.path.insert(0, str(ROOT / "src"))
    sys.dont_write_bytecode = True
    from retrograd import stubs

    return stubs.write(folder, package)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build" / "stubs"
    print(f"{len(write(target))} files in {target}")
