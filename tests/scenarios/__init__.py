"""Scenarios: small programs about hooks, checkpoints and checks, compared with PyTorch's recorded behaviour.

A scenario is a function ``scenario(torch, log)``. ``course`` returns its result, its log (hooks append their
arguments), its warnings and its error. Each module of this folder is a family.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import warnings
from collections.abc import Callable
from typing import Any

Scenario = Callable[[Any, "Log"], Any]
FAMILIES = tuple(sorted(each.name for each in pkgutil.iter_modules(__path__) if not each.name.startswith("test_")))

#: The beginning of PyTorch's advice in an error, which is not compared.
ADVICE = re.compile(
    r"\n*(\nTip:|NOTE:|Remedy:|If you are adding|gradcheck or gradgradcheck failed| \(Triggered|\nThe function is checkp).*",
    re.DOTALL,
)


class Log(list[Any]):
    """The events of a scenario, in order."""

    def hook(self, name: str, result: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """Return a hook that logs its arguments and returns ``result`` of them."""

        def hook(*args: Any) -> Any:
            self.append((name, *map(shown, args)))
            return result(*args) if result is not None else None

        return hook


def shown(value: Any) -> Any:
    """Return a value in a form for JSON, floats to four digits."""
    if isinstance(value, (tuple, list)):
        return [shown(each) for each in value]
    if hasattr(value, "grad_fn"):
        name = f" {value.grad_fn.name()}" if value.grad_fn is not None else " leaf" if value.requires_grad else ""
        return f"{shown(value.detach().tolist())}{name}"
    if isinstance(value, complex):
        return f"{shown(value.real)}{shown(value.imag):+}j"
    if isinstance(value, float):
        return float(f"{value:.4g}") + 0.0
    return value if isinstance(value, (int, str, bool, type(None))) else type(value).__name__


def run_scenario(torch: Any, scenario: Scenario) -> dict[str, Any]:
    """Run a scenario and return its result, log, warnings and error."""
    log, found = Log(), {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found["result"] = shown(scenario(torch, log))
        except Exception as error:
            found["error"] = [type(error).__name__, ADVICE.sub("", str(error))]
    said = [str(each.message) for each in caught if not issubclass(each.category, RuntimeWarning)]
    if log:
        found["log"] = shown(list(log))
    if said:
        found["warnings"] = [ADVICE.sub("", each).strip().partition("\n")[0] for each in said]
    return found


def scenarios(family: str) -> dict[str, Scenario]:
    """Return the scenarios of a family by name."""
    module = importlib.import_module(f"{__name__}.{family}")
    found = {name: each for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__}
    plain = {
        name: each for name, each in found.items() if callable(each) and name[0] != "_" and not isinstance(each, type)
    }
    return {**plain, **getattr(module, "SCENARIOS", {})}
