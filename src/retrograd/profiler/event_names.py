"""Names under which a profiler shows the calls of functions: the names of PyTorch's operations.

One call may be shown as several events. The name ``linear>addmm`` means an event ``linear`` with an event ``addmm``
inside. ``select+index`` means an event ``index`` after an event ``select`` of zero duration.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import FunctionType
from typing import Any

from ..core.tensor import Tensor
from ..dispatch.op import FUNCTIONS, METHODS, OPS
from ..dispatch.signatures import signatures
from ..runtime.lazy_functions import is_generated

Name = str | Callable[..., str]

#: Public namespaces, with the prefix of PyTorch's operations in them.
SPACES = {
    "retrograd": "", "retrograd.nn.functional": "", "retrograd.linalg": "linalg_", "retrograd.fft": "fft_",
    "retrograd.special": "special_", "retrograd.signal.windows": None, "retrograd.random": None,
}  # fmt: skip
#: Functions that are no operations in PyTorch, or only call others.
SILENT = frozenset({
    "apply_", "as_subclass", "asarray", "backward", "broadcast_shapes", "chain_matmul", "dim_order", "fork_rng",
    "from_numpy", "frombuffer", "gaussian_nll_loss", "get_rng_state", "gumbel_softmax", "initial_seed",
    "is_contiguous", "is_conj", "is_floating_point", "is_complex", "is_neg", "is_tensor", "is_storage", "lobpcg",
    "local_response_norm", "lp_pool1d", "lp_pool2d", "lp_pool3d", "manual_seed", "map2_", "map_",
    "multi_head_attention_forward", "multilabel_soft_margin_loss", "normalize", "numel", "numpy", "pca_lowrank", "register_hook",
    "retain_grad", "seed", "set_default_tensor_type", "set_rng_state", "softmin", "softsign", "storage", "stride",
    "svd_lowrank", "tanhshrink", "tolist", "triplet_margin_with_distance_loss", "typename", "unravel_index",
    "untyped_storage",
})  # fmt: skip
#: Names of PyTorch's operations that differ from those of the public functions, and the operations inside.
OTHERWISE = {
    "affine_grid": "affine_grid_generator", "cross_entropy": "cross_entropy_loss", "dropout1d": "feature_dropout",
    "dropout2d": "feature_dropout", "dropout3d": "feature_dropout", "fold": "col2im", "grid_sample": "grid_sampler",
    "logsigmoid": "log_sigmoid", "nll_loss": "nll_loss_nd", "as_tensor": "lift_fresh",
    "lu": "_lu_with_info", "mse_loss": "broadcast_tensors+mse_loss", "l1_loss": "broadcast_tensors+l1_loss",
    "smooth_l1_loss": "broadcast_tensors+smooth_l1_loss", "huber_loss": "broadcast_tensors+huber_loss",
    "tensor": "lift_fresh", "new_tensor": "lift_fresh", "H": "mH", "T": "numpy_T", "data": "detach",
    "__pow__": "pow", "__rpow__": "pow", "__ipow__": "pow_", "__mod__": "remainder", "__rmod__": "remainder",
    "__imod__": "remainder_", "__itruediv__": "div_", "__idiv__": "div_", "__rfloordiv__": "floor_divide",
    "__rlshift__": "bitwise_left_shift", "__rrshift__": "bitwise_right_shift", "__pos__": "positive",
    "__bool__": "is_nonzero>item", "linear": "linear>addmm", "item": "item>_local_scalar_dense",
    **dict.fromkeys(("__complex__", "__float__", "__index__", "__int__"), "item>_local_scalar_dense"),
    **dict.fromkeys(("bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "cpu", "cuda", "double", "float", "half", "int",
                     "long", "short", "to", "type", "type_as"), "to>_to_copy"),
    **{f"conv{n}d": f"conv{n}d>convolution" for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": f"conv_transpose{n}d>convolution" for n in (1, 2, 3)},
    "softmax": "softmax>_softmax", "log_softmax": "log_softmax>_log_softmax", "layer_norm": "layer_norm>native_layer_norm",
    "batch_norm": "batch_norm>native_batch_norm", "group_norm": "group_norm>native_group_norm",
}  # fmt: skip
#: The same for functions inside the package that are no operations (those of operations: the option ``event``).
INSIDE = {"_mt": "t", "_turned": "t", "turned_fast": "t"}
#: Operators whose PyTorch operation has the name of the Python method (``__and__``).
OPERATORS = ("and", "or", "xor", "lshift", "rshift", "iand", "ior", "ixor", "ilshift", "irshift")
#: Timed methods and properties of Tensor that are defined by hand, not generated from the table.
METHODS_TIMED = (
    "detach", "detach_", "__bool__", "__int__", "__float__", "__complex__", "__index__", "__pow__", "__ipow__", "__rpow__",
    "__mod__", "__imod__", "__rmod__", "__itruediv__", "__idiv__", "__rfloordiv__", "__rlshift__", "__rrshift__", "__pos__",
)  # fmt: skip
PROPERTIES_TIMED = ("T", "mT", "H", "mH", "real", "imag", "data")


# --- Names that depend on the arguments -----------------------------------------------------------------------------


def _getitem(input: Any, index: Any) -> str:
    """Return the event name for ``input[index]``: the PyTorch operations for the items of ``index``, joined by ``+``.

    For example, it is ``select+slice`` for ``x[0, 1:]``. Items that are tensors or lists are shown as one operation
    ``index`` at the end.
    """
    parts, names, gathers = index if index.__class__ is tuple else (index,), [], False
    for each in parts:
        if each is None or each.__class__ is bool:
            names.append("unsqueeze")
        elif each.__class__ is slice:
            if len(parts) == 1 or each != slice(None):
                names.append("slice")
        elif isinstance(each, Tensor) and each._array.ndim == 0 and each._array.dtype.kind in "iu":
            names.append("select")
        elif isinstance(each, (Tensor, list, tuple, range)) or getattr(each, "ndim", None):
            gathers = True
        elif each is not Ellipsis:
            names.append("select")
    return "+".join([*names, "index"] if gathers else names or ["alias"])


def _matmul(input: Any, other: Any = None, **rest: Any) -> str:
    """Return the event name for ``matmul``, such as ``matmul>mm``.

    The operation inside is ``dot`` or ``mv`` for vectors, ``mm`` for matrices, and otherwise usually ``bmm``.
    """
    first, second = (each._array.ndim if isinstance(each, Tensor) else 0 for each in (input, other))
    inner = {(1, 1): "dot", (2, 1): "mv", (1, 2): "mv", (2, 2): "mm"}.get((first, second))
    return f"matmul>{inner or ('mm' if second <= 2 else 'bmm')}"


def _interpolate(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
              recompute_scale_factor: Any = None, antialias: bool = False) -> str:  # fmt: skip
    """Return the event name for a call of ``interpolate``, such as ``upsample_bilinear2d``.

    The name depends on ``mode``, ``antialias`` and the number of dimensions of ``input``.
    """
    count = input._array.ndim - 2
    if mode == "area":
        return f"adaptive_avg_pool{count}d"
    name = mode.replace("nearest-exact", "nearest_exact")
    hidden = "_" if antialias or mode == "nearest-exact" else ""
    return f"{hidden}upsample_{name}{count}d{'_aa' if antialias else ''}"


def _max_pooling(name: str) -> Callable[..., str]:
    """Return a function that computes the event name for a call of ``name``, a max pooling function.

    The returned function is called with the arguments of the max pooling, because the event name depends on the
    argument ``return_indices``.
    """

    def named(*args: Any, return_indices: Any = False, **rest: Any) -> str:
        if return_indices is True or True in args[4:]:
            return f"{name}_with_indices" if "fractional" not in name and "adaptive" not in name else name
        return f"{name}>{name}_with_indices" if name in ("max_pool2d", "max_pool3d") else name

    return named


_INNER = {"relu": "clamp_min", "dropout": "native_dropout"}


def _inplace_option(name: str) -> Callable[..., str]:
    """Return a function that computes the event name for a call of ``name``, an activation function.

    The returned function is called with the arguments of the activation, because the event name depends on the argument
    ``inplace``.
    """
    under = _INNER.get(name)
    return lambda *args, inplace=False, **rest: name + "_" if inplace else f"{name}>{under}" if under else name


def _norm(input: Any, p: Any = "fro", dim: Any = None, **rest: Any) -> str:
    return "linalg_matrix_norm" if p == "nuc" else "linalg_vector_norm"


def _unique(
    input: Any, sorted: Any = True, return_inverse: Any = False, return_counts: Any = False, dim: Any = None
) -> str:
    return "_unique2" if dim is None else "unique_dim"


def _nonzero(input: Any, *, as_tuple: Any = False, **rest: Any) -> str:
    return "nonzero_numpy" if as_tuple else "nonzero"


def _split(tensor: Any, split_size: Any = 1, dim: Any = 0) -> str:
    return "split_with_sizes" if isinstance(split_size, (tuple, list)) else "split"


def _unfold(input: Any, *args: Any, **rest: Any) -> str:
    """Return the event name for ``Tensor.unfold`` or ``nn.functional.unfold``, which have different arguments."""
    return "unfold" if len(args) == 3 or "dimension" in rest else "im2col"


VARYING: dict[str, Name] = {
    "split": _split, "unfold": _unfold,
    "__getitem__": _getitem, "matmul": _matmul, "__matmul__": _matmul, "interpolate": _interpolate, "upsample": _interpolate,
    "norm": _norm, "unique": _unique, "nonzero": _nonzero,
    **{f"{each}{n}d": _max_pooling(f"{each}{n}d")
       for each in ("max_pool", "adaptive_max_pool", "fractional_max_pool") for n in (1, 2, 3)},
    **{each: _inplace_option(each) for each in (
        "alpha_dropout", "celu", "dropout", "elu", "feature_alpha_dropout", "hardsigmoid", "hardswish", "hardtanh",
        "leaky_relu", "mish", "relu", "relu6", "rrelu", "selu", "silu", "threshold")},
}  # fmt: skip


# --- Names of all functions -----------------------------------------------------------------------------------------


def shown_name(name: str, prefix: str = "") -> Name | None:
    """Return the event name of the public function ``name``, or None if profilers do not show its calls.

    The event name is a string, or a function that returns it for the arguments of a call.
    ``prefix`` is the prefix of PyTorch's operations in the namespace of the function, such as ``"linalg_"``.
    """
    if name in SILENT:
        return None
    if not prefix and name in VARYING:
        return VARYING[name]
    if name.startswith("__") and name[2:-2] in OPERATORS:
        return name
    return prefix + (OTHERWISE.get(name, name) if not prefix else name)


def _functions() -> Iterator[tuple[Any, str, str]]:
    """Yield a tuple (function, name, prefix) for each public function.

    The prefix, such as ``"linalg_"``, is that of PyTorch's operations in the namespace of the function.
    """
    for module, prefix in SPACES.items():
        if prefix is not None and module in sys.modules:
            for name, value in vars(sys.modules[module]).items():
                yield value, name, prefix
    for name, value in vars(Tensor).items():
        if name in PROPERTIES_TIMED:
            yield value.fget, name, ""
        elif not name.startswith("__") or name in VARYING or name in METHODS_TIMED or name[2:-2] in OPERATORS:
            yield value, name, ""


def name_of_function(function: Any) -> Name | None:
    """Return the event name of ``function``, or None if profilers do not show its calls.

    The event name is a string, or a function that returns it for the arguments of a call.
    """
    known = _public_names(sum(module in sys.modules for module in SPACES))
    return known[function] if function in known else _name_inside(function)


@functools.lru_cache(1)
def _public_names(imported: int) -> dict[FunctionType, Name | None]:
    """Return a dictionary from every public function to its event name, as :func:`name_of_function` returns it.

    ``imported`` is the number of namespaces, such as ``torch.fft``, that have been imported. The dictionary is cached
    until this number changes, because a new namespace has new functions.
    """
    names = {}
    for function, name, prefix in _functions():
        if function.__class__ is FunctionType and (
            is_generated(function) or name in METHODS_TIMED or name in PROPERTIES_TIMED
        ):
            names[function] = _with_prefix(shown_name(name, prefix))
    return names


@functools.cache
def _name_inside(function: Any) -> Name | None:
    """Return the event name of a function that is not public, or None if profilers do not show its calls.

    Only functions whose code retrograd generates for an operation (``runtime/lazy_functions.py``) are shown.
    """
    return _with_prefix(_inside(function)) if is_generated(function) else None


def _with_prefix(name: Name | None) -> Name | None:
    return with_aten_prefix(name) if isinstance(name, str) else name


_OVERLOAD = re.compile("_(true|tensor|number|floor|trunc|scalar|block|arrays|all|dim)$")
_OWN = "retrograd::"


def _inside(function: Any) -> Name | None:
    """Return the event name, without ``aten::``, of a function that retrograd generates for an operation.

    The result is None if profilers do not show its calls. For an operation without a public function, the event name is
    usually derived from the name of its ``grad_fn``: ``addmm`` from ``AddmmBackward0``.
    """
    op = getattr(function, "op", None)
    if op is None:
        return shown_name(function.__name__)
    known = _of_operation(op)
    return known + "_" if function.over and known.__class__ is str else known


def _of_operation(op: Any) -> Any:
    name = _OVERLOAD.sub("", op.name)
    if op.event is not None:
        return op.event
    public = name in FUNCTIONS or name in METHODS or name in vars(import_module("retrograd.nn.functional"))
    if public or name.endswith(("_backward", "_backward_data")):
        return shown_name(name)
    from_node = re.sub(
        r"(?<=[a-z])(?=[A-Z])|(?<=\d)(?=[A-Z][a-z])", "_", re.sub(r"Backward\d+$", "", op.backward)
    ).lower()
    return _OWN + name if from_node in (name, op.name) else from_node


def name_in_rules(name: str) -> str:
    """Return the event name of the kernel (function on arrays) ``name`` for its calls by derivative formulas."""
    found = _of_operation(OPS[name]) if name in OPS else INSIDE.get(name, name)
    return with_aten_prefix(found if found.__class__ is str else name)


@functools.cache
def with_aten_prefix(name: str) -> str:
    """Return ``name`` with ``aten::`` before each of its parts that has no such prefix.

    >>> with_aten_prefix("mul"), with_aten_prefix("matmul>mm"), with_aten_prefix("retrograd::put_along")
    ('aten::mul', 'aten::matmul>aten::mm', 'retrograd::put_along')
    """
    return re.sub(r"(?<![\w:])\w+(?![\w:])", r"aten::\g<0>", name)


#: Numbers of arguments of operations that are missing in the table of signatures.
_COUNTS = {
    "avg_pool2d": 7, "avg_pool3d": 7, "binary_cross_entropy": 4, "cross_entropy_loss": 6, "elu": 4, "elu_": 4, "gelu": 2,
    "glu": 2, "hardtanh": 3, "huber_loss": 4, "leaky_relu": 2, "linalg_matrix_norm": 5, "linalg_vector_norm": 5,
    "max_pool2d_with_indices": 6, "max_pool3d_with_indices": 6, "multi_margin_loss": 6, "nll_loss_nd": 5, "slice": 5,
    "smooth_l1_loss": 4, "softplus": 3, "softshrink": 2,
}  # fmt: skip


@functools.cache
def arguments_of(name: str, free: int, keywords: tuple[str, ...] = ()) -> int:
    """Return the number of arguments that PyTorch's profiler records for a call of its operation ``name``.

    ``free`` is the number of positional arguments of the call, and ``keywords`` are the names of its keyword arguments.
    The result is the number of parameters in PyTorch's signature, because omitted arguments with default values are
    recorded too. If the call fits several signatures, the shortest is used. For an unknown operation, the result is the
    number of arguments passed.

    In the example, ``add(input, other, *, alpha)`` has 3 parameters. A call of ``sum`` with 1 positional argument fits
    ``sum(input, *, dtype)``, which has 2 parameters. A call with 2 fits only ``sum(input, dim, keepdim, *, dtype)``,
    which has 4.

    >>> arguments_of("add", 2), arguments_of("sum", 1), arguments_of("sum", 2), arguments_of("nothing", 3)
    (3, 2, 4, 3)
    """
    passed = free + len(keywords)
    if name in _COUNTS:
        return max(_COUNTS[name], passed)
    space, _, short = name.rpartition("_") if name.startswith(("linalg_", "fft_", "special_")) else ("torch", "", name)
    for where, called, own in ((space, short, 0), ("nn.functional", name, 0), ("Tensor", name, 1)):
        if known := [one for one in signatures(where, called) if not one.hidden]:
            taking = [
                one for one in known if own + one.positional >= free and {*keywords} <= {e.name for e in one.parameters}
            ]
            return min(
                own + sum(each.name not in ("out", "requires_grad") for each in one.parameters)
                for one in taking or known
            )
    return passed
