"""Run every program of this folder in turn and print their output as JSON."""

import contextlib
import io
import json
import runpy
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = sorted(path for path in HERE.glob("*.py") if not path.name.startswith("_"))


def main() -> None:
    warnings.simplefilter("ignore")
    found = {}
    for path in PROGRAMS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(path), run_name="__main__")
        found[path.stem] = printed.getvalue()
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
