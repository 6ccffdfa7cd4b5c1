"""Mutants of the derivative rules, judged by the samples that call the rule.

The functions of a rule are the rule itself and the functions of ``retrograd.operations`` that it calls with ``F``. A
mutant takes the place of the code of such a function, in this process: with ``RETROGRAD_CODEGEN=0`` every vjp calls its
rules as they are. Then the samples run that call the function, until one differs from PyTorch's record or from finite
differences. A mutant is also killed by an exception, and after :data:`SECONDS`.
"""

from __future__ import annotations

import random
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import retrograd as torch
from retrograd.dispatch.op import OPS, Op
from retrograd.dispatch.templates import vjp
from tests.conformance.finite_differences import Directional
from tests.conformance.rule_samples import RULE_SAMPLES
from tests.conformance.sample_comparison import compare_sample, golden
from tests.conformance.samples import FAMILIES, Sample, samples
from tests.mutation.changes import changes
from tests.mutation.functions import compiled, exchanged, tree_of

SECONDS = 5.0
OPERATIONS = str(Path(torch.__file__).parent / "operations")
FOLDER = Path(__file__).resolve().parent


@dataclass
class Rule:
    """One function whose mutants are made; ``name`` is its key in the table of equivalent mutants."""

    name: str
    functions: list[FunctionType] = field(default_factory=list)
    samples: list[tuple[str, Sample]] = field(default_factory=list)

    @property
    def code(self) -> CodeType:
        return self.functions[0].__code__


class Mutant:
    """A mutant of a rule: ``key`` identifies it, and ``applied`` is a context manager in which it is in place."""

    def __init__(self, key: str, applied: Callable[[], Any], samples: list[tuple[str, Sample]], file: str) -> None:
        self.key, self.applied, self.samples, self.file = key, applied, samples, Path(file).stem


class TimeIsUpError(BaseException):
    """Raised in a mutant that runs too long; no ``except Exception`` catches it."""


# --- The rules ------------------------------------------------------------------------------------------------------


def rules() -> dict[CodeType, Rule]:
    """Return all functions that compute derivatives by rules, by their code."""
    found: dict[CodeType, Rule] = {}
    for op in OPS.values():
        for tensor, rule in zip(op.tensors, op.rules, strict=True):
            if isinstance(rule, FunctionType):
                _add(found, rule, f"{op.name}.{tensor}" if "<" in rule.__qualname__ else rule.__name__)
    return found


def _add(found: dict[CodeType, Rule], function: FunctionType, name: str) -> None:
    code = function.__code__
    if not code.co_filename.startswith(OPERATIONS):
        return
    if code not in found:
        names = Counter(each.name.partition(" #")[0] for each in found.values())
        found[code] = Rule(name if not names[name] else f"{name} #{names[name] + 1}")
    entry = found[code]
    if function in entry.functions:
        return
    entry.functions.append(function)
    cells = [each.cell_contents for each in function.__closure__ or ()]
    called = [function.__globals__.get(each) for each in code.co_names]
    for each in (*cells, *called):
        if isinstance(each, FunctionType) and each.__code__.co_varnames[:1] == ("F",):
            _add(found, each, f"{name} {each.__name__}" if "<" in each.__qualname__ else each.__name__)


def constant_rules() -> Iterator[tuple[Op, int, str, Any]]:
    """Yield (op, index, key, changed rule) for the rules that are a number or the name of a saved value."""
    for op in OPS.values():
        for index, rule in enumerate(op.rules):
            changed: list[tuple[str, Any]] = []
            if isinstance(rule, str):
                changed = [("sign", f"lambda {rule}: -{rule}"), ("factor", f"lambda {rule}: 1")]
            elif isinstance(rule, (int, float)):
                changed = [("sign", -rule), ("factor", rule * 2)] if rule else [("factor", 1)]
            for kind, other in changed:
                new = eval(other) if isinstance(other, str) else other
                yield op, index, f"{op.name}.{op.tensors[index]} | {kind}: {rule} -> {other}", new


# --- Mutants --------------------------------------------------------------------------------------------------------


def mutants_of(rule: Rule) -> list[Mutant]:
    """Return the mutants of one function."""
    tree = tree_of(rule.code)
    if tree is None:
        raise LookupError(f"the source of {rule.name} is not found")
    made = []
    for change in changes(tree):
        change.make()
        try:
            code = compiled(tree, rule.code)
        finally:
            change.undo()
        applied = partial(exchanged, rule.functions, code)
        made.append(Mutant(f"{rule.name} | {change.key}", applied, rule.samples, rule.code.co_filename))
    return made


@contextmanager
def _constant_changed(op: Op, index: int, rule: Any) -> Iterator[None]:
    before = op.rules
    try:
        op.rules = (*before[:index], rule, *before[index + 1 :])
        _generate_vjps(op)
        yield
    finally:
        op.rules = before
        _generate_vjps(op)


def _generate_vjps(op: Op) -> None:
    for (conjugate, _, only), kind in op.nodes.items():
        saved = [each for each in op.saved() if only is None or only in each.rules]
        for name in ("vjp", "vjp_recorded"):
            setattr(kind, name, op.compile_vjp(op, saved, conjugate, name == "vjp_recorded", only))


# --- The judge ------------------------------------------------------------------------------------------------------


@cache
def _expected(family: str, sample: Sample) -> Directional | None:
    """Return the sample's finite differences, or None where derivatives are not compared with them."""
    recorded = golden(family).get(sample.expression, {}) if family in FAMILIES else {}
    if ({"error", "refused"} & recorded.keys() and not sample.beyond) or sample.named or not sample.smooth:
        return None
    return Directional(sample)


def differs(family: str, sample: Sample) -> bool:
    """Whether the derivatives of a sample differ from PyTorch's record or from finite differences."""
    torch.manual_seed(0)
    found = _expected(family, sample)
    if found is not None and found.mismatch(1):
        return True
    if family in FAMILIES and any(compare_sample(family, sample).values()):
        return True
    return found is not None and sample.second and bool(found.mismatch(2))


def judged_samples(families: Sequence[str] = ()) -> list[tuple[str, Sample]]:
    """Return (family, sample) of the samples of operations, and of those that PyTorch has no record of."""
    found = [(family, sample) for family in families or FAMILIES for sample in samples(family)]
    return found + [("rules", sample) for sample in RULE_SAMPLES]


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`TimeIsUpError` in the block after some seconds."""

    def end(*_: object) -> None:
        raise TimeIsUpError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_killed(mutant: Mutant) -> bool:
    """Whether a sample differs while the mutant is in place."""
    with mutant.applied(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family, sample in mutant.samples:
            try:
                with time_limit(SECONDS):
                    if differs(family, sample):
                        return True
            except (Exception, TimeIsUpError):
                return True
    return False


# --- Runs -----------------------------------------------------------------------------------------------------------


def find_samples(found: dict[CodeType, Rule], families: Sequence[str] = ()) -> dict[str, list[tuple[str, Sample]]]:
    """Enter in each rule the samples that call it, the fastest first; return the samples by operation as well."""
    current: Any = None
    by_rule: dict[CodeType, dict[int, Any]] = {}
    by_operation: dict[str, dict[int, Any]] = {}

    def profile(frame: Any, event: str, _: object) -> None:
        if event == "call":
            if frame.f_code in found:
                by_rule.setdefault(frame.f_code, {})[id(current)] = current
            elif frame.f_code is vjp.__code__:
                by_operation.setdefault(frame.f_locals["form"].op.name, {})[id(current)] = current

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family, sample in judged_samples(families):
            if not sample.smooth:
                continue
            current = [0.0, family, sample]
            began = time.perf_counter()
            sys.setprofile(profile)
            try:
                wrong = differs(family, sample)
            finally:
                sys.setprofile(None)
            current[0] = time.perf_counter() - began
            if wrong:
                raise AssertionError(f"without a mutant, a sample of {family} differs: {sample.expression}")

    def in_order(reached: dict[int, Any]) -> list[tuple[str, Sample]]:
        return [(family, sample) for _, family, sample in sorted(reached.values(), key=lambda each: each[0])]

    for code, reached in by_rule.items():
        found[code].samples = in_order(reached)
    return {name: in_order(reached) for name, reached in by_operation.items()}


def all_mutants(families: Sequence[str] = ()) -> list[Mutant]:
    """Return the mutants of all rules, with the samples that judge them."""
    found = rules()
    by_operation = find_samples(found, families)
    made = [mutant for rule in found.values() for mutant in mutants_of(rule)]
    for op, index, key, rule in constant_rules():
        applied = partial(_constant_changed, op, index, rule)
        made.append(Mutant(key, applied, by_operation.get(op.name, []), op.kernel.__code__.co_filename))
    return made


def equivalent() -> dict[str, str]:
    """Return the reason why a mutant is equivalent, by its key."""
    found, reason = {}, ""
    for line in (FOLDER / "equivalent.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            found[line] = reason
    return found


def run(count: int = 0, seed: int = 0, families: Sequence[str] = (), files: Sequence[str] = ()) -> int:
    """Judge the mutants of all rules, or ``count`` random ones; return the number of those that survive.

    If ``families`` are given, only the samples of these families judge. If ``files`` are given, only rules in source
    files with these names are changed.
    """
    made, known = all_mutants(families), equivalent()
    stale = sorted(known.keys() - {each.key for each in made})
    chosen = [each for each in made if not files or each.file in files]
    if count:
        chosen = random.Random(seed).sample(chosen, count)
    outcomes: Counter[str] = Counter()
    for mutant in chosen:
        outcome = "equivalent" if mutant.key in known else "killed" if is_killed(mutant) else "surviving"
        outcomes[outcome] += 1
        if outcome == "surviving":
            print(f"surviving: {mutant.key} ({len(mutant.samples)} samples)", flush=True)
    for key in stale:
        print(f"in equivalent.txt, but not made: {key}")
    print(f"{len(made)} mutants of {len(rules())} functions, of which {len(chosen)} were judged:")
    print(", ".join(f"{outcomes[each]} {each}" for each in ("killed", "equivalent", "surviving")))
    return outcomes["surviving"] + len(stale)
