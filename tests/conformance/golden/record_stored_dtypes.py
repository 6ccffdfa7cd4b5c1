"""Record which operations PyTorch supports for float8 and complex32, in ``dispatch/stored_dtypes.txt``.

    python -m tests.conformance.golden.record_stored_dtypes

Each operator of PyTorch's database is called with its samples of float32 converted to these dtypes, in PyTorch and, with
the check of dtypes switched off, in retrograd. The operation of retrograd that gets the operands first has PyTorch's
answer. Needs PyTorch; the test suite does not.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from pathlib import Path
from typing import Any

import torch as oracle

import retrograd
from retrograd.core.dtypes import STORED
from retrograd.dispatch import stored_dtypes

from .compare_operators import converted, op_db, reached

KINDS = [each.name for each in STORED]
FLOAT8 = KINDS[:-1]
HEAD = """\
# Which operations PyTorch supports for float8 and complex32, recorded by tests/conformance/golden/record_stored_dtypes.py.
# name of the operation, entry for float8, entry for complex32, exceptions of some float8 dtypes.
# An entry is + or the name of the kernel in PyTorch's error.
"""
#: Calls that the database does not have: indexing, assignment and methods without a function.
MORE = (
    lambda torch, x: x[torch.tensor([0])], lambda torch, x: x[torch.tensor([True])], lambda torch, x: x * 2.0,
    lambda torch, x: x + 1, lambda torch, x: 1 - x, lambda torch, x: x.fill_(2), lambda torch, x: x.zero_(),
    lambda torch, x: x.__setitem__(0, 3), lambda torch, x: x.__setitem__(slice(0, 1), x.clone()),
    lambda torch, x: x.__setitem__(torch.tensor([0]), x[:1]), lambda torch, x: x.__setitem__(torch.tensor([0]), 3),
    lambda torch, x: x.__setitem__(torch.tensor([True]), 3), lambda torch, x: x.fill_(x[0]),
    lambda torch, x: x.uniform_(), lambda torch, x: x.normal_(), lambda torch, x: x.exponential_(),
    lambda torch, x: x.random_(), lambda torch, x: x.bernoulli_(), lambda torch, x: x.log_normal_(),
    lambda torch, x: x.cauchy_(), lambda torch, x: x.geometric_(0.5), lambda torch, x: torch.repeat_interleave(x, 2),
    lambda torch, x: torch.where(x != x, x, x), lambda torch, x: torch.where(x != x, x, 1.0), lambda torch, x: x / x,
    lambda torch, x: x.nonzero(), lambda torch, x: torch.equal(x, x), lambda torch, x: torch.nn.functional.relu(x),
    lambda torch, x: x.masked_fill_(torch.tensor([True]), 1), lambda torch, x: x.index_fill_(0, torch.tensor([0]), 1),
    lambda torch, x: torch.nn.functional.embedding(torch.tensor([0]), x.view(1, 1)),
    lambda torch, x: torch.nn.functional.linear(x.view(1, 1), x.view(1, 1)), lambda torch, x: x.sum((0,)),
)  # fmt: skip


def with_dtype(value: Any, torch: Any, kind: str) -> Any:
    """Return ``value`` with each floating tensor in it converted to the dtype called ``kind``."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(getattr(torch, kind)) if value.is_floating_point() else value
    if type(value) in (list, tuple):
        return type(value)(with_dtype(each, torch, kind) for each in value)
    if isinstance(value, dict):
        return {key: with_dtype(each, torch, kind) for key, each in value.items()}
    return value


def entry(call: Any) -> str | None:
    """Return "+" if ``call`` succeeds, the name of the kernel that PyTorch's error states, or None."""
    try:
        call()
    except Exception as error:
        found = re.match(r'"(\S+)" not implemented for', str(error))
        return found[1] if found else None
    return "+"


def calls() -> Any:
    """Return pairs of PyTorch's and retrograd's call, as functions of a dtype's name."""
    for more in MORE:
        yield lambda torch, kind, more=more: more(torch, torch.ones(1).to(getattr(torch, kind)))
    for operator in sorted(op_db, key=lambda each: "." in each.name):  # elementary operations first
        ours = reached(retrograd, operator.name)
        if oracle.float32 not in operator.supported_dtypes("cpu") or ours is None or operator.name.startswith("linalg"):
            continue
        for sample, _ in zip(operator.sample_inputs("cpu", oracle.float32), range(3), strict=False):

            def called(torch: Any, kind: str, operator: Any = operator, sample: Any = sample, ours: Any = ours) -> Any:
                args = (sample.input, *sample.args)
                given = (args, sample.kwargs) if torch is oracle else (converted(args), converted(sample.kwargs))
                function = operator.op if torch is oracle else ours
                return function(*with_dtype(given[0], torch, kind), **with_dtype(given[1], torch, kind))

            called.__name__ = f"called {operator.name.rpartition('.')[2]}"
            yield called


def main() -> None:
    warnings.simplefilter("ignore")
    seen: list[str] = []
    named: dict[str, dict[str, str]] = {}
    stored_dtypes.check_supported = lambda op, kind: seen.append(op.name)  # type: ignore[assignment]
    direct: dict[str, dict[str, str]] = {}
    indirect: dict[str, dict[str, str]] = {}
    for called in calls():
        for kind in KINDS:
            answer = entry(lambda called=called, kind=kind: called(oracle, kind))
            if answer is None:
                continue
            seen.clear()
            with contextlib.suppress(Exception):
                called(retrograd, kind)
            names = list(dict.fromkeys(seen))
            for name in names[: None if answer == "+" else 1]:
                if called.__name__.endswith((f" {name}", f" {name.removesuffix('_block')}")):
                    named.setdefault(name, {}).setdefault(kind, answer)
                (direct if len(names) == 1 else indirect).setdefault(name, {}).setdefault(kind, answer)
    rows = []
    for name in sorted({*direct, *indirect}):
        found = {**indirect.get(name, {}), **direct.get(name, {}), **named.get(name, {})}
        usual = found.get(FLOAT8[0], f"{name}_cpu")
        others = [f"{kind}={found[kind]}" for kind in FLOAT8[1:] if found.get(kind, usual) != usual]
        rows.append(" ".join([name, usual, found.get("complex32", f"{name}_cpu"), *others]))
    path = Path(stored_dtypes.__file__).with_suffix(".txt")
    path.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    print(len(rows), "operations")


if __name__ == "__main__":
    main()
