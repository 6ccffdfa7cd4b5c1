"""Mutants of the backward engine and the views, judged by tests.

pytest collects the tests once. For each mutant a forked process exchanges the code of one function and runs the tests
that execute the changed lines, the fastest first, until one fails. Which tests these are is traced before, in another
forked process. A mutant that no test executes survives; one that takes more than :data:`SECONDS` is killed.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from functools import cache
from itertools import accumulate
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import pytest

import retrograd
from tests.mutation.changes import Change, changes
from tests.mutation.functions import Tree, compiled, exchanged, tree_of

ROOT = Path(__file__).resolve().parents[2]
CORE = ("engine", "graph", "accumulate", "gradients", "hooks", "saved_tensor_hooks", "views")
TESTS = (
    "tests/unit/test_backward.py", "tests/unit/test_graph.py", "tests/unit/test_inplace.py",
    "tests/unit/test_grad_mode.py", "tests/unit/test_anomaly.py", "tests/unit/test_autograd_function.py",
    "tests/unit/test_error_context.py", "tests/unit/test_memory.py", "tests/unit/test_explain.py",
    "tests/conformance/test_functional.py", "tests/conformance/test_autograd_functional.py",
    "tests/conformance/test_modules.py", "tests/scenarios", "tests/fuzz/test_programs.py",
    "tests/unit/test_intercept.py", "tests/unit/test_threads.py",
)  # fmt: skip
SECONDS = 10.0  # for one test
SLOWEST = 10.0  # tests that take longer are left out
BUDGET = 60.0  # seconds of tests for one mutant


class Mutant(NamedTuple):
    """A changed function of a module."""

    module: str
    function: FunctionType
    tree: Tree
    change: Change
    name: str

    @property
    def key(self) -> str:
        return f"{self.module}.{self.name} | {self.change.key}"

    def lines(self) -> list[int]:
        """Return the changed lines, or those that read the constant that the changed function computes."""
        found: list[Any] = [self.change.node]
        if self.name in constants(self.module):
            names = constants(self.module)[self.name]
            found = [each for each in ast.walk(_tree(self.module)) if isinstance(each, ast.Name) and each.id in names]
        return [line for node in found for line in range(node.lineno, node.end_lineno + 1)]


def _module(name: str) -> Any:
    return importlib.import_module(f"{retrograd.__name__}.core.{name}")


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(Path(_module(module).__file__).read_text(encoding="utf-8"))


@cache
def constants(module: str) -> dict[str, dict[str, ast.expr]]:
    """Return by function the constants of a module that are the result of a call of it on import."""
    found: dict[str, dict[str, ast.expr]] = {}
    names = {each.name for each in _tree(module).body if isinstance(each, ast.FunctionDef)}
    for node in _tree(module).body:
        called = getattr(getattr(getattr(node, "value", None), "func", None), "id", None)
        if isinstance(node, ast.Assign) and called in names and isinstance(node.targets[0], ast.Name):
            found.setdefault(called, {})[node.targets[0].id] = node.value
    return found


def mutants() -> list[Mutant]:
    """Return all mutants of the modules of :data:`CORE`."""
    made = []
    for module in CORE:
        for name, function in _functions(_module(module), _tree(module)):
            tree = tree_of(function.__code__)
            assert tree is not None, name
            made += [Mutant(module, function, tree, change, name) for change in changes(tree, statements=True)]
    return made


def _functions(module: Any, tree: ast.Module) -> list[tuple[str, FunctionType]]:
    """Return the functions and methods that a module defines, with their qualified names."""
    found: list[tuple[str, FunctionType]] = []

    def add(name: str, value: Any) -> None:
        for each in (value, *(getattr(value, part, None) for part in ("fget", "fset", "fdel", "__func__"))):
            function = getattr(each, "__wrapped__", each)
            own = isinstance(function, FunctionType) and function.__code__.co_filename == module.__file__
            if own and all(function is not other for _, other in found):
                found.append((name, function))

    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            add(node.name, vars(module).get(node.name))
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    add(f"{node.name}.{inner.name}", vars(vars(module)[node.name]).get(inner.name))
    return found


# --- The judge ------------------------------------------------------------------------------------------------------


class Judge:
    """A plugin of pytest that runs the collected tests for each mutant, instead of once."""

    def __init__(self, chosen: list[Mutant], report: Any) -> None:
        self.chosen, self.report = chosen, report
        self.failed = False
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: Any) -> bool:
        items = {item.nodeid: item for item in session.items}
        lines, seconds = self._trace(items)
        for mutant in self.chosen:
            spots = {(mutant.module, line) for line in mutant.lines()}
            names = [name for name, found in lines.items() if not spots.isdisjoint(found)]
            names = _within_budget(sorted(names, key=lambda name: seconds[name]), seconds)
            began = time.perf_counter()
            outcome = "not executed" if not names else self._judge(mutant, [items[name] for name in names])
            self.outcomes[mutant.key] = outcome
            self.report(mutant, outcome, time.perf_counter() - began)
        return True

    def _trace(self, items: dict[str, Any]) -> tuple[dict[str, set[tuple[str, int]]], dict[str, float]]:
        """Return for each test the lines of the modules that it executes, and the seconds that it takes."""
        files = {str(ROOT / "src" / "retrograd" / "core" / f"{each}.py"): each for each in CORE}

        def run() -> Any:
            found: dict[str, Any] = {}
            reached: set[tuple[str, int]] = set()

            def trace(frame: Any, event: str, _: object) -> Any:
                module = files.get(frame.f_code.co_filename)
                if module is None:
                    return None

                def line(frame: Any, event: str, _: object) -> Any:
                    reached.add((module, frame.f_lineno))
                    return line

                return line

            for name, item in items.items():
                reached.clear()
                began = time.perf_counter()
                sys.settrace(trace)
                try:
                    failed = self._run(item, 0.0)
                finally:
                    sys.settrace(None)
                if not failed:
                    found[name] = (sorted(reached), time.perf_counter() - began)
            return found

        found = json.loads(_in_fork(run) or "{}")
        found = {name: each for name, each in found.items() if each[1] <= SLOWEST}
        lines = {name: {(module, line) for module, line in each[0]} for name, each in found.items()}
        return lines, {name: each[1] for name, each in found.items()}

    def _judge(self, mutant: Mutant, items: list[Any]) -> str:
        mutant.change.make()
        try:
            code = compiled(mutant.tree, mutant.function.__code__)
        finally:
            mutant.change.undo()

        def run() -> Any:
            with exchanged([mutant.function], code):
                for name, value in constants(mutant.module).get(mutant.name, {}).items():
                    space = vars(_module(mutant.module))
                    space[name] = eval(compile(ast.Expression(value), mutant.module, "eval"), space)
                return next((item.nodeid for item in items if self._run(item)), "")

        answer = _in_fork(run)
        return "killed by the end of the process" if answer is None else json.loads(answer) or "survived"

    def _run(self, item: Any, seconds: float = SECONDS) -> bool:
        """Return whether a test fails. If it takes longer than ``seconds``, a signal ends the process (0: never)."""
        self.failed = False
        signal.setitimer(signal.ITIMER_REAL, seconds)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return self.failed


def _within_budget(names: list[str], seconds: dict[str, float]) -> list[str]:
    """Return the first of ``names`` that take at most :data:`BUDGET` seconds together."""
    ends = accumulate(seconds[name] for name in names)
    return [name for name, end in zip(names, ends, strict=True) if end <= BUDGET]


def _in_fork(run: Any) -> str | None:
    """Return the result of ``run()`` in a forked process as JSON, or None if that process fails or is ended."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        os.close(reader)
        status = 1
        try:
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            with os.fdopen(writer, "w") as out:
                out.write(json.dumps(run()))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    _, status = os.waitpid(process, 0)
    return text if status == 0 else None


def run(count: int, seed: int, only: str = "") -> int:
    """Judge ``count`` random mutants, print those that survive and a summary; return the number of survivors."""
    made = [each for each in mutants() if only in each.key]
    chosen = random.Random(seed).sample(made, min(count, len(made))) if count else made

    def report(mutant: Mutant, outcome: str, seconds: float) -> None:
        if outcome in ("survived", "not executed"):
            print(f"{outcome}: {mutant.key} (line {mutant.change.node.lineno}, {seconds:.1f} s)", flush=True)  # type: ignore[attr-defined]

    judge = Judge(chosen, report)
    pytest.main(
        ["-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:xdist", *TESTS], plugins=[judge]
    )
    outcomes = Counter(
        "survived" if each in ("survived", "not executed") else "killed" for each in judge.outcomes.values()
    )
    print(f"{len(made)} mutants, of which {len(chosen)} were judged: {outcomes}")
    return outcomes["survived"]
