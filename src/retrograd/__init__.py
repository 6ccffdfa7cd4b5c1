"""PyTorch's tensors and autograd in readable Python: ``import retrograd as torch``."""

# ruff: noqa: E402, F401, F403 - this module imports names to export them

import math as _math
import sys as _sys
import typing as _typing

from .runtime import blas_threads as _blas_threads  # isort: skip - before NumPy is imported
from .compat import lazy_imports as _lazy_imports
from .compat import missing_names as _missing_names
from .compat import pickle_names as _pickle_names

_sys.meta_path.insert(0, _lazy_imports.ModuleCompletion(__name__))

from . import _C as _C
from . import autograd
from .core import devices as _devices
from .core import dtypes as _dtypes
from .core import tensor as _tensor
from .core.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
from .core.devices import device, get_default_device, set_default_device
from .core.dtypes import dtype, finfo, get_default_dtype, iinfo, set_default_dtype
from .core.exceptions import AcceleratorError, OutOfMemoryError
from .core.formatting import set_printoptions
from .core.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .core.promotion import can_cast, promote_types
from .core.size import Size
from .core.tensor import (
    Tensor,
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from .dispatch import declare as _table
from .operations import tensor_methods as _methods
from .operations.creation import legacy_types as _oldtypes
from .operations.creation.random import Generator, default_generator
from .operations.creation.storage import UntypedStorage
from .runtime.blas_threads import get_num_interop_threads, get_num_threads, set_num_interop_threads, set_num_threads
from .version import __version__

if _typing.TYPE_CHECKING:
    from . import (
        __config__,
        _tensor_str,
        amp,
        compiler,
        cuda,
        fft,
        func,
        functional,
        jit,
        linalg,
        monitor,
        nn,
        optim,
        random,
        return_types,
        serialization,
        signal,
        sparse,
        special,
        storage,
        testing,
        torch_version,
        types,
        utils,
        version,
    )
    from .amp import GradScaler, autocast
    from .compiler import compile
    from .determinism import *
    from .func import vmap
    from .func.numpy_functions import hessian, value_and_grad
    from .inspection.notebook import set_notebook_display
    from .runtime.malloc import empty_cache
    from .serialization import load, save
    from .streams import Event, Stream

inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None
legacy_contiguous_format = contiguous_format

torch = _here = _sys.modules[__name__]
for _each in (*_dtypes.ALL, *_dtypes.STORED):
    setattr(_here, _each.name, _each)
for _name, _value in (*_dtypes.ALIASES.items(), *_oldtypes.CPU_TYPES.items()):
    setattr(_here, _name, _value)
for _name, _value in _table.FUNCTIONS.items():
    setattr(_here, _name, _table.public_form(_value, "torch", _name))
for _value in (get_default_dtype, is_grad_enabled, is_inference_mode_enabled):
    setattr(_here, _value.__name__, _table.public_form(_value, "torch", _value.__name__))
bool = _dtypes.bool_

#: Operations of ``operations/foreach.py`` with an in-place form, and those with one form.
_FOREACH = (
    "abs", "acos", "add", "addcdiv", "addcmul", "asin", "atan", "ceil", "clamp_max", "clamp_min", "cos", "cosh", "div",
    "erf", "erfc", "exp", "expm1", "floor", "frac", "lerp", "lgamma", "log", "log10", "log1p", "log2", "maximum",
    "minimum", "mul", "neg", "pow", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "sub",
    "tan", "tanh", "trunc",
)  # fmt: skip
_FOREACH_ONE = ("clone", "copy_", "max", "mm", "norm", "powsum", "zero_")

#: Names loaded on demand (Note [Loading on demand] in ``compat/lazy_imports.py``), by the module that defines them.
_COMING = {
    "compiler": ("compile",),
    "runtime.malloc": ("empty_cache",),
    "func.numpy_functions": ("hessian", "value_and_grad"),
    "inspection.notebook": ("set_notebook_display",),
    "amp": ("GradScaler", "autocast"),
    "amp.autocast_mode": (
        "clear_autocast_cache", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype",
        "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled", "set_autocast_cache_enabled",
        "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled",
        "set_autocast_gpu_dtype",
    ),
    "func": ("vmap",),
    "serialization": ("load", "save"),
    "determinism": (
        "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "get_device_module",
        "get_float32_matmul_precision", "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
        "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal", "set_warn_always",
        "use_deterministic_algorithms",
    ),
    "sparse": (
        "dsmm", "hsmm", "hspmm", "saddmm", "smm", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor",
        "sparse_csr_tensor", "spmm", "sspaddmm",
    ),
    "nested": (
        "_nested_from_padded", "_nested_get_lengths", "_nested_get_offsets", "_nested_get_ragged_idx", "_nested_get_values",
        "_nested_tensor_from_mask", "_nested_tensor_from_mask_left_aligned", "_nested_tensor_from_tensor_list",
        "_nested_view_from_buffer", "_nested_view_from_jagged", "jagged",
    ),
    "streams": ("Event", "Stream"),
    "private_names": (
        "PyTorchFileReader", "SymBool", "SymFloat", "SymInt", "_assert", "_assert_async", "_check", "_check_index",
        "_check_is_size", "_check_not_implemented", "_check_tensor_all", "_check_tensor_all_with", "_check_type",
        "_check_value", "_check_with", "_sample_dirichlet", "_shape_as_tensor", "_softmax_backward_data", "_standard_gamma",
        "_cast_Byte", "_cast_Char", "_cast_Double", "_cast_Float", "_cast_Half", "_cast_Int", "_cast_Long", "_cast_Short",
        "_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo", "_segment_reduce", "set_vital",
        "int1", "int2", "int3", "int4", "int5", "int6", "int7", "qint32", "qint8", "quint2x4", "quint4x2",
        "quint8", "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7", "sym_float", "sym_int", "sym_ite",
        "sym_max", "sym_min", "sym_not", "sym_sum",
    ),
    "operations.foreach": tuple(
        f"_foreach_{_each}" for _each in (*_FOREACH, *(f"{_each}_" for _each in _FOREACH), *_FOREACH_ONE)
    ),
    "operations.linalg.private_products": ("_grouped_mm", "_int_mm", "_scaled_mm"),
    "ao": ("quantization",),
    "futures": ("Future",),
    "jit": ("ScriptFunction", "ScriptModule"),
}  # fmt: skip
_PARTS = (
    "__config__", "__future__", "_dynamo", "_functorch", "_guards", "_inductor", "_jit_internal",
    "_ops", "_subclasses", "_tensor_str", "_utils",
    "_vmap_internals", "accelerator", "amp", "ao", "array_api", "backends", "classes", "compiler", "cpu", "cuda",
    "distributed", "distributions", "fft", "func", "functional", "futures", "fx", "hub", "jit", "library", "linalg", "masked",
    "monitor", "mps", "mtia", "multiprocessing", "nested", "nn", "onnx", "ops", "optim", "overrides", "profiler", "quasirandom",
    "random", "return_types", "serialization", "signal", "sparse", "special", "storage", "testing", "torch_version", "types",
    "utils", "version", "xpu",
)  # fmt: skip
_LATER = {name: name for name in _PARTS} | {name: part for part, names in _COMING.items() for name in names}

__all__ = [_name for _name, _value in globals().items() if not (_name[0] == "_" or isinstance(_value, type(_here)))]
__all__ += [_name for _name, _source in _LATER.items() if _name != _source and _name[0] != "_" and _source != "ao"]
_sys.meta_path.append(_missing_names.MissingModules(__name__, f"{__name__}.namespaces"))
_pickle_names.add_former_modules(__name__)
_lazy_imports.hide_folders(_here)
__getattr__, __dir__ = _lazy_imports.module_getattr(__name__, _LATER), _lazy_imports.module_dir(globals())


def load_ipython_extension(shell: object) -> None:
    """Let ``import torch`` import retrograd in later cells: IPython calls this function for ``%load_ext retrograd``."""
    from .ipython_extension import load

    load()


def unload_ipython_extension(shell: object) -> None:
    """Undo :func:`load_ipython_extension`: IPython calls this function for ``%unload_ext retrograd``."""
    from .ipython_extension import unload

    unload()
