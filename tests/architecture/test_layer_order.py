"""Import layers: ``core <- kernels <- ops <- autograd <- func <- nn <- optim <- checkpoints <- utils``.

Each layer imports itself and the layers to its left. Imports are read from the sources, not from what is loaded. Other
files and packages (the command line, the import hook, public namespaces such as ``retrograd.linalg``) are above all
layers: they may import every layer, and no layer may import them. An import cycle means that something is in the wrong
layer; an import inside a function does not solve it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import retrograd

PACKAGE = Path(retrograd.__file__).parent
LAYERS = [
    "runtime", "compat", "core", "kernels", "dispatch", "operations", "autograd", "inspection", "func", "profiler", "nn", "optim",
    "compiler", "checkpoints", "utils",
]  # fmt: skip
#: Modules that have PyTorch's path and re-export from a layer further right.
FACES = {
    "autograd/profiler.py", "autograd/profiler_util.py", "nn/modules/sync_batchnorm.py", "nn/parallel/distributed.py",
    "utils/data/distributed.py", "utils/model_zoo.py",
}  # fmt: skip
TOP = len(LAYERS)
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def rank(module: str) -> int:
    """Return the position of a module in the layers; other modules are above all of them."""
    parts = module.split(".")
    return LAYERS.index(parts[1]) if len(parts) > 1 and parts[1] in LAYERS else TOP


def module_of(file: str) -> str:
    parts = ["retrograd", *file.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, file: str) -> Iterator[tuple[int, str, bool]]:
    """Yield every import: its line, the full name of the imported module or object, and whether it is in a function."""
    package = ["retrograd", *file.split("/")[:-1]]

    def names(node: ast.Import | ast.ImportFrom) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        above = package[: len(package) - node.level + 1] if node.level else []
        origin = ".".join([*above, *filter(None, [node.module])])
        return [f"{origin}.{alias.name}" for alias in node.names]

    def walk(node: ast.AST, inside: bool) -> Iterator[tuple[int, str, bool]]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((node.lineno, name, inside) for name in names(node))
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside or function)

    return walk(ast.parse(source), False)


def wrong(source: str, file: str) -> list[str]:
    """Return the imports of a file that break the layers."""
    own = TOP if file in FACES else rank(module_of(file))
    found = []
    for line, name, inside in imports(source, file):
        if name.partition(".")[0] == "torch":
            found.append(f"{file}:{line}: imports {name}")
        if name.partition(".")[0] != "retrograd" or own == TOP:
            continue
        if rank(name) > own:
            found.append(f"{file}:{line}: {LAYERS[own]} may not import {name}")
        if inside:
            found.append(f"{file}:{line}: imports {name} inside a function")
    return found


@pytest.mark.parametrize("file", FILES)
def test_layers_import_only_lower_layers(file: str) -> None:
    assert wrong((PACKAGE / file).read_text(encoding="utf-8"), file) == []


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("operations/a.py", "from ..core.graph import Node\nfrom . import b\nimport numpy", []),
        (
            "core/a.py",
            "from ..operations import table",
            ["core/a.py:1: core may not import retrograd.operations.table"],
        ),
        ("core/a.py", "from retrograd import import_hook", ["core/a.py:1: core may not import retrograd.import_hook"]),
        ("core/a.py", "import retrograd", ["core/a.py:1: core may not import retrograd"]),
        ("nn/b/c.py", "from ... import optim", ["nn/b/c.py:1: nn may not import retrograd.optim"]),
        (
            "operations/a.py",
            "def f():\n    from .b import c",
            ["operations/a.py:2: imports retrograd.operations.b.c inside a function"],
        ),
        ("cli.py", "import retrograd.nn\ndef f():\n    from . import optim", []),
        ("kernels/a.py", "def f():\n    import torch.nn", ["kernels/a.py:2: imports torch.nn"]),
        ("cli.py", "from torch import nn", ["cli.py:1: imports torch.nn"]),
    ],
)
def test_violations_are_reported(file: str, source: str, expected: list[str]) -> None:
    assert wrong(source, file) == expected


#: Those that read instructions: guards of recordings, the ImportError of Note [Missing names in from-imports], and the
#: forms of calls in programs without source text.
READS_INSTRUCTIONS = {"compiler/guards.py", "compat/missing_names.py", "runtime/call_instructions.py"}


@pytest.mark.parametrize("file", [each for each in FILES if each not in READS_INSTRUCTIONS])
def test_nothing_is_decided_by_bytecode(file: str) -> None:
    """Instructions differ between versions of Python."""
    found = []
    for node in ast.walk(ast.parse((PACKAGE / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names if each.name in ("dis", "opcode")]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module for _ in node.names if node.module in ("dis", "opcode")]
        elif isinstance(node, ast.Attribute) and node.attr == "co_code":
            found.append(node.attr)
    assert found == []
