"""``torch.nn.utils.stateless.functional_call``: the deprecated name of ``torch.func.functional_call``."""

from __future__ import annotations

from collections.abc import Mapping
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


__all__ = ["functional_call"]
