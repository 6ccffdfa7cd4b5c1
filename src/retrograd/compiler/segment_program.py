"""Programs of a segment, a pure straight-line function of tensors, and its nodes in the graph.

The function is recorded once (``recorder.py``). :meth:`SegmentProgram.run` computes the results by one generated
program of arrays, without intermediate tensors.

Note [Nodes of a segment]. Hooks and ``retain_grad`` of a result must work, and the graph of a result must not depend on
other results. So the results are removed from the graph of the recorded steps, and each connected part that remains
becomes one node (:class:`GraphPart`), with edges to inputs and to results that other parts have computed. If such nodes
would depend on each other (``y`` and ``z`` of ``a = x.exp(); y = a * 2; z = a * y`` are in one part, which has an edge
to itself), their parts are cut where the number of results on the longest path changes, and nodes also have edges to
the values at these cuts. The backward program of a node is generated for each set of its results that receive a
gradient, so that inputs on which they do not depend get no gradient.

Note [Values saved by a segment]. A node saves what its backward program reads. These values need not be those that the
nodes of the separate operations would save, because cheap results are computed again from others. Only values that
these nodes would save as well, or that no tensor shows, are used for that, so that a write to an input or a result
raises an error exactly if it does so without compilation. If the separate nodes would save a value that cannot be
computed from the others, it is saved too: then the nodes can be made from the saved values, which a recorded backward
pass needs (``create_graph=True``), and the backward program of another set of results can be generated later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import Context
from copy import copy
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy
from numpy import ndarray

from ..autograd.backward import gradients_of_tensors
from ..core.grad_mode import in_inference, inference_mode, recording, restore_recording, set_recording
from ..core.graph import Node, OutputEdge, next_number
from ..core.lazy_tensor import Lazy
from ..core.tensor import Tensor, at_edge, leaf_from_array, new, wrap
from ..core.views import current_edge, freed_error, modified_inplace_error
from ..dispatch.generic_path import apply, record
from ..kernels import numba_dispatch
from ..runtime import user_frame
from ..runtime.codegen import compile_source
from .backward import differentiate
from .cross_entropy_pattern import merge_cross_entropy
from .fusion import decompose, is_cheap, read_through_views
from .ir import CONSTANT, INPUT, Step, Value
from .passes import eliminate_common_subexpressions, eliminate_dead_code, push_transposes, steps_to_recompute
from .program import Program
from .recorder import Recorder, Traced, Unrecorded

if TYPE_CHECKING:
    from ..core.typing import Array, Edge, Edges, Gradient, Gradients, VersionCounter
    from .typing import Operand


def compile_segment(
    function: Callable[..., Sequence[Tensor]],
    inputs: Sequence[Tensor],
    loss: int | None = None,
    wanted: Sequence[int] | None = None,
) -> SegmentProgram:
    """Return the :class:`SegmentProgram` of ``function``, which is recorded with samples of ``inputs``.

    If ``loss`` is not None, the program also computes the gradients of the result with this index, which has one element,
    with respect to the inputs with the indices ``wanted``, or all inputs if this is None.

    ``function(*inputs)`` must return a sequence of tensors, and must be straight-line and pure: it calls the same
    operations whatever the elements of ``inputs`` are, and uses no other tensors. The program is valid for tensors that
    agree with ``inputs`` in shape, dtype, strides and ``requires_grad``, in the recording mode of this call.

    A result is never a view: one that shares the memory of a value that is no result is a tensor of its own.

    Raises :class:`Unrecorded` if the function cannot be recorded, or if one of its results shares memory with an input
    or another result, or if the backward pass from ``loss`` would not free all graphs of the results.
    """
    return Context().run(_compile, function, inputs, loss, wanted, bool(recording()), in_inference())


def _compile(
    function: Callable[..., Sequence[Tensor]],
    inputs: Sequence[Tensor],
    loss: int | None,
    wanted: Sequence[int] | None,
    recorded: bool,
    inference: bool,
) -> SegmentProgram:
    """Record ``function`` and return its program (helper of :func:`compile_segment`, run in an empty context).

    ``recorded`` and ``inference`` are the values of grad mode and inference mode. In the empty context, no mode of the
    program, transform, autocast or hook on saved tensors is active.
    """
    samples = [_sample(each) for each in inputs]
    with inference_mode(inference):
        set_recording(recorded)
        recorder = Recorder()
        given = [recorder.input(each) for each in samples]
        with recorder:
            results = [each if isinstance(each, Traced) else recorder.constant(each) for each in function(*given)]
        outs = [each._value for each in results]
        for index, value in enumerate(outs):
            if value.root.kind is INPUT:
                raise Unrecorded(f"result {index} is an input or a view of one")
            if any(value.root is each.root for each in outs[:index]):
                raise Unrecorded(f"result {index} shares its memory with another result")
        program = SegmentProgram(recorder, [each._value for each in given], outs, loss, wanted)
        recorder.release()
        return program


def _sample(x: Tensor) -> Tensor:
    """Return a tensor that shares the array of ``x``; if ``x`` requires gradients, it is a leaf of its own."""
    made = leaf_from_array(x._array) if x.requires_grad else wrap(x._array)
    if x._version_counter is None:
        made._counter = ()
    return made


class SegmentProgram:
    """Programs of a segment; ``run(inputs, results)`` computes the results.

    ``run`` computes the arrays of the results from the tensors ``inputs``, and then sets the fields of the lazy tensors
    ``results``, which may be blank (slots without values), and makes them ordinary tensors. It calls nothing between, so
    that an exception, also an interrupt, leaves all results unchanged or computed.

    ``inputs`` and ``outs`` are the recorded arguments and results, ``steps`` the recorded operations, ``count`` is the
    number of results, and ``parts`` describe the nodes in the graph, in the order in which they are created. ``source``
    is the text of ``run``.

    With the index ``loss`` of a result, the program includes the backward pass from this result: ``run`` returns its
    gradients for the inputs with the indices ``leaves``, of which those at the indices ``copied`` must be copied before the
    user's program gets them. The nodes of the results save nothing, as if the backward pass had freed what they saved.
    """

    run: Callable[[Sequence[Tensor], Sequence[Tensor]], list[Array]]

    def __init__(
        self,
        recorder: Recorder,
        inputs: Sequence[Value],
        outs: Sequence[Value],
        loss: int | None = None,
        wanted: Sequence[int] | None = None,
    ) -> None:
        self.steps, self.count = list(recorder.tape.steps), len(outs)
        self.inputs, self.outs = tuple(inputs), tuple(outs)
        self.parts = [GraphPart(*each) for each in _graph_parts(self.steps, outs)]
        plain, instead = eliminate_common_subexpressions(
            list(map(copy, self.steps)), [*outs, *[each.root for each in outs]]
        )
        plain = eliminate_dead_code(
            plain, [*outs, *[instead.get(each, each) for part in self.parts for each in part.outs]]
        )
        forward = _optimised(plain)
        for part in self.parts:
            part.choose_saved(recorder, plain, forward, instead, outs)
        self.leaves: list[int] = []
        self.copied: set[int] = set()
        if loss is not None:
            given = inputs if wanted is None else [inputs[k] for k in wanted]
            self._merge_backward(recorder, inputs, outs, outs[loss], [each for each in given if each.graded])
            return
        saved = list(dict.fromkeys(each for part in self.parts for each in part.saved))
        made = [*outs, *(each for each in saved if each.kind is not INPUT and each not in outs)]
        forward = eliminate_dead_code(push_transposes(forward, made), made)
        used = dict.fromkeys(value for step in forward for value in step.values())
        self.forward = Program("forward", [each for each in inputs if each in used], forward, made)
        self.source, self.run = self._caller(inputs, outs)
        for part in self.parts:
            every = tuple(range(len(part.outs)))
            part.generate(every, [recorder.standing[each]._inner._array for each in part.saved])

    def _merge_backward(
        self, recorder: Recorder, inputs: Sequence[Value], outs: Sequence[Value], loss: Value, graded: Sequence[Value]
    ) -> None:
        """Generate a program that also computes the gradients of ``loss`` for ``graded``, and ``run``, which returns them."""
        self._free_saved_values(loss)
        before = len(recorder.tape.steps)
        one = recorder.input(wrap(numpy.ones(loss.shape, loss.dtype)))
        found = differentiate(recorder, [loss], [one], graded, self.steps)
        memory = [each._value.root for each in found if each is not None]
        steps, instead = eliminate_common_subexpressions(
            list(map(copy, [*self.steps, *recorder.tape.steps[before:]])), [*outs, *[each.root for each in outs]]
        )
        pairs = [(k, each._value) for k, each in zip(graded, found, strict=True) if each is not None]
        self.leaves = [inputs.index(k) for k, _ in pairs]
        grads = [instead.get(each, each) for _, each in pairs]
        self.copied = _newly_shared(grads, memory, outs)
        made = [*outs, *grads]
        steps = eliminate_dead_code(push_transposes(_optimised(eliminate_dead_code(steps, made)), outs), made)
        used = {value for step in steps for value in step.values()} | {*made}
        given = [each for each in (*inputs, one._value) if each in used]
        self.forward = Program("forward_and_backward", given, steps, made)
        self.source, self.run = self._caller(inputs, outs, one._value)

    def _free_saved_values(self, loss: Value) -> None:
        """Make the parts of the graph those that remain after a backward pass from ``loss``; they save nothing.

        Raises :class:`Unrecorded` if saved values would remain.
        """
        maker = {value: step for step in self.steps for value in step.results}
        reached, pending = {loss}, [loss]
        while pending:
            step = maker.get(pending.pop())
            for each in () if step is None else _graded_operands(step):
                if each not in reached:
                    reached.add(each)
                    pending.append(each)
        for part in self.parts:
            part.freed = part.mask_of([index for index, each in enumerate(part.outs) if each in reached])
            if not all(not each or each & part.freed for each in part.masks) or (part.saved and not part.freed):
                raise Unrecorded("another result keeps values that its gradient needs")

    @property
    def programs(self) -> list[Program]:
        """The forward program and the backward programs that have been generated."""
        return [self.forward, *(each.program for part in self.parts for each in part.programs.values())]

    def describe(self) -> str:
        """Return the source text of the programs and of their fused loops."""
        found = []
        for program in self.programs:
            found += [program.source, *(loop.source for loop in program.loops)]
        return "\n\n".join(found)

    def _caller(
        self, inputs: Sequence[Value], outs: Sequence[Value], one: Value | None = None
    ) -> tuple[str, Callable[..., list[Array]]]:
        """Generate ``run``; return its source text and the function.

        ``one`` is the incoming gradient if the program includes a backward pass, otherwise None.
        """
        space: dict[str, object] = {
            "forward": self.forward.run, "new": new, "current": current_edge, "next_number": next_number,
            "location": user_frame.user_location, "Output": OutputEdge, "Lazy": Lazy, "Tensor": Tensor,
        }  # fmt: skip
        tensors = {value: f"t{value.name}" for value in (*inputs, *outs)}
        lines = [
            "def run(inputs, results):",
            *[f"    {', '.join(tensors[each] for each in inputs)}, = inputs"] * bool(inputs),
            *[f"    {', '.join(tensors[each] for each in outs)}, = results"] * bool(outs),
        ]
        arrays = ", ".join("one" if each is one else f"{tensors[each]}._array" for each in self.forward.inputs)
        names = [each.name for each in self.forward.outputs if each is not None]
        grads = [f"grad{k}" for k in range(len(outs), len(names))] if one is not None else []
        made = ", ".join([*names[: len(names) - len(grads)], *grads])
        if one is not None:  # a gradient may be a view of it
            lines.append("    one = ones.copy()")
        lines += [f"    {made}, = forward({arrays})"] * bool(made)
        if one is not None:
            space["ones"] = numpy.ones(one.shape, one.dtype)
        checked = dict.fromkeys(each for part in self.parts for each in part.checked if part.freed is None)
        for each in checked:
            name, x = f"c{each.name}", tensors[each]
            if each.kind is INPUT:
                lines += [f"    {name} = {x}._counter", f"    if {name} is None: {name} = {x}._counter = [0, None]"]
            else:
                lines.append(f"    {name} = [0, None]")
        edges: dict[Value, str] = {}
        for number, part in enumerate(self.parts):
            lines += part.creation(f"n{number}", edges, tensors, space)
        lines += [f"    {each.name} = {each.name}.copy()" for each in outs if each.kind is CONSTANT]
        for value in outs:
            name = tensors[value]
            counter = f"c{value.name}" if value in checked else "()" if in_inference() else "None"
            lines += [
                f"    if {name}.__class__ is Lazy:  # otherwise a signal handler has read it meanwhile",
                f"        {name}._grad_edge = {edges.get(value)}",
                f"        {name}._view = {name}._grad = None",
                f"        {name}._counter = {counter}",
                f"        {name}._array = {value.name}",
                f"        {name}.__class__ = Tensor",
                f"        {name}._creation_meta = 0",
            ]
        lines.append(f"    return [{', '.join(grads)}]")
        return "\n".join(lines), compile_source("<compiled segment>", lines, space, "run")


def _newly_shared(grads: Sequence[Value | None], memory: Sequence[Value | None], others: Sequence[Value]) -> set[int]:
    """Return the indices of those of ``grads`` that must be copied, because the user's program may write to them.

    They are constants, or share their memory with an earlier gradient or with one of ``others``, but did not before
    repeated steps were merged. ``memory`` are the values that owned the memory of ``grads`` then.
    """
    found, owners = set[int](), {each.root: each.root for each in others}
    for index, (grad, owner) in enumerate(zip(grads, memory, strict=True)):
        if grad is None or owner is None:
            continue
        if grad.root.kind is CONSTANT or owners.setdefault(grad.root, owner) is not owner:
            found.add(index)
    return found


def _optimised(steps: Sequence[Step]) -> list[Step]:
    """Return ``steps`` with the patterns replaced that loops compute faster, if Numba is available."""
    if not numba_dispatch.permitted():
        return list(steps)
    return merge_cross_entropy(read_through_views(decompose(steps)))


# -- From recorded steps to the parts of the graph ---------------------------------------------------------------------


def _graded_operands(step: Step) -> Iterator[Value]:
    """Return an iterator over the operands of ``step`` to which its rules may pass a gradient."""
    rules = step.op.rules or [step.op.has_rules or None] * len(step.operands)
    for each, rule in zip(step.operands, rules, strict=True):
        if each.__class__ is Value and each.graded and rule is not None:
            yield each


def _graph_parts(steps: Sequence[Step], outs: Sequence[Value]) -> list[tuple[list[Step], list[Value], list[Value]]]:
    """Return the parts of the graph of ``steps`` that become nodes, in topological order.

    A part has a list of steps, of the values at which gradients arrive, and of the values to which it may pass
    gradients. ``outs`` are the results of the segment. See Note [Nodes of a segment].
    """
    live = {each for each in outs if each.graded}
    needed = set(live)
    graded: list[Step] = []
    for step in reversed(steps):
        if any(each.graded and each in needed for each in step.results):
            graded.append(step)
            needed.update(_graded_operands(step))
    graded.reverse()
    maker = {value: step for step in graded for value in step.results}
    group = {step: {step} for step in graded}
    level: dict[Step, int] = {}
    for step in graded:
        level[step] = 0
        for value in _graded_operands(step):
            if value in maker:
                level[step] = max(level[step], level[maker[value]] + (value in live))
                if value not in live:
                    _unite(group, step, maker[value])
    parts, cyclic = _order(graded, group, maker, live)
    if cyclic:
        pieces: dict[tuple[int, int], set[Step]] = {}
        for step in graded:
            if id(group[step]) in cyclic:
                pieces.setdefault((id(group[step]), level[step]), set()).add(step)
        for piece in pieces.values():
            group.update(dict.fromkeys(piece, piece))
        parts = _order(graded, group, maker, live)[0]
    found = []
    for part in parts:
        own = [step for step in graded if step in part]
        made = {value for step in own for value in step.results}
        taken = {value for step in graded if step not in part for value in _graded_operands(step)}
        ends = [value for step in own for value in step.results if value.graded and (value in live or value in taken)]
        edges = [value for step in own for value in _graded_operands(step) if value not in made]
        found.append((own, ends, list(dict.fromkeys(edges))))
    return found


def _unite(group: dict[Step, set[Step]], one: Step, other: Step) -> None:
    """Replace the groups of the steps ``one`` and ``other`` by their union."""
    if group[one] is not group[other]:
        small, large = sorted((group[one], group[other]), key=len)
        large |= small
        for each in small:
            group[each] = large


def _order(
    steps: Sequence[Step], group: dict[Step, set[Step]], maker: dict[Value, Step], live: set[Value]
) -> tuple[list[set[Step]], set[int]]:
    """Return the groups of ``steps`` in topological order, and the identities of those that have none, due to cycles.

    ``maker`` has the step that computes each value, and ``live`` are the values that must be between groups.
    """
    place = {step: index for index, step in enumerate(steps)}
    first: dict[int, int] = {}
    parts: dict[int, set[Step]] = {}
    for step in steps:
        parts.setdefault(id(group[step]), group[step])
        first.setdefault(id(group[step]), place[step])
    users: dict[int, set[int]] = {each: set() for each in parts}
    waiting = dict.fromkeys(parts, 0)
    for step in steps:
        for value in _graded_operands(step):
            if value in maker and (value in live or group[maker[value]] is not group[step]):
                source, target = id(group[maker[value]]), id(group[step])
                if target not in users[source]:
                    users[source].add(target)
                    waiting[target] += 1
    ready = [(first[each], each) for each, count in waiting.items() if not count]
    heapify(ready)
    found = []
    while ready:
        each = heappop(ready)[1]
        found.append(parts.pop(each))
        for user in users[each]:
            waiting[user] -= 1
            if not waiting[user]:
                heappush(ready, (first[user], user))
    return found, set(parts)


class GraphPart:
    """Connected part of a segment's graph, of which each run of the segment creates a node (:class:`CompiledNode`).

    Attributes:
        steps: Recorded operations of the part.
        outs: Values at which gradients arrive.
        edges: Values to which the part passes gradients.
        saved: Values that a node saves.
        checked: Inputs and results of the segment whose version a node checks.
        programs: The backward programs, by the indices of those of ``outs`` that receive a gradient.
        freed: The steps whose saved values the program's own backward pass has freed, as bits; None if it has none.
    """

    freed: int | None = None

    def __init__(self, steps: list[Step], outs: list[Value], edges: list[Value]) -> None:
        self.steps, self.outs, self.edges = steps, outs, edges
        self.programs: dict[tuple[int, ...], BackwardProgram] = {}

    def choose_saved(
        self,
        recorder: Recorder,
        plain: Sequence[Step],
        forward: Sequence[Step],
        instead: dict[Value, Value],
        results: Sequence[Value],
    ) -> None:
        """Choose the values that the nodes save (see Note [Values saved by a segment]).

        ``plain`` are the steps of the segment without repetitions, ``forward`` those of its program, and ``instead``
        the values that replace results of repeated steps. ``results`` are the results of the segment.
        """
        steps, grads, found = self._differentiated(recorder, range(len(self.outs)))
        self.edges = [each for each, gradient in zip(self.edges, found, strict=True) if gradient is not None]
        owners = {each.root: each for each in results}  # the result that shows each array
        both, self.instead = eliminate_common_subexpressions([*plain, *steps], [*results, *owners], instead)
        asked = [self.instead.get(each, each) for each in found if each is not None]
        backward = _optimised(push_transposes(eliminate_dead_code(both[len(plain) :], asked), ()))

        self.reads = {
            step: list(dict.fromkeys(self.instead.get(each, each) for each in recorder.reads[step]))
            for step in self.steps
            if step in recorder.reads
        }
        read = dict.fromkeys(each for step in self.steps for each in self.reads.get(step, ()))
        roots = {each.root for each in read}

        def usable(value: Value) -> bool:
            if (value.base or value) not in recorder.standing:  # a value that only the program has
                return False
            return value.root in roots or not (value.root.kind is INPUT or value.root in owners)

        at_hand = [each for each in read if each in results]
        repeated: list[Step] = []
        if numba_dispatch.permitted():
            repeated = steps_to_recompute(forward, backward, at_hand, is_cheap, usable)
        own = {*grads, *(each for step in (*repeated, *backward) for each in step.results)}
        used = [*(each for step in (*repeated, *backward) for each in step.values()), *asked]
        self.saved = [each for each in dict.fromkeys(used) if each not in own and each.kind is not CONSTANT]
        known = self._computable(forward)
        self.saved += [each for each in read if each not in known and each.kind is not CONSTANT]
        checked = dict.fromkeys(owners.get(each.root, each.root) for each in read)
        self.checked = [each for each in checked if each.kind is INPUT or each in results]
        if any(each.kind is INPUT and recorder.standing[each]._counter == () for each in self.checked):
            raise Unrecorded("an inference tensor is saved for the backward pass")
        known = self._computable(forward)
        self.known = [step for step in forward if all(each in known for each in (*step.results, *_variable(step)))]
        self.count = recorder.tape.count
        self._find_masks()

    def _differentiated(
        self, recorder: Recorder, which: Sequence[int]
    ) -> tuple[list[Step], list[Value], list[Value | None]]:
        """Record the backward pass from those of ``outs`` with the indices ``which``.

        Return its steps, the values of the incoming gradients, and a gradient or None for each of ``edges``.
        """
        before, outs = len(recorder.tape.steps), [self.outs[index] for index in which]
        given = [recorder.input(wrap(numpy.ones(each.shape, each.dtype))) for each in outs]
        found = differentiate(recorder, outs, given, self.edges, self.steps)
        steps = list(map(copy, recorder.tape.steps[before:]))
        return steps, [each._value for each in given], [None if each is None else each._value for each in found]

    def _computable(self, forward: Sequence[Step]) -> set[Value]:
        """Return the values that are saved, or that cheap steps of ``forward`` can compute from these."""
        found = set(self.saved)
        for step in forward:
            if is_cheap(step) and all(each in found for each in _variable(step)):
                found.update(step.results)
        return found

    def _find_masks(self) -> None:
        """Set ``masks``: for each of ``outs`` the steps with saved values on which its gradient depends, as bits."""
        maker = {value: step for step in self.steps for value in step.results}
        self.masks = []
        for out in self.outs:
            mask, seen, pending = 0, set[Step](), [maker[out]]
            while pending:
                step = pending.pop()
                if step not in seen:
                    seen.add(step)
                    mask |= (step in self.reads) << self.steps.index(step)
                    pending += [maker[each] for each in _graded_operands(step) if each in maker]
            self.masks.append(mask)

    def mask_of(self, which: Sequence[int]) -> int:
        """Return the steps with saved values on which the gradients of the results ``which`` depend, as bits."""
        mask = 0
        for index in which:
            mask |= self.masks[index]
        return mask

    def creation(
        self, name: str, edges: dict[Value, str], tensors: dict[Value, str], space: dict[str, object]
    ) -> list[str]:
        """Return source lines that create a node and assign it to the variable ``name``.

        ``edges`` has the expression for the gradient edge of each value that earlier nodes have computed; those of this
        node are added. ``tensors`` has the names of the tensors of inputs and results. Objects that the lines use are
        added to ``space``, the namespace of the function.
        """
        first = self.outs[0]
        space[f"Node_{name}"] = type("CompiledFunctionBackward", (CompiledNode,), {
            "__slots__": (), "__module__": "builtins", "part": self, "outputs": len(self.outs),
            "single": len(self.outs) == 1,
        })  # fmt: skip
        space[f"dtype_{name}"] = first.dtype

        def edge(value: Value) -> str:
            x = tensors.get(value)
            return edges.get(value, f"{x}._grad_edge if {x}._view is None else current({x})")

        lines = [
            f"{name} = new(Node_{name})",
            f"{name}.edges = ({', '.join(map(edge, self.edges))}{',' * (len(self.edges) == 1)})",
            f"{name}.number = next_number()",
            f"{name}.shape, {name}.dtype, {name}.hooks = {first.shape}, dtype_{name}, None",
            f"{name}.code, {name}.instruction = location()",
        ]
        if self.freed is not None:
            saved = None if self.freed else ()
            lines.append(
                f"{name}.saved, {name}.counters, {name}.versions, {name}.freed = {saved}, (), (), {self.freed}"
            )
        else:
            lines += [
                f"{name}.saved = ({''.join(f'{self._array(each, tensors)}, ' for each in self.saved)})",
                f"{name}.counters = ({''.join(f'c{each.name}, ' for each in self.checked)})",
                f"{name}.versions = ({''.join(f'c{each.name}[0], ' for each in self.checked)})",
                f"{name}.freed = 0",
            ]
        if len(self.outs) == 1:
            edges[first] = name
        else:
            for index, value in enumerate(self.outs):
                edges[value] = f"{name}_{index}"
                space[f"dtype_{name}_{index}"] = value.dtype
                lines.append(f"{name}_{index} = Output({name}, {index}, {value.shape}, dtype_{name}_{index})")
        return ["    " + each for each in lines]

    @staticmethod
    def _array(value: Value, tensors: dict[Value, str]) -> str:
        return f"{tensors[value]}._array" if value.kind is INPUT else value.name

    # -- Backward programs

    def generate(self, which: tuple[int, ...], saved: Sequence[Array]) -> BackwardProgram:
        """Generate the backward program for gradients of those of ``outs`` with the indices ``which``.

        ``saved`` are arrays of the values that the node saves.
        """
        if which not in self.programs:
            self.programs[which] = Context().run(self._generate, which, saved)
        return self.programs[which]

    def _generate(self, which: tuple[int, ...], saved: Sequence[Array]) -> BackwardProgram:
        set_recording(False)
        recorder = Recorder(self.count)
        for value, array in zip(self.saved, saved, strict=True):
            recorder.traced(wrap(array), value)
        for value in {each for step in (*self.known, *self.steps) for each in step.values() if each.kind is CONSTANT}:
            recorder.traced(wrap(value.array), value)  # type: ignore[arg-type]
        standing = recorder.standing
        for step in self.known:
            recorder.tape.steps.append(copy(step))
            if not all(each in standing for each in step.results):
                recorder.traced(_applied(step, lambda each: standing[each]._inner), step.results[0])
        for old, kept in self.instead.items():
            if kept in standing:
                standing[old] = standing[kept]
        known = list(recorder.tape.steps)
        steps, grads, found = self._differentiated(recorder, which)
        memory = [None if each is None else each.root for each in found]
        steps, instead = eliminate_common_subexpressions([*known, *steps], ())
        found = [None if each is None else instead.get(each, each) for each in found]
        copied = _newly_shared(found, memory, self.saved)
        asked = [each for each in found if each is not None]
        given = {*self.saved, *grads}
        steps = [step for step in steps if not given.issuperset(step.results)]
        steps = _optimised(push_transposes(eliminate_dead_code(steps, asked), self.saved))
        mask = self.mask_of(which)
        read = {each.root for place, step in enumerate(self.steps) if mask >> place & 1 for each in self.reads[step]}
        checked = [(place, each) for place, each in enumerate(self.checked) if each.root in read]
        recorder.release()
        return BackwardProgram(self, grads, steps, found, mask, checked, copied)

    # -- Recorded backward passes

    def graph(self, node: CompiledNode) -> tuple[list[Tensor], list[_InputNode]]:
        """Return tensors for ``outs`` with the graph of the separate operations, and the nodes of the part's inputs.

        The values that the nodes of this graph save are those that ``node`` has saved, or are computed from these. The
        arrays of all other tensors have only a shape and a dtype.
        """
        arrays: dict[Value, Array] = dict(zip(self.saved, node.saved or (), strict=False))
        set_recording(False)
        for step in self.known if node.saved is not None else ():
            if not all(each in arrays for each in step.results):
                repeated = _applied(step, lambda each: wrap(arrays[each] if each.array is None else each.array))
                arrays[step.results[0]] = repeated._array
        for old, kept in self.instead.items():
            if kept in arrays:
                arrays[old] = arrays[kept]
        set_recording(True)
        counters = {each.root: counter for each, counter in zip(self.checked, node.counters, strict=True)}
        tensors: dict[Value, Tensor] = {}
        inputs = []

        def tensor(value: Value, edge: Edge | None = None) -> Tensor:
            array = value.array if value.kind is CONSTANT else arrays.get(value)
            if array is None:
                array = numpy.broadcast_to(numpy.zeros((), value.dtype), value.shape)
            return at_edge(array, counters.get(value.root, [0, None]), edge)

        for value in self.edges:
            inputs.append(_input_node(value))
            tensors[value] = tensor(value, inputs[-1])
        for step in self.steps:
            operands = [
                each if each.__class__ is not Value else tensors[each] if each in tensors else tensor(each)
                for each in step.operands
            ]
            made = [tensor(each) for each in step.results]
            edges = [each._grad_edge if isinstance(each, Tensor) else None for each in operands]
            again = getattr(step.op, "again", None)
            if again is not None:
                made[0]._grad_edge = again(operands, step.params)._grad_edge
            elif edges.count(None) < len(edges):
                given = tuple([each._array if isinstance(each, Tensor) else each for each in operands])
                record(step.op, operands, given, step.params, made, edges)
            tensors.update(zip(step.results, made, strict=True))
        return [tensors[each] for each in self.outs], inputs


def _variable(step: Step) -> list[Value]:
    """Return the operands of ``step`` that are neither numbers nor constants."""
    return [each for each in step.values() if each.kind is not CONSTANT]


def _applied(step: Step, tensor_of: Callable[[Value], Tensor]) -> Tensor:
    """Return the result of ``step``, which has one; ``tensor_of`` returns the tensors of its operands."""

    def operand(each: Operand) -> Operand:
        if each.__class__ is not Value:
            return each
        x = tensor_of(each.base or each)
        return x if each.base is None else wrap(x._array.reshape(each.shape))

    return apply(step.op, tuple(map(operand, step.operands)), step.params)


class BackwardProgram:
    """Backward program of a :class:`GraphPart` for one set of its results that receive a gradient.

    ``run`` takes the gradients of these results and the saved arrays at the indices ``places``. ``mask`` has the steps
    whose saved values the backward pass frees, as bits, and ``checked`` the indices and values of the tensors whose
    version is checked. The gradients at the indices ``copied`` must be copied: see :func:`_newly_shared`.
    """

    def __init__(
        self, part: GraphPart, grads: Sequence[Value], steps: Sequence[Step], found: Sequence[Value | None], mask: int,
        checked: list[tuple[int, Value]], copied: set[int],
    ) -> None:  # fmt: skip
        used = {*(each for step in steps for each in step.values()), *found}
        self.places = [place for place, each in enumerate(part.saved) if each in used]
        self.program = Program("backward", [*grads, *[part.saved[place] for place in self.places]], steps, found)
        self.run, self.mask, self.checked, self.copied = self.program.run, mask, checked, copied
        self.whole = 0 < len(self.places) == len(part.saved)


def as_contiguous(array: Array) -> Array:
    """Return a C-contiguous copy of the gradient ``array``, because generated programs require contiguous inputs."""
    return numpy.array(array, order="C")


class CompiledNode(Node):
    """Node of a part of a segment, whose gradients are computed by backward programs.

    ``saved`` are the saved arrays, or None if all are freed; ``freed`` are the steps whose values are freed, as bits.
    ``counters`` are the version counters of the inputs and results that are checked, and ``versions`` their values when
    the segment ran.
    """

    __slots__ = ("counters", "freed", "saved", "versions")
    __module__ = "builtins"
    merged = True
    part: GraphPart
    saved: Sequence[Array] | None
    counters: Sequence[VersionCounter]
    versions: Sequence[int]
    freed: int

    def vjp(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        which: tuple[int, ...] = (0,)
        if self.single:
            grads = [grad]
        else:
            which = tuple([index for index, each in enumerate(grad) if each is not None])
            grads = [grad[index] for index in which]
        program = self.program_for(which, keep)
        saved = self.saved
        if not program.whole:
            saved = [saved[place] for place in program.places] if program.places else ()  # type: ignore[index]
        grads = [each if each.__class__ is ndarray and each.flags.carray else as_contiguous(each) for each in grads]
        found = program.run(*grads, *saved)  # type: ignore[misc]
        if program.copied:
            found = tuple([each.copy() if k in program.copied else each for k, each in enumerate(found)])
        if not keep:
            self.free(program.mask)
        return found[0] if len(self.edges) == 1 else found

    def program_for(self, which: tuple[int, ...], keep: bool) -> BackwardProgram:
        """Return the backward program for gradients of the results with the indices ``which``.

        Raises RuntimeError if saved values that the backward pass needs were freed or modified. If ``keep`` is false,
        the values of the steps that a backward pass runs before the step that fails are then freed, too.
        """
        part = self.part
        if self.freed:
            mask = part.mask_of(which)
            end = (mask & self.freed).bit_length()
            if end:
                if not keep:
                    self.free(mask >> end << end)
                raise freed_error(self)
        program = part.programs.get(which)
        if program is None:
            saved = self.saved
            if saved is None:  # all values that other programs need were freed, and this program needs none
                saved = [numpy.zeros(each.shape, each.dtype) for each in part.saved]
            program = part.generate(which, saved)
        for index, value in program.checked:
            counter, seen = self.counters[index], self.versions[index]
            if counter[0] != seen:
                raise modified_inplace_error(self, value, counter, seen, None)  # type: ignore[arg-type]
        return program

    def free(self, mask: int) -> None:
        """Mark the values of the steps in ``mask`` as freed; free the arrays if no backward pass can use them."""
        self.freed |= mask
        if self.freed and all(not each or each & self.freed for each in self.part.masks):
            self.saved = None

    def vjp_recorded(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        """Return the gradients for the incoming gradient ``grad`` as tensors with a graph, for ``create_graph=True``.

        The graph of the separate operations is made from the saved values, and differentiated.
        """
        grads = [grad] if self.single else list(grad)
        which = tuple([index for index, each in enumerate(grads) if each is not None])
        program = self.program_for(which, keep)
        before = recording()
        try:
            outs, inputs = self.part.graph(self)
            roots, given = [outs[index] for index in which], [grads[index] for index in which]
            ends = [at_edge(as_contiguous(numpy.zeros(())), [0, None], each) for each in inputs]
            found = gradients_of_tensors(roots, ends, given, True, True)
            for node, edge in zip(inputs, self.edges, strict=True):
                node.edges = (edge,)
        finally:
            restore_recording(before)
        if not keep:
            self.free(program.mask)
        return found[0] if len(self.edges) == 1 else found


def _input_node(value: Value) -> _InputNode:
    """Return a new :class:`_InputNode` without an edge for the input ``value`` of a part."""
    node: _InputNode = new(_InputNode)
    node.edges, node.number, node.hooks = (None,), next_number(), None
    node.shape, node.dtype = value.shape, value.dtype
    node.code, node.instruction = user_frame.user_location()
    return node


class _InputNode(Node):
    """Node that passes on its gradient: the place of an input in the graph that ``create_graph=True`` creates.

    It gets its edge after the gradients of the inputs have been computed, so that this does not visit their graph.
    """

    __slots__ = ()
    __module__ = "builtins"

    def vjp(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        return grad

    vjp_recorded = vjp


_InputNode.__name__ = _InputNode.__qualname__ = "AliasBackward0"

__all__ = ["CompiledNode", "SegmentProgram", "Unrecorded", "compile_segment"]
