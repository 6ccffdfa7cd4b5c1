"""Model of the step times of data parallel training with 8 to 4,096 ranks; docs/distributed.md has the table.

    python -m benchmarks.scaling

A message of n bytes takes a + n / B. An all-reduce of n bytes over p ranks takes (Thakur, Rabenseifner and Gropp, 2005)

    ring        2 (p - 1) a + 2 n (p - 1) / (p B)
    tree        2 log2(p) a + 2 n (p - 1) / (p B)      recursive halving and doubling

A step computes for C = work per rank / rate; two thirds of that are the backward pass, during which buckets of 25 MB are
reduced one after the other. What does not fit, and the last bucket, come after it:

    step = C + max(all buckets - 2/3 C, last bucket)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

RANKS = (8, 64, 512, 4096)
BUCKET = 25 * 2**20


@dataclass(frozen=True)
class Link:
    """Latency in seconds and bandwidth in bytes per second of the network, for each rank."""

    name: str
    latency: float
    bandwidth: float


@dataclass(frozen=True)
class Network:
    """Network to train: bytes of its gradients, operations for a sample, rate in operations per second, global batch."""

    name: str
    nbytes: float
    work: float
    rate: float
    batch: int


LINKS = (Link("InfiniBand HDR", 0.6e-6, 25e9), Link("Ethernet, 10 Gb/s", 25e-6, 1.25e9))
PEAK = 312e12  # of an A100 in bfloat16
NETWORKS = (
    Network("ResNet-50", 25.6e6 * 4, 3 * 2 * 4.1e9, 0.2 * PEAK, 8192),
    Network("BERT-large", 335e6 * 4, 6 * 335e6 * 128, 0.4 * PEAK, 32768),
    Network("GPT-2 XL", 1.56e9 * 4, 6 * 1.56e9 * 1024, 0.4 * PEAK, 1024),
)


def all_reduce(nbytes: float, ranks: int, link: Link, ring: bool = False) -> float:
    """Return the seconds of an all-reduce."""
    steps = ranks - 1 if ring else math.log2(ranks)
    return 2 * steps * link.latency + 2 * nbytes * (ranks - 1) / ranks / link.bandwidth


def step(network: Network, ranks: int, link: Link, ring: bool = False) -> tuple[float, float]:
    """Return the seconds of a step, and of the computation in it."""
    compute = network.work * network.batch / ranks / network.rate
    count = max(1, math.ceil(network.nbytes / BUCKET))
    bucket = all_reduce(network.nbytes / count, ranks, link, ring)
    return compute + max(count * bucket - 2 / 3 * compute, bucket), compute


def table(link: Link) -> str:
    """Return the table of step times in milliseconds, and of the part that is computation."""
    rows = ["| network, global batch | " + " | ".join(f"{each:,} ranks" for each in RANKS) + " |", "| --- " * 5 + "|"]
    for each in NETWORKS:
        cells = []
        for ranks in RANKS:
            if each.batch < ranks:
                cells.append("-")
                continue
            seconds, compute = step(each, ranks, link)
            digits = max(0, 2 - math.floor(math.log10(seconds * 1e3)))
            cells.append(f"{seconds * 1e3:,.{digits}f} ({compute / seconds:.0%})")
        rows.append(f"| {each.name}, {each.batch:,} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> None:
    for link in LINKS:
        print(f"{link.name}: {link.latency * 1e6:g} µs, {link.bandwidth / 1e9:g} GB/s\n\n{table(link)}\n")
    tree, ring = (all_reduce(BUCKET, 4096, LINKS[0], each) * 1e3 for each in (False, True))
    print(f"a bucket of 25 MB over 4,096 ranks: {tree:.2f} ms as a tree, {ring:.2f} ms as a ring")
    for each in NETWORKS:
        ranks = [2**k for k in range(1, 13) if 2**k <= each.batch and efficiency(each, 2**k) >= 0.5]
        print(f"{each.name}: at least half of the time is computation up to {max(ranks):,} ranks")


def efficiency(network: Network, ranks: int) -> float:
    """Return the part of a step that is computation, with the first of the links."""
    seconds, compute = step(network, ranks, LINKS[0])
    return compute / seconds


if __name__ == "__main__":
    main()
