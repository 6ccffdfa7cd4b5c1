"""Forward mode: duals, which carry a tangent along with their number, and the tangent of every block of the table.

Only the parts of a dual lie in the graph: its primal, and its tangent, which is computed by recorded operations too. So
reverse over forward needs nothing more. Forward over reverse follows from it: if ``y + y' e`` is computed from ``x + x' e``,
the gradient of ``y`` by ``x + x' e`` is itself a dual, the gradients of ``y`` and of ``y'`` by ``x`` (``Dual.gradients``).

What the tangent of a block is, its rules say: a rule is the transpose of the derivative, and the transpose of the rule,
taken by differentiating the rule by the gradient that it is given, is the derivative again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import devices, dtypes
from ..core.engine import validate_gradient
from ..core.error_context import describe_definition
from ..core.grad_mode import in_inference, recording, restore_recording, set_recording
from ..core.graph import AccumulateGrad
from ..core.tensor import Tensor, element_strides, memory_of, new, preserve_format
from ..dispatch.generic_path import apply, modify
from ..dispatch.op import TENSORS, arguments, is_shared
from ..dispatch.operand_promotion import common_dtype
from ..dispatch.transform_tensor import TransformTensor, innermost, placeholder, slicing, spread_as, wrap_in
from ..operations.engine_ops import expand, to_dtype
from ..operations.tensor_protocols import text_of
from .backward import solve
from .function import Function

F = TENSORS

#: Linear in all tensors that have a rule, taken together: the tangent is the block of the tangents.
_JOINT = frozenset(
    """
    copy_block fill_tensor_block index_put_block scatter_src scatter_add_block index_add_block index_copy_block
    index_fill_tensor masked_fill_tensor masked_scatter_block put_block as_strided_scatter_block select_scatter_block
    slice_scatter_block diagonal_scatter_block strided_write where_block to_dtype to_device real imag_of conj_physical
    conj_block sum_to_size where_else complex_pair complex_of complex_of_pairs view_as_real view_as_complex expand
    """.split()  # noqa: SIM905
)
#: Linear in each tensor that has a rule: the tangent is the sum over the tensors, each in its turn replaced.
_EACH = frozenset({"mm", "bmm", "mv", "dot", "convolution_output", "convolution_input", "convolution_weight", "mul"})
#: Views that reach into the memory of their tensors: of tangents too, if these lie there as their primals do.
_BY_STRIDES = ("as_strided_block", "slice_inverse_block")
#: What a linear block puts where nothing of its tensor is: nothing of it is in the tangent.
_CONSTANTS = ("value", "fill")


class Dual(TransformTensor):
    """``inner``, the primal, and the tangent that goes with it, of its shape."""

    __slots__ = ()
    _tangent: Tensor

    def process(self, op: Any, tensors: tuple[Any, ...], params: tuple[Any, ...], in_place: bool) -> Any:
        run = self._run
        primals = tuple([primal_in(each, run) for each in tensors])
        tangents = tuple([tangent_in(each, run) for each in tensors])
        if not run.alive or in_inference():
            tangents = (None,) * len(tangents)
        if in_place:
            return _modified(run, op, tensors[0], primals, tangents, params)
        result = apply(op, primals, params)
        outs = result if isinstance(result, tuple) else (result,)
        found = [make(run, *each) for each in zip(outs, tangents_of(op, primals, tangents, params, outs), strict=True)]
        return tuple(found) if isinstance(result, tuple) else found[0]

    def refuse_out(self, name: str) -> Exception:
        return NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function. Remedy: take "
            "the result as it is returned."
        )

    def blank(self, members: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Tensor:
        parts = [primal_in(each, self._run) for each in members] + [tangent_in(each, self._run) for each in members]
        return placeholder([each for each in parts if each is not None], shape, dtype)

    def gradients(self, outs: Any, inputs: Any, grads: Any, solve: Callable[..., Any]) -> list[Any]:
        run = self._run
        inputs = [primal_in(each, run) for each in inputs]
        primals, slopes = [primal_in(each, run) for each in outs], [tangent_in(each, run) for each in outs]
        given, bent = [primal_in(each, run) for each in grads], [tangent_in(each, run) for each in grads]
        pairs = [(out, grad) for out, grad in zip(slopes, given, strict=True) if out is not None]
        pairs += [(out, grad) for out, grad in zip(primals, bent, strict=True) if grad is not None]
        found: list[Any] = solve(primals, inputs, given, not pairs)
        if not pairs:
            return found
        turned = solve([out for out, _ in pairs], inputs, [grad for _, grad in pairs], True)
        return [
            None if a is None and b is None else _paired(run, a, b, each)
            for a, b, each in zip(found, turned, inputs, strict=True)
        ]

    def custom(self, function: Any, args: tuple[Any, ...]) -> Any:
        return _custom(self._run, function, args)

    def joined(self, tensors: Sequence[Any], dim: Any, join: Callable[..., Any]) -> Any:
        primals = [primal_in(each, self._run) for each in tensors]
        tangents = [tangent_in(each, self._run) for each in tensors]
        out = join(primals, dim)
        if not self._run.alive or in_inference() or all(each is None for each in tangents):
            return out
        filled = [zeros_as(a) if b is None else b for a, b in zip(primals, tangents, strict=True)]
        return make(self._run, out, join(filled, dim))

    def spread_as(self, made: Tensor) -> Any:
        found = spread_as(self._inner, made)
        if not self._run.strict or made._array.dtype.kind not in "fcV":
            return found
        # What is written into it may have a tangent, and of this run a view of it could not tell it that it has one now.
        return make(
            self._run, found, placeholder((found, self._tangent), made._array.shape, made._array.dtype).detach()
        )

    def merged(self, members: Sequence[Any], build: Callable[..., Any]) -> Any:
        primals = [primal_in(each, self._run) for each in members]
        tangents = [tangent_in(each, self._run) for each in members]
        filled = [zeros_as(a) if b is None else b for a, b in zip(primals, tangents, strict=True)]
        return make(self._run, build(*primals), build(*filled))

    def detach(self) -> Tensor:
        """The primal without the tangent, outside the graph."""
        return self._inner.detach()

    data = property(lambda self: self._inner.data, lambda self, value: setattr(self._inner, "data", value))

    def requires_grad_(self, requires_grad: Any = True) -> Tensor:
        """Set whether the primal requires gradients."""
        self._inner.requires_grad_(requires_grad)
        return self

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        if not self._run.alive:
            return repr(self._inner)
        return text_of(self._inner, contents=tensor_contents, more=(f"tangent={self._tangent}",))


def make(run: Any, primal: Any, tangent: Any) -> Any:
    """The dual of two parts; the primal alone if there is no tangent."""
    if tangent is None:
        return primal
    special = innermost((primal, tangent))
    if special is not None and special._run.depth > run.depth:
        return special.merged((primal, tangent), lambda a, b: make(run, a, b))
    if isinstance(primal, TransformTensor) and not slicing(primal) <= slicing(tangent):
        tangent = tangent + zeros_as(primal)  # what is written into slices needs a place for each
    made = wrap_in(Dual, run, primal)
    made._tangent = tangent
    return made


def primal_in(x: Any, run: Any) -> Any:
    """``x`` without its tangent of ``run``."""
    if not isinstance(x, TransformTensor) or x._run.depth < run.depth:
        return x
    if x._run is run:
        return x._inner
    return x.merged((x,), lambda part: primal_in(part, run))


def tangent_in(x: Any, run: Any) -> Any:
    """The tangent of ``x`` in ``run``, or None."""
    if not isinstance(x, TransformTensor) or x._run.depth < run.depth:
        return None
    if x._run is run:
        return x._tangent
    if not _has_tangent(x, run):
        return None

    def part(each: Any) -> Any:
        found = tangent_in(each, run)
        return zeros_as(each) if found is None else found

    return x.merged((x,), part)


def _has_tangent(x: Any, run: Any) -> bool:
    """Whether ``x``, or what it stands for, has a tangent in ``run``."""
    if not isinstance(x, TransformTensor):
        return False
    return x._run is run or any(_has_tangent(each, run) for each in (x._inner, getattr(x, "_tangent", None)))


def zeros_as(x: Any) -> Tensor:
    """Zeros of the shape of ``x`` with a slice for every slice of the batches that it belongs to."""
    return F.zeros_as(x)


def _paired(run: Any, primal: Any, tangent: Any, like: Any) -> Any:
    return make(run, zeros_as(tangent) if primal is None else primal, tangent)


# --- In place -------------------------------------------------------------------------------------------------------


def _modified(run: Any, op: Any, x: Any, primals: Any, tangents: Any, params: Any) -> Any:
    """Write the result of ``op`` into ``x``, and its tangent into that of ``x``, which it now has if it had none."""
    tangent = None
    if any(each is not None for each in tangents) and op.has_rules:
        # What is written over may be needed.
        before = (F.clone_block(primals[0], preserve_format), *primals[1:])
        members = [each for each in (*primals, *tangents) if isinstance(each, Tensor)]
        if tangents[0] is not None and recording() and any(map(_is_recorded, members)):
            tangents = (F.clone_block(tangents[0], preserve_format), *tangents[1:])
        tangent = tangents_of(op, before, tangents, params, (apply(op, before, params),))[0]
    modify(op, primals, params)
    if tangent is None:
        if tangents[0] is not None and x._array.dtype.kind in "fcV":
            _settle(run, x, zeros_as(x._tangent))
    else:
        _settle(run, x, tangent)
    return x


def _settle(run: Any, x: Any, tangent: Any) -> None:
    """Let ``tangent`` be the tangent of ``x``: in the memory of the old one, which views of ``x`` share."""
    if not (isinstance(x, Dual) and x._run is run):
        if isinstance(x, TransformTensor):
            raise RuntimeError(CAPTURED)
        base = x._view
        if base is None:
            become(run, x, expand(F.to_dtype(tangent, x.dtype), x._array.shape).clone())
            return
        if base.__class__ is not Dual:
            zeros = placeholder((base, tangent), base._array.shape, base._array.dtype).detach()
            become(run, base, zeros if isinstance(zeros, TransformTensor) else _zeros_in_order_of(base))
        start = x.storage_offset() - base.storage_offset()
        become(run, x, base._tangent.as_strided(x._array.shape, element_strides(x._array), start))
    held = x._tangent
    if _takes(held, tangent):
        held.copy_(tangent)
    else:
        x._tangent = tangent


def _takes(held: Any, value: Any) -> bool:
    """Whether ``value`` can be written into the memory of ``held``: it has as many slices, and each element a place."""
    special = innermost((held, value))
    if special is None:
        array = held._array
        stretched = 0 in [step for step, size in zip(array.strides, array.shape, strict=True) if size > 1]
        return not stretched and held._grad_edge.__class__ is not AccumulateGrad
    run = special._run
    if special.sliced:
        inner = value._inner if isinstance(value, TransformTensor) and value._run is run else value
        return isinstance(held, TransformTensor) and held._run is run and _takes(held._inner, inner)
    own, slope = tangent_in(held, run), tangent_in(value, run)
    return _takes(primal_in(held, run), primal_in(value, run)) and (
        slope is None or (own is not None and _takes(own, slope))
    )


def _zeros_in_order_of(x: Tensor) -> Tensor:
    """Zeros of the shape of ``x``, in memory of their own in the same order."""
    return x.detach().clone().zero_()


def become(run: Any, x: Tensor, tangent: Tensor) -> None:
    """Give a plain tensor a tangent: the same object is a dual from now on."""
    inner: Tensor = new(Tensor)
    for name in ("_array", "_grad_edge", "_counter", "_view", "_grad"):
        setattr(inner, name, getattr(x, name))
    if x._view is not None:
        inner._view_version, inner._creation_meta = x._view_version, x._creation_meta
    x.__class__ = Dual
    x._run, x._inner, x._tangent = run, inner, tangent  # type: ignore[attr-defined]


CAPTURED = (
    "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation that would "
    "mutate a captured Tensor. This is not supported; please rewrite the function being transformed to explicitly accept "
    "the mutated Tensor(s) as inputs."
)


# --- Custom functions -------------------------------------------------------------------------------------------------


def _custom(run: Any, function: Any, args: tuple[Any, ...]) -> Any:
    """What a custom function gives: the tangents by its ``jvp``, or if it has none by the transpose of its backward."""
    primals = tuple([primal_in(each, run) for each in args])
    tangents = tuple([tangent_in(each, run) for each in args])
    if not run.alive or all(each is None for each in tangents):
        return function.apply(*primals)
    if function.jvp is Function.jvp or innermost(primals) is not None:
        result = function.apply(*primals)
        outs = result if isinstance(result, tuple) else (result,)
        slopes = _pushed(function, primals, tangents, len(outs))
    else:
        ctx, result = function._called(primals, function.setup_context is not Function.setup_context)
        outs = result if isinstance(result, tuple) else (result,)
        slopes = _own_slopes(ctx, function, primals, tangents, outs)
    found = []
    for out, slope in zip(outs, slopes, strict=True):
        at = next((i for i, each in enumerate(primals) if each is out and tangents[i] is not None), None)
        if at is not None and slope is not None:  # modified in place
            _settle(run, args[at], slope)
            found.append(args[at])
        else:
            found.append(make(run, out, slope))
    return tuple(found) if isinstance(result, tuple) else found[0]


def _own_slopes(ctx: Any, function: Any, primals: Any, tangents: Any, outs: Sequence[Any]) -> list[Any]:
    """What the user's ``jvp`` gives, checked."""
    given = [
        zeros_as(primal) if slope is None and isinstance(primal, Tensor) and ctx.materialize_grads else slope
        for primal, slope in zip(primals, tangents, strict=True)
    ]
    ctx.forward_mode = True
    try:
        slopes = function.jvp(ctx, *given)
    finally:
        ctx.forward_mode = False
    slopes = slopes if isinstance(slopes, tuple) else (slopes,)
    if len(slopes) != len(outs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outs)} but got {len(slopes)})"
            f"{_jvp_hint(function)}"
        )
    for index, (out, slope) in enumerate(zip(outs, slopes, strict=True)):
        if slope is None:
            continue
        if not isinstance(slope, Tensor):
            raise RuntimeError(
                f"expected Variable or None (got {type(slope).__name__}) for grad output {index}.{_jvp_hint(function)}"
            )
        if slope._array.shape != out._array.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                f"supported. Tensor is of size {list(out._array.shape)} while the given forward gradient is of size "
                f"{list(slope._array.shape)}.{_jvp_hint(function)}"
            )
    return list(slopes)


def _jvp_hint(function: Any) -> str:
    return (
        f" The jvp of {function.__name__} is defined{describe_definition(function.jvp)}. Remedy: return a tangent, or None, for each "
        "result of forward, of its shape."
    )


def _pushed(function: Any, primals: Any, tangents: Any, count: int) -> list[Any]:
    """The tangents of a function by the transpose of its backward."""
    members = [each for each in (*primals, *tangents) if isinstance(each, Tensor)]
    record = bool(recording()) and any(map(_is_recorded, members))
    live = [i for i, each in enumerate(tangents) if each is not None]
    before = set_recording(True)
    try:
        inputs = {i: placed(primals[i], members) for i in live}
        result = function.apply(*[inputs.get(i, each) for i, each in enumerate(primals)])
        outs = result if isinstance(result, tuple) else (result,)
        graded = [k for k, out in enumerate(outs) if isinstance(out, Tensor) and out.requires_grad]
        places = [placeholder(members, outs[k]._array.shape, outs[k]._array.dtype) for k in graded]
        values = solve([outs[k] for k in graded], list(inputs.values()), places, True, True)
    finally:
        restore_recording(before)
    pairs = [(w, tangents[i]) for w, i in zip(values, live, strict=True) if w is not None]
    found = solve([w for w, _ in pairs], places, [t for _, t in pairs], False, record)
    return [found[graded.index(k)] if k in graded else None for k in range(count)]


def placed(x: Any, members: Sequence[Any]) -> Any:
    """``x`` at a place of its own in the graph, with a slice for every slice of ``members``."""
    wide = placeholder(members, x._array.shape, x._array.dtype)
    return x + wide


# --- The tangent of a block -----------------------------------------------------------------------------------------


def tangents_of(op: Any, primals: Any, tangents: Any, params: Any, outs: Sequence[Any]) -> list[Any]:
    """The tangents of the results ``outs`` of a block, given those of its tensors (None: there is none)."""
    live = [i for i, each in enumerate(tangents) if each is not None and op.rules[i] is not None]
    count = len(outs) if op.differentiable is None else op.differentiable
    graded = [k for k, out in enumerate(outs) if k < count and out._array.dtype.kind in "fcV"]
    found: list[Any] = [None] * len(outs)
    if not live or not graded:
        return found
    tangents = tuple([each if i in live else None for i, each in enumerate(tangents)])
    ruled = [i for i, rule in enumerate(op.rules) if rule is not None]
    if op.jvp is not None:
        results = op.jvp(F, primals, tangents, params, outs)
    elif op.name in _JOINT or (
        _lie_alike(primals, tangents) if op.name in _BY_STRIDES else ruled == [0] and (op.linear or op.kind == "view")
    ):
        results = _linear(op, primals, tangents, params, ruled)
    elif op.name in _EACH:
        results = _sum([apply(op, (*primals[:i], tangents[i], *primals[i + 1 :]), params) for i in live])
    elif op.kind == "pointwise" and _is_direct(op, primals, outs):
        results = _pointwise(op, primals, tangents, params, outs, live)
    else:
        results = _transposed(op, primals, tangents, params, outs, live, graded)
    results = results if isinstance(results, tuple) else (results,)
    for k in graded:
        found[k] = _fitted(results[k], outs[k])
    return found


def _fitted(tangent: Any, out: Any) -> Any:
    """``tangent`` in the shape and dtype of ``out``."""
    if tangent is None:
        return None
    if tangent._array.shape != out._array.shape:
        tangent = expand(tangent, out._array.shape)
    return tangent if tangent._array.dtype == out._array.dtype else to_dtype(tangent, out.dtype)


def _sum(terms: Sequence[Any]) -> Any:
    total = None
    for each in terms:
        if each is not None:
            total = each if total is None else total + each
    return total


def _lie_alike(primals: Any, tangents: Any) -> bool:
    """Whether each primal and its tangent lie in their memory in the same way."""
    return all(
        isinstance(a, Tensor)
        and isinstance(b, Tensor)
        and a._array.shape == b._array.shape
        and element_strides(a._array) == element_strides(b._array)
        and a.storage_offset() == b.storage_offset()
        and memory_of(a._array).size <= memory_of(b._array).size
        for a, b in zip(primals, tangents, strict=True)
    )


def _linear(op: Any, primals: Any, tangents: Any, params: Any, ruled: Sequence[int]) -> Any:
    """The block of the tangents, zeros where there is none, and of nothing else that it would put in."""
    parts = list(primals)
    for i in ruled:
        if isinstance(parts[i], Tensor):
            parts[i] = zeros_as(parts[i]) if tangents[i] is None else tangents[i]
    if op.name in ("view", "reshape_alias") and element_strides(parts[0]._array) != element_strides(primals[0]._array):
        return F.reshape(parts[0], *params)
    values = [0 if name in _CONSTANTS else each for name, each in zip(op.params, params, strict=True)]
    return apply(op, tuple(parts), tuple(values))


def _is_direct(op: Any, primals: Any, outs: Any) -> bool:
    """Whether the rules, which say what is multiplied with the gradient, say the same of a tangent."""
    if any(is_shared(rule) for rule in op.rules):
        return False
    operands = [each for each in primals if isinstance(each, Tensor)]
    return (op.holomorphic and outs[0].is_complex()) or not any(each.is_complex() for each in operands)


def _pointwise(op: Any, primals: Any, tangents: Any, params: Any, outs: Any, live: Sequence[int]) -> Any:
    saved = _saved(op, _together(op, primals), params, outs, live)
    shape, terms = outs[0]._array.shape, []
    for i in live:
        tangent = tangents[i]
        if tangent._array.shape != shape:
            tangent = expand(tangent, shape)
        terms.append(_ruled(op.rules[i], tangent, saved))
    return _sum(terms)


def _together(op: Any, primals: Any) -> tuple[Any, ...]:
    """The operands of a pointwise block in the dtype in which it calculates them; numbers as they are."""
    if op.kind != "pointwise":
        return tuple(primals)
    common = common_dtype(primals)
    if op.floats and common.category < dtypes.FLOATING:
        common = dtypes.default.floating
    return tuple(
        to_dtype(each, common) if isinstance(each, Tensor) and each.dtype is not common else each for each in primals
    )


def _saved(
    op: Any, primals: Any, params: Any, outs: Any, live: Sequence[int], change: Callable[[Any], Any] | None = None
) -> dict[str, Any]:
    """What the rules of the tensors ``live`` name, by name; ``change``: what is done to each tensor."""
    found: dict[str, Any] = {}
    for each in op.saved():
        if not any(i in each.rules for i in live):
            continue
        source: Any = primals[each.index] if each.kind in ("tensor", "shape", "strides", "dtype", "device") else None
        if each.kind == "parameter":
            found[each.name] = params[each.index]
        elif each.kind in ("shape", "out_shape"):
            tensor = outs[0] if each.kind == "out_shape" else source
            found[each.name] = tensor._array.shape if isinstance(tensor, Tensor) else ()
        elif each.kind in ("dtype", "out_dtype"):
            found[each.name] = (outs[0] if each.kind == "out_dtype" else source)._array.dtype
        elif each.kind == "strides":
            found[each.name] = source._array.strides
        elif each.kind == "device":
            found[each.name] = devices.device_of(source._array)
        else:
            value = source if each.kind == "tensor" else outs[each.index]
            found[each.name] = change(value) if change is not None and isinstance(value, Tensor) else value
    return found


def _ruled(rule: Any, g: Any, saved: dict[str, Any]) -> Any:
    """What a rule makes of the incoming ``g``."""
    if isinstance(rule, (int, float)):
        return g if rule == 1 else None if rule == 0 else g * rule
    if isinstance(rule, str):
        return g * saved[rule]
    names = arguments(rule)
    value = rule(*[F if name == "F" else g if name == "g" else saved[name] for name in names])
    return value if "g" in names else g * value


class _Form:
    """A shape and a dtype, to which a gradient is fitted."""

    def __init__(self, like: Tensor) -> None:
        self.shape, self.dtype, self.edges = like._array.shape, like._array.dtype, ()


def _transposed(
    op: Any, primals: Any, tangents: Any, params: Any, outs: Any, live: Sequence[int], graded: Sequence[int]
) -> Any:
    """The transpose of the transpose: the rules' values differentiated by the gradients that they are given."""
    members = [each for each in (*primals, *tangents) if isinstance(each, Tensor)]
    record = bool(recording()) and any(map(_is_recorded, members))
    conjugate = op.holomorphic and any(each.is_complex() for each in (outs[0], *members))
    before = set_recording(True)
    try:
        saved = _saved(op, _together(op, primals), params, outs, live, F.conj_physical if conjugate else None)
        places = [placeholder(members, outs[k]._array.shape, outs[k]._array.dtype) for k in graded]
        several = op.several or (op.outputs and op.differentiable != 1)
        given = [places[graded.index(k)] if k in graded else None for k in range(len(outs))]
        values = _values(op, tuple(given) if several else given[0], saved, live)
        pairs = [(validate_gradient(w, _Form(primals[i]), _Form(w)), tangents[i]) for i, w in values if w is not None]
    finally:
        restore_recording(before)
    found = solve([w for w, _ in pairs], places, [t for _, t in pairs], False, record)
    return tuple(found[graded.index(k)] if k in graded else None for k in range(len(outs)))


def _values(op: Any, g: Any, saved: dict[str, Any], live: Sequence[int]) -> list[tuple[int, Any]]:
    """For each tensor of ``live`` its gradient by the rules."""
    found, shared = [], {}
    for i in live:
        rule = op.rules[i]
        if is_shared(rule):
            if rule not in shared:
                shared[rule] = _ruled(rule, g, saved)
            sharing = [k for k, each in enumerate(op.rules) if each is rule]
            found.append((i, shared[rule][sharing.index(i)]))
        else:
            found.append((i, _ruled(rule, g, saved)))
    return found


def _is_recorded(x: Any) -> bool:
    return x.requires_grad or (isinstance(x, Dual) and _is_recorded(x._tangent))
