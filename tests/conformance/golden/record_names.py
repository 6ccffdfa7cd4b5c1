"""Record PyTorch's public names: ``python -m tests.conformance.golden.record_names`` (needs PyTorch).

Writes ``names.json``: for each module, and for ``torch.Tensor``, the public functions, types, dtypes and constants.
Modules are left out, and so are names that a module only imports from elsewhere.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

#: The modules whose names are recorded.
PLACES = (
    "torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special",
    "torch.signal.windows", "torch.autograd", "torch.autograd.functional", "torch.autograd.graph", "torch.random",
    "torch.cuda", "torch.nn", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn", "torch.nn.utils.parametrize",
    "torch.nn.utils.parametrizations", "torch.accelerator", "torch.amp", "torch.compiler", "torch.nn.attention", "torch.nn.grad", "torch.nn.utils.prune", "torch.functional", "torch.testing", "torch.utils.benchmark", "torch.jit", "torch.cpu", "torch.backends.cuda", "torch.backends.mps",
    "torch.backends.cpu", "torch.backends.nnpack", "torch.backends.cusparselt",
    "torch.distributions", "torch.distributions.constraint_registry", "torch.distributions.constraints",
    "torch.distributions.kl", "torch.distributions.transforms", "torch.distributions.utils",
)  # fmt: skip
#: Modules with a complete ``__all__``.
DECLARED = ("torch.autograd", "torch.autograd.graph", "torch.cuda", "torch.random", "torch.nn.utils.rnn",
            "torch.nn.utils.parametrize", "torch.nn.utils.parametrizations", "torch.accelerator", "torch.amp", "torch.compiler", "torch.nn.attention", "torch.functional", "torch.cpu",
            "torch.backends.cuda", "torch.backends.mps", "torch.backends.cpu", "torch.backends.nnpack",
            "torch.backends.cusparselt",
            "torch.distributions", "torch.distributions.constraint_registry", "torch.distributions.constraints",
            "torch.distributions.kl", "torch.distributions.transforms", "torch.distributions.utils")  # fmt: skip
#: Helpers in ``torch.nn.functional``, which has no ``__all__``.
INNER = ("assert_int_or_pair", "boolean_dispatch", "handle_torch_function", "has_torch_function",
         "has_torch_function_unary", "has_torch_function_variadic")  # fmt: skip
#: Constants; flags and lists such as ``has_mkl`` and ``PRIVATE_OPS`` are not public.
CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")
INSTANCES = (torch.dtype, torch.layout, torch.memory_format, torch.qscheme, torch.Generator)


def reached(place: str, name: str, value: Any) -> bool:
    """Whether a name belongs to the public interface of this module."""
    if place == "torch.Tensor":
        return True
    if isinstance(value, ModuleType) or (value is torch.Tensor and place != "torch") or name in INNER:
        return False
    if isinstance(value, INSTANCES) or (place == "torch" and name in CONSTANTS):
        return True
    origin = getattr(value, "__module__", None) or ""
    made = callable(value) or place == "torch.distributions.constraints"
    return made and origin.partition(".")[0] == "torch"


def names(place: str) -> list[str]:
    found = torch.Tensor if place == "torch.Tensor" else importlib.import_module(place)
    public = [name for name in (found.__all__ if place in DECLARED else dir(found)) if not name.startswith("_")]
    return sorted(name for name in public if reached(place, name, getattr(found, name, None)))


def main() -> None:
    recorded = {place: names(place) for place in PLACES}
    lines = ",\n".join(f"{json.dumps(place)}: {json.dumps(found)}" for place, found in recorded.items())
    path = Path(__file__).with_name("names.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "names": {{\n{lines}\n}}}}\n')
    print(f"{path.name}: {sum(map(len, recorded.values()))} names, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
