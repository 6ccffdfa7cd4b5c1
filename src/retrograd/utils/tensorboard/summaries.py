"""Summaries for TensorBoard: each function returns a summary value (a protobuf message) with the name ``tag``."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy

from ...core.tensor import Tensor
from . import pictures

_PROTO = "tensorboard.compat.proto."
_summaries = importlib.import_module(_PROTO + "summary_pb2")
_tensors = importlib.import_module(_PROTO + "tensor_pb2")
_numbers = importlib.import_module("google.protobuf.struct_pb2")
_layouts = importlib.import_module("tensorboard.plugins.custom_scalar.layout_pb2")
_parameters = importlib.import_module("tensorboard.plugins.hparams.api_pb2")
_sessions = importlib.import_module("tensorboard.plugins.hparams.plugin_data_pb2")
_curves = importlib.import_module("tensorboard.plugins.pr_curve.plugin_data_pb2")
_meshes = importlib.import_module("tensorboard.plugins.mesh.plugin_data_pb2")

#: TensorBoard's element types, and the fields of a message that hold the elements.
_ELEMENTS = {
    "float32": ("DT_FLOAT", "float_val"), "float64": ("DT_DOUBLE", "double_val"), "int8": ("DT_INT8", "int_val"),
    "int16": ("DT_INT16", "int_val"), "int32": ("DT_INT32", "int_val"), "int64": ("DT_INT64", "int64_val"),
    "uint8": ("DT_UINT8", "int_val"), "bool": ("DT_BOOL", "bool_val"), "float16": ("DT_HALF", "half_val"),
    "complex64": ("DT_COMPLEX64", "scomplex_val"), "complex128": ("DT_COMPLEX128", "dcomplex_val"),
}  # fmt: skip


def array_of(value: Any) -> Any:
    """Return ``value``, an array, a Tensor or a number, as an array. Raises NotImplementedError for other types."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        return (value.float() if value.dtype.itemsize == 2 and value.is_floating_point() else value).numpy()
    if isinstance(value, numpy.ndarray):
        return value
    if numpy.isscalar(value):
        return numpy.array([value])
    raise NotImplementedError(f"Got {type(value)}, but numpy array or torch tensor are expected.")


def _message(array: Any, elements: str | None = None) -> Any:
    """Return ``array`` as a TensorProto, TensorBoard's message for arrays.

    ``elements`` is the name of the dtype with which the elements are stored, by default the dtype of ``array``.
    """
    name, field = _ELEMENTS[elements or array.dtype.name]
    flat = array.reshape(-1)
    if name == "DT_HALF":
        flat = flat.view(numpy.uint16)
    elif name.startswith("DT_COMPLEX"):
        flat = flat.view(flat.real.dtype)
    made = _tensors.TensorProto(dtype=name, **{field: flat.tolist()})
    for size in array.shape:
        made.tensor_shape.dim.add(size=size)
    return made


def _text(lines: list[bytes], shape: tuple[int, ...]) -> Any:
    made = _tensors.TensorProto(dtype="DT_STRING", string_val=lines)
    made.tensor_shape.SetInParent()
    for size in shape:
        made.tensor_shape.dim.add(size=size)
    return made


def _plugin_metadata(plugin: str, content: bytes = b"") -> Any:
    data = _summaries.SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return _summaries.SummaryMetadata(plugin_data=data)


def _value(tag: str, **fields: Any) -> Any:
    return _summaries.Summary.Value(tag=tag, **fields)


def scalar(tag: str, value: Any, new_style: bool, double: bool) -> Any:
    """Return a TensorBoard summary named ``tag`` of the number ``value``.

    If ``new_style`` is true, the number is stored as a tensor, of dtype float64 if ``double`` is true and otherwise
    float32. If ``new_style`` is false, it is stored as a plain value.
    """
    array = array_of(value).squeeze()
    if array.ndim:
        raise AssertionError(
            f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and "
            f"{array.ndim} dimensions."
        )
    if not new_style:
        return _value(tag, simple_value=float(array))
    elements = "float64" if double else "float32"
    message = _tensors.TensorProto(dtype=_ELEMENTS[elements][0], **{_ELEMENTS[elements][1]: [float(array)]})
    return _value(tag, tensor=message, metadata=_plugin_metadata("scalars"))


def tensor(tag: str, value: Any) -> Any:
    """Return a TensorBoard summary named ``tag`` of the tensor or array ``value``."""
    return _value(tag, tensor=_message(array_of(value)), metadata=_plugin_metadata("tensor"))


def text(tag: str, words: str) -> Any:
    """Return a TensorBoard summary of the Markdown text ``words``, named ``tag`` with the ending ``/text_summary``."""
    return _value(f"{tag}/text_summary", tensor=_text([words.encode()], (1,)), metadata=_plugin_metadata("text"))


# -- Histograms


def default_bins() -> list[float]:
    """Return the edges of the default bins of histograms: 0 and ``±1e-12 * 1.1**k`` up to 1e20, where k = 0, 1, …."""
    edges = [1e-12]
    while (last := edges[-1] * 1.1) < 1e20:
        edges.append(last)
    return [*(-each for each in reversed(edges)), 0, *edges]


def histogram(tag: str, values: Any, bins: Any, most: int | None) -> Any:
    """Return a TensorBoard summary named ``tag`` of a histogram of ``values``; empty bins at both ends are dropped.

    ``bins`` are the edges of the bins, or another value of the argument ``bins`` of :func:`numpy.histogram`. If
    there are more than ``most`` bins, adjacent bins are merged.
    """
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1).astype(numpy.float64)
    counts, edges = numpy.histogram(values, bins=bins)
    if most is not None and len(counts) > most:
        together = len(counts) // most
        counts = numpy.pad(counts, (0, -len(counts) % together)).reshape(-1, together).sum(-1)
        edges = numpy.append(edges[:-1:together], edges[-1])
    filled = numpy.flatnonzero(counts)
    first, last = (filled[0], filled[-1] + 1) if filled.size else (0, 0)
    counts = counts[first - 1 : last] if first > 0 else numpy.concatenate([[0], counts[:last]])
    edges = edges[first : last + 1]
    if counts.size == 0 or edges.size == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    found = {"min": values.min(), "max": values.max(), "num": len(values), "sum": values.sum()}
    return raw_histogram(tag, **found, sum_squares=values @ values, bucket_limit=edges.tolist(), bucket=counts.tolist())


def raw_histogram(tag: str, **fields: Any) -> Any:
    """Return a TensorBoard summary named ``tag`` of a histogram whose counts are already computed.

    ``fields`` are the fields of TensorBoard's message HistogramProto, for example ``bucket``, the counts, and ``min``.
    """
    return _value(tag, histo=_summaries.HistogramProto(**fields))


# -- Images, sounds


def image(tag: str, array: Any, rescale: float = 1) -> Any:
    """Return a TensorBoard summary named ``tag`` of ``array``, a uint8 image (height, width, channels).

    The image is first enlarged by the factor ``rescale``.
    """
    height, width, data = pictures.png(array, rescale)
    fields = {"height": height, "width": width, "colorspace": array.shape[2], "encoded_image_string": data}
    return _value(tag, image=_summaries.Summary.Image(**fields))


def video(tag: str, films: Any, per_second: float) -> Any:
    """Return a TensorBoard summary named ``tag`` of the videos ``films``.

    The videos are arranged in a grid and encoded as an animated GIF. ``films`` has the dimensions (number, frames,
    channels, height, width). ``per_second`` is the number of frames per second.
    """
    frames = pictures.to_uint8(pictures.side_by_side(films))
    fields = {"height": frames.shape[1], "width": frames.shape[2], "colorspace": frames.shape[3]}
    return _value(tag, image=_summaries.Summary.Image(**fields, encoded_image_string=pictures.gif(frames, per_second)))


def audio(tag: str, sound: Any, rate: int) -> Any:
    """Return a TensorBoard summary named ``tag`` of the 1-d array ``sound``.

    The elements of ``sound`` are samples between -1 and 1, and ``rate`` is the number of samples per second.
    """
    sound = sound.squeeze().clip(-1, 1)
    if sound.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    made = _summaries.Summary.Audio(
        sample_rate=rate, num_channels=1, length_frames=len(sound), content_type="audio/wav",
        encoded_audio_string=pictures.wav(sound, rate),
    )  # fmt: skip
    return _value(tag, audio=made)


# -- Precision-recall curves


def curve(tag: str, labels: Any, chances: Any, count: int, weights: Any) -> Any:
    """Return a TensorBoard summary named ``tag`` of a precision-recall curve at ``count`` (at most 127) thresholds.

    ``labels`` are 0 or 1, ``chances`` are the predicted probabilities, and ``weights`` are the weights of the samples.
    If ``weights`` is None, all weights are 1.
    """
    count = min(count, 127)  # more are not shown
    weights = 1.0 if weights is None else weights
    places = numpy.int32(numpy.floor(chances * (count - 1)))
    kinds = labels.astype(float)
    right, wrong = (
        numpy.histogram(places, bins=count, range=(0, count - 1), weights=each * weights)[0][::-1].cumsum()[::-1]
        for each in (kinds, 1.0 - kinds)
    )
    left, missed = wrong[0] - wrong, right[0] - right
    precision = right / numpy.maximum(1e-7, right + wrong)
    recall = right / numpy.maximum(1e-7, right + missed)
    return raw_curve(tag, numpy.stack((right, wrong, left, missed, precision, recall)), count)


def raw_curve(tag: str, rows: Any, count: int) -> Any:
    """Return a TensorBoard summary named ``tag`` of a precision-recall curve with ``count`` thresholds.

    ``rows`` has six rows: true positives, false positives, true negatives, false negatives, precision and recall, each
    with one value for each threshold.
    """
    content = _curves.PrCurvePluginData(version=0, num_thresholds=min(count, 127)).SerializeToString()
    return _value(tag, tensor=_message(rows, "float32"), metadata=_plugin_metadata("pr_curves", content))


# -- Layouts, meshes, hyperparameters


def layout(categories: dict[str, dict[str, Any]]) -> Any:
    """Return a TensorBoard summary that groups scalars in charts.

    ``categories[title][name]`` describes the chart ``name`` in the category ``title``. It is a pair ``(kind, tags)``,
    where ``tags`` are names of scalars. If ``kind`` is ``"Multiline"``, the chart has one line for each scalar. If
    ``kind`` is ``"Margin"``, the three scalars are a value, its lower limit and its upper limit.
    """
    found = []
    for title, charts in categories.items():
        made = []
        for name, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError
                series = _layouts.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                made.append(_layouts.Chart(title=name, margin=_layouts.MarginChartContent(series=[series])))
            else:
                made.append(_layouts.Chart(title=name, multiline=_layouts.MultilineChartContent(tag=tags)))
        found.append(_layouts.Category(title=title, chart=made))
    content = _layouts.Layout(category=found).SerializeToString()
    return _value("custom_scalars__config__", tensor=_text([content], ()), metadata=_plugin_metadata("custom_scalars"))


def mesh(tag: str, config: Any, **parts: Any) -> list[Any]:
    """Return a list of TensorBoard summaries of the mesh called ``tag``: one for each of its arrays.

    The arrays are the keyword arguments ``VERTEX``, ``FACE`` (or None) and ``COLOR`` (or None). ``config`` is a dict of
    options of TensorBoard's viewer, or None.
    """
    kinds = _meshes.MeshPluginData.ContentType
    given = {name: array for name, array in parts.items() if array is not None}
    mask = sum(1 << kinds.Value(name) for name in given)
    found = []
    for name, array in given.items():
        data = _meshes.MeshPluginData(
            version=0, name=tag, content_type=kinds.Value(name), json_config=json.dumps(config or {}, sort_keys=True),
            shape=array.shape, components=mask,
        )  # fmt: skip
        about = _plugin_metadata("mesh", data.SerializeToString())
        found.append(_value(f"{tag}_{name}", tensor=_message(array, "float32"), metadata=about))
    return found


def _typed(value: Any) -> tuple[Any, str]:
    """Return the hyperparameter ``value`` as a protobuf message, and TensorBoard's name of its type.

    The name is ``"DATA_TYPE_FLOAT64"`` or ``"DATA_TYPE_STRING"``. Raises ValueError if ``value`` is not a number, a
    string or a Tensor.
    """
    if isinstance(value, Tensor):
        value = array_of(value).reshape(-1)[0].item()
    if isinstance(value, (int, float)):
        return _numbers.Value(number_value=value), "DATA_TYPE_FLOAT64"
    if isinstance(value, str):
        return _numbers.Value(string_value=value), "DATA_TYPE_STRING"
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def hyperparameters(given: dict[str, Any], measures: dict[str, Any], discrete: dict[str, Any] | None) -> list[Any]:
    """Return three summaries for TensorBoard's hyperparameter plugin: experiment, session start and session end.

    The first contains the names of the hyperparameters and metrics, the second the values of the hyperparameters, and
    the third the final status. ``given`` maps names to hyperparameters, and ``measures`` maps names to metrics.
    ``discrete`` maps names of hyperparameters to lists of their possible values.
    """
    if not isinstance(given, dict) or not isinstance(measures, dict):
        raise TypeError("hparam_dict and metric_dict should be dictionary.")
    for name, values in (discrete or {}).items():
        if (
            name not in given
            or not isinstance(values, list)
            or not all(isinstance(v, type(given[name])) for v in values)
        ):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]."
            )
    kinds = [(name, *_typed(value)) for name, value in given.items() if value is not None]
    infos = []
    for name, _, kind in kinds:
        info = _parameters.HParamInfo(name=name, type=_parameters.DataType.Value(kind))
        if discrete and name in discrete:
            info.domain_discrete.extend(discrete[name])
        infos.append(info)
    metrics = [_parameters.MetricInfo(name=_parameters.MetricName(tag=name)) for name in measures]
    begin = _sessions.SessionStartInfo()
    for name, value, _ in kinds:
        begin.hparams[name].CopyFrom(value)
    found = {
        "experiment": {"experiment": _parameters.Experiment(hparam_infos=infos, metric_infos=metrics)},
        "session_start_info": {"session_start_info": begin},
        "session_end_info": {
            "session_end_info": _sessions.SessionEndInfo(status=_parameters.Status.Value("STATUS_SUCCESS"))
        },
    }
    return [
        _value(
            f"_hparams_/{name}",
            metadata=_plugin_metadata("hparams", _sessions.HParamsPluginData(**fields).SerializeToString()),
        )
        for name, fields in found.items()
    ]
