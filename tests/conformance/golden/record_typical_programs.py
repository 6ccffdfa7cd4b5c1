"""Record what the programs of ``tests/programs/typical`` print under PyTorch: ``python -m tests.conformance.golden.record_typical_programs`` (needs it)."""

import subprocess
import sys
from pathlib import Path

from tests import ROOT

HERE = Path(__file__).resolve().parent


if __name__ == "__main__":
    target = HERE / "typical_programs.json"
    command = [sys.executable, "-X", "utf8", str(ROOT / "tests/programs/typical")]
    target.write_text(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout, encoding="utf-8"
    )
    print(f"{target.name}: {target.stat().st_size // 1024} KB")
