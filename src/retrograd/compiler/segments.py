"""Segments: a path of entries as a program that computes those of its results that are still referred to.

The straight-line function of a path consists of the calls of its entries. ``segment_program`` compiles it. Results that
share memory with an operand are computed by their ordinary operations after the program has run.
"""

from __future__ import annotations

from operator import attrgetter, itemgetter, methodcaller
from typing import TYPE_CHECKING

from ..core.accumulate import visit_leaf
from ..core.graph import AccumulateGrad
from ..core.lazy_tensor import Lazy, fill
from ..core.tensor import Tensor
from ..runtime.codegen import compile_source
from ..runtime.fp_warnings import IGNORED, errors
from .recorder import Unrecorded
from .segment_program import compile_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.typing import Array, Function
    from .entries import Entry
    from .segment_program import SegmentProgram
    from .typing import Constant

#: Whether a failing program raises (for tests); otherwise the operations run one by one.
strict = False


class Segment:
    """Program for the path of entries that ends with ``last``, which computes the results at the places ``live``.

    A live view is computed by its ordinary operation: after the program if its base is a result, and before if it is
    an input. Then the program reads the view, so that the graph of other results leads to it. If a result of the program
    is the base of a live view that other results depend on, or if the program cannot be compiled, ``program`` is None,
    and all operations run one by one, because ``reason``. ``cause`` describes what ended the segment when it was
    compiled. If ``loss`` is the place of a result, the program includes the backward pass from it, which
    :meth:`run_backward` runs; ``wanted`` are the places of the inputs whose gradients it computes, or None for all.
    """

    reason: str
    cause: str
    loss: int | None
    wanted: Sequence[int] | None
    entries: list[Entry]
    live: set[int]

    def __init__(
        self,
        last: Entry,
        live: Sequence[int],
        values: Sequence[Tensor],
        cause: str,
        loss: int | None = None,
        wanted: Sequence[int] | None = None,
    ) -> None:
        self.cause, self.reason, self.loss, self.wanted = cause, "", loss, wanted
        self.entries, self.live = last.path(), set(live)
        self.program: SegmentProgram | None = None
        by_place = {each.place: each for each in self.entries}
        made: set[int] = set()  # the results of the program
        views: set[int] = set()
        pending = list(live)
        while pending:
            entry = by_place.get(pending.pop())
            if entry is None or entry.place in made or entry.place in views:
                continue
            (views if entry.aliases else made).add(entry.place)
            if entry.aliases:
                pending += entry.used()
        first: set[int] = set()  # the views whose base is an input
        for entry in self.entries:
            if entry.place in views and not any(k in made or (k in views and k not in first) for k in entry.used()):
                first.add(entry.place)
        self.first: list[Entry] = [by_place[place] for place in sorted(first)]
        self.then: list[Entry] = [by_place[place] for place in sorted(views - first)]
        self.results: list[int] = sorted(made)
        used, steps = set(made), []
        for entry in reversed(self.entries):
            if entry.place in used and entry.place not in first:
                used.update(entry.used())
                head = entry.head or entry
                if head not in steps:
                    steps.append(head)
        steps.sort(key=attrgetter("place"), reverse=True)
        self.inputs: list[int] = sorted(each for each in used if each in first or each not in by_place)
        if loss is not None and loss not in made:
            self.reason = "backward() is not part of the program, because its loss is a view"
        elif loss is not None and not all(map(_is_leaf, [values[k] for k in self.inputs])):
            self.reason = "backward() is not part of the program, because an input was computed before it"
        elif any(each.place in used and each.graded for each in self.then):
            self.reason = "a live view of a result is an operand"
        elif self.results:
            compute_views(self.first, values)
            self.compile(steps[::-1], [values[k] for k in self.inputs])
        else:
            self.reason = "all results of a segment are views"

        self.picked_inputs, self.picked_results = picker(self.inputs), picker(self.results)
        leaves = self.program.leaves if self.program is not None else list[int]()
        self.picked_leaves = picker([self.inputs[k] for k in leaves])

    def compile(self, steps: Sequence[Entry], inputs: Sequence[Tensor]) -> None:
        """Compile the program of ``steps`` for the sample tensors ``inputs``."""
        function = _straight_line(steps, self.inputs, self.results)
        try:
            if self.loss is None:
                self.program = compile_segment(function, inputs)
            else:
                wanted = (
                    None if self.wanted is None else [self.inputs.index(k) for k in self.wanted if k in self.inputs]
                )
                self.program = compile_segment(function, inputs, self.results.index(self.loss), wanted)
        except Exception as error:
            if strict and not isinstance(error, Unrecorded):
                raise
            self.reason = f"{type(error).__name__}: {error}"
            if self.loss is not None:
                self.reason = f"backward() is not part of the program, because {error}"

    def run(self, values: Sequence[Tensor]) -> None:
        """Compute the live results among ``values``, which are lazy tensors."""
        if self.program is None:
            run_steps(self.entries, values, self.live)
            return
        if self.first:
            compute_views(self.first, values)
        if self._run_program(self.program, values) is None:
            self.run(values)

    def _run_program(self, program: SegmentProgram, values: Sequence[Tensor]) -> list[Array] | None:
        """Compute the results of the program and the views of them; return the gradients of the program's backward pass.

        If the program fails, it is deleted, and the result is None.
        """
        try:
            grads = program.run(self.picked_inputs(values), self.picked_results(values))
        except MemoryError:
            raise
        except Exception as error:
            if strict:
                raise
            self.program, self.reason = None, f"its program failed: {type(error).__name__}: {error}"
            return None
        if self.then:
            compute_views(self.then, values)
        return grads

    def run_backward(self, values: Sequence[Tensor], wanted: Sequence[Tensor] | None) -> list[Array] | None:
        """Compute the live results among ``values`` and the gradients of the loss.

        If ``wanted`` is None, the gradients are added to ``grad`` of the leaves, and the result is empty. Otherwise
        ``wanted`` are leaves, whose gradients are returned. The result is None, and nothing is changed, if the program
        has no backward pass, or if it does not apply to these values: an input is not a leaf, or occurs twice, or one of
        ``wanted`` is not an input.
        """
        if self.program is None:
            return None
        if self.first:
            compute_views(self.first, values)
        leaves, edges = self.picked_leaves(values), list[AccumulateGrad]()
        for x in leaves:
            edge = x._grad_edge
            if edge.__class__ is not AccumulateGrad or x._view is not None or edge in edges:
                return None
            edges.append(edge)
        asked = [each._grad_edge for each in wanted or ()]
        if not all(each in edges for each in asked):
            return None
        grads = self._run_program(self.program, values)
        if grads is None:
            return None
        if wanted is not None:
            for index in self.program.copied:
                grads[index] = grads[index].copy()
            return [grads[edges.index(each)] for each in asked]  # type: ignore[arg-type]
        before = errors.get()
        try:
            errors.set(IGNORED)
            while grads:
                visit_leaf(edges.pop(), grads.pop(), False, False, None, True)
        finally:
            errors.set(before)
        return []


def _is_leaf(x: Tensor) -> bool:
    """Whether the gradient of ``x``, if it has one, arrives at a leaf that is no view."""
    return not x.requires_grad or (x._view is None and x._grad_edge.__class__ is AccumulateGrad)


def picker(places: Sequence[int]) -> Callable[[Sequence[Tensor]], tuple[Tensor, ...]]:
    """Return a function that returns the items of a sequence at ``places`` as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    if not places:
        return lambda values: ()
    place = places[0]
    return lambda values: (values[place],)


def run_steps(entries: Sequence[Entry], values: Sequence[Tensor], live: set[int]) -> None:
    """Run the operations of ``entries`` one by one, and fill those lazy tensors among ``values`` that are ``live``."""
    used = set(live)
    for entry in reversed(entries):
        if entry.place in used:
            used.update(entry.used())
    known = list(values)
    several: dict[Entry, Sequence[Tensor]] = {}
    for entry in entries:
        place = entry.place
        if place not in used or values[place].__class__ is not Lazy:
            continue
        found = _result(entry, known, several)
        if place in live:
            fill(values[place], found)
        else:
            known[place] = found


def compute_views(entries: Sequence[Entry], values: Sequence[Tensor]) -> None:
    """Compute the results of ``entries`` one by one, and fill the lazy tensors among ``values``."""
    several: dict[Entry, Sequence[Tensor]] = {}
    for entry in entries:
        if values[entry.place].__class__ is Lazy:
            fill(values[entry.place], _result(entry, values, several))


def _result(entry: Entry, values: Sequence[Tensor], several: dict[Entry, Sequence[Tensor]]) -> Tensor:
    """Return the result of ``entry``; ``several`` has the results of calls with several results."""
    head = entry.head
    if head is None:
        return entry.call(values)
    if head not in several:
        several[head] = head.call(values)
    return several[head][entry.item]


def _straight_line(steps: Sequence[Entry], inputs: Sequence[int], results: Sequence[int]) -> Function:
    """Return a function of the inputs at the places ``inputs``, which runs ``steps`` and returns the results."""
    space: dict[str, object] = {}
    lines = [f"def segment({', '.join(f't{k}' for k in inputs)}):"]
    for number, entry in enumerate(steps):
        space[f"f{number}"] = _detach if entry.called is vars(Tensor)["detach"] else entry.called
        arguments = []
        for k, (place, constant) in enumerate(zip(entry.places, entry.constants, strict=True)):
            arguments.append(_argument(place, constant, f"c{number}_{k}", space))
        for k, name in enumerate(entry.names, entry.positional):
            arguments[k] = f"{name}={arguments[k]}"
        target = f"t{entry.place}"
        if entry.items:  # those that were computed before are inputs
            names = ["_" if each.place in inputs else f"t{each.place}" for each in entry.items]
            target = f"{', '.join(names)},"
        lines.append(f"    {target} = f{number}({', '.join(arguments)})")
    lines.append(f"    return ({''.join(f't{k}, ' for k in results)})")
    return compile_source("<segment>", lines, space, "segment")


#: The method, which the recorder overrides.
_detach = methodcaller("detach")


def _argument(place: int, constant: Constant, name: str, space: dict[str, object]) -> str:
    """Return an expression for an argument of an entry; its constants are added to ``space``."""
    if place >= 0:
        return f"t{place}"
    if place == -1:
        space[name] = constant
        return name
    kind, items = constant
    inner = [_argument(k, each, f"{name}_{i}", space) for i, (k, each) in enumerate(items)]
    return f"[{', '.join(inner)}]" if kind is list else f"({', '.join(inner)},)"
