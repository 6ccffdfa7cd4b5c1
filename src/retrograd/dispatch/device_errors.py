"""Errors of operations whose tensors are on different devices, in PyTorch's words.

PyTorch checks the devices in two places with two texts: elementwise operations name the two devices; the others name
the argument and the function that PyTorch generates for CUDA, such as ``wrapper_CUDA_addmm``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core import devices, dtypes

if TYPE_CHECKING:
    from .op import Op
    from .typing import Arrays

#: For an operation that PyTorch composes of others, or that has another name there: the name of PyTorch's function and
#: the names of the tensors. Functions without a structured kernel have an underscore before the name.
_FUNCTIONS = {
    "addmm": ("addmm", ("self", "mat1", "mat2")), "baddbmm": ("baddbmm", ("self", "batch1", "batch2")),
    "addmv": ("addmv", ("self", "mat", "vec")), "addbmm": ("_addbmm", ("self", "batch1", "batch2")),
    "bmm": ("bmm", ("self", "mat2")), "mm": ("mm", ("self", "mat2")), "dot": ("_dot", ("self", "tensor")),
    "vdot": ("_vdot", ("self", "other")), "linear": ("addmm", ("mat1", "mat2", "self")),
    "embedding": ("_index_select", ("self", "index")), "index_select": ("_index_select", ("self", "index")),
    "gather": ("gather", ("self", "index")), "nll_loss": ("nll_loss_forward", ("self", "target", "weight")),
    "cross_entropy": ("nll_loss_forward", ("self", "target", "weight")), "cat": ("cat", ()), "stack": ("cat", ()),
    "layer_norm": ("_native_layer_norm", ("input", "weight", "bias")),
    "batch_norm": ("_native_batch_norm", ("input", "weight", "bias", "running_mean", "running_var")),
    "native_group_norm": ("_native_group_norm", ("input", "weight", "bias")),
}  # fmt: skip
#: Functions with a text of their own, in which {0} and {1} are the devices of the first two tensors.
_TEXTS = {
    "masked_fill": "expected self and mask to be on the same device, but got mask on {1} and self on {0}",
    "grid_sampler": (
        "grid_sampler(): expected input and grid to be on same device, but input is on {0} and grid is on {1}"
    ),
}
#: Functions that PyTorch computes by the iterator of elementwise operations, beside those.
_ITERATED = frozenset({
    "where", "lerp", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "addcmul", "addcdiv", "binary_cross_entropy",
    "masked_select", "outer",
})  # fmt: skip


def _legacy_type(array: object, place: devices.device) -> str:
    kind: dtypes.dtype = dtypes.dtype_of(array.dtype)  # type: ignore[attr-defined]
    return f"torch.{'cuda.' if place.type == 'cuda' else ''}{dtypes.scalar_name(kind)}Tensor"


def _matmul_function(arrays: Arrays) -> tuple[str, tuple[str, ...]]:
    """Return the function of PyTorch that computes the matrix product of ``arrays``, and the names of its tensors."""
    ranks = [each.ndim for each in arrays[:2]]
    if ranks == [1, 1]:
        return _FUNCTIONS["dot"]
    if ranks == [2, 1]:
        return "addmv", ("self", "vec")
    return _FUNCTIONS["bmm" if max(ranks) > 2 else "mm"]


def wrapped_check(function: str, argument: str, place: object, common: object) -> RuntimeError:
    """Return the error for ``argument`` of PyTorch's ``function`` on the device ``place`` instead of ``common``."""
    return RuntimeError(
        f"Expected all tensors to be on the same device, but got {argument} is on {place}, different from other tensors on "
        f"{common} (when checking argument in method wrapper_CUDA_{function})"
    )


def mixed_devices(
    op: Op, arrays: Arrays, places: Sequence[devices.device | None], gpu: devices.device, other: devices.device
) -> RuntimeError:
    """Return PyTorch's error for a call of ``op`` with ``arrays``, the operands, on the devices ``places``.

    A place is None for an operand that is no tensor. ``gpu`` is the first that is not the CPU, and ``other`` the first
    that differs from it.
    """
    name = op.shown if op.shown in _TEXTS or op.shown in _FUNCTIONS else op.name.removesuffix("_block")
    given = [each for each in places if each is not None]
    if name in _TEXTS and len(given) > 1:
        return RuntimeError(_TEXTS[name].format(*given))
    if name == "convolution" and given[0] != given[1]:
        kinds = [_legacy_type(arrays[i], given[i]) for i in range(2)]
        rest = "" if given[0].type == "cuda" else " or input should be a MKLDNN tensor and weight is a dense tensor"
        return RuntimeError(f"Input type ({kinds[0]}) and weight type ({kinds[1]}) should be the same{rest}")
    if op.kind == "pointwise" or name in _ITERATED:
        return RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {gpu} and {other}!"
        )
    function, names = (
        _matmul_function(arrays) if name == "matmul" else _FUNCTIONS.get(name, (f"_{op.shown}", op.tensors))
    )
    order = [i for i, each in enumerate(places) if each is not None]
    if name == "linear" and len(order) > 2:  # PyTorch's addmm has the bias first
        order = [2, 0, 1]
    elif name == "linear":
        function, names = "mm", ("self", "mat2")
    common = places[order[0]]
    odd = next((i for i in order if places[i] != common), order[-1])
    argument = "tensors" if function == "cat" else names[odd] if odd < len(names) else op.tensors[-1]
    return wrapped_check(function, argument, places[odd], common)
