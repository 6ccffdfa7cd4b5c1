"""Calls of public functions with arguments that do not fit, for both engines.

``python -m tests.fuzz.junk_arguments [--calls N] [--seed S] [--show KIND] [function …]`` makes N calls of each function,
compares them with PyTorch (which it needs), and counts the differences. The arguments follow a signature of the function
(``dispatch/signatures.txt``, or its Python signature in PyTorch) or a sample of the conformance tests, with one or two of
them replaced, removed or added. A difference has one of these kinds:

=========  ============================================================================
accepted   only PyTorch raises
refused    only retrograd raises
type       both raise, exceptions of two types
text       both raise exceptions of one type, with other words
value      both return, and the results differ
changed    retrograd raises and has changed an argument
crash      the process ends while retrograd makes the call
hang       retrograd takes more than 10 seconds
=========  ============================================================================

``--show`` prints the calls of a kind, ``all`` those of every kind. The calls of a function are made in a process of its
own, which is replaced when it ends. ``--record`` writes a sample of calls with PyTorch's outcomes to
``junk_arguments.txt``, which ``test_junk_arguments.py`` compares.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import inspect
import json
import math
import os
import random
import re
import resource
import signal
import sys
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy

RECORD = Path(__file__).with_suffix(".txt")
#: The tensors that calls name.
TENSORS = {
    "x": "torch.arange(6.0).reshape(2, 3) / 4", "m": "torch.eye(3) + 0.5", "v": "torch.arange(3.0)",
    "i": "torch.arange(6).reshape(2, 3)",
}  # fmt: skip
JUNK = [
    "None", "True", "False", "0", "1", "-1", "3", "-3", "2**63", "0.5", "-0.5", "nan", "inf", "-inf", "1j", "'a'", "()", "[]",
    "(0,)", "[1]", "(0, 1)", "(0, 0)", "(0.5,)", "['a']", "[None]", "[True]", "{}", "torch.tensor(1)", "torch.tensor(0.5)",
    "torch.tensor(True)", "torch.tensor([1, 0])", "torch.tensor([True, False])", "torch.ones(0)", "torch.ones(2, 0, 3)",
    "torch.ones(2, 3, dtype=torch.uint8)", "torch.ones(2, 3, dtype=torch.bool)", "torch.ones(3)", "torch.ones(3, 3).double()",
    "torch.ones(2, 3).half()", "torch.tensor(1j)", "torch.float64", "torch.int32", "numpy.int64(1)", "numpy.float64(0.5)",
    "numpy.bool_(True)", "numpy.ones(3)", "[torch.ones(3), torch.ones(3)]", "slice(None)", "...", "loop",
]  # fmt: skip
#: Arguments that fit, by type of the parameter.
FITTING = {
    "Tensor": list(TENSORS), "Tensor[]": ["[v, v]"], "int": ["0", "1", "-1"], "int[]": ["[0]", "[1, 0]"],
    "float": ["0.5"], "float[]": ["[0.5, 1.0]"], "Number": ["2", "0.5"], "Number[]": ["[1, 2]"], "bool": ["True", "False"],
    "str": ["'mean'"], "dtype": ["torch.float64"], "layout": ["torch.strided"], "device": ["'cpu'"],
    "memory_format": ["torch.contiguous_format"], "Generator": ["None"], "object": ["[1.0, 2.0]"],
    "Stream": ["None"], "Storage": ["None"],
}  # fmt: skip
#: Functions that change the process, need a file, another device, or a lot of memory, or return what is in the memory.
LEFT_OUT = {
    "cuda", "from_file", "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_",
    "resize_as_", "get_device", "data_ptr", "share_memory_", "pin_memory", "is_pinned", "record_stream", "xpu", "ipu",
    "manual_seed", "seed", "initial_seed", "to_mkldnn", "_resize_output_", "handle_torch_function", "has_torch_function",
    "boolean_dispatch", "assert_int_or_pair", "fork", "wait", "compile", "vmap", "save", "load", "set_printoptions",
    "set_num_threads", "set_num_interop_threads", "set_default_device", "set_default_dtype", "set_rng_state",
    "set_deterministic_debug_mode", "set_flush_denormal", "set_float32_matmul_precision", "use_deterministic_algorithms",
    "set_warn_always", "set_grad_enabled", "cond", "while_loop", "register_hook", "backward", "retain_grad", "module_load",
    "register_post_accumulate_grad_hook", "storage", "typed_storage", "untyped_storage", "apply_", "map_", "map2_",
}  # fmt: skip
PREFIXES = {
    "torch": "torch.", "linalg": "torch.linalg.", "fft": "torch.fft.", "special": "torch.special.",
    "nn": "torch.nn.functional.",
}  # fmt: skip
SECONDS = 10
KINDS = ("accepted", "refused", "type", "text", "value", "changed", "crash", "hang")


class Names(dict[str, Any]):
    """The variables of a call, each made when it is first used."""

    def __init__(self, torch: Any) -> None:
        super().__init__(torch=torch, numpy=numpy, nan=math.nan, inf=math.inf)

    def __missing__(self, key: str) -> Any:
        if key == "loop":
            self[key] = loop = [1]
            loop.append(loop)  # type: ignore[arg-type]
        elif key in TENSORS:
            self[key] = eval(TENSORS[key], {"torch": self["torch"]})
        else:
            raise KeyError(key)
        return self[key]

    def changed(self) -> list[str]:
        """Return the names of the tensors that the call has changed."""
        fresh = Names(self["torch"])
        return [each for each in TENSORS if each in self and self._state(self[each]) != self._state(fresh[each])]

    @staticmethod
    def _state(x: Any) -> Any:
        return x.shape, x.stride(), x.dtype, x.requires_grad, x.storage_offset(), x._version, x.detach().tolist()


def spaces(torch: Any) -> dict[str, Any]:
    """Return the namespaces of ``signatures.txt`` by name."""
    return {
        "torch": torch, "Tensor": torch.Tensor, "linalg": torch.linalg, "fft": torch.fft, "special": torch.special,
        "nn": torch.nn.functional,
    }  # fmt: skip


# --- Calls ----------------------------------------------------------------------------------------------------------


def call_text(space: str, name: str, args: list[str], named: dict[str, str]) -> str:
    """Return the source of a call of the function ``name``; the first argument of a method is its tensor."""
    given = [*args, *(f"{key}={value}" for key, value in named.items())]
    if space != "Tensor":
        return f"{PREFIXES[space]}{name}({', '.join(given)})"
    return f"{args[0]}.{name}({', '.join(given[1:])})"


def kind_of(parameter: inspect.Parameter) -> str:
    """Return the type of a parameter of a Python function, as ``signatures.txt`` names it."""
    text = str(parameter.annotation)
    for part, kind in (
        ("list[int]", "int[]"), ("List[int]", "int[]"), ("BroadcastingList", "int"), ("Tensor", "Tensor"), ("bool", "bool"),
        ("float", "float"), ("int", "int"), ("str", "str"),
    ):  # fmt: skip
        if part in text:
            return kind
    return {bool: "bool", int: "int", float: "float", str: "str"}.get(type(parameter.default), "Tensor")


def parameters(space: str, name: str, function: Any) -> list[list[tuple[str, str, bool, bool]]]:
    """Return the signatures of a function, as lists of (name, type, whether it has a default, whether only by keyword)."""
    from retrograd.dispatch.signatures import signatures

    known = [each for each in signatures(space, name) if not each.hidden and each.parameters]
    if known:
        return [[(p.name, p.kind, bool(p.default), p.keyword_only) for p in each.parameters] for each in known]
    try:
        found = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return []
    plain = [each for each in found if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    plain = plain[1:] if space == "Tensor" else plain
    return [[(p.name, kind_of(p), p.default is not p.empty, p.kind is p.KEYWORD_ONLY) for p in plain]] if plain else []


def signature_calls(space: str, name: str, function: Any, count: int, rng: random.Random) -> Iterator[str]:
    """Yield calls of a function whose arguments follow one of its signatures, except for one or two."""
    known = parameters(space, name, function)
    for _ in range(count if known else 0):
        tensors = ["m"] if rng.random() < 0.6 else FITTING["Tensor"]
        args, named = ([rng.choice(tensors)] if space == "Tensor" else []), {}
        for key, kind, optional, keyword in rng.choice(known):
            if key == "out" or (optional and rng.random() < 0.6):
                if not keyword and key != "out":
                    break
                continue
            value = rng.choice(tensors if kind == "Tensor" else FITTING.get(kind, ["None"]))
            if keyword or rng.random() < 0.1:
                named[key] = value
            elif not named:
                args.append(value)
        first = int(space == "Tensor")
        for _ in range(rng.choice((1, 1, 1, 2))):
            slots: list[Any] = [*range(first, len(args)), *named]
            choice = rng.random()
            if choice < 0.1 or not slots:
                args.append(rng.choice(JUNK))
            elif choice < 0.15 and len(args) > first:
                args.pop()
            else:
                slot = rng.choice(slots)
                (named if isinstance(slot, str) else args)[slot] = rng.choice(JUNK)  # type: ignore[index]
        yield call_text(space, name, args, named)


def sample_calls(count: int, rng: random.Random, sample: Any) -> Iterator[str]:
    """Yield the call of a sample with one or two arguments replaced."""
    inputs = {}
    for name, array in sample.arrays().items():
        kind, array = str(array.dtype), array if array.dtype.kind == "b" else numpy.round(array, 2)
        inputs[name] = f"torch.tensor({array.tolist()}, dtype=torch.{kind}).reshape({list(array.shape)})"

    class Inputs(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.parse(inputs[node.id], mode="eval").body if node.id in inputs else node

    for _ in range(count):
        try:
            tree = ast.parse(sample.expression.strip(), mode="eval")
        except SyntaxError:
            return
        calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call) and (each.args or each.keywords)]
        if not calls:
            return
        for _ in range(rng.choice((1, 1, 1, 2))):
            call = calls[0]
            junk = ast.parse(rng.choice(JUNK), mode="eval").body
            places = [*range(len(call.args)), *call.keywords]
            if rng.random() < 0.1:
                call.args.append(junk)
            elif places:
                place: Any = rng.choice(places)
                if isinstance(place, int):
                    call.args[place] = junk
                else:
                    place.value = junk
        yield ast.unparse(Inputs().visit(tree))


def functions(ours: Any, theirs: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield (namespace, name, PyTorch's function) of all functions that both engines have."""
    for space, owner in spaces(theirs).items():
        other = spaces(ours)[space]
        for name in sorted(dir(owner)):
            if name.startswith("_") or name in LEFT_OUT:
                continue
            function = getattr(owner, name)
            if callable(function) and not isinstance(function, type) and callable(getattr(other, name, None)):
                yield space, name, function


def work(calls: int, seed: int, names: list[str], with_samples: bool = True) -> Iterator[list[str]]:
    """Yield lists of calls, one list for each function, or for those called ``names``."""
    import torch as oracle

    import retrograd
    from tests.conformance.samples import FAMILIES, samples

    for space, name, function in functions(retrograd, oracle):
        if not names or name in names:
            rng = random.Random(zlib.crc32(f"{space}.{name}.{seed}".encode()))
            yield list(dict.fromkeys(signature_calls(space, name, function, calls, rng)))
    by_op: dict[str, list[Any]] = collections.defaultdict(list)
    for sample in [each for family in FAMILIES for each in samples(family)] if with_samples else ():
        by_op[sample.op].append(sample)
    for op, several in by_op.items():
        if (not names or op in names) and op not in LEFT_OUT:
            rng = random.Random(zlib.crc32(f"{op}.{seed}".encode()))
            each = max(1, calls // len(several))
            yield list(dict.fromkeys([text for one in several[:calls] for text in sample_calls(each, rng, one)]))


# --- Outcomes -------------------------------------------------------------------------------------------------------


def described(value: Any) -> Any:
    """Return a result as data that can be compared between the engines."""
    if hasattr(value, "untyped_storage"):
        value = value.detach().resolve_conj().resolve_neg()
        kind = str(value.dtype).rpartition(".")[2]
        return ["tensor", kind, list(value.shape), value.tolist() if value.numel() < 1000 else None]
    if isinstance(value, (tuple, list)):
        return [described(each) for each in value]
    if isinstance(value, (bool, int, float, complex, str)) or value is None:
        return value
    return type(value).__name__


def close(a: Any, b: Any) -> bool:
    """Whether two results are equal up to rounding."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, (float, complex, int)) and isinstance(b, (float, complex, int)) and type(a) is type(b):
        with contextlib.suppress(OverflowError):
            return bool(numpy.isclose(a, b, rtol=2e-3, atol=2e-4, equal_nan=True)) or a == b
    return bool(a == b)


def outcome(torch: Any, text: str) -> tuple[str, Any, list[str]]:
    """Return ("raises", [type, text], changed arguments) or ("value", data, []) of a call with the engine ``torch``."""
    names = Names(torch)
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(text, {}, names)
            try:
                return "value", described(result), []
            except Exception as error:
                return "value", f"printing raises {type(error).__name__}", []
    except Exception as error:
        return "raises", [type(error).__name__, str(error)], names.changed()


def shown(error: list[str]) -> str:
    """Return the type and the first line of an exception."""
    return f"{error[0]}: {error[1].splitlines()[0][:150] if error[1] else ''}"


#: Differences that ``docs/differences.md`` lists: patterns of (kind, call, description), and reasons.
KNOWN = [
    (r"type\t.*\t.AttributeError: .*, here .TypeError: .* must be Tensor, not ", "PyTorch fails by accident"),
    (r"text\t.*\t.*unrecognized keyword arguments: ", "PyTorch names other keywords, too"),
]


def known(kind: str, call: str, description: str) -> bool:
    """Whether ``docs/differences.md`` lists a difference."""
    return any(re.match(each, f"{kind}\t{call}\t{description}") for each, _ in KNOWN)


def differences(expected: tuple[str, Any, list[str]], found: tuple[str, Any, list[str]]) -> Iterator[tuple[str, str]]:
    """Yield pairs (kind, description) of the differences between PyTorch's outcome and retrograd's."""
    (theirs, answer, _), (ours, result, changed) = expected, found
    if changed:
        yield "changed", f"{', '.join(changed)}, {shown(result)}"
    if theirs == "raises" and (
        (answer[0] == "NotImplementedError" and "Could not run" in answer[1]) or "INTERNAL ASSERT" in answer[1]
    ):
        return
    if theirs != ours:
        yield ("accepted", shown(answer)) if theirs == "raises" else ("refused", shown(result))
    elif theirs == "value":
        if not close(answer, result):
            yield "value", f"{str(answer)[:120]}, here {str(result)[:120]}"
    elif answer[0] != result[0]:
        yield "type", f"{shown(answer)!r}, here {shown(result)!r}"
    elif not result[1].startswith(answer[1].splitlines()[0][:60] if answer[1] else ""):
        yield "text", f"{shown(answer)!r}, here {shown(result)!r}"


def in_child(texts: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, call, description) of the differences, from child processes that make the calls."""
    start, alone = 0, -1  # the number of a call that PyTorch does not survive
    while start < len(texts):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _make_calls(texts, start, alone, writing)
        os.close(writing)
        last, engine = start, "PyTorch"
        with os.fdopen(reading) as pipe:
            for line in pipe:
                if line.startswith("["):
                    yield tuple(json.loads(line))
                else:
                    number, engine = line.split()
                    last = int(number)
        _, status = os.waitpid(child, 0)
        if not status:
            return
        if engine == "PyTorch":
            start = alone = last
        else:
            yield "hang" if os.WTERMSIG(status) == signal.SIGALRM else "crash", texts[last], f"status {status}"
            start = last + 1


def _make_calls(texts: list[str], start: int, alone: int, writing: int) -> None:
    """Make the calls from number ``start`` on, write the differences to a pipe, and end the process."""
    import torch as oracle

    import retrograd

    resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    with os.fdopen(writing, "w") as pipe:

        def run(number: int, name: str, engine: Any) -> Any:
            signal.alarm(SECONDS)
            pipe.write(f"{number} {name}\n")
            pipe.flush()
            return outcome(engine, texts[number])

        for number in range(start, len(texts)):
            try:
                expected = ("raises", ["-", "INTERNAL ASSERT"], [])
                if number != alone:
                    expected = run(number, "PyTorch", oracle)
                found = [*differences(expected, run(number, "retrograd", retrograd))]
            except BaseException as error:
                found = [("crash", repr(error)[:200])]
            for kind, text in found:
                pipe.write(json.dumps([kind, texts[number], text]) + "\n")
    os._exit(0)


# --- The recorded sample ----------------------------------------------------------------------------------------------


def summary(result: tuple[str, Any, list[str]]) -> str:
    """Return an outcome as ``junk_arguments.txt`` has it: the type of the exception, or dtypes and shapes of the result."""

    def form(value: Any) -> str:
        if isinstance(value, list) and len(value) == 4 and value[0] == "tensor":
            return f"{value[1]}{value[2]}".replace(" ", "")
        return f"({','.join(map(form, value))})" if isinstance(value, list) else type(value).__name__

    return str(result[1][0]) if result[0] == "raises" else form(result[1])


def record(count: int, seed: int) -> None:
    """Write ``count`` calls and their outcomes in PyTorch to ``junk_arguments.txt``."""
    import torch as oracle

    each = [text for texts in work(2, seed, [], with_samples=False) for text in texts]
    chosen = sorted(random.Random(seed).sample(each, count))
    lines = []
    for text in chosen:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            signal.alarm(SECONDS)
            os.write(writing, summary(outcome(oracle, text)).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        if answer:
            lines.append(f"{text}\t{answer}\n")
    RECORD.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Make the calls, print the differences that ``--show`` names, and their numbers; or record a sample."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", default="")
    parser.add_argument("--record", type=int, default=0, metavar="N", help="record N calls")
    parser.add_argument("--file", help="a file with calls, one a line, instead of random ones")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    import torch as oracle

    oracle.set_num_threads(1)
    if given.record:
        record(given.record, given.seed)
        return
    counts = collections.Counter({"calls": 0, **dict.fromkeys(KINDS, 0), "known": 0})
    from_file = [Path(given.file).read_text(encoding="utf-8").splitlines()] if given.file else None
    for texts in from_file or work(given.calls, given.seed, given.names):
        counts["calls"] += len(texts)
        for kind, text, description in in_child(texts):
            if known(kind, text, description):
                counts["known"] += 1
                continue
            counts[kind] += 1
            if given.show in (kind, "all"):
                print(f"{kind}\t{text}\n\t{description}", flush=True)
    print(", ".join(f"{kind} {count}" for kind, count in counts.items()))
    sys.exit(0)


if __name__ == "__main__":
    main()
