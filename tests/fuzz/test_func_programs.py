"""Random programs of nested ``torch.func`` transforms, compared with PyTorch."""

from __future__ import annotations

import pytest

import retrograd as torch
from tests.conformance.golden import load
from tests.fuzz.func_programs import CASES, COUNT, TOLERANCE, Writer, disagreement, program, run, text

RECORDED = load("func_programs")
#: Programs that differ: seeds with their reasons.
KNOWN = {
    94: "the derivative of clamp is recorded",
    110: "a zero gradient is recorded",
    139: "an in-place operation on a tensor from outside of vmap; in PyTorch the operand has slices in its tangent only",
}


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_program(seed: int) -> None:
    statements = program(seed)
    found = disagreement(run(torch, statements), RECORDED["programs"][seed], TOLERANCE[Writer(seed).dtype])
    if seed in KNOWN:
        assert found is not None, KNOWN[seed]
        return
    assert found is None or found[1] == "beyond", "\n".join([str(found), *map(text, statements)])


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    expected = RECORDED["cases"][name]
    assert not [key for key in expected if key.startswith("error")]
    found = run(torch, CASES[name])
    assert disagreement(found, expected, 1e-9) is None, [disagreement(found, expected, 1e-9), found, expected]


def test_programs_use_every_transform() -> None:
    whole = "\n".join(text(each) for seed in range(COUNT) for each in program(seed))
    for each in (
        "func.grad(", "grad_and_value(", "func.vjp(", "func.jvp(", "torch.vmap(", "jacrev(", "jacfwd(", "hessian(", "linearize(",
        "functional_call(", "has_aux=True", "argnums=(0, 1)", "['k']", "chunk_size=", "randomness='different'", "del ",
        "no_grad()", "inference_mode()", "autograd.grad(", "[0] =", ".copy_(", "dropout(", "bfloat16", "complex64",
    ):  # fmt: skip
        assert whole.count(each) >= 2, each
