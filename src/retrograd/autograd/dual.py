"""Forward mode: dual tensors, which hold a primal and a tangent, and the tangents of the results of operations.

The operations that compute the primal and the tangent are recorded in the graph; the dual tensor itself is not a part
of the graph. Therefore the tangents can be differentiated by a backward pass without further code.

``Dual.gradients`` implements the opposite order, a backward pass with dual tensors. Let the dual tensor with primal
``y`` and tangent ``y'`` be computed from the dual tensor with primal ``x`` and tangent ``x'``. The gradient is then a
dual tensor too: its primal is the gradient of ``y`` with respect to ``x``, and its tangent the gradient of ``y'`` with
respect to ``x``.

The tangents of an operation's results are computed with its gradient rules. A rule maps the incoming gradient ``g`` to
``Jᵀ g``, where ``J`` is the Jacobian of the operation. Differentiating this linear map with respect to ``g`` gives the
product ``J t`` with a tangent ``t``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import devices, dtypes
from ..core.error_context import describe_definition
from ..core.grad_mode import in_inference, recording, restore_recording, set_recording
from ..core.gradients import validate_gradient
from ..core.graph import AccumulateGrad
from ..core.tensor import Tensor, element_strides, memory_owner, new, preserve_format, share_memory
from ..dispatch.generic_path import apply, modify
from ..dispatch.op import TENSORS, arguments, is_shared
from ..dispatch.operand_promotion import common_dtype
from ..dispatch.transform_tensor import TransformTensor, batch_levels, copy_per_slice, innermost, placeholder, wrap_in
from ..operations.engine_ops import expand, to_dtype
from ..operations.tensor_protocols import text_of
from .backward import gradients_of_tensors
from .function import Function

F = TENSORS

#: Parameters of linear operations that are constants written into the result: they are 0 in the tangent.
_CONSTANTS = ("value", "fill")


class Dual(TransformTensor):
    """Dual tensor of forward mode: a value (the primal, ``_inner``) and its tangent ``_tangent`` of the same shape."""

    __slots__ = ()
    _tangent: Tensor

    def process(self, op: Any, tensors: tuple[Any, ...], params: tuple[Any, ...], in_place: bool) -> Any:
        run = self._run
        primals = tuple([primal_at(each, run) for each in tensors])
        tangents = tuple([tangent_at(each, run) for each in tensors])
        if not run.alive or in_inference():
            tangents = (None,) * len(tangents)
        if in_place:
            return _modified_dual(run, op, tensors[0], primals, tangents, params)
        result = apply(op, primals, params)
        outs = result if isinstance(result, tuple) else (result,)
        out_tangents = _recording(run, lambda: tangents_of(op, primals, tangents, params, outs))
        found = [make_dual_tensor(run, *each) for each in zip(outs, out_tangents, strict=True)]
        return tuple(found) if isinstance(result, tuple) else found[0]

    def refuse_out(self, name: str) -> Exception:
        return NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function. Remedy: take "
            "the result as it is returned."
        )

    def blank(self, members: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Tensor:
        parts = [primal_at(each, self._run) for each in members] + [tangent_at(each, self._run) for each in members]
        return placeholder([each for each in parts if each is not None], shape, dtype)

    def gradients(self, outs: Any, inputs: Any, grads: Any, solve: Callable[..., Any], record: bool) -> list[Any]:
        run = self._run
        inputs = [primal_at(each, run) for each in inputs]
        primals, out_tangents = [primal_at(each, run) for each in outs], [tangent_at(each, run) for each in outs]
        grads_in, grad_tangents = [primal_at(each, run) for each in grads], [tangent_at(each, run) for each in grads]
        pairs = [(out, grad) for out, grad in zip(out_tangents, grads_in, strict=True) if out is not None]
        pairs += [(out, grad) for out, grad in zip(primals, grad_tangents, strict=True) if grad is not None]
        primal_part: list[Any] = solve(primals, inputs, grads_in, not pairs)
        if not pairs:
            return primal_part
        tangent_part = solve([out for out, _ in pairs], inputs, [grad for _, grad in pairs], True)
        return [
            None if a is None and b is None else _make_pair(run, a, b, each)
            for a, b, each in zip(primal_part, tangent_part, inputs, strict=True)
        ]

    def custom(self, function: Any, args: tuple[Any, ...]) -> Any:
        return _recording(self._run, lambda: _apply_custom(self._run, function, args))

    def joined(self, tensors: Sequence[Any], dim: Any, join: Callable[..., Any]) -> Any:
        primals = [primal_at(each, self._run) for each in tensors]
        tangents = [tangent_at(each, self._run) for each in tensors]
        out = join(primals, dim)
        if not self._run.alive or in_inference() or all(each is None for each in tangents):
            return out
        filled = [zeros_as(a) if b is None else b for a, b in zip(primals, tangents, strict=True)]
        return make_dual_tensor(self._run, out, _recording(self._run, lambda: join(filled, dim)))

    def spread_as(self, made: Tensor) -> Any:
        found = copy_per_slice(self._inner, made)
        if not self._run.strict or made._array.dtype.kind not in "fcVW":
            return found
        # A value with a tangent may be written into a view of it, which could not give a plain base its tangent.
        return make_dual_tensor(
            self._run, found, placeholder((found, self._tangent), made._array.shape, made._array.dtype).detach()
        )

    def merged(self, members: Sequence[Any], build: Callable[..., Any]) -> Any:
        primals = [primal_at(each, self._run) for each in members]
        tangents = [tangent_at(each, self._run) for each in members]
        filled = [zeros_as(a) if b is None else b for a, b in zip(primals, tangents, strict=True)]
        return make_dual_tensor(self._run, build(*primals), build(*filled))

    def detach(self) -> Tensor:
        """Return the primal without the tangent, detached from the graph."""
        return self._inner.detach()

    def detach_(self) -> Tensor:
        """Remove the tangent, detach the primal from the graph, and return ``self``, which is no dual tensor any more."""
        inner = self._inner.detach_()
        self.__dict__.clear()
        self.__class__ = inner.__class__  # type: ignore[assignment]
        _copy_fields(inner, self)
        return self

    data = property(lambda self: self._inner.data, lambda self, value: setattr(self._inner, "data", value))

    def _set_requires_grad(self, requires_grad: bool = True) -> Tensor:
        self._inner._set_requires_grad(requires_grad)
        return self

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        if not self._run.alive:
            return repr(self._inner)
        return text_of(self._inner, contents=tensor_contents, more=(f"tangent={self._tangent}",))


def make_dual_tensor(run: Any, primal: Any, tangent: Any) -> Any:
    """Return a dual tensor of ``primal`` and ``tangent``, or ``primal`` if ``tangent`` is None.

    ``run`` represents the active call of ``torch.func.jvp``, or the active ``dual_level``, to which the tangent
    belongs.
    """
    if tangent is None:
        return primal
    special = innermost((primal, tangent))
    if special is not None and special._run.depth > run.depth:
        return special.merged((primal, tangent), lambda a, b: make_dual_tensor(run, a, b))
    if isinstance(primal, TransformTensor) and not batch_levels(primal) <= batch_levels(tangent):
        tangent = tangent + zeros_as(primal)  # batch it like the primal, so that a write to a slice has memory
    made = wrap_in(Dual, run, primal)
    made._tangent = tangent
    return made


def primal_at(x: Any, run: Any) -> Any:
    """Return the primal of the dual tensor ``x``, or ``x`` if it has no tangent that belongs to ``run``.

    ``run`` represents an active call of ``torch.func.jvp``, or an active ``dual_level``.
    """
    if not isinstance(x, TransformTensor) or x._run.depth < run.depth:
        return x
    if x._run is run:
        return x._inner
    return x.merged((x,), lambda part: primal_at(part, run))


def tangent_at(x: Any, run: Any) -> Any:
    """Return the tangent of the dual tensor ``x``, or None if it has no tangent that belongs to ``run``.

    ``run`` represents an active call of ``torch.func.jvp``, or an active ``dual_level``.
    """
    if not isinstance(x, TransformTensor) or x._run.depth < run.depth:
        return None
    if x._run is run:
        return x._tangent
    if not _has_tangent(x, run):
        return None

    def part(each: Any) -> Any:
        found = tangent_at(each, run)
        return zeros_as(each) if found is None else found

    return x.merged((x,), part)


def _has_tangent(x: Any, run: Any) -> bool:
    """Whether ``x``, or a tensor that ``x`` wraps, has a tangent that belongs to ``run``.

    ``run`` represents an active call of ``torch.func.jvp``, or an active ``dual_level``.
    """
    if not isinstance(x, TransformTensor):
        return False
    return x._run is run or any(_has_tangent(each, run) for each in (x._inner, getattr(x, "_tangent", None)))


def zeros_as(x: Any) -> Tensor:
    """Return a tensor of zeros with the shape of ``x``; inside vmap, the zeros are batched if ``x`` is batched."""
    return F.zeros_as(x)


def _make_pair(run: Any, primal: Any, tangent: Any, like: Any) -> Any:
    """Return the dual tensor of ``primal`` and ``tangent``, the two parts of the gradient of ``like``; None is zero.

    The tangent of a gradient that depends on ``like`` belongs to the graph of ``like``, also if it is constant.
    """
    if primal is None:
        return make_dual_tensor(run, zeros_as(tangent), tangent)
    if tangent is not None and primal.requires_grad and not tangent.requires_grad and not _is_leaf_inside(like):
        tangent = _in_graph_of(tangent, primal)
    return make_dual_tensor(run, primal, tangent)


def _is_leaf_inside(x: Any) -> bool:
    """Whether ``x``, without its wrappers, is a leaf or has no gradient edge."""
    while isinstance(x, TransformTensor):
        x = x._inner
    return x._grad_edge is None or x._grad_edge.__class__ is AccumulateGrad


def _in_graph_of(x: Any, source: Any) -> Any:
    """Return ``x`` plus a zero computed from ``source``, so that ``x`` requires a gradient; that of ``source`` is zero."""
    zero = source.reshape(-1)[:0].sum()  # not 0 * source, which is nan for an infinite element
    return x + (zero.real if zero.is_complex() and not x.is_complex() else zero).to(x.dtype)


# --- In place -------------------------------------------------------------------------------------------------------


def _modified_dual(run: Any, op: Any, x: Any, primals: Any, tangents: Any, params: Any) -> Any:
    """Run the in-place operation ``op``, one of whose operands is a dual tensor, and return its first operand ``x``.

    The primal and the tangent of ``x`` are updated. If ``x`` has no tangent but another operand has one, ``x`` becomes
    a dual tensor. ``primals`` and ``tangents`` are the primals and tangents of the operands, with None for an operand
    without tangent. ``params`` are the parameters of ``op``. ``run`` represents the call of ``torch.func.jvp``, or the
    ``dual_level``, to which the tangents belong.
    """
    tangent = None
    if op.name == "copy_block" and primals[0] is primals[1]:
        return x
    if any(each is not None for each in tangents) and op.has_rules:
        # The rules may need the overwritten value.
        before = (F.clone_block(primals[0], preserve_format), *primals[1:])
        members = [each for each in (*primals, *tangents) if isinstance(each, Tensor)]
        if tangents[0] is not None and recording() and any(map(is_recorded, members)):
            tangents = (F.clone_block(tangents[0], preserve_format), *tangents[1:])
        outs = (apply(op, before, params),)
        tangent = _recording(run, lambda: tangents_of(op, before, tangents, params, outs))[0]
    modify(op, primals, params)
    if tangent is None and tangents[0] is not None and x._array.dtype.kind in "fcVW":
        tangent = zeros_as(x._tangent)
    if tangent is not None:
        _recording(run, lambda: _set_tangent(run, x, tangent))
    return x


def _recording(run: Any, compute: Callable[[], Any]) -> Any:
    """Return the result of ``compute()``, a computation with tangents, which :func:`torch.func.linearize` records."""
    if not run.records_tangents:
        return compute()
    before = set_recording(True)
    try:
        return compute()
    finally:
        restore_recording(before)


def _set_tangent(run: Any, x: Any, tangent: Any) -> None:
    """Set the tangent of ``x``; if ``x`` is not a dual tensor, it becomes one.

    If ``x`` has a tangent, the new values are copied into its memory if possible, because the tangents of views of
    ``x`` share this memory. ``run`` represents the call of ``torch.func.jvp``, or the ``dual_level``, to which the
    tangent belongs.
    """
    if not (isinstance(x, Dual) and x._run is run):
        base = x._view
        if base is None:
            _become_dual(run, x, expand(F.to_dtype(tangent, x.dtype), x._array.shape).clone())
            return
        if batch_levels(x):
            if x.viewed is None:
                raise RuntimeError(_CAPTURED)
            _become_view_with_tangent(run, x, tangent)
            return
        if not (isinstance(base, Dual) and base._run is run):
            zeros = placeholder((base, tangent), base._array.shape, base._array.dtype).detach()
            _become_dual(run, base, zeros if isinstance(zeros, TransformTensor) else _zeros_in_order_of(base))
        _become_dual(run, x, _part_of_tangent(base, x))
    base = x._view
    if x.viewed is not None and _has_tangent(x.viewed[0], run) and not _can_hold(x._tangent, tangent):
        _extend_tangent(run, x, tangent)
    elif isinstance(base, Dual) and base._run is run and not _can_hold(x._tangent, tangent):
        base._tangent = _with_tangents_at(_forward_levels(tangent), base._tangent)
        x._tangent = _part_of_tangent(base, x)
    held = x._tangent
    if _can_hold(held, tangent):
        held.copy_(tangent)
    else:
        x._tangent = tangent


def _extend_tangent(run: Any, x: Any, tangent: Any) -> None:
    """Let the tangent of ``x``, and of what it is a view of, hold ``tangent``, which has tangents at outer levels.

    The tangents that are added are zeros. The memory of the previous tangents is kept.
    """
    if x.viewed is not None and isinstance(x.viewed[0], Dual) and x.viewed[0]._run is run:
        source, op, params = x.viewed
        _extend_tangent(run, source, tangent)
        x._tangent = apply(op, (source._tangent,), params)
        return
    for level in sorted(_forward_levels(tangent), key=lambda each: each.depth):
        if not _has_tangent(x._tangent, level):
            like, held = tangent_at(tangent, level), x._tangent
            x._tangent = make_dual_tensor(
                level, held, placeholder((like,), held._array.shape, held.dtype.numpy).detach()
            )


def _become_view_with_tangent(run: Any, x: Any, tangent: Any) -> None:
    """Turn ``x``, a view inside another transform, into a dual tensor, and so what it is a view of.

    The parameters have the same meaning as for :func:`_set_tangent`. The views are applied to the tangent of the base.
    """
    chain = [x]
    while chain[-1].viewed is not None and not _has_tangent(chain[-1].viewed[0], run):
        chain.append(chain[-1].viewed[0])
    base = chain[-1] if chain[-1].viewed is None else chain[-1].viewed[0]
    if not _has_tangent(base, run):
        zeros = placeholder((base, tangent), base._array.shape, base._array.dtype).detach()
        viewed, base.viewed = base.viewed, None
        _become_dual(run, base, _with_tangents_at(_forward_levels(tangent) - {run}, zeros))
        base.viewed = viewed
        chain = chain[:-1] if chain[-1] is base else chain
    for each in reversed(chain):
        source, op, params = each.viewed
        part = apply(op, (tangent_at(source, run),), params)
        each.viewed = None
        _become_dual(run, each, part)
        each.viewed = source, op, params
    if _can_hold(x._tangent, tangent):
        x._tangent.copy_(tangent)
    else:
        raise RuntimeError(_CAPTURED)


def _part_of_tangent(base: Any, x: Tensor) -> Tensor:
    """Return the view of the tangent of ``base`` that corresponds to ``x``, a view of ``base``."""
    start = x.storage_offset() - base.storage_offset()
    part: Tensor = base._tangent.as_strided(x._array.shape, element_strides(x._array), start)
    return part


def _forward_levels(x: Any) -> set[Any]:
    """Return the levels of forward mode at which ``x`` has a tangent."""
    if not isinstance(x, TransformTensor):
        return set()
    levels = _forward_levels(x._inner)
    return levels | {x._run} | _forward_levels(x._tangent) if isinstance(x, Dual) else levels


def _with_tangents_at(levels: set[Any], x: Any) -> Any:
    """Return ``x`` with a tangent of zeros at each of ``levels``, calls of forward mode, at which it has none."""
    for run in sorted(levels, key=lambda each: each.depth):
        if not _has_tangent(x, run):
            x = make_dual_tensor(run, x, zeros_as(x))
    return x


def _can_hold(held: Any, value: Any) -> bool:
    """Whether the new tangent ``value`` can be copied into the memory of the old tangent ``held``.

    A leaf cannot be overwritten while operations are recorded. An expanded tensor cannot be overwritten, because its
    elements share memory. In nested transforms, ``held`` must be batched if ``value`` is batched, and have a tangent if
    ``value`` has a tangent.
    """
    special = innermost((held, value))
    if special is None:
        array = held._array
        stretched = 0 in [step for step, size in zip(array.strides, array.shape, strict=True) if size > 1]
        return not stretched and (held._grad_edge.__class__ is not AccumulateGrad or not recording())
    run = special._run
    if special.sliced:
        inner = value._inner if isinstance(value, TransformTensor) and value._run is run else value
        return isinstance(held, TransformTensor) and held._run is run and _can_hold(held._inner, inner)
    held_tangent, value_tangent = tangent_at(held, run), tangent_at(value, run)
    return _can_hold(primal_at(held, run), primal_at(value, run)) and (
        value_tangent is None or (held_tangent is not None and _can_hold(held_tangent, value_tangent))
    )


def _zeros_in_order_of(x: Tensor) -> Tensor:
    """Return zeros of the shape and memory format of ``x``."""
    return x.detach().clone().zero_()


def _become_dual(run: Any, x: Tensor, tangent: Tensor) -> None:
    """Turn the Tensor object ``x`` itself into a dual tensor, so that all references to it refer to the dual tensor.

    ``run`` represents the call of ``torch.func.jvp``, or the ``dual_level``, to which ``tangent`` belongs.
    """
    inner: Tensor = new(x.__class__)
    _copy_fields(x, inner)
    x.__class__ = Dual
    x._run, x._inner, x._tangent = run, inner, tangent  # type: ignore[attr-defined]


def _copy_fields(source: Tensor, target: Tensor) -> None:
    """Copy all fields of ``source`` to ``target``, a tensor of the same class without fields."""
    if isinstance(source, TransformTensor):  # of an outer level
        target.__dict__.update(source.__dict__)
        return
    for name in ("_array", "_grad_edge", "_counter", "_view", "_grad"):
        setattr(target, name, getattr(source, name))
    if source._view is not None:
        target._view_version, target._creation_meta = source._view_version, source._creation_meta


_CAPTURED = (
    "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation that would "
    "mutate a captured Tensor. This is not supported; please rewrite the function being transformed to explicitly accept "
    "the mutated Tensor(s) as inputs."
)


# --- Custom functions -------------------------------------------------------------------------------------------------


def _apply_custom(run: Any, function: Any, args: tuple[Any, ...]) -> Any:
    """Return the results of a custom ``Function`` class for arguments with tangents, as dual tensors.

    ``function`` is the class, and ``args`` are the arguments of ``apply``. The tangents of the results are computed by
    the method ``jvp`` of ``function``. If ``function`` has no ``jvp``, or another transform has wrapped arguments too,
    the method ``backward`` is differentiated instead. ``run`` represents the call of ``torch.func.jvp``, or the
    ``dual_level``, to which the tangents of ``args`` belong.
    """
    primals = tuple([primal_at(each, run) for each in args])
    tangents = tuple([tangent_at(each, run) for each in args])
    if not run.alive or all(each is None for each in tangents):
        return function.apply(*primals)
    if function.jvp is Function.jvp and Function.backward is function.backward and Function.vjp is function.vjp:
        return function.jvp(None)  # raises the error for a missing jvp
    if function.jvp is Function.jvp or innermost(primals) is not None:
        result = function.apply(*primals)
        outs = result if isinstance(result, tuple) else (result,)
        out_tangents = _transposed_backward(function, primals, tangents, len(outs))
    else:
        ctx, result = function._called(primals, function.setup_context is not Function.setup_context)
        outs = result if isinstance(result, tuple) else (result,)
        out_tangents = _jvp_tangents(ctx, function, primals, tangents, outs)
    results = []
    for out, tangent in zip(outs, out_tangents, strict=True):
        at = next((i for i, each in enumerate(primals) if each is out and tangents[i] is not None), None)
        if at is not None and tangent is not None:  # modified in place
            _set_tangent(run, args[at], tangent)
            results.append(args[at])
        else:
            results.append(make_dual_tensor(run, out, tangent))
    return tuple(results) if isinstance(result, tuple) else results[0]


def _jvp_tangents(ctx: Any, function: Any, primals: Any, tangents: Any, outs: Sequence[Any]) -> list[Any]:
    """Return the tangents of ``outs``, the results of a custom ``Function`` class, computed by its method ``jvp``.

    ``function`` is the class, and ``ctx`` is the context of the call. ``primals`` and ``tangents`` are the primals and
    tangents of the arguments. ``jvp`` must return a tangent of the same shape, or None, for each of ``outs``; otherwise
    RuntimeError is raised.
    """
    in_tangents = [
        zeros_as(primal)
        if tangent is None
        and isinstance(primal, Tensor)
        and primal.dtype.category >= dtypes.FLOATING
        and ctx.materialize_grads
        else tangent
        for primal, tangent in zip(primals, tangents, strict=True)
    ]
    ctx._forward_mode = True
    try:
        out_tangents = ctx._call(function.jvp, *in_tangents)
    finally:
        ctx._forward_mode = False
    out_tangents = out_tangents if isinstance(out_tangents, tuple) else (out_tangents,)
    if len(out_tangents) != len(outs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outs)} but got {len(out_tangents)})"
            f"{_jvp_hint(function)}"
        )
    for index, (out, tangent) in enumerate(zip(outs, out_tangents, strict=True)):
        if tangent is None:
            continue
        if not isinstance(tangent, Tensor):
            raise RuntimeError(
                f"expected Variable or None (got {type(tangent).__name__}) for grad output {index}.{_jvp_hint(function)}"
            )
        if index in ctx._constant_results or not isinstance(out, Tensor) or out.dtype.category < dtypes.FLOATING:
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {index}, but  the corresponding forward output is not a "
                f"differentiable Tensor.You should return None at that position instead.{_jvp_hint(function)}"
            )
        _check_view(function, out, tangent, primals, tangents)
        if tangent._array.shape != out._array.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                f"supported. Tensor is of size {list(out._array.shape)} while the given forward gradient is of size "
                f"{list(tangent._array.shape)}.{_jvp_hint(function)}"
            )
    return list(out_tangents)


def _check_view(function: Any, out: Any, tangent: Any, primals: Any, tangents: Any) -> None:
    """Raise RuntimeError if ``out`` is a view of an argument, and ``tangent`` not such a view of its tangent."""
    base = out._view
    for primal, given in zip(primals, tangents, strict=True):
        if base is None or given is None or not (primal is base or primal._view is base):
            continue
        if tangent._view is None:
            text = "'s forward is returning a view (or an input as-is) but the jvp is not returning a view."
        elif given._view is not None and tangent._view is not given._view:
            text = " is returning a view but the jvp is not returning a view of the same base as the given grad input."
        elif given._view is None and tangent._view is not given:
            text = " is returning a view but the jvp is not returning a view of the given grad input."
        else:
            return
        raise RuntimeError(f"A custom Function{text}{_jvp_hint(function)}")


def _jvp_hint(function: Any) -> str:
    return (
        f" The jvp of {function.__name__} is defined{describe_definition(function.jvp)}. Remedy: return a tangent, or None, "
        "for each result of forward, of its shape."
    )


def _transposed_backward(function: Any, primals: Any, tangents: Any, count: int) -> list[Any]:
    """Return the tangents of the results of ``function``, a custom ``Function`` class, computed without its ``jvp``.

    The method ``backward`` computes ``Jᵀ g`` from the gradient ``g``, where ``J`` is the Jacobian of ``forward``. The
    result is linear in ``g``. Its vector-Jacobian product with the tangents ``t`` of the arguments is ``J t``, the
    tangents of the results.

    ``primals`` and ``tangents`` are the primals and tangents of the arguments, and ``count`` is the number of results.
    """
    members = [each for each in (*primals, *tangents) if isinstance(each, Tensor)]
    record = bool(recording()) and any(map(is_recorded, members))
    live = [i for i, each in enumerate(tangents) if each is not None]
    before = set_recording(True)
    try:
        inputs = {i: _with_new_edge(primals[i], members) for i in live}
        result = function.apply(*[inputs.get(i, each) for i, each in enumerate(primals)])
        outs = result if isinstance(result, tuple) else (result,)
        graded = [k for k, out in enumerate(outs) if isinstance(out, Tensor) and out.requires_grad]
        incoming = [placeholder(members, outs[k]._array.shape, outs[k]._array.dtype) for k in graded]
        values = gradients_of_tensors([outs[k] for k in graded], list(inputs.values()), incoming, True, True)
    finally:
        restore_recording(before)
    pairs = [(w, tangents[i]) for w, i in zip(values, live, strict=True) if w is not None]
    out_tangents = gradients_of_tensors([w for w, _ in pairs], incoming, [t for _, t in pairs], False, record)
    return [out_tangents[graded.index(k)] if k in graded else None for k in range(count)]


def _with_new_edge(x: Any, members: Sequence[Any]) -> Any:
    """Return a copy of ``x`` with its own place in the graph, so that the caller can differentiate with respect to it.

    The copy is ``x`` plus zeros. Inside vmap, it is batched if ``x`` or one of the tensors ``members`` is batched.
    """
    zeros = placeholder(members, x._array.shape, x._array.dtype)
    return x + zeros


# --- The tangent of an operation ------------------------------------------------------------------------------------


def tangents_of(op: Any, primals: Any, tangents: Any, params: Any, outs: Sequence[Any]) -> list[Any]:
    """Return the tangents of ``outs``, the results of the operation ``op``, as a list; None means no tangent.

    ``primals`` and ``tangents`` are the primals and tangents of the operands of ``op``, with None for an operand
    without tangent. ``params`` are the parameters of ``op``.
    """
    live = [i for i, each in enumerate(tangents) if each is not None and op.rules[i] is not None]
    count = len(outs) if op.differentiable is None else op.differentiable
    graded = [k for k, out in enumerate(outs) if k < count and out._array.dtype.kind in "fcVW"]
    out_tangents: list[Any] = [None] * len(outs)
    if not live or not graded:
        return out_tangents
    tangents = tuple([each if i in live else None for i, each in enumerate(tangents)])
    ruled = [i for i, rule in enumerate(op.rules) if rule is not None]
    if op.jvp is not None:
        results = op.jvp(F, primals, tangents, params, outs)
    elif (op.linear is True or op.kind == "view") and (
        # A view defined by strides in memory is applied to tangents only if these have the strides of their primals.
        op.kind != "view" or "part" not in op.params or _same_layout(primals, tangents)
    ):
        results = _linear(op, primals, tangents, params, ruled)
    elif op.linear == "each":
        results = _sum([apply(op, (*primals[:i], tangents[i], *primals[i + 1 :]), params) for i in live])
    elif op.kind == "pointwise" and _is_direct(op, primals, outs):
        results = _pointwise(op, primals, tangents, params, outs, live)
    else:
        results = _transposed(op, primals, tangents, params, outs, live, graded)
    results = results if isinstance(results, tuple) else (results,)
    for k in graded:
        tangent = _shaped_like(results[k], outs[k])
        if tangent is not None and op.kind != "view":
            tangent = _with_own_memory(tangent, outs[k], primals, tangents)
            if len(ruled) > 1 and not tangent.requires_grad and recording():
                tangent = _in_graph_of_factors(op, tangent, primals, tangents, params, outs)
        out_tangents[k] = tangent
    return out_tangents


def _with_own_memory(tangent: Any, out: Any, primals: Any, tangents: Any) -> Any:
    """Return ``tangent``, the tangent of the result ``out``, copied if it shares memory with one of ``tangents``.

    A rule may return its argument, as that of ``add``. The copy keeps an in-place operation on one tensor from changing
    the tangents of others. ``tangent`` is not copied if ``out`` shares memory with the operand in ``primals``, too.
    """
    for primal, each in zip(primals, tangents, strict=True):
        if each is not None and (
            each is tangent
            or (share_memory(each._array, tangent._array) and not share_memory(primal._array, out._array))
        ):
            return F.clone_block(tangent, preserve_format)
    return tangent


def _shaped_like(tangent: Any, out: Any) -> Any:
    """Return ``tangent`` expanded and cast to the shape and dtype of ``out``, or None if ``tangent`` is None."""
    if tangent is None:
        return None
    if tangent._array.shape != out._array.shape:
        tangent = expand(tangent, out._array.shape)
    return tangent if tangent._array.dtype == out._array.dtype else to_dtype(tangent, out.dtype)


def _in_graph_of_factors(op: Any, tangent: Any, primals: Any, tangents: Any, params: Any, outs: Any) -> Any:
    """Return ``tangent`` as a part of the graphs of the operands of the products that are zero.

    An operand without tangent contributes zero to the tangent of ``a * b``: the product of a zero and the other
    operand. PyTorch records this product, so that the tangent requires a gradient, which is zero.
    """
    for i, rule in enumerate(op.rules):
        if rule is None or tangents[i] is not None or is_shared(rule):
            continue
        factors = [each for j, each in enumerate(primals) if j != i and isinstance(each, Tensor) and each.requires_grad]
        if op.linear != "each":
            if op.kind != "pointwise" or not factors:
                continue
            value = _rule_value(
                rule, zeros_as(tangent), _saved_values(op, _promoted_operands(op, primals), params, outs, [i])
            )
            factors = [value] if isinstance(value, Tensor) and value.requires_grad else []
        if factors:
            return _in_graph_of(tangent, factors[0])
    return tangent


def _sum(terms: Sequence[Any]) -> Any:
    total = None
    for each in terms:
        if each is not None:
            total = each if total is None else total + each
    return total


def _same_layout(primals: Any, tangents: Any) -> bool:
    """Whether each tangent has the memory layout (shape, strides and storage offset) of its primal."""
    return all(
        isinstance(a, Tensor)
        and isinstance(b, Tensor)
        and a._array.shape == b._array.shape
        and element_strides(a._array) == element_strides(b._array)
        and a.storage_offset() == b.storage_offset()
        and memory_owner(a._array).size <= memory_owner(b._array).size
        for a, b in zip(primals, tangents, strict=True)
    )


def _linear(op: Any, primals: Any, tangents: Any, params: Any, ruled: Sequence[int]) -> Any:
    """Return the tangent of the result of the linear operation ``op``, computed by applying ``op`` to the tangents.

    Each differentiable operand is replaced by its tangent, or by zeros if it has no tangent; ``ruled`` are the indices
    of these operands. The other operands keep their values in ``primals``. A parameter in ``params`` that ``op`` writes
    into the result as a constant, such as a fill value, is replaced by 0.
    """
    parts = list(primals)
    for i in ruled:
        if isinstance(parts[i], Tensor):
            parts[i] = zeros_as(parts[i]) if tangents[i] is None else tangents[i]
    if op.name in ("view", "reshape_alias") and element_strides(parts[0]._array) != element_strides(primals[0]._array):
        return F.reshape(parts[0], *params)
    values = [0 if name in _CONSTANTS else each for name, each in zip(op.params, params, strict=True)]
    return apply(op, tuple(parts), tuple(values))


def _is_direct(op: Any, primals: Any, outs: Any) -> bool:
    """Whether the gradient rules of the pointwise operation ``op`` compute the tangent of the result from tangents.

    A gradient rule multiplies the incoming gradient by the derivative of each element. The tangent of the result is the
    tangent of the operand multiplied by the same derivative. For complex operands this is only correct if ``op`` is
    holomorphic and its result is complex. The result is False if one rule computes the gradients of several operands.
    ``primals`` are the operands, and ``outs`` the results.
    """
    if any(is_shared(rule) for rule in op.rules):
        return False
    operands = [each for each in primals if isinstance(each, Tensor)]
    return (op.holomorphic and outs[0].is_complex()) or not any(each.is_complex() for each in operands)


def _pointwise(op: Any, primals: Any, tangents: Any, params: Any, outs: Any, live: Sequence[int]) -> Any:
    saved = _saved_values(op, _promoted_operands(op, primals), params, outs, live)
    shape, terms = outs[0]._array.shape, []
    for i in live:
        tangent = tangents[i]
        if tangent._array.shape != shape:
            tangent = expand(tangent, shape)
        terms.append(_rule_value(op.rules[i], tangent, saved))
    return _sum(terms)


def _promoted_operands(op: Any, primals: Any) -> tuple[Any, ...]:
    """Return the operands ``primals`` in the dtype in which the operation ``op`` computes.

    Only Tensors are cast, and only if ``op`` is pointwise.
    """
    if op.kind != "pointwise":
        return tuple(primals)
    common = common_dtype(primals)
    if op.floats and common.category < dtypes.FLOATING:
        common = dtypes.default.floating
    return tuple(
        to_dtype(each, common) if isinstance(each, Tensor) and each.dtype is not common else each for each in primals
    )


def _saved_values(
    op: Any, primals: Any, params: Any, outs: Any, live: Sequence[int], change: Callable[[Any], Any] | None = None
) -> dict[str, Any]:
    """Return the values that the gradient rules of the operation ``op`` read, as a dictionary by name.

    A value is an operand (from ``primals``), a parameter (from ``params``), a result (from ``outs``), or a shape,
    strides, dtype or device of a tensor. Only the rules of the operands with the indices ``live`` are considered. If
    ``change`` is not None, it is applied to each Tensor among the values.
    """
    values: dict[str, Any] = {}
    for each in op.saved():
        if not any(i in each.rules for i in live):
            continue
        source: Any = primals[each.index] if each.kind in ("tensor", "shape", "strides", "dtype", "device") else None
        if each.kind == "parameter":
            values[each.name] = params[each.index]
        elif each.kind in ("shape", "out_shape"):
            tensor = outs[0] if each.kind == "out_shape" else source
            values[each.name] = tensor._array.shape if isinstance(tensor, Tensor) else ()
        elif each.kind in ("dtype", "out_dtype"):
            values[each.name] = (outs[0] if each.kind == "out_dtype" else source)._array.dtype
        elif each.kind == "strides":
            values[each.name] = source._array.strides
        elif each.kind == "device":
            values[each.name] = devices.device_of(source._array)
        else:
            value = source if each.kind == "tensor" else outs[each.index]
            values[each.name] = change(value) if change is not None and isinstance(value, Tensor) else value
    return values


def _rule_value(rule: Any, g: Any, saved: dict[str, Any]) -> Any:
    """Apply the gradient rule ``rule`` to ``g``, an incoming gradient or a tangent, and return the result.

    If the rule is a number, the result is ``g`` times this number; for 0 it is None. If the rule is a string, it is the
    name of a factor in ``saved``. If it is a function with a parameter ``g``, its return value is the result. The
    return value of any other function is a factor by which ``g`` is multiplied. ``saved`` is a dictionary from the
    names of the function's parameters to their values.
    """
    if isinstance(rule, (int, float)):
        return g if rule == 1 else None if rule == 0 else g * rule
    if isinstance(rule, str):
        return g * saved[rule]
    names = arguments(rule)
    value = rule(*[F if name == "F" else g if name == "g" else saved[name] for name in names])
    return value if "g" in names else g * value


class _TensorSpec:
    """Shape and dtype of the tensor ``like``, to which :func:`validate_gradient` converts a gradient.

    An object of this class replaces a graph node in the arguments of that function.
    """

    def __init__(self, like: Tensor) -> None:
        self.shape, self.dtype, self.edges = like._array.shape, like._array.dtype, ()


def _transposed(
    op: Any, primals: Any, tangents: Any, params: Any, outs: Any, live: Sequence[int], graded: Sequence[int]
) -> Any:
    """Return the tangents of ``outs``, computed by differentiating the gradient rules of the operation ``op``.

    The gradient rules compute ``Jᵀ g`` from the gradient ``g``, where ``J`` is the Jacobian of ``op``. The result is
    linear in ``g``. Its vector-Jacobian product with the tangents ``t`` of the operands is ``J t``, the tangents of the
    results.

    ``primals`` are the operands of ``op``, ``tangents`` their tangents, and ``params`` the parameters. ``live`` are the
    indices of the operands with a tangent, and ``graded`` the indices of the differentiable results.
    """
    members = [each for each in (*primals, *tangents) if isinstance(each, Tensor)]
    record = bool(recording()) and any(map(is_recorded, members))
    conjugate = op.holomorphic and any(each.is_complex() for each in (outs[0], *members))
    before = set_recording(True)
    try:
        saved = _saved_values(
            op, _promoted_operands(op, primals), params, outs, live, F.conj_physical if conjugate else None
        )
        incoming = [placeholder(members, outs[k]._array.shape, outs[k]._array.dtype) for k in graded]
        several = op.several or (op.outputs and op.differentiable != 1)
        given = [incoming[graded.index(k)] if k in graded else None for k in range(len(outs))]
        values = _values(op, tuple(given) if several else given[0], saved, live)
        pairs = [
            (validate_gradient(w, _TensorSpec(primals[i]), _TensorSpec(w)), tangents[i])
            for i, w in values
            if w is not None
        ]
    finally:
        restore_recording(before)
    out_tangents = gradients_of_tensors([w for w, _ in pairs], incoming, [t for _, t in pairs], False, record)
    return tuple(out_tangents[graded.index(k)] if k in graded else None for k in range(len(outs)))


def _values(op: Any, g: Any, saved: dict[str, Any], live: Sequence[int]) -> list[tuple[int, Any]]:
    """Return the gradients of the operands of ``op``, as a list of pairs (index, gradient).

    ``live`` are the indices of the operands whose gradients are computed. Each gradient is computed by the gradient
    rule of the operand from ``g``, the incoming gradient, and ``saved``, a dictionary from names to the values that the
    rules read. ``g`` is a tuple if ``op`` has several results.
    """
    gradients, shared = [], {}
    for i in live:
        rule = op.rules[i]
        if is_shared(rule):
            if rule not in shared:
                shared[rule] = _rule_value(rule, g, saved)
            sharing = [k for k, each in enumerate(op.rules) if each is rule]
            gradients.append((i, shared[rule][sharing.index(i)]))
        else:
            gradients.append((i, _rule_value(rule, g, saved)))
    return gradients


def is_recorded(x: Any) -> bool:
    """Whether operations on ``x``, or on a tangent of ``x``, are recorded."""
    while isinstance(x, TransformTensor):
        if isinstance(x, Dual) and is_recorded(x._tangent):
            return True
        x = x._inner
    return isinstance(x, Tensor) and x.requires_grad
