"""PyTorch's argument errors for calls of public functions that failed.

When a public function raises an exception, :func:`explain` compares the arguments of the call with PyTorch's signatures
(``dispatch/signatures.py``). If none fits, the error of PyTorch's argument parser is raised instead. Therefore
functions need not check the types of their arguments, and a call that succeeds costs only a ``try``. A missing argument
has the value ``MISSING``, which supports no operation, so that the call raises an exception, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..compat.type_names import type_name
from ..core import torch_function
from ..core.tensor import Tensor
from . import signatures
from .given_arguments import as_given
from .operand_promotion import broadcast_error
from .torch_function_overrides import overridable

if TYPE_CHECKING:
    from ..core.typing import Args, Function
    from .typing import Result

__retrograd_call__ = True  # see user_frame.CALL_MARK


def explain(
    error: Exception, target: Function | None, space: str, name: str, values: dict[str, object], rest: tuple[object, ...],
    named: dict[str, object], defaults: dict[str, object],
) -> Exception | None:  # fmt: skip
    """Return the error of PyTorch for a failed call of the function ``name``, or None if ``error`` is to be raised.

    error     the exception that the call raised
    target    the Python function that the public function calls, or None
    space     the namespace of the function: ``torch``, ``Tensor``, ``linalg``, …
    values    the positional-or-keyword arguments by parameter name, in order
    rest      further positional arguments of the call
    named     further keyword arguments of the call
    defaults  the default values of the parameters, by name
    """
    args, named = as_given(values, rest, named, defaults, defaulted=False)
    if space == "Tensor" and args and not isinstance(args[0], Tensor):
        kind = type(args[0]).__name__
        return TypeError(f"descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply to a '{kind}' object")
    text = signatures.argument_error_text(space, name, args[1:] if space == "Tensor" else args, named)
    if text is None:
        text = _no_tensor(name, args) or _python_text(error, target, args, named, _full_name(space, name))
    inside = name in GIVEN_ON and (space in ("nn", "Tensor") or not signatures.signatures(space, name))
    if text is None and target is not None and inside:
        text = inner_text(name, target, args, named)
    if text is not None:
        return TypeError(text)
    if signatures.overflows(space, name, args[1:] if space == "Tensor" else args, named):
        return ValueError("Overflow when unpacking long long")
    given = {**dict(zip(values, args, strict=False)), **named}
    if (instead := ERROR_OVERRIDES.get(name)) is not None and (other := instead(given)) is not None:
        return other
    if isinstance(error, ValueError) and any(words in str(error) for words in NUMPYS_TOO_BIG):
        return RuntimeError(f"Storage size calculation overflowed with sizes={_ints(*args, named.get('size'))}")
    return _leaked(error, name, given)


#: By function, a callable that returns PyTorch's error for the arguments of a failed call (or None), where the error of
#: the kernel differs from it.
ERROR_OVERRIDES: dict[str, Callable[[dict[str, object]], Exception | None]] = {}


def retry_with_override(
    space: str, name: str, values: dict[str, object], rest: tuple[object, ...], named: dict[str, object],
    defaults: dict[str, object],
) -> Callable[[], Result] | None:  # fmt: skip
    """Return a function that repeats a failed call so that ``__torch_function__`` can override it, or None.

    A class that does not derive from Tensor is registered for overrides only here, after a call with an instance of the
    class has failed. None is returned if no argument has a class to register, or if the function ``name`` of ``space``
    cannot be overridden. The parameters have the same meaning as for :func:`explain`.
    """
    if not torch_function.register_overriding((*values.values(), *rest, *named.values()), Tensor):
        return None
    function = overridable(space, name)
    if function is None:
        return None
    return partial(function.repeat, *as_given(values, rest, named, defaults, 0, space == "Tensor"))


#: The beginnings of NumPy's errors for shapes with too many elements.
NUMPYS_TOO_BIG = ("array is too big", "Maximum allowed dimension")


def _ints(*given: object) -> list[int]:
    """Return all ints among ``given``, including the elements of tuples and lists."""
    flat = [each for one in given for each in (one if isinstance(one, (tuple, list)) else [one])]
    return [each for each in flat if each.__class__ is int]


def _leaked(error: Exception, name: str, given: dict[str, object]) -> Exception | None:
    """Return PyTorch's error in place of ``error``, an exception of NumPy or of an internal function, or None.

    :func:`explain` calls this function last, for calls that no signature in ``signatures.txt`` rejects. ``name`` is the
    called function's name, and ``given`` has the arguments by name. None means that ``error`` needs no replacement.
    """
    if isinstance(error, AttributeError) and error.name in INSIDE and not isinstance(error.obj, Tensor):
        for position, (key, value) in enumerate(given.items()):
            if value is error.obj:
                expected = f"'{key}' (position {position + 1}) must be Tensor, not {type_name(value)}"
                return TypeError(f"{name}(): argument {expected}")
    if isinstance(error, ValueError) and "broadcast" in str(error):
        return broadcast_error([each for each in given.values() if isinstance(each, Tensor)])
    if isinstance(error, TypeError) and type(error).__module__.startswith("numpy"):
        wrong = next((key for key, each in given.items() if isinstance(each, (str, bytes))), None)
        return None if wrong is None else TypeError(f"{name}(): argument '{wrong}' must be Number, not str")
    return None


#: Attributes of Tensors; an AttributeError about one means that an argument is no Tensor.
INSIDE = (
    "_array", "_grad_edge", "_view", "dtype", "is_complex", "is_floating_point", "ndim", "requires_grad", "shape",
)  # fmt: skip


def _full_name(space: str, name: str) -> str:
    return f"Tensor.{name}" if space == "Tensor" else name


#: Functions of any number of tensors, which PyTorch passes as a list to an internal function that checks them.
OF_TENSORS = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod", "chain_matmul", "meshgrid",
)  # fmt: skip


def _no_tensor(name: str, args: Args) -> str | None:
    """Return PyTorch's error text if another object was passed where a tensor is expected, else None.

    Only functions that accept any number of tensors, such as ``meshgrid``, are checked. ``name`` is the name of the
    function, and ``args`` are the positional arguments.
    """
    if name not in OF_TENSORS and not (name == "einsum" and args and isinstance(args[0], str)):
        return None
    start = int(name == "einsum")
    elements = args[start] if len(args) == start + 1 and isinstance(args[start], (tuple, list)) else args[start:]
    if all(isinstance(each, Tensor) for each in elements):
        return None
    if name.startswith("atleast") and len(elements) == 1 and elements is args:
        return (
            f"{name}() received an invalid combination of arguments - got ({type_name(args[0])}), but expected one of:"
        )
    for index, each in enumerate(elements):
        if not isinstance(each, Tensor):
            kind = type_name(each)
            return f"expected Tensor as element {index} in argument {start}, but got {kind}"
    return None


def _python_text(
    error: Exception, target: Function | None, args: tuple[object, ...], named: dict[str, object], name: str
) -> str | None:
    """Return Python's error text if the arguments of a call do not fit the parameters of ``target``, else None.

    ``args`` are the positional and ``named`` the keyword arguments, and ``name`` is the name of the function in the
    text. The text is that of the TypeError that a repeated call raises, or that of ``error``, which the first call has
    raised.
    """
    if target is None:
        return None
    text = str(error)
    try:
        inspect.signature(target).bind(*args, **named)
    except TypeError:
        try:
            target(*args, **named)
        except TypeError as raised:  # a variable for it would make a reference cycle with its traceback
            text = str(raised)
    else:
        return None
    return text.replace(f"{target.__qualname__}()", f"{name}()", 1)


#: Functions that PyTorch implements in Python, with the signature of the function that they call to check arguments.
GIVEN_ON = {
    "adaptive_max_pool1d": "adaptive_max_pool1d(Tensor input, int[1] output_size)",
    "affine_grid": "affine_grid_generator(object theta, object size, bool? align_corners)",
    "alpha_dropout": "alpha_dropout(Tensor input, float p, bool train)",
    "batch_norm": "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps)",
    "celu": "celu(Tensor input, Number alpha)",
    "cross_entropy": "cross_entropy_loss(Tensor input, Tensor target, Tensor? weight, int reduction, int ignore_index, "
    "float label_smoothing)",
    "ctc_loss": "ctc_loss(Tensor log_probs, Tensor targets, object input_lengths, object target_lengths, int blank, "
    "int reduction, bool zero_infinity)",
    "dropout": "dropout(Tensor input, float p, bool train)",
    "elu": "elu(Tensor input, Number alpha)",
    "embedding": "embedding(Tensor weight, Tensor indices)",
    "feature_alpha_dropout": "feature_alpha_dropout(Tensor input, float p, bool train)",
    "grid_sample": "grid_sampler(Tensor input, Tensor grid, int mode, int padding_mode, bool? align_corners)",
    "hardshrink": "hardshrink(Tensor input, Number lambd)",
    "hardtanh": "hardtanh(Tensor input, Number min_val, Number max_val)",
    "istft": "istft(Tensor input, int n_fft, int? hop_length, int? win_length, Tensor? window, bool center, bool normalized, "
    "bool? onesided, int? length, bool return_complex)",
    "layer_norm": "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps)",
    "leaky_relu": "leaky_relu(Tensor input, Number negative_slope)",
    "log_softmax": "log_softmax(int dim)",
    "lu": "_lu_with_info(bool pivot)",
    **{
        f"max_pool{n}d": f"max_pool{n}d(Tensor input, int[{n}] kernel_size, int[{n}]? stride, int[{n}] padding, "
        f"int[{n}] dilation, bool ceil_mode)"
        for n in (1, 2, 3)
    },
    "pad": "pad(Tensor input, int[] pad)",
    "poisson_nll_loss": "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction)",
    "rrelu": "rrelu(Tensor input, Number lower, Number upper, bool training)",
    "softmax": "softmax(int dim)",
    "stft": "stft(Tensor input, int n_fft, int? hop_length, int? win_length, Tensor? window, bool normalized, bool? onesided, "
    "bool? return_complex)",
    "threshold": "threshold(Tensor input, Number threshold, Number value)",
    "unflatten": "unflatten(int dim, int[] sizes)",
    "unique": "_unique2(Tensor input, bool sorted, bool return_inverse, bool return_counts)",
    "unique_consecutive": "unique_consecutive(Tensor input, bool return_inverse, bool return_counts)",
}
#: Parameters of those signatures whose arguments have another name in Python, or ("") are not passed unchanged.
GIVEN_AS = {"indices": "input", "mode": "", "padding_mode": "", "reduction": "", "train": "training"}


def inner_text(name: str, target: Function, args: tuple[object, ...], named: dict[str, object]) -> str | None:
    """Return PyTorch's error text for wrong arguments of ``name``, a function in ``GIVEN_ON``, or None.

    PyTorch implements such a function in Python. The function does not check its arguments but passes them to an
    internal function, whose signature ``GIVEN_ON`` contains and whose name the error shows. ``target`` is
    retrograd's function, and ``args`` and ``named`` are the arguments of the call.
    """
    line, given = _inner_call(name, target, args, named)
    try:
        line.check(given, {})
    except signatures.ArgumentMismatch as misfit:
        return str(misfit)
    return None


def inner_arguments(
    name: str, target: Function, args: tuple[object, ...], named: dict[str, object]
) -> list[tuple[str, object]] | None:
    """Return pairs (type of the parameter, argument) for a call of ``name``, a function in ``GIVEN_ON``.

    The result is None if the arguments are wrong. The parameters have the same meaning as for :func:`inner_text`.
    """
    if inner_text(name, target, args, named) is not None:
        return None
    line, given = _inner_call(name, target, args, named)
    return [(each.kind, value) for each, value in zip(line.parameters, given, strict=True)]


def _inner_call(
    name: str, target: Function, args: tuple[object, ...], named: dict[str, object]
) -> tuple[signatures.Signature, tuple[object, ...]]:
    bound = inspect.signature(target).bind(*args, **named)
    bound.apply_defaults()
    line = signatures.Signature(GIVEN_ON[name])
    return line, tuple([bound.arguments.get(GIVEN_AS.get(each.name, each.name), 0) for each in line.parameters])
