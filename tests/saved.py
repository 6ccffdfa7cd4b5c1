"""What is saved to checkpoints by PyTorch, recorded, and then loaded and saved here."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Any

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
#: PyTorch writes these to files of the old kind, but can not read them back.
UNTYPED = ("uint16", "uint32", "uint64")


def objects(torch: Any) -> dict[str, Any]:
    """An object of every kind, the same each time."""
    x = torch.arange(6.0)
    layer = torch.nn.Linear(2, 3)
    with torch.no_grad():
        for index, parameter in enumerate(layer.parameters()):
            parameter.copy_(torch.arange(float(parameter.numel())).reshape(parameter.shape) + index)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.25)
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    named = torch.ones(2)
    named.note = "a program's own"
    several = [1, [2, (3,)]]
    return {
        "module": layer.state_dict(), "optimizer": optimizer.state_dict(), "parameter": layer.bias, "whole": x,
        "part": x[2:4], "transposed": x.view(2, 3).t(), "strided": torch.arange(10)[::3], "empty": torch.empty(0, 3),
        "expanded": torch.ones(1).expand(4), "number": torch.tensor(3), "leaf": torch.ones(2, requires_grad=True),
        "buffer": torch.nn.Buffer(torch.ones(2)), "attribute": named, "size": torch.Size([1, 2]), "dtype": torch.float32,
        "device": torch.device("cuda", 1), "layout": torch.strided, "shared": [x, x[1:], x],
        "twice": [several, several], "long": 12345678901234567890, "negative": -300, "float": 1.5, "none": None,
        "bytes": b"bytes\\x00\\xff", "complex": 1 + 2j, "set": {1}, "text": "ünï", "tuples": ((), (1,), (1, 2, 3, 4)),
        "ordered": OrderedDict(a=1), "counter": Counter("aab"), "bools": [True, False],
        **{kind: torch.tensor([0, 1, 1]).to(getattr(torch, kind)) for kind in DTYPES},
    }  # fmt: skip


def shown(torch: Any, value: Any) -> Any:
    """Everything about a loaded object, as JSON has it."""
    if isinstance(value, torch.Tensor):
        numbers = value.detach().to(torch.complex128 if value.is_complex() else torch.float64)
        where = [list(value.stride()), value.storage_offset()] if value.numel() else None
        attributes = {name: each for name, each in value.__dict__.items() if name != "_is_param"}
        return [
            type(value).__name__, str(value.dtype), list(value.shape), where, value.requires_grad, str(numbers.tolist()),
            attributes,
        ]  # fmt: skip
    if isinstance(value, dict):
        return [type(value).__name__, {str(key): shown(torch, each) for key, each in value.items()}]
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return [shown(torch, each) for each in value]
    return repr(value)
