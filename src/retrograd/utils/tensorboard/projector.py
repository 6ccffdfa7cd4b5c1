"""Files for TensorBoard's projector of embeddings: the embeddings and a configuration file that lists them."""

from __future__ import annotations

import importlib
import math
import os
from typing import Any

import numpy

from . import pictures

_configs = importlib.import_module("tensorboard.plugins.projector.projector_config_pb2")
_texts = importlib.import_module("google.protobuf.text_format")


def configuration() -> Any:
    """Return an empty ProjectorConfig, the protobuf message that configures TensorBoard's projector."""
    return _configs.ProjectorConfig()


def _write(folder: str, name: str, rows: Any) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.writelines("\t".join(map(str, row)) + "\n" for row in rows)


def add(config: Any, log_dir: str, name: str, points: Any, labels: Any, header: Any, images: Any, tag: str) -> None:
    """Write the embeddings ``points`` to files in the folder ``name`` in ``log_dir``, for TensorBoard's projector.

    ``points`` has one row for each embedding. ``labels`` and ``images``, which may be None, have one entry for each row
    of ``points``. ``header``, which may be None, contains the names of the columns of ``labels``. The embeddings are
    added under the name ``tag`` to the configuration ``config``, which is also written.
    """
    if labels is not None and len(labels) != len(points):
        raise AssertionError("#labels should equal with #data points")
    if images is not None and len(images) != len(points):
        raise AssertionError("#images should equal with #data points")
    if points.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    folder = os.path.join(log_dir, name)
    os.makedirs(folder, exist_ok=True)
    info = config.embeddings.add(tensor_name=tag, tensor_path=f"{name}/tensors.tsv")
    if labels is not None:
        rows = [header, *labels] if header else [[each] for each in labels]
        _write(folder, "metadata.tsv", rows)
        info.metadata_path = f"{name}/metadata.tsv"
    if images is not None:
        _sprite(images, os.path.join(folder, "sprite.png"))
        info.sprite.image_path = f"{name}/sprite.png"
        info.sprite.single_image_dim.extend([images.shape[3], images.shape[2]])
    _write(folder, "tensors.tsv", points.tolist())
    with open(os.path.join(log_dir, "projector_config.pbtxt"), "w", encoding="utf-8") as file:
        file.write(_texts.MessageToString(config))


def _sprite(images: Any, path: str) -> None:
    """Write ``images`` (number, channels, height, width) to ``path``, arranged as one square PNG image."""
    side = math.ceil(math.sqrt(len(images)))
    if images.shape[2] != images.shape[3]:
        raise AssertionError("Image should be square, see tensorflow/tensorboard#670")
    if images.shape[3] * side > 8192:
        raise AssertionError("Sprite too large, see label_img shape limits")
    rows = pictures.grid(pictures.to_images(images), side)
    square = numpy.zeros((rows.shape[1], rows.shape[1], 3), rows.dtype)
    square[: rows.shape[0]] = rows
    with open(path, "wb") as file:
        file.write(pictures.png(pictures.to_uint8(square))[2])
