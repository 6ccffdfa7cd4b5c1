"""What is set for NVIDIA's GPUs, as ``torch.backends.cuda``. Settings are kept without effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import determinism
from ..compat.config_module import ATTENTION, Flag, Group, Precision, flagged
from ..compat.missing_names import absent, listed
from ..core import devices
from ..runtime.user_frame import warn


def is_built() -> bool:
    """Whether there is a way to GPUs: whether CuPy is installed and sees one."""
    return devices.gpu_count() > 0


class _Products(Flag):
    """``allow_tf32``, which is another way to say ``set_float32_matmul_precision``."""

    def __get__(self, module: Any, owner: Any = None) -> bool:
        return determinism.get_float32_matmul_precision() != "highest"

    def __set__(self, module: Any, value: Any) -> None:
        self.check(value)
        determinism.set_float32_matmul_precision("high" if value else "highest")


class _ProductsPrecision(Precision):
    """``fp32_precision``, likewise."""

    def __get__(self, module: Any, owner: Any = None) -> str:
        return "tf32" if determinism.get_float32_matmul_precision() != "highest" else self.value

    def __set__(self, module: Any, value: Any) -> None:
        super().__set__(module, value)
        determinism.set_float32_matmul_precision("high" if value == "tf32" else "highest")


matmul = Group(
    allow_tf32=_Products(False, "set_allow_tf32_cublas"),
    allow_fp16_reduced_precision_reduction=Flag(True),
    allow_bf16_reduced_precision_reduction=Flag(True),
    allow_fp16_accumulation=Flag(False, "set_allow_fp16_accumulation_cublas"),
    fp32_precision=_ProductsPrecision(),
)

# -- Ways to compute attention: there is one, whatever is enabled -----------------------------------------------------


def flash_sdp_enabled() -> bool:
    """What :func:`enable_flash_sdp` has set."""
    return ATTENTION["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Allow a way to compute attention on GPUs, which is not here."""
    ATTENTION["flash"] = enabled


def mem_efficient_sdp_enabled() -> bool:
    """What :func:`enable_mem_efficient_sdp` has set."""
    return ATTENTION["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow a way to compute attention on GPUs, which is not here."""
    ATTENTION["mem_efficient"] = enabled


def math_sdp_enabled() -> bool:
    """What :func:`enable_math_sdp` has set."""
    return ATTENTION["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Allow attention by products and softmax; it is computed in all cases."""
    ATTENTION["math"] = enabled


def cudnn_sdp_enabled() -> bool:
    """What :func:`enable_cudnn_sdp` has set."""
    return ATTENTION["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow a way to compute attention on GPUs, which is not here."""
    ATTENTION["cudnn"] = enabled


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What :func:`allow_fp16_bf16_reduction_math_sdp` has set."""
    return ATTENTION["reduced"]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Allow sums of short floats in short floats, which are not made."""
    ATTENTION["reduced"] = enabled


def is_flash_attention_available() -> bool:
    """False."""
    return False


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """A block in which only some ways to compute attention are allowed; ``nn.attention.sdpa_kernel`` is the new one."""
    warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please see "
        "`torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
    )
    before = dict(ATTENTION)
    ATTENTION.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        ATTENTION.update(before)


__all__ = [
    "allow_fp16_bf16_reduction_math_sdp", "cudnn_sdp_enabled", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp",
    "enable_mem_efficient_sdp", "flash_sdp_enabled", "fp16_bf16_reduction_math_sdp_allowed", "is_built",
    "is_flash_attention_available", "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled", "sdp_kernel",
]  # fmt: skip
__getattr__, __dir__ = absent(__name__), listed(globals())
flagged(__name__, fp32_precision=Precision())
