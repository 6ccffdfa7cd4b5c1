"""Recording of one call: while a function runs, each of its operations is recorded as a step in a list, the tape.

A :class:`Trace` intercepts every call of a public function, as a ``TorchFunctionMode`` does, and replaces tensors among
the arguments by :class:`Traced` tensors. Every operation on a traced tensor calls ``Trace.process``, which runs and
records the operation. The recorded call returns its ordinary result. If an operation cannot be recorded,
``Trace.reason`` is set, and the remaining operations of the call run without being recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy

from ..core import torch_function
from ..core.grad_mode import recording
from ..core.pytree import tree_leaves, tree_map
from ..core.tensor import Tensor, wrap
from ..dispatch.generic_path import apply, modify
from ..dispatch.op import TENSORS
from ..dispatch.transform_tensor import TransformLevel, TransformTensor, active_levels, wrap_in
from ..kernels import indexing
from ..nn.parameter import Buffer, Parameter
from ..operations.creation.random import default_generator
from ..operations.indexing.getitem import MASK_DTYPES
from ..operations.nn.dropout import scaled_keep_mask
from ..runtime import user_frame
from .ir import CONSTANT, INPUT, RESULT, ExtraOp, Step, Tape, Value

if TYPE_CHECKING:
    from ..autograd.function import Function as CustomFunction
    from ..core.typing import (
        Args,
        Array,
        ArrayDType,
        ArrayModule,
        Function,
        Gradient,
        Kwargs,
        PyTree,
        RuleNamespace,
        Scalar,
        Shape,
    )
    from ..optim.optimizer import Optimizer
    from .typing import Members, Operand, Operands, Operation, Params, Results, RuleArgument

#: Functions that read a tensor's elements, so that the program may branch on them.
ELEMENT_READS = frozenset(
    """
    item tolist numpy __bool__ __float__ __int__ __index__ __complex__ __array__ __format__ __repr__ __contains__ data_ptr
    equal allclose is_nonzero untyped_storage storage __dlpack__ __reduce_ex__ __deepcopy__ to_sparse
    """.split()  # noqa: SIM905
)
#: Functions that change a tensor's storage, shape, hooks or place in the graph.
METADATA_CHANGES = frozenset(
    """
    backward grad register_hook retain_grad requires_grad_ register_post_accumulate_grad_hook detach_ set_ resize_ resize_as_
    share_memory_ is_set_to apply_ map_ map2_ swap_tensors
    """.split()  # noqa: SIM905
)
#: Functions that read only the shape and dtype of their tensors: the result is the same in every call.
SHAPE_ONLY = frozenset(
    """
    zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty new_tensor empty_strided new_empty_strided
    """.split()  # noqa: SIM905
)
#: Attributes that are read from the wrapped tensor without being recorded.
UNRECORDED_ATTRIBUTES = frozenset(
    """
    shape dtype device ndim requires_grad is_leaf layout itemsize nbytes is_cuda names is_sparse is_quantized is_mkldnn
    is_meta is_nested retains_grad output_nr grad_fn
    """.split()  # noqa: SIM905
)
DROPOUT = frozenset({"dropout"})


class Unrecorded(Exception):
    """Error for a call that cannot be compiled, raised if the function was compiled with ``fullgraph=True``."""


Unrecorded.__name__ = Unrecorded.__qualname__ = "Unsupported"
Unrecorded.__module__ = "torch._dynamo.exc"


class Traced(TransformTensor):
    """Tensor in a call that is being recorded.

    It wraps the tensor that was computed. ``_value`` is the :class:`Value` that represents it in the recorded steps.
    """

    __slots__ = ()
    sliced = True  # functions that read elements in Python then call by_slices
    _run: Trace
    _value: Value
    _held: Array  # its array, which an in-place operation may replace by one of another shape

    def process(self, op: Operation, tensors: Operands, params: Params, in_place: bool) -> Results:
        return self._run.process(op, tensors, params, in_place)

    def picked(self, x: Tensor, picks: list[Tensor | None]) -> Results:
        """Return ``x`` indexed by ``picks``, and record the indexing; ``x`` or some of ``picks`` are traced tensors.

        ``picks`` has an index tensor for each dimension of ``x``, or None where the index is ``:``.
        """
        return self._run.picked(x, picks)

    def put_picked(self, x: Tensor, picks: list[Tensor | None], values: Tensor, accumulate: bool) -> None:
        """Stop the recording, because an assignment by index tensors cannot be recorded, and assign ``values``.

        The elements of ``x`` are selected by ``picks``, which has an index tensor for each dimension of ``x``, or None
        where the index is ``:``. ``accumulate`` has no effect.
        """
        self._run.give_up("assigns to indices in a tensor")
        x, picks, values = self._run.plain((x, picks, values))
        x[tuple(slice(None) if each is None else each for each in picks)] = values

    def joined(self, tensors: Members, dim: int, join: Function) -> Results:
        return self._run.joined(tensors, dim, join)

    def by_slices(self, surface: Function, args: Args, kwargs: Kwargs) -> PyTree:
        if self._run.reason is None and surface.__name__ == "native_batch_norm":
            return self._run.normalised(surface, *args)
        self._run.give_up(f"{surface.__name__}() reads the elements of its tensors")
        return surface(*self._run.plain(args), **self._run.plain(kwargs))

    def dynamic(self, name: str) -> Exception:
        raise _NotRecordable(name)

    def custom(self, function: type[CustomFunction], args: Args) -> PyTree:
        self._run.give_up(f"calls the custom Function {function.__name__}")
        return function.apply(*self._run.plain(args))

    def refuse_out(self, name: str) -> Exception:
        raise _NotRecordable(name)

    def spread_as(self, made: Tensor) -> Tensor:
        return made

    def blank(self, members: Members, shape: Shape, dtype: ArrayDType) -> Tensor:
        return wrap(numpy.zeros(shape, dtype)).requires_grad_()

    def gradients(self, outs: Members, inputs: Members, grads: Members, solve: Function) -> list[Gradient]:
        raise _NotRecordable("gradients within a derivative")

    def merged(self, members: Members, build: Function) -> Results:
        raise _NotRecordable("a transformation")

    def detach(self) -> Tensor:
        """Return a tensor that shares the memory of ``self`` and has no gradient."""
        return self._run.detached(self)

    data = property(lambda self: self._run.detached(self), doc="Tensor with the same elements and no gradient.")

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        self._run.give_up("prints a tensor")
        return repr(self._inner)


Traced.__name__ = Traced.__qualname__ = "Tensor"


class _NotRecordable(Exception):
    """Signal that an operation cannot be recorded; the public function that called it runs again without recording."""


def _cat_rule(F: RuleNamespace, g: Gradient, step: Step) -> list[Gradient]:
    dim, at, found = step.params[0], 0, []
    for each in step.operands:
        size = each.shape[dim] if each.shape != (0,) or len(step.results[0].shape) == 1 else 0
        found.append(F.slice(g, dim, at, at + size, 1) if size else None)
        at += size
    return found


def _cat_kernel(np: ArrayModule, *given: RuleArgument) -> Array:
    *arrays, dim = given
    return np.ascontiguousarray(np.concatenate(arrays, dim))


CAT = ExtraOp("cat", _cat_kernel, _cat_rule)
STACK = ExtraOp(
    "stack",
    lambda np, *given: np.ascontiguousarray(np.stack(given[:-1], given[-1])),
    lambda F, g, step: [F.select(g, step.params[0], i) for i in range(len(step.operands))],
)
CAT.again = lambda given, params: TENSORS.cat(list(given), *params)
STACK.again = lambda given, params: TENSORS.stack(list(given), *params)


def _index_kernel(np: ArrayModule, *given: RuleArgument) -> Array:
    *operands, places, _ = given
    return indexing.take(np, operands[0], _full_index(operands[1:], places))


def _full_index(picks: Sequence[Array], places: tuple[bool, ...]) -> tuple[Array | None, ...]:
    """Return the index of a recorded indexing ``x[…]`` as a tuple of index arrays, and None for ``:``.

    A step stores the index in two parts: ``picks`` are the index arrays in their order, and ``places`` has a bool for
    each dimension of ``x``, which is true if the dimension is indexed by an array.
    """
    rest = iter(picks)
    return tuple([numpy.asarray(next(rest), numpy.int64) if each else None for each in places])


def _index_backward_kernel(np: ArrayModule, *given: RuleArgument) -> Array:
    *operands, places, shape = given
    return indexing.add_to_zeros(np, operands[0], shape, _full_index(operands[1:], places))


def _index_rule(F: RuleNamespace, g: Gradient, step: Step) -> list[Gradient]:
    run, shape = g._run, step.operands[0].shape
    picks = [run.standing[each] for each in step.operands[1:]]
    params = step.params[0], shape
    back = TENSORS.index_backward(g._inner, shape, _full_index([each._inner._array for each in picks], params[0]))
    return [run.noted(INDEX_BACKWARD, (g, *picks), params, back), *[None] * len(picks)]


def _index_again(given: Operands, params: Params) -> Tensor:
    picks = iter(given[1:])
    return given[0][tuple(next(picks) if each else slice(None) for each in params[0])]


INDEX, INDEX_BACKWARD = ExtraOp("index", _index_kernel, _index_rule), ExtraOp("index_backward", _index_backward_kernel)
INDEX.again = _index_again
DROP = ExtraOp(
    "dropout_factor",
    lambda np, x, p: scaled_keep_mask(wrap(x), p, False)._array,
)
#: Operations that run in every call, even if their operands are constant or their results unused.
EFFECTS = frozenset({DROP})


class Trace(TransformLevel):
    """Recorder of one call of a compiled function; ``reason`` is why the call cannot be compiled, or None.

    If ``fullgraph`` is true, an operation that cannot be recorded raises an error. Calls of the optimisers in
    ``optimizers`` are recorded. ``sweep`` is the function that appends a backward pass to the recorded steps.
    """

    strict = False
    size = 1

    def __init__(
        self, fullgraph: bool = False, optimizers: Sequence[Optimizer] = (), sweep: Function | None = None
    ) -> None:
        super().__init__()
        self.optimizers, self.sweep = optimizers, sweep
        self.events: list[Params] = []  # backward passes, cleared gradients and optimiser calls, in order
        self.arrived: list[tuple[Tensor, Value]] = []  # leaves, with the gradient that a backward pass has added
        self.swept: list[Value] = []  # the losses of these backward passes
        self.versions: dict[int, int] = {}  # version of each input when it was first used
        self.tape = Tape()
        self.fullgraph = fullgraph
        self.reason: str | None = None
        self.inputs: dict[int, tuple[Tensor, Value]] = {}  # by identity of the tensor
        self.stands: dict[int, Traced] = {}
        self.arrays: dict[int, Value] = {}  # by identity of the array
        self.standing: dict[Value, Traced] = {}
        self.kept: list[object] = []  # references that keep the identities valid
        self.written: set[Traced] = set()  # inputs that are modified in place
        self.bumped: list[Tensor] = []  # tensors that a kernel modifies in place
        self.quiet = False  # whether derivatives are being recorded, which have no user's line
        self.viewed: set[Value] = set()  # values that have views

    # -- Entering and leaving

    def __enter__(self) -> Trace:
        self.position = _rng_state()
        torch_function.enter_mode(self)
        for each in self.optimizers:
            for name in ("step", "zero_grad"):
                vars(each)[name] = self._acting(each, name, vars(each).get(name))
            if "_step_watched" in vars(each) and each._step_watched is vars(each)["step"].before:
                each._step_watched = vars(each)["step"]
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for each in self.optimizers:
            if "_step_watched" in vars(each) and each._step_watched is vars(each)["step"]:
                each._step_watched = vars(each)["step"].before
            for name in ("step", "zero_grad"):
                before = vars(each).pop(name).before
                if before is not None:
                    vars(each)[name] = before
        torch_function.leave_mode(self)

    def _acting(self, optimizer: Optimizer, name: str, before: Function | None) -> Function:
        """Return a replacement of the method ``name`` of ``optimizer`` that records each call and runs the method.

        ``before`` is an earlier replacement of the method, an attribute of the instance, or None. It is stored as the
        attribute ``before`` of the replacement, so that it can be restored.
        """
        plain = getattr(optimizer, name)

        def act(*args: object, **kwargs: object) -> object:
            if args[: name == "step"] or "closure" in kwargs:
                self.give_up("an optimiser's step with a closure")
            if self.reason is None:
                self.events.append((name, optimizer, args, kwargs))
            quiet, self.quiet = self.quiet, True
            try:
                with torch_function.disabled_overrides(torch_function.NONE):
                    return plain(*args, **kwargs)
            finally:
                self.quiet = quiet

        vars(act)["before"] = before
        return act

    def stepped(self) -> bool:
        """Whether the recorded call has called the ``step`` method of an optimiser."""
        return any(each[0] == "step" for each in self.events)

    def changed(self) -> str | None:
        """Return why the call cannot be compiled if a tensor was modified by an operation that was not recorded.

        Only the tensors that the recorded call reads are checked. The result is None if none was modified.
        """
        held = {id(each) for one in self.optimizers for group in one.param_groups for each in group["params"]}
        known = {id(each._inner) for each in self.written} | {id(each) for each in self.bumped}
        known |= held if self.stepped() else set()
        for x, _ in self.inputs.values():
            cell = x._version_counter
            if cell is not None and id(x) not in known and cell[0] != self.versions[id(x)]:
                return "modifies a tensor in a way that is not recorded"
        return None

    def _backward(self, loss: Traced) -> None:
        """Run ``loss.backward()``, called by the recorded function, and append a backward pass to the recorded steps.

        If the backward pass cannot be recorded (because of hooks, for example), the recording stops.
        """
        leaves = [(x, value) for x, value in self.inputs.values() if value.graded and x.is_leaf]
        if any(value.graded and not x.is_leaf for x, value in self.inputs.values()) or self.arrived:
            self.give_up("backward() through inputs that are no leaves, or a second backward()")
        elif any(x._grad_edge.hooks is not None for x, _ in leaves):  # type: ignore[union-attr]
            self.give_up("backward() with hooks on leaves")
        elif loss._value.size != 1 or self.stepped():
            self.give_up("backward() of a tensor with several elements, or after an optimiser's step")
        if self.reason is None:
            found = self.sweep(self, loss._value, [value for _, value in leaves])  # type: ignore[misc]
            self.arrived = [(x, grad) for (x, _), grad in zip(leaves, found, strict=True) if grad is not None]
            self.swept.append(loss._value)
            self.events.append(("backward",))
        loss._inner.backward()

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Context manager in which gradient rules are recorded: their operations, without lines of the user's program.

        Calls of public functions are not intercepted in it; only the operations on traced tensors are recorded.
        """
        inside = any(each is self for each in active_levels())
        if not inside:
            TransformLevel.__enter__(self)
        self.quiet = True
        try:
            yield
        finally:
            self.quiet = False
            if not inside:
                TransformLevel.__exit__(self)

    def give_up(self, reason: str) -> None:
        """Stop the recording because of ``reason``; raise an error if ``fullgraph`` is true.

        Otherwise the call continues without being recorded.
        """
        if self.reason is None:
            place = "" if self.quiet else user_frame.describe(*user_frame.user_location())
            self.reason = f"{reason}{' in ' + place if place else ''}"
            if self.fullgraph:
                raise Unrecorded(f"{self.reason}. Remedy: remove fullgraph=True, or this operation.")

    def met(self, function: Function) -> None:
        self.give_up(f"calls the custom Function {function.__name__}")

    # -- Tensors and their traced wrappers

    def plain(self, tree: PyTree) -> PyTree:
        """Return ``tree``, a nested structure, with each traced tensor replaced by the tensor that it wraps."""
        return tree_map(lambda each: each._inner if each.__class__ is Traced else each, tree)

    def traced(self, inner: Tensor, value: Value) -> Traced:
        """Return a new traced tensor that wraps ``inner`` and is represented by ``value`` in the recorded steps."""
        made: Traced = wrap_in(Traced, self, inner)
        made._value, made._held = value, inner._array
        self.arrays[id(inner._array)] = value
        self.kept.append((inner, inner._array))
        self.standing[value] = made
        return made

    def taken(self, x: PyTree) -> PyTree:
        """Return a traced tensor for ``x`` if ``x`` is an ordinary tensor, which becomes an input of the recording.

        Any other object is returned unchanged.
        """
        if not isinstance(x, Tensor) or x.__class__ is Traced:
            return x
        found = self.stands.get(id(x))
        if found is None:
            value = self.tape.value(INPUT, x._array, x.requires_grad)
            self.versions[id(x)] = 0 if x._version_counter is None else x._version_counter[0]
            self.inputs[id(x)] = x, value
            found = self.stands[id(x)] = self.traced(x, value)
        return found

    def constant(self, made: Tensor) -> Tensor:
        """Return a traced tensor for ``made``, a tensor that has the same elements in every call.

        If ``made`` requires gradients, the recording stops and ``made`` is returned.
        """
        if made.requires_grad:
            self.give_up("creates a tensor that requires gradients")
            return made
        return self.traced(made, self.tape.value(CONSTANT, made._array.copy()))

    def detached(self, x: Traced) -> Tensor:
        """Return a tensor that shares the memory of ``x`` and has no gradient, and record the operation."""
        with torch_function.disabled_overrides(torch_function.NONE):
            inner = x._inner.detach()
        if self.reason is not None:
            return inner
        return self.noted(TENSORS.alias.op, (x,), (), inner)

    def operand(self, x: Tensor | Scalar | None) -> Operand:
        """Return the :class:`Value` that represents the operand ``x``; numbers and None are returned unchanged."""
        if x.__class__ is Traced:
            if x._inner._array is not x._held:
                self.give_up("changes the shape of a tensor in place")
            return x._value
        if not isinstance(x, Tensor):
            return x
        known = self.arrays.get(id(x._array))
        if known is not None:
            return known
        if x.requires_grad or id(x) in self.inputs:
            return self.taken(x)._value
        return self.constant(x)._value

    # -- Public functions

    def __torch_function__(
        self, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> PyTree:
        kwargs = kwargs or {}
        if self.reason is None:
            return self.called(func, args, kwargs)
        return func(*self.plain(args), **self.plain(kwargs))

    def called(self, func: Function, args: Args, kwargs: Kwargs) -> PyTree:
        """Return the result of calling the public function ``func``, and record the call if possible."""
        name = _name_of(func)
        if name in UNRECORDED_ATTRIBUTES:
            return func(*args, **kwargs)
        if name == "backward" and args[0].__class__ is Traced and not any(args[1:]) and not any(kwargs.values()):
            return self._backward(args[0])
        if name == "grad" and len(args) == 2 and args[1] is None and func.__name__ == "__set__":
            self.events.append(("clear", self.taken(args[0])._inner))
            return func(*self.plain(args))
        if (reason := self._refused(func, name, args, kwargs)) is not None:
            self.give_up(reason)
            return func(*self.plain(args), **self.plain(kwargs))
        given, named = tree_map(self.taken, args), tree_map(self.taken, kwargs)
        if name in ("detach", "data"):
            return self.detached(given[0])
        try:
            if name in DROPOUT and (found := self._dropped(*given, **named)) is not None:
                return found
            result = func(*given, **named)
        except _NotRecordable as error:
            self.give_up(f"{name}(): {error} can not be recorded")
            return func(*self.plain(args), **self.plain(kwargs))
        if self.reason is not None:
            return self.plain(result)
        if not _rng_unchanged(self.position):
            self.give_up(f"{name}() draws random numbers")
            return self.plain(result)
        return self.received(name, given, named, result)

    def _refused(self, func: Function, name: str, args: Args, kwargs: Kwargs) -> str | None:
        if name in ELEMENT_READS:
            return f"reads elements by {name}()" if name[0] != "_" else f"reads elements by {name}"
        if name in METADATA_CHANGES:
            return f"{name}() in the compiled function"
        if kwargs.get("out") is not None:
            return f"{name}(out=)"
        if kwargs.get("generator") is not None:
            return f"{name}(generator=)"
        if not _rng_unchanged(self.position):
            return "sets or uses the state of the random generator"
        if name in ("__getitem__", "__setitem__", "index_put", "index_put_") and _has_mask(args):
            return "indexing by a mask, because the result's size depends on its elements"
        if getattr(func, "__name__", "") in ("__set__", "__delete__"):
            return f"sets {name} of a tensor"
        for each in tree_leaves((args, kwargs)):
            if isinstance(each, numpy.ndarray):
                return f"{name}() of a NumPy array"
            if isinstance(each, Tensor) and each.__class__ is not Traced and not _is_plain_tensor(each):
                return f"a tensor of class {type(each).__name__}"
        return None

    def received(self, name: str, args: Args, kwargs: Kwargs, result: PyTree) -> PyTree:
        """Return ``result`` with its ordinary tensors replaced by traced tensors.

        ``result`` is the result of the public function ``name``, called with ``args`` and ``kwargs``. An ordinary
        tensor in it was not computed by a recorded operation. If no argument is a tensor, as for ``zeros``, it becomes
        a constant of the recording; otherwise the recording stops.
        """
        leaves = tree_leaves((args, kwargs))
        of_tensors = any(each.__class__ is Traced for each in leaves)

        def seen(each: PyTree) -> PyTree:
            if not isinstance(each, Tensor) or each.__class__ is Traced or self.reason is not None:
                return each
            known = next((one for one in leaves if one.__class__ is Traced and one._inner is each), None)
            if known is not None:
                return known
            if of_tensors and name not in SHAPE_ONLY:
                self.give_up(f"{name}() is not recorded")
                return each
            return self.constant(each)

        found = tree_map(seen, result)
        return found if self.reason is None else self.plain(found)

    def _dropped(
        self, input: Traced, p: float = 0.5, training: bool = True, inplace: bool = False, train: bool | None = None
    ) -> Results:
        """Compute and record a call of ``nn.functional.dropout``, and return the result.

        The parameters are those of the function. The random draw is recorded as a separate step, so that it is repeated
        in every call. The result is None for a call that this method does not support, such as one with
        ``inplace=True``.
        """
        training = training if train is None else train
        if not training or not 0 < p < 1 or inplace or not input._array.size or not input._array.flags.c_contiguous:
            return None
        factor = scaled_keep_mask(input._inner, p, False)
        self.position = _rng_state()
        step = self.noted(DROP, (input,), (p,), factor)
        return TENSORS.mul(input, step)

    # -- Operations

    def process(self, op: Operation, tensors: Operands, params: Params, in_place: bool) -> Results:
        """Run and record the operation ``op``, and return its results as traced tensors.

        ``tensors`` are the operands and ``params`` the parameters. If ``in_place`` is true, the first operand is
        modified.
        """
        inner = self.plain(tensors)
        if self.reason is None and (reason := self._unsuitable(op, tensors, params, in_place)) is not None:
            self.give_up(reason)
        operands = tuple(map(self.operand, tensors)) if self.reason is None else ()
        if self.reason is not None:
            return modify(op, inner, params) if in_place else apply(op, inner, params)
        if not in_place:
            return self.noted(op, tensors, params, apply(op, inner, params), operands)
        return self._modified(op, tensors, params, inner, operands)

    def _unsuitable(self, op: Operation, tensors: Operands, params: Params, in_place: bool) -> str | None:
        if self.stepped() and op.name != "alias":
            return "computes after an optimiser's step"
        if op.vmap == "dynamic":
            return f"{op.shown}, because the result's size depends on the elements"
        for each in tensors:
            if isinstance(each, Tensor) and each._array.__class__ is not numpy.ndarray:
                return "a tensor on a GPU"
            if isinstance(each, Tensor) and each._array.dtype.kind == "c":
                return "complex numbers"
        for each in tree_leaves(params):
            known = self.arrays.get(id(each)) if isinstance(each, numpy.ndarray) else None
            if op.name == "batch_norm_block" and not isinstance(each, Tensor):
                continue
            if isinstance(each, Tensor) or (known is not None and known.kind is not CONSTANT):
                return f"{op.name} with a tensor as a parameter"
        if in_place and tensors[0].__class__ is not Traced:
            return "modifies a tensor that is neither an argument nor a result"
        return None

    def noted(
        self,
        op: Operation,
        tensors: Operands,
        params: Params,
        result: Results,
        operands: tuple[Operand, ...] | None = None,
    ) -> Results:
        """Record a step that computes ``result``, a tensor or a tuple of tensors, and return traced tensors for it.

        The step applies ``op`` to ``tensors`` with the parameters ``params``. ``operands`` are the :class:`Value`
        objects of ``tensors``, if these are already known.
        """
        operands = tuple(map(self.operand, tensors)) if operands is None else operands
        outs = result if isinstance(result, tuple) else (result,)
        if op not in EFFECTS and all(each.__class__ is not Value or each.kind is CONSTANT for each in operands):
            found = [self.constant(out) for out in outs]
            return tuple(found) if isinstance(result, tuple) else found[0]
        values = []
        for out in outs:
            value = self.tape.value(RESULT, out._array, out.requires_grad)
            self._find_root(value, out._array, tensors)
            values.append(value)
        self.tape.steps.append(
            Step(
                op,
                operands,
                params,
                values,
                isinstance(result, tuple),
                (None, -1) if self.quiet else user_frame.user_location(),
                op in EFFECTS,
            )
        )
        found = [self.traced(out, value) for out, value in zip(outs, values, strict=True)]
        return tuple(found) if isinstance(result, tuple) else found[0]

    def _find_root(self, value: Value, array: Array, tensors: Operands) -> None:
        """Store in ``value.root`` of which recorded array the result ``array`` is a view, if of any.

        ``value`` describes ``array``, and ``tensors`` are the operands of the operation that returned ``array``.
        """
        for each in tensors:
            if isinstance(each, Tensor) and array.size and numpy.may_share_memory(array, each._array):
                value.root = self.operand(each).root
                self.viewed.add(value.root)
                return

    def _modified(
        self, op: Operation, tensors: Operands, params: Params, inner: Operands, operands: tuple[Operand, ...]
    ) -> Results:
        """Run and record the in-place operation ``op``; return the modified tensor, which gets a new :class:`Value`.

        ``inner`` are ``tensors`` without their wrappers, and ``operands`` are their :class:`Value` objects.
        """
        x: Traced = tensors[0]
        value = x._value
        if value.root in self.viewed or value.root is not value:
            self.give_up(f"{op.shown}_() on a view, or on a tensor with views")
        elif id(x._inner) in self.inputs and self.stands[id(x._inner)] is x:  # an input of the call
            if recording() and any(isinstance(each, Tensor) and each.requires_grad for each in inner):
                self.give_up(f"{op.shown}_() on an argument while gradients are recorded")
            self.written.add(x)
        modify(op, inner, params)
        if self.reason is not None:
            return x._inner
        made = self.tape.value(RESULT, x._inner._array, x._inner.requires_grad)
        self.tape.steps.append(Step(op, operands, params, (made,), False, user_frame.user_location(), in_place=True))
        before: Traced = wrap_in(Traced, self, x._inner.detach())
        before._value, before._held, self.standing[value] = value, x._held, before
        x._value, self.standing[made] = made, x
        self.arrays[id(x._inner._array)] = made
        return x

    def picked(self, x: Tensor, picks: list[Tensor | None]) -> Results:
        """Return ``x`` indexed by ``picks``, a list of integer tensors and None for ``:``, and record the indexing."""
        inner, given = self.plain(x), self.plain(picks)
        result = inner[tuple(slice(None) if each is None else each for each in given)]
        if self.reason is not None:
            return result
        places = tuple(each is not None for each in picks)
        return self.noted(INDEX, (x, *[each for each in picks if each is not None]), (places, None), result)

    def normalised(self, surface: Function, *given: RuleArgument) -> Results:
        """Call ``surface``, the function ``native_batch_norm``, with ``given``; record the call and return the result.

        When the recorded call is replayed, it updates the running statistics again. The recording stops if the running
        statistics are not tensors of the user's program, for example because they were computed in the call.
        """
        running = [each for each in given[3:5] if each is not None]
        if any(self.stands.get(id(each._inner)) is not each for each in running):
            self.give_up("batch normalisation with running statistics that are no inputs")
            return surface(*self.plain(given))
        found = surface(*given[:3], *self.plain(given[3:5]), *given[5:])
        if given[5] and self.reason is None:
            step = next(each for each in reversed(self.tape.steps) if each.op.name == "batch_norm_block")
            step.effect = True
            self.bumped += [each._inner for each in running]
        return found

    def joined(self, tensors: Members, dim: int, join: Function) -> Results:
        """Return ``join(tensors, dim)`` and record the call; ``join`` is ``cat`` or ``stack``."""
        inner = self.plain(list(tensors))
        result = join(inner, dim)
        kinds = {each._array.dtype for each in inner}
        if self.reason is None and (len(kinds) > 1 or any(each._array.shape == (0,) for each in inner)):
            self.give_up("cat of several dtypes, or of empty tensors")
        if self.reason is not None:
            return result
        if join.__name__ not in ("cat", "stack") or not isinstance(dim, int):
            self.give_up(f"{join.__name__}() is not recorded")
            return result
        op = STACK if join.__name__ == "stack" else CAT
        return self.noted(op, tuple(tensors), (dim % result._array.ndim,), result)


def _name_of(func: Function) -> str:
    """Return the name of the public function ``func``.

    If ``func`` is the getter or setter of an attribute, the result is the name of the attribute.
    """
    held = getattr(func, "__self__", None)
    if held.__class__ is property:
        return str(getattr(held.fget, "__name__", ""))
    return str(getattr(func, "__name__", func))


def _has_mask(args: Args) -> bool:
    return any(isinstance(each, Tensor) and each.dtype in MASK_DTYPES for each in tree_leaves(args[1:]))


def _is_plain_tensor(x: Tensor) -> bool:
    return x.__class__ in (Tensor, Parameter, Buffer) and x._array.__class__ is numpy.ndarray


def _rng_state() -> tuple[object, ...]:
    """Return the parts of the default random generator's state that change when it draws numbers or is seeded."""
    stream = default_generator._stream
    return stream._words, stream._position, stream.kept, stream.initial_seed


def _rng_unchanged(before: tuple[object, ...]) -> bool:
    """Whether the default random generator has neither drawn numbers nor been seeded since its state was ``before``.

    ``before`` is a result of :func:`_rng_state`.
    """
    now = _rng_state()
    return now[0] is before[0] and now[1:] == before[1:]
