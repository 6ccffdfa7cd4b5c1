"""The operators ``nms`` and ``roi_align`` of torchvision's compiled library.

``roi_align`` averages samples of bilinear interpolation on a grid in each bin. Interpolation is separable, so the
average is a product with a matrix for each axis: ``rows @ image @ columns.T``. The rows and columns of zeros are left
out of the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from ..core.tensor import Tensor, wrap
from ..library import Library, custom_op

_LIBRARY = Library("torchvision", "FRAGMENT")
# Operators without an implementation here. torchvision registers functions of shapes for them when it is imported.
for _name in (
    "roi_pool", "_roi_pool_backward", "ps_roi_align", "_ps_roi_align_backward", "ps_roi_pool", "_ps_roi_pool_backward",
    "deform_conv2d", "_deform_conv2d_backward", "qnms", "qroi_align", "box_iou_rotated",
):  # fmt: skip
    _LIBRARY.define(_name)


def _array(x: Tensor) -> Any:
    return x.detach().cpu()._array


@custom_op("torchvision::_cuda_version", mutates_args=())
def _cuda_version() -> int:
    """Return -1, because there is no code for GPUs."""
    return -1


@custom_op("torchvision::nms", mutates_args=())
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the indices of boxes that overlap no box of a higher score by more than ``iou_threshold``.

    ``dets`` has the shape (N, 4): left, top, right, bottom. The indices are in descending order of ``scores``.
    """
    _check_boxes(dets, scores)
    boxes, order = _array(dets), numpy.argsort(-_array(scores), kind="stable")
    low, high = boxes[:, :2], boxes[:, 2:]
    areas = numpy.prod(high - low, axis=1, dtype=boxes.dtype)
    kept = []
    while order.size:
        first, order = order[0], order[1:]
        kept.append(first)
        overlap = numpy.minimum(high[first], high[order]) - numpy.maximum(low[first], low[order])
        shared = numpy.prod(numpy.maximum(overlap, 0), axis=1, dtype=boxes.dtype)
        with numpy.errstate(divide="ignore", invalid="ignore"):
            ratio = shared / (areas[first] + areas[order] - shared)
        order = order[~(ratio > iou_threshold)]
    return wrap(numpy.array(kept, numpy.int64)).to(dets.device)


def _check_boxes(dets: Tensor, scores: Tensor) -> None:
    if dets.dim() != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {dets.dim()}D")
    if dets.shape[1] != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {dets.shape[1]}")
    if scores.dim() != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.dim()}D")
    if len(dets) != len(scores):
        raise RuntimeError(
            f"boxes and scores should have same number of elements in dimension 0, got {len(dets)} and {len(scores)}"
        )


def _weights(start: float, length: float, bins: int, size: int, ratio: int, dtype: Any) -> tuple[Any, slice]:
    """Return the weights of the positions along one axis in each bin, and the slice of positions that have weights.

    The interval from ``start`` of the given ``length`` is divided into ``bins``, each with ``ratio`` samples (if it is
    not positive, as many as the bin has positions). A sample beyond -1 or ``size`` counts as 0.
    """
    grid = ratio if ratio > 0 else int(numpy.ceil(length / bins))
    offsets = (numpy.arange(grid, dtype=dtype) + dtype.type(0.5)) * length / bins / max(grid, 1)
    places = start + numpy.arange(bins, dtype=dtype)[:, None] * (length / bins) + offsets
    inside = (places >= -1) & (places <= size)
    places = numpy.clip(places, 0, size - 1)
    left = numpy.minimum(places.astype(numpy.int64), size - 1)
    part = (places - left) * inside
    weights = numpy.zeros((bins, size), dtype)
    rows = numpy.arange(bins)[:, None]
    numpy.add.at(weights, (rows, left), inside - part)
    numpy.add.at(weights, (rows, numpy.minimum(left + 1, size - 1)), part)
    used = numpy.flatnonzero(weights.any(0))
    span = slice(used[0], used[-1] + 1) if used.size else slice(0, 0)
    return weights[:, span] / max(grid, 1), span


def _products(
    rois: Tensor, scale: float, bins: tuple[int, int], sizes: tuple[int, int], ratio: int, aligned: bool, dtype: Any
) -> Iterator[tuple[int, Any, Any, tuple[Any, ...]]]:
    """Yield the image, the matrices of rows and columns, and the index of the part of the image, for each box."""
    regions = _array(rois).astype(dtype)
    edges = regions[:, 1:] * dtype.type(scale) - dtype.type(0.5 if aligned else 0)
    lengths = edges[:, 2:] - edges[:, :2]
    if not aligned:
        lengths = numpy.maximum(lengths, 1)
    for image, (x, y, _, _), (width, height) in zip(regions[:, 0].astype(int), edges, lengths, strict=True):
        rows, vertical = _weights(y, height, bins[0], sizes[0], ratio, dtype)
        columns, horizontal = _weights(x, width, bins[1], sizes[1], ratio, dtype)
        yield image, rows, columns, (slice(None), vertical, horizontal)


def _check_regions(input: Tensor, rois: Tensor) -> None:
    if rois.dim() != 2 or rois.shape[1] != 5:
        raise RuntimeError("rois must have shape as Tensor[K, 5]")
    if input.dtype != rois.dtype:
        raise RuntimeError(
            f"Expected tensor for input to have the same type as tensor for rois; but type {input.dtype} does not equal "
            f"{rois.dtype}"
        )


@custom_op("torchvision::roi_align", mutates_args=())
def roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int,
    aligned: bool,
) -> Tensor:  # fmt: skip
    """Return the average in each bin of each box, a tensor of shape (K, C, ``pooled_height``, ``pooled_width``).

    ``input`` has the shape (N, C, H, W), ``rois`` the shape (K, 5): the index of the image, left, top, right, bottom.
    """
    _check_regions(input, rois)
    images, bins = _array(input), (pooled_height, pooled_width)
    result = numpy.empty((len(rois), images.shape[1], *bins), images.dtype)
    each = _products(rois, spatial_scale, bins, images.shape[2:], sampling_ratio, aligned, images.dtype)
    for out, (image, rows, columns, part) in zip(result, each, strict=True):
        out[...] = rows @ images[image][part] @ columns.T
    return wrap(result).to(input.device)


@custom_op("torchvision::_roi_align_backward", mutates_args=())
def roi_align_backward(
    grad: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, batch_size: int,
    channels: int, height: int, width: int, sampling_ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    """Return the gradient of ``roi_align`` with respect to its input, for the gradient ``grad`` of its result."""
    incoming, bins = _array(grad), (pooled_height, pooled_width)
    result = numpy.zeros((batch_size, channels, height, width), incoming.dtype)
    each = _products(rois, spatial_scale, bins, (height, width), sampling_ratio, aligned, incoming.dtype)
    for g, (image, rows, columns, part) in zip(incoming, each, strict=True):
        result[image][part] += rows.T @ g @ columns
    return wrap(result).to(grad.device)
