"""Mutated checkpoints and safetensors files: an exception of a documented type, or what PyTorch loads."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from tests.conformance.golden import load
from tests.fuzz.files import COUNTS, SECONDS, answer, is_error, loaded, mutated, problem

RECORDED = load("mutated_files")
#: Bytes that loading a file may use, in addition to a multiple of the size of the file.
MEMORY, TIMES = 2**23, 4


@pytest.mark.parametrize("kind", COUNTS)
def test_mutated_files_raise_or_load_what_the_reference_loads(kind: str) -> None:
    read = loaded("retrograd", kind)
    wrong = []
    values = 0
    tracemalloc.start()
    try:
        for number in range(COUNTS[kind]):
            data = mutated(number, kind)
            tracemalloc.reset_peak()
            before, begin = tracemalloc.get_traced_memory()[0], time.perf_counter()
            found = answer(read, data)
            used, seconds = tracemalloc.get_traced_memory()[1] - before, time.perf_counter() - begin
            expected = RECORDED[kind][number] if kind in RECORDED else None
            values += not is_error(found)
            message = problem(found, expected)
            if message or seconds > SECONDS or used > TIMES * len(data) + MEMORY:
                wrong.append((number, message, round(seconds, 1), used))
    finally:
        tracemalloc.stop()
    assert wrong == []
    assert values >= COUNTS[kind] // 20  # some mutations leave a file valid
