"""Text of the values of a checkpoint that are not tensors: JSON, which contains no code.

Numbers, strings, None, lists and dicts with string keys are themselves in JSON; other values are objects with the key
``"$"``, the name of their kind. Objects of other classes are refused: no constructor of a class runs while a checkpoint
is read.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections import Counter, OrderedDict
from typing import Any

import numpy

from ...core import devices, dtypes
from ...core.size import Size
from ...core.tensor import Tensor, wrap

_SEQUENCES: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset, "Size": Size}
_MAPPINGS: dict[str, Any] = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}
_KINDS = {kind: name for name, kind in {**_SEQUENCES, **_MAPPINGS}.items()}


def to_text(value: Any, name: str) -> bytes:
    """Return ``value`` as JSON text; raise TypeError for a class that is refused. ``name`` is used in the error."""
    try:
        return json.dumps(_encoded(value, name), separators=(",", ":"), allow_nan=False).encode()
    except RecursionError:
        raise ValueError(f"{name}: the value is nested too deeply, or contains itself") from None


def from_text(text: bytes) -> Any:
    """Return the value of a JSON text that :func:`to_text` has returned; raise ValueError for another text."""
    try:
        return _decoded(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, binascii.Error) as error:
        raise ValueError(f"the text of a value is not valid: {type(error).__name__}: {error}") from error


def _encoded(value: Any, name: str) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
    if kind is list:
        return [_encoded(each, f"{name}[{index}]") for index, each in enumerate(value)]
    if kind is dict and "$" not in value and all(type(key) is str for key in value):
        return {key: _encoded(each, f"{name}.{key}") for key, each in value.items()}
    if kind in _KINDS:
        if kind in _MAPPINGS.values():
            items = [[_encoded(key, f"{name}, key"), _encoded(each, f"{name}.{key}")] for key, each in value.items()]
        else:
            items = [_encoded(each, f"{name}[{index}]") for index, each in enumerate(value)]
        return {"$": _KINDS[kind], "items": items}
    if kind is complex:
        return {"$": "complex", "value": [_encoded(value.real, name), _encoded(value.imag, name)]}
    if kind in (bytes, bytearray):
        return {"$": kind.__name__, "value": base64.b64encode(value).decode()}
    if kind is dtypes.dtype:
        return {"$": "dtype", "value": str(value).removeprefix("torch.")}
    if kind is devices.device:
        return {"$": "device", "value": str(value)}
    if isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "biufc":
        return {
            "$": "ndarray" if isinstance(value, numpy.ndarray) else "scalar", "dtype": value.dtype.str,
            "shape": list(value.shape), "value": base64.b64encode(value.tobytes()).decode(),
        }  # fmt: skip
    if isinstance(value, Tensor) and kind.__module__.partition(".")[0] in ("torch", "retrograd"):
        array = devices.to_device(value.detach()._array, devices.CPU)
        return {
            "$": "tensor", "dtype": str(value.dtype).removeprefix("torch."), "shape": list(array.shape),
            "value": base64.b64encode(array.tobytes()).decode(),
        }  # fmt: skip
    raise TypeError(
        f"{name}: an object of the class {kind.__module__}.{kind.__qualname__} can not be saved in a checkpoint, which "
        "contains only tensors, numbers, strings, bytes, None, NumPy arrays, dtypes, devices, and lists, tuples, sets and "
        "dicts of them. Save what it consists of, or give its class the methods state_dict() and load_state_dict()."
    )


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "$" not in value:
        return {key: _decoded(each) for key, each in value.items()}
    kind = value["$"]
    if kind in _SEQUENCES:
        return _SEQUENCES[kind]([_decoded(each) for each in value["items"]])
    if kind in _MAPPINGS:
        return _MAPPINGS[kind]({_decoded(key): _decoded(each) for key, each in value["items"]})
    if kind == "float":
        return float(value["value"])
    if kind == "complex":
        return complex(*[_decoded(each) for each in value["value"]])
    if kind in ("bytes", "bytearray"):
        data = base64.b64decode(value["value"], validate=True)
        return data if kind == "bytes" else bytearray(data)
    if kind == "dtype":
        return dtype_named(value["value"])
    if kind == "device":
        return devices.device(value["value"])
    if kind in ("ndarray", "scalar"):
        given = numpy.dtype(value["dtype"])
        if given.kind not in "biufc":
            raise ValueError(f"unknown dtype {given}")
        array = numpy.frombuffer(base64.b64decode(value["value"], validate=True), given).reshape(value["shape"]).copy()
        return array if kind == "ndarray" else array[()]
    if kind == "tensor":
        data = base64.b64decode(value["value"], validate=True)
        return wrap(numpy.frombuffer(data, dtype_named(value["dtype"]).numpy).reshape(value["shape"]).copy())
    raise ValueError(f"unknown kind of value {kind!r}")


def dtype_named(name: str) -> dtypes.dtype:
    """Return the dtype of the name ``name``, such as ``"float32"``; raise ValueError if there is none."""
    try:
        return dtypes.named(name)
    except (KeyError, AttributeError, TypeError):
        raise ValueError(f"unknown dtype {name!r}") from None


__all__ = ["dtype_named", "from_text", "to_text"]
