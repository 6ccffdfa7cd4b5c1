"""Record the arguments that PyTorch's functions pass to ``__torch_function__`` (needs PyTorch).

``python -m tests.conformance.golden.record_torch_function`` writes ``torch_function.json``.
"""

from __future__ import annotations

import inspect
import json
import warnings
from pathlib import Path
from typing import Any

import torch
from torch.overrides import get_testing_overrides, resolve_name

from retrograd.compat import unsupported
from tests.conformance.name_families import recorded
from tests.conformance.torch_function_cases import handler_arguments, resolve

#: Functions that are called with dtypes or strings, or that crash the process.
APART = ("Tensor.__array__", "Tensor.data_ptr", "Tensor.record_stream")


def candidates(dummy: Any) -> list[list[Any]]:
    """Return argument lists to try, derived from the parameters of a function."""
    parameters = list(inspect.signature(dummy).parameters.values())
    count = sum(each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters)
    spread = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    found: list[list[Any]] = [["x"] * count, ["x"] + [1] * (count - 1), [["x", "x"]] + [1] * (count - 1)]
    found += [["x"] * more for more in (count + 1, count + 2)] + [
        ["x", 1, "x"],
        ["x", 1, "x", "x"],
        ["x", [1]],
        ["x", [1], [1]],
    ]
    found += [["x", "x", [1]], ["x", 1, [1]], ["x", 0.5, True], ["x", "x", 1, 1], [1, "x"]]
    return [["x"] * 2, *found] if spread else found


def main() -> None:
    warnings.simplefilter("ignore")
    known = {(f"{place}.{name}").removeprefix("torch.") for place, names in recorded().items() for name in names}
    found: dict[str, Any] = {}
    for function, dummy in get_testing_overrides().items():
        name = (resolve_name(function) or "").removeprefix("torch.").removeprefix("functional.")
        operator = name.startswith("Tensor.__") and name.endswith("__")
        if name in APART or unsupported.reason(name) or not (name in known or operator) or resolve(torch, name) is None:
            continue
        for arguments in candidates(dummy):
            try:
                given = handler_arguments(torch, name, arguments, name.startswith("Tensor."))
                json.dumps(given)
            except Exception:
                continue
            if given is not None and given[0] is not None and given[1] not in ("__index__", "__int__"):
                found[name] = [arguments, given]
                break
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in sorted(found.items()))
    path = Path(__file__).with_name("torch_function.json")
    path.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "handed": {{\n{lines}\n}}}}\n')
    print(f"{path.name}: {len(found)} functions, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
