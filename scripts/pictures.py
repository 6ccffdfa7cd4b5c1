"""Draw the pictures of ``docs/examples.md`` and measure the examples: ``python3 scripts/pictures.py [names]``.

Runs the examples that train in the checkout's environment. Pictures are written to ``docs/pictures`` with a palette of
64 colours, or 32 where that takes more than 40 kB. A table of times is printed: the CPU seconds of the training with
one thread, the least of three runs, with Numba's loops and without.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from environment import ROOT, environment

EXAMPLES = ROOT / "examples"
#: Arguments beside the defaults.
ARGUMENTS = {"character_gpt": ["--steps", "100"]}
#: Runs the command line of retrograd with CPU time for the clock of the examples.
PROGRAM = """if True:
    import sys, time
    time.perf_counter = time.process_time
    from retrograd.cli import main
    sys.exit(main())
"""
#: Replaces a picture by one with a palette; the example wrote it with matplotlib, which brings Pillow.
PALETTE = """if True:
    import os, sys
    from PIL import Image
    for colours in (64, 32):
        picture = Image.open(sys.argv[1]).convert("RGB").quantize(colours, dither=Image.Dither.NONE)
        picture.save(sys.argv[2], optimize=True)
        if os.path.getsize(sys.argv[2]) < 40_000:
            break
"""


def seconds(python: Path, name: str, folder: Path, fast: bool, program: str = PROGRAM) -> float:
    """Run an example and return the seconds that it prints; its picture is written to ``folder``."""
    file = str(EXAMPLES / f"{name}.py")
    command = [python, "-c", program, "run", file, *ARGUMENTS.get(name, []), "--folder", str(folder)]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "RETROGRAD_FAST": str(int(fast))}
    done = subprocess.run(command, env=settings, cwd=ROOT, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return float(re.findall(r"(\d+\.\d+) seconds", done.stdout)[-1])


def draw(python: Path, name: str, folder: Path) -> None:
    """Write the picture in ``folder`` to the documentation; that of data_parallel is drawn by two processes."""
    picture = f"{name}.png"
    if name == "data_parallel":
        start = ["-m", "retrograd", "launch", "--nproc-per-node", "2", str(EXAMPLES / f"{name}.py")]
        subprocess.run([python, *start, "--folder", str(folder)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(
        [python, "-c", PALETTE, str(folder / picture), str(ROOT / "docs" / "pictures" / picture)], check=True
    )


def main() -> None:
    python = environment("examples", "fast", "distributed")
    names = sys.argv[1:] or sorted(path.stem for path in EXAMPLES.glob("*.py") if "pyplot" in path.read_text("utf-8"))
    print("| | with `[fast]` | without |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in names:
            slow = min(seconds(python, name, folder, False) for _ in range(3))
            fast = min(seconds(python, name, folder, True) for _ in range(3))
            draw(python, name, folder)
            print(f"| `{name}.py` | {fast:.1f} s | {slow:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
