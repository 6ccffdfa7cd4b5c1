"""``autocast``: a context manager that runs matrix products in half precision, and losses in float32.

The lists of functions that run in half precision or in float32 are those of PyTorch for the CPU or for CUDA. While
autocast is enabled, a handler intercepts the calls of these functions and converts their arguments. Calls inside the
package are intercepted too (Note [Interception] in ``dispatch/intercept.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from types import FunctionType
from typing import Any

from .. import cuda, linalg
from .. import fft as fft_module
from ..compat.type_names import type_name
from ..core import devices, dtypes, torch_function
from ..core.dtypes import dtype, float32, float64
from ..core.grad_mode import modes_to_restore, recording
from ..core.graph import AccumulateGrad
from ..core.tensor import Tensor
from ..dispatch.declare import FUNCTIONS, METHODS
from ..dispatch.intercept import GO_ON, HANDLERS, Call, Handler
from ..dispatch.op import Op
from ..nn import functional
from ..operations.creation.conversion import cast_to
from ..runtime.user_frame import warn

#: Operations that PyTorch runs in half precision …
LOWER = """
    __matmul__ __rmatmul__ addbmm addmm affine_grid affine_grid_generator baddbmm bmm conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d linalg.vecdot linear lstm matmul mm prelu rnn_relu rnn_tanh
    scaled_dot_product_attention"""
#: … in float32 …
FULL = """
    adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool3d_with_indices avg_pool3d binary_cross_entropy
    binary_cross_entropy_with_logits cdist cholesky cholesky_inverse cholesky_solve cosine_embedding_loss cross_entropy
    ctc_loss fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
    fractional_max_pool3d_with_indices geqrf grid_sample grid_sampler hinge_embedding_loss huber_loss inverse kl_div l1_loss
    linalg.cholesky linalg.cholesky_ex linalg.cond linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh
    linalg.householder_product linalg.inv linalg.inv_ex linalg.lstsq linalg.matrix_rank linalg.qr linalg.solve linalg.svd
    linalg.svdvals linalg.tensorinv linalg.tensorsolve local_response_norm lu lu_solve margin_ranking_loss max_pool3d max_unpool1d
    max_unpool2d max_unpool3d mse_loss multi_margin_loss multilabel_margin_loss nanquantile nll_loss orgqr ormqr pad
    pca_lowrank pinverse poisson_nll_loss polar prod qr quantile smooth_l1_loss soft_margin_loss stft svd svd_lowrank trace
    triangular_solve triplet_margin_loss view_as_complex"""
#: … only if a condition on the arguments is met …
ONLY_IF: dict[str, Callable[..., bool]] = {
    "inner": lambda *args: args[0].dim() == args[1].dim() == 1,
    "l1_loss": lambda *args, **kwargs: _unweighted(*args, **kwargs),
    "local_response_norm": lambda *args, **kwargs: args[0].dim() > 3,
    "lstm": lambda *args, **kwargs: not isinstance(args[1], Tensor),  # packed sequences keep their dtype
    "max_pool3d": lambda *args, **kwargs: not (args[6] if len(args) > 6 else kwargs.get("return_indices", False)),
    "mse_loss": lambda *args, **kwargs: _unweighted(*args, **kwargs),
    "pad": lambda *args, **kwargs: _repeats(*args, **kwargs),
    "tensordot": lambda *args, **kwargs: _contracts_all(*args, **kwargs),
}
#: … with unchanged operands and autocast disabled inside …
AS_IT_IS = "inner tensordot"
#: … in the dtype of the first tensor …
AS_THE_FIRST = "gru"
#: … and in the widest dtype of its tensors.
WIDEST = "cat index_copy stack"


def _repeats(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> bool:
    return mode == "replicate" or (mode == "reflect" and len(pad) < 6)


def _unweighted(input: Tensor, target: Tensor, *old: Any, weight: Any = None, **options: Any) -> bool:
    return weight is None and (len(old) < 4 or old[3] is None)


def _contracts_all(a: Tensor, b: Tensor, dims: Any = 2, *rest: Any, **options: Any) -> bool:
    count = dims if isinstance(dims, int) else len(dims[0]) if isinstance(dims[0], (list, tuple)) else 1
    return a.dim() == b.dim() == count


_DEVICES = ("cpu", "cuda", "mps", "xpu", "mtia", "hpu", "maia", "xla", "ipu")


_on: ContextVar[frozenset[str]] = ContextVar("autocast", default=frozenset())
_dtypes: ContextVar[dict[str, dtype] | None] = ContextVar("autocast_dtypes", default=None)
_caching: ContextVar[bool] = ContextVar("autocast_cache", default=True)
#: Cache of cast leaves, for the outermost context: the leaf and its copy, by identity and dtype.
_cast_cache: ContextVar[dict[Any, tuple[Tensor, Tensor]] | None] = ContextVar("autocast_kept", default=None)


# -- Casting of arguments ---------------------------------------------------------------------------------------------


def _lower(x: Tensor, found: list[Tensor], short: dtype) -> dtype:
    return short


def _full(x: Tensor, found: list[Tensor], short: dtype) -> dtype:
    return float32


def _widest(x: Tensor, found: list[Tensor], short: dtype) -> dtype:
    return float32 if any(each.dtype is float32 for each in found) else short


def _first(x: Tensor, found: list[Tensor], short: dtype) -> dtype:
    return found[0].dtype


def _own(x: Tensor, found: list[Tensor], short: dtype) -> dtype:
    return x.dtype


#: Rules for functions whose condition in ``ONLY_IF`` is not met.
_FALLBACK_RULES = {"lstm": _first}


class _Casting(Handler):
    """Handler of function calls that converts tensor arguments while autocast is enabled.

    A dtype rule selects the dtype to which the arguments of a function are converted. It is a function
    ``rule(x, tensors, half)``, which returns the dtype for the argument ``x``. ``tensors`` are the floating-point
    tensors among the arguments of the call, except those of dtype float64, and ``half`` is the half-precision dtype of
    autocast.
    """

    def __init__(self) -> None:
        self.rules: dict[Any, Callable[..., dtype]] = {}  # see _key_of
        self.known: dict[Any, Any] = {}  # the rules of the functions that were called inside autocast

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.known.clear()

    def wanted(self, function: Any) -> Any:
        """Return the dtype rule of ``function``, or None if this function has no rule or if autocast is disabled."""
        if not _on.get():
            return None
        try:
            return self.known[function]
        except KeyError:
            self.rules = self.rules or _rules()
            found = self.known[function] = self.rules.get(_key_of(function))
            return found

    def around(self, known: Any, call: Call) -> Any:
        """Run ``call`` with converted arguments and return its result; ``known`` is the dtype rule of the function.

        If the arguments must not be converted, for example because the argument ``out`` is passed, the result is
        ``GO_ON``. The function then runs with its original arguments.

        If ``known`` marks a function that does nothing while autocast is enabled, the result is None.
        """
        on, args, kwargs = _on.get(), call.args, call.kwargs
        if kwargs.get("out") is not None:
            return GO_ON
        if known is _NOTHING:
            return None
        name = _name_of(call.function)
        rule = known if name not in ONLY_IF or ONLY_IF[name](*args, **kwargs) else _FALLBACK_RULES.get(name)
        if rule is None:
            return GO_ON
        found: list[Tensor] = []
        for each in (*args, *kwargs.values()):
            _gather(each, found)
        kind = "cuda" if any(devices.device_of(each._array) != devices.CPU for each in found) else "cpu"
        if kind not in on:
            return GO_ON
        short = _half_precision_dtype(kind)
        chosen = [each for each in found if _eligible(each)]
        try:
            _on.set(on - {kind})
            call.args = tuple([_converted(each, rule, chosen, short) for each in args])
            call.kwargs = {name: _converted(each, rule, chosen, short) for name, each in kwargs.items()}
            result = call.go_on()
            _on.set(on)
        except BaseException:  # an interrupt between the last statements, too
            _on.set(on)
            raise
        return result


def _gather(value: Any, found: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _gather(each, found)


def _eligible(x: Tensor) -> bool:
    dtype = dtypes.dtype_of(x._array.dtype)  # not x.dtype, which would be intercepted
    return dtype.is_floating_point and dtype is not float64


def _converted(value: Any, rule: Callable[..., dtype], found: list[Tensor], short: dtype) -> Any:
    if isinstance(value, Tensor):
        if not _eligible(value):
            return value
        target = rule(value, found, short)
        return value if dtypes.dtype_of(value._array.dtype) is target else _cast(value, target)
    if isinstance(value, (list, tuple)) and any(isinstance(each, (Tensor, list, tuple)) for each in value):
        return type(value)([_converted(each, rule, found, short) for each in value])
    return value


def _convert(x: Tensor, target: dtype) -> Tensor:
    """Return ``x`` converted to the dtype ``target``, by the public ``to`` only if a profiler may show the call."""
    return cast_to(x, target) if len(HANDLERS) < 2 else x.to(target)


def _cast(x: Tensor, target: dtype) -> Tensor:
    """Return ``x`` converted to the dtype ``target``.

    If ``x`` is a float32 leaf that requires gradients, such as a weight, the result is cached until the outermost
    ``autocast`` ends.
    """
    kept = _cast_cache.get()
    # Not x.requires_grad and x.dtype: handlers would intercept them.
    leaf = x._view is None and x._grad_edge.__class__ is AccumulateGrad
    worth = leaf and x._array.dtype == float32.numpy and target is not float32
    if kept is None or not worth or not _caching.get() or not recording():
        return _convert(x, target)
    key = id(x), target
    if key not in kept:
        kept[key] = x, _convert(x, target)
    return kept[key][1]


def _key_of(function: Any) -> Any:
    """Return the key under which the dtype rule of ``function`` is stored, or None for an in-place function.

    Several functions may be generated from the same object; their key is this object. It is the ``Op`` that describes
    an operation, or a Python function for which a wrapper is generated. The key of any other function is the function
    itself.
    """
    front = getattr(function, "front", None)
    if front is not None:
        return front.target
    if (op := getattr(function, "op", None)) is not None:
        return None if function.over else op
    space = function.__globals__ if function.__class__ is FunctionType else {}
    return space["target"] if "write" in space and "target" in space else function


def _name_of(function: Any) -> str:
    key = _key_of(function)
    return str(key.name if key.__class__ is Op else key.__name__)


def _nothing() -> None:
    """Dtype rule that is never called; it marks functions that do nothing while autocast is enabled."""


_NOTHING: Any = _nothing


def _rules() -> dict[Any, Any]:
    """Return a dictionary from the key of each function that autocast affects to the dtype rule of the function.

    The keys are results of :func:`_key_of`.
    """
    from ..nn.modules.rnn import RNNBase  # imported with the first autocast context

    found: dict[Any, Any] = {RNNBase._check_dtype: _NOTHING}
    fourier = " ".join(name for name in fft_module.__all__ if not name.endswith(("freq", "shift")))
    for names, rule in ((LOWER, _lower), (WIDEST, _widest), (FULL, _full), (AS_THE_FIRST, _first), (AS_IT_IS, _own)):
        for name in names.split():
            space, _, last = name.rpartition(".")
            places: list[Any] = [FUNCTIONS.get(last), METHODS.get(last), vars(functional).get(last)]
            if space:
                places = [FUNCTIONS.get(f"linalg_{last}"), METHODS.get(f"linalg_{last}"), vars(linalg).get(last)]
            for place in filter(None, places):
                found.setdefault(_key_of(place), rule)
    for name in fourier.split():
        found.setdefault(_key_of(vars(fft_module)[name]), _full)
    return found


CASTING = _Casting()


# -- The state --------------------------------------------------------------------------------------------------------


def _device(device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise TypeError(f"argument 'device_type' must be str, not {type_name(device_type)}")
    return devices.device(device_type).type


def _set_enabled(kind: str, enabled: bool) -> None:
    before = _on.get()
    if (kind in before) == enabled:
        return
    handlers = torch_function.handlers()
    try:
        CASTING.__enter__() if enabled else CASTING.__exit__()
        _on.set(before | {kind} if enabled else before - {kind})
    except BaseException:  # an interrupt
        if _on.get() is before and torch_function.handlers() is not handlers:
            CASTING.__exit__() if enabled else CASTING.__enter__()
        raise


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is enabled for ``device_type``, which is ``"cpu"`` or ``"cuda"``.

    >>> import retrograd as torch
    >>> with torch.autocast("cpu"):
    ...     print(torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda"))
    True False
    """
    return _device(device_type) in _on.get()


def set_autocast_enabled(*args: Any) -> None:
    """Enable or disable autocast for a device type, as in ``set_autocast_enabled("cpu", True)``.

    With one argument, the device type is ``"cuda"``.

    >>> import retrograd as torch
    >>> torch.set_autocast_enabled("cpu", True)
    >>> torch.is_autocast_enabled("cpu")
    True
    >>> torch.set_autocast_enabled("cpu", False)
    """
    kind, enabled = args if len(args) == 2 else ("cuda", *args)
    _set_enabled(_device(kind), enabled)


def get_autocast_dtype(device_type: str) -> dtype:
    """Return the half-precision dtype of autocast for ``device_type``.

    The default is bfloat16 for ``"cpu"`` and float16 for ``"cuda"``.

    >>> import retrograd as torch
    >>> torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("cuda")
    (torch.bfloat16, torch.float16)
    """
    return _half_precision_dtype(_device(device_type))


def _half_precision_dtype(kind: str) -> dtype:
    return (_dtypes.get() or {}).get(kind, dtypes.bfloat16 if kind in ("cpu", "hpu", "mtia", "xla") else dtypes.float16)


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the half-precision dtype of autocast for ``device_type`` to ``dtype``.

    >>> import retrograd as torch
    >>> torch.set_autocast_dtype("cpu", torch.float16)
    >>> torch.get_autocast_dtype("cpu")
    torch.float16
    >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    _dtypes.set({**(_dtypes.get() or {}), _device(device_type): dtype})


def is_autocast_cache_enabled() -> bool:
    """Whether autocast caches the weights that it converts to half precision.

    >>> import retrograd as torch
    >>> torch.is_autocast_cache_enabled()
    True
    """
    return _caching.get()


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Enable autocast's cache of converted weights if ``enabled`` is true, otherwise disable it.

    >>> import retrograd as torch
    >>> torch.set_autocast_cache_enabled(False)
    >>> torch.is_autocast_cache_enabled()
    False
    >>> torch.set_autocast_cache_enabled(True)
    """
    _caching.set(enabled)


def clear_autocast_cache() -> None:
    """Delete the converted weights from autocast's cache.

    >>> import retrograd as torch
    >>> torch.clear_autocast_cache() is None
    True
    """
    kept = _cast_cache.get()
    if kept is not None:
        kept.clear()


def _warn_deprecated(name: str, new: str) -> None:
    warn(f"torch.{name} is deprecated. Please use torch.{new} instead.", DeprecationWarning)


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is enabled on the CPU (deprecated: use ``is_autocast_enabled("cpu")``).

    >>> import retrograd as torch
    >>> with torch.autocast("cpu"):
    ...     print(torch.is_autocast_cpu_enabled())
    True
    """
    _warn_deprecated("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Enable or disable autocast on the CPU (deprecated: use ``set_autocast_enabled("cpu", enabled)``).

    >>> import retrograd as torch
    >>> torch.set_autocast_cpu_enabled(True)
    >>> torch.is_autocast_enabled("cpu")
    True
    >>> torch.set_autocast_cpu_enabled(False)
    """
    _warn_deprecated("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> dtype:
    """Return the dtype of autocast on the CPU (deprecated: use ``get_autocast_dtype("cpu")``).

    >>> import retrograd as torch
    >>> torch.get_autocast_cpu_dtype()
    torch.bfloat16
    """
    _warn_deprecated("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Set the dtype of autocast on the CPU (deprecated: use ``set_autocast_dtype("cpu", dtype)``).

    >>> import retrograd as torch
    >>> torch.set_autocast_cpu_dtype(torch.float16)
    >>> torch.get_autocast_dtype("cpu")
    torch.float16
    >>> torch.set_autocast_cpu_dtype(torch.bfloat16)
    """
    _warn_deprecated("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> dtype:
    """Return the dtype of autocast on GPUs (deprecated: use ``get_autocast_dtype("cuda")``).

    >>> import retrograd as torch
    >>> torch.get_autocast_gpu_dtype()
    torch.float16
    """
    _warn_deprecated("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """Set the dtype of autocast on GPUs (deprecated: use ``set_autocast_dtype("cuda", dtype)``).

    >>> import retrograd as torch
    >>> torch.set_autocast_gpu_dtype(torch.bfloat16)
    >>> torch.get_autocast_dtype("cuda")
    torch.bfloat16
    >>> torch.set_autocast_gpu_dtype(torch.float16)
    """
    _warn_deprecated("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)


def is_autocast_available(device_type: str) -> bool:
    """Whether PyTorch supports autocast for ``device_type``, even if this machine has no such device.

    >>> import retrograd as torch
    >>> torch.amp.is_autocast_available("cpu")
    True
    """
    return _device(device_type) in _DEVICES


class autocast:
    """Context manager and decorator in which matrix products run in half precision.

    Convolutions, matrix products and attention convert their tensors to ``dtype``. Losses and matrix decompositions
    convert their tensors to float32. Other operations are unchanged. A weight that is used several times is converted
    only once.

    Args:
        device_type: ``"cpu"`` or ``"cuda"``; tensors on the other type of device are unchanged.
        dtype: bfloat16 or float16. The default is bfloat16 on the CPU and float16 on a GPU.
        enabled: if false, autocast is disabled inside.
        cache_enabled: if true, converted weights are cached until the outermost ``autocast`` ends.

    >>> import retrograd as torch
    >>> x, w = torch.ones(2, 2), torch.ones(2, 2)
    >>> with torch.autocast("cpu"):
    ...     y = x @ w
    >>> y.dtype, (x @ w).dtype
    (torch.bfloat16, torch.float32)

    See https://docs.pytorch.org/docs/stable/amp.html.
    """

    __module__ = "torch.amp.autocast_mode"

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        kind = devices.device(device_type).type
        if not is_autocast_available(kind):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{kind}'")
        self.fast_dtype = get_autocast_dtype(kind) if dtype is None else dtype
        self.device = kind
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._possible(enabled)

    def _possible(self, enabled: bool) -> bool:
        """Whether autocast supports the device and the dtype of this context manager; if not, issue a warning.

        The parameter ``enabled`` is not used.
        """
        if self.device == "cuda" and not cuda.is_available():
            warn("CUDA is not available or torch_xla is imported. Disabling autocast.")
            return False
        if self.device == "cpu" and self.fast_dtype not in (dtypes.bfloat16, dtypes.float16):
            warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
            )
            return False
        return True

    def __enter__(self) -> autocast:
        self.before = getattr(self, "before", [])
        before = self.device in _on.get(), _dtypes.get(), _caching.get(), _cast_cache.get()
        depth = len(self.before)
        try:
            self.before.append(before)
            _set_enabled(self.device, self._enabled)
            set_autocast_dtype(self.device, self.fast_dtype)
            _caching.set(self._cache_enabled)
            if _cast_cache.get() is None:
                _cast_cache.set({})
        except BaseException:  # an interrupt: __exit__ is not called
            self._restore(*before)
            del self.before[depth:]
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._restore(*self.before[-1])
        except BaseException:  # an interrupt
            self._restore(*self.before[-1])
            raise
        finally:
            del self.before[-1]

    def _restore(self, on: bool, chosen: Any, keeps: bool, kept: Any) -> None:
        """Restore the settings that were stored when the block was entered; a second call has no effect."""
        _set_enabled(self.device, on)
        _dtypes.set(chosen)
        _caching.set(keeps)
        _cast_cache.set(kept)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls ``func`` inside this context manager."""

        @functools.wraps(func)
        def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return decorate_autocast


def _settings() -> list[autocast]:
    """Return context managers that restore the present settings of autocast."""
    keeps = is_autocast_cache_enabled()
    return [autocast(kind, get_autocast_dtype(kind), is_autocast_enabled(kind), keeps) for kind in ("cpu", "cuda")]


modes_to_restore.append(_settings)


def _as_dtype(value: Any, kind: str, target: dtype) -> Any:
    """Return ``value`` with its floating-point tensors on the device type ``kind`` converted to ``target``.

    ``value`` is a tensor, or a list, tuple or dict that may contain tensors at any depth. Float64 tensors are not
    converted.
    """
    if isinstance(value, Tensor):
        return value.to(target) if _eligible(value) and value.device.type == kind else value
    if isinstance(value, dict):
        return {_as_dtype(key, kind, target): _as_dtype(each, kind, target) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        found = (_as_dtype(each, kind, target) for each in value)
        return type(value)(*found) if hasattr(value, "_fields") else type(value)(found)
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorate ``fwd``, the ``forward`` of a custom Function, for use with autocast.

    If ``cast_inputs`` is None, ``fwd`` runs with autocast as in the caller. If ``cast_inputs`` is a dtype and autocast
    is enabled for ``device_type``, the tensor arguments are converted to this dtype, and ``fwd`` runs with autocast
    disabled. If ``fwd`` is None, the result is a decorator.

    >>> import retrograd as torch
    >>> class Twice(torch.autograd.Function):
    ...     forward = staticmethod(torch.amp.custom_fwd(lambda ctx, x: 2 * x, device_type="cpu"))
    ...     backward = staticmethod(torch.amp.custom_bwd(lambda ctx, gradient: 2 * gradient, device_type="cpu"))
    >>> x = torch.ones(1, requires_grad=True)
    >>> Twice.apply(x).backward()
    >>> x.grad
    tensor([2.])
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = is_autocast_enabled(device_type)
            return fwd(*args, **kwargs)
        used = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = False
        if not used:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_as_dtype(args, device_type, cast_inputs), **_as_dtype(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorate ``bwd``, the ``backward`` of a custom Function, for use with autocast.

    ``bwd`` runs with autocast enabled if autocast was enabled inside the ``forward`` of the same call. The ``forward``
    must be decorated with :func:`custom_fwd`. If ``bwd`` is None, the result is a decorator.

    >>> import retrograd as torch
    >>> class Twice(torch.autograd.Function):
    ...     forward = staticmethod(torch.amp.custom_fwd(lambda ctx, x: 2 * x, device_type="cpu"))
    ...     backward = staticmethod(torch.amp.custom_bwd(lambda ctx, gradient: 2 * gradient, device_type="cpu"))
    >>> x = torch.ones(1, requires_grad=True)
    >>> Twice.apply(x).backward()
    >>> x.grad
    tensor([2.])
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd


__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
