"""``grad``, ``vjp``, ``jvp`` and ``linearize``: functions that compute derivatives of a given function.

Reverse mode uses the ordinary autograd graph. The given function is called with an alias of each argument: a tensor
with the same elements, but its own place in the graph. The gradient is computed with respect to the alias. Therefore
only uses of the argument inside the function contribute to the gradient, also if the calls are nested.

Inside vmap the alias is a batched tensor, because the gradient is different for each slice. The alias of a dual tensor
(a tensor with a tangent) is a dual tensor. The backward pass is recorded only if its result can be differentiated
outside the call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..autograd.backward import gradient_edge_of, gradients_of_tensors
from ..autograd.dual import Dual, make_dual_tensor, primal_at, tangent_at, zeros_as
from ..core.error_context import describe_definition, with_remedy
from ..core.grad_mode import in_inference, inference_mode, no_grad, recording, restore_recording, set_recording
from ..core.graph import AccumulateGrad, OutputEdge, dead_ref, hooks_of, next_number
from ..core.pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten
from ..core.tensor import Tensor, wrap
from ..dispatch.op import TENSORS as F
from ..dispatch.operand_promotion import PLAIN
from ..dispatch.transform_tensor import INTERNAL_LEAVES, TransformLevel, TransformTensor, active_levels, placeholder
from .batched_tensor import Batch, VmapRun, batch, expand_over_slices

Argnums = int | tuple[int, ...]


class GradRun(TransformLevel):
    """One active call that computes gradients by reverse mode, such as a call of :func:`grad`.

    Unlike calls of vmap and jvp, which wrap their arguments as batched or dual tensors, this call does not wrap
    tensors. ``level`` describes the arguments of the call (see :class:`Level`).
    """

    __slots__ = ("level",)

    def __init__(self, level: Level) -> None:
        super().__init__()
        self.level = level


class JvpRun(TransformLevel):
    """One active call of :func:`jvp`, in which the arguments are dual tensors (tensors with tangents)."""

    __slots__ = ()


class LinearizeRun(JvpRun):
    """One active call of :func:`linearize`, in which tangents are recorded also under ``no_grad``."""

    __slots__ = ()
    records_tangents = True


# --- Aliases of arguments ---------------------------------------------------------------------------------------------


def _check_tensor(x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    return x


def _expand_for_vmap(x: Any, around: Sequence[TransformLevel]) -> Any:
    """Return ``x`` as a tensor that is batched by every active call of vmap.

    If a call has not batched ``x``, the result has ``x`` as each of its slices. ``around`` is a list of the active
    calls of transforms, the innermost first.
    """
    if not around:
        return x
    run, *rest = around
    if isinstance(x, TransformTensor) and x._run is run:
        if isinstance(x, Batch):
            return batch(x._run, _expand_for_vmap(x._inner, rest), x._dim)
        if not isinstance(x, Dual):  # a traced tensor of the compiler
            return x
        return make_dual_tensor(run, _expand_for_vmap(x._inner, rest), _expand_for_vmap(x._tangent, rest))
    if isinstance(run, VmapRun):
        return batch(run, _expand_for_vmap(expand_over_slices(x, run), rest))
    return _expand_for_vmap(x, rest)


def _without_inference(x: Any) -> Any:
    """Return an ordinary tensor that shares the memory of ``x``, if ``x`` was created in inference mode.

    Any other value ``x`` is returned unchanged.
    """
    return wrap(x._array) if isinstance(x, Tensor) and x.__class__ in PLAIN and x.is_inference() else x


def _alias(x: Any) -> Any:
    """Return a tensor with the elements of ``x`` that has its own place in the autograd graph.

    This is a helper of :func:`make_alias`. If ``x`` is a batched tensor, so is the result. If ``x`` is a dual tensor,
    the result has an alias of the primal, and the same tangent.
    """
    if isinstance(x, Batch):
        return batch(x._run, _alias(x._inner), x._dim)
    if isinstance(x, Dual):
        return make_dual_tensor(x._run, _alias(x._inner), x._tangent)
    if x.requires_grad:
        alias = F.alias(x)
        alias._view = None  # an in-place operation on the alias must not count as one on the argument
        return alias
    return _without_inference(x.detach())._set_requires_grad()


def make_alias(x: Any) -> Any:
    """Return the alias of the argument ``x``, which the differentiated function gets in place of ``x``.

    The alias is a tensor with the same elements, but with its own place in the autograd graph. Inside vmap it is a
    batched tensor, even if ``x`` is not. Raises RuntimeError unless the dtype of ``x`` is floating point or complex.
    """
    _check_tensor(x)
    if not (x.is_floating_point() or x.is_complex()):
        text = "only Tensors of floating point dtype can require gradients"
        raise RuntimeError(with_remedy(text, "convert the argument, as by .float()"))
    return _alias(_expand_for_vmap(x, active_levels()[::-1]))


def _edges_of(x: Any) -> list[Any]:
    """Return the places in the autograd graph (gradient edges) at which the gradients of ``x`` are computed.

    A batched tensor has the edge of the tensor that it wraps. A dual tensor has the edges of its primal and of its
    tangent. The list is empty if ``x`` requires no gradient.
    """
    if isinstance(x, TransformTensor):
        return _edges_of(x._inner) + (_edges_of(x._tangent) if isinstance(x, Dual) else [])
    edge = gradient_edge_of(x)
    return [] if edge is None else [edge]


class Level:
    """Places in the autograd graph of the arguments of one call of :func:`grad`, :func:`vjp` or :func:`linearize`.

    The gradients are computed with respect to aliases of the arguments (see :func:`make_alias`). This object stores
    where the aliases are in the graph, so that :meth:`leads_outside` can recognise the arguments.
    """

    def __init__(self) -> None:
        self.own: list[Any] = []
        self.aliases: list[Any] = []  # edges of aliases whose arguments are in the graph already
        self.recording = bool(recording())

    def make_alias(self, x: Any) -> Any:
        """Return the alias of the argument ``x`` (see the function :func:`make_alias`), and store its gradient edge."""
        alias = inner = make_alias(x)
        while isinstance(inner, TransformTensor):  # of a dual only the primal is an alias
            inner = inner._inner
        edge = gradient_edge_of(inner)
        if edge.__class__ is AccumulateGrad:
            INTERNAL_LEAVES.add(edge)
            self.own.append(edge)
        else:
            self.aliases.append(edge)
            if self.recording:
                kind: Any = type(edge)
                edge.__class__ = _leaf_alias(kind)
                hooks_of(edge)  # functions that modify a tensor check its class only if it has hooks
        return alias

    def leads_outside(self, tensors: Sequence[Any]) -> bool:
        """Whether ``tensors`` depend on a tensor that requires a gradient and is not an argument of this call.

        These are leaf tensors of the user, even if they were deleted, and aliases of enclosing calls. If the caller is
        inside ``no_grad``, the result is False.
        """
        if not self.recording:
            return False
        around = [run.level for run in active_levels() if run.__class__ is GradRun and run.level is not self]
        wanted = {id(edge) for level in around for edge in (*level.own, *level.aliases)}
        own, seen = set(map(id, self.own)), set()
        stack = [edge for each in tensors for edge in _edges_of(each)]
        while stack:
            edge = stack.pop()
            if id(edge) in seen or id(edge) in own:
                continue
            seen.add(id(edge))
            if id(edge) in wanted:
                return True
            if edge.__class__ is AccumulateGrad:
                if edge not in INTERNAL_LEAVES:
                    return True
            else:
                stack += (
                    [edge.node] if edge.__class__ is OutputEdge else [each for each in edge.edges if each is not None]
                )
        return False

    def is_reached_by(self, x: Any) -> bool:
        """Whether ``x`` depends on an argument of this call."""
        wanted, seen, stack = set(map(id, (*self.own, *self.aliases))), set(), _edges_of(x)
        while stack:
            edge = stack.pop()
            if id(edge) in wanted:
                return True
            if id(edge) not in seen and edge.__class__ is not AccumulateGrad:
                seen.add(id(edge))
                edges = [edge.node] if edge.__class__ is OutputEdge else edge.edges
                stack += [each for each in edges if each is not None]
        return False

    def for_caller(self, x: Any) -> Any:
        """Return ``x``, a result of this call, detached from the graph unless the caller may differentiate it.

        The caller may do this if ``x`` depends on a tensor that is not an argument of this call (see
        :meth:`leads_outside`).
        """
        if isinstance(x, Dual):
            return make_dual_tensor(x._run, self.for_caller(x._inner), self.for_caller(x._tangent))
        if isinstance(x, Batch):
            return batch(x._run, self.for_caller(x._inner), x._dim)
        return x if not isinstance(x, Tensor) or self.leads_outside([x]) else detached(x)


@functools.cache
def _leaf_alias(kind: Any) -> Any:
    """Return a subclass of the node class ``kind`` for the alias of an argument, which must not be modified in place."""
    return type(kind.__name__, (kind,), {"__slots__": (), "__module__": "builtins", "aliases_leaf": True})


def detached(x: Any) -> Any:
    """Return ``x`` detached from its graph; for a dual tensor, the primal and the tangent are both detached.

    The method ``detach`` of a dual tensor, also of one in a batched tensor, would drop the tangent.
    """
    if isinstance(x, Dual):
        return make_dual_tensor(x._run, detached(x._inner), detached(x._tangent))
    if isinstance(x, Batch):
        return batch(x._run, detached(x._inner), x._dim)
    return x.detach() if x.requires_grad else x


def outside_inference(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate ``function`` so that it runs in ``no_grad`` mode if it is called in inference mode.

    Derivatives cannot be computed in inference mode. Outside of inference mode, the function runs unchanged.
    """

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not in_inference():
            return function(*args, **kwargs)
        with inference_mode(False), no_grad():
            return function(*args, **kwargs)

    return called


@outside_inference
def _run_recorded(level: Level, level_run: Callable[[], Any]) -> Any:
    """Call ``level_run``, a function without arguments, and return its result.

    Its operations are recorded in the autograd graph, even if the caller is inside ``no_grad`` or inference mode.
    During the call, a :class:`GradRun` with the attribute ``level`` is the innermost active transform.
    """
    before = set_recording(True)
    try:
        return GradRun(level).around(level_run)
    finally:
        restore_recording(before)


# --- grad -------------------------------------------------------------------------------------------------------------


def check_argnums(argnums: Any, count: int) -> Any:
    """Return ``argnums``, positions of arguments, with negative positions replaced by non-negative ones.

    ``argnums`` is an int or a tuple of ints, and ``count`` is the number of arguments. Raises RuntimeError for
    positions out of range, equal positions, an empty tuple and other types.
    """
    if isinstance(argnums, int):
        return _argnum(argnums, count)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    for each in argnums:
        if not isinstance(each, int):
            raise RuntimeError(f"argnum must be int, got: {type(each)}")
    numbers = tuple(_argnum(each, count) for each in argnums)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return numbers


def _argnum(number: int, count: int) -> int:
    if not -count <= number < count:
        raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    return number % count


def select_args(args: tuple[Any, ...], argnums: Any) -> Any:
    """Return the arguments at the positions ``argnums``: one argument for an int, a tuple for a tuple of ints."""
    return args[argnums] if isinstance(argnums, int) else tuple(args[each] for each in argnums)


def replace_args(args: tuple[Any, ...], argnums: Any, values: Any) -> tuple[Any, ...]:
    """Return ``args`` with the arguments at the positions ``argnums`` replaced by ``values``.

    If ``argnums`` is an int, ``values`` is the new argument; otherwise it is a sequence of new arguments.
    """
    result = list(args)
    for number, value in [(argnums, values)] if isinstance(argnums, int) else zip(argnums, values, strict=True):
        result[number] = value
    return tuple(result)


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of ``func``.

    Args:
        func: a function that returns a 0-d tensor. If ``has_aux`` is true, it returns a pair of this tensor and a
            nested structure (pytree) of other tensors.
        argnums: the position, or a tuple of positions, of the arguments to differentiate; each argument may be a
            pytree of tensors.
        has_aux: if true, the returned function returns a pair of the gradient and the other tensors.

    >>> import retrograd as torch
    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.0))
    tensor(-0.)

    See https://docs.pytorch.org/docs/stable/generated/torch.func.grad.html.
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, rest = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (found, rest[1]) if has_aux else found

    return wrapper


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that returns the gradient and the value of ``func`` as a pair.

    If ``has_aux`` is true, ``func`` returns a pair ``(value, aux)``, and the returned function returns ``(gradient,
    (value, aux))``. The parameters have the same meaning as in :func:`grad`.

    >>> import retrograd as torch
    >>> torch.func.grad_and_value(lambda x: (x**2).sum())(torch.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _grad_and_value(func, argnums, has_aux, args, kwargs)

    return wrapper


def _grad_and_value(func: Any, argnums: Any, has_aux: bool, args: Any, kwargs: Any) -> tuple[Any, Any]:
    numbers = check_argnums(argnums, len(args))
    level = Level()

    def run() -> tuple[Any, Any, Any, list[Any]]:
        inputs = tree_map(level.make_alias, select_args(args, numbers))
        output = func(*replace_args(args, numbers, inputs), **kwargs)
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
                )
            output, aux = output
            _only_tensors(aux)
        _check_scalar(output)
        outs = [output]
        if output.is_complex():
            if level.is_reached_by(output):
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {output.dtype}"
                )
            outs = []  # its gradient is zero
        leaves, spec = tree_flatten(inputs)
        return output, aux, spec, _gradients(level, outs, leaves, [None] * len(outs))

    output, aux, spec, grads = _run_recorded(level, run)
    value = level.for_caller(output)
    return spec.unflatten(grads), (value, tree_map(level.for_caller, aux)) if has_aux else value


def _only_tensors(aux: Any) -> None:
    for each in tree_flatten(aux)[0]:
        if not isinstance(each, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(each)}")


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        text = f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
        raise RuntimeError(with_remedy(text, "return a 0-d tensor"))
    if output._array.ndim:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{output._array.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            + with_remedy("", "reduce it to one number, as by .sum()", output._grad_edge)
        )


def _gradients(level: Level, outs: list[Any], inputs: list[Any], grads: list[Any], keep: bool = False) -> list[Any]:
    """Return the gradients of ``outs`` with respect to ``inputs``, with zeros for unused inputs.

    ``grads`` has the incoming gradient of each output; None means 1. If ``keep`` is true, the graph is kept for another
    backward pass. The backward pass is recorded if its result depends on tensors other than the arguments of the call
    that ``level`` describes, so that the caller may differentiate it.
    """
    cotangents = [each for each in grads if each is not None]
    record = level.leads_outside(outs) or (level.recording and level.leads_outside(cotangents))
    gradients = gradients_of_tensors(outs, inputs, grads, keep or record, record)
    return [
        _zeros(each) if grad is None else level.for_caller(grad) if record else detached(grad)
        for grad, each in zip(gradients, inputs, strict=True)
    ]


def _zeros(x: Any) -> Any:
    before = set_recording(False)
    try:
        return zeros_as(x)
    finally:
        restore_recording(before)


# --- vjp --------------------------------------------------------------------------------------------------------------


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return the value of ``func`` at ``primals``, and a function that computes vector-Jacobian products there.

    The result is ``(output, vjp_fn)``. If ``has_aux`` is true, ``func`` returns a pair ``(output, aux)``, and the
    result is ``(output, vjp_fn, aux)``. The arguments of ``vjp_fn`` are gradients with the structure of ``output``. Its
    result is a tuple with a gradient, or a nested structure of gradients, for each of ``primals``.

    >>> import retrograd as torch
    >>> y, pull = torch.func.vjp(torch.sin, torch.tensor([0.0, 1.0]))
    >>> pull(torch.tensor([1.0, 0.0]))
    (tensor([1., 0.]),)

    See https://docs.pytorch.org/docs/stable/generated/torch.func.vjp.html.
    """
    return vjp_of(func, primals, has_aux)


def vjp_of(func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> Any:
    """Return the result of ``vjp(func, *primals, has_aux=has_aux)``; this function implements :func:`vjp`."""
    level = Level()

    def run() -> tuple[Any, Any, Any]:
        inputs = tree_map(level.make_alias, primals)
        output, aux = _output("vjp", "vjp(f, *primals)", func(*inputs), has_aux)
        for each in tree_flatten(output)[0]:
            _edges_of(each)  # updates the edge of a stale view, which is not possible while recording is disabled
        return inputs, output, aux

    inputs, output, aux = _run_recorded(level, run)
    outs, spec = tree_flatten(output)
    leaves, structure = tree_flatten(inputs)
    for each in outs:
        if not (each.is_floating_point() or each.is_complex()):
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                f"{each.dtype}"
            )

    @outside_inference
    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        grads, shape = tree_flatten(given)
        if shape != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {_short(shape)}, primal output: {_short(spec)}"
            )
        pairs = []
        for index, (out, each) in enumerate(zip(outs, grads, strict=True)):
            if out.requires_grad and not (isinstance(each, Tensor) and each._array.shape == out._array.shape):
                if not level.is_reached_by(out):
                    continue  # any cotangent is accepted
                _check_cotangent(index, out, each)
            pairs.append((out, each))
        level.recording = bool(recording())
        differentiated, given_to = [out for out, _ in pairs], [each for _, each in pairs]
        return structure.unflatten(_gradients(level, differentiated, leaves, given_to, retain_graph))

    result = tree_map(level.for_caller, output)
    return (result, pull, tree_map(level.for_caller, aux)) if has_aux else (result, pull)


def _short(spec: TreeSpec) -> str:
    return repr(tree_unflatten([_STAR] * spec.num_leaves, spec))


class _Star:
    def __repr__(self) -> str:
        return "*"


_STAR = _Star()


def _check_cotangent(index: int, out: Any, cotangent: Any) -> None:
    if not isinstance(cotangent, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(cotangent).__name__}")
    if cotangent._array.shape != out._array.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {cotangent.shape} and output[{index}] has a shape of "
            f"{out.shape}."
        )


def _output(name: str, call: str, output: Any, has_aux: bool) -> tuple[Any, Any]:
    """Split ``output``, the result of the differentiated function, into a pair ``(value, aux)``.

    If ``has_aux`` is true, ``output`` must be such a pair. If it is false, ``value`` is ``output`` and ``aux`` is None.
    Raises RuntimeError unless all leaves of ``value`` and ``aux`` are tensors. ``name`` is the name of the transform,
    and ``call`` is the text of the call at the beginning of error messages.
    """
    aux = None
    if has_aux:
        if not (isinstance(output, tuple) and len(output) == 2):
            raise RuntimeError(f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True")
        output, aux = output
        _only_tensors(aux)
    leaves = tree_flatten(output)[0]
    if not leaves or leaves == [None]:
        raise RuntimeError(
            f"{call}: Expected f to be a function that has non-empty output (got output = {leaves}). Remedy: return a tensor."
        )
    for each in leaves:
        if not isinstance(each, Tensor):
            raise RuntimeError(
                f"{call}: expected f(*primals) to return only tensors, got unsupported type {type(each)}"
            )
    return output, aux


# --- jvp --------------------------------------------------------------------------------------------------------------


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Return the value of ``func`` at ``primals`` and its derivative in the direction ``tangents``, by forward mode.

    ``primals`` and ``tangents`` are tuples of the same structure. The result is ``(output, tangent)``. If ``has_aux``
    is true, ``func`` returns a pair ``(output, aux)``, and the result is ``(output, tangent, aux)``.

    The derivative of an output that does not depend on ``primals`` is zero. If ``strict`` is true, RuntimeError is
    raised for such an output instead.

    >>> import retrograd as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))

    See https://docs.pytorch.org/docs/stable/generated/torch.func.jvp.html.
    """
    call = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{call}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    values, spec = tree_flatten(primals)
    directions, other = tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            f"{call}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple "
            f"of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure {other}"
        )
    for name, leaves in (("primals", values), ("tangents", directions)):
        if not leaves:
            raise RuntimeError(f"{call}: Expected {name} to contain at least one Tensor.")
        for each in leaves:
            if not isinstance(each, Tensor):
                raise RuntimeError(f"{call}: Expected {name} to only contain Tensors, got {type(each)}")
    for value, direction in zip(values, directions, strict=True):
        check_dual(value, direction)
    run = JvpRun()

    def pushed() -> Any:
        duals = [
            make_dual_tensor(run, _without_inference(value), _without_inference(direction))
            for value, direction in zip(values, directions, strict=True)
        ]
        output, aux = _output("jvp", call, func(*spec.unflatten(duals)), has_aux)
        if strict and any(tangent_at(each, run) is None for each in tree_flatten(output)[0]):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
                f"with strict=True. f is defined{describe_definition(func)}. Remedy: compute the output from the inputs."
            )
        result = tree_map(lambda each: _primal_of_output(each, run, values), output)
        tangent = tree_map(lambda each: _tangent_or_zeros(each, run), output)
        if not has_aux:
            return result, tangent
        return result, tangent, tree_map(lambda each: primal_at(each, run), aux)

    return outside_inference(run.around)(pushed)


def _primal_of_output(out: Any, run: TransformLevel, values: Sequence[Any]) -> Any:
    """Return the primal of ``out``, a result of the function that ``run`` differentiates at ``values``."""
    primal = primal_at(out, run)
    if primal.__class__ is Tensor and primal.requires_grad and any(primal is each for each in (out, *values)):
        return F.alias(primal)  # an argument or a captured tensor: under no_grad the result is not in its graph
    return primal


def _tangent_or_zeros(out: Any, run: TransformLevel) -> Any:
    tangent = tangent_at(out, run)
    return _zeros(out) if tangent is None else tangent


def check_dual(primal: Any, tangent: Any) -> None:
    """Raise an error unless ``primal`` and ``tangent`` have the same shape and are floating point or complex."""
    for name, each in (("primal", primal), ("tangent", tangent)):
        if not (each.is_floating_point() or each.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {each.dtype}")
    if tangent._array.shape != primal._array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(primal._array.shape)} while the given forward gradient is of size "
            f"{list(tangent._array.shape)}.{with_remedy('', 'pass a tangent of its shape', primal._grad_edge, 'The tensor is')}"
        )


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the value of ``func`` at ``primals``, and a function that computes directional derivatives there.

    The arguments of the returned function are one tangent for each of ``primals``, and its result is the derivative
    that :func:`jvp` returns. For many tangents it is faster than :func:`jvp`, because ``func`` is called only once.
    Each call of the returned function takes one backward pass through the graph of the derivative. Its result has a
    derivative only with respect to the tangents: ``primals`` and tensors that ``func`` reads are constants, as in
    PyTorch, unless ``linearize`` is called inside another transform.

    >>> import retrograd as torch
    >>> y, push = torch.func.linearize(lambda x: x**3, torch.tensor(2.0))
    >>> y, push(torch.tensor(1.0))
    (tensor(8.), tensor(12.))
    """
    level, run = Level(), LinearizeRun()
    constant = not active_levels()
    values, structure = tree_flatten(primals)

    def recorded() -> tuple[TreeSpec, list[Any], list[Any], list[Any], list[Any]]:
        directions = [placeholder(values, each._array.shape, each._array.dtype) for each in values]
        level.own += [edge for each in directions for edge in _edges_of(each)]
        duals = [make_dual_tensor(run, _without_inference(x), t) for x, t in zip(values, directions, strict=True)]
        outs, spec = tree_flatten(func(*structure.unflatten(duals)))
        shown = [_primal_of_output(each, run, values) for each in outs]
        constants = [_constant_tangent(each) for each in outs]
        live = [_tangent_or_zeros(out, run) for out, each in zip(outs, constants, strict=True) if each is _LIVE]
        before = set_recording(True)
        try:
            incoming = [placeholder([*values, each], each._array.shape, each._array.dtype) for each in live]
            level.own += [edge for each in incoming for edge in _edges_of(each)]
            pairs = [pair for pair in zip(live, incoming, strict=True) if pair[0].requires_grad]
            outputs, grads = [out for out, _ in pairs], [grad for _, grad in pairs]
            return spec, shown, constants, incoming, gradients_of_tensors(outputs, directions, grads, True, True)
        finally:
            restore_recording(before)

    for each in values:
        check_dual(each, each)
    around = outside_inference(GradRun(level).around)
    spec, outs, constants, incoming, gradients = around(lambda: run.around(recorded))

    @outside_inference
    def push(*tangents: Any) -> Any:
        directions, shape = tree_flatten(tangents)
        if shape != structure:
            raise RuntimeError(f"Expected the tangents {shape} to have the same argspec as the primals {structure}")
        for index, (each, value) in enumerate(zip(directions, values, strict=True)):
            if each.shape != value.shape:
                raise RuntimeError(
                    f"tangent:{index} with shape {each.shape} in flattened pytree doesn't match the shape {value.shape} of "
                    "the corresponding primal."
                )
            if each.dtype is not value.dtype:
                raise RuntimeError(
                    f"tangent:{index} with dtype {each.dtype} in flattened pytree doesn't match the dtype {value.dtype} of "
                    "the corresponding primal."
                )
        level.recording = bool(recording())
        start = next_number()
        directions = [F.alias(each) if each.requires_grad else each for each in directions]
        pairs = [(gradient, each) for gradient, each in zip(gradients, directions, strict=True) if gradient is not None]
        tangents_out = _gradients(
            level, [gradient for gradient, _ in pairs], incoming, [each for _, each in pairs], True
        )
        if constant:
            _cut_graph(tangents_out, directions, start)
        results = iter(tangents_out)
        return spec.unflatten([next(results) if each is _LIVE else each for each in constants])

    return spec.unflatten(outs), push


#: What :func:`_constant_tangent` returns for a tensor that has a tangent.
_LIVE = object()


def _constant_tangent(out: Any) -> Any:
    """Return the tangent of ``out``, a result of a linearized function, if it is no tensor of floats, else ``_LIVE``."""
    if not isinstance(out, Tensor):
        return out
    return _LIVE if out.is_floating_point() or out.is_complex() else _zeros(out)


def _cut_graph(results: Sequence[Any], inputs: Sequence[Any], start: int) -> None:
    """Make ``results`` constant with respect to all tensors but ``inputs``.

    The edges from nodes that are younger than the number ``start`` to older nodes are replaced by edges at which
    gradients are discarded. The graph of ``inputs`` is not changed.
    """
    seen = {id(edge) for each in inputs for edge in _edges_of(each)}
    stack = [edge.node for each in results for edge in _edges_of(each) if id(edge) not in seen]
    while stack:
        node = stack.pop()
        if id(node) in seen or node.number > start or node.__class__ is AccumulateGrad:
            continue
        seen.add(id(node))
        edges = tuple(
            _discarding(edge) if edge is not None and edge.node.number > start and id(edge) not in seen else edge
            for edge in node.edges
        )
        if node.lone:
            node.edge = edges[0]
        else:
            node.edges = edges
        stack += [edge.node for edge in edges if edge is not None and id(edge) not in seen]


def _discarding(edge: Any) -> AccumulateGrad:
    """Return an edge for gradients of the shape and dtype of those of ``edge``, at which they are discarded."""
    array = numpy.broadcast_to(numpy.zeros((), edge.dtype), edge.shape)
    leaf = AccumulateGrad(wrap(array), array, None)
    leaf.variable_ref = dead_ref
    return leaf


for _function in (grad, grad_and_value, vjp, jvp, linearize):
    _function.__module__ = "retrograd.func"
