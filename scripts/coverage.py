"""Report how much of PyTorch is implemented: names, and operations that agree with recorded values and derivatives.

``python3 scripts/coverage.py [--write]`` needs no PyTorch, only the answers recorded in ``tests/conformance/golden``.
``--write`` also writes ``docs/coverage.md`` and removes names that exist now from
``tests/conformance/missing_names.txt``.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from operator import attrgetter

from environment import ROOT, environment, run

if importlib.util.find_spec("retrograd") is None:
    sys.exit(run(environment(), [__file__, *sys.argv[1:]]))
sys.path.insert(0, str(ROOT))

import retrograd as torch
from tests.conformance import name_families as families
from tests.conformance.sample_comparison import ASPECTS, compare_sample, golden, golden_forward
from tests.conformance.samples import FAMILIES as SAMPLED
from tests.conformance.samples import Sample, samples
from tests.conformance.training_comparison import runs

PAGE = ROOT / "docs" / "coverage.md"
#: Families whose operations are counted; the others are names only.
OF_OPERATIONS = families.FAMILIES[:10]
#: Abstract base classes of optimizers and schedulers, and a layer for several processes (tests/unit/test_distributed.py).
ABSTRACT = {"Optimizer", "LRScheduler", "SyncBatchNorm"}


def reached(expression: str) -> list[tuple[str, str]]:
    """Return PyTorch's names in an expression with the modules they belong to, the outermost first."""
    found = []
    for node in ast.walk(ast.parse(expression, mode="eval")):
        if isinstance(node, ast.Attribute):
            path = ast.unparse(node.value)
            place = path if path in families.recorded() else "torch.Tensor"
            if node.attr in families.recorded()[place]:
                found.append((place, node.attr))
    return found


def operation_of(sample: Sample) -> tuple[str, str]:
    """Return the family and the name of a sample's operation.

    The sample has an informal name (``"complex scatter_reduce"``, ``"linalg.solve"``); its expression determines the
    module.
    """
    said = families.operation(sample.op.replace(".", " ").split()[-1])
    found = reached(sample.expression)
    meant = [(place, name) for place, name in found if families.operation(name) == said]
    listed = families.family_of_operation(said)
    if not meant and listed is not None:
        return listed, said
    for place, name in meant or found:
        return families.family(place, name), families.operation(name)
    return families.THE_REST, said


@dataclass
class Family:
    """Counts for one family of names."""

    names: int = 0
    missing: list[str] = field(default_factory=list)
    operations: set[str] = field(default_factory=set)
    #: The operations that some sample's expression reaches.
    sampled: set[str] = field(default_factory=set)
    #: For each operation and aspect, how many samples are recorded and how many agree.
    recorded: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    agreed: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    differences: list[str] = field(default_factory=list)

    def of_operations(self, aspect: str) -> tuple[int, int]:
        """Return the number of operations whose samples all agree in an aspect, and of those with recorded samples."""
        counted = [name for name, counts in self.recorded.items() if counts[aspect]]
        return sum(self.agreed[name][aspect] == self.recorded[name][aspect] for name in counted), len(counted)

    def of_samples(self, aspect: str) -> tuple[int, int]:
        """Return the number of samples that agree in an aspect, and of those for which it is recorded."""
        return (
            sum(counts[aspect] for counts in self.agreed.values()),
            sum(counts[aspect] for counts in self.recorded.values()),
        )


def count() -> tuple[dict[str, Family], Counter[str]]:
    """Return all families, and the number of smooth samples without a recorded forward derivative by operation."""
    found = {name: Family() for name in families.FAMILIES}
    missing = set(families.missing())
    for place, name in families.supported_names():
        family = found[families.family(place, name)]
        family.names += 1
        if len(name) == 1 or name[0].islower():  # not a class
            family.operations.add(families.operation(name))
        if f"{place}.{name}" in missing:
            family.missing.append(families.below_torch(place, name))
    unrecorded = Counter[str]()
    for each in SAMPLED:
        for sample in samples(each):
            torch.manual_seed(0)
            verdict = compare_sample(each, sample)
            belongs, operation = operation_of(sample)
            add(found[belongs], operation, sample, verdict)
            for place, name in reached(sample.expression):
                found[families.family(place, name)].sampled.add(families.operation(name))
            differentiated = "first" in golden(each).get(sample.expression, {})
            if differentiated and sample.expression not in golden_forward(each):
                unrecorded[operation] += 1
    return found, unrecorded


def add(family: Family, operation: str, sample: Sample, verdict: dict[str, str]) -> None:
    """Count one sample."""
    family.operations.add(operation)
    family.sampled.add(operation)
    for aspect, difference in verdict.items():
        family.recorded[operation][aspect] += 1
        family.agreed[operation][aspect] += not difference
        if difference:
            family.differences.append(f"{sample.expression}: {aspect}: {' '.join(difference.split())[:160]}")


def classes(kind: str) -> set[str]:
    """Return the public classes of modules, optimizers or schedulers."""
    space = attrgetter(kind)(torch)
    base = {"nn": "Module", "optim": "Optimizer", "optim.lr_scheduler": "LRScheduler"}[kind]
    made = {name for name in dir(space) if name[0] != "_" and isinstance(getattr(space, name), type)}
    return {name for name in made if issubclass(getattr(space, name), getattr(space, base))} - ABSTRACT


def count_of_training() -> tuple[list[list[str]], list[str]]:
    """Return the table rows of modules, optimizers and schedulers, and a list of what is missing or differs."""
    tried: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    different = []
    for kind, name, made, check in runs():
        try:
            check()
        except AssertionError as error:
            different.append(f"`{made}`: {' '.join(str(error).split())[:160]}")
        tried[kind][name].append(not different or made not in different[-1])
    rows = [["classes of", "public", "recorded", "agree", "runs", "runs that agree"]]
    for kind, seen in tried.items():
        public = classes(kind)
        different += [f"{kind}.{name}: nothing is recorded" for name in sorted(public - seen.keys())]
        recorded = public & seen.keys()
        every = [each for several in seen.values() for each in several]
        numbers = (len(public), len(recorded), sum(all(seen[each]) for each in recorded), len(every), sum(every))
        rows.append([kind, *map(str, numbers)])
    return rows, different


def table(found: dict[str, Family]) -> list[list[str]]:
    """Return the table rows: names, sampled operations, and for each aspect the operations that agree completely."""
    rows = [["family", "names", "operations", "sampled", *ASPECTS, "samples"]]
    totals = Counter[str]()
    for name, family in found.items():
        pairs = {"names": (family.names - len(family.missing), family.names)}
        if name in OF_OPERATIONS:
            pairs |= {
                "operations": (0, len(family.operations)),
                "sampled": (0, len(family.sampled & family.operations)),
            }
            pairs |= {aspect: family.of_operations(aspect) for aspect in ASPECTS}
            pairs["samples"] = family.of_samples("value")
        rows.append([name, *(shown(pairs.get(title), title) for title in rows[0][1:])])
        for title, (good, all_of_them) in pairs.items():
            totals[f"{title} good"] += good
            totals[title] += all_of_them
    rows.append(["all", *(shown((totals[f"{title} good"], totals[title]), title) for title in rows[0][1:])])
    return rows


def shown(pair: tuple[int, int] | None, title: str) -> str:
    if pair is None:
        return ""
    return str(pair[1]) if title in ("operations", "sampled") else f"{pair[0]} of {pair[1]}"


def verdict_in_words(found: dict[str, Family]) -> str:
    """Return the summary sentence."""
    counted = [(found[each], name) for each in OF_OPERATIONS if each in found for name in found[each].recorded]
    whole = sum(family.agreed[name] == family.recorded[name] for family, name in counted)
    with_forward = sum(bool(family.recorded[name]["forward"]) for family, name in counted)
    return (
        f"{whole} of {len(counted)} operations with samples of their own agree with PyTorch in all that is recorded of "
        f"them; for {with_forward} of them that includes forward derivatives."
    )


def lists(found: dict[str, Family], unrecorded: Counter[str]) -> list[tuple[str, list[str]]]:
    """Return the lists below the table: titles, each with its lines."""
    absent = [f"{name}: {' '.join(family.missing)}" for name, family in found.items() if family.missing]
    silent = [
        f"{name}: {' '.join(sorted(unsampled))}"
        for name, family in found.items()
        if name in OF_OPERATIONS and (unsampled := present_operations(family) - family.sampled)
    ]
    different = [f"{name}: `{each}`" for name, family in found.items() for each in family.differences]
    return [
        ("Names that are missing", absent),
        ("Operations that no sample reaches (random numbers have tests of their own)", silent),
        ("What differs from what is recorded", different),
        (
            "Differentiable samples without a recorded forward derivative (most often PyTorch has none)",
            [f"{name}: {times}" for name, times in sorted(unrecorded.items())],
        ),
    ]  # fmt: skip


def present_operations(family: Family) -> set[str]:
    """Return the operations of a family that have no missing name."""
    return family.operations - {families.operation(name.rpartition(".")[2]) for name in family.missing}


def aligned(rows: list[list[str]]) -> list[str]:
    """Return a table as aligned lines."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def piped(rows: list[list[str]]) -> list[str]:
    """Return a table as Markdown lines."""
    return ["| " + " | ".join(row) + " |" for row in [rows[0], ["---", *["--:"] * (len(rows[0]) - 1)], *rows[1:]]]


def text(rows: list[list[str]], sentence: str, training: list[list[str]], parts: list[tuple[str, list[str]]]) -> str:
    """Return the report as plain text."""
    lines = [*aligned(rows), "", sentence, "", *aligned(training)]
    for title, found in parts:
        lines += ["", f"{title}: {'none' if not found else ''}".rstrip(), *(f"  {each}" for each in found)]
    return "\n".join(line.rstrip() for line in lines)


def page(rows: list[list[str]], sentence: str, training: list[list[str]], parts: list[tuple[str, list[str]]]) -> str:
    """Return the report as a Markdown page."""
    recorded = sum(map(len, families.recorded().values()))
    lines = [
        "# How much of PyTorch is there", "",
        "Written by `python3 scripts/coverage.py --write` from what was recorded of PyTorch 2.13; not to be edited.", "",
        f"Of {recorded} public names {recorded - len(families.supported_names())} are left out on purpose (docs/differences.md "
        "says why); the others are asked for. An operation agrees in an aspect if all its samples do: **value** (dtype, "
        "shape and numbers), **node** (the names of `grad_fn`), **first** and **second** derivative, **forward** "
        "derivative along a fixed direction. **samples**: those whose values agree.", "",
        *piped(rows), "", sentence, "", "## Modules, optimisers, schedules of learning rates", "",
        "Of a module are recorded its text, what it keeps, its first weights for a seed, results, nodes and gradients, its "
        "running statistics and what it gives in evaluation; of an optimiser losses, parameters and state over a hundred "
        "steps; of a schedule rates and state over 22 epochs. A class agrees if all its runs do.", "", *piped(training),
    ]  # fmt: skip
    for title, found in parts:
        lines += ["", f"## {title}", "", *(f"- {each}" for each in found or ["none"])]
    return "\n".join(lines) + "\n"


def strike_off() -> None:
    """Remove the implemented names from the list of names that may be missing."""
    missing = set(families.missing())
    lines = families.MISSING.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.startswith("#") or line in missing]
    families.MISSING.write_text("\n".join(kept) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    if set(arguments) - {"--write"}:
        print(__doc__)
        return 2
    warnings.simplefilter("ignore")  # the samples' own: deprecated names, empty results
    found, unrecorded = count()
    rows, parts = table(found), lists(found, unrecorded)
    sentence, (training, others) = verdict_in_words(found), count_of_training()
    parts[2][1].extend(others)
    print(text(rows, sentence, training, parts))
    if arguments:
        PAGE.write_text(page(rows, sentence, training, parts), encoding="utf-8")
        strike_off()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
