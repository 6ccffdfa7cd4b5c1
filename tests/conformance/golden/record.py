"""Record PyTorch's answers: ``python -m tests.conformance.golden.record [--check] NAME …`` (needs PyTorch 2.13).

Each recorder below writes ``NAME.json``; without names all are listed. ``--check`` writes nothing and reports whether the
stored file is what PyTorch answers now. Recorders that need more than a few lines are scripts of their own beside this one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
import torch
import torch.overrides
import torch.profiler
import torch.utils.checkpoint

from retrograd.amp import autocast_mode
from tests import ROOT, scenarios, transcripts
from tests.conformance import (
    autocast_cases,
    autograd_functional_cases,
    data_cases,
    distribution_cases,
    functional_cases,
    fx_cases,
    layer_cases,
    linalg_cases,
    lr_scheduler_cases,
    masked_cases,
    missing_derivative_cases,
    module_cases,
    nested_cases,
    operation_error_cases,
    optimizer_cases,
    printing_cases,
    profiler_cases,
    promotion_cases,
    random_cases,
    shape_cases,
    sparse_cases,
    transform_cases,
)
from tests.conformance.golden import GOLDEN
from tests.distributed import program_starts
from tests.fuzz import files, index_expressions
from tests.fuzz.programs import execution
from tests.fuzz.programs.grammars import GRAMMARS, RECORDED

Sections = dict[str, Any]
#: For each file the function that returns its text.
RECORDERS: dict[str, Callable[[], str]] = {}
compact = partial(json.dumps, separators=(",", ":"))


def lines(value: Any, depth: int, dumps: Callable[[Any], str]) -> str:
    """Return JSON with a line for each item of the outer ``depth`` levels of dictionaries and lists."""
    if not depth or not value:
        return dumps(value)
    if isinstance(value, dict):
        items = (f"{json.dumps(key)}: {lines(each, depth - 1, dumps)}" for key, each in value.items())
        return "{\n" + ",\n".join(items) + "\n}"
    return "[\n" + ",\n".join(lines(each, depth - 1, dumps) for each in value) + "\n]"


def lined(sections: Sections, depth: int = 1, dumps: Callable[[Any], str] = json.dumps) -> str:
    """Return the text of a file with a line for each item of its sections."""
    parts = [f"{json.dumps(key)}: {lines(value, depth, dumps)}" for key, value in sections.items()]
    head = f'{{"torch": {json.dumps(torch.__version__)},'
    return f"{head} {parts[0]}}}\n" if len(parts) == 1 else f"{head}\n" + ",\n".join(parts) + "\n}\n"


def indented(sections: Sections) -> str:
    """Return the text of a file with a line for every item of every section."""
    return json.dumps({"torch": torch.__version__, **sections}, indent=0) + "\n"


def recorder(
    name: str, layout: Callable[..., str] = lined, **options: Any
) -> Callable[[Callable[[], Sections]], Callable[[], Sections]]:
    """Register a function that returns the sections of ``NAME.json``."""

    def register(function: Callable[[], Sections]) -> Callable[[], Sections]:
        RECORDERS[name] = lambda: layout(function(), **options)
        return function

    return register


@recorder("amp")
def amp() -> Sections:
    """The dtypes of results within ``autocast``."""
    warnings.simplefilter("ignore")
    lists = (
        autocast_mode.LOWER,
        autocast_mode.FULL,
        autocast_mode.WIDEST,
        autocast_mode.AS_IT_IS,
        autocast_mode.AS_THE_FIRST,
    )
    kinds = ("float32", "bfloat16", "float64")
    return {
        "dtypes": {
            key: {kind: autocast_cases.result_dtypes(torch, sample, kind, "bfloat16") for kind in kinds}
            for key, sample in autocast_cases.affected_samples(set(" ".join(lists).split()))
        }
    }


@recorder("autograd_functional")
def autograd_functional() -> Sections:
    """Results and errors of ``torch.autograd.functional``."""
    answers: dict[str, list[str]] = {}
    for call in autograd_functional_cases.calls():
        answers.setdefault(autograd_functional_cases.answer(torch, call), []).append(call)
    return {"answers": answers}


@recorder("sparse")
def sparse() -> Sections:
    """Sparse tensors: calls with their gradients, constructors, and random tensors."""
    return {
        "calls": {call: sparse_cases.answer(torch, call) for call in sparse_cases.CALLS_LIST},
        "creation": {call: sparse_cases.created(torch, call) for call in sparse_cases.CREATION_LIST},
        "random": [sparse_cases.run_program(torch, seed) for seed in range(sparse_cases.COUNT)],
        "training": {
            f"{optimizer} {table}": sparse_cases.train(torch, optimizer, table)
            for optimizer in sparse_cases.split(sparse_cases.OPTIMIZERS)
            for table in sparse_cases.TABLES
        },
    }


@recorder("masked")
def masked() -> Sections:
    """``torch.masked``: functions with a mask, and masked tensors, with their gradients."""
    calls = (*masked_cases.FUNCTIONS, *masked_cases.CALLS_LIST)
    return {"calls": {call: masked_cases.answer(torch, call) for call in calls}}


@recorder("nested")
def nested() -> Sections:
    """``torch.nested``: functions of nested tensors, with their components and gradients."""
    return {"calls": {call: nested_cases.answer(torch, call) for call in nested_cases.CALLS_LIST}}


@recorder("fx")
def fx() -> Sections:
    """Programs traced with ``torch.fx``, and sessions that change graphs."""
    return {
        "programs": {name: fx_cases.traced(torch, name) for name in fx_cases.PROGRAMS},
        "refused": {program: fx_cases.refusal(torch, program) for program in fx_cases.REFUSED},
        "sessions": {name: fx_cases.session(torch, name) for name in fx_cases.SESSIONS},
        "layers": {case: fx_cases.layer(torch, case) for case in fx_cases.LAYERS},
        "names": fx_cases.qualified_names(torch, torch.fx.node._get_qualified_name),
    }


@recorder("data")
def data() -> Sections:
    """Data sets, samplers and loaders."""
    return {"answers": {call: data_cases.answer(torch, call) for call in data_cases.CALLS}}


@recorder("distributions")
def distributions() -> Sections:
    """Results, divergences and sessions of ``torch.distributions``, with eleven digits."""
    torch.set_num_threads(1)
    cases = {
        distribution_cases.title(each): distribution_cases.answers(torch, each) for each in distribution_cases.CASES
    }
    pairs = {" to ".join(each): distribution_cases.divergence(torch, each) for each in distribution_cases.PAIRS}
    sessions = module_cases.programs(distribution_cases.SOURCE).items()
    shown = {topic: module_cases.shown(torch, statements) for topic, statements in sessions}
    return _rounded({"cases": cases, "pairs": pairs, "shown": shown}, 11)


def _rounded(value: Any, digits: int) -> Any:
    """Round every float to that many significant digits."""
    if isinstance(value, dict):
        return {key: _rounded(each, digits) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(each, digits) for each in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


@recorder("functional")
def functional() -> Sections:
    """Errors and warnings of ``torch.nn.functional``."""
    return {"calls": {call: functional_cases.outcome(torch, call) for call in functional_cases.CALLS}}


@recorder("indexing", dumps=compact)
def indexing() -> Sections:
    """Random index expressions."""
    return {"answers": [index_expressions.answer(torch, each) for each in index_expressions.programs(500)]}


@recorder("layers", dumps=compact)
def layers() -> Sections:
    """Layers: text, state, results, nodes and gradients."""
    torch.set_num_threads(1)
    return {
        "layers": {
            f"{each.expression} {each.call}": layer_cases.observe_layer(torch, each) for each in layer_cases.LAYERS
        }
    }


@recorder("linalg")
def linalg() -> Sections:
    """Results and errors of linear algebra."""
    calls = (*linalg_cases.CALLS, *linalg_cases.EMPTY)
    return {"answers": {call: linalg_cases.answer(torch, call) for call in calls}}


@recorder("lr_schedulers")
def lr_schedulers() -> Sections:
    """Learning rates and states over 22 epochs, and errors."""
    cases = lr_scheduler_cases
    return {
        "runs": {call: cases.schedule_run(torch, call) for call in (*cases.SCHEDULES, *cases.LED)},
        "errors": {call: cases.error_of(torch, call) for call in cases.FAILING},
    }


@recorder("missing_derivatives", indented)
def missing_derivatives() -> Sections:
    """The errors of derivatives that PyTorch does not implement; an empty one is no gap any more."""
    warnings.simplefilter("ignore")
    said = {}
    for gap in missing_derivative_cases.GAPS:
        for kind in gap.kinds.split():
            torch.manual_seed(0)
            said[f"{kind}: {gap.expression}"] = text = missing_derivative_cases.error_of(torch, gap, kind)
            if not text:
                print(f"PyTorch now has a derivative: {kind}: {gap.expression}")
    return {"said": said}


@recorder("modules", depth=2)
def modules() -> Sections:
    """Sessions with modules, containers, hooks and states."""
    torch.set_num_threads(1)
    return {"shown": {topic: module_cases.shown(torch, each) for topic, each in module_cases.programs().items()}}


@recorder("operation_errors", indented)
def operation_errors() -> Sections:
    """Errors of operations, by family."""
    cases = operation_error_cases
    found = {each: {call: cases.error_of(torch, call) for call in cases.calls(each)} for each in cases.FAMILIES}
    return {"errors": found}


@recorder("optim")
def optim() -> Sections:
    """Training runs of a hundred steps, and errors."""
    return {
        "runs": {call: optimizer_cases.training_run(torch, call) for call in optimizer_cases.OPTIMISERS},
        "errors": {call: optimizer_cases.error_of(torch, call) for call in optimizer_cases.FAILING},
    }


@recorder("printing", indented)
def printing() -> Sections:
    """The text of tensors, made by expressions in NumPy."""
    texts = []
    for expression, dtype, options, extra in printing_cases.CASES:
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        tensor = torch.tensor(numpy.asarray(printing_cases.array_of(expression))).to(getattr(torch, dtype))
        if extra == "requires_grad":
            tensor.requires_grad_()
        elif extra == "grad_fn":
            tensor = tensor.requires_grad_() * 1
        texts.append(repr(tensor))
    return {"texts": texts}


@recorder("profiler")
def profiler() -> Sections:
    """Profiled programs, tables, schedules and errors of the profiler."""
    cases = profiler_cases
    return {
        "programs": {name: cases.outline_of_program(torch, program) for name, program in cases.PROGRAMS.items()},
        "shown": {call: [cases.shown(torch, call, *options) for options in cases.OPTIONS] for call in cases.SHOWN},
        "schedules": {each: cases.schedule_run(torch, each) for each in (*cases.SCHEDULES, *cases.OWN)},
        "mistakes": {call: cases.error_of(torch, call) for call in cases.MISTAKES},
    }


@recorder("promotion", lined, depth=0)
def promotion() -> Sections:
    """The dtypes of operators between all dtypes."""
    answers = [promotion_cases.answer(torch, each).removeprefix("torch.") for each in promotion_cases.EXPRESSIONS]
    return {"answers": answers}


@recorder("random")
def random() -> Sections:
    """Random numbers for seeds, with nine digits."""
    return {"rows": [[float(f"{each:.9g}") for each in row] for row in random_cases.draw(torch)]}


@recorder("shapes", dumps=compact)
def shapes() -> Sections:
    """Shapes, strides, views and errors of what shapes and joins."""
    return {"answers": [shape_cases.answer(torch, each) for each in shape_cases.EXPRESSIONS]}


def _scenarios(family: str) -> Sections:
    """Run the scenarios of a family."""
    with warnings.catch_warnings():  # PyTorch's own, at the first tangents
        warnings.simplefilter("ignore")
        with torch.autograd.forward_ad.dual_level():
            torch.autograd.forward_ad.make_dual(torch.ones(1), torch.ones(1)).sin()
    return {
        "scenarios": {name: scenarios.run_scenario(torch, each) for name, each in scenarios.scenarios(family).items()}
    }


for _family in scenarios.FAMILIES:
    recorder(f"scenarios_{_family}")(partial(_scenarios, _family))


@recorder("transcripts", depth=2)
def sessions() -> Sections:
    """Return what the lines of the transcripts show."""
    return {"answers": {topic: transcripts.answers(torch, topic) for topic in transcripts.TOPICS}}


@recorder(
    "transforms",
    lambda found: "{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(found[key])}" for key in found) + "\n}\n",
)
def transforms() -> Sections:
    """Evaluate the expressions of ``torch.func``."""
    warnings.simplefilter("ignore")
    return {each: transform_cases.outcome(torch, each) for each in transform_cases.EXPRESSIONS}


@recorder("mutated_files", dumps=compact)
def mutated_files() -> Sections:
    """Load mutated checkpoints, and record the digests of the loaded objects."""
    return {
        kind: [
            ("error: Unsupported operand" if "Unsupported operand" in line else "error:")
            if files.is_error(line)
            else line
            for line in files.answers("pytorch", kind, iter(range(files.COUNTS[kind])))
        ]
        for kind in ("zip", "legacy")
    }


@recorder("random_programs", dumps=compact)
def random_programs() -> Sections:
    """Run random programs of the grammars of views, hooks and transforms."""
    return {
        name: [execution.round_observation(execution.run(torch, GRAMMARS[name](seed))) for seed in range(count)]
        for name, count in RECORDED.items()
    }


def typical_programs() -> str:
    """Return what the programs of ``tests/programs/typical`` print, as the text of the file."""
    command = [sys.executable, "-X", "utf8", str(ROOT / "tests/programs/typical")]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


RECORDERS["typical_programs"] = typical_programs
RECORDERS["distributed_programs"] = program_starts.record


def record(name: str, check: bool) -> bool:
    """Write one file, or compare it with what is stored; return whether it has changed."""
    path, text = GOLDEN / f"{name}.json", RECORDERS[name]()
    changed = not path.exists() or path.read_text(encoding="utf-8") != text
    if not check:
        path.write_text(text, encoding="utf-8")
    print(f"{path.name}: {len(text) // 1024} KB, {'changed' if changed else 'as it was'}", flush=True)
    return changed


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    names = [each for each in arguments if each != "--check"]
    if not names or set(names) - RECORDERS.keys():
        print(__doc__, *sorted(RECORDERS), sep="\n")
        return 2
    if len(names) == 1:
        return record(names[0], check) and check
    # A process each: recorders change settings of PyTorch.
    options = ["--check"] * check
    return max(subprocess.call([sys.executable, "-m", __spec__.name, *options, name]) for name in names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
