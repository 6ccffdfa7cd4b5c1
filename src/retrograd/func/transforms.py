"""``grad``, ``vjp``, ``jvp`` and ``linearize``: derivatives of functions.

A gradient is taken by the ordinary graph. The argument is stood for by an alias of its own in the graph, so that nothing
but the function's own use of it is differentiated, however often such calls are nested. Around the call there may be
other transformations: within vmap the alias is a batch, for every slice has a gradient of its own; within jvp it is a
dual. The sweep records itself only where something outside could ask for its derivative.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.backward import place_of, solve
from ..autograd.dual import Dual, make, primal_in, tangent_in, zeros_as
from ..core.error_context import describe_definition, with_remedy
from ..core.grad_mode import in_inference, inference_mode, no_grad, recording, restore_recording, set_recording
from ..core.graph import AccumulateGrad, OutputEdge, dead_ref
from ..core.pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten
from ..core.tensor import Tensor
from ..dispatch.op import TENSORS as F
from ..dispatch.transform_tensor import TransformLevel, TransformTensor, placeholder, runs
from .batched_tensor import Batch, VmapRun, batch, expand_to

Argnums = int | tuple[int, ...]


class GradRun(TransformLevel):
    """One run of a gradient, the taking of gradients of ``level``: its tensors are ordinary ones."""

    __slots__ = ("level",)

    def __init__(self, level: Level) -> None:
        super().__init__()
        self.level = level


class JvpRun(TransformLevel):
    """One run of forward mode."""

    __slots__ = ()


# --- Standing for arguments -------------------------------------------------------------------------------------------


def _check_tensor(x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    return x


def _spread(x: Any, around: Sequence[TransformLevel]) -> Any:
    """``x`` as a batch of every vmap of ``around`` (the innermost first), each slice with an ``x`` of its own."""
    if not around:
        return x
    run, *rest = around
    if isinstance(x, TransformTensor) and x._run is run:
        if isinstance(x, Batch):
            return batch(x._run, _spread(x._inner, rest), x._dim)
        return make(run, _spread(x._inner, rest), _spread(x._tangent, rest))
    if isinstance(run, VmapRun):
        return batch(run, _spread(expand_to(x, run), rest))
    return _spread(x, rest)


def _alias(x: Any) -> Any:
    """``x`` at a place of its own in the graph."""
    if isinstance(x, Batch):
        return batch(x._run, _alias(x._inner), x._dim)
    if isinstance(x, Dual):
        return make(x._run, _alias(x._inner), x._tangent)
    if x.requires_grad:
        shown = F.alias(x)
        shown._view = None  # in place, it is not the argument that is modified
        return shown
    return x.detach().requires_grad_()


def stand_in(x: Any) -> Any:
    """What stands for the argument ``x`` while a gradient by it is taken."""
    _check_tensor(x)
    if not (x.is_floating_point() or x.is_complex()):
        text = "only Tensors of floating point dtype can require gradients"
        raise RuntimeError(with_remedy(text, "convert the argument, as by .float()"))
    return _alias(_spread(x, runs()[::-1]))


def _places(x: Any) -> list[Any]:
    """The places in the graph of everything that ``x`` stands for."""
    if isinstance(x, TransformTensor):
        return _places(x._inner) + (_places(x._tangent) if isinstance(x, Dual) else [])
    place = place_of(x)
    return [] if place is None else [place]


class Level:
    """One taking of gradients: what stands for the arguments, and whether the graph leads to anything else."""

    def __init__(self) -> None:
        self.own: list[Any] = []
        self.aliases: list[Any] = []  # places of what stands for arguments that are in the graph already
        self.recording = bool(recording())

    def stand_in(self, x: Any) -> Any:
        """What stands for the argument ``x``."""
        made = inner = stand_in(x)
        while isinstance(inner, TransformTensor):  # only the primal is an alias; the tangent of a dual is the caller's
            inner = inner._inner
        place = place_of(inner)
        (self.own if place.__class__ is AccumulateGrad else self.aliases).append(place)
        return made

    def leads_out(self, tensors: Sequence[Any]) -> bool:
        """Whether anything but the arguments of this level would get a gradient from ``tensors``, if asked."""
        if not self.recording:
            return False
        around = [run.level for run in runs() if run.__class__ is GradRun and run.level is not self]
        wanted = {id(place) for level in around for place in level.aliases}  # whether or not their leaves live
        own, seen = set(map(id, self.own)), set()
        stack = [place for each in tensors for place in _places(each)]
        while stack:
            place = stack.pop()
            if id(place) in seen or id(place) in own:
                continue
            seen.add(id(place))
            if id(place) in wanted:
                return True
            if place.__class__ is AccumulateGrad:
                if place.variable_ref is not dead_ref and place.variable_ref() is not None:
                    return True
            else:
                stack += (
                    [place.node]
                    if place.__class__ is OutputEdge
                    else [each for each in place.edges if each is not None]
                )
        return False

    def released(self, x: Any) -> Any:
        """``x`` as the caller gets it: outside the graph, unless that leads further than the arguments."""
        if isinstance(x, Dual):
            return make(x._run, self.released(x._inner), self.released(x._tangent))
        return x if not isinstance(x, Tensor) or self.leads_out([x]) else detached(x)


def detached(x: Any) -> Any:
    """``x`` outside the graph, with its tangents."""
    if isinstance(x, Dual):
        return make(x._run, detached(x._inner), detached(x._tangent))
    return x.detach() if x.requires_grad else x


def outside_inference(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, called without inference mode, in which there are no derivatives, and without recording instead."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not in_inference():
            return function(*args, **kwargs)
        with inference_mode(False), no_grad():
            return function(*args, **kwargs)

    return called


@outside_inference
def _recorded(level: Level, level_run: Callable[[], Any]) -> Any:
    """Call with recording on, whatever is switched off outside, inference mode included."""
    before = set_recording(True)
    try:
        return GradRun(level).around(level_run)
    finally:
        restore_recording(before)


# --- grad ---------------------------------------------------------------------------------------------------------------


def check_argnums(argnums: Any, count: int) -> Any:
    """The numbers of arguments as an int or a tuple of ints from 0 on; errors for what is neither."""
    if isinstance(argnums, int):
        return _argnum(argnums, count)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    for each in argnums:
        if not isinstance(each, int):
            raise RuntimeError(f"argnum must be int, got: {type(each)}")
    found = tuple(_argnum(each, count) for each in argnums)
    if not found:
        raise RuntimeError("argnums must be non-empty")
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def _argnum(number: int, count: int) -> int:
    if not -count <= number < count:
        raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    return number % count


def chosen(args: tuple[Any, ...], argnums: Any) -> Any:
    """The arguments of the given numbers: one, or a tuple."""
    return args[argnums] if isinstance(argnums, int) else tuple(args[each] for each in argnums)


def replaced(args: tuple[Any, ...], argnums: Any, values: Any) -> tuple[Any, ...]:
    """The arguments with those of the given numbers replaced."""
    result = list(args)
    for number, value in [(argnums, values)] if isinstance(argnums, int) else zip(argnums, values, strict=True):
        result[number] = value
    return tuple(result)


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that computes the gradient of ``func``, which returns a tensor of one element.

    Args:
        func: returns a scalar tensor, or with ``has_aux`` a pair of it and anything else.
        argnums: by which argument (or arguments) to differentiate; each may be a tree of tensors.
        has_aux: the function returned returns a pair of the gradient and the other thing.

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
    """As :func:`grad`; the function returns the gradient and the value (with ``has_aux``: a pair of it and the rest)."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _grad_and_value(func, argnums, has_aux, args, kwargs)

    return wrapper


def _grad_and_value(func: Any, argnums: Any, has_aux: bool, args: Any, kwargs: Any) -> tuple[Any, Any]:
    numbers = check_argnums(argnums, len(args))
    level = Level()

    def run() -> tuple[Any, Any, Any, list[Any]]:
        inputs = tree_map(level.stand_in, chosen(args, numbers))
        output = func(*replaced(args, numbers, inputs), **kwargs)
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
                )
            output, aux = output
            _only_tensors(aux)
        _check_scalar(output)
        leaves = tree_flatten(inputs)[0]
        return output, aux, tree_flatten(inputs)[1], _gradients(level, [output], leaves, [None])

    output, aux, spec, grads = _recorded(level, run)
    value = level.released(output)
    return spec.unflatten(grads), (value, tree_map(level.released, aux)) if has_aux else value


def _only_tensors(aux: Any) -> None:
    for each in tree_flatten(aux)[0]:
        if not isinstance(each, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(each)}")


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        text = f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
        raise RuntimeError(with_remedy(text, "return the tensor itself, of no dimension"))
    if output._array.ndim:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{output._array.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            + with_remedy("", "reduce it to one number, as by .sum()", output._grad_edge)
        )
    if output.is_complex():
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype}")


def _gradients(level: Level, outs: list[Any], inputs: list[Any], grads: list[Any], keep: bool = False) -> list[Any]:
    """The gradients of ``outs`` by ``inputs``, zeros where there is none; recorded if that may matter outside."""
    given = [each for each in grads if each is not None]
    record = level.leads_out(outs) or (level.recording and level.leads_out(given))
    found = solve(outs, inputs, grads, keep or record, record)
    return [
        _zeros(each) if grad is None else _kept(level, grad) if record else detached(grad)
        for grad, each in zip(found, inputs, strict=True)
    ]


def _kept(level: Level, grad: Any) -> Any:
    """A recorded gradient; a part of a dual whose graph leads to the arguments only is detached."""
    return level.released(grad) if isinstance(grad, Dual) else grad


def _zeros(x: Any) -> Any:
    before = set_recording(False)
    try:
        return zeros_as(x)
    finally:
        restore_recording(before)


# --- vjp ----------------------------------------------------------------------------------------------------------------


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``func`` at ``primals``, and the function that pulls cotangents back from there.

    Returns ``(output, vjp_fn)``, with ``has_aux`` ``(output, vjp_fn, aux)``. ``vjp_fn`` takes cotangents of the structure
    of the output and returns a tuple with a gradient (or a tree of them) for each of ``primals``.

    >>> import retrograd as torch
    >>> y, pull = torch.func.vjp(torch.sin, torch.tensor([0.0, 1.0]))
    >>> pull(torch.tensor([1.0, 0.0]))
    (tensor([1., 0.]),)

    See https://docs.pytorch.org/docs/stable/generated/torch.func.vjp.html.
    """
    return vjp_of(func, primals, has_aux)


def vjp_of(func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> Any:
    """:func:`vjp` with the primals as a tuple."""
    level = Level()

    def run() -> tuple[Any, Any, Any]:
        inputs = tree_map(level.stand_in, primals)
        return inputs, *_output("vjp", "vjp(f, *primals)", func(*inputs), has_aux)

    inputs, output, aux = _recorded(level, run)
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
        for index, (out, each) in enumerate(zip(outs, grads, strict=True)):
            _check_cotangent(index, out, each)
        level.recording = bool(recording())
        return structure.unflatten(_gradients(level, outs, leaves, grads, retain_graph))

    result = tree_map(level.released, output)
    return (result, pull, tree_map(level.released, aux)) if has_aux else (result, pull)


def _short(spec: TreeSpec) -> str:
    return repr(tree_unflatten([_STAR] * spec.num_leaves, spec))


class _Star:
    def __repr__(self) -> str:
        return "*"


_STAR = _Star()


def _check_cotangent(index: int, out: Any, given: Any) -> None:
    if not isinstance(given, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(given).__name__}")
    if given._array.shape != out._array.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {given.shape} and output[{index}] has a shape of "
            f"{out.shape}."
        )


def _output(name: str, call: str, output: Any, has_aux: bool) -> tuple[Any, Any]:
    """The result of a function, which must be tensors, and what it gave beside."""
    aux = None
    if has_aux:
        if not (isinstance(output, tuple) and len(output) == 2):
            raise RuntimeError(f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True")
        output, aux = output
        _only_tensors(aux)
    for each in tree_flatten(output)[0]:
        if not isinstance(each, Tensor):
            raise RuntimeError(
                f"{call}: expected f(*primals) to return only tensors, got unsupported type {type(each)}"
            )
    return output, aux


# --- jvp ----------------------------------------------------------------------------------------------------------------


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The value of ``func`` at ``primals`` and its derivative in the direction ``tangents``, by forward mode.

    ``primals`` and ``tangents`` are tuples of the same structure. Returns ``(output, tangent)``, with ``has_aux``
    ``(output, tangent, aux)``. ``strict``: an output that does not depend on the primals is an error, not zeros.

    >>> import retrograd as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))

    See https://docs.pytorch.org/docs/stable/generated/torch.func.jvp.html.
    """
    call = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{call}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    values, spec = tree_flatten(primals)
    slopes, other = tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            f"{call}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple "
            f"of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure {other}"
        )
    for name, given in (("primals", values), ("tangents", slopes)):
        if not given:
            raise RuntimeError(f"{call}: Expected {name} to contain at least one Tensor.")
        for each in given:
            if not isinstance(each, Tensor):
                raise RuntimeError(f"{call}: Expected {name} to only contain Tensors, got {type(each)}")
    for value, slope in zip(values, slopes, strict=True):
        check_dual(value, slope)
    run = JvpRun()

    def pushed() -> Any:
        duals = [make(run, value, slope) for value, slope in zip(values, slopes, strict=True)]
        output, aux = _output("jvp", call, func(*spec.unflatten(duals)), has_aux)
        if strict and any(tangent_in(each, run) is None for each in tree_flatten(output)[0]):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
                f"with strict=True. f is defined{describe_definition(func)}. Remedy: compute the output from the inputs."
            )
        result = tree_map(lambda each: primal_in(each, run), output)
        slope = tree_map(lambda each: _slope(each, run), output)
        if not has_aux:
            return result, slope
        return result, slope, tree_map(lambda each: primal_in(each, run), aux)

    return outside_inference(run.around)(pushed)


def _slope(out: Any, run: TransformLevel) -> Any:
    found = tangent_in(out, run)
    return _zeros(out) if found is None else found


def check_dual(primal: Any, tangent: Any) -> None:
    """Refuse a tangent that does not suit its primal."""
    for name, each in (("primal", primal), ("tangent", tangent)):
        if not (each.is_floating_point() or each.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {each.dtype}")
    if tangent._array.shape != primal._array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(primal._array.shape)} while the given forward gradient is of size "
            f"{list(tangent._array.shape)}.{with_remedy('', 'give a tangent of its shape', primal._grad_edge, 'The tensor is')}"
        )


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of ``func`` at ``primals``, and its derivative there as a function of directions.

    As :func:`jvp` for many directions at one point: the function itself is called once. Every direction costs one sweep
    through the derivative's own graph.

    >>> import retrograd as torch
    >>> y, push = torch.func.linearize(lambda x: x**3, torch.tensor(2.0))
    >>> y, push(torch.tensor(1.0))
    (tensor(8.), tensor(12.))
    """
    level = Level()
    values, structure = tree_flatten(primals)

    def run() -> tuple[Any, list[Any], list[Any], Any]:
        inputs = [level.stand_in(each) for each in values]
        output, _ = _output("jvp", "jvp(f, primals, tangents)", func(*structure.unflatten(inputs)), False)
        outs, spec = tree_flatten(output)
        places = [placeholder([*inputs, out], out._array.shape, out._array.dtype) for out in outs]
        return spec, outs, places, solve(outs, inputs, places, True, True)

    spec, outs, places, slopes = _recorded(level, run)
    level.own += [place for each in places for place in _places(each)]

    @outside_inference
    def push(*tangents: Any) -> Any:
        given, shape = tree_flatten(tangents)
        if shape != structure:
            raise RuntimeError(f"Expected the tangents {shape} to have the same argspec as the primals {structure}")
        for index, (each, value) in enumerate(zip(given, values, strict=True)):
            if each.shape != value.shape:
                raise RuntimeError(
                    f"tangent:{index} with shape {each.shape} in flattened pytree doesn't match the shape {value.shape} of "
                    "the corresponding primal."
                )
        level.recording = bool(recording())
        pairs = [(slope, each) for slope, each in zip(slopes, given, strict=True) if slope is not None]
        found = _gradients(level, [slope for slope, _ in pairs], places, [each for _, each in pairs], True)
        return spec.unflatten(found)

    return spec.unflatten([level.released(each) for each in outs]), push


for _function in (grad, grad_and_value, vjp, jvp, linearize):
    _function.__module__ = "torch.func"
