"""Records what the examples print under PyTorch: ``python tests/golden/record_examples.py``, with PyTorch installed."""

import json
import subprocess
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"


def printed(program: Path) -> str:
    command = [sys.executable, "-X", "utf8", str(program)]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout


if __name__ == "__main__":
    outputs = {path.name: printed(path) for path in sorted(EXAMPLES.glob("*.py"))}
    record = {"torch": torch.__version__, "printed": outputs}
    target = HERE / "examples.json"
    target.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(outputs)} examples under PyTorch {torch.__version__} -> {target.name}")
