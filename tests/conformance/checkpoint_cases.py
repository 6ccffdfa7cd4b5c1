"""Objects saved by PyTorch to checkpoints, which are then loaded and saved by retrograd."""

from __future__ import annotations

import io
import pickle
import warnings
import zipfile
from collections import Counter, OrderedDict
from typing import Any

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
#: PyTorch writes these to legacy files, but cannot read them.
UNTYPED = ("uint16", "uint32", "uint64")


def objects(torch: Any) -> dict[str, Any]:
    """Return an object of every kind, the same at each call."""
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


def networks(torch: Any) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Return whole modules that are pickled, each with the shape of an input."""
    nn = torch.nn
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # legacy, but saved in many files
        normed = nn.utils.weight_norm(nn.Linear(3, 2))
    frozen = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, momentum=None), nn.ReLU6()).eval()
    frozen[0].requires_grad_(False)
    return {
        "image": (nn.Sequential(nn.Conv2d(1, 2, 3), nn.GELU(), nn.MaxPool2d(2), nn.Flatten()), (1, 1, 6, 6)),
        "frozen": (frozen, (4, 3)), "lstm": (nn.LSTM(3, 2, bidirectional=True), (4, 3)),
        "encoder": (nn.TransformerEncoderLayer(4, 2, 3, 0.0, "gelu"), (5, 4)), "lazy": (nn.LazyLinear(2), (4, 3)),
        "normed": (normed, (4, 3)), "parallel": (nn.DataParallel(nn.Linear(3, 2)), (4, 3)),
    }  # fmt: skip


def wholes(torch: Any) -> dict[str, Any]:
    """Return other objects that are pickled whole."""
    torch.manual_seed(0)
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], lr=0.5, momentum=0.9)
    schedules, distributions, data = torch.optim.lr_scheduler, torch.distributions, torch.utils.data
    normal, ones = distributions.Normal(torch.zeros(2), torch.ones(2)), torch.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # legacy, but saved in many files
        divided = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 2))
    return {
        "cyclic": schedules.CyclicLR(optimizer, 0.1, 0.2, 2),
        "cyclic by steps": schedules.CyclicLR(optimizer, 0.1, 0.2, 2, mode="exp_range", gamma=0.5),
        "averaging": torch.optim.swa_utils.SWALR(optimizer, 0.05), "scaler": torch.amp.GradScaler("cpu"),
        "loader": data.DataLoader(data.TensorDataset(torch.arange(3)), 2), "divided": divided,
        "mixture": distributions.MixtureSameFamily(distributions.Categorical(ones), normal),
        "classes": distributions.Categorical(ones), "chance": distributions.Bernoulli(ones / 2),
        "times": distributions.Weibull(ones, ones), "counts": distributions.Multinomial(3, ones),
        "turned": distributions.TransformedDistribution(normal, [distributions.transforms.ExpTransform()]),
        "matrices": distributions.Wishart(3.0, torch.eye(2)), "named": ones.view(1, 2).max(1),
        "generator": torch.Generator().manual_seed(3),
    }  # fmt: skip


def used(torch: Any, name: str, value: Any) -> str:
    """Return what one of :func:`wholes` shows when it is used."""
    torch.manual_seed(0)
    if hasattr(value, "get_last_lr"):
        for _ in range(3):
            value.optimizer.step()
            value.step()
        return str([f"{each:.5f}" for each in value.get_last_lr()] + sorted(value.state_dict()))
    if name == "scaler":
        parameter = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.SGD([parameter], 0.5)
        value.scale(parameter.sum()).backward()
        value.step(optimizer)
        value.update()
        return str(value.state_dict())
    if name == "divided":
        return str([*value.state_dict(), value(torch.ones(1, 3)).shape])
    if name == "generator":
        return str(torch.rand(2, generator=value))
    if hasattr(value, "log_prob"):
        drawn = value.sample((2,))
        return str([drawn.shape, value.log_prob(drawn).shape, value.expand((3, *value.batch_shape)).batch_shape])
    return str(list(value)) + type(value).__name__


def answer(torch: Any, network: Any, shape: tuple[int, ...]) -> list[float]:
    """Return the output of a network for an input of this shape, rounded, and its repr."""
    x = torch.arange(float(torch.Size(shape).numel())).reshape(shape).cos()
    found = network(x)
    found = found[0] if isinstance(found, tuple) else found
    return [repr(network), *(float(f"{each:.4g}") for each in found.detach().reshape(-1).tolist())]


class Outlined:
    """Substitute for an object of any class while a pickle is outlined."""

    def __init__(self, *arguments: Any) -> None:
        self.said: Any = arguments

    def __setstate__(self, state: Any) -> None:
        self.said = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.said = {**(self.said or {}), "hook" if isinstance(key, int) else str(key): value}


def outline(file: Any) -> Any:
    """Return every object in a checkpoint: its class or function and its contents, sorted, without numbers."""
    classes: dict[str, Any] = {}

    class Reader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            place = f"{module}.{name}".replace("torch._C._nn.", "torch.nn.functional.")
            return classes.setdefault(place, type(place, (Outlined,), {}))

        def persistent_load(self, found: Any) -> Any:
            return found[0], found[1], found[4]

    def lines(value: Any, seen: tuple[int, ...] = ()) -> Any:
        if id(value) in seen:
            return "itself"
        seen = (*seen, id(value))
        if isinstance(value, Outlined) and type(value).__name__.endswith("RemovableHandle"):
            return [type(value).__name__, *(lines(each, seen) for each in value.said[::2])]  # without its id
        if isinstance(value, Outlined):
            return [type(value).__name__, lines(value.said, seen)]
        if isinstance(value, dict):
            pairs = [("hook" if isinstance(key, int) else str(key), each) for key, each in value.items()]
            return {key: lines(each, seen) for key, each in sorted(pairs, key=lambda pair: pair[0])}
        if isinstance(value, (list, tuple)):
            return [lines(each, seen) for each in value]
        return value if isinstance(value, (str, int, float, type(None))) else getattr(value, "__name__", str(value))

    with zipfile.ZipFile(file) as archive:
        return lines(Reader(io.BytesIO(archive.read("archive/data.pkl"))).load())


def shown(torch: Any, value: Any) -> Any:
    """Describe a loaded object as JSON."""
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
