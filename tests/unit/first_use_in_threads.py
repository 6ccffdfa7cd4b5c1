"""Use every operation for the first time in several threads at once, and compare each result with PyTorch's record.

``python -m tests.unit.first_use_in_threads [threads]``; run by ``test_threads.py`` in a new process, in which no function is
specialised and no module is loaded on demand yet. The threads wait for each other before each sample, and the interpreter
switches between them as often as it can. Prints what differs, and exits with 1 if anything does.
"""

from __future__ import annotations

import re
import sys
import threading

from tests.conformance.sample_comparison import compare_sample
from tests.conformance.samples import FAMILIES, Sample, samples

#: Samples that draw random numbers from the default generator, which the threads share.
RANDOM = re.compile(r"manual_seed|torch\.(normal|bernoulli|poisson)\(|\.\w+_\(\)$")


def chosen() -> list[tuple[str, Sample]]:
    """Return the first sample of each operation, except those of random numbers, with its family."""
    first: dict[str, tuple[str, Sample]] = {}
    for family in FAMILIES:
        for sample in samples(family):
            if not RANDOM.search(sample.expression):
                first.setdefault(sample.op, (family, sample))
    return list(first.values())


def main() -> int:
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    operations, failures = chosen(), list[str]()
    barrier = threading.Barrier(threads, timeout=60)

    def use() -> None:
        for family, sample in operations:
            barrier.wait()
            found = compare_sample(family, sample)
            failures.extend(f"{sample.expression}: {aspect}: {text}" for aspect, text in found.items() if text)

    sys.setswitchinterval(1e-6)
    workers = [threading.Thread(target=use) for _ in range(threads)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    if barrier.broken:
        failures.append("a thread waited for the others in vain")
    print(*failures, sep="\n")
    print(f"{len(operations)} operations, {threads} threads, {len(failures)} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
