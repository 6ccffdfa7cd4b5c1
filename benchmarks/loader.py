"""Time per sample of a DataLoader with 2 workers: samples of 1 kB to 10 MB, tensors and NumPy arrays.

Every measurement runs in a new process of one thread with two workers of one thread, which are kept for all passes. The
samples are stored, so that a worker only combines them, and the loop reads every element of a batch (``sum``). The number
is the time of the fastest of four passes.
"""

from __future__ import annotations

from pathlib import Path

from .footprint import Footprint, engines_of, measured

_PROGRAM = """
import numpy
import {module} as torch
class Data(torch.utils.data.Dataset):
    def __init__(self):
        stored = numpy.ones((4, {size} // 4), numpy.float32)
        self.samples = torch.from_numpy(stored) if {tensors} else stored
    def __len__(self):
        return {count}
    def __getitem__(self, index):
        return self.samples[index % 4], index % 10
if __name__ == '__main__':
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Data(), {batch}, num_workers=2, persistent_workers=True)
    def seconds():
        start = time.perf_counter()
        for x, y in loader:
            x.sum()
        return time.perf_counter() - start
    print({units} * min(seconds() for _ in range(4)) / {count})
"""

#: name: (bytes of a sample, samples, samples in a batch, unit of time).
SIZES = {
    "1 kB": (1_000, 8_000, 32, "µs"), "100 kB": (100_000, 1_600, 32, "µs"), "10 MB": (10_000_000, 32, 4, "ms"),
}  # fmt: skip
UNITS = {"µs": 1e6, "ms": 1e3}


def _program(size: int, count: int, batch: int, units: float, tensors: bool) -> str:
    values = {"size": size, "count": count, "batch": batch, "units": units, "tensors": tensors}
    program = _PROGRAM
    for name, value in values.items():
        program = program.replace(f"{{{name}}}", str(value))
    return program


def rows(rounds: int, theirs: bool, against: Path | None = None) -> list[Footprint]:
    """Return all measurements of at most three rounds each; ``against`` is the folder that holds another tree's package."""
    rounds = min(rounds, 3)  # a program takes its fastest pass
    engines = engines_of(theirs, against)
    return [
        Footprint(
            f"{'tensors' if tensors else 'NumPy arrays'} of {name}, batches of {batch}", f"{unit} per sample",
            measured(_program(size, count, batch, UNITS[unit], tensors), engines, rounds),
        )
        for name, (size, count, batch, unit) in SIZES.items()
        for tensors in (True, False)
    ]  # fmt: skip
