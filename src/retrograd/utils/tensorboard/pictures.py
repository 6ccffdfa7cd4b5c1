"""Images, videos and sounds for TensorBoard: conversion of arrays, and encoding as PNG (by Pillow), GIF or WAV."""

from __future__ import annotations

import importlib
import io
import math
import wave
from typing import Any

import numpy


def to_image(array: Any, order: str) -> Any:
    """Return ``array`` as one image with dimensions (height, width, channels).

    ``order`` names the dimensions of ``array``, for example "NCHW" or "HW". Several images are arranged in a grid.
    """
    order = order.upper()
    if len(set(order)) != len(order):
        raise AssertionError(f"You can not use the same dimension shordhand twice.         input_format: {order}")
    if array.ndim != len(order):
        raise AssertionError(
            "size of input tensor and input format are different.         "
            f"tensor shape: {array.shape}, input_format: {order}"
        )
    if len(order) == 2:
        array, order = array[..., None], order + "C"
    if len(order) == 3 and "N" in order:
        array, order = array[..., None], order + "C"
    wanted = "NHWC" if "N" in order else "HWC"
    array = array.transpose([order.index(each) for each in wanted])
    if array.shape[-1] == 1:
        array = numpy.concatenate([array] * 3, -1)
    return array if array.ndim == 3 else grid(array, 8)


def to_images(pictures: Any) -> Any:
    """Return ``pictures`` (number, channels, height, width) as an array (number, height, width, 3).

    If there is a single channel, it is repeated three times.
    """
    pictures = pictures.transpose(0, 2, 3, 1)
    return numpy.concatenate([pictures] * 3, -1) if pictures.shape[-1] == 1 else pictures


def grid(pictures: Any, columns: int) -> Any:
    """Return one image of ``pictures`` (number, height, width, channels), arranged with ``columns`` in a row."""
    count, height, width, colours = pictures.shape
    columns = min(count, columns)
    made = numpy.zeros((math.ceil(count / columns) * height, columns * width, colours), pictures.dtype)
    for number, picture in enumerate(pictures):
        row, column = divmod(number, columns)
        made[row * height : (row + 1) * height, column * width : (column + 1) * width] = picture
    return made


def to_uint8(array: Any) -> Any:
    """Return the image ``array`` as uint8; the elements of a float image are multiplied by 255."""
    factor = 1 if array.dtype == numpy.uint8 else 255
    return (array.astype(numpy.float32) * factor).clip(0, 255).astype(numpy.uint8)


def _drawable(array: Any) -> Any:
    return importlib.import_module("PIL.Image").fromarray(array)


def png(array: Any, rescale: float = 1) -> tuple[int, int, bytes]:
    """Return the height, the width and the PNG encoding of the uint8 image ``array``.

    The image is first enlarged by the factor ``rescale``.
    """
    picture = _drawable(array)
    if rescale != 1:
        picture = picture.resize((int(picture.width * rescale), int(picture.height * rescale)))
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return picture.height, picture.width, file.getvalue()


def gif(frames: Any, per_second: float) -> bytes:
    """Return the uint8 images ``frames`` encoded as an endless animated GIF with ``per_second`` frames per second."""
    first, *others = [_drawable(each.squeeze(-1) if each.shape[-1] == 1 else each) for each in frames]
    file = io.BytesIO()
    first.save(file, format="GIF", save_all=True, append_images=others, duration=1000 / per_second, loop=0)
    return file.getvalue()


def side_by_side(films: Any) -> Any:
    """Return one video (frames, height, width, channels) in which the videos ``films`` are arranged in a grid.

    ``films`` has the dimensions (number, frames, channels, height, width).
    """
    while films.shape[0] & (films.shape[0] - 1):
        films = numpy.concatenate([films, numpy.zeros_like(films[:1])])
    count, frames, colours, height, width = films.shape
    rows = 2 ** ((count.bit_length() - 1) // 2)
    films = films.reshape(rows, count // rows, frames, colours, height, width).transpose(2, 0, 4, 1, 5, 3)
    return films.reshape(frames, rows * height, count // rows * width, colours)


def with_boxes(array: Any, boxes: Any, labels: Any) -> Any:
    """Return the uint8 image ``array`` with a red frame around each box and the texts ``labels`` above the frames.

    Each row of ``boxes`` is (left, top, right, bottom), in pixels.
    """
    picture = _drawable(array)
    pen = importlib.import_module("PIL.ImageDraw").Draw(picture)
    for number, (left, top, right, bottom) in enumerate(boxes.tolist()):
        corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        pen.line(corners, width=2, fill="Red")
        if labels is not None:
            place = pen.textbbox((left, bottom), labels[number], anchor="lb")
            pen.rectangle(place, fill="Red")
            pen.text((left, bottom), labels[number], fill="black", anchor="lb")
    return numpy.array(picture)


def render_figures(figures: Any, close: bool) -> Any:
    """Return the matplotlib ``figures`` as uint8 images; if ``close`` is true, the figures are closed."""
    canvases = importlib.import_module("matplotlib.backends.backend_agg")
    found = []
    for figure in figures:
        canvas = canvases.FigureCanvasAgg(figure)
        canvas.draw()
        found.append(numpy.array(canvas.buffer_rgba(), numpy.uint8)[:, :, :3])
        if close:
            importlib.import_module("matplotlib.pyplot").close(figure)
    return numpy.stack(found)


def wav(sound: Any, rate: int) -> bytes:
    """Return ``sound``, samples between -1 and 1, encoded as a WAV file with one channel.

    ``rate`` is the number of samples per second.
    """
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(rate)
        written.writeframes((sound * 32767.0).astype("<i2").tobytes())
    return file.getvalue()


__all__ = [
    "to_uint8",
    "to_image",
    "to_images",
    "render_figures",
    "gif",
    "grid",
    "png",
    "side_by_side",
    "wav",
    "with_boxes",
]
