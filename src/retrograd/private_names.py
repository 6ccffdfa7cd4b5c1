"""Private names of ``torch`` and ``torch._C`` that packages import: checks, classes without instances, and others.

``torch`` and ``torch._C`` load these names on demand. The classes exist for ``isinstance`` checks and annotations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from enum import Enum
from functools import reduce, wraps
from typing import Any, TypeVar

from .compat.lazy_imports import load_part
from .core import dtypes
from .core.devices import device, get_default_device, gpu_count
from .core.dtypes import bool_
from .core.engine import running_plan
from .core.tensor import Tensor, preserve_format
from .core.torch_function import has_torch_function, state
from .dispatch.transform_tensor import active_levels
from .operations.creation.conversion import parse_to_arguments
from .operations.creation.from_data import tensor
from .operations.creation.gamma_sampling import dirichlet_block, standard_gamma_block
from .operations.creation.random import default_generator
from .operations.nn.softmax import softmax_backward_data
from .operations.reductions.segment import segment_reduce

Callee = TypeVar("Callee", bound=Callable[..., Any])


def _overridable(function: Callee) -> Callee:
    """Return a wrapper of ``function`` whose calls ``__torch_function__`` of the arguments may override."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = [each for each in args if type(each) is not Tensor and has_torch_function(type(each))]
        if found:
            return load_part("overrides").handle_torch_function(wrapped, found, *args, **kwargs)
        return function(*args, **kwargs)

    return wrapped  # type: ignore[return-value]


# -- Checks ------------------------------------------------------------------------------------------------------------

_UNNAMED = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement "
    "request to PyTorch.)"
)


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise ``error_type`` with the result of ``message`` unless ``cond``, a bool, is true."""
    if not isinstance(cond, bool):
        if isinstance(cond, Tensor):
            raise TypeError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert that all "
                "elements are true."
            )
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        if message is not None and not callable(message):
            raise TypeError("message must be a callable")
        raise error_type(_UNNAMED if message is None else str(message()))


def _check(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError unless ``cond`` is true."""
    _check_with(RuntimeError, cond, message)


def _check_value(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise ValueError unless ``cond`` is true."""
    _check_with(ValueError, cond, message)


def _check_index(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise IndexError unless ``cond`` is true."""
    _check_with(IndexError, cond, message)


def _check_type(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise TypeError unless ``cond`` is true."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise NotImplementedError unless ``cond`` is true."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: int | None = None) -> None:
    """Raise RuntimeError if ``i`` is negative or greater than ``max``."""
    _check_with(RuntimeError, i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise ``error_type`` unless all elements of the bool tensor ``cond`` are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError unless all elements of the bool tensor ``cond`` are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


@_overridable
def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError unless ``condition`` is true."""
    assert condition, message


def _assert_async(input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError unless ``input``, a tensor with one element, is not zero."""
    if not bool(input):
        raise RuntimeError(assert_msg)


# -- Numbers -----------------------------------------------------------------------------------------------------------


class SymInt:
    """Class of PyTorch's symbolic ints. It has no instances."""

    __module__ = "torch"


class SymFloat:
    """Class of PyTorch's symbolic floats. It has no instances."""

    __module__ = "torch"


class SymBool:
    """Class of PyTorch's symbolic bools. It has no instances."""

    __module__ = "torch"


@_overridable
def sym_int(a: Any) -> Any:
    """Return ``a`` as an int, rounded towards zero.

    >>> import retrograd as torch
    >>> torch.sym_int(3.7)
    3
    """
    return math.trunc(a)


@_overridable
def sym_float(a: Any) -> Any:
    """Return ``a`` as a float.

    >>> import retrograd as torch
    >>> torch.sym_float(3)
    3.0
    """
    return float(a)


@_overridable
def sym_not(a: Any) -> Any:
    """Return ``not a``.

    >>> import retrograd as torch
    >>> torch.sym_not(False)
    True
    """
    return not a


def _sym_choice(choose: Callable[..., Any], a: Any, b: Any) -> Any:
    chosen = choose(a, b)
    return float(chosen) if isinstance(a, float) or isinstance(b, float) else chosen


@_overridable
def sym_max(a: Any, b: Any) -> Any:
    """Return the greater one of two numbers, as a float if one of them is a float.

    >>> import retrograd as torch
    >>> torch.sym_max(3, 5)
    5
    """
    return _sym_choice(max, a, b)


@_overridable
def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller one of two numbers, as a float if one of them is a float.

    >>> import retrograd as torch
    >>> torch.sym_min(3, 5)
    3
    """
    return _sym_choice(min, a, b)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Return ``t`` if ``b`` is true, otherwise ``f``.

    >>> import retrograd as torch
    >>> torch.sym_ite(True, 1, 2)
    1
    """
    return t if b else f


def sym_sum(args: Iterable[Any]) -> Any:
    """Return the sum of ``args``.

    >>> import retrograd as torch
    >>> torch.sym_sum([1, 2, 3])
    6
    """
    return reduce(lambda a, b: a + b, args, 0)


# -- Functions of tensors ----------------------------------------------------------------------------------------------


def _shape_as_tensor(input: Tensor) -> Tensor:
    """Return the shape of ``input`` as a tensor."""
    return tensor(list(input.shape))


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """Return the gradient of ``softmax``, whose result is ``output``, with respect to its input."""
    return softmax_backward_data(grad_output, output, dim).to(input_dtype)


def _standard_gamma(self: Tensor, generator: Any = None) -> Tensor:
    """Return one sample of the gamma distribution with rate 1 for each shape parameter in ``self``."""
    stream = (generator or default_generator)._stream
    return standard_gamma_block(self, stream)


def _sample_dirichlet(self: Tensor, generator: Any = None) -> Tensor:
    """Return one sample of the Dirichlet distribution for each row of concentrations in ``self``."""
    stream = (generator or default_generator)._stream
    return dirichlet_block(self, stream)


# -- torch._C ----------------------------------------------------------------------------------------------------------


class Graph:
    """Class of TorchScript's graphs. It has no instances."""

    __module__ = "torch._C"


class Node:
    """Class of the nodes of TorchScript's graphs. It has no instances."""

    __module__ = "torch._C"


class Value:
    """Class of the values of TorchScript's graphs. It has no instances."""

    __module__ = "torch._C"


class ScriptMethod:
    """Class of the methods of TorchScript's modules. It has no instances."""

    __module__ = "torch._C"


class ScriptObject:
    """Class of TorchScript's objects. It has no instances."""

    __module__ = "torch._C"


class PyTorchFileReader:
    """Class of PyTorch's readers of checkpoints. It has no instances."""

    __module__ = "torch"


class DispatchKey(Enum):
    """Enumeration of kinds of implementations of operations; programs pass them to :class:`DispatchKeySet`."""

    __module__ = "torch._C"

    Undefined, CPU, CUDA, Meta, Python, Functionalize, FuncTorchBatched, ADInplaceOrView = range(8)
    AutogradOther, AutogradCPU, AutogradCUDA, AutocastCPU, AutocastCUDA, AutocastXPU, Autograd = range(8, 15)
    CompositeExplicitAutograd, CompositeImplicitAutograd = range(15, 17)


class DispatchKeySet:
    """Set of :class:`DispatchKey`. It has no effect, because operations do not choose implementations by keys."""

    __module__ = "torch._C"

    def __init__(self, *keys: DispatchKey) -> None:
        self._keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys | other._keys))

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys & other._keys))

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys - other._keys))

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """Return the set with ``key``."""
        return DispatchKeySet(*self._keys, key)

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """Return the set without ``key``."""
        return DispatchKeySet(*(self._keys - {key}))

    def has(self, key: DispatchKey) -> bool:
        """Whether ``key`` is in the set."""
        return key in self._keys


class _ExcludeDispatchKeyGuard(nullcontext[None]):
    """Context manager without effect, because operations do not choose implementations by keys."""

    __module__ = "torch._C"

    def __init__(self, set: DispatchKeySet) -> None:
        super().__init__()


_TensorMeta = type(Tensor)


def _log_api_usage_once(event: str) -> None:
    """Do nothing; PyTorch counts which parts of it are used."""


def _get_tracing_state() -> None:
    """Return None, because ``torch.jit.trace`` records nothing."""


def _are_functorch_transforms_active() -> bool:
    """Whether a transformation of ``torch.func``, such as ``vmap``, is active."""
    return bool(active_levels())


def _get_accelerator(check: bool | None = None) -> device:
    """Return the device of the GPU, or of the CPU if there is no GPU."""
    return device("cuda" if gpu_count() else "cpu")


def _get_privateuse1_backend_name() -> str:
    """Return the name of a kind of device that programs may add, as PyTorch has it at first."""
    return "privateuseone"


def _get_default_device() -> str:
    """Return the default device as text."""
    return str(get_default_device())


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Return the device, the dtype, ``non_blocking`` and the memory format of the arguments of ``Tensor.to``."""
    options = dict(kwargs)
    flags = [each for each in args if isinstance(each, bool)]
    non_blocking = bool(options.get("non_blocking", flags[0] if flags else False))
    place, dtype, _, layout = parse_to_arguments(args, options)
    return place, dtype, non_blocking, None if layout is preserve_format else layout


class _Functions:
    """Namespace of the functions that PyTorch implements in C++, such as ``torch._C._linalg``.

    It has the functions of the module ``part``, whose names here begin with ``prefix``.
    """

    def __init__(self, part: str, prefix: str, **own: Callable[..., Any]) -> None:
        self._part, self._prefix = part, prefix
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        module = load_part(self._part)
        public = "logsigmoid" if name == "log_sigmoid" else name.removeprefix(self._prefix)
        if not name.startswith(self._prefix) or public not in module.__all__:
            shown = self._part.replace("nn.functional", "nn")
            raise AttributeError(f"module 'torch._C._{shown}' has no attribute {name!r}", name=name, obj=self)
        return getattr(module, public)


_nn = _Functions("nn.functional", "", _parse_to=_parse_to)
_fft, _linalg, _special = (_Functions(part, f"{part}_") for part in ("fft", "linalg", "special"))

# -- Of torch ----------------------------------------------------------------------------------------------------------


def _cast(dtype: Any) -> Callable[[Tensor], Tensor]:
    """Return a function that converts a tensor to ``dtype``."""
    return lambda input, non_blocking=False: input.to(dtype)  # type: ignore[misc]


globals().update({
    f"_cast_{name}": _cast(getattr(dtypes, dtype))
    for name, dtype in {
        "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Half": "float16",
        "Float": "float32", "Double": "float64",
    }.items()
})  # fmt: skip


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Return, for each of ``size`` rows, the place of its first index in ``input``, sorted indices, and their number."""
    counts = input.bincount(minlength=size)
    starts = counts.new_zeros(size + 1)
    starts[1:] = counts.cumsum(0)
    return starts.to(dtypes.int32 if out_int32 else dtypes.int64)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Return the indices of a CSR matrix as two rows: its rows and its columns, exchanged if ``transpose``."""
    rows = crow_indices.new_tensor(range(len(crow_indices) - 1)).repeat_interleave(crow_indices.diff())
    pair = [col_indices, rows] if transpose else [rows, col_indices]
    made = col_indices.new_empty((2, len(col_indices)))
    made[0], made[1] = pair[0], pair[1]
    return made.to(dtypes.int32 if out_int32 else dtypes.int64)


def _segment_reduce(*args: Any, **kwargs: Any) -> Tensor:
    """Return ``torch.segment_reduce`` of the arguments."""
    return segment_reduce(*args, **kwargs)


def set_vital(name: str, attr: str, value: str) -> None:
    """Do nothing: no statistics of the process are kept.

    >>> import retrograd as torch
    >>> torch.set_vital("Dataloader", "enabled", "True")
    """


# -- Of torch._C -------------------------------------------------------------------------------------------------------

_has_xpu = False


def _current_autograd_node() -> Any:
    """Return the node of the graph that a backward pass is running, or None: not known."""
    return None


def _current_graph_task_id() -> int:
    """Return the number of the running backward pass, or -1."""
    plan = running_plan()
    return -1 if plan is None else id(plan)


def _get_cudnn_enabled() -> bool:
    """Return True, PyTorch's setting."""
    return True


def _is_alias_of(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same storage."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _is_torch_function_mode_enabled() -> bool:
    """Whether a ``TorchFunctionMode`` is active."""
    return bool(state()[1])


def _is_tracing() -> bool:
    """Return False: programs are not traced by ``torch.jit``."""
    return False


def _jit_set_profiling_executor(enabled: bool) -> bool:
    """Return True; nothing is changed."""
    return True


def _jit_set_profiling_mode(enabled: bool) -> bool:
    """Return True; nothing is changed."""
    return True


def _jit_can_fuse_on_cpu() -> bool:
    """Return False."""
    return False


def _jit_can_fuse_on_gpu() -> bool:
    """Return False."""
    return False


def _jit_override_can_fuse_on_cpu(enabled: bool) -> None:
    """Do nothing."""


def _jit_override_can_fuse_on_gpu(enabled: bool) -> None:
    """Do nothing."""


def _jit_set_nvfuser_enabled(enabled: bool) -> None:
    """Do nothing."""


def _jit_set_texpr_fuser_enabled(enabled: bool) -> None:
    """Do nothing."""


def _set_math_sdp_allow_fp16_bf16_reduction(enabled: bool) -> None:
    """Do nothing."""


# -- Dtypes of which no tensors exist ----------------------------------------------------------------------------------


class _Name:
    """Name of a dtype of PyTorch of which retrograd has no tensors; packages compare dtypes with it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


qint8, quint8, qint32, quint4x2, quint2x4 = map(_Name, ("qint8", "quint8", "qint32", "quint4x2", "quint2x4"))
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = [_Name(f"uint{count}") for count in range(1, 8)]
int1, int2, int3, int4, int5, int6, int7 = [_Name(f"int{count}") for count in range(1, 8)]
