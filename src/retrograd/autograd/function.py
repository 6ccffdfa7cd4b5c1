"""``Function``: user-defined operations with their own forward and backward.

A call creates one graph node, which is also the ``ctx`` that ``forward`` and ``backward`` receive. When a result of the
call is saved, the node stores its array and version counter but not the Tensor, because the Tensor references the node
and the two would form a reference cycle. See https://docs.pytorch.org/docs/stable/notes/extending.html.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from ..compat.module_names import shown_in
from ..core import anomaly_mode
from ..core.devices import array_module_of
from ..core.error_context import describe_definition, describe_origin, with_remedy
from ..core.error_context import describe_recording as recorded_at
from ..core.grad_mode import no_grad, recording, restore_recording, set_recording
from ..core.gradients import as_tensor, unwrap_unless_recorded
from ..core.graph import AccumulateGrad, Node, OutputEdge, next_number
from ..core.saved_tensor_hooks import PackedValue, active_hooks
from ..core.tensor import Tensor, at_edge, wrap
from ..core.views import (
    CUSTOM,
    bump_version,
    check_creation,
    current_edge,
    freed_error,
    modified_inplace_error,
    rebase_history,
    version_of,
)
from ..dispatch.generic_path import INFERENCE_SAVED, NO_INFERENCE
from ..dispatch.intercept import GO_ON, HANDLERS, intercept
from ..dispatch.saved_values import FREED, SavedTensor
from ..dispatch.transform_tensor import TransformTensor, active_levels, innermost
from ..operations.shape.views import alias
from ..runtime import user_frame
from ..runtime.timed_functions import profiled
from ..runtime.user_frame import warn


class _SavedResult:
    """Saved tensor that is a result of the operation whose graph node saves it.

    The node stores its array and its version counter. A reference to the Tensor would form a reference cycle, because
    the Tensor references the node.
    """

    __slots__ = ("array", "counter", "position", "version")

    def __init__(self, tensor: Tensor, position: int) -> None:
        self.array, self.counter, self.position = tensor._array, tensor._version_counter, position
        self.version = self.counter[0] if self.counter else 0

    def tensor(self, node: Any) -> Tensor:
        edge = node if node.single else OutputEdge(node, self.position, self.array.shape, self.array.dtype)
        if self.counter and self.counter[0] != self.version:
            raise modified_inplace_error(node, self.array, self.counter, self.version, edge)
        return at_edge(self.array, self.counter, edge if self.array.dtype.kind in "fcVW" else None)


class _SavedTensor:
    """Saved tensor that is stored as a reference to the Tensor, such as an argument of a custom ``Function``.

    Results of the node that saves them are stored as :class:`_SavedResult` instead.
    """

    __slots__ = ("source", "version")

    def __init__(self, tensor: Tensor) -> None:
        if tensor._version_counter is None and not Tensor._in_transform():
            raise RuntimeError(f"{INFERENCE_SAVED} {NO_INFERENCE}")
        self.source, self.version = tensor, version_of(tensor)

    def tensor(self, node: Any) -> Tensor:
        counter = self.source._version_counter
        if counter and counter[0] != self.version:
            raise modified_inplace_error(node, self.source._array, counter, self.version, current_edge(self.source))
        return self.source


class _SavedPacked:
    """Saved tensor that is stored as the return value of the user's pack hook (see ``saved_tensors_hooks``)."""

    __slots__ = ("edge", "packed", "position")

    def __init__(self, packed: PackedValue, edge: Any, position: int | None) -> None:
        self.packed, self.edge, self.position = packed, edge, position

    def tensor(self, node: Any) -> Tensor:
        tensor = self.packed.unpack()
        edge, array = self.edge, tensor._array
        if self.position is not None:
            edge = node if node.single else OutputEdge(node, self.position, array.shape, array.dtype)
        return tensor if edge is None or array.dtype.kind not in "fcVW" else at_edge(array, [0, None], edge)


class _RawSaved(SavedTensor):
    """Item number ``index`` of ``ctx._raw_saved_tensors``: a saved tensor, on which hooks can be registered."""

    __slots__ = ("_index", "_owner")
    __module__ = shown_in("torch._C._autograd", __name__)

    def __init__(self, node: Any, index: int) -> None:
        self._owner, self._index = node, index

    def held(self) -> Any:
        saved = self._owner._saved
        value = FREED if saved is None else saved[self._index]
        if value is None or value is FREED:
            return value
        return value.packed if value.__class__ is _SavedPacked else value.tensor(self._owner)

    def hold(self, packed: PackedValue) -> None:
        node, saved = self._owner, list(self._owner._saved)
        value = saved[self._index]
        of_result = value.__class__ is _SavedResult
        edge = None if of_result else current_edge(value.source)
        saved[self._index] = _SavedPacked(packed, edge, value.position if of_result else None)
        node._saved = tuple(saved)


_RawSaved.__name__ = _RawSaved.__qualname__ = "SavedTensor"


class FunctionCtx:
    """Base class of ``ctx``, the object in which ``forward`` stores values for ``backward``.

    >>> class Scale(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x, factor):
    ...         ctx.factor = factor
    ...         return factor * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         assert isinstance(ctx, torch.autograd.function.FunctionCtx)
    ...         return ctx.factor * g, None
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> Scale.apply(x, 5.0).backward()
    >>> x.grad
    tensor(5.)
    """

    __module__ = shown_in("torch.autograd.function", __name__)

    def save_for_backward(self, *tensors: Any) -> None:
        """Save the Tensors ``tensors`` (or None) for ``backward``, which reads them as ``ctx.saved_tensors``.

        Reading them raises RuntimeError if one was modified in place after it was saved. Call this method at most once,
        in ``forward`` or ``setup_context``. Values that are not tensors can be saved as attributes of ``ctx``.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save the Tensors ``tensors`` (or None) for ``jvp``, which reads them as ``ctx.saved_tensors``."""
        for each in tensors:
            if not isinstance(each, Tensor) and each is not None:
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on "
                    "ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Declare that ``forward`` modified the inputs ``args`` in place; ``forward`` must return each of them."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Declare that the results ``args`` have no gradient; ``backward`` receives zeros as the gradient of each."""
        self.non_differentiable = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Warn that the method is deprecated, and do nothing else."""
        warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked. Note that calls to "
            "`set_()` are not tracked",
            FutureWarning,
        )

    def set_materialize_grads(self, value: bool) -> None:
        """Set what ``backward`` receives for a missing gradient: zeros if ``value`` is true (the default), or None."""
        self.materialize_grads = value


class Itself:
    """Descriptor of an attribute whose value is the object itself, until it is assigned."""

    def __get__(self, instance: Any, owner: type) -> Any:
        return instance


class BackwardCFunction(FunctionCtx, Node):
    """Base class of the graph nodes that are created by calls of a :class:`Function`."""

    __slots__ = ()
    __module__ = shown_in("torch.autograd.function", __name__)
    takes_none: ClassVar[bool] = True
    _forward_cls: ClassVar[Any]
    to_save: Any = ()
    saved_for_forward: Any = ()
    dirty_tensors: Any = ()
    non_differentiable: Any = ()
    materialize_grads: bool = True
    _materialize_non_diff_grads: bool = True  # whether zeros are passed for results that are not differentiable
    _constant_results: frozenset[int] = frozenset()  # positions of the results marked as non-differentiable
    needs_input_grad: tuple[bool, ...] = ()
    node = Itself()  # not a property, so that a program can use the name for an attribute of its own
    position = 0
    _saved: Any = ()  # the saved forms of `to_save`; None after they were freed
    _operands_at: tuple[int, ...] = ()  # for each edge, the index of its argument
    _arguments: int = 0
    _forward_mode: bool = False  # whether `jvp` is running
    _forms: tuple[Any, ...] = ()  # shape, dtype and device of each result, None for one that is no tensor

    _own: dict[str, Any] | None = (
        None  # attributes of the program whose names the engine uses; see _take_own_attributes
    )

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Tensors passed to :meth:`save_for_backward`, or in ``jvp`` those passed to :meth:`save_for_forward`."""
        if self._forward_mode:
            return tuple(self.saved_for_forward)
        if self._saved is None:
            raise freed_error(self)
        if not self._saved and self.to_save:
            return tuple(self.to_save)  # read during forward
        return tuple(None if each is None else each.tensor(self) for each in self._saved)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """Deprecated alias of :attr:`saved_tensors`."""
        warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        if self._saved is None:
            raise freed_error(self)
        return tuple(_RawSaved(self, index) for index in range(len(self._saved)))

    def vjp(self, grad: Any, edges: tuple[Any, ...], keep: bool) -> Any:
        grads = [as_tensor(each) for each in ((grad,) if self.single else grad)]
        found = [unwrap_unless_recorded(each, False) for each in self._call_backward(grads, edges)]
        if not keep:
            self._release()
        return found[0] if len(edges) == 1 else tuple(found)

    def vjp_recorded(self, grad: Any, edges: tuple[Any, ...], keep: bool) -> Any:
        found = self._call_backward(list((grad,) if self.single else grad), edges)
        if not keep:
            self._release()
        return found[0] if len(edges) == 1 else tuple(found)

    def _release(self) -> None:
        if self._saved:
            self._saved = None

    def _call_backward(self, grads: list[Any], edges: tuple[Any, ...]) -> list[Any]:
        """Call the user's ``backward`` with ``grads``, and return a list of gradients, one for each of ``edges``.

        ``grads`` are the gradients of the results, and ``edges`` the gradient edges of the tensor arguments. An error
        is raised if the number or a type of the returned gradients is wrong.
        """
        if self.materialize_grads:
            for index, form in enumerate(self._forms):
                if grads[index] is None and form is not None:
                    shape, dtype, module = form
                    grads[index] = wrap(module.zeros(shape, dtype))
        kind = self._forward_cls
        if kind.backward is not Function.backward and kind.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement "
                f"one of them. {kind.__name__} has a backward{describe_definition(kind.backward)} and a "
                f"vjp{describe_definition(kind.vjp)}. Remedy: delete one."
            )
        run = kind.vjp if kind.vjp is not Function.vjp else kind.backward
        results = self._call(run, *grads)
        return self._checked_gradients(results if isinstance(results, tuple) else (results,), edges)

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function(self, *args)``, a method of the program, with the program's attributes in place."""
        if self._own is None:
            return function(self, *args)
        names = list(self._own)
        engine = {name: getattr(self, name) for name in names}
        for name in names:
            setattr(self, name, self._own[name])
        try:
            return function(self, *args)
        finally:
            self._own = {name: getattr(self, name) for name in names}
            for name in names:
                setattr(self, name, engine[name])

    def _checked_gradients(self, results: tuple[Any, ...], edges: tuple[Any, ...]) -> list[Any]:
        name, count = type(self).__name__, self._arguments
        if len(results) > count and all(each is None for each in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {count}, got {len(results)})."
                f"{recorded_at(self)} Remedy: return one gradient, or None, for each argument of forward."
            )
        for index, each in enumerate(results):
            if each is None:
                continue
            if index not in self._operands_at:
                raise RuntimeError(
                    f"function {name} returned a gradient different than None at position {index + 1}, but the "
                    f"corresponding forward input was not a Variable.{recorded_at(self)} Remedy: return None there."
                )
            if not isinstance(each, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(each).__name__}).{recorded_at(self)} Remedy: let {name} return a "
                    "tensor, or None, for each argument of forward."
                )
        return [None if edge is None else results[at] for at, edge in zip(self._operands_at, edges, strict=True)]


#: Names that the engine uses for attributes of a node.
_ENGINE_NAMES = frozenset(
    name for kind in BackwardCFunction.__mro__[:-1] for name in vars(kind) if not name.startswith("_")
) - frozenset(vars(FunctionCtx)) - {
    "dirty_tensors", "materialize_grads", "metadata", "needs_input_grad", "next_functions", "non_differentiable",
    "requires_grad", "saved_for_forward", "saved_tensors", "saved_variables", "to_save",
}  # fmt: skip


def _take_own_attributes(ctx: Any, edges: Any, number: int, code: Any, instruction: int) -> None:
    """Keep the attributes that ``forward`` has set under names of the engine, for example ``ctx.shape``, in ``_own``.

    The other arguments are the values that these attributes had before ``forward``. A node and its ``ctx`` are one
    object, as in PyTorch. ``backward`` finds the program's values: see ``BackwardCFunction._call``.
    """
    before = {"edges": edges, "number": number, "hooks": None, "code": code, "instruction": instruction,
              "shape": None, "dtype": None}  # fmt: skip
    own = {name: getattr(ctx, name) for name, value in before.items() if getattr(ctx, name) is not value}
    own |= {name: ctx.__dict__.pop(name) for name in _ENGINE_NAMES & ctx.__dict__.keys()}
    for name in own.keys() & before.keys():
        setattr(ctx, name, before[name])
    ctx._own = own


class FunctionMeta(type):
    """Metaclass of :class:`Function` that creates the node class ``<name>Backward`` of each subclass."""

    _backward_cls: Any

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> None:
        super().__init__(name, bases, body)
        body = {"__module__": "torch.autograd.function", "__slots__": (), "_forward_cls": cls}
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), body)


_LEGACY = (
    "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with "
    "static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
    " Remedy: make forward and backward static methods, and call apply."
)


class Function(metaclass=FunctionMeta):
    """Base class of user-defined operations: write ``forward`` and ``backward`` in a subclass, and call ``apply``.

    >>> import retrograd as torch
    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 3 * x**2
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.Function.
    """

    __module__ = shown_in("torch.autograd.function", __name__)
    generate_vmap_rule: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future version "
            "of PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_LEGACY)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result: ``forward(ctx, *args)``, or ``forward(*args)`` if the class has :meth:`setup_context`.

        Operations inside ``forward`` are not recorded in the graph. Arguments may be of any type; only tensors receive
        gradients.
        """
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function. Remedy: write a static method "
            "forward(ctx, *args)."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save in ``ctx`` the values that ``backward`` needs, for a ``forward`` without the argument ``ctx``.

        ``inputs`` are the arguments of ``forward``, and ``output`` is its result.
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of all arguments of ``forward``, from ``grad_outputs``, the gradients of its results.

        For arguments that are not tensors, the gradient is None.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD. Remedy: write a static method backward(ctx, *grads), which returns a gradient for each "
            "argument of forward."
        )

    vjp = backward

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Return the results for batched arguments, and a tuple with the batch dimension of each result.

        The batch dimension is None for a result that is not batched. ``info`` has the attributes ``batch_size`` and
        ``randomness``. ``in_dims`` has the batch dimension of each of ``args``.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangents of the results, computed from ``grad_inputs``, the tangents of the arguments.

        ``grad_inputs`` has None for an argument without a tangent.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    @profiled(lambda cls, *args, **kwargs: cls.__name__, operation=True)
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call ``forward`` with ``args`` and ``kwargs``, record the call as one graph node, and return the result."""
        if HANDLERS and (answer := intercept(vars(Function)["apply"].__func__, (cls, *args), kwargs)) is not GO_ON:
            return answer
        split = cls.setup_context is not Function.setup_context
        if split or kwargs:
            args = _arguments(cls, args, kwargs, split)
        if active_levels():
            active_levels()[-1].met(cls)
            if kwargs:
                _check_keyword_only(cls, kwargs)
            special = _transformed(cls, args, split)
            if special is not None:
                return special.custom(cls, args)
        return cls._called(args, split)[1]

    @classmethod
    def _node_class(cls) -> Any:
        """Return the class of the nodes; inside of a transform of ``torch.func`` it has another name, as in PyTorch."""
        kind = cls._backward_cls
        if not any(each.strict for each in active_levels()):
            return kind
        if "generated" not in kind.__dict__:
            body = {"__module__": kind.__module__, "__slots__": ()}
            kind.generated = type(cls.__name__ + "GeneratedBackward", (kind,), body)
        return kind.generated

    @classmethod
    def _called(cls, args: tuple[Any, ...], split: bool) -> tuple[Any, Any]:
        """Call ``forward`` with ``args``, record the call in the graph, and return the pair of ``ctx`` and the result.

        No argument is a batched or dual tensor of an active transform, such as ``vmap``. If ``split`` is true, the
        class defines ``setup_context``, and ``forward`` has no parameter ``ctx``.
        """
        ctx = cls._backward_cls() if not active_levels() else cls._node_class()()
        edges = {index: current_edge(each) for index, each in enumerate(args) if isinstance(each, Tensor)}
        found = tuple(edges.values())
        ctx._operands_at, ctx.edges, ctx._arguments = tuple(edges), found, len(args)
        ctx.needs_input_grad = tuple([isinstance(each, Tensor) and each.requires_grad for each in args])
        ctx.number = number = next_number()
        ctx.code, ctx.instruction = code, instruction = user_frame.user_location()
        ctx.hooks = ctx.shape = ctx.dtype = None
        if anomaly_mode.setting.enabled:
            anomaly_mode.note(ctx)
        before = recording()
        recorded = before and found.count(None) < len(found)
        try:
            set_recording(False)
            output = cls.forward(*args) if split else cls.forward(ctx, *args)
            if split:
                cls.setup_context(ctx, args, output)
        finally:
            restore_recording(before)
        if not (
            ctx.shape is ctx.dtype is ctx.hooks is None
            and ctx.edges is found and ctx.number is number and ctx.code is code and ctx.instruction is instruction
            and _ENGINE_NAMES.isdisjoint(ctx.__dict__)
        ):  # fmt: skip
            _take_own_attributes(ctx, found, number, code, instruction)
        return ctx, _recorded_results(ctx, args, output, recorded)


def _check_keyword_only(cls: type[Function], kwargs: dict[str, Any]) -> None:
    """Raise NotImplementedError if vmap is active, and a keyword-only argument in ``kwargs`` is a tensor."""
    parameters = inspect.signature(cls.forward).parameters
    only = [name for name in kwargs if name in parameters and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY]
    tensors = {name: kwargs[name] for name in only if isinstance(kwargs[name], Tensor)}
    if tensors and any(each.sliced for each in active_levels()):
        raise NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
            f"autograd.Function. Got: {tensors}"
        )


def _transformed(cls: type[Function], args: tuple[Any, ...], split: bool) -> TransformTensor | None:
    """Return the argument that the innermost active transform, such as ``vmap``, has wrapped, or None.

    Such an argument is a batched or dual tensor among ``args``. ``split`` is true if ``cls`` defines ``setup_context``.
    If it is false and a transform of ``torch.func`` is active, RuntimeError is raised.
    """
    special = innermost(args)
    if not split and any(each.strict for each in active_levels()):
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
            "the setup_context staticmethod. For more details, please see "
            f"https://pytorch.org/docs/main/notes/extending.func.html The forward of {cls.__name__} is "
            f"defined{describe_definition(cls.forward)}. Remedy: split what it keeps in ctx off into setup_context."
        )
    return special


def _arguments(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any], split: bool) -> tuple[Any, ...]:
    """Return the positional arguments of ``forward``, without ``ctx``, for a call ``apply(*args, **kwargs)``.

    ``split`` is true if ``cls`` defines ``setup_context``; then the default values of missing arguments are included.
    """
    signature = inspect.signature(cls.forward)
    bound = signature.bind(*args, **kwargs) if split else signature.bind(None, *args, **kwargs)
    if split:
        bound.apply_defaults()
    return bound.args if split else bound.args[1:]


def _recorded_results(ctx: Any, args: tuple[Any, ...], output: Any, recorded: Any) -> Any:
    """Connect ``output``, the result of ``forward``, to its graph node ``ctx``, and return it.

    The tensors passed to ``save_for_backward`` are stored in the node. ``args`` are the arguments of ``forward``. If
    ``recorded`` is false, the call is not recorded: the results are not connected, and no tensors are stored.
    """
    outs = list(output) if isinstance(output, tuple) else [output]
    if ctx.dirty_tensors:
        _check_dirty(ctx, outs)
    arguments, dirty = set(map(id, args)), set(map(id, ctx.dirty_tensors))
    if len(outs) != 1:
        ctx.outputs, ctx.single = len(outs), False
    forms: list[Any] = []
    results: dict[int, int] = {}  # identity of each created or modified result -> its position
    for position, out in enumerate(outs):
        if isinstance(out, Tensor):
            array = out._array
            forms.append((array.shape, array.dtype, array_module_of(array)))
            if id(out) not in arguments or id(out) in dirty:
                results[id(out)] = position
            outs[position] = _recorded_result(ctx, out, position, id(out) in arguments, id(out) in dirty, recorded)
        else:
            forms.append(None)
    if ctx.non_differentiable:
        marked = set(map(id, ctx.non_differentiable))
        ctx._constant_results = frozenset(index for index, out in enumerate(outs) if id(out) in marked)
    if not ctx._materialize_non_diff_grads:
        forms = [
            form if form and index not in ctx._constant_results and form[1].kind in "fcVW" else None
            for index, form in enumerate(forms)
        ]
    ctx._forms = tuple(forms)
    ctx.shape, ctx.dtype = forms[0][:2] if len(forms) == 1 and forms[0] else ((), None)
    if recorded:
        ctx._saved = tuple([_saved_form(index, each, results) for index, each in enumerate(ctx.to_save)])
    ctx.to_save = ctx.dirty_tensors = (
        ctx.non_differentiable
    ) = ()  # results among them would form reference cycles with the node
    return tuple(outs) if isinstance(output, tuple) else outs[0]


def _saved_form(index: int, each: Any, results: dict[int, int]) -> Any:
    if each is None:
        return None
    if not isinstance(each, Tensor):
        raise TypeError(
            f"save_for_backward can only save variables, but argument {index} is of type {type(each).__name__}. Remedy: save "
            "it as an attribute of ctx."
        )
    return save_value(each, results.get(id(each)))


def save_value(tensor: Tensor, position: int | None = None) -> _SavedTensor | _SavedResult | _SavedPacked:
    """Return an object that a graph node stores in place of ``tensor``, which it saves for the backward pass.

    The method ``tensor(node)`` of this object returns the tensor. If saved-tensor hooks are active, the pack hook is
    called. ``position`` is the index of ``tensor`` among the results of the node, or None if ``tensor`` is not a result
    of the node.
    """
    saved = _SavedTensor(tensor) if position is None else _SavedResult(tensor, position)
    hooks = active_hooks()
    if hooks is None:
        return saved
    if position is None:
        return _SavedPacked(PackedValue(tensor, *hooks), current_edge(tensor), None)
    return _SavedPacked(PackedValue.result(tensor, *hooks), None, position)


def _check_dirty(ctx: Any, outs: list[Any]) -> None:
    for each in ctx.dirty_tensors:
        if not isinstance(each, Tensor):
            text = f"mark_dirty can only take variables, but argument 0 is of type {type(each).__name__}"
            raise TypeError(with_remedy(text, "pass the tensors that forward has modified"))
        if not any(each is out for out in outs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                f"modified inplace must all be outputs of the Function.{recorded_at(ctx)} Remedy: return from forward what "
                f"{type(ctx).__name__.removesuffix('Backward')} modifies."
            )


VIEW = "a view of a leaf Variable that requires grad is being"


def _recorded_result(ctx: Any, out: Tensor, position: int, given: bool, modified: bool, recorded: Any) -> Tensor:
    """Return ``out``, the result of ``forward`` at index ``position``, connected to its graph node ``ctx``.

    It is not connected if it is not differentiable, or if ``recorded`` is false, which means that the call is not
    recorded. ``given`` is true if ``out`` is also an argument of ``forward``. ``modified`` is true if ``forward``
    modified ``out`` in place.
    """
    fixed = ctx.non_differentiable and any(out is each for each in ctx.non_differentiable)
    if not recorded or fixed or out._array.dtype.kind not in "fcVW":
        if modified:
            bump_version(out)
        if given and out.requires_grad:
            return out.detach()
        if given and not modified:
            with no_grad():
                out = alias(out)
        if out._view is not None and not modified:
            out._creation_meta = CUSTOM
        return out
    edge: Any = ctx if ctx.single else OutputEdge(ctx, position, out._array.shape, out._array.dtype)
    if modified:
        for leaf, subject in ((out, "a leaf Variable that requires grad has been"), (out._view, VIEW)):
            if leaf is None:
                continue
            edge_of_leaf = leaf._grad_edge  # None: the base of a leaf that is a view
            if edge_of_leaf.__class__ is AccumulateGrad or (edge_of_leaf is None and out.requires_grad):
                raise RuntimeError(
                    f"{subject} used in an in-place operation.{recorded_at(ctx)} It is {describe_origin(leaf._grad_edge)}. "
                    "Remedy: pass a clone."
                )
        if out._view is not None:
            check_creation(out, "is being")
        bump_version(out)
        rebase_history(out, edge)
        return out
    if given:
        with no_grad():
            out = alias(out)
    if out._view is not None:
        out._creation_meta, out._view_version = CUSTOM, out._version
    out._grad_edge = edge
    return out


class _DelayedError(Node):
    """Graph node of the gradients computed by a ``backward`` that is decorated with ``once_differentiable``.

    Such gradients cannot be differentiated: a backward pass that reaches the node raises RuntimeError. Its edges are
    new leaves, one for each gradient.
    """

    __slots__ = ("function",)
    function: Any

    def vjp(self, grad: Any, edges: tuple[Any, ...], keep: bool) -> Any:
        text = "trying to differentiate twice a function that was marked with @once_differentiable"
        text += f". It is defined{describe_definition(self.function)}."
        raise RuntimeError(with_remedy(text, "write it with recorded operations, and remove the decorator"))

    vjp_recorded = vjp


_DelayedError.__name__ = _DelayedError.__qualname__ = "Error"


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate the ``backward`` method ``fn``, so that differentiating the gradients it returns raises RuntimeError."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with no_grad():
            outputs = fn(ctx, *args)
        if not recording() or not any(isinstance(each, Tensor) and each.requires_grad for each in args):
            return outputs
        found = _delayed(outputs if isinstance(outputs, tuple) else (outputs,), fn)
        return tuple(found) if isinstance(outputs, tuple) else found[0]

    return wrapper


def _delayed(outputs: tuple[Any, ...], function: Any) -> list[Any]:
    """Return ``outputs``, tensors or None, as results of one :class:`_DelayedError` for ``function``."""
    node = _DelayedError()
    node.code, node.instruction = user_frame.user_location()
    node.function, node.hooks = function, None
    outs = [each.detach() if isinstance(each, Tensor) else each for each in outputs]
    graded = [isinstance(each, Tensor) and each._array.dtype.kind in "fcVW" for each in outs]
    leaves = [out.detach()._set_requires_grad() if each else None for out, each in zip(outs, graded, strict=True)]
    node.edges, node.number = tuple(None if each is None else each._grad_edge for each in leaves), next_number()
    node.outputs, node.single = len(outs), len(outs) == 1  # type: ignore[misc]
    single = node.single and graded[0]
    node.shape, node.dtype = (outs[0]._array.shape, outs[0]._array.dtype) if single else ((), None)  # type: ignore[assignment]
    for position, out in enumerate(outs):
        if graded[position]:
            out._grad_edge = node if node.single else OutputEdge(node, position, out._array.shape, out._array.dtype)
    return outs


class InplaceFunction(Function):
    """Deprecated alias of :class:`Function`, with an attribute ``inplace``."""

    __module__ = shown_in("torch.autograd.function", __name__)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]
