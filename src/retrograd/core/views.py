"""Views, version counters and in-place operations: the graph of tensors that share memory.

Note [Stale views]. A view shares memory with its base. An in-place operation on one changes the elements of the other,
so the graph of the other must change as well:

    v = b[0]            # v.grad_fn is SelectBackward0
    b.mul_(2)           # b.grad_fn is MulBackward0; v is now an element of the new value of b
    v.grad_fn           # AsStridedBackward0 with an edge to MulBackward0: created on access, because the version
                        # counter has changed since v's edge was last set

Note [CopySlices]. Conversely, an in-place operation on the view gives the *base* a new node:

    b = b * 1; v = b[0]
    v.mul_(w)           # b.grad_fn is CopySlices: b's gradient outside the slice goes to b's old node, that of the
                        # slice through the node of mul_; then v's edge is stale (Note [Stale views])

Note [Results saved by in-place operations]. The node of an operation such as ``exp_`` saves the result. If the backward
pass is recorded, the saved result must have the same gradient edge as the modified tensor. This is usually the node of
``exp_``. If the modified tensor is a view, the node of ``exp_`` is only a part of CopySlices, and the edge of the view is
an AsStridedBackward0. Therefore ``rebase_history`` replaces the method ``place`` of the node by :func:`_edge_of_result`.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import numpy

from ..runtime import user_frame
from ..runtime.extension_module import use_compiled_copy
from . import anomaly_mode
from .dtypes import dtype_of, scalar_name
from .error_context import describe_origin, with_remedy
from .grad_mode import in_inference, recording, restore_recording, set_recording
from .graph import AccumulateGrad, Node, dead_ref, next_number
from .rule_namespace import RULE_NAMESPACES, rule_namespace_of
from .saved_tensor_hooks import before_modification
from .tensor import Tensor, address, at_edge, element_strides, memory_owner, share_memory

if TYPE_CHECKING:
    from .typing import VJP, Array, ArrayDType, Edge, Edges, Gradient, Gradients, Recording, Shape, VersionCounter

#: Creation of a view: default, under no_grad, in inference mode, by an operation with several views, by a custom
#: function.
DEFAULT, NO_GRAD, INFERENCE, MULTI_OUTPUT, CUSTOM = range(5)


class StridedLayout:
    """Shape, strides and offset of an array within its memory; ``strides`` and ``offset`` are counted in elements."""

    __slots__ = ("offset", "shape", "strides")
    offset: int
    shape: Shape
    strides: Shape

    def __init__(self, shape: Shape, strides: Shape, offset: int) -> None:
        self.shape, self.strides, self.offset = shape, strides, offset


def strided_layout(array: Array, origin: Array) -> StridedLayout:
    """Return the layout of ``array``, with the offset counted from the start of the memory of the array ``origin``."""
    owner = memory_owner(origin)
    offset = 0 if array is owner else (address(array) - address(owner)) // array.itemsize
    return StridedLayout(array.shape, element_strides(array), offset)


def current_edge(x: Tensor, by_user: bool = False) -> Edge | None:
    """Return the gradient edge of ``x`` (its ``grad_fn`` or AccumulateGrad), updated if ``x`` is a stale view.

    A stale view is a view whose memory has been modified in place since its edge was set; it gets a new edge.
    RuntimeError is raised if this is not possible, for example for a view created under ``no_grad``. While recording is
    disabled, the old edge is returned instead, unless ``by_user`` is true: operations must be able to read the elements
    of the view.
    """
    base, edge, counter = x._view, x._grad_edge, x._counter
    if base is None or (edge is None and base._grad_edge is None) or not counter:
        return edge
    if x._view_version == counter[0]:
        return edge if edge is not None or base._grad_edge is None else _unrecorded(x)
    if edge is None or edge.__class__ is AccumulateGrad:
        if base._grad_edge is None:
            return edge
        if x._creation_meta in (NO_GRAD, INFERENCE) and not (by_user or recording()):
            return _unrecorded(x)
    elif not (by_user or recording()):
        return edge
    check_creation(x, "its base or another view of its base has been")
    node = _as_strided_node(x._array, base)
    try:
        _set_edge(x, node, edge)
    except KeyboardInterrupt:
        _set_edge(x, node, edge)
        raise
    return node


Tensor._current = staticmethod(current_edge)


def _unrecorded(x: Tensor) -> Edge | None:
    """Return the gradient edge of ``x``, a view that is not connected to the graph of its base.

    Such a view was created without recording, or before its base required gradients. If it has no edge and its dtype is
    floating-point or complex, it gets an AccumulateGrad that discards gradients. For other dtypes the result is None.
    """
    if x._grad_edge is None and x._array.dtype.kind in "fcVW":
        x._grad_edge = AccumulateGrad(x, x._array, x._version_counter)
        x._grad_edge.variable_ref = dead_ref
    return x._grad_edge


def _as_strided_node(
    array: Array, base: Tensor, whole: StridedLayout | None = None, part: StridedLayout | None = None
) -> Node:
    """Return a new node for a view whose memory has been modified in place (see Note [Stale views]).

    ``array`` is the array of the view, and ``base`` is the tensor of which it is a view. ``whole`` is the layout
    (shape, strides and offset) of the base, and ``part`` that of the view within the base. A layout that is None is
    computed.
    """
    if base._array.dtype.kind == "c" and array.dtype.kind == "f":
        # For a view of the parts of complex elements, the edge leads through a real view of the whole base.
        before = set_recording(True)
        try:
            base = RULE_NAMESPACES[Tensor].view_as_real(base)
        finally:
            restore_recording(before)
    node = AsStridedView()
    node.edges = (base._grad_edge,)  # None if the base has been detached from its graph
    node.number = next_number()
    node.shape, node.dtype, node.hooks = array.shape, array.dtype, None
    node.code, node.instruction = user_frame.user_location()
    node.whole = strided_layout(base._array, base._array) if whole is None else whole
    node.part = _part(array, base._array) if part is None else part
    return node


def _part(array: Array, base: Array) -> StridedLayout:
    """Return the layout (shape, strides and offset) of the view ``array`` within the array ``base``.

    If the view is complex and the base is real, the layout describes the view as pairs of real elements.
    """
    layout = strided_layout(array, base)
    if array.dtype.kind != "c" or base.dtype.kind == "c":
        return layout
    return StridedLayout((*layout.shape, 2), (*(2 * step for step in layout.strides), 1), 2 * layout.offset)


class AsStridedView(Node):
    """Graph node of a view whose memory has been modified in place (see Note [Stale views]).

    It computes the gradient of the base, which is zero at the elements outside the view.
    """

    __slots__ = ("part", "whole")
    __module__ = "builtins"
    part: StridedLayout
    whole: StridedLayout

    def vjp(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        level = rule_namespace_of(grad)
        if len(self.part.shape) > grad.ndim:
            grad = level.view_as_real(grad)
        return level.strided_add(grad, self.whole, self.part)

    vjp_recorded = vjp


AsStridedView.__name__ = AsStridedView.__qualname__ = "AsStridedBackward0"


class CopySlices(Node):
    """Graph node that a base gets after an in-place operation on one of its views (see Note [CopySlices])."""

    __slots__ = ("inner", "joined", "listed", "pairs", "part", "whole")
    __module__ = "builtins"
    inner: Node
    pairs: bool  # whether the base is complex and the view is real: pairs of parts
    joined: bool  # whether the base is real and the view is complex
    part: StridedLayout
    whole: StridedLayout

    def name(self) -> str:
        """Return ``torch::autograd::CopySlices``, PyTorch's name of this class."""
        return "torch::autograd::CopySlices"

    def vjp(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        return self._through(self.inner.vjp, grad, edges, keep)

    def vjp_recorded(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        return self._through(self.inner.vjp_recorded, grad, edges, keep)

    def _through(self, vjp: VJP, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        """Return the gradients for ``edges``, computed from ``grad``, the gradient of the base.

        The part of ``grad`` that belongs to the modified view is passed to ``vjp``, which is the method ``vjp`` or
        ``vjp_recorded`` of the in-place operation's node. If ``keep`` is true, saved values are not freed.
        """
        level = rule_namespace_of(grad)
        if self.pairs:
            grad = level.view_as_real(grad)
        part = level.strided_read(grad, self.whole, self.part)
        grads = vjp(level.view_as_complex(part) if self.joined else part, edges, keep)
        if len(edges) == 1:
            grads = (grads,)
        part = level.view_as_real(grads[0]) if self.joined and grads[0] is not None else grads[0]
        rest = level.strided_write(grad, part, self.whole, self.part) if edges[0] is not None else None
        if self.pairs and rest is not None:
            rest = level.view_as_complex(rest)
        return rest if len(edges) == 1 else (rest, *grads[1:])


def _edge_of_result(copy: weakref.ref[CopySlices], shape: Shape, dtype: ArrayDType) -> AsStridedView | None:
    """Return a new gradient edge for the saved result of an in-place operation on a view.

    ``copy`` is a weak reference to the CopySlices node, which contains the node of the operation. The result is None if
    the CopySlices node no longer exists. ``shape`` and ``dtype`` are those of the saved result. See Note [Results saved
    by in-place operations].
    """
    node = copy()
    if node is None:
        return None
    view = AsStridedView()
    edge: Edge | None = node
    if node.pairs:  # of a view of the parts of complex elements
        whole = numpy.broadcast_to(numpy.zeros((), node.dtype), node.shape)
        before = set_recording(True)
        try:
            edge = RULE_NAMESPACES[Tensor].view_as_real(at_edge(whole, [0, None], node))._grad_edge
        finally:
            restore_recording(before)
    view.edges, view.number = (edge,), next_number()
    view.shape, view.dtype, view.hooks = shape, dtype, None
    view.code, view.instruction = node.code, node.instruction
    view.whole, view.part = node.whole, node.part
    return view


# --- In-place operations --------------------------------------------------------------------------------------------


def check_in_place(x: Tensor, recorded: Recording, overlap: bool = False) -> None:
    """Raise PyTorch's RuntimeError if ``x`` must not be modified by an in-place operation.

    ``recorded`` is true if the operation is recorded, because an operand requires gradients. If ``overlap`` is false,
    ``x`` must not have several elements at the same memory address.
    """
    for callback in before_modification:
        callback(x)
    if x._version_counter is None and not in_inference() and not Tensor._in_transform():
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
            "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
            " Remedy: clone() it, or make it under torch.no_grad()."
        )
    if not overlap:
        check_overlap(x)
    if not recording():
        return
    base = x._view
    if base is not None and recorded:
        check_creation(x, "is being")
        if x.requires_grad and (base._grad_edge is None or base._grad_edge.__class__ is AccumulateGrad):
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation."
                + _leaf_hint(base)
            )
    if recorded and isinstance(edge := (x if base is None else base)._grad_edge, Node) and edge.aliases_leaf:
        shown = "a leaf Variable" if base is None else "a view of a leaf Variable"
        raise RuntimeError(f"{shown} that requires grad is being used in an in-place operation." + _leaf_hint(x))
    if recorded and x._grad_edge.__class__ is AccumulateGrad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation." + _leaf_hint(x))


def _leaf_hint(leaf: Tensor) -> str:
    """Return a hint for errors of in-place operations: the current line, the origin of ``leaf`` and a remedy.

    The hint is empty if the line of the user's program is not known.
    """
    line, origin = user_frame.describe(*user_frame.user_location()), describe_origin(leaf._grad_edge)
    return f" (at {line}; it is {origin}). Remedy: update it under torch.no_grad(), or work on a clone." if line else ""


def check_overlap(x: Tensor) -> None:
    """Raise RuntimeError if several elements of ``x`` share memory, as after ``expand``."""
    if overlaps(x):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def overlaps(x: Tensor) -> bool:
    """Whether several elements of ``x`` share memory, as after ``expand``."""
    array = x._array
    if array.flags.c_contiguous or array.size <= 1:
        return False
    return any(step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True))


def check_partial_overlap(x: Tensor, others: Sequence[object], same: bool = True) -> None:
    """Raise RuntimeError if one of the operands ``others`` partly overlaps ``x``, the tensor written to.

    If ``same`` is true, an operand with exactly the same elements is allowed.
    """
    array = x._array
    for other in others:
        if not isinstance(other, Tensor) or (same and other._array is array):
            continue
        source = other._array
        if not share_memory(source, array):
            continue
        same_layout = source.shape == array.shape and (
            source.strides == array.strides
            or all(
                one == two
                for one, two, size in zip(source.strides, array.strides, array.shape, strict=True)
                if size > 1
            )
        )
        if same and same_layout and address(source) == address(array):
            continue
        if is_dense(array) and is_dense(source):
            start, first = address(array), address(source)
            if start < first + source.nbytes and first < start + array.nbytes:
                raise RuntimeError(
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                    "single memory location. Please clone() the tensor before performing the operation."
                )


def is_dense(array: Array) -> bool:
    """Whether the elements of ``array`` fill a contiguous range of memory, in any order."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return True
    expected = 1
    for step, size in sorted(zip(array.strides, array.shape, strict=True)):
        if size > 1:
            if step != expected * array.itemsize:
                return False
            expected *= size
    return True


_FORBIDDEN = (
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the {mode} block (if you don't want the inplace to be tracked) or both "
    "outside (if you want the inplace to be tracked)."
)
_ONE_OF_MANY = (
    " This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)
_OF_A_FUNCTION = (
    " This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
    "handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
    "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)


def check_creation(x: Tensor, what: str) -> None:
    """Raise PyTorch's RuntimeError if ``x`` is a view that must not be modified in place because of how it was created.

    Examples are views created under ``no_grad`` and views returned by a function with several results, such as
    ``unbind``. ``what`` is the part of the message before the words "modified inplace", such as ``is being``.
    """
    if x._creation_meta == DEFAULT:
        return
    node = x._grad_edge
    if node is not None and node.__class__ is not AccumulateGrad:
        shown = f"Output {node.position} of {bare_name(node.node)} is a view"
    else:
        shown = "A view"
    if x._creation_meta in (MULTI_OUTPUT, CUSTOM) and shown != "A view":
        text = f"{shown} and {what} modified inplace."
    else:
        mode, where_to = (
            ("inference", "in normal mode") if x._creation_meta == INFERENCE else ("no_grad", "with grad mode enabled")
        )
        verb = "was created" if shown == "A view" else "of a view which was created"
        text = f"{shown} {verb} in {mode} mode and {what} modified inplace {where_to}."
    if x._creation_meta == MULTI_OUTPUT:
        text += _ONE_OF_MANY
    elif x._creation_meta == CUSTOM:
        text += _OF_A_FUNCTION
    else:
        text += _FORBIDDEN.format(mode="no_grad" if x._creation_meta == NO_GRAD else "inference_mode")
    origin, base = describe_origin(node), describe_origin(None if x._view is None else x._view._grad_edge)
    text += f" The view is {origin}." if origin else f" Its base is {base}." if base else ""
    changed = (
        user_frame.describe(*x._version_counter[1]) if x._version_counter is not None and x._version_counter[1] else ""
    )
    text += f" The memory was modified last at {changed}." if changed and "is being" not in what else ""
    raise RuntimeError(with_remedy(text, "modify a clone, or write the operation out of place"))


def bump_version(x: Tensor) -> None:
    """Increment the version counter of ``x`` after an in-place modification.

    The current line of the user's program is stored too, for error messages.
    """
    counter = x._counter
    if counter is None:
        counter = x._counter = [0, None]
    if counter:
        counter[0] += 1
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and user_frame.MARK in frame.f_globals:
            frame = frame.f_back
        counter[1] = (None, -1) if frame is None else (frame.f_code, frame.f_lasti)


def assign(x: Tensor, values: Array) -> None:
    """Write ``values`` into the array of ``x`` and increment the version of ``x``, both also if an interrupt arrives."""
    array, version = x._array, version_of(x)
    try:
        array[...] = values
        bump_version(x)
    except KeyboardInterrupt:
        array[...] = values
        set_version(x, version + 1)
        raise


def version_of(x: Tensor) -> int:
    """Return the version of ``x``, and 0 for an inference tensor, which has none."""
    return x._counter[0] if x._counter else 0


def set_version(x: Tensor, version: int) -> None:
    """Set the version of ``x``, unless it is an inference tensor."""
    if x._counter is None:
        x._counter = [version, None]
    elif x._counter:
        x._counter[0] = version


class _Interrupted:
    """Array and version of a tensor whose modification an interrupt has cut off: every use raises RuntimeError."""

    def _refuse(self, *args: object) -> NoReturn:
        raise RuntimeError(
            "An in-place operation or an optimizer step on this tensor was interrupted (KeyboardInterrupt), and its values "
            "may be partly written. Remedy: create the tensor anew, from a checkpoint for example."
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and not name.startswith("__array"):  # of inspect and copy, for example
            raise AttributeError(name)
        self._refuse()

    __getitem__ = __setitem__ = __len__ = __iter__ = __array__ = __bool__ = __int__ = __index__ = _refuse
    __add__ = __radd__ = __iadd__ = __sub__ = __lt__ = __gt__ = __le__ = __ge__ = _refuse
    __eq__ = __ne__ = _refuse
    __hash__ = object.__hash__


INTERRUPTED = _Interrupted()


def mark_interrupted(x: Tensor) -> None:
    """Mark ``x`` and its base, so that their next use raises RuntimeError.

    The array and the version are replaced by an object that raises the error, so that no operation must test for it. For
    another view of the same memory, only the backward pass and operations that are recorded raise the error.
    """
    if x._counter:
        x._counter[0] = INTERRUPTED
    if x._view is not None:
        x._view._array = INTERRUPTED  # type: ignore[assignment]
    x._array = INTERRUPTED  # type: ignore[assignment]


def rebase_history(x: Tensor, node: Node) -> None:
    """Update the graph after an in-place operation on ``x``, which ``node`` has recorded.

    The first edge of ``node`` is the previous gradient edge of ``x``. If ``x`` is not a view, ``node`` becomes its new
    gradient edge. Otherwise the base of ``x`` gets a CopySlices node (see Note [CopySlices]). If this function is
    interrupted, it has changed no edge, or all of them.
    """
    before, base = x._grad_edge, x._view
    if base is None:
        try:
            _set_edge(x, node, before)
        except KeyboardInterrupt:
            _set_edge(x, node, before)
            raise
    else:
        copy = CopySlices()
        copy.edges = (base._grad_edge, *node.edges[1:])
        copy.number = next_number()
        copy.shape, copy.dtype, copy.hooks = base._array.shape, base._array.dtype, None
        copy.code, copy.instruction = node.code, node.instruction
        copy.inner, copy.listed = node, node.listed
        copy.pairs = base._array.dtype.kind == "c" and x._array.dtype.kind == "f"
        shown = rule_namespace_of(base._array).view_as_real(base._array) if copy.pairs else base._array
        copy.joined = base._array.dtype.kind == "f" and x._array.dtype.kind == "c"
        copy.whole, copy.part = strided_layout(shown, base._array), _part(x._array, base._array)
        owner, shape, dtype = weakref.ref(copy), x._array.shape, x._array.dtype
        node.__dict__["place"] = lambda *_: _edge_of_result(owner, shape, dtype)
        previous = base._grad_edge
        try:
            _set_edges(x, base, copy, before, previous)
        except KeyboardInterrupt:
            _set_edges(x, base, copy, before, previous)
            raise


def _set_edge(x: Tensor, edge: Edge, before: Edge | None) -> None:
    """Replace ``before``, the gradient edge of ``x``, by ``edge``; a second call has no effect."""
    x._grad_edge = edge
    if x._view is not None:
        x._view_version = x._version_counter[0] if x._version_counter is not None else 0
    _keep_retaining(x, before)


def _set_edges(x: Tensor, base: Tensor, copy: CopySlices, before: Edge | None, previous: Edge | None) -> None:
    """Set the gradient edges of a modified view ``x`` and of its base; a second call has no effect.

    ``copy`` is the new edge of ``base``. ``before`` and ``previous`` are the edges of ``x`` and ``base`` until then.
    """
    base._grad_edge = copy
    _keep_retaining(base, previous)
    layouts = (None, None) if copy.pairs or copy.joined else (copy.whole, copy.part)
    x._grad_edge = _as_strided_node(x._array, base, *layouts)
    x._view_version = x._version_counter[0] if x._version_counter is not None else 0
    _keep_retaining(x, before)


def _keep_retaining(x: Tensor, before: Edge | None) -> None:
    """Keep the effect of ``x.retain_grad()`` after the ``grad_fn`` of ``x`` has changed.

    The hook that ``retain_grad`` has registered is removed from ``before``, the previous gradient edge, and registered
    again. Nothing is changed if there is no such hook. After an interrupt the function can be called again.
    """
    hooks = None if before is None else before.hooks
    if hooks is not None and hooks.retaining is not None and x._grad_edge is not None:
        x.retain_grad()
        hooks.tensor.pop(hooks.retaining, None)
        hooks.retaining = None


@use_compiled_copy
def view_of(x: Tensor, array: Array, made: int | None = None) -> Tensor:
    """Return a view of ``x`` with the elements of ``array``; the caller sets its gradient edge.

    ``made`` describes how the view was created, by a constant such as ``DEFAULT`` or ``NO_GRAD``. Some of these views
    must not be modified in place. If ``made`` is None, the constant depends on the recording mode and on ``x``. If
    ``x`` is an inference tensor, ``made`` is ignored, and the result has no base.
    """
    out: Tensor = object.__new__(Tensor)
    out._array = array
    out._grad_edge = out._grad = None
    counter = out._version_counter = x._version_counter
    base = x._view
    if counter is None:  # no view of an inference tensor is recorded
        out._view = None
        return out
    if made is not None:
        out._creation_meta = made
    elif not recording():
        out._creation_meta = _creation_mode()
    else:
        out._creation_meta = DEFAULT if base is None else x._creation_meta
    out._view = x if base is None else base
    out._view_version = counter[0]
    return out


def views_of(x: Tensor, arrays: Sequence[Array]) -> tuple[Tensor, ...]:
    """Return the views of ``x`` that an operation with several results, such as ``unbind``, creates.

    ``arrays`` are the arrays of the results, which share the memory of ``x``. The caller sets the gradient edges.
    """
    creation = MULTI_OUTPUT if recording() else _creation_mode()
    counter, base = x._version_counter, x._view
    if base is None:
        base = x
    if counter is None:
        return tuple([view_of(x, each) for each in arrays])
    outs = []
    for array in arrays:  # inlined view_of, because the call takes longer than the assignments
        out: Tensor = object.__new__(Tensor)
        out._array, out._counter, out._view, out._creation_meta = array, counter, base, creation
        out._view_version = counter[0]
        out._grad_edge = out._grad = None
        outs.append(out)
    return tuple(outs)


def _creation_mode() -> int:
    """Return the constant ``INFERENCE`` or ``NO_GRAD``, which marks a view created while recording is disabled."""
    return INFERENCE if in_inference() else NO_GRAD


# --- Errors about saved values --------------------------------------------------------------------------------------


def modified_inplace_error(
    node: Node, array: Array, counter: VersionCounter, version: int, producer: Edge | None
) -> RuntimeError:
    """Return PyTorch's error for a saved tensor that was modified in place, with the lines in the user's program.

    Args:
        node: Node that saved the tensor.
        array: Array of the tensor.
        counter: Version counter of the tensor.
        version: Version at which the tensor was saved.
        producer: Gradient edge of the tensor, or None.
    """
    kind = type_string(array)
    origin = ""
    if producer is not None and producer.__class__ is not AccumulateGrad:
        origin = f", which is output {producer.position} of {bare_name(producer.node)},"
    text = (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{kind} {list(array.shape)}]{origin} is at version {counter[0]}; expected version {version} instead."
    )
    if anomaly_mode.setting.enabled:
        text += (
            " Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in "
            "question was changed in there or anywhere later. Good luck!"
        )
    else:
        text += (
            " Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False)."
        )
    saved = user_frame.describe(node.code, node.instruction)
    changed = user_frame.describe(*counter[1]) if counter[1] else ""
    if saved:
        text += f" It was saved for the backward pass of {bare_name(node)} at {saved}"
    if changed:
        text += f"{' and' if saved else ' It was'} modified in place at {changed}"
    return RuntimeError(text + (". Remedy: modify a clone, or write the operation out of place." if changed else ""))


def freed_error(node: Node) -> RuntimeError:
    """Return PyTorch's error for a second backward pass through ``node``, whose saved values have been freed.

    The message contains the line of the user's program that recorded the node.
    """
    text = (
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward."
    )
    saved = user_frame.describe(node.code, node.instruction)
    if saved:
        text += f" The values are those of {bare_name(node)} at {saved}"
    return RuntimeError(
        with_remedy(text, "pass retain_graph=True to the backward pass before, or compute the graph anew")
    )


def bare_name(node: object) -> str:
    """Return the name of ``node`` in PyTorch's errors: ``Mul`` for ``MulBackward0``, ``Max1`` for ``MaxBackward1``."""
    name, _, number = type(node).__name__.rpartition("Backward")
    return name + number.removeprefix("0")


def type_string(array: Array) -> str:
    """Return the type name by which some of PyTorch's errors describe ``array``, such as ``torch.FloatTensor``."""
    name = scalar_name(dtype_of(array.dtype))
    return f"torch.{'cuda.' if type(array).__module__.startswith('cupy') else ''}{name}Tensor"


__all__ = [
    "RULE_NAMESPACES",
    "assign",
    "bump_version",
    "check_in_place",
    "current_edge",
    "rebase_history",
    "type_string",
    "view_of",
    "views_of",
]
