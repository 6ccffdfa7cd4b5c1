"""Convolution operations: conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, conv_tbc.

A convolution is linear in its input and in its weight. Therefore three operations suffice for derivatives of any order:
each of ``convolution_output``, ``convolution_input`` and ``convolution_weight`` has the other two as derivatives.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...core import dtypes
from ...core.dtypes import cpp_name, unsupported
from ...core.tensor import Tensor
from ...dispatch.declare import op, public
from ...kernels import convolution as convolution_kernels
from ...kernels.half_precision import F32
from ...kernels.memory_format import in_memory_format_of
from ...runtime.user_frame import warn
from ..shape.padding import constant_pad_nd_block
from ..shape.views import squeeze, unsqueeze


def _backward_op(name: str, **options: Any) -> Any:
    return op(
        name=name, backward="ConvolutionBackwardBackward0", function=False, method=False, linear="each", **options
    )


@_backward_op("convolution_output")
def convolution_output(
    np: Any, input: Any, weight: Any, /, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """Return the convolution of ``input`` with ``weight``; the result has the shape ``shape``.

    ``stride``, ``padding`` and ``dilation`` have one int per spatial dimension.
    """
    out = convolution_kernels.convolve(np, input, weight, shape, stride, padding, dilation, groups, None)
    return in_memory_format_of(np, out, input, weight)


@_backward_op("convolution_input")
def convolution_input(
    np: Any, output: Any, weight: Any, /, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """Return the gradient of ``convolution_output`` with respect to its input, which has the shape ``shape``.

    ``output`` is the gradient of a loss with respect to the result of ``convolution_output``.
    """
    out = convolution_kernels.input_adjoint(np, output, weight, shape, stride, padding, dilation, groups)
    return in_memory_format_of(np, out, output, weight)


@_backward_op("convolution_weight")
def convolution_weight(
    np: Any, output: Any, input: Any, /, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """Return the gradient of ``convolution_output`` with respect to its weight, which has the shape ``shape``.

    ``output`` is the gradient of a loss with respect to the result of ``convolution_output``.
    """
    out = convolution_kernels.weight_adjoint(np, output, input, shape, stride, padding, dilation, groups)
    return in_memory_format_of(np, out, output, input)


convolution_output.derivative(
    input=lambda F, g, weight, input_shape, stride, padding, dilation, groups: F.convolution_input(
        g, weight, input_shape, stride, padding, dilation, groups
    ),
    weight=lambda F, g, input, weight_shape, stride, padding, dilation, groups: F.convolution_weight(
        g, input, weight_shape, stride, padding, dilation, groups
    ),
)
convolution_input.derivative(
    output=lambda F, g, weight, output_shape, stride, padding, dilation, groups: F.convolution_output(
        g, weight, output_shape, stride, padding, dilation, groups
    ),
    weight=lambda F, g, output, weight_shape, stride, padding, dilation, groups: F.convolution_weight(
        output, g, weight_shape, stride, padding, dilation, groups
    ),
)
convolution_weight.derivative(
    output=lambda F, g, input, output_shape, stride, padding, dilation, groups: F.convolution_output(
        input, g, output_shape, stride, padding, dilation, groups
    ),
    input=lambda F, g, output, input_shape, stride, padding, dilation, groups: F.convolution_input(
        output, g, input_shape, stride, padding, dilation, groups
    ),
)


@op(
    name="convolution_block", backward="ConvolutionBackward0", function=False, method=False, optional=("bias",),
    connected="none",
)  # fmt: skip
def convolution_block(
    np: Any, input: Any, weight: Any, bias: Any, /, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    """Return the convolution of ``input`` with ``weight``, plus ``bias``.

    If ``transposed`` is true, the convolution is transposed. ``bias`` is None or has one element per output channel.
    ``stride``, ``padding``, ``dilation`` and ``output_padding`` have one int per spatial dimension.
    """
    shapes = input.shape, weight.shape, None if bias is None else bias.shape
    shape = _checked_shape(*shapes, stride, padding, dilation, transposed, output_padding, groups)
    if not (input.dtype is weight.dtype is F32 and (bias is None or bias.dtype is F32)):
        _check_dtypes(input, weight, bias, transposed)
    if transposed and min(shape[2:], default=1) < 1:
        line = "1 x " * (len(stride) == 1)  # PyTorch computes 1-d convolutions as 2-d ones
        raise RuntimeError(
            f"Given input size per channel: ({line}{_sizes(input.shape[2:])}). Calculated output size per channel: "
            f"({line}{_sizes(shape[2:])}). Output size is too small"
        )
    kernel_of = convolution_kernels.input_adjoint if transposed else convolution_kernels.convolve
    out = kernel_of(np, input, weight, shape, stride, padding, dilation, groups, bias)
    return in_memory_format_of(np, out, input, weight)


def _input_rule(
    F: Any, g: Any, weight: Any, input_shape: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    groups: int,
) -> Any:  # fmt: skip
    gradient = F.convolution_output if transposed else F.convolution_input
    return gradient(g, weight, input_shape, stride, padding, dilation, groups)


def _weight_rule(
    F: Any, g: Any, input: Any, weight_shape: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    groups: int,
) -> Any:  # fmt: skip
    output, seen = (input, g) if transposed else (g, input)
    return F.convolution_weight(output, seen, weight_shape, stride, padding, dilation, groups)


convolution_block.derivative(
    input=_input_rule,
    weight=_weight_rule,
    bias=lambda F, g, stride: F.sum_dim(g, (0, *range(2, 2 + len(stride))), False),
)


# -- Argument checks -------------------------------------------------------------------------------------------------


def _sizes(sizes: Any) -> str:
    return " x ".join(map(str, sizes))


def _check_dtypes(input: Any, weight: Any, bias: Any, transposed: bool) -> None:
    kind = input.dtype
    fast = str(kind) in ("float32", "bfloat16")
    if bias is not None and bias.dtype != kind and not fast:
        raise RuntimeError(f"Input type ({cpp_name(kind)}) and bias type ({cpp_name(bias.dtype)}) should be the same")
    if weight.dtype != kind:
        if fast:
            raise RuntimeError(
                f"Input type ({_type_name(kind)}) and weight type ({_type_name(weight.dtype)}) should be the same or "
                "input should be a MKLDNN tensor and weight is a dense tensor"
            )
        names = dtypes.scalar_name(dtypes.dtype_of(kind)), dtypes.scalar_name(dtypes.dtype_of(weight.dtype))
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    if bias is not None and bias.dtype != kind:
        if transposed:
            raise RuntimeError(
                f"Input type ({_type_name(kind)}) and bias type ({_type_name(bias.dtype)}) should be the same or input "
                "should be a MKLDNN tensor and bias is a dense tensor"
            )
        raise RuntimeError(
            f"Input type ({cpp_name(input.dtype)}) and bias type ({cpp_name(bias.dtype)}) should be the same"
        )
    rank = input.ndim - 2
    if kind.kind == "b" or (transposed and kind.kind in "iu" and kind.itemsize < 8):
        plain = "slow_conv2d_cpu" if rank < 3 else "compute_columns3d"
        raise unsupported(f"slow_conv_transpose{max(rank, 2)}d_out_cpu" if transposed else plain, kind)


def _type_name(kind: Any) -> str:
    return dtypes.legacy_type_name(dtypes.dtype_of(kind))


@lru_cache(maxsize=64)
def _checked_shape(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> tuple[int, ...]:  # fmt: skip
    """Return the shape of a convolution's result for operands of the shapes ``input``, ``weight`` and ``bias``.

    Raise RuntimeError with PyTorch's message if the shapes do not fit together or another argument is out of range.
    """
    if len(weight) < 3:
        raise RuntimeError("weight should have at least three dimensions")
    for name, values, least in (
        ("padding", padding, 0), ("output_padding", output_padding, 0), ("stride", stride, 1), ("groups", (groups,), 1)
    ):  # fmt: skip
        if min(values) < least:
            raise RuntimeError(f"{'non-positive' if least else 'negative'} {name} is not supported")
    if min(dilation) < 1:
        raise RuntimeError(
            "dilation should be greater than zero" if min(dilation) else "non-positive dilation is not supported"
        )
    lead = f"Given {f'transposed={1}' if transposed else f'groups={groups}'}, "
    if len(input) != len(weight):
        raise RuntimeError(
            f"Expected {len(weight)}-dimensional input for {len(weight)}-dimensional weight {list(weight)}, but got "
            f"{len(input)}-dimensional input of size {list(input)} instead"
        )
    shown = f"weight of size {list(weight)}"
    if weight[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got {shown} instead"
        )
    if weight[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size "
            f"[{list(weight)}] instead"
        )
    wanted = weight[0] if transposed else weight[1] * groups
    if input[1] != wanted:
        raise RuntimeError(
            f"{lead}{shown}, expected input{list(input)} to have {wanted} channels, but got {input[1]} channels instead"
        )
    outputs = weight[1] * groups if transposed else weight[0]
    if bias is not None and bias != (outputs,):
        raise RuntimeError(
            f"Given {'transposed=1, ' * transposed}{shown}, expected bias to be 1-dimensional with {outputs} elements, "
            f"but got bias of size {list(bias)} instead"
        )
    if transposed:
        _check_output_padding(stride, dilation, output_padding)
        every = zip(input[2:], stride, padding, dilation, weight[2:], output_padding, strict=True)
        sizes = [(n - 1) * s - 2 * p + d * (k - 1) + 1 + extra for n, s, p, d, k, extra in every]
        return input[0], outputs, *sizes
    padded = [n + 2 * p for n, p in zip(input[2:], padding, strict=True)]
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, weight[2:], strict=True)]
    if any(a < b for a, b in zip(padded, spans, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_sizes(padded)}). Kernel size: ({_sizes(spans)}). Kernel "
            "size can't be greater than actual input size"
        )
    return input[0], outputs, *[(a - b) // s + 1 for a, b, s in zip(padded, spans, stride, strict=True)]


_AXES = {1: ("width",), 2: ("height", "width"), 3: ("depth", "height", "width")}


def _check_output_padding(stride: Any, dilation: Any, output_padding: Any) -> None:
    if any(p >= s and p >= d for p, s, d in zip(output_padding, stride, dilation, strict=True)):
        if len(stride) == 1:  # PyTorch computes 1-d convolutions as 2-d ones
            stride, dilation, output_padding = (1, *stride), (1, *dilation), (0, *output_padding)
        names = _AXES[len(stride)]
        shown = " ".join(
            f"{what}_{name}: {value}"
            for what, values in (("output_padding", output_padding), ("stride", stride), ("dilation", dilation))
            for name, value in zip(names, values, strict=True)
        )
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {shown}")


# -- Public functions ------------------------------------------------------------------------------------------------


def _per_dimension(name: str, value: Any, rank: int) -> tuple[int, ...]:
    """Return ``value``, a parameter of a convolution, as a tuple of ``rank`` ints, one per spatial dimension.

    A single int is repeated. Raise RuntimeError if ``value`` has neither one nor ``rank`` ints. ``name`` is the name of
    the parameter in the error message.
    """
    if value.__class__ is int:
        return (value,) * rank
    given = tuple(value)
    if len(given) == 1:
        return given * rank
    if len(given) != rank:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {rank} values to match the convolution "
            f"dimensions, but got {name}={list(given)}"
        )
    return given


@public(method=False)
def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Tensor:  # fmt: skip
    """Return the convolution of ``input`` (N, C, *space) with ``weight`` (out, C / groups, *kernel), plus ``bias``.

    If ``transposed`` is true, return the transposed convolution. In this case, ``weight`` has the shape (C, out /
    groups, *kernel). ``stride``, ``padding``, ``dilation`` and ``output_padding`` are an int, or one int per spatial
    dimension.
    """
    rank = weight._array.ndim - 2
    named = {"stride": stride, "padding": padding, "dilation": dilation, "output_padding": output_padding}
    s, p, d, extra = (_per_dimension(name, value, rank) for name, value in named.items())
    if input._array.dtype.kind == "c":
        return _complex(input, weight, bias, (s, p, d, transposed, extra, groups))
    return convolution_block(input, weight, bias, s, p, d, transposed, extra, groups)


def _complex(input: Tensor, weight: Tensor, bias: Tensor | None, options: tuple[Any, ...]) -> Tensor:
    """Return the convolution of complex operands, computed by three real convolutions (Gauss's method).

    PyTorch uses the same method, so that the autograd graphs are the same. ``options`` are the parameters of
    ``convolution_block`` from ``stride`` to ``groups``.
    """
    for what, each in (("weight", weight), ("bias", bias)):
        if each is not None and each._array.dtype != input._array.dtype:
            raise RuntimeError(
                f"Input type ({_type_name(input._array.dtype)}) and {what} type ({_type_name(each._array.dtype)}) should "
                "be the same"
            )
    x, y = input.real, input.imag
    u, v = weight.real, weight.imag
    real, total = (None, None) if bias is None else (bias.real, bias.real + bias.imag)
    first = convolution_block(x, u, real, *options)
    second = convolution_block(y, v, None, *options)
    both = convolution_block(x + y, u + v, total, *options)
    return first - second + (both - first - second) * 1j


def _check_argument_types(name: str, rank: int, given: dict[str, Any], transposed: bool) -> None:
    """Raise the TypeError of PyTorch's argument parser if an argument of the convolution ``name`` has a wrong type.

    ``given`` maps the argument names to the arguments. ``rank`` is the number of spatial dimensions. ``transposed`` is
    true for a transposed convolution.
    """
    tensors = isinstance(given["input"], Tensor) and isinstance(given["weight"], Tensor)
    numbers = ("stride", "dilation", "padding", *(("output_padding",) if transposed else ()))
    good = tensors and (given["bias"] is None or isinstance(given["bias"], Tensor))
    good = good and all(
        _are_ints(given[each]) or (each == "padding" and not transposed and isinstance(given[each], str))
        for each in numbers
    )
    if good:
        return
    kinds = ", ".join(
        type(each).__name__
        for each in given.values()
        if each is not None and (isinstance(each, Tensor) or each not in (0, 1))
    )
    if transposed:
        more = "tuple of ints output_padding = 0, int groups = 1, tuple of ints dilation = 1"
        forms = [
            f"Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, tuple of ints padding = 0, {more}"
        ]
    else:
        forms = [
            f"Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, {padding}, "
            "tuple of ints dilation = 1, int groups = 1"
            for padding in ("tuple of ints padding = 0", 'str padding = "valid"')
        ]
    listed = "".join(f" * ({form})\n" for form in forms)
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got ({kinds}), but expected one of:\n{listed}"
    )


def _are_ints(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, (tuple, list)) and all(isinstance(each, int) for each in value))


def _batched(name: str, input: Tensor, rank: int) -> tuple[Tensor, bool]:
    """Return ``input``, the input of a convolution, with a batch dimension, and whether ``input`` already had one.

    ``rank`` is the number of spatial dimensions. Raise RuntimeError if ``input`` has neither ``rank`` + 1 nor ``rank``
    + 2 dimensions. ``name`` is the name of the function in the error message.
    """
    if input._array.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input._array.shape)}"
        )
    has_batch = input._array.ndim == rank + 2
    return (input if has_batch else unsqueeze(input, 0)), has_batch


def _string_padding(
    input: Tensor, weight: Tensor, stride: Any, padding: str, dilation: Any
) -> tuple[Tensor, tuple[int, ...]]:
    """Return the tuple (input, padding of each spatial dimension) for ``padding="same"`` or ``padding="valid"``.

    ``"valid"`` means no padding. For ``"same"``, the result of the convolution has the size of ``input``. The returned
    padding is the number of zeros on both sides of a dimension. If the total number of zeros is odd, one zero is
    therefore appended to ``input``.
    """
    rank = weight._array.ndim - 2
    if padding == "valid":
        return input, (0,) * rank
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(each != 1 for each in _per_dimension("stride", stride, rank)):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [
        d * (k - 1) for d, k in zip(_per_dimension("dilation", dilation, rank), weight._array.shape[2:], strict=True)
    ]
    if any(each % 2 for each in total):
        warn(
            "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be "
            "created",
        )
        more = [value for each in reversed(total) for value in (0, each % 2)]
        input = constant_pad_nd_block(input, tuple(more), 0)
    return input, tuple(each // 2 for each in total)


def _make_conv(rank: int) -> Any:
    name = f"conv{rank}d"

    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        given = {
            "input": input, "weight": weight, "bias": bias, "stride": stride, "padding": padding, "dilation": dilation,
        }  # fmt: skip
        _check_argument_types(name, rank, given, False)
        x, had_batch = _batched(name, input, rank)
        if isinstance(padding, str):
            x, padding = _string_padding(x, weight, stride, padding, dilation)
        y = convolution(x, weight, bias, stride, padding, dilation, False, 0, groups)
        return y if had_batch else squeeze(y, 0)

    def numbers(value: Any, x: Any = None) -> tuple[int, ...] | None:
        """Return ``value``, a stride, padding or dilation, as a tuple with one int per spatial dimension, or None.

        The result is None if ``value`` is neither an int nor such a tuple. It is also None if ``x``, the input of the
        convolution, is passed and is complex or has no batch dimension. If the result is a tuple for the stride, the
        padding and the dilation, the convolution is computed directly on the arrays. Otherwise the body of ``conv``
        checks and converts the arguments.
        """
        if x is not None and (x.dtype.kind == "c" or x.ndim != rank + 2):
            return None
        if value.__class__ is int:
            return (value,) * rank
        if value.__class__ is not tuple or len(value) != rank or not all(each.__class__ is int for each in value):
            return None
        return value

    return _public(conv, name, f"""\
        Return the {rank}-dimensional convolution (cross-correlation) of ``input`` with ``weight``.

        ``input`` has shape (N, C, *space) or (C, *space), ``weight`` (out, C / groups, *kernel) and ``bias`` (out,).
        ``padding`` is the number of zeros on both sides, an int or one int per spatial dimension. If ``padding`` is
        ``"valid"``, there is no padding. If it is ``"same"``, the output has the size of ``input``.
        """, fast_path=convolution_block, operands=("input", "weight", "bias"), transposed=False, output_padding=(0,) * rank,
        stride=lambda x, stride: numbers(stride, x), padding=lambda x, padding: numbers(padding),
        dilation=lambda x, dilation: numbers(dilation))  # fmt: skip


def _make_conv_transpose(rank: int) -> Any:
    name = f"conv_transpose{rank}d"

    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Tensor:  # fmt: skip
        if isinstance(padding, str):
            raise TypeError(f"{name}(): argument 'padding' must be tuple of ints, not str")
        given = {
            "input": input, "weight": weight, "bias": bias, "stride": stride, "padding": padding,
            "output_padding": output_padding, "dilation": dilation,
        }  # fmt: skip
        _check_argument_types(name, rank, given, True)
        x, had_batch = _batched(name, input, rank)
        y = convolution(x, weight, bias, stride, padding, dilation, True, output_padding, groups)
        return y if had_batch else squeeze(y, 0)

    return _public(conv, name, f"""\
        Return the {rank}-dimensional transposed convolution, the adjoint of :func:`conv{rank}d`.

        ``input`` has shape (N, C, *space) or (C, *space), ``weight`` (C, out / groups, *kernel) and ``bias`` (out,).
        ``output_padding`` is the number of elements added to the end of each spatial dimension of the output.
        """)  # fmt: skip


def _public(function: Any, name: str, doc: str, **fast_path: Any) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return public(method=False, name=name, **fast_path)(function)


conv1d, conv2d, conv3d = map(_make_conv, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_make_conv_transpose, (1, 2, 3))


# -- Convolution of (time, batch, channels) --------------------------------------------------------------------------


@op(name="conv_tbc_block", backward="ConvTbcBackward0", function=False, method=False)
def conv_tbc_block(np: Any, self: Any, weight: Any, bias: Any, /, pad: int) -> Any:
    """Return the convolution of ``self`` with ``weight`` along the time dimension, plus ``bias``.

    ``self`` has shape (time, batch, channels) and ``weight`` (kernel, channels, out). ``pad`` zeros are added before
    and after ``self`` along time.
    """
    for what, each in (("Input", self), ("Weight", weight)):
        if each.ndim != 3:
            raise RuntimeError(f"{what} must have 3 dims: time, batch, in_channel" if what == "Input" else
                               "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")  # fmt: skip
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if self.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    time = self.shape[0] + 2 * pad - weight.shape[0] + 1
    if time <= 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {time}: [{time}, {self.shape[1]}, {weight.shape[2]}]"
        )
    shape = (self.shape[1], weight.shape[2], time)
    out = convolution_kernels.convolve(
        np, self.transpose(1, 2, 0), weight.transpose(2, 1, 0), shape, (1,), (pad,), (1,), 1, bias
    )
    return np.ascontiguousarray(out.transpose(2, 0, 1))


def _channels_first(shape: Any) -> tuple[int, ...]:
    return shape[1], shape[2], shape[0]


conv_tbc_block.derivative(
    self=lambda F, g, weight, self_shape, pad: F.permute(
        F.convolution_input(
            F.permute(g, (1, 2, 0)), F.permute(weight, (2, 1, 0)), _channels_first(self_shape), (1,), (pad,), (1,), 1
        ),
        (2, 0, 1),
    ),
    weight=lambda F, g, self, weight_shape, pad: F.permute(
        F.convolution_weight(
            F.permute(g, (1, 2, 0)), F.permute(self, (1, 2, 0)), weight_shape[::-1], (1,), (pad,), (1,), 1
        ),
        (2, 1, 0),
    ),
    bias=lambda F, g: F.sum_dim(g, (0, 1), False),
)


@public(method=False)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Return the convolution of ``input`` with ``weight`` along the time dimension, plus ``bias``.

    ``input`` has shape (time, batch, C), ``weight`` (kernel, C, out) and ``bias`` (out,). ``pad`` zeros are added
    before and after ``input`` along time.
    """
    return conv_tbc_block(input, weight, bias, pad)


__all__ = ["conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]
