"""``torch.nn.utils.stateless.functional_call``: the deprecated name of ``torch.func.functional_call``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from ...func import modules
from ...runtime.user_frame import warn


def functional_call(
    module: Any, parameters_and_buffers: Mapping[str, Any], args: Any = None, kwargs: Any = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Deprecated alias of ``torch.func.functional_call``; each call issues a FutureWarning."""
    warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version "
        "of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
    )
    return modules.functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


@contextlib.contextmanager
def _reparametrize_module(
    module: Any, parameters_and_buffers: Mapping[str, Any], tie_weights: bool = False, strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:  # fmt: skip
    """Return a context manager in which the parameters and buffers of ``module`` are those of the dictionary."""
    every = modules._names(module)
    given = dict(parameters_and_buffers)
    values = modules._tie_names(every, given) if tie_weights else given
    if strict:
        modules._check_names(module, every, values)
    with modules._swap_tensors(module, values, parameters_and_buffers):
        yield


__all__ = ["functional_call"]
