"""Record how every function treats ``out=``: ``python -m tests.conformance.golden.record_out_arguments`` (needs PyTorch).

Writes ``out_arguments.json`` (the outcomes of the trials in ``out_argument_cases.py``) and, from these, the table
``src/retrograd/dispatch/outs.txt``: the dtypes of ``out`` that each function accepts, and its error for others.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Callable
from typing import Any

from tests import ROOT
from tests.conformance.out_argument_cases import KINDS, Trial, calls, plain

HERE = pathlib.Path(__file__).parent
TARGET = HERE / "out_arguments.json"
SIGNATURES = ROOT / "src/retrograd/dispatch/signatures.txt"
TABLE = ROOT / "src/retrograd/dispatch/outs.txt"
SPACES = {"torch": "", "linalg": "linalg.", "fft": "fft.", "special": "special."}
USUAL = "RuntimeError: result type {result} can't be cast to the desired output type {out}"
HEAD = """# Which out= PyTorch's functions take; written by tests/conformance/golden/record_out_arguments.py, read by out.py. A section is a test that the
# dtype of an output must pass, with what is said of others, or a property; its second line has the functions (f#1: the
# second output of f). What is in no section takes what the result can be cast to.
"""
GRADED = re.compile(r"RuntimeError: (\S+)\(\): functions with out=\.\.\. arguments don't support automatic")
#: Entries of functions that are written in Python in PyTorch or that need other calls.
BY_HAND = {
    "same] Expected out tensor to have dtype {c_result}, but got {c_out} instead": ["norm"],
    "same] tensordot: Expected the output tensor to have dtype {result}, but got an output tensor with dtype {out}": [
        "tensordot"
    ],
    "inexact] NotImplementedError: \"normal_kernel_cpu\" not implemented for '{out}'": ["normal"],
}
#: Not called: with an out of the wrong shape these corrupt memory.
LEFT_OUT = {"narrow_copy"}


def wanted() -> list[str]:
    """Return the functions that take ``out``, as ``linalg.inv`` …"""
    found, space = set(), ""
    for each in SIGNATURES.read_text(encoding="utf-8").splitlines():
        if each.startswith("["):
            space = each.strip("[]")
        elif " out=None" in each and space in SPACES and not each.endswith("deprecated"):
            found.add(SPACES[space] + each.partition("(")[0].removeprefix(space + "_"))
    return sorted(found - LEFT_OUT)


def in_a_child(work: Callable[[], Any]) -> Any:
    """Return the result of ``work`` in a forked process, or None if that crashes, as PyTorch does for some calls."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writer, "w") as pipe:
            pipe.write(json.dumps(work()))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def first_that_works(torch: Any, name: str, among: list[Any]) -> dict[str, Any] | None:
    """Return the trials of the first call of ``name`` that accepts a valid ``out``."""
    for sample, call in sorted(among, key=lambda each: all(x.dtype.kind in "iub" for x in each[0].arrays().values())):
        try:
            trial = Trial(torch, sample, call)
            works = all(isinstance(each, torch.Tensor) for each in trial.results)
        except Exception:
            continue
        if works and trial.outcome(trial.inputs(), trial.zeros((0,))) in ("ok", "warns"):
            found: dict[str, Any] = {"sample": sample.expression, "call": call}
            found["results"] = [str(each.dtype).removeprefix("torch.") for each in trial.results]
            found.update((key, plain(text)) for key, text in trial.outcomes() if sensible(key, text))
            return found
    return None


def sensible(key: str, said: str) -> bool:
    """Whether to follow PyTorch: it returns wrong numbers where ``out`` overlaps an input."""
    if key == "an input of another shape":
        return "single memory" in said or "broadcast" in said
    return key != "expanded" or "memory" in said


# --- The table ------------------------------------------------------------------------------------------------------

#: Checks of the dtype of ``out`` by name: predicates of the dtypes of result and output.
CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
TESTS: dict[str, Callable[[str, str], bool]] = {
    "same": lambda result, out: result == out,
    "cast": lambda result, out: CATEGORY[result[0]] <= CATEGORY[out[0]],
    "floating": lambda result, out: out[0] == "f",
    "complex": lambda result, out: out[0] == "c",
    "inexact": lambda result, out: out[0] in "fc",
    "real": lambda result, out: out[0] != "c",
    "number": lambda result, out: out[0] != "b",
    "real number": lambda result, out: out[0] not in "bc",
    "bytes": lambda result, out: out in ("bool", "uint8"),
}
SCALARS = {
    "bool": "Bool", "uint8": "Byte", "int32": "Int", "int64": "Long", "float16": "Half", "float32": "Float",
    "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip
IN_C = {
    "bool": "bool", "uint8": "unsigned char", "int32": "int", "int64": "long int", "float16": "c10::Half",
    "float32": "float", "float64": "double", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def template(text: str, result: str, out: str) -> str:
    """Return an error's text with ``{out}`` and ``{result}`` for dtypes (``{c_out}``, ``{type_out}``: other spellings)."""
    words: dict[str, str] = {}
    for what, dtype in (("out", out), ("result", result)):
        scalar = SCALARS[dtype]
        old = f"CPU{scalar}Type" if scalar.startswith(("Bool", "Complex")) else f"torch.{scalar}Tensor"
        words |= {f"dtype{scalar}": f"dtype{{{what}}}", f"type{scalar}": f"type{{{what}}}"}
        words |= {old: f"{{type_{what}}}", IN_C[dtype]: f"{{c_{what}}}", scalar: f"{{{what}}}"}
    text = text.replace("flag is False", "flag is {int32}")
    longest = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    return re.sub(rf"(?<![\w:<.])(?:{longest})(?![\w(>])", lambda found: words[found[0]], text)


def refusals(found: dict[str, Any], place: int) -> list[tuple[str, str]] | None:
    """Return the checks that an output must pass, in order, each with its error; None if none fits."""
    result = found["results"][place]
    refused: dict[str, set[str]] = {}
    for kind in KINDS:
        said = found[f"{kind} {place}"]
        if said not in ("ok", "warns"):
            refused.setdefault(template(said, result, kind), set()).add(kind)
    few_first = sorted(refused.items(), key=lambda each: len(each[1]))
    tests = in_order(few_first, result)
    return in_order(few_first[::-1], result) if tests is None else tests


def in_order(refused: list[tuple[str, set[str]]], result: str) -> list[tuple[str, str]] | None:
    done: set[str] = set()
    tests = []
    for text, kinds in refused:
        fitting = (
            name for name, passes in TESTS.items() if {k for k in KINDS if not passes(result, k)} - done == kinds
        )
        name = next(fitting, None)
        if name is None:
            return None
        tests.append((name, text))
        done |= kinds
    return tests


def graded(name: str, said: str) -> str:
    """Return the name under which a function rejects an ``out`` that requires grad: ``itself``, another one, or none.

    ``in-place``: the error is that of an in-place operation.
    """
    if "leaf Variable" in said or "cannot resize" in said:
        return "in-place"
    found = GRADED.match(said)
    return "" if found is None else "itself" if found[1] == name.replace(".", "_") else found[1]


def table(recorded: dict[str, dict[str, Any]]) -> str:
    """Return the text of outs.txt."""
    sections: dict[str, list[str]] = {}

    def enter(section: str, name: str) -> None:
        sections.setdefault(section, []).append(name)

    for name, found in recorded.items():
        each_place = [refusals(found, place) for place in range(len(found["results"]))]
        for place, tests in enumerate(each_place):
            if tests is None:
                print("no test fits what is said of", name, place)
                continue
            if not place or tests != each_place[0]:
                for test, text in tests or [("any", "")]:
                    if text != USUAL:
                        enter(
                            f"{test}] {text.removeprefix('RuntimeError: ')}".rstrip(),
                            f"{name}#{place}" if place else name,
                        )
        inputs, out = graded(name, found["graded inputs"]), graded(name, found["graded out"])
        if inputs != "itself":
            enter(f"graded inputs] {inputs}".rstrip(), name)
        if out != inputs and any(each[0] in "fc" for each in found["results"]):
            enter(f"graded out] {out}".rstrip(), name)
        if found["another shape"] == "ok":
            enter("resized silently]", name)
        if "refer to a single" in found.get("an input", found.get("an input of another shape", "")):
            enter("apart]", name)
        if "broadcast" in found.get("an input of another shape", ""):
            enter("broadcast]", name)
        if found.get("shifted by one") in ("ok", "warns"):
            enter("may overlap]", name)
    for section, names in BY_HAND.items():
        sections.setdefault(section, []).extend(names)
    return HEAD + "".join(f"[{section}\n{' '.join(names)}\n" for section, names in sorted(sections.items()))


def main() -> None:
    import torch

    torch.set_num_threads(1)
    recorded = {}
    found = calls({f"torch.{each}" for each in wanted()})
    for name in wanted():
        trials = in_a_child(lambda name=name: first_that_works(torch, name, found.get(f"torch.{name}", [])))  # type: ignore[misc]
        if trials is None:
            print("no call of", name)
        else:
            recorded[name] = trials
    texts = sorted({text for each in recorded.values() for text in each.values() if isinstance(text, str)})
    lines = [json.dumps({name: {key: texts.index(text) if isinstance(text, str) else text for key, text in each.items()}})
             for name, each in recorded.items()]  # fmt: skip
    TARGET.write_text("[" + ",\n".join([json.dumps(texts, indent=0), *lines]) + "]\n")
    TABLE.write_text(table(recorded), encoding="utf-8")


if __name__ == "__main__":
    main()
