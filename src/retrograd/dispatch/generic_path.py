"""The generic path of an operation, for calls that the generated fast path does not support.

``apply`` checks and converts the operands, calls the kernel, wraps the result and records the call; ``modify`` does the
same for in-place operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from ..compat.lazy_imports import load_part
from ..compat.type_names import type_name
from ..core import anomaly_mode, devices, dtypes, promotion, torch_function
from ..core.grad_mode import in_inference, recording
from ..core.graph import Node, OutputEdge, next_number
from ..core.saved_tensor_hooks import active_hooks, before_modification
from ..core.tensor import Tensor, address, at_edge, memory_owner, new, offset_in_memory, share_memory, wrap
from ..core.views import (
    bump_version,
    check_in_place,
    check_partial_overlap,
    current_edge,
    overlaps,
    rebase_history,
    view_of,
    views_of,
)
from ..runtime import user_frame
from ..runtime.codegen import renamed
from ..runtime.fp_warnings import IGNORED, errors
from .intercept import GO_ON, HANDLERS, OVERRIDING, ask_classes_of, intercept
from .node_classes import FIXED, counted, node_class
from .operand_promotion import F32, NUMBERS, PLAIN, broadcast_error, common_dtype, number_in, plain_number
from .saved_values import pack_saved_values
from .transform_tensor import TransformTensor, innermost

if TYPE_CHECKING:
    from ..core.typing import Array, ArrayDType, ArrayModule, Edge, Edges, Function, VersionCounter
    from .op import Op
    from .typing import Arrays, DeclaredNode, KernelResult, Number, Operand, Operands, OperandSequence, Params, Result


def apply(op: Op, tensors: Operands, params: Params, first: int = 1) -> Result:
    """Return the result of ``op`` for the operands ``tensors`` and the parameters ``params``, and record the call.

    The call is recorded if an operand requires gradients. Operands are checked and converted before the kernel is
    called. ``first`` is the number of the first operand in error messages: 1 for functions, 0 for methods.
    """
    for each in params:
        if each.__class__ is Tensor:
            params = tuple(map(number_in, params))
    if not all([each.__class__ is Tensor for each in tensors]):
        tensors = tuple([check_operand(op, each, index, first) for index, each in enumerate(tensors)])
        special = innermost(tensors)
        if special is not None:
            result = special.process(op, tensors, params, False)
            if op.kind == "view" and isinstance(result, TransformTensor):
                result.viewed = special, op, params
            return result
        if op.function is not None and op.kind != "view" and recording().__class__ is bool:
            plain = [_as_plain(each) for each in tensors]
            if any([each is not old for each, old in zip(plain, tensors, strict=True)]):
                named = zip(op.params[op.positional :], params[op.positional :], strict=True)
                return op.function(*plain, *params[: op.positional], **dict(named))
    arrays, result = run(op, tensors, params)
    edges = tuple([current_edge(each) if isinstance(each, Tensor) else None for each in tensors])
    if op.kind == "view":
        return _wrap_views(op, tensors, arrays, params, result, edges)
    if isinstance(result, tuple):
        outs = tuple([_fresh(op, each) for each in result])
    else:
        outs = (_fresh(op, result),)
    if op.has_rules and recording() and any([edge is not None for edge in edges]):
        record(op, tensors, arrays, params, outs, edges)
    return outs if isinstance(result, tuple) else outs[0]


def _as_plain(x: Operand) -> Operand:
    """Return an ordinary Tensor in place of ``x``, an instance of a subclass that overrides functions.

    The Tensor has the array and the gradient edge of ``x``. Any other ``x`` is returned unchanged.
    """
    return (
        x
        if x.__class__ in PLAIN or not isinstance(x, Tensor)
        else at_edge(x._array, x._version_counter, current_edge(x))
    )


def apply_method(op: Op, tensors: Operands, params: Params) -> Result:
    """Return the result of :func:`apply` for a method: error messages number the operands from 0."""
    return apply(op, tensors, params, 0)


def apply_operator(op: Op, tensors: Operands, params: Params) -> Result:
    """Return the result of :func:`apply`, or NotImplemented if an operand is neither a Tensor nor a number."""
    return apply(op, tensors, params) if all(map(is_operand, tensors)) else NotImplemented


def apply_equality(op: Op, tensors: Operands, params: Params) -> Result:
    """Return the result of :func:`apply_operator` for ``==`` or ``!=``, whose operands may also be NumPy arrays.

    An array is converted to a Tensor. ``array == tensor`` calls this function, too, because NumPy's operator returns
    NotImplemented for a Tensor.
    """
    taken = tuple(wrap(each) if isinstance(each, numpy.ndarray) else each for each in tensors)
    return apply_operator(op, taken, params)


def operator_fallback(apply: Function, name: str) -> Function:
    """Return the fallback of the operator method ``name``: a function that calls ``apply``.

    The class of an operand may override the call with ``__torch_function__``. If ``apply`` returns NotImplemented, the
    fallback returns the result of :func:`retry_operator`.
    """

    def slow(op: Op, tensors: Operands, params: Params) -> Result:
        if OVERRIDING and (answer := ask_classes_of(name, *tensors)) is not GO_ON:
            return answer
        result = apply(op, tensors, params)
        return retry_operator(name, tensors) if result is NotImplemented else result

    return slow


def retry_operator(name: str, operands: Operands) -> Result:
    """Call the operator ``name`` again if an operand's class has a ``__torch_function__`` that is not yet registered.

    Return the result of the call, or NotImplemented if there is no such operand.
    """
    return getattr(Tensor, name)(*operands) if torch_function.register_overriding(operands, Tensor) else NotImplemented


def is_operand(value: object) -> bool:
    """Whether ``value`` is a Tensor or a number, so that an operator of tensors accepts it."""
    return isinstance(value, (Tensor, int, float, complex, numpy.generic))


def operator_wrapper(
    function: Callable[[Operand, Operand], Result], name: str, fallback: bool = False
) -> Callable[[Operand, Operand], Result]:
    """Return an operator method called ``name`` that calls ``function``.

    The method returns NotImplemented if the second operand is neither a Tensor nor a number. NumPy scalars are
    converted to Python numbers. If ``fallback`` is true, the method is the fallback of a generated function. The
    generated function has already passed the call to the active handlers, which are objects that intercept calls.
    """

    def operator(input: Operand, other: Operand) -> Result:
        try:
            if HANDLERS or OVERRIDING:
                answer = ask_classes_of(name, input, other) if fallback else intercept(made, (input, other), {})
                if answer is not GO_ON:
                    return answer
            if other.__class__ in NUMBERS or isinstance(other, Tensor):
                return function(input, other)
            if is_operand(other):
                return function(input, plain_number(other))
            if name == "__rtruediv__" and isinstance(other, numpy.ndarray):  # the only one that PyTorch supports
                return function(input, other)
            return retry_operator(name, (input, other))
        except Exception as error:
            raise user_frame.strip_frames(error) or error from None

    made = renamed(operator, name)
    made.__module__, made.__doc__ = "retrograd", function.__doc__
    return made


def _fresh(op: Op, array: KernelResult) -> Tensor:
    out: Tensor = new(Tensor)
    if isinstance(array, numpy.generic):
        array = numpy.asarray(array)
    elif op.in_order and array.ndim > 1 and not array.flags.c_contiguous:
        array = array.copy()
    out._array = array
    out._grad_edge = out._view = out._grad = None
    out._counter = () if in_inference() else None
    return out


def check_operand(op: Op, value: object, position: int, first: int = 1, suffix: str = "") -> Operand:
    """Return ``value`` if ``op`` accepts it as a tensor operand, else raise TypeError.

    Pointwise operations also accept numbers (NumPy scalars are converted to Python numbers), and other operations
    accept None. ``position`` is the operand's index. Errors show the number ``position + first`` (``first`` is 1 for
    functions, 0 for methods), and the operation's name followed by ``suffix``.
    """
    if isinstance(value, Tensor):
        return value
    numbers = op.kind == "pointwise" and op.numbers and (position > 0 or op.numbers != "second")
    if numbers and isinstance(value, (bool, int, float, complex, numpy.generic)):
        return plain_number(value)
    name = {"self": "input"}.get(op.tensors[position], op.tensors[position])
    if value is None and op.kind != "pointwise":
        return value
    raise TypeError(
        f"{op.shown}{suffix}(): argument '{name}' (position {position + first}) must be Tensor, not {type_name(value)}"
    )


def run(op: Op, tensors: Operands, params: Params, into: Tensor | None = None) -> tuple[Arrays, KernelResult]:
    """Call the kernel of ``op``, and return a pair: the operands as promoted arrays, and the kernel's result.

    ``into`` is the tensor that an in-place operation will write to, or None. This function does not write the result.
    For an elementwise operation, it raises RuntimeError if the result's shape or dtype does not fit ``into``.
    """
    arrays: Any = [each._array if isinstance(each, Tensor) else each for each in tensors]
    if op.check is not None:
        op.check(*arrays)
    np, kernel = numpy, op.kernel
    meta: Any = None  # the array module of meta arrays
    if not all([each.__class__ is numpy.ndarray for each in arrays]):
        arrays = _same_device(op, arrays)
        if devices.several_gpus and (selected := devices.selected_for(arrays)) is not None:
            with selected:
                return run(op, tensors, params, into)
        np = devices.array_module_of(next((each for each in arrays if hasattr(each, "dtype")), numpy.float32(0)))
        if np.__name__ == "meta":
            meta = np
            kernel = meta.kernel_of(op)
        elif np.__name__ == "cupy":
            found = _on_gpu(op, tensors, arrays, params, into)
            if found is not None:
                return found
    target = None
    heeded = errors.get()
    if op.kind == "pointwise":
        try:
            errors.set(IGNORED)  # a number that is cast to the dtype of a tensor may overflow
            arrays, target = _promoted(op, np, tensors, arrays, into)
        finally:
            errors.set(heeded)
    inputs = arrays
    keywords = dict(zip(op.params[op.positional :], params[op.positional :], strict=True))
    if op.opmath:
        short = [each.dtype for each in arrays if getattr(each, "dtype", None) in dtypes.HALF_PRECISION]
        if short:
            others = [each.dtype for each in arrays if hasattr(each, "dtype") and each.dtype.kind in "fcVW"]
            if op.kind != "pointwise" and not op.mixes and any([each != short[0] for each in others]):
                _refuse_mixed(op, np, arrays, params[: op.positional], keywords)
            inputs = [
                each.astype(F32) if getattr(each, "dtype", None) in dtypes.HALF_PRECISION else each for each in arrays
            ]
            target = op.result or short[0]
    stored = None if op.kind == "view" else stored_dtype(arrays)
    if stored is not None:
        part = load_part("dispatch.stored_dtypes")
        part.check_supported(op, stored)
        inputs, target = part.widened(op, arrays), None
    try:
        errors.set(IGNORED)
        result = kernel(np, *inputs, *params[: op.positional], **keywords)
        if target is not None:
            result = retype(op, result, target)
        elif stored is not None:
            result = part.narrowed(op, result, stored)
    except ValueError as error:
        if op.kind == "pointwise":
            raise broadcast_error(tensors) or error from None
        raise
    except RuntimeError as error:
        if meta is not None and hasattr(error, meta.NEEDS_VALUES):
            raise meta.no_values(op.shown) from None
        if inputs is not arrays:  # it may name dtypes
            _refuse_mixed(op, np, arrays, params[: op.positional], keywords)
        raise
    finally:
        errors.set(heeded)
    return tuple(arrays), result


def _on_gpu(
    op: Op, tensors: Operands, arrays: Arrays, params: Params, into: Tensor | None
) -> tuple[Arrays, KernelResult] | None:
    """Return the result of :func:`run` for CuPy arrays, computed by one generated CUDA kernel, or None."""
    if op.kind == "view":
        return None
    target = None
    if op.kind == "pointwise":
        common = common_dtype(tensors)
        if common.category != dtypes.FLOATING:
            return None
        if into is not None:
            _check_target(op, tensors, into, common)
        if op.refuses is not None:
            _refuse(op, common)
        target = common.numpy
    result = load_part("kernels.cuda.calls").compute(op, arrays, params, target)
    return None if result is None else (tuple(arrays), result)


def kernel_on_gpu(op: Op, arrays: Arrays, params: Params) -> KernelResult:
    """Return the result of the kernel of ``op`` for arrays on the current GPU; generated functions call this function.

    No operand has to be converted. Numbers among ``arrays`` are numbers of Python.
    """
    if op.check is not None:
        op.check(*arrays)
    if op.kind != "view" and op.ufunc is None:
        found = load_part("kernels.cuda.calls").compute(op, arrays, params)
        if found is not None:
            return found
    heeded = errors.get()
    try:
        errors.set(IGNORED)
        np = devices.CUDA_MODULES[arrays[0].__class__]
        usual = op.ufunc is not None and (not params or params == tuple(map(op.defaults.get, op.params)))
        if op.kind == "pointwise" and not usual:  # a ufunc accepts numbers
            arrays = [each if hasattr(each, "dtype") else _cast(np, each, arrays[0].dtype) for each in arrays]
        if len(params) == op.positional:
            result = op.kernel(np, *arrays, *params)
        else:
            keywords = dict(zip(op.params[op.positional :], params[op.positional :], strict=True))
            result = op.kernel(np, *arrays, *params[: op.positional], **keywords)
        return retype(op, result, op.result or arrays[0].dtype) if op.kind == "pointwise" else result
    finally:
        errors.set(heeded)


def stored_dtype(arrays: Arrays) -> ArrayDType | None:
    """Return the NumPy dtype of the first array whose dtype is one of ``dtypes.STORED``, or None."""
    for each in arrays:
        if hasattr(each, "dtype") and each.dtype in dtypes.STORED_NUMPY:
            return each.dtype
    return None


def _refuse_mixed(op: Op, np: ArrayModule, arrays: Arrays, params: Params, keywords: dict[str, object]) -> None:
    """Call the kernel with the unconverted ``arrays``, to raise PyTorch's RuntimeError if their dtypes are mixed.

    ``np`` is the array module, and ``params`` and ``keywords`` are the other arguments of the kernel. Errors of other
    classes are ignored, because NumPy may raise one for float16 or bfloat16 arrays although the kernel supports the
    same arrays in float32.
    """
    with numpy.errstate(all="ignore"):
        try:
            op.kernel(np, *arrays, *params, **keywords)
        except RuntimeError:
            raise
        except Exception:  # NumPy's, of what it cannot calculate with short floats
            return


def _promoted(
    op: Op, np: ArrayModule, tensors: Operands, arrays: Arrays, into: Tensor | None
) -> tuple[Arrays, ArrayDType]:
    """Return the operands of a pointwise operation in their common dtype, and the dtype of the result.

    ``np`` is the array module, ``arrays`` are the arrays of ``tensors``, and ``into`` is the tensor that an in-place
    operation writes to, or None.
    """
    common = common_dtype(tensors)
    if op.floats and common.category < dtypes.FLOATING:
        common = dtypes.default.floating
    if into is not None:
        _check_target(op, tensors, into, common)
    if op.refuses is not None:
        _refuse(op, common)
    # Numbers beside short floats keep the precision in which these are calculated.
    wide = F32 if common.numpy in dtypes.HALF_PRECISION else common.numpy
    arrays = [_cast(np, each, common.numpy if hasattr(each, "dtype") else wide) for each in arrays]
    return arrays, op.result or common.numpy


def _refuse(op: Op, common: dtypes.dtype) -> None:
    name, kinds = op.refuses  # type: ignore[misc]  # the caller tests that it is not None
    if "bifc"[common.category] in kinds or ("h" in kinds and common.numpy in dtypes.HALF_PRECISION):
        raise dtypes.unsupported(name, common.numpy)


def _check_target(op: Op, tensors: Operands, x: Tensor, common: dtypes.dtype) -> None:
    """Raise RuntimeError if the result of ``op`` cannot be written into ``x``.

    ``common`` is the promoted dtype of the operands ``tensors``; the result has their broadcast shape.
    """
    shapes = [each._array.shape for each in tensors if isinstance(each, Tensor)]
    if any([shape != x._array.shape for shape in shapes]):
        error = broadcast_error(tensors)
        if error is not None:
            raise error
        check_shape(x, numpy.broadcast_shapes(*shapes))
    check_cast(common if op.result is None else dtypes.dtype_of(op.result), x.dtype)


def retype(op: Op, result: KernelResult, target: ArrayDType) -> KernelResult:
    """Return ``result``, an array or a tuple of arrays, converted to the dtype ``target``.

    If ``op`` is not elementwise, only float32 arrays are converted, and only to float16 or bfloat16. If ``op`` is
    elementwise and its kernel has chosen a dtype of another kind, such as ``abs`` of complex numbers, the result is not
    converted.
    """
    if isinstance(result, tuple):
        return tuple(retype(op, each, target) for each in result)
    if op.kind != "pointwise" and (result.dtype != F32 or target not in dtypes.HALF_PRECISION):
        return result
    kind = result.dtype.kind
    if (
        op.kind == "pointwise"
        and op.result is None
        and kind != target.kind
        and (kind == "b" or kind + target.kind == "fc")
    ):
        return result  # a kernel that sets the dtype of its result, for example abs of complex numbers
    return result if result.dtype == target else result.astype(target)


def _cast(np: ArrayModule, value: Number, dtype: ArrayDType) -> Array:
    if hasattr(value, "dtype"):
        return value if value.dtype is dtype or value.dtype == dtype else dtypes.cast(value, dtype)
    if isinstance(value, int) and dtype.kind in "iu":
        if not -(2**63) <= value < 2**64:
            raise OverflowError("int too big to convert" if value > 0 else "can't convert negative int to unsigned")
        return np.asarray(value & (2 ** (8 * dtype.itemsize) - 1)).astype(f"u{dtype.itemsize}").astype(dtype)
    return dtypes.cast(np.asarray(value), dtype)


def _same_device(op: Op, arrays: Arrays) -> Arrays:
    kinds = {type(each) for each in arrays if hasattr(each, "dtype")}
    if len(kinds) < 2 and not devices.several_gpus:
        return arrays
    places = [devices.device_of(each) if hasattr(each, "dtype") else None for each in arrays]
    gpu = next((place for place in places if place is not None and place.type != "cpu"), None)
    if gpu is None:
        return arrays
    if gpu.type == "meta":
        devices.meta().check_devices(arrays)
    for i, place in enumerate(places):
        if place is not None and place != gpu and (place.type != "cpu" or arrays[i].ndim):
            raise load_part("dispatch.device_errors").mixed_devices(op, arrays, places, gpu, place)
    return tuple(devices.to_device(each, gpu) if hasattr(each, "dtype") else each for each in arrays)


def record(
    op: Op,
    tensors: OperandSequence,
    arrays: Arrays,
    params: Params,
    outs: Sequence[Tensor],
    edges: Sequence[Edge | None],
    in_place: bool = False,
) -> Node | None:
    """Create the graph node of a call of ``op``, and set it as the gradient edge of the results ``outs``.

    Return the node, or None if no result is floating-point or complex and can have a gradient. ``arrays`` are the
    operands as the kernel received them, and ``edges`` the gradient edges of ``tensors`` (None for tensors that require
    no gradient). If ``in_place`` is true, the node has the name of the in-place operation.
    """
    count = len(outs) if op.differentiable is None else op.differentiable
    graded = [each for each in outs[:count] if each._array.dtype.kind in "fcVW"]
    if not graded:
        return None
    conjugate = any([getattr(each, "dtype", F32).kind in "cW" for each in (graded[0]._array, *arrays)])
    node: Any = new(node_class(op, conjugate, in_place))
    if None in op.rules:
        ruled = enumerate(zip(edges, op.rules, strict=True))
        edges = [edge if rule is not None or index == 0 else None for index, (edge, rule) in ruled]
    node.edges = tuple(edges)
    node.number = next_number()
    node.shape, node.dtype, node.hooks = outs[0]._array.shape, outs[0]._array.dtype, None
    node.code, node.instruction = user_frame.user_location()
    if anomaly_mode.setting.enabled:
        anomaly_mode.note(node)
    if (len(outs) > 1 and count > 1) or op.several:
        node.__class__ = counted(type(node), len(outs))
        for position, each in enumerate(outs[:count]):
            if each._array.dtype.kind in "fcVW":
                each._grad_edge = OutputEdge(node, position, each._array.shape, each._array.dtype)
    else:
        outs[0]._grad_edge = node
    _keep(op, node, tensors, arrays, params, outs)
    return node


def watched(
    op: Op,
    tensors: Operands,
    arrays: Arrays,
    params: Params,
    edges: Edges,
    outs: Sequence[Tensor],
) -> None:
    """Create the graph node of a call of ``op`` that returns several views, in the recording mode ``HOOKED``.

    No node is created if no operand has a gradient edge. ``edges`` are the gradient edges of ``tensors``.
    """
    if edges.count(None) < len(edges):
        record(op, tensors, arrays, params, outs, edges)


def complete_hooked(tensors: Operands, outs: Sequence[Tensor | Array]) -> None:
    """Complete the graph node that a generated function has created in the recording mode ``HOOKED``.

    Saved-tensor hooks pack the saved values, and anomaly detection stores the call stack. ``outs`` are the results of
    the call, as arrays if they are not returned, and ``tensors`` its operands.
    """
    edge: Any = outs[0]._grad_edge  # type: ignore[union-attr]  # the first result is returned
    if edge is None:
        return
    node = edge.node if edge.__class__ is OutputEdge else edge
    if anomaly_mode.setting.enabled:
        anomaly_mode.note(node)
    hooks = active_hooks()
    if hooks is not None:
        pack_saved_values(node, tensors, outs, hooks)


def _keep(
    op: Op, node: DeclaredNode, tensors: OperandSequence, arrays: Arrays, params: Params, outs: Sequence[Tensor]
) -> None:
    """Store in ``node`` the values that the derivative rules of ``op`` need.

    ``arrays`` are the arrays of the operands ``tensors``, ``params`` the parameters, and ``outs`` the results of the
    call. A value is saved only if a rule for an operand with a gradient edge needs it. If saved-tensor hooks are
    active, they pack the values.
    """
    hooks, some = active_hooks(), None in node.edges
    for each in op.saved():
        if some and not any([node.edges[i] is not None for i in each.rules]):
            continue
        name = each.name
        if each.kind == "parameter":
            value = params[each.index]
        elif each.kind == "shape":
            value = getattr(arrays[each.index], "shape", ())
        elif each.kind in ("dtype", "strides"):
            value = getattr(arrays[each.index], each.kind)
        elif each.kind == "device":
            value = devices.device_of(arrays[each.index])
        elif each.kind == "out_shape":
            value = outs[0]._array.shape
        elif each.kind == "out_dtype":
            value = outs[0]._array.dtype
        else:
            source = tensors[each.index] if each.kind == "tensor" else outs[each.index]
            value = arrays[each.index] if each.kind == "tensor" else outs[each.index]._array
            shared = isinstance(source, Tensor) and source._array is value
            cell = source._version_counter if shared else FIXED
            if cell is None:
                cell = counter_of_inference(op, name, type(node))
            setattr(node, each.cell, None if source is None else cell)  # None: an optional tensor not given
            setattr(node, each.seen, cell[0])
        setattr(node, each.held, value)
    if hooks is not None:
        pack_saved_values(node, tensors, outs, hooks)


def counter_of_inference(op: Op, name: str, kind: type) -> VersionCounter:
    """Return a version counter for an inference tensor that a node of the class ``kind`` saves inside a transform.

    ``torch.func`` wraps the tensors that a transformed function reads. Elsewhere RuntimeError is raised. ``name`` is the
    name of the tensor in the derivative rules of ``op``.
    """
    if not Tensor._in_transform():
        raise RuntimeError(f"{INFERENCE_SAVED} It is {name} of {op.shown}, kept for {kind.__name__}. {NO_INFERENCE}")
    return FIXED


INFERENCE_SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
    "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or "
    "use `torch.no_grad()` instead of `torch.inference_mode()`."
)
NO_INFERENCE = "Remedy: clone() it first, or make it under torch.no_grad() instead of torch.inference_mode()."


def _wrap_views(
    op: Op, tensors: Operands, arrays: Arrays, params: Params, result: KernelResult, edges: Edges
) -> Result:
    base = tensors[0]
    outs = views_of(base, result) if isinstance(result, tuple) else (view_of(base, result),)
    if recording() and op.has_rules and edges[0] is not None and base._version_counter is not None:
        record(op, tensors, arrays, params, outs, edges)
    return outs if isinstance(result, tuple) else outs[0]


# --- In place -----------------------------------------------------------------------------------------------------


def is_untracked(x: Operand) -> bool:
    """Whether operations of ``x`` need not be recorded, because recording is off or ``x`` requires no gradient.

    The result is False if ``x`` is on a GPU, or if its class is neither Tensor nor Parameter.
    """
    kind: Any = x.__class__
    if kind not in PLAIN or x._array.__class__ is not numpy.ndarray:
        return False
    return not (recording() and (x._grad_edge is not None or (x._view is not None and x._view._grad_edge is not None)))


def is_directly_writable(x: Operand) -> bool:
    """Whether the memory of ``x`` may be written without recording the change, calling hooks or raising an error."""
    if not is_untracked(x) or x._version_counter is None or before_modification:
        return False
    return x._array.base is None or 0 not in x._array.strides  # stride 0: elements may overlap


def apply_in_place(op: Op, tensors: Operands, params: Params) -> Tensor:
    """Write the result of ``op`` into the first of ``tensors`` by :func:`modify`, and return this tensor."""
    return modify(op, tensors, params)


def apply_in_place_operator(op: Op, tensors: Operands, params: Params) -> Result:
    """Return the result of :func:`modify`, or NotImplemented if an operand is neither a Tensor nor a number."""
    return modify(op, tensors, params) if all(map(is_operand, tensors)) else NotImplemented


def modify(op: Op, tensors: Operands, params: Params) -> Tensor:
    """Write the result of ``op`` into the first of ``tensors``, and return this tensor.

    The call is recorded if an operand requires gradients. Raises PyTorch's errors if the tensor must not be modified.
    """
    for each in params:
        if each.__class__ is Tensor:
            params = tuple(map(number_in, params))
    x = tensors[0]
    if not all([each.__class__ is Tensor for each in tensors]):
        if not isinstance(x, Tensor):
            raise TypeError(f"{op.name}_(): argument 'input' (position 1) must be Tensor, not {type_name(x)}")
        tensors = tuple([check_operand(op, each, index, 0, "_") for index, each in enumerate(tensors)])
        special = innermost(tensors)
        if special is not None:
            special.process(op, tensors, params, True)
            return x
    graded = recording() and any([isinstance(each, Tensor) and each.requires_grad for each in tensors])
    recorded = graded and op.has_rules
    # PyTorch fills expanded tensors, but fails in the backward pass; one that is recorded is refused here at once.
    accumulating = op.name == "index_put_block" and params[-1]
    overlapping = not recorded and not accumulating and op.name in _FILLS and overlaps(x)
    check_in_place(x, recorded, overlapping or (op.name == "copy_block" and _have_same_elements(x, tensors[1])))
    edges = tuple([current_edge(each) if isinstance(each, Tensor) else None for each in tensors]) if graded else ()
    if op.kind == "pointwise" or op.name == "copy_block":
        check_partial_overlap(x, tensors[1:])
    if devices.several_gpus and (selected := devices.selected_for((x._array,))) is not None:
        with selected:
            return modify(op, tensors, params)
    arrays, result = run(op, tensors, params, x)
    if recorded:
        _check_saved(op, tensors, arrays, edges)
    check_shape(x, result.shape)
    check_cast(dtypes.dtype_of(result.dtype), x.dtype)
    if recorded and any([each.kind == "tensor" for each in op.saved()]):
        # What is overwritten, or shares memory with it, is kept as it was.
        arrays = tuple(
            each.copy()
            if isinstance(tensor, Tensor) and tensor._version_counter is x._version_counter and each is tensor._array
            else each
            for each, tensor in zip(arrays, tensors, strict=True)
        )
    if x._counter is None:
        x._counter = [0, None]
    version, writing = x._counter[0] if x._counter else 0, False
    place: Any = ...
    if overlapping:
        place = _changed(op, x._array, result)
        result = result[place]
    try:
        writing = True
        x._array[place] = result
        bump_version(x)
        if recorded:
            _record_modification(op, tensors, arrays, params, edges)
    except KeyboardInterrupt:
        if writing:
            x._array[place] = result  # writing a second time has no other effect
            complete_modification(op, tensors, arrays, params, edges if recorded else (), version)
        raise
    return x


def _have_same_elements(x: Tensor, other: Operand) -> bool:
    """Whether ``other`` is a tensor with the elements of ``x``, at the same places in memory."""
    if not isinstance(other, Tensor) or not share_memory(x._array, other._array):
        return False
    one, two = x._array, other._array
    layouts = (one.shape, one.strides, one.dtype), (two.shape, two.strides, two.dtype)
    return layouts[0] == layouts[1] and address(one) == address(two)


def _check_saved(op: Op, tensors: Operands, arrays: Arrays, edges: Edges) -> None:
    """Raise RuntimeError if an in-place operation would save an inference tensor, before anything is written.

    ``arrays`` are the promoted arrays of the operands ``tensors``, and ``edges`` their gradient edges.
    """
    for each in op.saved():
        if each.kind == "tensor" and each.index and any([edges[i] is not None for i in each.rules]):
            source = tensors[each.index]
            if isinstance(source, Tensor) and source._counter == () and source._array is arrays[each.index]:
                counter_of_inference(op, each.name, node_class(op, in_place=True))


def _record_modification(op: Op, tensors: Operands, arrays: Arrays, params: Params, edges: Edges) -> None:
    """Create the graph node of an in-place call of ``op`` that has been executed, and update the graph.

    The parameters are those of :func:`record`; the first of ``tensors`` is the modified tensor.
    """
    x: Any = tensors[0]
    stand_in = at_edge(x._array, x._version_counter, None)
    node = record(op, tensors, arrays, params, (stand_in,), edges, in_place=True)
    if node is not None:
        rebase_history(x, node)


def complete_modification(
    op: Op, tensors: Operands, arrays: Arrays, params: Params, edges: Edges, version: int
) -> None:
    """Update the version and the graph after an in-place call of ``op`` that was interrupted after it had written.

    Args:
        op: Operation.
        tensors: Operands, of which the first has been modified.
        arrays: Arrays of the operands; the first is that before the modification, if a rule needs it.
        params: Parameters of the operation.
        edges: Gradient edges of ``tensors`` before the call. Empty if the call is not recorded.
        version: Version of the modified tensor before the call.
    """
    x: Any = tensors[0]
    if x._counter:
        x._counter[0] = version + 1
        x._counter[1] = user_frame.user_location()
    if edges and x._grad_edge is edges[0]:
        _record_modification(op, tensors, arrays, params, edges)


#: Operations that PyTorch lets write to expanded tensors, with the name in its warning.
_FILLS = {
    "fill_block": "", "zero_block": "", "masked_fill_number": "masked_fill_",
    "masked_fill_tensor": "masked_fill_", "index_fill_number": "index_fill_", "index_fill_tensor": "index_fill_",
    "index_put_block": "index_put_",
}  # fmt: skip


def _changed(op: Op, array: Array, result: Array) -> Array:
    """Return a bool array that is True where ``result`` must be written into ``array``, an expanded array.

    Several elements of ``array`` have the same address. Only the elements of ``result`` that differ from those of
    ``array`` are written. If all were written, an element that the operation did not change would overwrite the new value
    of another element at the same address.
    """
    if _FILLS[op.name]:
        user_frame.warn(
            f"Use of {_FILLS[op.name]} on expanded tensors is deprecated. Please clone() the tensor before performing "
            "this operation. This also applies to advanced indexing e.g. tensor[mask] = scalar",
        )
    return _differs(result, array)


def _differs(a: Array, b: Array) -> Array:
    """Return a bool array that is True where ``a`` and ``b`` differ; NaN equals NaN, and -0.0 differs from 0.0."""
    if a.dtype.kind == "c":
        return _differs(a.real, b.real) | _differs(a.imag, b.imag)
    changed = (a != b) & ((a == a) | (b == b))
    return changed | ((a == 0) & (numpy.signbit(a) != numpy.signbit(b))) if a.dtype.kind in "fV" else changed


def check_shape(x: Tensor, shape: tuple[int, ...]) -> None:
    if shape != x._array.shape:
        raise RuntimeError(f"output with shape {list(x._array.shape)} doesn't match the broadcast shape {list(shape)}")


def check_cast(source: dtypes.dtype, target: dtypes.dtype) -> None:
    """Raise RuntimeError if the dtype ``source`` has a higher category than ``target``, so that it cannot be cast.

    The categories of dtypes are bool, integer, floating and complex, in increasing order.
    """
    if source is not target and not promotion.can_cast(source, target):
        raise RuntimeError(
            f"result type {dtypes.scalar_name(source)} can't be cast to the desired output type "
            f"{dtypes.scalar_name(target)}"
        )


def resized(array: Array, shape: tuple[int, ...]) -> Array:
    """Return an array of ``shape`` that begins at the first element of ``array`` and shares its memory if possible.

    If the memory is too small for ``shape``, its elements are copied to a larger array.
    """
    memory, need, start = memory_owner(array), math.prod(shape), offset_in_memory(array)
    flat = memory.ravel(order="K").view(array.dtype)
    if flat.size - start < need:
        grown = devices.array_module_of(array).empty(start + need, array.dtype)
        grown[: flat.size] = flat
        flat = grown
    return flat[start : start + need].reshape(shape)
