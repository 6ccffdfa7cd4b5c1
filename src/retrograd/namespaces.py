"""Table of the modules of ``torch`` that consist mainly of constants, no-ops, settings and errors.

Examples are ``torch.backends`` and ``torch.xpu``. A function with the decorator :func:`namespace` describes each
module: its docstring becomes the module's docstring, and it returns a dictionary of the module's names. If a key has
parentheses, it is the signature of a function, and its value determines the behaviour of the function:

    "device_count() -> int": 0                             returns a constant
    "empty_cache() -> None": None                          does nothing
    "init() -> None": AssertionError("Torch not ...")      raises PyTorch's error
    "version() -> str": some_function                      calls a function with the same arguments

Any other key is the name of an attribute: a constant, a class, a function, a checked setting (:class:`Flag`), or
``PART`` for a submodule. ``compat/missing_names.py`` calls :func:`find` for modules of the package that have no file.
The function that describes a module is called when the module is first imported.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext  # noqa: F401 - in signatures
from enum import IntEnum
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from inspect import BoundArguments, Parameter, Signature, getcallargs
from inspect import signature as signature_of
from types import FunctionType, MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, Self

import numpy

from . import determinism
from .compat.annotations import UnquotedAnnotation
from .compat.lazy_imports import module_dir, module_getattr
from .compat.type_names import type_name
from .core import devices, dtypes
from .operations.nn.attention import ENABLED_BACKENDS
from .runtime.codegen import parse_module
from .runtime.user_frame import strips_frames, warn

Names = dict[str, Any]
#: Blocks by the name of their namespace below ``torch``.
BLOCKS: dict[str, Callable[[], Names]] = {}
#: Value of a submodule that ``__all__`` contains.
PART = object()


def namespace(name: str) -> Callable[[Callable[[], Names]], Callable[[], Names]]:
    """Return a decorator that registers a function as the description of the module ``torch.<name>``.

    The function returns a dictionary of the contents of the module.
    """

    def enter(block: Callable[[], Names]) -> Callable[[], Names]:
        BLOCKS[name] = block
        return block

    return enter


# -- Settings: attributes that are checked when they are set -----------------------------------------------------------


class Flag:
    """Descriptor of a setting, which stores the value of an attribute of a module.

    If ``setter`` is empty, every value is accepted. Otherwise the value must be a bool: another value raises
    RuntimeError, and the message contains ``setter``, the name of PyTorch's function that sets the value.
    """

    def __init__(self, default: Any, setter: str = "") -> None:
        self.value, self.setter = default, setter

    def check(self, value: Any) -> None:
        """Raise PyTorch's error if ``value`` is invalid for this setting."""
        if self.setter and value.__class__ is not bool:
            raise RuntimeError(f"{self.setter} expects a bool, but got {type_name(value)}")

    def __get__(self, module: Any, owner: Any = None) -> Any:
        return self.value

    def __set__(self, module: Any, value: Any) -> None:
        self.check(value)
        self.value = value


class Precision(Flag):
    """Setting ``fp32_precision`` of a module in ``torch.backends``.

    The setting has no effect, because float32 products are computed in float32.
    """

    def __init__(self, default: str = "none") -> None:
        super().__init__(default)

    def check(self, value: Any) -> None:
        if value not in ("none", "ieee", "tf32", "bf16"):
            raise RuntimeError(f"Unknown precision: {value}")


class _AllowTF32(Flag):
    """Setting ``torch.backends.cuda.matmul.allow_tf32``, which reads and sets the float32 matmul precision.

    True corresponds to ``set_float32_matmul_precision("high")``, and False to ``"highest"``.
    """

    def __get__(self, module: Any, owner: Any = None) -> bool:
        return determinism.get_float32_matmul_precision() != "highest"

    def __set__(self, module: Any, value: Any) -> None:
        self.check(value)
        determinism.set_float32_matmul_precision("high" if value else "highest")


class _ProductPrecision(Precision):
    """Setting ``torch.backends.cuda.matmul.fp32_precision``, which also sets the float32 matmul precision.

    The value "tf32" corresponds to ``set_float32_matmul_precision("high")``, and any other value to ``"highest"``.
    """

    def __get__(self, module: Any, owner: Any = None) -> str:
        return "tf32" if determinism.get_float32_matmul_precision() != "highest" else self.value

    def __set__(self, module: Any, value: Any) -> None:
        super().__set__(module, value)
        determinism.set_float32_matmul_precision("high" if value == "tf32" else "highest")


class Group:
    """Object whose attributes are settings, such as ``torch.backends.cuda.matmul``.

    ``flags`` maps the name of each setting to a :class:`Flag`. AttributeError is raised for any other attribute.
    """

    def __init__(self, **flags: Flag) -> None:
        object.__setattr__(self, "_flags", flags)

    def __getattr__(self, name: str) -> Any:
        if name not in self._flags:
            raise AttributeError(f"Unknown attribute {name}")
        return self._flags[name].__get__(self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._flags:
            raise AttributeError(f"Unknown attribute {name}")
        self._flags[name].__set__(self, value)


# -- Answers -----------------------------------------------------------------------------------------------------------


class ByName:
    """Implementation of a public function whose behaviour depends on its module, such as ``set_flags``.

    The public function returns ``function(module, arguments)``, where ``module`` is the name of the module and
    ``arguments`` is a dictionary of the arguments. ``doc`` is the docstring of the public function.
    """

    def __init__(self, function: Callable[[str, Names], Any], doc: str) -> None:
        self.function, self.__doc__ = function, doc

    def __call__(self, module: str, given: Names) -> Any:
        return self.function(module, given)


def _swap(module_name: str, values: Names) -> Names:
    """Assign new values to settings of the module ``module_name``, and return a dictionary of the previous values.

    ``values`` is a dictionary from the names of settings to their new values; None leaves a setting unchanged.
    """
    module = sys.modules[module_name]
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        if value is not None:
            setattr(module, name, value)
    return before


def _values(given: Names, unchanged: tuple[str, ...]) -> Names:
    names = {name.removeprefix("_"): value for name, value in given.items()}
    return {name: None if name in unchanged else value for name, value in names.items()}


def flag_setter(*unchanged: str) -> ByName:
    """Return the implementation of the function ``set_flags`` of a module in ``torch.backends``.

    Each parameter of ``set_flags`` is named after a setting of the module. ``set_flags`` assigns each argument that is
    not None to its setting, and returns a tuple of the previous values. ``unchanged`` are the names of settings that it
    does not assign, as in PyTorch.
    """
    return ByName(
        lambda module, given: tuple(_swap(module, _values(given, unchanged)).values()),
        "Set the settings that are not None, and return a tuple of the previous values.",
    )


def flag_context(*unchanged: str) -> ByName:
    """Return the implementation of the function ``flags`` of a module in ``torch.backends``.

    Each parameter of ``flags`` is named after a setting of the module. ``flags`` returns a context manager in which the
    settings have the values of the arguments. ``unchanged`` are the names of settings that it does not change, as in
    PyTorch.
    """

    @contextmanager
    def block(module: str, given: Names) -> Iterator[None]:
        before = _swap(module, _values(given, unchanged))
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(sys.modules[module], name, value)

    return ByName(block, "Return a context manager in which the settings have the values of the arguments.")


def documented(doc: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Set the docstring of ``function`` to ``doc`` and return ``function``."""
    function.__doc__ = doc
    return function


def getter_and_setter(getter: str, setter: str, store: Names, key: str) -> Names:
    """Return the public getter and setter of ``store[key]``, a setting without effect.

    The result is a dictionary with two items, from the signature of a function to the function. ``getter`` is the name
    of the getter. ``setter`` is the name of the setter with its parameter, such as ``"enable_math_sdp(enabled)"``.
    """
    setter_name, _, parameter = setter.rstrip(")").partition("(")
    return {
        f"{getter}() -> bool": documented(f"Return the value set by :func:`{setter_name}`.", lambda: store[key]),
        f"{setter_name}({parameter}: bool) -> None": documented(
            "Store a setting that has no effect.", lambda value: store.update({key: value})
        ),
    }  # fmt: skip


# -- Numerical libraries: torch.backends -------------------------------------------------------------------------------


@namespace("backends")
def _backends() -> Names:
    """Contents of the module ``torch.backends`` as a dictionary.

    The submodules contain settings of numerical libraries, and functions that return whether a library is available.
    retrograd computes with NumPy, NumPy's BLAS and CuPy. For PyTorch's libraries, which it does not use, the functions
    return False, and the settings have no effect.
    """
    return {
        **dict.fromkeys(_parts("backends"), PART),
        "fp32_precision": Precision(),
        "__allow_nonbracketed_mutation() -> AbstractContextManager[None]": nullcontext,
    }


@namespace("backends.cpu")
def _backends_cpu() -> Names:
    """Contents of the module ``torch.backends.cpu`` as a dictionary: a function for the CPU's vector extensions."""

    def get_cpu_capability() -> str:
        """Return the widest vector extension of this CPU that NumPy supports.

        The result is ``"AVX512"``, ``"AVX2"`` or ``"DEFAULT"``.
        """
        simd: Any = numpy.show_config("dicts")["SIMD Extensions"]
        names = " ".join([*simd.get("baseline", []), *simd.get("found", [])])
        return next((name for name in ("AVX512", "AVX2") if name in names), "DEFAULT")

    return {"get_cpu_capability": get_cpu_capability}


@namespace("backends.cuda")
def _backends_cuda() -> Names:
    """Contents of the module ``torch.backends.cuda`` as a dictionary: settings for NVIDIA GPUs, without effect."""

    def is_built() -> bool:
        """Return True if CuPy is installed and finds a GPU, otherwise False."""
        return devices.gpu_count() > 0

    @contextmanager
    def sdp_kernel(
        enable_flash: bool = True,
        enable_math: bool = True,
        enable_mem_efficient: bool = True,
        enable_cudnn: bool = True,
    ) -> Iterator[None]:
        """Return a context manager that enables the attention implementations whose arguments are true.

        Deprecated; use :func:`torch.nn.attention.sdpa_kernel`.
        """
        warn(
            "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. "
            "Please see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
            FutureWarning,
        )
        before = dict(ENABLED_BACKENDS)
        ENABLED_BACKENDS.update(
            flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
        )
        try:
            yield
        finally:
            ENABLED_BACKENDS.update(before)

    return {
        "is_built": is_built,
        "matmul": Group(
            allow_tf32=_AllowTF32(False, "set_allow_tf32_cublas"),
            allow_fp16_reduced_precision_reduction=Flag(True),
            allow_bf16_reduced_precision_reduction=Flag(True),
            allow_fp16_accumulation=Flag(False, "set_allow_fp16_accumulation_cublas"),
            fp32_precision=_ProductPrecision(),
        ),
        "fp32_precision": Precision(),
        "is_flash_attention_available() -> bool": False,
        **getter_and_setter("flash_sdp_enabled", "enable_flash_sdp(enabled)", ENABLED_BACKENDS, "flash"),
        **getter_and_setter(
            "mem_efficient_sdp_enabled", "enable_mem_efficient_sdp(enabled)", ENABLED_BACKENDS, "mem_efficient"
        ),
        **getter_and_setter("math_sdp_enabled", "enable_math_sdp(enabled)", ENABLED_BACKENDS, "math"),
        **getter_and_setter("cudnn_sdp_enabled", "enable_cudnn_sdp(enabled)", ENABLED_BACKENDS, "cudnn"),
        **getter_and_setter(
            "fp16_bf16_reduction_math_sdp_allowed",
            "allow_fp16_bf16_reduction_math_sdp(enabled)",
            ENABLED_BACKENDS,
            "reduced",
        ),
        "sdp_kernel": sdp_kernel,
    }


@namespace("backends.cudnn")
def _backends_cudnn() -> Names:
    """Contents of the module ``torch.backends.cudnn`` as a dictionary: settings of NVIDIA's library of convolutions.

    The library is not used, and the settings have no effect.
    """
    return {
        "is_available() -> bool": False,
        "version() -> int | None": None,
        "is_acceptable(tensor: Any) -> bool": False,
        "enabled": Flag(True, "set_enabled_cudnn"),
        "benchmark": Flag(False, "set_benchmark_cudnn"),
        "benchmark_limit": Flag(None),
        "deterministic": Flag(False, "set_deterministic_cudnn"),
        "allow_tf32": Flag(True, "set_allow_tf32_cudnn"),
        "fp32_precision": Precision(),
        "conv": Flag(Group(fp32_precision=Precision("tf32"))),
        "rnn": Flag(Group(fp32_precision=Precision("tf32"))),
        "set_flags(_enabled: bool | None = None, _benchmark: bool | None = None, _benchmark_limit: int | None = None, "
        "_deterministic: bool | None = None, _allow_tf32: bool | None = None, "
        "_fp32_precision: str = 'none') -> tuple[Any, ...]": flag_setter("fp32_precision"),
        "flags(enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10, deterministic: bool = False, "
        "allow_tf32: bool | None = True, fp32_precision: str = 'none') -> AbstractContextManager[None]": flag_context(
            "benchmark_limit"
        ),
    }


@namespace("backends.cusparselt")
def _backends_cusparselt() -> Names:
    """Contents of the module ``torch.backends.cusparselt`` as a dictionary.

    NVIDIA's library for semi-structured sparse matrices is not used, and ``is_available()`` returns False.
    """
    return {
        "is_available() -> bool": False,
        "version() -> int | None": None,
        "get_max_alg_id() -> int | None": None,
    }


@namespace("backends.kleidiai")
def _backends_kleidiai() -> Names:
    """Contents of the module ``torch.backends.kleidiai`` as a dictionary.

    Arm's library of matrix products is not used, and ``is_available()`` returns False.
    """
    return {"is_available() -> bool": False}


@namespace("backends.mha")
def _backends_mha() -> Names:
    """Contents of the module ``torch.backends.mha`` as a dictionary.

    The module has the setting of PyTorch's fast path of transformer layers in evaluation mode. The setting has no
    effect, because retrograd has no such fast path.
    """
    return getter_and_setter("get_fastpath_enabled", "set_fastpath_enabled(value)", {"fastpath": True}, "fastpath")


@namespace("backends.miopen")
def _backends_miopen() -> Names:
    """Contents of the module ``torch.backends.miopen`` as a dictionary: a setting of AMD's library of convolutions.

    The library is not used, and the setting has no effect.
    """
    return {
        "immediate": Flag(False),
        "set_flags(_immediate: bool | None = None) -> tuple[Any, ...]": flag_setter(),
        "flags(immediate: bool = False) -> AbstractContextManager[None]": flag_context(),
    }


class verbose:
    """Context manager ``torch.backends.mkl.verbose``, in which PyTorch prints calls of MKL; it has no effect here.

    >>> with torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_ON):
    ...     torch.ones(2, 2) @ torch.ones(2)
    tensor([2., 2.])
    """

    __module__ = "retrograd.backends.mkl"

    def __init__(self, enable: int | bool) -> None:
        self.enable = enable

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


@namespace("backends.mkl")
def _backends_mkl() -> Names:
    """Contents of the module ``torch.backends.mkl`` as a dictionary: functions for Intel's library of linear algebra.

    ``is_available()`` returns True if NumPy was built with the library, which is then used.
    """

    def is_available() -> bool:
        """Return True if NumPy's BLAS is MKL, otherwise False."""
        built = numpy.show_config("dicts")
        return "mkl" in str(built["Build Dependencies"]["blas"].get("name"))

    return {"VERBOSE_OFF": 0, "VERBOSE_ON": 1, "is_available": is_available, "verbose": verbose}


@namespace("backends.mkldnn")
def _backends_mkldnn() -> Names:
    """Contents of the module ``torch.backends.mkldnn`` as a dictionary: settings of Intel's library of neural networks.

    The library is not used, and the settings have no effect.
    """
    return {
        "VERBOSE_OFF": 0,
        "VERBOSE_ON": 1,
        "VERBOSE_ON_CREATION": 2,
        "is_available() -> bool": False,
        "is_acl_available() -> bool": False,
        "verbose": verbose,
        "enabled": Flag(True, "set_enabled_mkldnn"),
        "deterministic": Flag(False, "set_deterministic_mkldnn"),
        "allow_tf32": Flag(None),
        "fp32_precision": Precision(),
        "matmul": Flag(Group(fp32_precision=Precision())),
        "conv": Flag(Group(fp32_precision=Precision())),
        "rnn": Flag(Group(fp32_precision=Precision())),
        "set_flags(_enabled: bool | None = None, _deterministic: bool | None = None, _allow_tf32: bool | None = None, "
        "_fp32_precision: str = 'none') -> tuple[Any, ...]": flag_setter("fp32_precision"),
        "flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, "
        "fp32_precision: str = 'none') -> AbstractContextManager[None]": flag_context(),
    }


@namespace("backends.mps")
def _backends_mps() -> Names:
    """Contents of the module ``torch.backends.mps`` as a dictionary: functions for Apple GPUs (not supported)."""
    return {
        "is_available() -> bool": False,
        "is_built() -> bool": False,
        "is_macos13_or_newer(minor: int = 0) -> bool": _no_mps("isOnMacOSorNewer"),
        "is_macos_or_newer(major: int, minor: int) -> bool": _no_mps("isOnMacOSorNewer"),
    }


@namespace("backends.nnpack")
def _backends_nnpack() -> Names:
    """Contents of the module ``torch.backends.nnpack`` as a dictionary: a setting of the convolution library NNPACK.

    The library is not used, and the setting has no effect.
    """
    return {
        "is_available() -> bool": False,
        "enabled": Flag(True),
        "set_flags(_enabled: bool | None) -> tuple[Any, ...]": flag_setter(),
        "flags(enabled: bool = False) -> AbstractContextManager[None]": flag_context(),
    }


@namespace("backends.openmp")
def _backends_openmp() -> Names:
    """Contents of the module ``torch.backends.openmp`` as a dictionary.

    OpenMP is not used, and ``is_available()`` returns False.
    """
    return {"is_available() -> bool": False}


@namespace("backends.opt_einsum")
def _backends_opt_einsum() -> Names:
    """Contents of the module ``torch.backends.opt_einsum`` as a dictionary.

    The module has settings of the package ``opt_einsum``, by which PyTorch finds a cheap order of contractions. They
    have no effect, because ``einsum`` finds a cheap order without this package.
    """

    def is_available() -> bool:
        """Return True if the package ``opt_einsum`` is installed, otherwise False."""
        return importlib.util.find_spec("opt_einsum") is not None

    def get_opt_einsum() -> Any:
        """Return the package ``opt_einsum``, or None if it is not installed."""
        return importlib.import_module("opt_einsum") if is_available() else None

    return {
        "is_available": is_available,
        "get_opt_einsum": get_opt_einsum,
        "enabled": Flag(is_available()),
        "strategy": Flag("auto" if is_available() else None),
        "set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple[Any, ...]": flag_setter(),
        "flags(enabled: bool | None = None, strategy: str | None = None) -> AbstractContextManager[None]": flag_context(),
    }


@namespace("backends.quantized")
def _backends_quantized() -> Names:
    """Contents of the module ``torch.backends.quantized`` as a dictionary.

    The module has settings of libraries for quantized tensors, which retrograd does not support.
    """

    def set_engine(module: Any, value: Any) -> None:
        if value != "none":
            raise RuntimeError(f"{value} is not a valid value for quantized engine")

    return {
        "engine": property(lambda module: "none", set_engine),
        "supported_engines": property(lambda module: ["none"]),
    }


# -- Devices that are not supported ------------------------------------------------------------------------------------


@namespace("xpu")
def _xpu() -> Names:
    """Contents of the module ``torch.xpu`` as a dictionary: functions for Intel GPUs, which are not supported.

    Functions that need a device raise PyTorch's error.
    """
    none = AssertionError("Torch not compiled with XPU enabled")
    return {
        "is_available() -> bool": False,
        "is_initialized() -> bool": False,
        "device_count() -> int": 0,
        "is_bf16_supported(including_emulation: bool = True) -> bool": False,
        "empty_cache() -> None": None,
        "manual_seed(seed: int) -> None": None,
        "manual_seed_all(seed: int) -> None": None,
        "seed() -> None": None,
        "seed_all() -> None": None,
        "memory_allocated(device: Any = None) -> int": 0,
        "memory_reserved(device: Any = None) -> int": 0,
        "max_memory_allocated(device: Any = None) -> int": 0,
        "max_memory_reserved(device: Any = None) -> int": 0,
        "init() -> None": none,
        "current_device() -> int": none,
        "set_device(device: Any) -> None": none,
        "synchronize(device: Any = None) -> None": none,
        "get_device_name(device: Any = None) -> str": none,
        "get_device_properties(device: Any = None) -> Any": none,
        "current_stream(device: Any = None) -> Any": none,
        "is_current_stream_capturing() -> bool": False,
        "reset_peak_memory_stats(device: Any = None) -> None": None,
        "get_device_capability(device: Any = None) -> Any": none,
        "get_rng_state(device: Any = 'xpu') -> Any": none,
        "get_rng_state_all() -> list[Any]": [],
        "set_rng_state(new_state: Any, device: Any = 'xpu') -> None": none,
        "set_rng_state_all(new_states: Any) -> None": None,
        "mem_get_info(device: Any = None) -> Any": none,
    }


def _no_mps(function: str) -> RuntimeError:
    return RuntimeError(f"Cannot execute {function}() without MPS backend.")


@namespace("mps")
def _mps() -> Names:
    """Contents of the module ``torch.mps`` as a dictionary: functions for Apple GPUs, which are not supported.

    Functions that need a device raise PyTorch's error.
    """
    return {
        "is_available() -> bool": False,
        "device_count() -> int": 0,
        "manual_seed(seed: int) -> None": None,
        "synchronize() -> None": _no_mps("deviceSynchronize"),
        "empty_cache() -> None": _no_mps("emptyCache"),
        "seed() -> None": _no_mps("getDefaultGenerator"),
        "get_rng_state(device: Any = 'mps') -> Any": _no_mps("getDefaultGenerator"),
        "set_rng_state(new_state: Any, device: Any = 'mps') -> None": _no_mps("getDefaultGenerator"),
        "current_allocated_memory() -> int": _no_mps("getCurrentAllocatedMemory"),
        "driver_allocated_memory() -> int": _no_mps("getDriverAllocatedMemory"),
        "recommended_max_memory() -> int": _no_mps("getRecommendedMaxMemory"),
    }


@namespace("mtia")
def _mtia() -> Names:
    """Contents of the module ``torch.mtia`` as a dictionary: functions for Meta's accelerators (not supported)."""
    return {"is_available() -> bool": False, "is_initialized() -> bool": False, "device_count() -> int": 0}


# -- The CPU as a device -----------------------------------------------------------------------------------------------


class Stream:
    """Stream of the CPU (``torch.cpu.Stream``); all work on the CPU is complete when it is submitted.

    >>> stream = torch.cpu.Stream()
    >>> with torch.cpu.stream(stream):
    ...     x = torch.ones(2) + 1
    >>> stream.wait_stream(torch.cpu.current_stream())
    >>> x
    tensor([2., 2.])
    """

    __module__ = "retrograd.cpu"

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Do nothing, because work on the CPU is complete when it is submitted."""

    def record_event(self) -> None:
        """Do nothing, because work on the CPU is complete when it is submitted."""

    def wait_event(self, event: Any) -> None:
        """Do nothing, because work on the CPU is complete when it is submitted."""


class Event:
    """Event on the stream of the CPU (``torch.cpu.Event``), which is always complete.

    >>> event = torch.cpu.Event()
    >>> event.record()
    >>> event.query()
    True
    """

    __module__ = "retrograd.cpu"

    def query(self) -> bool:
        """Return True, because work on the CPU is complete when it is submitted."""
        return True

    def record(self, stream: Any = None) -> None:
        """Do nothing, because work on the CPU is complete when it is submitted."""

    def synchronize(self) -> None:
        """Do nothing, because work on the CPU is complete when it is submitted."""

    def wait(self, stream: Any = None) -> None:
        """Do nothing, because work on the CPU is complete when it is submitted."""


class StreamContext:
    """Context manager ``torch.cpu.StreamContext``, which selects a stream.

    It has no effect, because the CPU has only one stream.

    >>> with torch.cpu.StreamContext(torch.cpu.Stream()):
    ...     torch.ones(2) + 1
    tensor([2., 2.])
    """

    __module__ = "retrograd.cpu"

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


@namespace("cpu")
def _cpu() -> Names:
    """Contents of the module ``torch.cpu`` as a dictionary.

    The functions correspond to those of ``torch.cuda``.
    """
    only = Stream()

    def stream(stream: Any) -> StreamContext:
        """Return a context manager that selects ``stream``; it has no effect."""
        return StreamContext(stream)

    def current_stream(device: Any = None) -> Stream:
        """Return the CPU's only stream; ``device`` has no effect."""
        return only

    def get_capabilities() -> Mapping[str, Any]:
        """Return a dict with the vector extensions that NumPy detected, the architecture and the number of cores."""
        found: dict[str, Any] = {"architecture": platform.machine(), "num_logical_cores": os.cpu_count()}
        simd: Any = numpy.show_config("dicts")["SIMD Extensions"]
        for group, names in simd.items():
            found.update({name.lower(): group in ("baseline", "found") for name in names})
        return MappingProxyType(found)

    return {
        "Stream": Stream,
        "Event": Event,
        "StreamContext": StreamContext,
        "stream": stream,
        "current_stream": current_stream,
        "get_capabilities": get_capabilities,
        "is_available() -> bool": True,
        "is_initialized() -> bool": True,
        "device_count() -> int": 1,
        "current_device() -> str": "cpu",
        "set_device(device: Any) -> None": None,
        "synchronize(device: Any = None) -> None": None,
    }


@namespace("cpu.amp")
def _cpu_amp() -> Names:
    """Contents of the module ``torch.cpu.amp`` as a dictionary.

    The classes for mixed precision on the CPU are deprecated; ``torch.amp`` replaces them.
    """
    from .amp import old

    autocast, grad_scaler = old.deprecated_classes("cpu", dtypes.bfloat16)
    return {"autocast": autocast, "GradScaler": grad_scaler}


# -- The device in use -------------------------------------------------------------------------------------------------


class device_index:
    """Context manager ``torch.accelerator.device_index``, which selects the GPU with the index ``device``.

    It has no effect if ``device`` is None.

    >>> with torch.accelerator.device_index(0 if torch.accelerator.is_available() else None):
    ...     torch.ones(2).sum()
    tensor(2.)
    """

    __module__ = "retrograd.accelerator"

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            accelerator: Any = sys.modules[self.__module__]
            self.before = accelerator.current_device_index()
            accelerator.set_device_index(self.idx)

    def __exit__(self, *error: object) -> None:
        if self.idx is not None:
            accelerator: Any = sys.modules[self.__module__]
            accelerator.set_device_index(self.before)


@namespace("accelerator")
def _accelerator() -> Names:
    """Contents of the module ``torch.accelerator`` as a dictionary.

    The functions concern the accelerator, which is the GPU if CuPy finds one.
    """
    from . import cuda

    def on_gpu(function: Callable[..., Any], old_name_of: str = "") -> Callable[..., Any]:
        def answer(*args: Any) -> Any:
            if old_name_of:
                warn(f"Use `{old_name_of}` instead.", FutureWarning)
            if not cuda.is_available():
                raise RuntimeError("Cannot access accelerator device when none is available.")
            return function(*args)

        what = f"torch.accelerator.{old_name_of}" if old_name_of else f"torch.cuda.{function.__name__}"
        return documented(f"Call :func:`{what}`; raise RuntimeError if there is no GPU.", answer)

    def nothing() -> None: ...

    def current_accelerator(check_available: bool = False) -> devices.device | None:
        """Return the device ``cuda`` if CuPy finds a GPU, otherwise None; ``check_available`` has no effect."""
        return devices.device("cuda") if cuda.is_available() else None

    def get_device_capability(device: Any) -> dict[str, Any]:
        return {"supported_dtypes": set(dtypes.ALL)}

    return {
        "is_available() -> bool": cuda.is_available,
        "device_count() -> int": cuda.device_count,
        "current_accelerator": current_accelerator,
        "current_device_index() -> int": on_gpu(cuda.current_device),
        "set_device_index(device: Any, /) -> None": on_gpu(cuda.set_device),
        "current_device_idx() -> int": on_gpu(cuda.current_device, old_name_of="current_device_index"),
        "set_device_idx(device: Any, /) -> None": on_gpu(cuda.set_device, old_name_of="set_device_index"),
        "device_index": device_index,
        "get_device_capability(device: Any = None, /) -> dict[str, Any]": documented(
            "Return the dtypes of the GPU; raise RuntimeError if there is no GPU.", on_gpu(get_device_capability)
        ),
        "current_stream(device: Any = None, /) -> Any": on_gpu(cuda.current_stream),
        "set_stream(stream: Any) -> None": on_gpu(cuda.set_stream),
        "synchronize(device: Any = None, /) -> None": on_gpu(cuda.synchronize),
        "empty_cache() -> None": on_gpu(cuda.empty_cache),
        "empty_host_cache() -> None": documented(
            "Do nothing: no pinned memory is cached. Raises RuntimeError without a GPU.", on_gpu(nothing)
        ),
        "get_memory_info(device_index: Any = None, /) -> tuple[int, int]": on_gpu(cuda.mem_get_info),
        "memory_allocated(device_index: Any = None, /) -> int": on_gpu(cuda.memory_allocated),
        "memory_reserved(device_index: Any = None, /) -> int": on_gpu(cuda.memory_reserved),
        "max_memory_allocated(device_index: Any = None, /) -> int": on_gpu(cuda.max_memory_allocated),
        "max_memory_reserved(device_index: Any = None, /) -> int": on_gpu(cuda.max_memory_reserved),
        "memory_stats(device_index: Any = None, /) -> dict[str, Any]": on_gpu(cuda.memory_stats),
        "reset_peak_memory_stats(device_index: Any = None, /) -> None": on_gpu(cuda.reset_peak_memory_stats),
        "reset_accumulated_memory_stats(device_index: Any = None, /) -> None": documented(
            "Do nothing: no sums are kept. Raises RuntimeError without a GPU.", on_gpu(lambda device_index: None)
        ),
    }


# -- Exports and loaded operations ------------------------------------------------------------------------------------


@namespace("fx.experimental")
def _fx_experimental() -> Names:
    """Contents of the module ``torch.fx.experimental`` as a dictionary: only the submodule ``proxy_tensor``."""
    return {"proxy_tensor": PART}


@namespace("fx.experimental.proxy_tensor")
def _fx_proxy_tensor() -> Names:
    """Contents of the module as a dictionary: a function that returns None; only public functions are recorded."""
    return {"get_proxy_mode() -> Any": None}


@namespace("_subclasses")
def _subclasses() -> Names:
    """Contents of the module ``torch._subclasses`` as a dictionary: only the submodule ``fake_tensor``."""
    return {"fake_tensor": PART, "FakeTensor": _FAKE, "functional_tensor": PART}


@namespace("_subclasses.functional_tensor")
def _functional_tensor() -> Names:
    """Contents of the module as a dictionary: a class without instances."""
    return {"FunctionalTensor": type("FunctionalTensor", (), {"__module__": "torch._subclasses.functional_tensor"})}


@namespace("_subclasses.fake_tensor")
def _fake_tensor() -> Names:
    """Contents of the module as a dictionary: a function that returns False, because no tensor is without data."""
    return {"is_fake(x: Any) -> bool": False, "FakeTensor": _FAKE}


_FAKE = type("FakeTensor", (), {"__module__": "torch._subclasses.fake_tensor", "__doc__": "Class without instances."})


class OperatorExportTypes(IntEnum):
    """Enumeration of the operators that an export to ONNX may use; programs are not exported."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(IntEnum):
    """Enumeration of the modes in which a module may be exported to ONNX; programs are not exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


@namespace("onnx")
def _onnx() -> Names:
    """Contents of the module ``torch.onnx`` as a dictionary: a function that returns whether an export is running.

    Programs are not exported, so that functions that register symbols of operations do nothing.
    """
    return {
        "is_in_onnx_export() -> bool": False,
        "OperatorExportTypes": OperatorExportTypes,
        "TrainingMode": TrainingMode,
        "register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None": None,
        "unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None": None,
        **dict.fromkeys(_parts("onnx"), PART),
    }


@namespace("onnx.symbolic_helper")
def _onnx_symbolic_helper() -> Names:
    """Contents of the module ``torch.onnx.symbolic_helper`` as a dictionary: a decorator of symbols of operations."""

    def parse_args(*arg_descriptors: str) -> Any:
        """Return a decorator that returns its function unchanged; symbols of operations are not called."""
        return lambda fn: fn

    return {"parse_args": parse_args}


@namespace("onnx.symbolic_opset9")
@namespace("onnx.symbolic_opset11")
@namespace("onnx.symbolic_opset12")
def _onnx_symbols() -> Names:
    """Contents of the modules of symbols of operations, as a dictionary without names."""
    return {}


@namespace("_ops")
def _ops() -> Names:
    """Contents of the module ``torch._ops`` as a dictionary: the classes of operations."""
    from . import ops

    names = ("OpOverload", "OpOverloadPacket", "_OpNamespace")
    return {**{name: getattr(ops, name) for name in names}, "HigherOrderOperator": type("HigherOrderOperator", (), {})}


@namespace("_guards")
def _guards() -> Names:
    """Contents of the module ``torch._guards`` as a dictionary: nothing is traced."""
    return {"detect_fake_mode(inputs: Any = None) -> None": None}


@namespace("_functorch")
def _functorch() -> Names:
    """Contents of the module ``torch._functorch`` as a dictionary: only the submodules."""
    return {"vmap": PART, "eager_transforms": PART, "functional_call": PART}


@namespace("_functorch.vmap")
def _functorch_vmap() -> Names:
    """Contents of the module ``torch._functorch.vmap`` as a dictionary: ``vmap``."""
    from . import func

    return {"vmap": func.vmap}


@namespace("_functorch.eager_transforms")
def _functorch_transforms() -> Names:
    """Contents of the module as a dictionary: the transforms of ``torch.func``."""
    from . import func

    names = ("grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "functionalize")
    return {name: getattr(func, name) for name in names if hasattr(func, name)}


@namespace("_functorch.functional_call")
def _functorch_functional_call() -> Names:
    """Contents of the module as a dictionary: ``functional_call`` and ``stack_module_state``."""
    from . import func

    return {"functional_call": func.functional_call, "stack_module_state": func.stack_module_state}


@namespace("cuda.nvtx")
def _cuda_nvtx() -> Names:
    """Contents of the module ``torch.cuda.nvtx`` as a dictionary: ranges of NVIDIA's profiler, which is not used."""
    error = RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")
    names = (
        "range_pop()",
        "range_push(msg: str)",
        "range_start(msg: str)",
        "range_end(range_id: int)",
        "mark(msg: str)",
    )

    return {f"{name} -> None": error for name in (*names, "range(msg: str)")}


@namespace("cuda.profiler")
def _cuda_profiler() -> Names:
    """Contents of the module ``torch.cuda.profiler`` as a dictionary: NVIDIA's profiler, which is not used."""
    error = AssertionError("Torch not compiled with CUDA enabled")
    return {"start() -> None": error, "stop() -> None": error, "profile() -> None": error}


@namespace("_inductor.codecache")
@namespace("_inductor.runtime")
@namespace("_prims_common")
@namespace("_decomp")
def _without_names() -> Names:
    """Contents of modules of PyTorch's compiler, as a dictionary without names."""
    return {}


@namespace("onnx.operators")
def _onnx_operators() -> Names:
    """Contents of the module ``torch.onnx.operators`` as a dictionary: functions of shapes."""

    def shape_as_tensor(x: Any) -> Any:
        """Return the shape of ``x`` as a tensor."""
        from .private_names import _shape_as_tensor

        return _shape_as_tensor(x)

    def reshape_from_tensor_shape(x: Any, shape: Any) -> Any:
        """Return ``x`` in the shape that the tensor ``shape`` contains."""
        return x.reshape(shape.tolist())

    return {"shape_as_tensor": shape_as_tensor, "reshape_from_tensor_shape": reshape_from_tensor_shape}


@namespace("_vmap_internals")
def _vmap_internals() -> Names:
    """Contents of the module ``torch._vmap_internals`` as a dictionary: ``vmap`` by the names of older programs."""
    from .func.vmap import _vmap

    return {"vmap": _vmap, "_vmap": _vmap}


@namespace("_custom_ops")
def _custom_ops() -> Names:
    """Contents of the module ``torch._custom_ops`` as a dictionary: a function of ``torch.library``."""
    from .library import get_ctx

    return {"get_ctx": get_ctx}


@namespace("distributed.rpc")
def _distributed_rpc() -> Names:
    """Contents of the module ``torch.distributed.rpc`` as a dictionary, as PyTorch's without remote procedure calls."""
    return {"is_available() -> bool": False}


@namespace("classes")
def _classes() -> Names:
    """Contents of the module ``torch.classes`` as a dictionary: C++ classes of loaded libraries, of which there are none."""
    return {
        "load_library(path: Any) -> None": OSError("retrograd loads no libraries of PyTorch's operations"),
        "loaded_libraries": set(),
    }


# -- PyTorch's compiler ------------------------------------------------------------------------------------------------


@namespace("_dynamo")
def _dynamo() -> Names:
    """Contents of the module ``torch._dynamo`` as a dictionary: functions of ``torch.compiler``, and no-ops.

    In PyTorch, the module is the front end of the compiler.
    """
    from . import compiler
    from .compiler.compiled_function import exclude

    def optimize(*args: Any, **kwargs: Any) -> Any:
        """Return a decorator that returns its argument unchanged; ``args`` and ``kwargs`` have no effect."""
        return lambda function: function

    def run(fn: Any = None) -> Any:
        """Return ``fn`` unchanged; the function has no effect in retrograd."""
        return fn

    def graph_break(msg: str = "") -> None:
        """Compute the pending operations, if a compiled function is running. ``msg`` has no effect."""
        exclude(lambda: None)()

    taken = ("OptimizedModule", "allow_in_graph", "assume_constant_result", "disable", "explain", "is_compiling",
             "list_backends", "reset", "set_stance")  # fmt: skip
    hints = ("mark_dynamic", "maybe_mark_dynamic", "mark_static", "mark_static_address")
    return {
        **{name: getattr(compiler, name) for name in taken},
        "config": PART,
        "_trace_wrapped_higher_order_op": PART,
        "eval_frame": PART,
        "exc": PART,
        "utils": PART,
        "optimize": optimize,
        "run": run,
        "graph_break": graph_break,
        "reset_code_caches() -> None": None,
        **{f"{name}(t: Any, index: Any, **bounds: Any) -> None": None for name in hints},
    }


@namespace("_dynamo.eval_frame")
def _dynamo_eval_frame() -> Names:
    """Contents of the module ``torch._dynamo.eval_frame`` as a dictionary."""
    from .compiler import OptimizedModule

    return {"OptimizedModule": OptimizedModule, "is_dynamo_supported() -> bool": True}


@namespace("_dynamo.exc")
def _dynamo_exc() -> Names:
    """Contents of the module ``torch._dynamo.exc`` as a dictionary: the errors of the compiler."""
    from .compiler import errors

    return {name: getattr(errors, name) for name in errors.__all__}


@namespace("_dynamo.utils")
def _dynamo_utils() -> Names:
    """Contents of the module ``torch._dynamo.utils`` as a dictionary."""
    return {"is_compile_supported(device_type: str) -> bool": True}


@namespace("_dynamo._trace_wrapped_higher_order_op")
def _dynamo_trace_wrapped() -> Names:
    """Contents of the module as a dictionary: a context manager for vmap, without effect."""
    return {"TransformGetItemToIndex": nullcontext}


@namespace("_dynamo.config")
def _dynamo_config() -> Names:
    """Contents of the module ``torch._dynamo.config`` as a dictionary: settings of PyTorch's compiler.

    The settings have no effect. Programs may add settings.
    """

    @contextmanager
    def patch(arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Iterator[None]:
        """Return a context manager, or decorator, in which settings have other values."""
        changes = {arg1: arg2} if isinstance(arg1, str) else {**(arg1 or {}), **kwargs}
        module = sys.modules[f"{__package__}._dynamo.config"]
        before = {name: getattr(module, name, None) for name in changes}
        try:
            for name, value in changes.items():
                setattr(module, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(module, name, value)

    return {
        "patch": patch,
        "suppress_errors": False,
        "verbose": False,
        "cache_size_limit": 8,
        "recompile_limit": 8,
        "accumulated_cache_size_limit": 256,
        "accumulated_recompile_limit": 256,
        "dynamic_shapes": True,
        "assume_static_by_default": True,
        "automatic_dynamic_shapes": True,
        "capture_scalar_outputs": False,
        "capture_dynamic_output_shape_ops": False,
        "optimize_ddp": True,
        "disable": False,
        "error_on_recompile": False,
        "inline_inbuilt_nn_modules": True,
    }


@namespace("_inductor")
def _inductor() -> Names:
    """Contents of the module ``torch._inductor`` as a dictionary: only the submodule ``config``.

    In PyTorch, the module is the back end of the compiler.
    """
    return {
        "config": PART,
        "cudagraph_mark_step_begin() -> None": None,
        "list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict": {},
    }


@namespace("_inductor.config")
def _inductor_config() -> Names:
    """Contents of the module ``torch._inductor.config`` as a dictionary: settings of PyTorch's compiler.

    The settings have no effect. Programs may add settings.
    """
    return {
        "coordinate_descent_tuning": False,
        "max_autotune": False,
        "fx_graph_cache": True,
        "freezing": False,
        "epilogue_fusion": True,
        "triton": SimpleNamespace(unique_kernel_names=True, cudagraphs=False),
        "cpp": SimpleNamespace(threads=-1),
    }


# -- From the table to modules -----------------------------------------------------------------------------------------


def _signature(text: str) -> Signature:
    """Return the signature whose source is ``text``, such as ``(seed: int = 0) -> None``.

    The annotations in the result are strings. Default values must be literals.
    """
    function = parse_module(f"def function{text}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    given, kinds = function.args, Parameter
    assert not (given.kwonlyargs or given.vararg), "parameters that no function of the table has"
    places = [kinds.POSITIONAL_ONLY] * len(given.posonlyargs) + [kinds.POSITIONAL_OR_KEYWORD] * len(given.args)
    names = [*given.posonlyargs, *given.args]
    defaults = [Parameter.empty] * (len(names) - len(given.defaults)) + [ast.literal_eval(x) for x in given.defaults]
    parameters = [
        Parameter(each.arg, kind, default=default, annotation=_annotation(each.annotation))
        for each, kind, default in zip(names, places, defaults, strict=True)
    ]
    if given.kwarg is not None:
        rest = given.kwarg
        parameters.append(Parameter(rest.arg, kinds.VAR_KEYWORD, annotation=_annotation(rest.annotation)))
    return Signature(parameters, return_annotation=_annotation(function.returns))


def _annotation(tree: ast.expr | None) -> Any:
    return Parameter.empty if tree is None else UnquotedAnnotation(ast.unparse(tree))


def _behaviour(answer: Any, returns: str) -> tuple[Callable[[str, BoundArguments], Any], str]:
    """Return two items for a public function: its implementation and its docstring.

    ``answer`` determines the implementation: it is a constant to return, an exception to raise, or a function to call.
    The implementation is called with the name of the module and the bound arguments. ``returns`` is the annotation of
    the function's result.
    """
    if isinstance(answer, BaseException):
        kind, words = type(answer), str(answer)

        def fail(module_name: str, given: BoundArguments) -> None:
            raise kind(words)

        return fail, f"Raise {kind.__name__} because the device is not present."
    if isinstance(answer, ByName):
        return lambda module_name, given: answer(module_name, given.arguments), answer.__doc__ or ""
    if callable(answer):
        return lambda module_name, given: answer(*given.args, **given.kwargs), answer.__doc__ or ""
    doc = "Do nothing." if answer is None and returns == "None" else f"Return {answer!r}."
    return lambda module_name, given: answer, doc


def _function(module_name: str, key: str, answer: Any) -> Any:
    """Return a new function with the signature ``key`` for the module ``module_name``.

    ``key`` begins with the name of the function, for example ``"device_count() -> int"``. ``answer`` determines what
    the function does: it is a constant to return, an exception to raise, or a function to call.
    """
    name, parenthesis, rest = key.partition("(")
    signature = _signature(parenthesis + rest)
    behaviour, doc = _behaviour(answer, signature.return_annotation)

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError:
            raise _argument_error(named, args, kwargs) from None
        given.apply_defaults()
        return behaviour(module_name, given)

    named: Any = function
    named.__name__ = named.__qualname__ = name
    named.__module__, named.__doc__, named.__signature__ = module_name, doc, signature
    annotations = {each.name: each.annotation for each in signature.parameters.values()}
    annotations["return"] = signature.return_annotation
    named.__annotations__ = {each: value for each, value in annotations.items() if value is not Parameter.empty}
    return strips_frames(named)


def _argument_error(function: Any, args: tuple[Any, ...], kwargs: Names) -> TypeError:
    """Return the TypeError for ``function(*args, **kwargs)``, a call whose arguments do not fit the signature.

    The message is Python's, such as ``f() missing 1 required positional argument: 'x'``. The error that
    :meth:`inspect.Signature.bind` raises has a different message.
    """
    try:
        getcallargs(function, *args, **kwargs)  # has the words of Python's errors, and ignores the slash
    except TypeError as error:
        return error
    parameters = signature_of(function).parameters.values()
    names = [each.name for each in parameters if each.kind is Parameter.POSITIONAL_ONLY and each.name in kwargs]
    return TypeError(
        f"{function.__name__}() got some positional-only arguments passed as keyword arguments: {', '.join(names)!r}"
    )


def _adopted(value: Any, name: str, module_name: str) -> Any:
    """Return ``value``, which becomes the attribute ``name`` of the module ``module_name``.

    If it is a function defined in this file, its ``__name__`` and ``__module__`` are changed to these names.
    """
    if isinstance(value, FunctionType) and value.__module__ == __name__:
        _adopted(getattr(value, "__wrapped__", None), name, module_name)
        value.__name__ = value.__qualname__ = name
        value.__module__ = module_name
    return value


def _parts(name: str) -> dict[str, str]:
    """Return a dictionary whose keys are the names of the direct submodules of the module ``name``.

    The value of each key is the same name, in the form that :func:`module_getattr` uses to import the submodules on
    first use.
    """
    below = [each.removeprefix(name + ".") for each in BLOCKS if each.startswith(name + ".")]
    return {each: each for each in below if "." not in each}


class TableLoader(Loader):
    """Loader of the modules of the table in this file.

    Each module is described by a function, such as ``_backends_cuda``. The loader calls this function, and adds the
    items of the returned dictionary to the module.
    """

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        full = module.__name__
        name = full.partition(".")[2]
        block = BLOCKS[name]
        values, answers, flags = {}, {}, {}
        for key, value in block().items():
            if "(" in key:
                answers[key] = value
            elif isinstance(value, (Flag, property)):
                flags[key] = value
            elif value is not PART:
                values[key] = _adopted(value, key, full)
            else:
                values[key] = importlib.import_module(f"{full}.{key}")
        own = {**values, **{key.partition("(")[0]: _function(full, key, answer) for key, answer in answers.items()}}
        exported = [*own, *(each for each, flag in flags.items() if isinstance(flag, property))]
        vars(module).update(own, __doc__=block.__doc__, __all__=sorted(exported))
        vars(module).update(__getattr__=module_getattr(full, _parts(name)), __dir__=module_dir(vars(module)))
        module.__class__ = type("Settings", (ModuleType,), flags) if flags else ModuleType


def find(fullname: str) -> ModuleSpec | None:
    """Return the import spec of the module ``fullname``, or None if no function in this file describes the module."""
    name = fullname.partition(".")[2]
    if name not in BLOCKS:
        return None
    spec = importlib.util.spec_from_file_location(fullname, __file__, loader=TableLoader())
    if spec is not None and _parts(name):
        spec.submodule_search_locations = []
    return spec


__all__ = ["find"]
