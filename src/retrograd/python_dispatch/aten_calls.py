"""PyTorch's basic operations for those of retrograd: name, overload and arguments of a call below autograd."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from .. import nn
from ..core import dtypes
from ..core.tensor import Tensor, preserve_format, wrap
from ..dispatch.op import OPS, Op

_PACKAGE = __name__.partition(".")[0]
#: Name with overload, positional arguments, keyword arguments.
Described = tuple[str, tuple[Any, ...], dict[str, Any]]


def _cut(args: Sequence[Any], *defaults: Any) -> tuple[Any, ...]:
    """Return ``args`` without the last ones that equal ``defaults``, which PyTorch does not pass to handlers."""
    kept = list(args)
    for default in reversed(defaults):
        if kept[-1] is not default and (isinstance(kept[-1], Tensor) or kept[-1] != default):
            break
        kept.pop()
    return tuple(kept)


def _dims(dim: Any) -> Any:
    return list(dim) if isinstance(dim, (tuple, list)) else dim if dim is None else [dim]


def _reduced(name: str) -> Callable[..., Any]:
    return lambda self, dim, keepdim: (name, *_cut((self, _dims(dim), keepdim), False))


def _along(name: str) -> Callable[..., Any]:
    """Return the description of a reduction whose overload without ``dim`` is ``default``."""

    def described(self: Any, dim: Any, keepdim: Any = False) -> Any:
        return (f"{name}.default", self) if dim is None else (f"{name}.dim", *_cut((self, dim, keepdim), False))

    return described


def _deviation(name: str) -> Callable[..., Any]:
    def described(self: Any, dim: Any, correction: Any, keepdim: Any) -> Any:
        named = {} if correction == 1 and dim is None else {"correction": correction}
        if keepdim:
            named["keepdim"] = True
        return (f"{name}.correction", *_cut((self, _dims(dim)), None), named)

    return described


def _formatted(memory_format: Any) -> dict[str, Any]:
    return {} if memory_format in (None, preserve_format) else {"memory_format": memory_format}


def _reduction(reduction: Any) -> Any:
    return {"none": 0, "mean": 1, "sum": 2}.get(reduction, reduction)


def _tensors(picks: Sequence[Any]) -> list[Any]:
    """Return index arrays as tensors; None and whole dimensions are None. The last ones are left out."""
    found = [None if each is None or isinstance(each, slice) else each if isinstance(each, Tensor) else wrap(numpy.asarray(each))
             for each in picks]  # fmt: skip
    while found and found[-1] is None:
        found.pop()
    return found


def _loss(name: str) -> Callable[..., Any]:
    return lambda self, target, reduction, parameter=None: (
        f"{name}.default", *_cut((self, target, _reduction(reduction)), 1)
    )  # fmt: skip


def _attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, is_causal: bool = False, scale: Any = None
) -> Any:
    named: dict[str, Any] = {} if attn_mask is None else {"attn_mask": attn_mask}
    if scale is not None and scale != query.shape[-1] ** -0.5:
        named["scale"] = scale
    first = _cut((query, key, value, 0.0, is_causal), 0.0, False)
    return ("_scaled_dot_product_flash_attention_for_cpu.default", *first, named)


def _split(self: Any, sizes: Any, dim: int) -> Any:
    return ("split_with_sizes.default", *_cut((self, list(sizes), dim), 0))


def _split_even(self: Any, sizes: Any, dim: int) -> Any:
    return ("split.Tensor", *_cut((self, sizes if isinstance(sizes, int) else sizes[0], dim), 0))


def _convolution(input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                 output_padding: Any, groups: int) -> Any:  # fmt: skip
    count = input.dim() - 2
    lists = [
        [each] * count if isinstance(each, int) else list(each) for each in (stride, padding, dilation, output_padding)
    ]
    return ("convolution.default", input, weight, bias, *lists[:3], transposed, lists[3], groups)


#: Functions of the operands and parameters of an operation, which return the name, the arguments, and the keyword
#: arguments as a dictionary if there are any.
_BY_OP: dict[str, Callable[..., Any]] = {
    "sum_all": lambda self: ("sum.default", self),
    "sum_dim": _reduced("sum.dim_IntList"),
    "sum_to_size": lambda self, size: ("sum.SymInt", self, list(size)),
    "mean_all": lambda self: ("mean.default", self),
    "mean_dim": _reduced("mean.dim"),
    "prod_all": lambda self: ("prod.default", self),
    "prod_dim": lambda self, dim, keepdim: ("prod.dim_int", *_cut((self, dim, keepdim), False)),
    "max_all": lambda self: ("max.default", self),
    "min_all": lambda self: ("min.default", self),
    "max_dim": _along("max"),
    "min_dim": _along("min"),
    "median_all": lambda self: ("median.default", self),
    "median_dim": _along("median"),
    "any_block": _along("any"),
    "all_block": _along("all"),
    "amax_block": lambda self, dim, keepdim: ("amax.default", *_cut((self, _dims(dim) or [], keepdim), [], False)),
    "amin_block": lambda self, dim, keepdim: ("amin.default", *_cut((self, _dims(dim) or [], keepdim), [], False)),
    "argmax_block": lambda self, dim, keepdim: ("argmax.default", *_cut((self, dim, keepdim), None, False)),
    "argmin_block": lambda self, dim, keepdim: ("argmin.default", *_cut((self, dim, keepdim), None, False)),
    "sort_block": lambda self, dim, descending: ("sort.default", *_cut((self, dim, descending), -1, False)),
    "topk_block": lambda self, k, dim, largest: ("topk.default", *_cut((self, k, dim, largest), -1, True)),
    "std_block": _deviation("std"),
    "var_block": _deviation("var"),
    "std_mean_block": _deviation("std_mean"),
    "var_mean_block": _deviation("var_mean"),
    "logsumexp_block": _reduced("logsumexp.default"),
    "vector_norm_block": lambda self, ord, dim, keepdim: (
        "linalg_vector_norm.default", *_cut((self, ord, _dims(dim), keepdim), 2, None, False)
    ),
    "softmax_block": lambda self, dim: ("_softmax.default", self, dim, False),
    "log_softmax_block": lambda self, dim: ("_log_softmax.default", self, dim, False),
    "softmax_backward_data": lambda grad_output, output, dim: (
        "_softmax_backward_data.default", grad_output, output, dim, output.dtype
    ),
    "log_softmax_backward_data": lambda grad_output, output, dim: (
        "_log_softmax_backward_data.default", grad_output, output, dim, output.dtype
    ),
    "nll_loss_block": lambda self, target, weight, reduction, ignore_index: (
        "nll_loss_forward.default", self, target, weight, _reduction(reduction), ignore_index
    ),
    "mse_loss_block": _loss("mse_loss"),
    "smooth_l1_loss_block": _loss("smooth_l1_loss"),
    "huber_loss_block": _loss("huber_loss"),
    "attention_block": lambda query, key, value, is_causal, scale: _attention(query, key, value, None, is_causal, scale),
    "masked_attention_block": lambda query, key, value, attn_mask, is_causal, scale: _attention(
        query, key, value, attn_mask, is_causal, scale
    ),
    "convolution_block": _convolution,
    "convolution_input": lambda output, weight, shape, stride, padding, dilation, groups: (
        "convolution_backward.default", output, None, weight, None, *map(list, (stride, padding, dilation)), False,
        [0] * len(stride), groups, [True, False, False],
    ),
    "convolution_weight": lambda output, input, shape, stride, padding, dilation, groups: (
        "convolution_backward.default", output, input, None, None, *map(list, (stride, padding, dilation)), False,
        [0] * len(stride), groups, [False, True, False],
    ),
    "layer_norm_block": lambda self, weight, bias, layout, eps: (
        "native_layer_norm.default", self, list(self.shape[self.dim() - layout if isinstance(layout, int) else -1:]),
        weight, bias, eps,
    ),
    "batch_norm_block": lambda self, weight, bias, layout, running, momentum, eps, small: (
        "native_batch_norm.default", self, weight, bias, *(running or (None, None))[:2], True, momentum, eps
    ),
    "native_dropout_block": lambda self, mask, scale: ("mul.Tensor", self, mask),
    "embedding_block": lambda self, indices, padding_idx, scale: (
        "embedding.default", *_cut((self, indices, -1 if padding_idx is None else padding_idx, bool(scale)), -1, False)
    ),
    "embedding_dense_backward": lambda grad_output, indices, count, padding_idx, scale: (
        "embedding_dense_backward.default", grad_output, indices, count, -1 if padding_idx is None else padding_idx, bool(scale)
    ),
    "clone_block": lambda self, memory_format: ("clone.default", self, _formatted(memory_format)),
    "to_dtype": lambda self, dtype: (
        "_to_copy.default", self, {"dtype": dtype if isinstance(dtype, dtypes.dtype) else dtypes.dtype_of(dtype)}
    ),
    "to_device": lambda self, place: ("_to_copy.default", self, {"device": place}),
    "copy_block": lambda self, other: ("copy.default", self, other),
    "fill_block": lambda self, value: ("fill.Scalar", self, value),
    "fill_tensor_block": lambda self, value: ("fill.Tensor", self, value),
    "zero_block": lambda self: ("zero.default", self),
    "same": lambda self, other: ("copy.default", self, other),
    "view": lambda self, size: ("view.default", self, list(size)),
    "reshape_alias": lambda self, size: ("view.default", self, list(size)),
    "reshape_copy": lambda self, size: ("_unsafe_view.default", self, list(size)),
    "unsafe_view": lambda self, size: ("_unsafe_view.default", self, list(size)),
    "expand": lambda self, size: ("expand.default", self, list(size)),
    "permute": lambda self, dims: ("permute.default", self, list(dims)),
    "transpose": lambda self, dim0, dim1: ("transpose.int", self, dim0, dim1),
    "mT": lambda self: ("transpose.int", self, -2, -1),
    "select": lambda self, dim, index: ("select.int", self, dim, index),
    "slice": lambda self, dim, start, end, step: (
        "slice.Tensor", *_cut((self, dim, start, 2**63 - 1 if end >= self.shape[dim] else end, step), 0, None, None, 1)
    ),
    "squeeze_all": lambda self: ("squeeze.default", self),
    "squeeze_dim": lambda self, dim: ("squeeze.dim", self, dim),
    "squeeze_dims": lambda self, dims: ("squeeze.dims", self, list(dims)),
    "unbind": lambda self, dim: ("unbind.int", *_cut((self, dim), 0)),
    "split_even": _split_even,
    "split_uneven": _split,
    "alias": lambda self: ("detach.default", self),
    "repeat_block": lambda self, repeats: ("repeat.default", self, list(repeats)),
    "flip_block": lambda self, dims: ("flip.default", self, list(dims)),
    "roll_block": lambda self, shifts, dims: ("roll.default", *_cut((self, _dims(shifts), _dims(dims) or []), [])),
    "index_block": lambda self, picks: ("index.Tensor", self, _tensors(picks)),
    "index_put_block": lambda self, values, picks, accumulate: (
        "index_put.default", *_cut((self, _tensors(picks), values, accumulate), False)
    ),
    "index_select_block": lambda self, index, dim: ("index_select.default", self, dim, index),
    "index_add_block": lambda self, index, source, dim, alpha: (
        "index_add.default", self, dim, index, source, {} if alpha == 1 else {"alpha": alpha}
    ),
    "index_fill_number": lambda self, index, dim, value: ("index_fill.int_Scalar", self, dim, index, value),
    "index_copy_block": lambda self, index, source, dim: ("index_copy.default", self, dim, index, source),
    "gather_block": lambda self, index, dim: ("gather.default", self, dim, index),
    "scatter_src": lambda self, index, src, dim: ("scatter.src", self, dim, index, src),
    "scatter_value": lambda self, index, dim, value: ("scatter.value", self, dim, index, value),
    "scatter_add_block": lambda self, index, src, dim: ("scatter_add.default", self, dim, index, src),
    "masked_fill_number": lambda self, mask, value: ("masked_fill.Scalar", self, mask, value),
    "masked_fill_scalar": lambda self, mask, value: ("masked_fill.Scalar", self, mask, value),
    "masked_fill_tensor": lambda self, mask, value: ("masked_fill.Tensor", self, mask, value),
    "where_block": lambda condition, self, other: ("where.self", condition, self, other),
    "clamp_scalar": lambda self, min, max: ("clamp.default", *_cut((self, min, max), None)),
    "clamp_tensor": lambda self, min, max: ("clamp.Tensor", self, min, max),
    "clamp_min_scalar": lambda self, bound: ("clamp.default", self, bound),
    "clamp_max_scalar": lambda self, bound: ("clamp.default", self, None, bound),
    "pow_scalar": lambda self, exponent: ("pow.Tensor_Scalar", self, exponent),
    "pow_of_number": lambda exponent, base: ("pow.Scalar", base, exponent),
    "pow_tensor": lambda self, exponent: ("pow.Tensor_Tensor", self, exponent),
    "times_number": lambda self, number: ("mul.Tensor", self, number),
    "divided": lambda self, number: ("div.Tensor", self, number),
    "by_number": lambda self, number: ("div.Tensor", self, number),
    "div_true": lambda self, other: ("div.Tensor", self, other),
    "div_mode_true": lambda self, other: ("div.Tensor_mode", self, other, {"rounding_mode": None}),
    "div_floor": lambda self, other: ("div.Tensor_mode", self, other, {"rounding_mode": "floor"}),
    "div_trunc": lambda self, other: ("div.Tensor_mode", self, other, {"rounding_mode": "trunc"}),
    "floor_divide": lambda self, other: ("floor_divide.default", self, other),
    "rsub_number": lambda self, other, alpha: ("rsub.Scalar", *_cut((self, other, alpha), 1)),
    "rsub_tensor": lambda self, other, alpha: ("rsub.Tensor", self, other, {} if alpha == 1 else {"alpha": alpha}),
    "remainder_number": lambda self, other: ("remainder.Scalar", self, other),
    "remainder_tensor": lambda self, other: ("remainder.Tensor", self, other),
    "remainder_of_number": lambda self, other: ("remainder.Scalar_Tensor", self, other),
    "fmod_number": lambda self, other: ("fmod.Scalar", self, other),
    "fmod_tensor": lambda self, other: ("fmod.Tensor", self, other),
    "lerp_number": lambda self, end, weight: ("lerp.Scalar", self, end, weight),
    "lerp_tensor": lambda self, end, weight: ("lerp.Tensor", self, end, weight),
    "round_whole": lambda self: ("round.default", self),
    "round_decimals": lambda self, decimals: ("round.decimals", self, {"decimals": decimals}),
    "gelu": lambda self, approximate: (
        "gelu.default", self, {} if approximate == "none" else {"approximate": approximate}
    ),
    "gelu_backward": lambda grad_output, self, approximate: (
        "gelu_backward.default", grad_output, self, {} if approximate == "none" else {"approximate": approximate}
    ),
    "relu": lambda self: ("relu.default", self),
    "leaky_relu": lambda self, negative_slope: ("leaky_relu.default", *_cut((self, negative_slope), 0.01)),
    "logsigmoid": lambda self: ("log_sigmoid_forward.default", self),
    "constant_pad_nd_block": lambda self, pad, value: ("constant_pad_nd.default", self, list(pad), value),
    "conj_block": lambda self: ("_conj.default", self),
}  # fmt: skip
#: Operations whose result is one of several of PyTorch's operation: its index, and the number of results.
PARTS = {"convolution_input": (0, 3), "convolution_weight": (1, 3)}
#: Operations whose second operand may be a number, with the overload for a number if it is not ``Tensor``.
_NUMBERS = dict.fromkeys(
    ("eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor"), "Scalar"
) | dict.fromkeys(("add", "sub", "mul"), "Tensor")  # fmt: skip
_IN_OVERLOAD = re.compile("_(block|number|tensor|scalar|all|dim)$")
_OVERWRITE = re.compile("overwrite_([A-Z][a-z]+)([A-Z][a-z]+)?Backward")


def described(op: Op, tensors: Sequence[Any], params: Sequence[Any], in_place: bool) -> Described:
    """Return PyTorch's name, such as ``add.Tensor``, and arguments of a call of ``op``.

    Operations that PyTorch has not keep the name and arguments of retrograd. With ``in_place``, the name is that of the
    operation that overwrites its first operand.
    """
    kwargs: dict[str, Any] = {}
    known = _BY_OP.get(op.name)
    if known is not None:
        name, *args = known(*tensors, *params)
        if args and args[-1].__class__ is dict:
            kwargs = args.pop()
    elif (overwritten := _OVERWRITE.match(op.name)) is not None:
        written = "_".join(each.lower() for each in overwritten.groups() if each)
        return (
            f"{ {'normal': 'normal', 'log_normal': 'log_normal'}.get(written, written) }_.default",
            tuple(tensors),
            {},
        )
    else:
        args, name = [*tensors, *params], op.event or _IN_OVERLOAD.sub("", op.name)
        if op.name in ("add", "sub"):
            alpha = args.pop()
            kwargs = {} if alpha == 1 else {"alpha": alpha}
        elif op.name in ("addmm", "addmv", "baddbmm", "addbmm", "addr"):
            args, factors = args[:3], args[3:]
            kwargs = {key: each for key, each in zip(("beta", "alpha"), factors, strict=True) if each != 1}
        if name in OPS and "backward" not in name and not _is_public(name):
            name = f"retrograd::{name}"
        name = f"{name}.{_overload(op, tensors)}"
    if in_place:
        plain, _, overload = name.partition(".")
        name = f"{plain}_.{overload}"
    return name, tuple([_shown(each) for each in args]), kwargs


def _shown(value: Any) -> Any:
    """Return ``value`` with each array in it, and in tuples and lists, as a tensor."""
    if value.__class__ is numpy.ndarray:
        return wrap(value)
    return [_shown(each) for each in value] if value.__class__ in (list, tuple) else value


def _is_public(name: str) -> bool:
    """Whether ``name`` is a function or method of PyTorch."""
    return any(name in vars(each) for each in (sys.modules[_PACKAGE], Tensor, nn.functional))


def _overload(op: Op, tensors: Sequence[Any]) -> str:
    if op.name in _NUMBERS:
        return "Tensor" if isinstance(tensors[1], Tensor) else _NUMBERS[op.name]
    return "default"


__all__ = ["PARTS", "described"]
