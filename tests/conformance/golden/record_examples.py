"""Record what the examples print under PyTorch: ``python -m tests.conformance.golden.record_examples``.

Needs PyTorch, and what the examples need: pip install '.[examples]'.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from tests import ROOT
from tests.programs.example_output import arguments, without_times

HERE = Path(__file__).resolve().parent
EXAMPLES = ROOT / "examples"


def printed(program: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-X", "utf8", str(program), *arguments(program.name, folder)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return without_times(done.stdout)


if __name__ == "__main__":
    outputs = {path.name: printed(path) for path in sorted(EXAMPLES.glob("*.py"))}
    record = {"torch": torch.__version__, "printed": outputs}
    target = HERE / "examples.json"
    target.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(outputs)} examples under PyTorch {torch.__version__} -> {target.name}")
