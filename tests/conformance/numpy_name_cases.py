"""Calls with NumPy's names of parameters, such as ``axis`` for ``dim``, made from the samples.

Used by ``test_numpy_names`` and by ``golden/record_numpy_names.py``, which records what PyTorch does with the calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from retrograd.dispatch.signatures import OTHER_NAMES, Signature, signatures
from tests.conformance.samples import FAMILIES, Sample, samples


def cases() -> Iterator[tuple[str, str, Sample, str]]:
    """Yield calls as tuples: the function, the name in place of the usual one, a sample, and the changed expression."""
    for family in FAMILIES:
        for sample in samples(family):
            tree = ast.parse(sample.expression, mode="eval")
            if not isinstance(tree.body, ast.Call) or not isinstance(tree.body.func, ast.Attribute):
                continue
            space, _, name = ast.unparse(tree.body.func).rpartition(".")
            space = "torch" if space == "torch" else space.removeprefix("torch.") if "torch." in space else "Tensor"
            known = [each for each in signatures(space, name) if not each.hidden] or _of_python(tree.body)
            for signature in known:
                for usual, others in OTHER_NAMES.items():
                    for other in others:
                        call = _renamed(tree.body, signature, usual, other)
                        if call is not None:
                            yield f"{space}.{name}", other, sample, ast.unparse(call)


def _of_python(call: ast.Call) -> list[Signature]:
    """Return a signature for a function without a recorded one whose call passes ``dim`` or ``keepdim`` by name."""
    named = [each.arg for each in call.keywords if each.arg in ("dim", "keepdim")]
    return [Signature(f"f(Tensor input, *, {', '.join(f'int {each}' for each in named)})")] if named else []


def _renamed(call: ast.Call, signature: Signature, usual: str, other: str) -> ast.Call | None:
    """Return ``call`` with the argument for the parameter ``usual`` passed by the keyword ``other``, or None.

    Positional arguments from this one on are passed by keyword. None means that the call does not pass the parameter,
    or does not fit ``signature``.
    """
    names = [each.name for each in signature.parameters if not each.keyword_only]
    keywords = [each.arg for each in call.keywords]
    if any(isinstance(each, ast.Starred) for each in call.args) or None in keywords:
        return None
    if len(call.args) > len(names) or not set(keywords) <= {each.name for each in signature.parameters}:
        return None
    if usual in keywords:
        renamed = [ast.keyword(other if each.arg == usual else each.arg, each.value) for each in call.keywords]
        return ast.Call(call.func, call.args, renamed)
    if usual not in names[: len(call.args)]:
        return None
    start = names.index(usual)
    passed = [
        ast.keyword(other if name == usual else name, value)
        for name, value in zip(names[start:], call.args[start:], strict=False)
    ]
    return ast.Call(call.func, call.args[:start], [*passed, *call.keywords])
