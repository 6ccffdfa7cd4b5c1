"""Check the stubs with mypy and pyright: ``python -m tests.typing.check [mypy] [pyright] [stubtest] [coverage]``.

It writes the stubs to a temporary folder, for ``retrograd`` and for ``torch``, and there also the programs: the examples, the
code blocks of the documentation, the lines of ``reveals.txt`` and those of ``mistakes.txt``. ``.ci/run`` calls it. Further
programs can be named: ``python -m tests.typing.check mypy --program FILE``.

- ``mypy`` and ``pyright`` accept the programs in their strict modes. Functions of programs need no annotations, so the
  options that demand them are off.
- Each ``reveal_type`` in ``reveals.txt`` gives the type that is recorded there.
- Each line of ``mistakes.txt`` is rejected.
- ``stubtest`` compares the stubs with the package at run time; ``allowlist.txt`` names what it reports for a reason.
- ``coverage`` is pyright's share of names with a known type, at least 95 %, and all public ones.
"""

from __future__ import annotations

import argparse
import ast
import doctest
import json
import os
import re
import shutil
import subprocess
import symtable
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from retrograd import stubs
from retrograd.stubs import names
from tests import ROOT
from tests.architecture.markdown_pages import PAGES, blocks
from tests.typing import reveals

HERE = Path(__file__).parent
#: Third-party packages of programs that ship no types.
UNTYPED = "matplotlib.*,mpl_toolkits.*,sklearn.*,tqdm.*,scipy.*,safetensors.*,threadpoolctl,numba.*,cupy.*,pytest.*"
MYPY = """\
[mypy]
strict = true
python_version = {version}
allow_untyped_defs = true
allow_untyped_calls = true
allow_incomplete_defs = true
check_untyped_defs = true
allow_redefinition = true
implicit_reexport = true
warn_return_any = false
[mypy-{untyped}]
ignore_missing_imports = true
follow_imports = skip
"""
#: Rules of pyright's strict mode that demand annotations, or stubs of other packages.
NOT_DEMANDED = (
    "reportMissingParameterType", "reportUnknownParameterType", "reportUnknownArgumentType", "reportUnknownVariableType",
    "reportUnknownMemberType", "reportUnknownLambdaType", "reportMissingTypeStubs", "reportMissingModuleSource",
    "reportMissingTypeArgs", "reportUntypedFunctionDecorator", "reportUnusedExpression", "reportMissingImports",
    "reportUnusedImport", "reportUnusedVariable", "reportPossiblyUnboundVariable", "reportDuplicateImport",
)  # fmt: skip


def write_stubs(folder: Path) -> None:
    """Write the stubs as ``retrograd`` and as ``torch``."""
    for package in ("retrograd", "torch"):
        stubs.write(folder, package)


# -- Programs


def parts_of_page(page: Path) -> list[str]:
    """Return the code blocks of a page of the documentation, without the output that they show."""
    parts = []
    for block in blocks(page):
        if ">>>" in block.text:
            examples = doctest.DocTestParser().get_examples(block.text)
            parts.append("".join(each.source for each in examples if not each.exc_msg))
        else:
            parts.append(block.text)
    return parts


def write_parts(folder: Path, name: str, parts: list[str]) -> None:
    """Write each part of a program as a module, which imports the names that it uses from the parts before it.

    A name may mean another thing in a later part, as it may in a notebook.
    """
    statements: dict[str, str] = {}  # that bind a name
    for number, text in enumerate(parts):
        module, tree = f"{name}_{number}", ast.parse(text)
        needed = [statements[each] for each in read_first(text, tree) if each in statements]
        imports = "".join(f"{each}\n" for each in dict.fromkeys(needed))
        (folder / f"{module}.py").write_text(imports + text, encoding="utf-8")
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for each in node.names:
                    one = (
                        ast.Import([each])
                        if isinstance(node, ast.Import)
                        else ast.ImportFrom(node.module, [each], node.level)
                    )
                    statements[each.asname or each.name] = ast.unparse(one)
        top = symtable.symtable(text, module, "exec").get_symbols()
        for symbol in top:
            if symbol.is_assigned() and not symbol.is_imported():
                statements[symbol.get_name()] = f"from {module} import {symbol.get_name()}"


def read_first(text: str, tree: ast.Module) -> list[str]:
    """Return the names that a part reads before it binds them, or without binding them."""
    read: set[str] = set()

    def visit(table: symtable.SymbolTable) -> None:
        for each in table.get_symbols():
            if each.is_referenced() and (table.get_type() == "module" or each.is_global()):
                read.add(each.get_name())
        for each in table.get_children():
            visit(each)

    top = symtable.symtable(text, "part", "exec")
    visit(top)
    bound = {each.get_name() for each in top.get_symbols() if each.is_assigned() or each.is_imported()}
    first: dict[str, bool] = {}
    for node in tree.body:
        for each in evaluated(node):
            if isinstance(each, ast.Name):
                first.setdefault(each.id, isinstance(each.ctx, ast.Load))
            elif isinstance(each, ast.FunctionDef | ast.ClassDef):
                first.setdefault(each.name, False)
    return sorted((read - bound) | {each for each in read & bound if first.get(each)})


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement in the order of evaluation, without the bodies of functions."""
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.For):
        last = [node.value] if not isinstance(node, ast.For) else [node.iter]
        children = [each for each in children if each in last] + [each for each in children if each not in last]
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield ast.Name(node.target.id, ast.Load())
    elif isinstance(node, ast.FunctionDef | ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
        children = []
    for each in children:
        yield from evaluated(each)
    yield node


def write_programs(folder: Path, more: list[str]) -> None:
    """Write the examples and the blocks of the pages below a folder, and further programs."""
    for path in sorted((ROOT / "examples").glob("*.py")):
        (folder / f"example_{path.name}").write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    for page in PAGES:
        write_parts(folder, "page_" + re.sub(r"\W", "_", page.stem.lower()), parts_of_page(page))
    for path in map(Path, more):
        write_parts(folder, path.stem, re.split(r"^# %%.*\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE))


# -- Checkers


def run_mypy(folder: Path, *arguments: str) -> list[tuple[str, int, str]]:
    """Return what mypy reports about the files in a folder: file, line, text."""
    config = folder.parent / "mypy.ini"
    version = "{}.{}".format(*sys.version_info)
    config.write_text(MYPY.format(untyped=UNTYPED, version=version), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir", str(folder.parent / "cache")]
    environment = {**os.environ, "MYPYPATH": f"{folder.parent / 'stubs'}{os.pathsep}{folder}"}
    done = subprocess.run(
        [*command, "--no-error-summary", "--show-absolute-path", *arguments, *map(str, sorted(folder.glob("*.py")))],
        capture_output=True, encoding="utf-8", env=environment, cwd=folder.parent,
    )  # fmt: skip
    if done.stderr or done.returncode > 1:
        raise RuntimeError(done.stderr + done.stdout[-3000:])
    found = re.findall(r"^(.*?):(\d+): (.*)$", done.stdout, re.MULTILINE)
    return [(Path(file).name, int(line), text) for file, line, text in found]


def run_pyright(folder: Path, *arguments: str) -> list[tuple[str, int, str]]:
    """Return what pyright reports about the files in a folder: file, line, text."""
    config = {
        "include": [folder.name], "extraPaths": ["stubs", folder.name], "typeCheckingMode": "strict",
        "pythonVersion": "{}.{}".format(*sys.version_info), **dict.fromkeys(NOT_DEMANDED, False),
    }  # fmt: skip
    (folder.parent / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *arguments]
    done = subprocess.run([*command, "-p", str(folder.parent)], capture_output=True, encoding="utf-8")
    try:
        report = json.loads(done.stdout)["generalDiagnostics"]
    except (ValueError, KeyError):
        raise RuntimeError(done.stderr + done.stdout[-3000:]) from None
    return [
        (
            Path(each["file"]).name,
            each["range"]["start"]["line"] + 1,
            f"{each['severity']}: {each['message']}  [{each.get('rule', '')}]",
        )
        for each in report
    ]


def check_programs(folder: Path, run: str, more: list[str]) -> list[str]:
    """Return what a checker reports about the programs."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    write_programs(programs, more)
    found = RUN[run](programs)
    lines = {path.name: path.read_text(encoding="utf-8").splitlines() for path in programs.iterdir()}
    return [
        f"{file}:{line}: {text}\n    {lines[file][line - 1].strip() if file in lines else ''}"
        for file, line, text in found
        if "error:" in text and not any(re.search(each, lines.get(file, [""] * line)[line - 1]) for each in UNDERSTOOD)
    ]


def check_reveals(folder: Path) -> list[str]:
    """Return the expressions of ``reveals.txt`` whose type is not the one that is recorded."""
    programs = folder / "reveals"
    programs.mkdir(exist_ok=True)
    known = reveals.rows()
    (programs / "revealed.py").write_text(reveals.program([each[0] for each in known]), encoding="utf-8")
    types = reveals.revealed([(line, text) for _, line, text in run_mypy(programs)])
    start = reveals.PREAMBLE.count("\n") + 1
    found = [(each, types.get(start + number, "error")) for number, each in enumerate(known)]
    return [reveals.SEPARATOR.join([*each[:2], kind]) for each, kind in found if kind != each[-1]]


def check_mistakes(folder: Path) -> list[str]:
    """Return the lines of ``mistakes.txt`` that a checker accepts."""
    programs = folder / "mistakes"
    programs.mkdir(exist_ok=True)
    text = (HERE / "mistakes.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and line[0] != "#"]
    (programs / "wrong.py").write_text(reveals.PREAMBLE + "\n".join(lines) + "\n", encoding="utf-8")
    start = reveals.PREAMBLE.count("\n") + 1
    failed = []
    for name, checker in RUN.items():
        rejected = {line for _, line, message in checker(programs) if "error:" in message}
        failed += [f"{name} accepts: {line}" for number, line in enumerate(lines) if start + number not in rejected]
        failed += [f"{name} rejects line {line} of the preamble" for line in sorted(rejected) if line < start]
    return failed


def public_module(name: str) -> str:
    """Return the public module that a full name belongs to, or an empty text for one of an internal module."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        module = ".".join(parts[:count])
        if module in names.modules():
            return module
        if (ROOT / "src" / Path(*parts[:count])).with_suffix(".py").exists():
            return ""
        if (ROOT / "src" / Path(*parts[:count])).is_dir():
            return ""
    return ""


def check_stubtest(folder: Path) -> list[str]:
    """Return what stubtest reports about public modules and ``allowlist.txt`` does not explain."""
    config = folder / "stubtest.ini"
    config.write_text("[mypy]\n", encoding="utf-8")
    environment = {
        **os.environ,
        "MYPYPATH": str(folder / "stubs"),
        "PYTHONPATH": f"{ROOT / 'src'}",
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", "--ignore-missing-stub", "--ignore-positional-only"]
    done = subprocess.run(
        [*command, "--mypy-config-file", str(config), "retrograd"],
        capture_output=True, encoding="utf-8", env=environment, cwd=folder,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("retrograd")]
    if not lines:
        return [done.stdout[-2000:] + done.stderr[-2000:]]
    text = (HERE / "allowlist.txt").read_text(encoding="utf-8")
    allowed = [re.compile(line) for line in text.splitlines() if line and line[0] != "#"]
    found = [line for line in lines if public_module(line.split(" ")[0])]
    return [line for line in found if not any(each.fullmatch(line) for each in allowed)]


def check_coverage(folder: Path) -> list[str]:
    """Return the names without a known type, if they are more than a twentieth of all (pyright --verifytypes).

    Pyright counts the names of every module, internal ones too, in the form that the wheel has: stubs beside sources.
    Types of other packages are not judged: NumPy's ``dtype`` has methods with ``numbers.Complex`` of the standard
    library, whose methods pyright's own stubs leave without types.
    """
    installed = folder / "installed"
    shutil.copytree(ROOT / "src" / "retrograd", installed / "retrograd", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(folder / "stubs" / "retrograd", installed / "retrograd", dirs_exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--ignoreexternal", "--verifytypes", "retrograd",
         "--pythonpath", sys.executable],
        capture_output=True, encoding="utf-8", cwd=folder, env={**os.environ, "PYTHONPATH": str(installed)},
    )  # fmt: skip
    try:
        symbols = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    except (ValueError, KeyError):
        return [done.stdout[-2000:] + done.stderr[-2000:]]
    every = [each for each in symbols if each["isExported"]]
    unknown = [each["name"] for each in every if not each["isTypeKnown"] or each["isTypeAmbiguous"]]
    public = [each for each in unknown if public_module(each)]
    count = sum(bool(public_module(each["name"])) for each in every)
    print(f"types of {len(every) - len(unknown)} of {len(every)} names are known, "
          f"of {count - len(public)} of {count} public ones")  # fmt: skip
    return [*public, *(unknown if len(unknown) * 20 > len(every) else [])] if every else ["no names"]


#: Lines of programs that a checker rejects and that show what they are meant to show.
UNDERSTOOD = (
    r"\.op\.source",  # an attribute for readers of the implementation
    r"no_grad is torch\.no_grad",  # of two packages with the same stubs
    r"\(way \+ way\)\.unit",  # the operators of a subclass return a Tensor, as PyTorch's stubs say
    r"-= 0\.5 \* (slope|start)\.grad$",  # pyright: after `x.grad, y.grad = None, None` in a loop, a gradient may be None
    r"^torch\.stack\(rows\)$",  # mypy: after `x.grad = None`, a gradient is None
    r"\[0\]\.weight\.placements",  # a parameter is a DTensor after fully_shard
    r"load_digits\(\)\.data|digits\.(images|target)",  # pyright reads the sources of scikit-learn
)
RUN = {"mypy": run_mypy, "pyright": run_pyright}
CHECKS = {
    "reveals": check_reveals, "mistakes": check_mistakes, "stubtest": check_stubtest, "coverage": check_coverage,
}  # fmt: skip


def main() -> int:
    """Run the checks that are named, by default all; return 1 if one fails."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("checks", nargs="*", default=["mypy", "pyright", *CHECKS])
    options.add_argument("--program", action="append", default=[])
    options.add_argument("--keep", help="folder for the files, which is kept")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(chosen.keep or temporary)
        write_stubs(folder / "stubs")
        failed = []
        for each in chosen.checks:
            failed += CHECKS[each](folder) if each in CHECKS else check_programs(folder, each, chosen.program)
        print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
