"""Views, versions and in-place operations: how a graph stays right when memory is shared and overwritten.

Note [Stale views]. A view shares memory with its base. An in-place operation on either changes what the other holds, so
the graph of the other must change as well:

    v = b[0]            # v.grad_fn is SelectBackward0
    b.mul_(2)           # b.grad_fn is MulBackward0; what v holds is now an element of b's new value
    v.grad_fn           # AsStridedBackward0, leading to MulBackward0: made when it is asked for, seeing that the
                        # version has moved since v's place was last set

Note [CopySlices]. The other way round, modifying the view gives the *base* a new node:

    b = b * 1; v = b[0]
    v.mul_(w)           # b.grad_fn is CopySlices: all of b's gradient but the slice goes on to b's old node, the slice
                        # goes through the node of mul_; then v's place is stale, and Note [Stale views] applies

Note [Results saved by in-place operations]. A node like exp_'s keeps its result. When a sweep records itself, the saved
result must stand in the graph where the tensor now stands, which for a view is not the inner node but the view's stale
and remade node. ``_inner_place`` gives the inner node's ``place`` that meaning.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from typing import Any

from ..runtime import user_frame
from . import anomaly_mode
from .dtypes import of, scalar_name
from .error_context import describe_origin, with_remedy
from .grad_mode import in_inference, recording, restore_recording, set_recording
from .graph import AccumulateGrad, Node, dead_ref, next_number
from .rule_namespace import RULE_NAMESPACES, rule_namespace_of
from .saved_tensor_hooks import before_writing
from .tensor import Tensor, address, element_strides, memory_of, share_memory

#: How a view was made: with nothing special, in a mode, by an operation that returns several views, by a user's.
DEFAULT, NO_GRAD, INFERENCE, MULTI_OUTPUT, CUSTOM = range(5)


class StridedLayout:
    """Shape, strides and offset of an array in its memory, in elements: enough to find its elements again."""

    __slots__ = ("offset", "shape", "strides")

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> None:
        self.shape, self.strides, self.offset = shape, strides, offset


def strided_layout(array: Any, origin: Any) -> StridedLayout:
    """The geometry of ``array``, its offset counted from the start of the memory of ``origin``."""
    owner = memory_of(origin)
    offset = 0 if array is owner else (address(array) - address(owner)) // array.itemsize
    return StridedLayout(array.shape, element_strides(array), offset)


def current_edge(x: Tensor, asked: bool = False) -> Any:
    """The place at which the gradient of ``x`` arrives, remade if ``x`` is a stale view.

    Where nothing is being recorded, a view that can not be remade is read all the same, unless its place is ``asked``
    for by the user.
    """
    base, node, cell = x._view, x._grad_edge, x._counter
    if base is None or (node is None and base._grad_edge is None) or not cell:
        return node
    if x._view_version == cell[0]:
        return node if node is not None or base._grad_edge is None else _unrecorded(x)
    if node is None or node.__class__ is AccumulateGrad:
        if base._grad_edge is None:
            return node
        if x._creation_meta in (NO_GRAD, INFERENCE) and not (asked or recording()):
            return _unrecorded(x)
    elif not (asked or recording()):
        return node
    _refuse_view(x, "its base or another view of its base has been")
    x._grad_edge = _as_strided_node(x._array, base)
    x._view_version = cell[0]
    _carry_retaining(x, node)
    return x._grad_edge


Tensor._current = staticmethod(current_edge)


def _unrecorded(x: Tensor) -> Any:
    """The place of a view that is nothing's result, although its base has a graph: gradients end there.

    It was made without recording, or its base was made to require gradients later.
    """
    if x._grad_edge is None and x._array.dtype.kind in "fcV":
        x._grad_edge = AccumulateGrad(x, x._array, x._version_counter)
        x._grad_edge.variable_ref = dead_ref
    return x._grad_edge


def _as_strided_node(
    array: Any, base: Tensor, whole: StridedLayout | None = None, part: StridedLayout | None = None
) -> Node:
    """The node of a stale view ``array`` of ``base``; their geometry is measured if it is not given."""
    if base._array.dtype.kind == "c" and array.dtype.kind == "f":
        # A view of the parts of complex numbers: through the tensor that shows them all.
        before = set_recording(True)
        try:
            base = RULE_NAMESPACES[Tensor].view_as_real(base)
        finally:
            restore_recording(before)
    node = AsStridedView()
    node.edges = (base._grad_edge,)  # None where the base has been taken out of its graph
    node.number = next_number()
    node.shape, node.dtype, node.hooks = array.shape, array.dtype, None
    node.code, node.instruction = user_frame.user_location()
    node.whole = strided_layout(base._array, base._array) if whole is None else whole
    node.part = _part(array, base._array) if part is None else part
    return node


def _part(array: Any, base: Any) -> StridedLayout:
    """The geometry of a view; of complex numbers that show real ones, as pairs of these."""
    found = strided_layout(array, base)
    if array.dtype.kind != "c" or base.dtype.kind == "c":
        return found
    return StridedLayout((*found.shape, 2), (*(2 * step for step in found.strides), 1), 2 * found.offset)


class AsStridedView(Node):
    """The node of a stale view: the base's gradient is zero but for the view's elements."""

    __slots__ = ("part", "whole")
    __module__ = "builtins"
    part: StridedLayout
    whole: StridedLayout

    def vjp(self, grad: Any, edges: tuple[Any, ...], keep: bool) -> Any:
        level = rule_namespace_of(grad)
        if len(self.part.shape) > grad.ndim:
            grad = level.view_as_real(grad)
        return level.strided_add(grad, self.whole, self.part)

    vjp_recorded = vjp


AsStridedView.__name__ = AsStridedView.__qualname__ = "AsStridedBackward0"


class CopySlices(Node):
    """The node of a base of which a view was modified in place (see Note [CopySlices])."""

    __slots__ = ("inner", "joined", "listed", "pairs", "part", "whole")
    __module__ = "builtins"
    inner: Node
    pairs: bool  # the base is complex, the view shows its parts as pairs of real numbers
    joined: bool  # the other way round: the view shows pairs as complex numbers
    part: StridedLayout
    whole: StridedLayout

    def name(self) -> str:
        """``torch::autograd::CopySlices``, as PyTorch calls it."""
        return "torch::autograd::CopySlices"

    def vjp(self, grad: Any, edges: tuple[Any, ...], keep: bool) -> Any:
        return self._through(self.inner.vjp, grad, edges, keep)

    def vjp_recorded(self, grad: Any, edges: tuple[Any, ...], keep: bool) -> Any:
        return self._through(self.inner.vjp_recorded, grad, edges, keep)

    def _through(self, vjp: Any, grad: Any, edges: tuple[Any, ...], keep: bool) -> Any:
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


def _inner_place(copy: weakref.ref[CopySlices], shape: tuple[int, ...], dtype: Any) -> Any:
    node = copy()
    if node is None:
        return None
    place = AsStridedView()
    place.edges, place.number = (node,), next_number()
    place.shape, place.dtype, place.hooks = shape, dtype, None
    place.code, place.instruction = node.code, node.instruction
    place.whole, place.part = node.whole, node.part
    return place


# --- In-place operations --------------------------------------------------------------------------------------------


def check_in_place(x: Tensor, recorded: bool, overlap: bool = False) -> None:
    """Refuse to modify ``x`` where PyTorch does. ``describe_recording``: whether any operand requires gradients.

    ``overlap``: whether several elements may lie at one place of memory.
    """
    for tell in before_writing:
        tell(x)
    if x._version_counter is None and not in_inference():
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
        _refuse_view(x, "is being")
        if x.requires_grad and (base._grad_edge is None or base._grad_edge.__class__ is AccumulateGrad):
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation."
                + _place_hint(base)
            )
    if recorded and x._grad_edge.__class__ is AccumulateGrad:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation." + _place_hint(x)
        )


def _place_hint(leaf: Tensor) -> str:
    shown, how = user_frame.describe(*user_frame.user_location()), describe_origin(leaf._grad_edge)
    return f" (at {shown}; it is {how}). Remedy: update it under torch.no_grad(), or work on a clone." if shown else ""


def check_overlap(x: Tensor) -> None:
    """Refuse to write to a tensor of which several elements lie at one place of memory, as after ``expand``."""
    if overlaps(x):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def overlaps(x: Tensor) -> bool:
    """Whether several elements lie at one place of memory, as after ``expand``."""
    array = x._array
    if array.flags.c_contiguous or array.size <= 1:
        return False
    return any(step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True))


def check_partial_overlap(x: Tensor, others: Sequence[Any], same: bool = True) -> None:
    """Refuse to write to ``x`` what is read from the same memory in another order; or, unless ``same``, in the same."""
    array = x._array
    for other in others:
        if not isinstance(other, Tensor) or (same and other._array is array):
            continue
        source = other._array
        if not share_memory(source, array):
            continue
        alike = source.strides == array.strides and source.shape == array.shape
        if same and alike and address(source) == address(array):
            continue
        if _is_dense(array) and _is_dense(source):
            start, first = address(array), address(source)
            if start < first + source.nbytes and first < start + array.nbytes:
                raise RuntimeError(
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                    "single memory location. Please clone() the tensor before performing the operation."
                )


def _is_dense(array: Any) -> bool:
    """Whether the elements fill their stretch of memory, in whatever order."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return True
    reach = 1
    for step, size in sorted(zip(array.strides, array.shape, strict=True)):
        if size > 1:
            if step != reach * array.itemsize:
                return False
            reach *= size
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


def _refuse_view(x: Tensor, what: str) -> None:
    """Raise torch's error for a view that can not follow a modification, if ``x`` is one; ``what`` was modified."""
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
        came = "was created" if shown == "A view" else "of a view which was created"
        text = f"{shown} {came} in {mode} mode and {what} modified inplace {where_to}."
    if x._creation_meta == MULTI_OUTPUT:
        text += _ONE_OF_MANY
    elif x._creation_meta == CUSTOM:
        text += _OF_A_FUNCTION
    else:
        text += _FORBIDDEN.format(mode="no_grad" if x._creation_meta == NO_GRAD else "inference_mode")
    how, base = describe_origin(node), describe_origin(None if x._view is None else x._view._grad_edge)
    text += f" The view is {how}." if how else f" Its base is {base}." if base else ""
    changed = (
        user_frame.describe(*x._version_counter[1]) if x._version_counter is not None and x._version_counter[1] else ""
    )
    text += f" The memory was modified last at {changed}." if changed and "is being" not in what else ""
    raise RuntimeError(with_remedy(text, "modify a clone, or write the operation out of place"))


def bump_version(x: Tensor) -> None:
    """Count a modification of the memory of ``x``, and remember the line of the user's program that made it."""
    cell = x._counter
    if cell is None:
        cell = x._counter = [0, None]
    if cell:
        cell[0] += 1
        frame: Any = sys._getframe(2)
        while frame is not None and user_frame.MARK in frame.f_globals:
            frame = frame.f_back
        cell[1] = (None, -1) if frame is None else (frame.f_code, frame.f_lasti)


def rebase_history(x: Tensor, node: Node) -> None:
    """Make ``node``, whose first edge is the place of ``x`` before, the place of ``x`` after an in-place operation."""
    before, base = x._grad_edge, x._view
    if base is None:
        x._grad_edge = node
    else:
        copy = CopySlices()
        copy.edges = (base._grad_edge, *node.edges[1:])
        copy.number = next_number()
        copy.shape, copy.dtype, copy.hooks = base._array.shape, base._array.dtype, None
        copy.code, copy.instruction = node.code, node.instruction
        copy.inner, copy.listed = node, node.listed
        copy.pairs = base._array.dtype.kind == "c" and x._array.dtype.kind == "f"
        shown = RULE_NAMESPACES[type(base._array)].view_as_real(base._array) if copy.pairs else base._array
        copy.joined = base._array.dtype.kind == "f" and x._array.dtype.kind == "c"
        copy.whole, copy.part = strided_layout(shown, base._array), _part(x._array, base._array)
        base._grad_edge, held = copy, base._grad_edge
        _carry_retaining(base, held)
        owner, shape, dtype = weakref.ref(copy), x._array.shape, x._array.dtype
        node.__dict__["place"] = lambda *_: _inner_place(owner, shape, dtype)
        known = (None, None) if copy.pairs or copy.joined else (copy.whole, copy.part)
        x._grad_edge = _as_strided_node(x._array, base, *known)
        x._view_version = x._version_counter[0] if x._version_counter is not None else 0
    _carry_retaining(x, before)


def _carry_retaining(x: Tensor, before: Any) -> None:
    """Retain the gradient of ``x`` at its present place if it was retained at the place that it had before."""
    hooks = getattr(before, "hooks", None)
    if hooks is not None and hooks.retaining is not None and x._grad_edge is not None:
        hooks.tensor.pop(hooks.retaining, None)
        hooks.retaining = None
        x.retain_grad()


def view_of(x: Tensor, array: Any, made: int | None = None) -> Tensor:
    """A Tensor of ``array``, which lies in the memory of ``x``; its place in the graph is for the caller to set."""
    out: Tensor = object.__new__(Tensor)
    out._array = array
    out._grad_edge = out._grad = None
    cell = out._version_counter = x._version_counter
    base = x._view
    if cell is None:
        out._view = None
        return out
    if made is not None:
        out._creation_meta = made
    elif not recording():
        out._creation_meta = _mode_now()
    else:
        out._creation_meta = DEFAULT if base is None else x._creation_meta
    out._view = x if base is None else base
    out._view_version = cell[0]
    return out


def views_of(x: Tensor, arrays: Sequence[Any]) -> tuple[Tensor, ...]:
    """The results of an operation that gives several views of ``x``."""
    made = MULTI_OUTPUT if recording() else _mode_now()
    cell, base = x._version_counter, x._view
    if base is None:
        base = x
    if cell is None:
        return tuple([view_of(x, each) for each in arrays])
    outs = []
    for array in arrays:  # as view_of, written out: a call costs more than the stores
        out: Tensor = object.__new__(Tensor)
        out._array, out._counter, out._view, out._creation_meta, out._view_version = array, cell, base, made, cell[0]
        out._grad_edge = out._grad = None
        outs.append(out)
    return tuple(outs)


def _mode_now() -> int:
    return INFERENCE if in_inference() else NO_GRAD


# --- Errors about saved values --------------------------------------------------------------------------------------


def modified_inplace_error(node: Node, array: Any, cell: list[Any], seen: int, producer: Any) -> RuntimeError:
    """The error for a saved value that was modified since: torch's words, then the user's lines."""
    kind = type_string(array)
    origin = ""
    if producer is not None and producer.__class__ is not AccumulateGrad:
        origin = f", which is output {producer.position} of {bare_name(producer.node)},"
    text = (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{kind} {list(array.shape)}]{origin} is at version {cell[0]}; expected version {seen} instead."
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
    changed = user_frame.describe(*cell[1]) if cell[1] else ""
    if saved:
        text += f" It was saved for the backward pass of {bare_name(node)} at {saved}"
    if changed:
        text += f"{' and' if saved else ' It was'} modified in place at {changed}"
    return RuntimeError(text + (". Remedy: modify a clone, or write the operation out of place." if changed else ""))


def freed_error(node: Node) -> RuntimeError:
    """The error for a node whose saved values are gone: torch's words, then where the operation was recorded."""
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


def bare_name(node: Any) -> str:
    """A node's name as torch's errors give it: without ``Backward0``, or with ``Max1`` for ``MaxBackward1``."""
    return str(type(node).__name__).removesuffix("Backward0").replace("Backward", "")


def type_string(array: Any) -> str:
    """The type of a tensor as some of torch's errors name it: ``torch.FloatTensor``."""
    name = scalar_name(of(array.dtype))
    return f"torch.{'cuda.' if type(array).__module__.startswith('cupy') else ''}{name}Tensor"


__all__ = [
    "RULE_NAMESPACES",
    "bump_version",
    "check_in_place",
    "current_edge",
    "rebase_history",
    "type_string",
    "view_of",
    "views_of",
]
