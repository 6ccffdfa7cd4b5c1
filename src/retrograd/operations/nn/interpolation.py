"""Image resampling and rearrangement: interpolate, grid_sample, affine_grid, pixel_shuffle, unfold, fold and others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core import dtypes
from ...core.dtypes import scalar_name, unsupported
from ...core.tensor import Tensor
from ...dispatch.declare import op, public
from ...kernels import convolution, interpolation
from ...kernels import grid_sample as grid_kernels
from ...kernels.half_precision import upcast_half
from ...kernels.memory_format import in_memory_format_of
from ...runtime.user_frame import warn
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

# -- Interpolation ---------------------------------------------------------------------------------------------------


def _upsampling(name: str, title: str) -> Any:
    @op(name=name, backward=f"{title}Backward0", function=False, method=False, linear=True, vmap="leading")
    def resized(np: Any, self: Any, /, plan: tuple[interpolation.Taps, ...]) -> Any:
        """Return the images ``self`` resampled along their last ``len(plan)`` dimensions.

        Each output element is a weighted sum of input elements. Each item of ``plan`` describes one dimension: it holds
        the indices and the weights of the input elements for each output element.
        """
        if self.dtype.kind == "u":
            return interpolation.apply_whole_maps(np, self, plan)
        return interpolation.apply_maps(np, self, plan)

    resized.derivative(self=lambda F, g, plan: F.resample_back(g, plan))
    return resized


#: The operations by mode and number of dimensions.
_UPSAMPLE: dict[tuple[str, int], Any] = {}
for _mode, _rank, _title in (
    *(("nearest", rank, "Nearest") for rank in (1, 2, 3)), *(("nearest-exact", rank, "NearestExact") for rank in (1, 2, 3)),
    ("linear", 1, "Linear"), ("bilinear", 2, "Bilinear"), ("trilinear", 3, "Trilinear"), ("bicubic", 2, "Bicubic"),
):  # fmt: skip
    _name = f"upsample_{_mode.replace('-', '_')}{_rank}d"
    _UPSAMPLE[_mode, _rank] = _upsampling(_name, f"Upsample{_title}{_rank}D")
_ANTIALIASED = {
    mode: _upsampling(f"upsample_{mode}2d_aa", f"Upsample{mode.title()}2DAa")
    for mode in ("bilinear", "bicubic", "lanczos")
}
_ALIGNED = ("linear", "bilinear", "bicubic", "trilinear")
_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


def _sizes(
    input: Tensor, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """Return the tuple (output sizes, scale factors) of ``interpolate``, with one item per spatial dimension each.

    A scale factor is None if the ratio of input size and output size is used instead of a given factor. This is the
    case if ``size`` is passed or if ``recompute``, the argument ``recompute_scale_factor`` of ``interpolate``, is true.
    """
    space = input._array.shape[2:]
    rank = len(space)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    name, given = ("output size", size) if size is not None else ("scale_factor", scale_factor)
    if isinstance(given, (tuple, list)):
        if len(given) != rank:
            kind, letter, what = ("of", "o", "output size") if size is not None else ("of shape", "s", "scale_factor")
            raise ValueError(
                "Input and "
                f"{'output' if size is not None else 'scale_factor'} must have the same number of spatial dimensions, but "
                f"got input with spatial dimensions of {list(space)} and {name} {kind} {given}. Please provide input "
                f"tensor in (N, C, d1, d2, ...,dK) format and {what} in ({letter}1, {letter}2, ...,{letter}K) format."
            )
        values = tuple(given)
    else:
        values = (given,) * rank
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return tuple(int(each) for each in values), (None,) * rank
    out = tuple(math.floor(float(n) * float(s)) for n, s in zip(space, values, strict=True))
    return out, (None,) * rank if recompute else tuple(float(each) for each in values)


def _check_resized(input: Tensor, out: tuple[int, ...]) -> None:
    shape = input._array.shape
    space, rank = shape[2:], len(out)
    if min(space) <= 0 or min(out) <= 0:
        names = "DHW"[3 - rank :] if rank > 1 else "W"
        inside, outside = (", ".join(f"{n}: {v}" for n, v in zip(names, each, strict=True)) for each in (space, out))
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({inside}) {'and ' * (rank == 1)}output ({outside})"
        )
    if shape[1] == 0:
        raise RuntimeError(f"Non-empty {rank + 2}D data tensor expected but got a tensor with sizes {list(shape)}")


def _check_kind(input: Tensor, mode: str, rank: int, antialias: bool) -> None:
    kind = input._array.dtype
    if antialias:
        if str(kind) not in ("float32", "float64", "uint8"):
            raise unsupported("compute_index_ranges_weights", kind)
    elif kind.kind not in "fV" and not (str(kind) == "uint8" and (rank == 2 or mode.startswith("nearest"))):
        name = f"upsample_{'nearest' if mode.startswith('nearest') else mode}{rank}d_channels_last"
        if mode in ("bicubic", "linear") or rank == 1:
            name = f"compute_indices_weights_{ {'bicubic': 'cubic'}.get(mode, mode.partition('-')[0]) }"
        raise unsupported(name, kind)


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Return ``input`` (N, C, *space) resampled to ``size``, or by ``scale_factor``.

    ``mode`` is ``"nearest"``, ``"nearest-exact"``, ``"area"``, ``"linear"`` (3-d input), ``"bilinear"``, ``"bicubic"``,
    ``"lanczos"`` (4-d), or ``"trilinear"`` (5-d). If ``align_corners`` is true, the centres of the corner elements of
    input and output have the same positions. Otherwise the outer edges of the corner elements have the same positions.
    If ``antialias`` is true, a wider filter is used for dimensions that become smaller.

    >>> import retrograd as torch
    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 3.0]]]), size=4, mode="linear")
    tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    if mode not in _ALIGNED and align_corners is not None and mode in ("nearest", "area", "nearest-exact"):
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    rank, align = input._array.ndim - 2, bool(align_corners)
    out, scales = _sizes(input, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in _ANTIALIASED and rank == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and not antialias and rank == 2:
        raise ValueError("Lanczos mode requires antialias=True")
    if mode == "lanczos" and align:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if mode == "area" and rank in (1, 2, 3):
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[rank - 1](input, out)
    if (mode, rank) not in _UPSAMPLE and not antialias:
        _raise_mode_error(mode, rank)
    _check_resized(input, out)
    _check_kind(input, mode, rank, antialias)
    plan = tuple(
        _taps(mode, antialias, n, o, s, align, rank)
        for n, o, s in zip(input._array.shape[2:], out, scales, strict=True)
    )
    return (_ANTIALIASED[mode] if antialias else _UPSAMPLE[mode, rank])(input, plan)


def _taps(
    mode: str, antialias: bool, size: int, out: int, scale: float | None, align: bool, rank: int
) -> interpolation.Taps:
    if antialias:
        return interpolation.antialiased(size, out, scale, align, mode)
    if mode.startswith("nearest"):
        return interpolation.nearest(size, out, scale, mode == "nearest-exact", rank == 2)
    return (interpolation.cubic if mode == "bicubic" else interpolation.linear)(size, out, scale, align)


def _raise_mode_error(mode: str, rank: int) -> None:
    wanted = {"linear": 1, "bilinear": 2, "trilinear": 3}.get(mode)
    if rank in (1, 2, 3) and wanted is not None:
        raise NotImplementedError(f"Got {rank + 2}D input, but {mode} mode needs {wanted + 2}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank + 2}D) for the modes: {_MODES} (got {mode})"
    )


def _deprecated(name: str) -> None:
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Return :func:`interpolate` of the arguments. This name is deprecated.

    >>> import retrograd as torch
    >>> torch.nn.functional.upsample(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Return :func:`interpolate` of ``input`` with mode ``"nearest"``. This name is deprecated.

    >>> import retrograd as torch
    >>> torch.nn.functional.upsample_nearest(torch.tensor([[[[1.0, 3.0]]]]), scale_factor=2)
    tensor([[[[1., 1., 3., 3.],
              [1., 1., 3., 3.]]]])
    """
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Return :func:`interpolate` of ``input`` with mode ``"bilinear"`` and ``align_corners=True``.

    This name is deprecated.

    >>> import retrograd as torch
    >>> torch.nn.functional.upsample_bilinear(torch.tensor([[[[1.0, 3.0]]]]), size=(1, 3))
    tensor([[[[1., 2., 3.]]]])
    """
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)


# -- Grid sampling ---------------------------------------------------------------------------------------------------


@op(function=False, method=False, vmap="samples")
def grid_read(np: Any, input: Any, grid_: Any, /, mode: int, padding: int, align: bool, orders: tuple[int, ...]) -> Any:
    """Return ``input`` sampled at the points ``grid_``, or a derivative of these samples.

    ``orders`` holds one int for each coordinate of a point: the number of differentiations with respect to this
    coordinate. If all orders are 0, the samples themselves are returned. ``mode``, ``padding`` and ``align`` are the
    parameters ``interpolation_mode``, ``padding_mode`` and ``align_corners`` of :func:`grid_sampler`.
    """
    return grid_kernels.read(np, input, grid_, mode, padding, align, orders)


@op(function=False, method=False, vmap="samples")
def grid_spread(
    np: Any, self: Any, grid_: Any, /, shape: Any, mode: int, padding: int, align: bool, orders: tuple[int, ...]
) -> Any:
    """Return the gradient of ``grid_read`` with respect to its ``input``, which has the shape ``shape``.

    ``self`` is the gradient of the result of ``grid_read``. ``grid_``, ``mode``, ``padding``, ``align`` and ``orders``
    are the arguments of ``grid_read``.
    """
    return grid_kernels.spread(np, self, grid_, shape, mode, padding, align, orders)


def _grid_rule(F: Any, g: Any, image: Any, grid_: Any, options: tuple[Any, ...], orders: tuple[int, ...]) -> Any:
    """Return the gradient of ``grid_read`` with respect to the points ``grid_``.

    ``g`` is the gradient of the samples that ``grid_read`` returns. For each coordinate, ``g`` times the derivative of
    the samples is summed over the channels. ``grid_read`` itself computes this derivative if the order of the
    coordinate in ``orders`` is increased by one. ``image``, ``grid_`` and ``orders`` are the arguments of
    ``grid_read``, and ``options`` is (mode, padding, align).
    """
    parts = [
        F.sum_dim(g * F.grid_read(image, grid_, *options, (*orders[:d], orders[d] + 1, *orders[d + 1 :])), 1, False)
        for d in range(len(orders))
    ]
    return F.stack(parts, -1)


grid_read.derivative(
    input=lambda F, g, grid_, input_shape, mode, padding, align, orders: F.grid_spread(
        g, grid_, input_shape, mode, padding, align, orders
    ),
    grid_=lambda F, g, input, grid_, mode, padding, align, orders: _grid_rule(
        F, g, input, grid_, (mode, padding, align), orders
    ),
)
grid_spread.derivative(
    self=lambda F, g, grid_, mode, padding, align, orders: F.grid_read(g, grid_, mode, padding, align, orders),
    grid_=lambda F, g, self, grid_, mode, padding, align, orders: _grid_rule(
        F, self, g, grid_, (mode, padding, align), orders
    ),
)


def _sampling(rank: int) -> Any:
    none = (0,) * rank

    @op(
        name=f"grid_sampler_{rank}d_block", backward=f"GridSampler{rank}DBackward0", function=False, method=False,
        vmap="samples", connected="none",
    )  # fmt: skip
    def sampled(np: Any, input: Any, grid_: Any, /, mode: int, padding: int, align: bool) -> Any:
        """Return ``input`` sampled at the points ``grid_``.

        ``mode``, ``padding`` and ``align`` are the parameters ``interpolation_mode``, ``padding_mode`` and
        ``align_corners`` of :func:`grid_sampler`.
        """
        return grid_kernels.read(np, input, grid_, mode, padding, align, none)

    sampled.derivative(
        input=lambda F, g, grid_, input_shape, mode, padding, align: F.grid_spread(
            g, grid_, input_shape, mode, padding, align, none
        ),
        grid_=lambda F, g, input, grid_, mode, padding, align: _grid_rule(
            F, g, input, grid_, (mode, padding, align), none
        ),
    )
    return sampled


_sampled = {rank: _sampling(rank) for rank in (2, 3)}


def _check_grid(input: Tensor, grid: Tensor, mode: int) -> None:
    x, y = input._array, grid._array
    shapes = f"input with sizes {list(x.shape)} and grid with sizes {list(y.shape)}"
    if x.ndim == 0 or y.ndim == 0 or x.shape[0] != y.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, but got {shapes}")
    if y.shape[-1] != x.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {x.ndim - 2} in last dimension, but got grid with sizes "
            f"{list(y.shape)}"
        )
    for dim in range(2, x.ndim):
        if x.shape[dim] == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(x.shape)} with dimension {dim} being empty"
            )
    for rank in (2, 3):
        if x.ndim == rank + 2 and y.ndim != rank + 2:
            raise RuntimeError(
                f"grid_sampler(): expected {rank + 2}D input and grid with same number of dimensions, but got {shapes}"
            )
    if x.ndim not in (4, 5):
        raise RuntimeError(
            f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got {shapes}"
        )
    if x.ndim == 5 and mode == grid_kernels.BICUBIC:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if x.dtype.kind not in "fV":
        raise unsupported(f"grid_sampler_{x.ndim - 2}d_cpu{'_kernel_impl' if x.ndim == 4 else ''}", x.dtype)
    if x.dtype != y.dtype:
        names = scalar_name(dtypes.dtype_of(x.dtype)), scalar_name(dtypes.dtype_of(y.dtype))
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")


@public(method=False, aliases=("grid_sampler_2d", "grid_sampler_3d"))
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return :func:`torch.nn.functional.grid_sample` of ``input`` and ``grid``, with the modes as integers.

    ``interpolation_mode`` is 0 for bilinear, 1 for nearest, 2 for bicubic. ``padding_mode`` is 0 for zeros, 1 for
    border, 2 for reflection.
    """
    _check_grid(input, grid, interpolation_mode)
    return _sampled[input._array.ndim - 2](input, grid, interpolation_mode, padding_mode, align_corners)


_ALIGN_WARNING = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)


def _aligned(align_corners: bool | None) -> bool:
    if align_corners is None:
        warn(_ALIGN_WARNING)
    return bool(align_corners)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Return ``input`` (N, C, *space) sampled at the points of ``grid`` (N, *out, axes): a tensor (N, C, *out).

    The coordinates of a point range from -1 to 1. Their order is x, y, z, the reverse of the order of the spatial
    dimensions. ``mode`` is ``"bilinear"``, ``"nearest"`` or ``"bicubic"``. ``padding_mode`` determines the samples at
    points outside the input: ``"zeros"``, ``"border"`` or ``"reflection"``. If ``align_corners`` is true, -1 and 1 are
    the centres of the corner elements. Otherwise (default), -1 and 1 are the outer edges of the corner elements.
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    numbers = ("bilinear", "nearest", "bicubic").index(mode), ("zeros", "border", "reflection").index(padding_mode)
    return grid_sampler(input, grid, *numbers, _aligned(align_corners))


def _base_grid(np: Any, size: Sequence[int], align: bool, dtype: Any) -> Any:
    """Return a matrix with the coordinates of one element of an image in each row, followed by 1.

    The product of this matrix and an affine map gives the transformed coordinates; the 1 is multiplied by the
    translation. ``size`` is the shape of the images, (N, C, *space). The coordinates of a row are x, y, z, the reverse
    of the order of the spatial dimensions. They range from -1 to 1. If ``align`` is true, -1 and 1 are the centres of
    the corner elements, otherwise the outer edges of the corner elements.
    """
    axes = []
    for n in size[2:]:
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        axes.append(line if align or n == 1 else line * ((n - 1) / n))
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([*mesh[::-1], np.ones(size[2:])], -1).reshape(-1, len(axes) + 1).astype(dtype)


@op(backward="AffineGridGeneratorBackward0", function=False, method=False, linear=True, vmap="samples")
def affine_grid_block(np: Any, theta: Any, /, size: tuple[int, ...], align: bool) -> Any:
    """Return the coordinates of all elements of images of shape ``size``, transformed by the affine maps ``theta``.

    If ``align`` is true, the coordinates -1 and 1 are the centres of the corner elements, otherwise their outer edges.
    """
    wide = upcast_half(theta)
    if len(wide) != size[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {len(size) - 1}] but got: "
            f"[{len(wide)}, {len(size) - 1}]."
        )
    out = np.matmul(_base_grid(np, size, align, wide.dtype), wide.swapaxes(1, 2))
    return out.reshape(size[0], *size[2:], len(size) - 2).astype(theta.dtype, copy=False)


@op(function=False, method=False, linear=True, vmap="samples")
def affine_grid_back(np: Any, self: Any, /, size: tuple[int, ...], align: bool) -> Any:
    """Return the gradient of ``affine_grid_block`` with respect to ``theta``.

    ``self`` is the gradient of the result of ``affine_grid_block``.
    """
    wide = upcast_half(self).reshape(size[0], -1, len(size) - 2)
    return np.matmul(wide.swapaxes(1, 2), _base_grid(np, size, align, wide.dtype)).astype(self.dtype, copy=False)


affine_grid_block.derivative(theta=lambda F, g, size, align: F.affine_grid_back(g, size, align))
affine_grid_back.derivative(self=lambda F, g, size, align: F.affine_grid_block(g, size, align))


@public(method=False)
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """Return :func:`torch.nn.functional.affine_grid` of the arguments, without checks of the arguments."""
    return affine_grid_block(theta, tuple(size), align_corners)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the grid of points with which :func:`grid_sample` transforms images by affine maps.

    ``theta`` holds one map per image: its shape is (N, 2, 3), or (N, 3, 4) for volumes. ``size`` is the shape of the
    output images, (N, C, H, W) or (N, C, D, H, W). The result has shape (N, H, W, 2) or (N, D, H, W, 3).
    """
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    rank = len(size) - 2
    if rank not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{_shown(size)}."
        )
    if theta._array.ndim != 3 or theta._array.shape[1:] != (rank, rank + 1):
        raise ValueError(
            f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size {_shown(size)}. Got "
            f"{theta.shape}."
        )
    align = _aligned(align_corners)
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {_shown(size)}")
    return affine_grid_generator(theta, size, align)


def _shown(size: Sequence[int]) -> str:
    return str(size)


# -- Pixel and channel shuffling -------------------------------------------------------------------------------------


@op(backward="PixelShuffleBackward0", method=False, linear=True, vmap="leading")
def pixel_shuffle(np: Any, self: Any, /, upscale_factor: int) -> Any:
    """Return ``self`` (…, C * r * r, H, W) rearranged to (…, C, H * r, W * r), where r is ``upscale_factor``."""
    r = upscale_factor
    _check_shuffle("pixel_shuffle", "upscale_factor", self.ndim, r)
    *lead, channels, height, width = self.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={channels} is not divisible by {r * r}"
        )
    n = len(lead)
    split = self.reshape(*lead, channels // (r * r), r, r, height, width)
    turned = split.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return in_memory_format_of(np, _copied(np, turned, (*lead, channels // (r * r), height * r, width * r)), self)


@op(backward="PixelUnshuffleBackward0", method=False, linear=True, vmap="leading")
def pixel_unshuffle(np: Any, self: Any, /, downscale_factor: int) -> Any:
    """Return ``self`` (…, C, H * r, W * r) rearranged to (…, C * r * r, H, W), where r is ``downscale_factor``."""
    r = downscale_factor
    if self.ndim < 3:
        _check_shuffle("pixel_unshuffle", "downscale_factor", self.ndim, 1)
    _check_shuffle("pixel_unshuffle", "downscale_factor", self.ndim, r)
    *lead, channels, height, width = self.shape
    for name, at, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({at})={size} is not "
                f"divisible by {r}"
            )
    n = len(lead)
    split = self.reshape(*lead, channels, height // r, r, width // r, r)
    turned = split.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return in_memory_format_of(np, _copied(np, turned, (*lead, channels * r * r, height // r, width // r)), self)


def _copied(np: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """Return a contiguous copy of ``x`` of shape ``shape``."""
    return np.ascontiguousarray(x).reshape(shape) if not x.flags.c_contiguous else x.copy().reshape(shape)


def _check_shuffle(name: str, parameter: str, ndim: int, factor: int) -> None:
    if ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {parameter}, but got {factor}")


pixel_shuffle.derivative(self=lambda F, g, upscale_factor: F.pixel_unshuffle(g, upscale_factor))
pixel_unshuffle.derivative(self=lambda F, g, downscale_factor: F.pixel_shuffle(g, downscale_factor))


def _channel_shuffled(np: Any, self: Any, groups: int) -> Any:
    if self.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    channels = self.shape[1]
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    split = self.reshape(self.shape[0], groups, channels // groups, *self.shape[2:])
    return in_memory_format_of(np, _copied(np, split.swapaxes(1, 2), self.shape), self)


@op(backward="ChannelShuffleBackward0", method=False, linear=True, vmap="samples")
def channel_shuffle(np: Any, self: Any, /, groups: int) -> Any:
    """Return ``self`` (N, C, *space) with its channels permuted.

    The channels are split into ``groups`` equal groups. The result has the first channel of each group, then the second
    channel of each group, and so on.
    """
    return _channel_shuffled(np, self, groups)


@op(method=False, linear=True, vmap="samples")
def native_channel_shuffle(np: Any, self: Any, /, groups: int) -> Any:
    """Return :func:`channel_shuffle` of the arguments. PyTorch has both names."""
    return _channel_shuffled(np, self, groups)


for _shuffle in (channel_shuffle, native_channel_shuffle):
    _shuffle.derivative(self=lambda F, g, self_shape, groups: F.channel_shuffle(g, max(self_shape[1] // groups, 1)))


# -- Unfold and fold -------------------------------------------------------------------------------------------------


@op(backward="Im2ColBackward0", function=False, method=False, linear=True, vmap="samples")
def im2col(np: Any, self: Any, /, kernel: Any, stride: Any, padding: Any, dilation: Any, places: Any) -> Any:
    """Return the windows of the images ``self`` as the columns of a matrix for each image.

    ``self`` has shape (N, C, H, W), and the result (N, C * window size, number of windows). ``kernel``, ``stride``,
    ``padding`` and ``dilation`` have one int per spatial dimension. ``places`` holds the number of windows along each
    spatial dimension.
    """
    return convolution.unfold_windows(np, self, kernel, stride, padding, dilation, places)


@op(backward="Col2ImBackward0", function=False, method=False, linear=True, vmap="samples")
def col2im(
    np: Any, self: Any, /, space: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, places: Any
) -> Any:
    """Return images of spatial shape ``space``, in which overlapping windows are summed: the adjoint of ``im2col``.

    ``self`` (N, C * window size, number of windows) holds the windows as columns. ``kernel``, ``stride``, ``padding``
    and ``dilation`` have one int per spatial dimension. ``places`` holds the number of windows along each spatial
    dimension.
    """
    return convolution.fold_windows(np, self, space, kernel, stride, padding, dilation, places)


im2col.derivative(
    self=lambda F, g, self_shape, kernel, stride, padding, dilation, places: F.col2im(
        g, self_shape[-2:], kernel, stride, padding, dilation, places
    )
)
col2im.derivative(
    self=lambda F, g, kernel, stride, padding, dilation, places: F.im2col(g, kernel, stride, padding, dilation, places)
)


def _pair(what: str, value: Any) -> tuple[int, int]:
    given = (
        tuple(value) * (2 if len(value) == 1 else 1)
        if isinstance(value, (tuple, list))
        else (value if isinstance(value, int) else value.__index__(),) * 2
    )
    if len(given) != 2:
        raise RuntimeError(f"It is expected {what} equals to 2, but got size {len(given)}")
    return given


def _columns_of(space: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, ...]:
    """Return the number of windows of ``unfold`` along each spatial dimension of an image.

    ``space`` is the spatial shape of the image. ``kernel``, ``stride``, ``padding`` and ``dilation`` have one int per
    spatial dimension.
    """
    for what, short, values, least in (
        ("kernel size", "kernel", kernel, 1), ("dilation", "dilation", dilation, 1), ("padding", "pad", padding, 0),
        ("stride", "stride", stride, 1),
    ):  # fmt: skip
        if min(values) < least:
            wanted = "greater than zero" if least else "non-negative"
            raise RuntimeError(
                f"{what} should be {wanted}, but got {short}_height: {values[0]} {short}_width: {values[1]}"
            )
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(space, kernel, stride, padding, dilation, strict=True)
    )


def _check_columns(name: str, x: Tensor) -> None:
    kind = str(x._array.dtype)
    if kind not in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool"):
        raise unsupported(name, x._array.dtype)


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return the windows of the images ``input`` as columns of matrices.

    An ``input`` of shape (N, C, H, W) becomes (N, C * window size, number of windows). The batch dimension N may be
    missing. ``kernel_size`` is the size of the windows and ``stride`` the distance between them. Each parameter is an
    int or a pair of ints.
    """
    kernel, steps = _pair("kernel_size", kernel_size), _pair("stride", stride)
    pads, spaced = _pair("padding", padding), _pair("dilation", dilation)
    shape = input._array.shape
    if len(shape) < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-{len(shape)}, {len(shape) - 1}], but got {2})"
        )
    out = _columns_of(shape[-2:], kernel, steps, pads, spaced)
    if len(shape) not in (3, 4) or 0 in shape[len(shape) - 3 :]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(shape)}"
        )
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {shape[-2:]}, kernel_size={kernel}, dilation={spaced}, padding={pads}, "
            f"calculated shape of the array of sliding blocks as {out}, but its components must be at least one."
        )
    _check_columns("im2col_out_cpu", input)
    return im2col(input, kernel, steps, pads, spaced, out)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Return images (N, C, *output_size), in which overlapping windows are summed: the adjoint of :func:`unfold`.

    ``input`` (N, C * window size, number of windows) holds the windows as columns. The other parameters are those of
    :func:`unfold`.
    """
    space, kernel, steps = _pair("output_size", output_size), _pair("kernel_size", kernel_size), _pair("stride", stride)
    pads, spaced = _pair("padding", padding), _pair("dilation", dilation)
    shape = input._array.shape
    out = _columns_of(space, kernel, steps, pads, spaced)
    if len(shape) not in (2, 3) or 0 in shape[len(shape) - 2 :]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, "
            f"but got: {list(shape)}"
        )
    rows, columns = shape[-2:]
    if rows % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={rows} and kernel_size={kernel}."
        )
    if columns != math.prod(out):
        raise RuntimeError(
            f"Given output_size={space}, kernel_size={kernel}, dilation={spaced}, padding={pads}, stride={steps}, expected "
            f"size of input's dimension 2 to match the calculated number of sliding blocks {out[0]} * {out[1]} = "
            f"{math.prod(out)}, but got input.size(2)={columns}."
        )
    if min(out) < 1:
        raise RuntimeError(
            f"Given output_size={space}, kernel_size={kernel}, dilation={spaced}, padding={pads}, stride={steps}, calculated "
            f"shape of the array of sliding blocks as {out}, which is too small (non-positive)"
        )
    _check_columns("col2im_out_cpu", input)
    return col2im(input, space, kernel, steps, pads, spaced, out)


__all__ = [
    "affine_grid", "channel_shuffle", "fold", "grid_sample", "interpolate", "native_channel_shuffle", "pixel_shuffle",
    "pixel_unshuffle", "unfold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip
