"""``explain``: the generated programs of a compiled function as text, and the reasons why calls are not compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import compiled_function


class Explanation:
    """Result of :func:`explain`; printing it shows the guards and the programs.

    ``graph_count`` is the number of calls that were recorded and compiled. ``graph_break_count`` is the number of
    recorded calls that could not be compiled, and ``break_reasons`` are the reasons. ``op_count`` is the number of
    operations in the compiled recordings, and ``loops`` the number of fused loops in their programs.
    """

    def __init__(self, held: compiled_function.Compiled) -> None:
        self.name = getattr(held.function, "__name__", type(held.function).__name__)
        self.recordings = [each for each in held.recordings if each.call is not None]
        self.break_reasons = [str(each.reason) for each in held.recordings if each.call is None]
        programs = [each for one in self.recordings for each in (one.forward, one.backward) if each is not None]
        self.graph_count, self.graph_break_count = len(self.recordings), len(self.break_reasons)
        self.ops_per_graph = [[step.op.name for step in each.tape.steps] for each in self.recordings]  # type: ignore[union-attr]
        self.op_count = sum(map(len, self.ops_per_graph))
        self.loops = sum(len(each.loops) for each in programs)

    def __str__(self) -> str:
        lines = [f"{self.name}: {_count(self.graph_count, 'recording')}, {_count(self.op_count, 'operation')}, "
                 f"{_count(self.loops, 'fused loop')}"]  # fmt: skip
        lines += [f"left to the eager library: {each}" for each in self.break_reasons]
        for number, each in enumerate(self.recordings, 1):
            lines += ["", f"# Recording {number}: taken if", *_indented(each.guards.source)]
            for program in (each.forward, each.backward):
                if program is not None:
                    lines += ["", program.source]
                    for loop in program.loops:
                        lines += ["", loop.source]
        return "\n".join(lines)

    __repr__ = __str__


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _indented(text: str) -> list[str]:
    return ["#   " + line.strip() for line in text.splitlines() if line.strip().startswith("if not (")]


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # Note [Any in public signatures]
    """Compile ``function``, call it with ``args`` and ``kwargs``, and return an :class:`Explanation` of its programs.

    ``explain(f)(x)`` is equivalent to ``explain(f, x)``. If ``function`` is already compiled, the explanation includes
    the programs generated for its earlier calls.

    >>> import retrograd as torch
    >>> found = torch.compiler.explain(lambda x: (x * 2).exp())(torch.ones(2))
    >>> found.op_count, found.break_reasons
    (2, [])
    """

    def explained(*args: object, **kwargs: object) -> Explanation:
        held = getattr(function, "_compiled", None)
        called: Any = function
        if held is None and hasattr(function, "_call"):
            held = getattr(function._call, "_compiled", None)
        if held is None:
            called = compiled_function.compiled_form(function, False)
            held = called._compiled
        called(*args, **kwargs)
        return Explanation(held)

    return explained(*args, **kwargs) if args or kwargs else explained
