"""Compiled functions: the first call is recorded and converted to programs, and later calls run the programs.

A recording consists of a guard function, which tests whether the recording is valid for a call, a forward program and,
if gradients are required, a backward program. In the autograd graph, a replayed call is one node,
``CompiledFunctionBackward``.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy
from numpy import ndarray

from ..autograd import grad as grad_of
from ..core import dtypes, torch_function
from ..core.accumulate import accumulate_grad
from ..core.grad_mode import in_inference, recording, restore_recording, set_recording
from ..core.graph import Node, OutputEdge, next_number
from ..core.pytree import tree_flatten
from ..core.tensor import Tensor, at_edge, new, wrap
from ..core.views import current_edge, freed_error, modified_inplace_error
from ..dispatch.generic_path import apply
from ..dispatch.transform_tensor import active_levels
from ..kernels import numba_dispatch
from ..nn import Module
from ..runtime import user_frame
from ..runtime.codegen import compile_source
from .backward import differentiate
from .cross_entropy_pattern import merge_cross_entropy
from .fusion import decompose, is_cheap, read_through_views
from .guards import Guards, describe_assignment
from .ir import CONSTANT, INPUT, RESULT, Value
from .passes import eliminate_common_subexpressions, eliminate_dead_code, push_transposes, steps_to_recompute
from .program import Program
from .trace import Trace, Traced, Unrecorded

if TYPE_CHECKING:
    from types import FrameType

    from ..core.pytree import TreeSpec
    from ..core.typing import (
        Args,
        Array,
        ArrayDType,
        Edges,
        Function,
        Gradient,
        Gradients,
        Kwargs,
        PyTree,
        Scalar,
        Shape,
        VersionCounter,
    )
    from .ir import Tape
    from .typing import Guarded, Operand

#: Maximum number of recordings of a function; a call that matches none of them then runs eagerly.
MAX_RECORDINGS = 8
#: Whether a failing replay raises (for tests); otherwise the call is repeated eagerly, which raises its own error.
strict = False
#: Built-in functions with side effects: a function that calls one of them runs eagerly.
SIDE_EFFECTS = frozenset({print, input, open, breakpoint})


class Recording:
    """Guard function and programs for calls of a compiled function with equal shapes, dtypes, strides and values.

    ``holds(args, kwargs)`` returns whether the recording is valid for a call. ``call(args, kwargs)`` replays the call.
    If the recorded call cannot be compiled, ``call`` is None and ``reason`` is the reason.
    """

    def __init__(self, guards: Guards, start: list[str], reason: str | None = None) -> None:
        self.holds, self.guards, self.reason = guards.written(start), guards, reason
        self.call: Function | None = None
        self.forward: Program | None = None
        self.backward: Program | None = None
        self.tape: Tape | None = None
        self.entry = ""
        self.touches = False  # whether it has side effects besides its results


def compiled_form(function: Function, fullgraph: bool) -> Function:
    """Return the compiled form of ``function``, whose calls are recorded and replayed.

    If ``fullgraph`` is true, a call that cannot be recorded raises an error. The attribute ``_compiled`` of the
    returned function is its :class:`Compiled` object.
    """
    held = Compiled(function, fullgraph)

    def replayed(*args: object, **kwargs: object) -> PyTree:
        for each in held.recordings:
            if each.holds(args, kwargs):
                if each.call is None:
                    return function(*args, **kwargs)
                try:
                    return each.call(args, kwargs)
                except Exception as error:
                    if each.touches or strict:
                        raise
                    result = function(*args, **kwargs)  # raises the eager error if the call itself is wrong
                    each.call, each.reason = None, f"its program failed: {type(error).__name__}: {error}"
                    return result
        return held.missed(args, kwargs)

    functools.update_wrapper(replayed, function)
    vars(replayed).update(_compiled=held, _torchdynamo_orig_callable=function)
    return replayed


class Compiled:
    """State of a compiled function: its recordings, and the number of calls for which no recording was valid."""

    def __init__(self, function: Function, fullgraph: bool) -> None:
        self.function, self.fullgraph = function, fullgraph
        self.recordings: list[Recording] = []
        self.misses = 0
        _every.add(self)

    def missed(self, args: Args, kwargs: Kwargs) -> PyTree:
        """Call the function with ``args`` and ``kwargs``, for which no recording is valid, and return its result.

        The call is recorded, unless the function has been recorded ``MAX_RECORDINGS`` times, or a
        ``TorchFunctionMode``, a transform such as ``vmap``, or autocast is active.
        """
        watched = torch_function.state()[1] or active_levels() or recording() not in (True, False, None) or _autocast()
        if watched or self.misses >= MAX_RECORDINGS:
            return self.function(*args, **kwargs)
        self.misses += 1
        return self.record(args, kwargs)[0]

    def record(self, args: Args, kwargs: Kwargs) -> tuple[PyTree, Recording]:
        """Call the function with ``args`` and ``kwargs``; return its result and a :class:`Recording` of the call."""
        guards, start = _guards_for(self.function, args, kwargs)
        trace = Trace(self.fullgraph, guards.optimizers, _trace_backward)
        with trace, _CallWatcher(trace, guards):
            result = self.function(*args, **kwargs)
        result, plan = _make_plan(trace, guards, result)
        made = Recording(guards, start, trace.reason)
        if plan is not None:
            try:
                plan.fill(made, len(args))
                plan.release()
            except Exception as error:  # a program that can not be generated must not make the call fail
                if self.fullgraph:
                    raise
                made.call, made.reason = None, f"{type(error).__name__}: {error}"
        self.recordings.append(made)
        return result, made

    def forget(self) -> None:
        """Delete all recordings of this function: the guards and programs generated from earlier calls."""
        self.recordings.clear()
        self.misses = 0


def is_recording() -> bool:
    """Whether a call of a compiled function is being recorded."""
    return any(each.__class__ is Trace and each.reason is None for each in active_levels())


def exclude(function: Function) -> Function:
    """Return ``function``, a function or a module, marked to run without compilation.

    If ``function`` is called while a call of a compiled function is being recorded, the recording stops, and the
    compiled function continues without compilation.
    """
    if isinstance(function, Module):
        function._retrograd_disabled = True
        return function

    def plainly(*args: object, **kwargs: object) -> PyTree:
        for each in active_levels():
            if each.__class__ is Trace:
                each.give_up(f"calls {getattr(function, '__name__', function)}, which is excluded from compilation")
                args, kwargs = each.plain(args), each.plain(kwargs)
        return function(*args, **kwargs)

    functools.update_wrapper(plainly, function)
    vars(plainly)["_retrograd_disabled"] = True
    return plainly


#: All live compiled functions.
_every: weakref.WeakSet[Compiled] = weakref.WeakSet()


def forget_all() -> None:
    """Delete the recordings of all compiled functions: the guards and programs generated from earlier calls."""
    for each in list(_every):
        each.forget()


def _autocast() -> bool:
    module = sys.modules.get("retrograd.amp.autocast_mode")
    return module is not None and bool(module._on.get())


# -- Guards ------------------------------------------------------------------------------------------------------------


def _guards_for(function: Function, args: Args, kwargs: Kwargs) -> tuple[Guards, list[str]]:
    """Return the :class:`Guards` for a call of ``function``, and the source lines that unpack its arguments.

    The guards test in later calls that the arguments match ``args`` and ``kwargs``, and that the objects to which
    ``function`` refers, directly or through other objects, are unchanged.
    """
    guards = Guards()
    guards.space.update(
        recording=recording,
        in_inference=in_inference,
        state=torch_function.state,
        default=dtypes.default,
        runs=active_levels,
    )
    guards.demand(
        f"recording() is {recording()} and in_inference() is {in_inference()} and not state()[1] and not runs() and "
        f"default.floating is {guards.constant(dtypes.default.floating)}"
    )
    names = [f"p{i}" for i in range(len(args))]
    start = [f"{', '.join(names)}, = args" if names else "if args: return False"]
    start.append(f"if [*kwargs] != {[*kwargs]!r}: return False" if kwargs else "if kwargs: return False")
    for name, each in zip(names, args, strict=True):
        guards.argument(name, each)
    for name, each in kwargs.items():
        guards.argument(f"kwargs[{name!r}]", each)
    guards.thing(function)
    return guards, start


class _CallWatcher:
    """Context manager that adds guards (tests in later calls) for the global variables that user functions read.

    It is active while a call is recorded, and uses Python's profiler hook (``sys.setprofile``). If a user function
    assigns to an attribute or an outer variable, or calls a function with side effects, the recording stops.
    """

    def __init__(self, trace: Trace, guards: Guards) -> None:
        self.trace, self.guards, self.seen = trace, guards, set[object]()

    def __enter__(self) -> None:
        self.before = sys.getprofile()
        if self.before is None:
            sys.setprofile(self.saw)

    def __exit__(self, *error: object) -> None:
        if self.before is None:
            sys.setprofile(None)

    def saw(self, frame: FrameType, event: str, argument: Guarded) -> None:
        """Handle an event of ``sys.setprofile``: add guards for the function of ``frame``, or stop the recording.

        The parameters are those that ``sys.setprofile`` passes: ``event`` is a string such as ``"call"``, and
        ``argument`` the called C function for ``"c_call"``.
        """
        if event == "call" and _is_in(frame, _STATEFUL_MODULES) and not self.trace.quiet:
            self.tell(f"calls {frame.f_code.co_qualname}()")
        if event not in ("call", "c_call") or not _of_user(frame):
            return
        if event == "c_call":
            owner = getattr(argument, "__module__", None)
            if argument in _impure_builtins() or owner in ("time", "random", "_random"):
                self.tell(f"calls {argument.__name__}()")
            return
        code = frame.f_code
        if code in self.seen:
            return
        self.seen.add(code)
        if (reason := describe_assignment(code)) is not None:
            self.tell(f"{code.co_name} {reason}")
        self.guards.globals_of(code, frame.f_globals)

    def tell(self, reason: str) -> None:
        """Stop the recording and store ``reason``, without raising an exception even if ``fullgraph=True``.

        No exception is raised because this method runs in a hook of ``sys.setprofile``, which Python removes when the
        hook raises an exception.
        """
        fullgraph, self.trace.fullgraph = self.trace.fullgraph, False
        self.trace.give_up(reason)
        self.trace.fullgraph = fullgraph


def _of_user(frame: FrameType) -> bool:
    space = frame.f_globals
    if user_frame.MARK in space or str(space.get("__name__")).partition(".")[0] in user_frame.LIBRARIES:
        return False
    while (frame := frame.f_back) is not None:  # type: ignore[assignment]
        ours = user_frame.MARK in frame.f_globals and not _is_in(frame, _CALLING_MODULES)
        if ours or str(frame.f_globals.get("__name__")).startswith("importlib"):
            return False  # called by the package, or run by an import
    return True


def _is_in(frame: FrameType, modules: tuple[str, ...]) -> bool:
    """Whether ``frame`` runs code of one of ``modules`` or of their submodules.

    ``modules`` are names of modules, each followed by a dot.
    """
    return f"{frame.f_globals.get('__name__')}.".startswith(modules)


#: Modules of the package with state that the next call reads.
_STATEFUL_MODULES = "retrograd.optim.", "retrograd.amp.grad_scaler.", "retrograd.utils.data."
#: Modules of the package that call user functions.
_CALLING_MODULES = "retrograd.nn.", "retrograd.compiler."


def _impure_builtins() -> frozenset[object]:
    return SIDE_EFFECTS


def _trace_backward(trace: Trace, loss: Value, leaves: Sequence[Value]) -> list[Value | None]:
    """Append the backward pass from ``loss`` to the recorded steps; return a list of the gradients of ``leaves``.

    A gradient is a :class:`Value`, or None for a leaf on which ``loss`` does not depend.
    """
    sample = wrap(numpy.ones(loss.shape, loss.dtype))
    value = trace.tape.value(CONSTANT, sample._array)
    found = differentiate(trace, [loss], [trace.traced(sample, value)], leaves)
    return [None if each is None else each._value for each in found]


# -- From a recording to programs --------------------------------------------------------------------------------------


def _make_plan(trace: Trace, guards: Guards, result: PyTree) -> tuple[PyTree, Plan | None]:
    """Return a pair: ``result`` with traced tensors replaced by ordinary tensors, and the :class:`Plan` of the call.

    ``result`` is the object that the recorded call returned. The plan is None if the call cannot be compiled.
    """
    leaves, spec = tree_flatten(result)
    own = trace.plain(leaves)
    if trace.reason is None:
        trace.reason = guards.unfit or _unsupported_reason(trace, guards, leaves)
    given = own[0] if spec.is_leaf() else spec.unflatten(own)
    if trace.reason is not None:
        if trace.fullgraph:
            raise Unrecorded(f"{trace.reason}. Remedy: remove fullgraph=True, or this operation.")
        return given, None
    plan = Plan(trace, guards, leaves, spec)
    try:
        plan.differentiate()
    except Exception as error:
        trace.reason = f"differentiation failed: {type(error).__name__}: {error}"
        if trace.fullgraph:
            raise Unrecorded(trace.reason) from error
        return given, None
    return (given, plan) if trace.reason is None else (given, None)


def _unsupported_reason(trace: Trace, guards: Guards, leaves: Sequence[PyTree]) -> str | None:
    """Return the reason why the results of a recorded call cannot be computed by a program, or None if they can.

    ``leaves`` are the tensors and other objects in the result of the call, in one list.
    """
    roots: set[Value] = set()
    seen: set[Value] = set()
    if (changed := trace.changed()) is not None:
        return changed
    for x, _ in trace.inputs.values():
        if id(x) not in guards.tensors:
            return "uses a tensor that is not in an argument, closure, global variable or module"
    for each in leaves:
        if each.__class__ is Traced:
            value = trace.operand(each)
            if trace.reason is not None:
                return trace.reason
            if value in seen or trace.stands.get(id(each._inner)) is each:
                continue
            if value.root in roots or value.root.kind is INPUT:
                return "returns a view of an argument, or results that share memory"
            seen.add(value)
            roots.add(value.root)
        elif isinstance(each, Tensor):
            if id(each) not in guards.tensors:
                return "returns a tensor that was not recorded"
        elif each is not None and not isinstance(each, (int, float, str, bool, dtypes.dtype)):
            return f"returns a {type(each).__name__}"
    return None


class Plan:
    """Conversion of one recorded call of a compiled function into a forward program and a backward program.

    ``outs`` are the distinct :class:`Value` objects (recorded arrays) that the call returns. ``sources`` has a pair
    (tensor, value) for each input that requires gradients.
    """

    def __init__(self, trace: Trace, guards: Guards, leaves: list[PyTree], spec: TreeSpec) -> None:
        self.trace, self.guards, self.leaves, self.spec = trace, guards, leaves, spec
        passed = {id(each) for each in trace.stands.values()}
        self.outs = list(dict.fromkeys(e._value for e in leaves if e.__class__ is Traced and id(e) not in passed))
        self.grads: list[Value] = []
        self.found: list[Value | None] = []
        self.sources: list[tuple[Tensor, Value]] = []
        self.length = len(trace.tape.steps)
        self.drawn = {value for step in trace.tape.steps if step.effect for value in step.results}
        self.writes = [(each._inner, each._value) for each in trace.written]

    def differentiate(self) -> None:
        """Append the backward pass of the call's results to the recorded steps.

        Nothing is appended if no result requires gradients, or if the recorded call has called ``backward()`` itself.
        """
        trace = self.trace
        graded = [each for each in self.outs if each.graded]
        if trace.arrived and any(each not in trace.swept for each in graded):
            trace.reason = "returns tensors that require gradients after a backward pass"
        if not graded or trace.arrived:
            return
        self.sources = [(x, value) for x, value in trace.inputs.values() if value.graded]
        given = []
        for out in graded:
            sample = wrap(numpy.ones(out.shape, out.dtype))
            value = trace.tape.value(INPUT, sample._array)
            self.grads.append(value)
            given.append(trace.traced(sample, value))
        found = differentiate(trace, graded, given, [value for _, value in self.sources])
        self.found = [None if each is None else each._value for each in found]

    def release(self) -> None:
        """Delete the references to the tensors of the recorded call, so that their memory can be freed."""
        self.values = [value for _, value in self.trace.inputs.values()]
        self.guards.kept.clear()
        self.guards.seen.clear()
        del self.trace, self.leaves, self.writes, self.sources

    def again(self, known: dict[Value, Tensor]) -> list[Tensor]:
        """Repeat the forward pass by ordinary operations, and return the list of the results that require gradients.

        Unlike the results of the program, these results have a graph, which ``create_graph=True`` needs. ``known`` is a
        dictionary from each input :class:`Value` to its tensor; the tensors computed here are added to it.
        """

        def found(each: Operand) -> Tensor | Scalar | None:
            if each.__class__ is not Value or each in known:
                return known.get(each, each)
            known[each] = wrap(each.array)  # type: ignore[arg-type]
            return known[each]

        for step in self.forward:
            if all(each in known for each in step.results):
                continue
            set_recording(any(each.graded for each in step.results))
            operands, params = tuple(map(found, step.operands)), step.params
            if step.effect:  # batch normalisation: its running statistics are updated already
                params = params[0], None, *params[2:]
            again = getattr(step.op, "again", None)
            result = again(operands, params) if again else apply(step.op, operands, params)
            for value, each in zip(step.results, result if step.several else (result,), strict=True):
                known[value] = each if each._array.dtype == value.dtype else each.to(dtypes.dtype_of(value.dtype))
        set_recording(True)
        return [known[each] for each in self.outs if each.graded]

    def fill(self, made: Recording, count: int) -> None:
        """Generate the forward program, the backward program and the function that calls them; store them in ``made``.

        ``count`` is the number of positional arguments of the call.
        """
        steps, written = self.trace.tape.steps, [value for _, value in self.writes]
        asked = [each for each in self.found if each is not None]
        steps, instead = eliminate_common_subexpressions(steps, [*self.outs, *written])
        self.found = [instead.get(each, each) if each is not None else None for each in self.found]
        self.arrived = [(x, instead.get(each, each)) for x, each in self.trace.arrived]
        split = {id(each) for each in self.trace.tape.steps[: self.length]}
        forward = [each for each in steps if id(each) in split]
        asked = [each for each in self.found if each is not None]
        backward = eliminate_dead_code([each for each in steps if id(each) not in split and not each.effect], asked)
        later = [value for each in backward for value in each.values()]
        plain, forward = forward, push_transposes(forward, [*self.outs, *written, *later])
        backward = push_transposes(backward, ())
        if numba_dispatch.available():
            forward, backward = (
                merge_cross_entropy(read_through_views(decompose(forward))),
                merge_cross_entropy(read_through_views(decompose(backward))),
            )
            backward = steps_to_recompute(forward, backward, self.outs, is_cheap) + backward
        made_there = {each for step in backward for each in step.results}
        own = {*self.grads, *made_there}
        used = [*(each for step in backward for each in step.values()), *asked]
        used += [value for step in forward if step.effect for value in step.results] if self.grads else []
        self.saved = list(dict.fromkeys(each for each in used if each not in own and each.kind is not CONSTANT))
        done = [*self.outs, *written, *self.saved, *(value for _, value in self.arrived)]
        forward, self.forward = (
            eliminate_dead_code(forward, done),
            eliminate_dead_code(plain, [*self.outs, *self.saved]),
        )
        inputs = [value for _, value in self.trace.inputs.values()]
        self.swept = list(dict.fromkeys(value for _, value in self.arrived))
        results = [*self.outs, *written, *self.swept, *(each for each in self.saved if each.kind is not INPUT)]
        made.tape = self.trace.tape
        made.touches = bool(self.writes or self.trace.events) or any(each.effect for each in forward)
        made.forward = Program("forward", inputs, forward, results)
        if self.grads:
            made.backward = Program("backward", [*self.grads, *self.saved], backward, self.found)
        made.call = self.caller(made, count)

    def caller(self, made: Recording, count: int) -> Function:
        """Generate and return the function ``call(args, kwargs)``, which replays the call and returns its result.

        The function runs the forward program of ``made``. ``count`` is the number of positional arguments.
        """
        inputs = list(self.trace.inputs.values())
        space: dict[str, object] = {
            **self.guards.space, "forward": made.forward.run, "new": new, "Tensor": Tensor, "current": current_edge,  # type: ignore[union-attr]
            "next_number": next_number, "caller": user_frame.user_location, "Output": OutputEdge, "bump": _bump_version,
        }  # fmt: skip
        lines = ["def call(args, kwargs):"]
        arguments = {self.guards.tensors[id(x)] for x, _ in inputs} | {
            self.guards.tensors[id(each)]
            for each in self.leaves
            if isinstance(each, Tensor) and id(each) in self.guards.tensors
        }
        passed = {id(each): each._inner for each in self.trace.stands.values()}
        arguments |= {self.guards.tensors[id(passed[id(each)])] for each in self.leaves if id(each) in passed}
        names = [each for each in self.guards.lines if each.partition(" = ")[0] in arguments and each.startswith("t")]
        if names:
            unpack = [f"p{i}" for i in range(count)]
            lines += [f"    {', '.join(unpack)}, = args"] * bool(unpack) + [f"    {each}" for each in names]
        arrays = [f"{self.guards.tensors[id(x)]}._array" for x, _ in inputs]
        kept = [each for each in self.saved if each.kind is not INPUT]
        made_names = [
            *(each.name for each in self.outs),
            *(f"w{i}" for i in range(len(self.writes))),
            *(f"g{i}" for i in range(len(self.swept))),
            *(f"s{each.name}" for each in kept),
        ]
        if made_names:
            lines.append(f"    {', '.join(made_names)}, = forward({', '.join(arrays)})")
        for i, (x, _) in enumerate(self.writes):
            name = self.guards.tensors[id(x)]
            lines += [f"    {name}._array[...] = w{i}", f"    bump({name})"]
        for moved in self.trace.bumped:
            space[f"moved{len(space)}"] = moved
            lines.append(f"    bump(moved{len(space) - 1})")
        lines += self.acted(space)
        for each in self.outs:
            name = f"y{each.number}"
            array = f"{each.name}.copy()" if each.root.kind is CONSTANT else each.name
            lines += [f"    {name} = new(Tensor)", f"    {name}._array = {array}",
                      f"    {name}._grad_edge = {name}._view = {name}._grad = None",
                      f"    {name}._counter = {'()' if in_inference() else None}"]  # fmt: skip
        if self.grads:
            lines += self.noted(space, made)
        elif self.trace.arrived:
            space["spent"] = _spent_node
            lines += [f"    y{each.number}._grad_edge = spent({each.name})" for each in self.outs if each.graded]
        lines.append(f"    return {self.structure(space)}")
        made.entry = "\n".join(lines)
        return compile_source("<compiled call>", lines, space, "call")

    def noted(self, space: dict[str, object], made: Recording) -> list[str]:
        """Return source lines that add a :class:`CompiledNode` to the autograd graph.

        The node runs the backward program of ``made``. The objects that these lines use are added to ``space``, the
        namespace of the generated function.
        """
        graded = [each for each in self.outs if each.graded]
        kind = type("CompiledFunctionBackward", (CompiledNode,), {
            "__slots__": (), "__module__": "builtins", "outputs": len(graded), "single": len(graded) == 1,
            "program": made.backward, "plan": self, "forms": [(each.shape, each.dtype) for each in graded],
        })  # fmt: skip
        space.update(Node=kind)
        held = {value: self.guards.tensors[id(x)] for x, value in self.trace.inputs.values()}
        edges = ", ".join(f"{name}._grad_edge if {name}._view is None else current({name})"
                          for name in (self.guards.tensors[id(x)] for x, _ in self.sources))  # fmt: skip
        owners = {value.root: name for value, name in held.items()} | {
            each.root: f"y{each.number}" for each in self.outs
        }
        cells = [owners.get(each.root, "") for each in self.saved]
        every = [self.guards.tensors[id(x)] for x, _ in self.trace.inputs.values()]
        first = graded[0]
        space["first_dtype"] = first.dtype
        lines = ["    node = new(Node)", f"    node.edges = ({edges},)", "    node.number = next_number()",
                 f"    node.shape, node.dtype, node.hooks = {first.shape}, first_dtype, None",
                 "    node.code, node.instruction = caller()"]  # fmt: skip
        saved = [f"{held[each]}._array" if each.kind is INPUT else f"s{each.name}" for each in self.saved]
        lines.append(f"    node.saved = ({', '.join(saved)}{',' * (len(saved) == 1)})")
        lines.append(f"    node.given = ({', '.join(f'{name}._array' for name in every)},)")
        lines.append(
            f"    node.cells = ({''.join(f'{name}._version_counter, ' if name else 'None, ' for name in cells)})"
        )
        lines.append("    node.versions = [None if each is None else each[0] for each in node.cells]")
        if len(graded) == 1:
            lines.append(f"    y{first.number}._grad_edge = node")
        else:
            for position, each in enumerate(graded):
                space[f"dtype{position}"] = each.dtype
                lines.append(f"    y{each.number}._grad_edge = Output(node, {position}, {each.shape}, dtype{position})")
        return lines

    def acted(self, space: dict[str, object]) -> list[str]:
        """Return source lines that call ``backward()`` and methods of optimisers, as the user's function does.

        The lines are in the order in which the calls were recorded. The objects that the lines use are added to
        ``space``, the namespace of the generated function.
        """
        lines: list[str] = []
        space["accumulate"] = accumulate_grad
        given: set[Value] = set()
        for kind, *rest in self.trace.events:
            if kind == "backward":
                for x, value in self.arrived:
                    name, at = self.guards.tensors[id(x)], self.swept.index(value)
                    own = value.root is value and value.kind is RESULT and value not in given and value not in self.outs
                    given.add(value)
                    lines.append(f"    accumulate({name}._grad_edge, {name}, g{at}, {own}, False)")
            elif kind == "clear":
                lines.append(f"    {self.guards.tensors[id(rest[0])]}._grad = None")
            else:
                actor, args, kwargs = rest
                name = f"actor{len(space)}"
                space.update({name: actor, f"{name}_args": args, f"{name}_kwargs": kwargs})
                lines.append(f"    {name}.{kind}(*{name}_args, **{name}_kwargs)")
        return lines

    def structure(self, space: dict[str, object]) -> str:
        """Return an expression, as source text, for the object that the call returns, such as a tuple of tensors.

        The objects that the text uses are added to ``space``, the namespace of the generated function.
        """
        parts = []
        passed = {id(each): each._inner for each in self.trace.stands.values()}
        for index, each in enumerate(self.leaves):
            if id(each) in passed:
                parts.append(self.guards.tensors[id(passed[id(each)])])
            elif each.__class__ is Traced:
                parts.append(f"y{each._value.number}")
            elif isinstance(each, Tensor):
                parts.append(self.guards.tensors[id(each)])
            else:
                space[f"leaf{index}"] = each
                parts.append(f"leaf{index}")
        if self.spec.is_leaf():
            return parts[0]
        if self.spec.type is tuple and all(each.is_leaf() for each in self.spec.children_specs):
            return f"({', '.join(parts)},)" if parts else "()"
        space["whole"] = self.spec.unflatten
        return f"whole([{', '.join(parts)}])"


def _bump_version(x: Tensor) -> None:
    cell = x._version_counter
    if cell is not None:
        cell[0] += 1
        cell[1] = user_frame.user_location()


def _spent_node(array: Array) -> Node:
    """Return a graph node for ``array``, a result for which the compiled function has called ``backward()`` itself.

    A backward pass through the node raises the error for a graph that has been freed by an earlier backward pass.
    """
    node: _SpentNode = new(_SpentNode)
    node.edges, node.number, node.hooks = (), next_number(), None
    node.shape, node.dtype = array.shape, array.dtype
    node.code, node.instruction = user_frame.user_location()
    return node


class _SpentNode(Node):
    """Node of a result on which the compiled function has called ``backward()`` itself.

    A backward pass through the node raises the error for saved tensors that have been freed.
    """

    __slots__ = ()
    __module__ = "builtins"

    def vjp(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        raise freed_error(self)

    vjp_recorded = vjp


_SpentNode.__name__ = _SpentNode.__qualname__ = "CompiledFunctionBackward"


def as_contiguous(array: Array) -> Array:
    """Return a C-contiguous copy of the gradient ``array``, because generated programs require contiguous inputs."""
    return numpy.array(array, order="C")


class CompiledNode(Node):
    """Autograd node of a replayed call of a compiled function, whose gradients are computed by the backward program.

    With ``create_graph=True``, the forward pass is computed again by ordinary operations instead, and the engine
    differentiates their graph.
    """

    __slots__ = ("cells", "given", "saved", "versions")
    __module__ = "builtins"
    program: Program
    plan: Plan
    forms: Sequence[tuple[Shape, ArrayDType]]
    saved: Sequence[Array] | None
    cells: Sequence[VersionCounter | None]
    versions: Sequence[int]
    given: Sequence[Array] | None

    def vjp(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        saved = self.checked()
        grads = (grad,) if self.single else [
            numpy.zeros(*form) if each is None else each for each, form in zip(grad, self.forms, strict=True)
        ]  # fmt: skip
        grads = [each if each.__class__ is ndarray and each.flags.carray else as_contiguous(each) for each in grads]
        found = self.program.run(*grads, *saved)
        if not keep:
            self.saved = self.given = None
        return found[0] if len(self.edges) == 1 else found

    def checked(self) -> Sequence[Array]:
        """Return the arrays saved for the backward program; raise RuntimeError if they were freed or modified."""
        if self.saved is None:
            raise freed_error(self)
        for index, (cell, seen) in enumerate(zip(self.cells, self.versions, strict=True)):
            if cell is not None and cell[0] != seen:
                raise modified_inplace_error(self, self.saved[index], cell, seen, None)
        return self.saved

    def vjp_recorded(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        """Return the gradients for the incoming gradient ``grad`` as tensors with a graph, for ``create_graph=True``.

        The forward pass is computed again by ordinary operations. If ``keep`` is false, the saved arrays are freed.
        """
        self.checked()
        plan = self.plan
        before = set_recording(True)
        try:
            known: dict[Value, Tensor] = {}
            at = iter(self.edges)
            wanted = []
            for array, value in zip(self.given, plan.values, strict=True):  # type: ignore[arg-type]
                known[value] = at_edge(array, [0, None], next(at) if value.graded else None)
                if value.graded:
                    wanted.append(known[value])
            for array, value in zip(self.saved, plan.saved, strict=True):  # type: ignore[arg-type]
                if value in plan.drawn:
                    known[value] = wrap(array)
            outs = plan.again(known)
            grads = [grad] if self.single else list(grad)
            pairs = [(out, each) for out, each in zip(outs, grads, strict=True) if each is not None]
            found = grad_of(
                [out for out, _ in pairs], wanted, [each for _, each in pairs], create_graph=True, allow_unused=True
            )
        finally:
            restore_recording(before)
        if not keep:
            self.saved = self.given = None
        return found[0] if len(self.edges) == 1 else found
