"""Record which functions PyTorch dispatches to ``__torch_function__``, and how (needs PyTorch).

``python -m tests.conformance.golden.record_torch_function_table`` writes ``src/retrograd/dispatch/overrides.txt``.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import torch
from torch.overrides import TorchFunctionMode, get_ignored_functions, get_testing_overrides

from retrograd.compat import unsupported
from tests import ROOT
from tests.conformance.name_families import recorded

TARGET = ROOT / "src" / "retrograd" / "dispatch" / "overrides.txt"
HEAD = """\
# How PyTorch 2.13 hands its functions to __torch_function__; recorded by tests/conformance/golden/record_torch_function_table.py.
# Under the name of a module: functions of Python, which hand over what stands before the slash as it came and all else
# by name, defaults included. Under "only modes": what subclasses are not asked about. Under "nobody": what is not
# handed over at all. Under "own type": methods of which a mode is told the tensor's type, overridden or not. Under
# "ignored": what get_ignored_functions() lists.
"""
#: The namespaces of functions, and PyTorch's name for each in errors.
PLACES: dict[str, Any] = {
    "torch": torch, "Tensor": torch.Tensor, "nn.functional": torch.nn.functional, "linalg": torch.linalg,
    "fft": torch.fft, "special": torch.special, "nn.init": torch.nn.init, "autograd": torch.autograd,
}  # fmt: skip


class Seen:
    """Duck type that records the arguments of its handler."""

    given: ClassVar[list[tuple[Any, ...]]] = []

    @classmethod
    def __torch_function__(cls, *given: Any) -> int:
        cls.given.append(given)
        return 1


class Mode(TorchFunctionMode):
    """Mode that records its arguments and returns 1 for every function."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[tuple[Any, ...]] = []

    def __torch_function__(self, *given: Any) -> Any:  # type: ignore[override]
        self.given.append(given)
        return 1


def handed(function: Any) -> str | None:
    """Return the table's line for a Python function, or None if it does not dispatch."""
    parameters = _parameters(function)
    required = [each for each in parameters if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
    rest = [Seen()] if any(each.kind is each.VAR_POSITIONAL for each in parameters) else []
    starts: tuple[list[Any], ...] = ([Seen()], [[Seen(), Seen()]], ["ij"])
    found = next((each for start in starts if (each := _given(function, (start * len(required) + rest)))), None)
    if found is None:
        return None
    _, _, args, named = found
    free = [each for each in parameters if each.name not in named and each.kind is not each.VAR_KEYWORD][: len(args)]
    defaults = {each.name: each.default for each in parameters}
    text = [f"*{each.name}" if each.kind is each.VAR_POSITIONAL else _written(each.name, each.default) for each in free]
    text += ["/"] * (bool(text) and "*" not in text[-1])
    return ", ".join([*text, *(_written(name, defaults.get(name, named[name])) for name in named)])


def _parameters(function: Any) -> list[inspect.Parameter]:
    """Return the parameters of a function; for a dispatcher between two, those in PyTorch's tests."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except ValueError:  # an operator around a method that is not Python's
        return list(inspect.signature(lambda self, other: None).parameters.values())
    if found and found[0].name == "args" and function in get_testing_overrides():
        found = list(inspect.signature(get_testing_overrides()[function]).parameters.values())
        wide = getattr(torch.nn.functional, function.__name__ + "_with_indices", None)
        found = found if wide is None else list(inspect.signature(wide).parameters.values())
    return found


def _given(function: Any, args: list[Any]) -> Any:
    """Return the arguments of the handler when ``function`` is called, if it is that function."""
    Seen.given.clear()
    with suppress(Exception):
        function(*args)
    return Seen.given[0] if Seen.given and Seen.given[0][0] == function else None


def _written(name: str, default: Any) -> str:
    return name if default is inspect.Parameter.empty else f"{name}={default!r}"


def seen_by_modes(function: Any, calls: list[tuple[Any, ...]]) -> Any:
    """Return the arguments that a mode receives for ``function``, or None."""
    for args in calls:
        with Mode() as mode, suppress(Exception):
            function(*args)
        for each in mode.given:
            if each[0] is function or each[0] == function:
                return each
    return None


def main() -> None:
    warnings.simplefilter("ignore")
    x = torch.ones(2)
    calls: list[tuple[Any, ...]] = [
        (),
        (2,),
        ([1.0],),
        (x,),
        (x, 2),
        ([2], 1.0),
        (2, 3),
        (3, [2]),
        (0, 3, [2]),
        (1, 3, 2),
    ]
    calls += [((2,), (1,)), ((torch.int8, torch.int8)), (x.numpy(),), (x, 1, 2)]
    tensors = [[Seen()] * count for count in (1, 2, 3)] + [
        [Seen(), 1.0],
        [Seen(), 1, 2],
        [Seen(), 1.0, True],
        [Seen(), [1], [1]],
    ]
    python: dict[str, list[str]] = {}
    only_modes, nobody, own, passed_over = [], [], [], []
    ignored = get_ignored_functions()
    overridable: set[Callable[..., Any]] = set(get_testing_overrides())
    for place, space in PLACES.items():
        for name in sorted(dir(space)):
            found = vars(space).get(name) if space is not torch.Tensor else getattr(space, name)
            if not callable(found) or isinstance(found, type) or name in ("set_default_device", "save", "load"):
                continue
            full = name if place == "torch" else f"{place}.{name}"
            known = name in recorded()["torch" if place == "torch" else f"torch.{place}"] and not unsupported.reason(
                full
            )
            if not known and not (place == "Tensor" and name.endswith("__") and found in overridable):
                continue
            if place == "autograd" and name not in ("grad", "backward"):
                continue
            if inspect.isfunction(found):
                line = handed(found)
                if line is not None:
                    python.setdefault(found.__module__, []).append(f"{full}({line})")
                    continue
            if place == "Tensor":
                given = seen_by_modes(found, [(x,)])
                if given is not None and given[1] == (torch.Tensor,):
                    own.append(full)
            elif found in ignored or found not in overridable:
                passed_over += [full] * (found in ignored)
                if not any(_given(found, list(each)) for each in tensors):
                    (nobody if seen_by_modes(found, calls) is None else only_modes).append(full)
    lines = [HEAD.rstrip()]
    for module, found in sorted(python.items()):
        lines += [f"[{module}]", *found]
    nobody += ["save", "load"]
    for title, names in (("only modes", only_modes), ("nobody", nobody), ("own type", own), ("ignored", passed_over)):
        lines += [f"[{title}]", *names]
    TARGET.write_text("\n".join(lines) + "\n")
    print(TARGET.name, {module: len(found) for module, found in python.items()}, len(only_modes), len(nobody), len(own))


if __name__ == "__main__":
    main()
