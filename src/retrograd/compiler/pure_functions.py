"""Declarations of the public functions that may be deferred: their result depends on their arguments alone.

A pure function reads no state, draws no random numbers and writes nothing, and neither an error nor the shape of its
result depends on elements. The elementwise operations and views are pure, except those in ``IMPURE``; other functions
are pure only if their name is in ``OF_ONE`` or ``OF_SEVERAL``. Conditions on arguments that no name shows
(``inplace=True``, the running statistics of batch normalisation, dropout in attention, a tensor as a dimension) are
noticed when the call is recorded: by the versions of its arguments, the state of the random generator and the reads of
elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy
from numpy import dtype, int64, ndarray

from ..autograd.backward import grad
from ..core.lazy_tensor import Lazy
from ..core.tensor import Tensor
from ..kernels.gather_scatter import all_in_range
from ..optim.optimizer import Optimizer

if TYPE_CHECKING:
    from ..core.typing import Args, Function, Kwargs

#: Kinds of functions: deferred; deferred if only the first argument is a tensor; new tensors, without operands;
#: metadata, which no deferred operation changes; reads of elements; losses of class indices, deferred if the indices are
#: known to be in range; compositions of functions, which are deferred one by one; functions that set ``grad`` to None;
#: ``backward``; ``autograd.grad``; functions of a tensor and indices, deferred if the indices are known to be in range.
#: All other functions have the kind ``OTHER``.
PURE, PURE_OF_ONE, FACTORY, METADATA, READS, OTHER = "pure", "pure of one", "factory", "metadata", "reads", "other"
CLASS_LOSS, COMPOSITION, CLEARS_GRAD, BACKWARD = "class loss", "composition", "clears grad", "backward"
INDEXING, GRAD = "indexing", "grad"

#: Elementwise operations and views whose errors or results depend on more than their arguments.
IMPURE = frozenset(
    """
    as_strided_block slice_inverse_block rrelu_with_noise view_as_complex view_as_real bitwise_left_shift bitwise_right_shift
    gcd lcm
    """.split()  # noqa: SIM905
)
#: Elementwise operations whose errors depend on elements if they compute integers.
INTEGER_ERRORS = frozenset(
    """
    div_floor div_trunc divided floor_divide fmod_number fmod_tensor pow_of_number pow_scalar pow_tensor remainder_number
    remainder_of_number remainder_tensor remainder fmod pow float_power __pow__ __rpow__ __mod__ __rmod__ __floordiv__
    __rfloordiv__ div divide true_divide ldexp
    """.split()  # noqa: SIM905
)
#: Pure functions of ``torch``, ``nn.functional`` and Tensor with several operands, besides elementwise operations.
OF_SEVERAL = frozenset(
    """
    __matmul__ __rmatmul__ __pow__ __rpow__ __rsub__ __mod__ __rmod__ __floordiv__ __rfloordiv__ __rdiv__ __and__ __or__
    __xor__
    add addbmm addcdiv addcmul addmm addmv addr baddbmm batch_norm bilinear binary_cross_entropy_with_logits bmm cat cdist
    chain_matmul clamp clamp_max clamp_min clip column_stack concat concatenate conv1d conv2d conv3d conv_transpose1d
    conv_transpose2d conv_transpose3d convolution copysign cosine_embedding_loss cosine_similarity dist div divide dot
    dstack expand_as float_power fmod gaussian_nll_loss group_norm hinge_embedding_loss hstack huber_loss inner
    instance_norm kl_div kron l1_loss layer_norm lerp linear margin_ranking_loss masked_fill matmul mm mse_loss mv
    native_group_norm native_layer_norm outer pairwise_distance poisson_nll_loss pow prelu remainder reshape_as rms_norm
    row_stack scaled_dot_product_attention select_scatter slice_scatter smooth_l1_loss soft_margin_loss stack
    tensordot triplet_margin_loss true_divide type_as vdot view_as vstack where xlogy
    """.split()  # noqa: SIM905
)
#: Pure functions of ``torch``, ``nn.functional`` and Tensor whose first argument is their only tensor.
OF_ONE = frozenset(
    """
    __getitem__ __neg__ __pos__ __abs__ __invert__ _threshold
    aminmax chunk cummax cummin kthvalue median mode nanmedian sort split std_mean tensor_split topk unbind var_mean
    T H mT mH adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adjoint all alpha_dropout amax amin any argmax
    argmin atleast_1d atleast_2d atleast_3d avg_pool1d avg_pool2d avg_pool3d bool broadcast_to celu clone conj_physical
    constant_pad_nd contiguous count_nonzero cumprod cumsum detach diag diag_embed diagonal diff double dropout1d
    dropout2d dropout3d elu expand feature_dropout flatten flip fliplr flipud float frobenius_norm full_like gelu glu half
    hardshrink hardsigmoid hardswish hardtanh interpolate leaky_relu local_response_norm log_softmax logcumsumexp
    logsigmoid logsumexp long matrix_power max max_pool1d max_pool2d max_pool3d mean min mish moveaxis movedim nan_to_num
    nanmean nansum narrow new_full new_ones new_zeros norm normalize ones_like pad permute pixel_shuffle pixel_unshuffle
    polygamma positive prod ravel relu relu6 repeat reshape roll rot90 round select selu sigmoid silu softmax softmin
    softplus softshrink softsign square squeeze std sum sum_to_size swapaxes swapdims t tanh tanhshrink threshold tile to
    trace transpose trapezoid trapz tril triu unflatten unsqueeze upsample var vector_norm view zeros_like
    """.split()  # noqa: SIM905
)
#: Functions that return new tensors and, without a tensor among their arguments, read and write no other.
FACTORIES = frozenset(
    """
    arange as_tensor asarray bartlett_window blackman_window empty eye from_numpy full hamming_window hann_window
    kaiser_window linspace logspace normal ones rand randint randn randperm range scalar_tensor tensor tril_indices
    triu_indices zeros
    """.split()  # noqa: SIM905
)
#: Functions and properties that read neither elements nor the graph, and properties that no deferred operation uses.
METADATA_NAMES = frozenset(
    """
    shape dtype device ndim requires_grad is_leaf layout itemsize nbytes is_cuda is_cpu is_sparse is_quantized is_meta
    is_mkldnn is_mps is_nested names size dim ndimension numel nelement stride storage_offset element_size is_contiguous
    is_floating_point is_complex is_signed get_device grad is_tensor promote_types can_cast result_type broadcast_shapes
    __len__ is_inference _version is_same_size set_default_device
    """.split()  # noqa: SIM905
)
#: Functions that read elements, or whose result's shape depends on elements.
READ_NAMES = frozenset(
    """
    item tolist numpy __bool__ __float__ __int__ __index__ __complex__ __array__ __format__ __repr__ __contains__ __iter__
    equal allclose is_nonzero untyped_storage storage data_ptr __dlpack__ __reduce_ex__ __deepcopy__ nonzero unique
    unique_consecutive masked_select argwhere bincount histc
    """.split()  # noqa: SIM905
)


#: Losses of class indices, and compositions. Dropout draws a mask, which needs no elements of its argument.
CLASS_LOSSES, COMPOSITIONS = frozenset({"cross_entropy", "nll_loss"}), frozenset({"dropout"})
#: Functions of a tensor and indices, which are the arguments ``(self, dim, index)`` or, for ``embedding``, two tensors.
INDEXINGS = frozenset({"index_select", "gather", "embedding"})
INTEGERS = frozenset({dtype("int64"), dtype("int32")})


def _by_name(name: str) -> str:
    """Return the kind of the functions of this name."""
    if name == "backward":
        return BACKWARD
    if name in CLASS_LOSSES:
        return CLASS_LOSS
    if name in INDEXINGS:
        return INDEXING
    if name in COMPOSITIONS:
        return COMPOSITION
    if name in FACTORIES:
        return FACTORY
    if name in METADATA_NAMES:
        return METADATA
    if name in READ_NAMES:
        return READS
    return PURE_OF_ONE if name in OF_ONE else PURE if name in OF_SEVERAL else OTHER


def _kind(function: Function) -> str:
    """Return the kind of ``function``, which must be an object of the library."""
    op = getattr(function, "op", None)
    if op is not None:
        if getattr(function, "over", False):
            return OTHER
        if op.kind in ("pointwise", "view"):
            return OTHER if op.name in IMPURE else PURE if op.kind == "pointwise" else PURE_OF_ONE
    name = getattr(function, "__name__", "")
    if function is grad:
        return GRAD
    if function is Optimizer.zero_grad or function is vars(Tensor)["grad"].fset:
        return CLEARS_GRAD
    held = vars(Tensor).get(name)
    return OTHER if held.__class__ is property else _by_name(name)  # a setter; the getters are in _kinds


#: The kinds of functions that are known, at first of the getters of properties.
_kinds: dict[Function, str] = {
    held.fget: _by_name(name) for name, held in vars(Tensor).items() if isinstance(held, property) and held.fget
}


def kind_of(function: Function) -> str:
    """Return the kind of the public function ``function``."""
    kind = _kinds.get(function)
    if kind is None:
        kind = _kinds[function] = _kind(function)
    return kind


def clears_grad(function: Function, args: Args) -> bool:
    """Whether the call of ``function``, whose kind is ``CLEARS_GRAD``, sets ``grad`` of tensors to None.

    ``grad`` is no operand of a deferred operation; the tensor that it was may be, and is not changed.
    """
    if len(args) != 2 or args[0].__class__ is Lazy:
        return False
    return args[1] is True if function is Optimizer.zero_grad else args[1] is None


def has_valid_classes(args: Args) -> bool:
    """Whether the class indices ``args[1]`` are in the range of the classes of the scores ``args[0]``."""
    if len(args) < 2 or args[1].__class__ is not Tensor or not isinstance(args[0], Tensor):
        return False
    shape, labels = args[0].shape, args[1]._array
    if labels.__class__ is not ndarray or labels.dtype != int64 or not labels.size or not shape:
        return False
    return all_in_range(numpy, labels, shape[len(shape) > 1])


def has_valid_indices(function: Function, args: Args, kwargs: Kwargs) -> bool:
    """Whether the indices in a call of ``function`` are known to be in range: ``x[index]``, or one of ``INDEXINGS``."""
    name = getattr(function, "__name__", "")
    if name == "embedding":
        if len(args) < 2 or any(each is not None for each in (*args[3:4], kwargs.get("max_norm"))):
            return False  # max_norm writes the table
        if any(args[6:]) or kwargs.get("sparse"):  # the gradient is sparse, as no program computes it
            return False
        index, table = args[:2]
        return isinstance(table, Tensor) and bool(table.shape) and _in_range(index, table.shape[0], 0)
    if kwargs or not isinstance(args[0], Tensor):
        return False
    shape = args[0].shape
    if name != "__getitem__":
        if len(args) != 3 or args[1].__class__ is not int or not -len(shape) <= args[1] < len(shape):
            return False
        return _in_range(args[2], shape[args[1]], 0)
    keys = args[1] if args[1].__class__ is tuple else (args[1],)
    dim, count = 0, sum(each is not None and each is not Ellipsis for each in keys)
    for each in keys:
        if each is Ellipsis:
            dim = len(shape) - count + dim
        elif isinstance(each, Tensor):
            if dim >= len(shape) or not _in_range(each, shape[dim], -shape[dim]):
                return False
            dim += 1
        elif each.__class__ is int or each.__class__ is slice:
            dim += 1
        elif each is not None:
            return False
    return True


def _in_range(index: object, size: int, least: int) -> bool:
    """Whether ``index`` is a tensor of integers from ``least`` to ``size - 1`` whose elements are known."""
    if index.__class__ is not Tensor or index._array.__class__ is not ndarray:
        return False
    array = index._array
    if array.dtype not in INTEGERS or not array.size:
        return False
    if not least and array.dtype == int64 and array.flags.c_contiguous:
        return all_in_range(numpy, array, size)
    return bool(least <= array.min() and array.max() < size)


def errors_depend_on_elements(function: Function) -> bool:
    """Whether an error of ``function`` depends on elements if it computes integers."""
    op = getattr(function, "op", None)
    return getattr(function, "__name__", "") in INTEGER_ERRORS or (op is not None and op.name in INTEGER_ERRORS)
