"""Calls below autograd: how an operation gets to ``__torch_dispatch__`` of modes and classes, and its result into the graph.

See Note [Dispatch below autograd] in ``__init__.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy

from .. import ops
from ..core import engine
from ..core.devices import CPU
from ..core.grad_mode import recording, restore_recording, set_recording
from ..core.pytree import tree_leaves, tree_map
from ..core.rule_namespace import RULE_NAMESPACES
from ..core.tensor import Tensor, at_edge, new, preserve_format, share_memory
from ..core.torch_function import MODES as WITHOUT_CLASSES
from ..core.torch_function import disabled_overrides, handlers
from ..core.views import current_edge, rebase_history
from ..dispatch.generic_path import _promoted, _wrap_views, apply, modify, record
from ..dispatch.intercept import GO_ON, Call, Handler
from ..dispatch.op import Op
from ..dispatch.transform_tensor import TransformTensor, WrapperTensor, _inner_field, _inner_method
from ..ops import OpOverload, aten, executors
from .aten_calls import PARTS, described
from .subclasses import SubclassArray, dispatches, restored

#: The active modes of this context, the innermost last.
_modes: ContextVar[tuple[Any, ...]] = ContextVar("dispatch modes", default=())
#: Whether ``__torch_dispatch__`` of classes is disabled, because the method of Tensor runs the operation.
_classes_off: ContextVar[bool] = ContextVar("dispatch classes off", default=False)
#: The operation that is being dispatched: its overload, and a function that runs it.
_pending: ContextVar[tuple[OpOverload, Callable[..., Any]] | None] = ContextVar("dispatched", default=None)
active_modes = _modes.get


class Operand(WrapperTensor):
    """Tensor ``_inner`` as an argument of a public function, each operation of which is to be dispatched."""

    __slots__ = ()
    __module__ = "torch"
    level = 0
    _inner: Tensor

    _grad_edge, _counter, _grad, _view = map(_inner_field, ("_grad_edge", "_counter", "_grad", "_view"))
    _view_version, _creation_meta, _array = map(_inner_field, ("_view_version", "_creation_meta", "_array"))
    tolist, numpy, __array__, data_ptr = map(_inner_method, ("tolist", "numpy", "__array__", "data_ptr"))
    __bool__, __float__, __int__ = map(_inner_method, ("__bool__", "__float__", "__int__"))
    __complex__, __index__, item = map(_inner_method, ("__complex__", "__index__", "item"))

    def process(self, op: Op, tensors: Any, params: Any, in_place: bool) -> Any:
        """Dispatch ``op``; see :class:`WrapperTensor`."""
        inner = tuple([each._inner if each.__class__ is Operand else each for each in tensors])
        result = dispatched(op, inner, params, in_place)
        return _wrapped(result)


def _wrapped(value: Any) -> Any:
    """Return ``value`` with each tensor in it, and in lists and tuples, as an :class:`Operand`."""
    if isinstance(value, Tensor):
        if value.__class__ is Operand:
            return value
        operand = new(Operand)
        operand._inner = value
        return operand
    if value.__class__ in (tuple, list) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        parts = [_wrapped(each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _unwrapped(value: Any) -> Any:
    """Return ``value`` with the inner tensor of each :class:`Operand`."""
    if value.__class__ is Operand:
        return value._inner
    if isinstance(value, (tuple, list)) and any(each.__class__ is Operand for each in value):
        parts = [_unwrapped(each) for each in value]
        if hasattr(value, "_fields"):
            return type(value)(*parts)
        return tuple.__new__(type(value), parts) if isinstance(value, tuple) else parts
    return value


# --- One operation --------------------------------------------------------------------------------------------------


def dispatched(op: Op, tensors: Sequence[Any], params: Any, in_place: bool) -> Any:
    """Return the result of ``op`` as the handlers compute it, with its place in the graph."""
    tensors = tuple([restored(each) for each in tensors])
    _note(tensors)
    graded = op.has_rules and recording()
    edges = tuple([current_edge(each) if isinstance(each, Tensor) and graded else None for each in tensors])
    graded = graded and any(each is not None for each in edges)
    arrays: Any = [each._array if isinstance(each, Tensor) else each for each in tensors]
    if graded and op.kind == "pointwise":
        arrays = _promoted(op, numpy, tensors, arrays, None)[0]
    if graded and in_place:  # what is overwritten is kept as it was
        arrays = [
            each.copy() if isinstance(tensor, Tensor) and share_memory(each, tensors[0]._array) else each
            for each, tensor in zip(arrays, tensors, strict=True)
        ]  # fmt: skip
    run = modify if in_place else apply
    name, args, kwargs = described(op, tensors, params, in_place)
    part = PARTS.get(op.name)
    packet, _, overload = name.partition(".")
    function = overload_of(packet, overload, lambda *given: run(op, given, params))
    operands = {id(each): index for index, each in enumerate(tensors) if isinstance(each, Tensor)}

    def again(given: Any, named: Any) -> Any:
        """Run the operation with the tensors that are where its operands were; None if other arguments differ."""
        now = list(tensors)
        before, after = tree_leaves((args, kwargs)), tree_leaves((given, named))
        if len(before) != len(after):
            return None
        for old, value in zip(before, after, strict=True):
            if isinstance(old, Tensor):
                if not isinstance(value, Tensor):
                    return None
                if id(old) in operands:
                    now[operands[id(old)]] = value
                elif old is not value:
                    return None
            elif isinstance(value, Tensor) or value != old:
                return None
        result = run(op, tuple(now), params)
        return result if part is None else tuple(result if i == part[0] else None for i in range(part[1]))

    before = _pending.get()
    try:
        _pending.set((function, again))
        result = call(function, args, kwargs)
    finally:
        _pending.set(before)
    if part is not None:
        result = result[part[0]]
    if in_place:
        x = tensors[0]
        if graded:
            stand_in = at_edge(x._array, x._version_counter, None)
            node = record(op, tensors, arrays, params, (stand_in,), edges, in_place=True)
            if node is not None:
                rebase_history(x, node)
        return x
    single = not isinstance(result, (tuple, list))
    _note((result,) if single else result)
    outs = tuple(_as_new(each, tensors) for each in ((result,) if single else result))
    if op.kind == "view" and all(
        type(each) is Tensor and share_memory(each._array, tensors[0]._array) for each in outs
    ):
        shares = outs[0]._array if single else tuple(each._array for each in outs)
        return _wrap_views(op, tensors, tuple(arrays), params, shares, edges)
    if graded and all(isinstance(each, Tensor) for each in outs):
        record(op, tensors, tuple(arrays), params, outs, edges)
    return outs[0] if single else outs


def _note(tensors: Sequence[Any]) -> None:
    """Record the slots of the instances in the arrays of wrapper subclasses, which may outlive them."""
    for each in tensors:
        array: Any = each._array if isinstance(each, Tensor) else None
        if array.__class__ is SubclassArray and type(each) is not Tensor:
            array.note(each)


def _as_new(out: Any, tensors: Sequence[Any]) -> Any:
    """Return ``out``, or an alias of it if it is an operand or already in a graph."""
    if isinstance(out, Tensor) and (out._grad_edge is not None or any(out is each for each in tensors)):
        alias: Any = new(type(out))
        alias._array, alias._version_counter = out._array, out._version_counter
        alias._grad_edge = alias._view = alias._grad = None
        alias.__dict__.update(out.__dict__)
        return alias
    return out


def overload_of(packet: str, overload: str, function: Callable[..., Any]) -> OpOverload:
    """Return ``torch.ops.aten.<packet>.<overload>``; ``function`` is called if there is no such operation yet."""
    name = packet
    packet = packet.removeprefix("retrograd::")
    space = aten if name is packet else ops.retrograd
    try:
        found = getattr(space, packet)
    except AttributeError:
        found = space._add(packet, function)
    return getattr(found, overload)


def call(function: OpOverload, args: Any, kwargs: Any) -> Any:
    """Return the result of ``function``, an overload, from the innermost mode or the class of an argument.

    Nothing is recorded meanwhile.
    """
    before = recording()
    try:
        set_recording(False)
        return _called(function, args, kwargs)
    finally:
        restore_recording(before)


def _called(function: OpOverload, args: Any, kwargs: Any) -> Any:
    modes = _modes.get()
    leaves = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    classes = [each for each in leaves if dispatches(type(each))]
    types = tuple(dict.fromkeys(type(each) for each in classes))
    if modes:
        token = _modes.set(modes[:-1])
        try:
            result = modes[-1].__torch_dispatch__(function, types, args, kwargs)
        finally:
            _modes.reset(token)
        if result is not NotImplemented:
            _note(tree_leaves(result))
            return result
    if classes and not _classes_off.get():
        asked: set[type] = set()
        for each in sorted(classes, key=lambda one: -len(type(one).__mro__)):
            if type(each) in asked:
                continue
            asked.add(type(each))
            with disabled_overrides(WITHOUT_CLASSES):
                result = type(each).__torch_dispatch__(function, types, args, kwargs)
            if result is not NotImplemented:
                _note(tree_leaves(result))
                return result
        shown = "".join(f"  - tensor subclass {kind!r}\n" for kind in types)
        raise TypeError(
            f"Multiple dispatch failed for 'torch.ops.{function}'; all __torch_dispatch__ handlers returned NotImplemented:"
            f"\n\n{shown}\nFor more information, try re-running with TORCH_LOGS=not_implemented"
        )
    if modes and result is NotImplemented:  # the next mode, or the operation
        token = _modes.set(modes[:-1])
        try:
            return call(function, args, kwargs)
        finally:
            _modes.reset(token)
    pending = _pending.get()
    if pending is not None and pending[0] is function:
        result = pending[1](args, kwargs)
        if result is not None:
            return result
    return function.overloadpacket._function(*args, **kwargs)


def _execute(operation: Any, args: Any, kwargs: Any) -> Any:
    """Return the result of a call of ``operation``, an overload or a packet, by the program, or ``GO_ON`` without handlers."""
    pending = _pending.get()
    if (
        not _modes.get()
        and (pending is None or pending[0] is not operation)
        and (
            _classes_off.get()
            or not any(isinstance(each, Tensor) and dispatches(type(each)) for each in tree_leaves((args, kwargs)))
        )
    ):
        return GO_ON
    function = operation if isinstance(operation, OpOverload) else operation.default
    return call(function, args, kwargs)


executors.append(_execute)


def without_classes(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Return ``func(*args, **kwargs)``, computed without ``__torch_dispatch__`` of classes."""
    token = _classes_off.set(True)
    try:
        return func(*args, **(kwargs or {}))
    finally:
        _classes_off.reset(token)


# --- Public functions that are no operations ------------------------------------------------------------------------


def _whole(describe: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that passes a public function to the handlers as one operation.

    ``describe`` returns the name, positional and keyword arguments. The graph is that of the function itself, which runs
    a second time if an argument requires gradients.
    """

    def around(call_: Call) -> Any:
        args, kwargs = tree_map(_plain, call_.args), tree_map(_plain, call_.kwargs)
        found = describe(*args, **kwargs)
        if found is None:
            return GO_ON
        name, given, named, requires_grad = found
        packet, _, overload = name.partition(".")
        leaves = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        graph = None
        if recording() and any(each.requires_grad for each in leaves):
            token = _modes.set(())
            try:
                graph = without_classes(call_.function, (), args, kwargs)
            finally:
                _modes.reset(token)
        function = overload_of(packet, overload, call_.function)
        before = _pending.get()
        try:
            _pending.set((function, lambda a, k: call_.function(*args, **kwargs) if _same(a, given) else None))
            result = call(function, given, named)
        finally:
            _pending.set(before)
        if graph is not None:
            result = _as_new(result, leaves)
            result._grad_edge = graph._grad_edge
        elif requires_grad:
            result.requires_grad_()
        return result

    return around


def _same(one: Any, two: Any) -> bool:
    first, second = tree_leaves(one), tree_leaves(two)
    return len(first) == len(second) and all(
        a is b or (not isinstance(a, Tensor) and not isinstance(b, Tensor) and a == b)
        for a, b in zip(first, second, strict=True)
    )


def _plain(value: Any) -> Any:
    return restored(value._inner if value.__class__ is Operand else value) if isinstance(value, Tensor) else value


def _place(named: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the keyword arguments of a factory as PyTorch passes them to a handler, and ``requires_grad``."""
    named = {key: each for key, each in named.items() if each is not None or key == "generator"}
    requires_grad = bool(named.pop("requires_grad", False))
    named.setdefault("device", CPU)
    named.setdefault("pin_memory", False)
    return named, requires_grad


def _factory(name: str, sizes: bool) -> Callable[..., Any]:
    def describe(*args: Any, **named: Any) -> Any:
        if named.get("out") is not None or "names" in named:
            return None
        if sizes:
            size = named.pop("size", None)
            flat = args if size is None else (size,)
            args = (list(flat[0]) if len(flat) == 1 and isinstance(flat[0], (tuple, list)) else list(flat),)
            if not all(isinstance(each, int) for each in args[0]):
                return None
        if name == "full" and args:
            args = (list(args[0]) if isinstance(args[0], (tuple, list)) else [args[0]], *args[1:])
        overload = "memory_format" if name == "empty" else "default"
        if name == "arange" and len(args) > 1:
            overload = "start" if len(args) == 2 else "start_step"
        named, requires_grad = _place(named)
        return f"{name}.{overload}", args, named, requires_grad

    return _whole(describe)


def _like(name: str) -> Callable[..., Any]:
    def describe(input: Any, *args: Any, **named: Any) -> Any:
        named = {key: each for key, each in named.items() if each is not None}
        requires_grad = bool(named.pop("requires_grad", False))
        named.setdefault("pin_memory", False)
        return f"{name}.default", (input, *args), named, requires_grad

    return _whole(describe)


def _join(name: str) -> Callable[..., Any]:
    def describe(tensors: Any, dim: int = 0, **named: Any) -> Any:
        if named.pop("out", None) is not None:
            return None
        dim = named.pop("axis", dim)
        return f"{name}.default", (list(tensors), *((dim,) if dim else ())), {}, False

    return _whole(describe)


def _number(call_: Call) -> Any:
    """Pass ``item()`` and conversions to numbers to the handlers as ``_local_scalar_dense``."""
    x = _plain(call_.args[0])
    if x.numel() != 1:
        return GO_ON
    function = overload_of("_local_scalar_dense", "default", vars(Tensor)["item"])
    before = _pending.get()
    try:
        _pending.set((function, lambda args, kwargs: args[0]._array.item()))
        found = call(function, (x,), {})
    finally:
        _pending.set(before)
    kind = {"__bool__": bool, "__int__": int, "__float__": float, "__index__": int, "__complex__": complex}
    return kind.get(call_.function.__name__, lambda value: value)(found)


def _indexed(call_: Call) -> Any:
    """Pass ``x[index]`` to the class of an index that has a ``__torch_dispatch__``; its operations are recorded."""
    x, index = _plain(call_.args[0]), call_.args[1]
    items = [_plain(each) for each in (index if isinstance(index, tuple) else (index,))]
    picks = [None if each.__class__ is slice and each == slice(None) else each for each in items]
    if dispatches(type(x)) or not any(isinstance(each, Tensor) and dispatches(type(each)) for each in picks):
        return GO_ON
    if not all(each is None or isinstance(each, Tensor) for each in picks):
        return GO_ON
    return _called(overload_of("index", "Tensor", call_.function), (x, picks), {})


def _lifted(call_: Call) -> Any:
    made = call_.go_on()
    function = overload_of("lift_fresh", "default", lambda x: x)
    required = made.requires_grad
    result = call(function, (made,), {})
    return result if result is made or not required else result.requires_grad_()


def _first_gradient(call_: Call) -> Any:
    """Pass the gradient of a backward pass's output, ones, to the handlers as ``ones_like``."""
    _, out, edge, grad = call_.args
    _note((grad,))
    if grad is not None or edge is None or not isinstance(out, Tensor) or out.numel() != 1 or out.is_complex():
        return GO_ON
    named = {"pin_memory": False, "memory_format": preserve_format}
    return call(overload_of("ones_like", "default", ops.aten.ones_like), (restored(out),), named)


_WHOLE: dict[str, Callable[[Call], Any]] = {
    **{name: _factory(name, True) for name in ("zeros", "ones", "empty", "rand", "randn")},
    **{name: _factory(name, False) for name in ("full", "arange", "linspace", "eye", "randperm")},
    **{name: _like(name) for name in ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like", "full_like")},
    **{name: _join(name) for name in ("cat", "stack")},
    **dict.fromkeys(("concat", "concatenate"), _join("cat")),
    **dict.fromkeys(("item", "__bool__", "__float__", "__int__", "__index__", "__complex__"), _number),
    "tensor": _lifted,
    "__getitem__": _indexed,
    "_initial_gradient": _first_gradient,
    "detach": _whole(lambda input: ("detach.default", (input,), {}, False)),
}
TENSORS: Any = RULE_NAMESPACES[Tensor]
_attention_gradients = TENSORS.attention_back


def _attention_back(g: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Any, output: Tensor, sums: Tensor,
                    is_causal: bool, scale: float) -> Any:  # fmt: skip
    """Return the gradients of attention, which modes get as one operation unless the backward pass is recorded."""
    given = g, query, key, value, output, sums
    if recording() or not _modes.get():
        return _attention_gradients(*given[:4], mask, *given[4:], is_causal, scale)
    function = overload_of("_scaled_dot_product_flash_attention_for_cpu_backward", "default", _attention_gradients)
    before = _pending.get()
    try:
        _pending.set(
            (function, lambda args, named: _attention_gradients(
                *args[:4], named["attn_mask"], *args[4:6], is_causal, scale
            ))
        )  # fmt: skip
        named = {"attn_mask": mask} | ({} if scale == query.shape[-1] ** -0.5 else {"scale": scale})
        return call(function, (*given, 0.0, is_causal), named)
    finally:
        _pending.set(before)


TENSORS.attention_back = _attention_back
#: Functions that read or change only attributes of a tensor.
_QUIET = frozenset({
    "__get__", "__set__", "__repr__", "__str__", "__format__", "__hash__", "__len__", "__deepcopy__", "__reduce_ex__",
    "apply", "as_subclass", "backward", "data_ptr", "device", "dim", "dtype", "element_size", "get_device", "grad", "has_names",
    "is_complex", "is_contiguous", "is_floating_point", "is_shared", "is_tensor", "layout", "ndim", "nelement", "ndimension",
    "numel", "register_hook", "requires_grad_", "requires_grad", "retain_grad", "set_", "shape", "size", "storage",
    "storage_offset", "stride", "untyped_storage", "is_leaf", "grad_fn", "names", "is_cuda", "is_meta", "is_sparse",
    "itemsize", "nbytes", "register_post_accumulate_grad_hook", "manual_seed", "_version", "_is_view", "_base", "is_cpu",
    "is_quantized", "output_nr", "retains_grad", "volatile", "is_conj", "is_neg", "is_inference", "is_pinned", "tolist",
    "is_signed", "is_same_size", "result_type", "can_cast", "promote_types", "is_nonzero", "numpy", "allclose", "equal",
    "__dlpack__", "__dlpack_device__", "__array__", "__contains__", "__iter__", "where_is", "is_grad_enabled",
}) - {"allclose", "equal", "__contains__", "__iter__", "where_is", "is_grad_enabled"}  # fmt: skip


class _Dispatcher(Handler):
    """Handler of public functions, which lets their operations arrive at :func:`dispatched`."""

    def wanted(self, function: Any) -> Any:
        """Return the name of ``function``, or None if it computes nothing."""
        name = function.__name__
        return None if name in _QUIET else name

    def around(self, known: Any, call: Call) -> Any:
        """Return the result of ``call``, whose operations are dispatched."""
        leaves = [each for each in tree_leaves((call.args, call.kwargs)) if isinstance(each, Tensor)]
        modes, inside = _modes.get(), any(each.__class__ is Operand for each in leaves)
        if (
            not modes
            and not inside
            and (
                _classes_off.get()
                or not any(
                    dispatches(type(each)) or isinstance(each._array, SubclassArray)
                    for each in leaves
                    if each.__class__ is not Tensor or each._array.__class__ is not numpy.ndarray
                )
            )
        ):
            return GO_ON
        if any(isinstance(each, TransformTensor) for each in leaves):
            return GO_ON
        whole = _WHOLE.get(known)
        if whole is not None:
            result = whole(call)
            if result is not GO_ON:
                return _wrapped(result) if inside else result
        if inside or not leaves:
            return GO_ON
        args, kwargs = tree_map(_operand, call.args), tree_map(_operand, call.kwargs)
        return _unwrapped(Call(call.function, args, kwargs, call.rest).go_on())


def _operand(value: Any) -> Any:
    return _wrapped(restored(value)) if isinstance(value, Tensor) else value


handler = _Dispatcher()


def _computes_with_tensors() -> bool:
    """Whether a backward pass that begins computes with tensors, because its operations are dispatched."""
    return handler in handlers()


engine.by_tensors.append(_computes_with_tensors)


def enter(mode: Any) -> None:
    """Activate ``mode``, which becomes the innermost mode."""
    if handler not in handlers():
        handler.__enter__()
    _modes.set((*_modes.get(), mode))


def leave(stack: tuple[Any, ...], entered: bool) -> None:
    """Restore the stack of modes ``stack``; remove the handler if the mode had ``entered`` it."""
    _modes.set(stack)
    if entered:
        handler.__exit__(None, None, None)


def activate() -> None:
    """Intercept the public functions of this context from now on, because a subclass has an instance."""
    if handler not in handlers():
        handler.__enter__()


__all__ = ["activate", "active_modes", "call", "dispatched", "enter", "handler", "leave", "without_classes"]
