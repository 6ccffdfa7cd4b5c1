"""PyTorch's public names by family, for counting how many exist.

Some modules are families of their own (``PLACES``); names of ``torch`` and ``torch.Tensor`` are assigned by the lists
below. An in-place form (``add_``) belongs to its operation. Names in no list are ``THE_REST``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import retrograd
from retrograd.compat.unsupported import reason
from tests.conformance.golden import load

OPERATIONS = {
    "pointwise": """
        abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh
        atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp
        clamp_max clamp_min clip complex conj conj_physical copysign cos cosh deg2rad digamma div divide eq erf erfc
        erfinv exp exp2 expm1 fill fix float_power floor floor_divide fmax fmin fmod frac frexp gcd ge greater
        greater_equal gt heaviside hypot i0 igamma igammac imag isclose isfinite isinf isnan isneginf isposinf isreal lcm
        ldexp le lerp less less_equal lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
        logical_xor logit lt maximum minimum mul multiply mvlgamma nan_to_num ne neg negative nextafter not_equal polar
        polygamma positive pow rad2deg real reciprocal remainder round rsqrt rsub sgn sigmoid sign signbit sin sinc sinh
        sqrt square sub subtract tan tanh true_divide trunc where xlogy zero
        __radd__ __rand__ __rfloordiv__ __rlshift__ __rmod__ __rmul__ __ror__ __rpow__ __rrshift__ __rsub__ __rtruediv__
        __rxor__ operator""",
    "reductions and scans": """
        all allclose amax amin aminmax any argmax argmin bincount cdist corrcoef count_nonzero cov cummax cummin cumprod
        cumsum cumulative_trapezoid dist equal histc histogram histogramdd kthvalue logcumsumexp logsumexp max mean median
        min mode nanmean nanmedian nanquantile nansum norm prod quantile renorm std std_mean sum trapezoid trapz var
        var_mean hash_tensor segment_reduce norm_except_dim native_norm frobenius_norm nuclear_norm""",
    "shape, views, joining": """
        H T adjoint alias_copy as_strided as_strided_copy as_strided_scatter atleast_1d atleast_2d atleast_3d block_diag
        broadcast_shapes broadcast_tensors broadcast_to cartesian_prod cat chunk column_stack combinations concat
        concatenate constant_pad_nd contiguous detach_copy diag diag_embed diagflat diagonal diagonal_copy
        diagonal_scatter diff dsplit dstack expand expand_as expand_copy fill_diagonal flatten flip fliplr flipud gradient
        hsplit hstack kron mH mT meshgrid moveaxis movedim narrow narrow_copy permute permute_copy ravel repeat
        repeat_interleave reshape reshape_as resize resize_as resolve_conj resolve_neg roll rot90 row_stack select
        select_copy select_scatter slice_copy slice_inverse slice_scatter split split_copy split_with_sizes
        split_with_sizes_copy squeeze squeeze_copy stack sum_to_size swapaxes swapdims t t_copy tensor_split tile trace
        transpose transpose_copy tril tril_indices triu triu_indices unbind unbind_copy unflatten unfold unfold_copy
        unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_copy view view_as view_as_complex
        view_as_complex_copy view_as_real view_as_real_copy view_copy vsplit vstack""",
    "indexing, sorting, searching": """
        argsort argwhere bucketize copy gather getitem index index_add index_copy index_fill index_put index_reduce
        index_select isin masked_fill masked_scatter masked_select msort nonzero nonzero_static put scatter scatter_add
        scatter_reduce searchsorted setitem sort take take_along_dim topk unique unique_consecutive unravel_index""",
    "linear algebra": """
        addbmm addmm addmv addr baddbmm bmm chain_matmul cholesky cholesky_inverse cholesky_solve cross det dot einsum
        geqrf ger inner inverse lobpcg logdet lu lu_solve lu_unpack matmul matrix_exp matrix_power mm mv orgqr ormqr outer
        pca_lowrank pinverse qr slogdet svd svd_lowrank tensordot triangular_solve vander vdot""",
    "fft, signal": """
        bartlett_window blackman_window hamming_window hann_window istft kaiser_window stft""",
    "nn.functional": """
        adaptive_avg_pool1d adaptive_max_pool1d affine_grid_generator alpha_dropout avg_pool1d batch_norm bilinear
        binary_cross_entropy_with_logits celu channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d
        conv_transpose2d conv_transpose3d convolution cosine_embedding_loss cosine_similarity ctc_loss dropout embedding
        embedding_bag embedding_renorm feature_alpha_dropout feature_dropout grid_sampler grid_sampler_2d grid_sampler_3d
        group_norm gru gru_cell hardshrink hinge_embedding_loss instance_norm kl_div layer_norm log_softmax lstm lstm_cell
        margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool2d max_pool3d native_batch_norm
        native_channel_shuffle native_dropout native_group_norm native_layer_norm pairwise_distance pdist pixel_shuffle
        pixel_unshuffle poisson_nll_loss prelu relu rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell rrelu selu
        softmax threshold triplet_margin_loss""",
    "random and creation": """
        arange as_tensor asarray bernoulli binomial cauchy clone default_generator empty empty_like empty_permuted
        empty_strided exponential eye from from_dlpack from_file from_numpy frombuffer full full_like geometric
        get_rng_state Generator initial_seed linspace log_normal logspace make manual_seed multinomial new new_empty
        new_empty_strided new_full new_ones new_tensor new_zeros normal ones ones_like poisson rand rand_like randint
        randint_like randn randn_like random randperm range scalar_tensor seed set_rng_state tensor to to_dlpack uniform
        zeros zeros_like""",
}
#: Families that are whole modules.
PLACES = {
    "torch.linalg": "linalg", "torch.fft": "fft, signal", "torch.signal.windows": "fft, signal",
    "torch.special": "special", "torch.nn.functional": "nn.functional", "torch.random": "random and creation",
    "torch.autograd": "autograd", "torch.autograd.functional": "autograd", "torch.autograd.graph": "autograd",
    "torch.cuda": "cuda", "torch.nn": "nn", "torch.nn.init": "nn", "torch.nn.utils": "nn", "torch.nn.utils.rnn": "nn",
    "torch.nn.utils.parametrize": "nn", "torch.nn.utils.parametrizations": "nn", "torch.cpu": "cuda",
    "torch.accelerator": "cuda", "torch.amp": "backends", "torch.nn.attention": "nn", "torch.nn.grad": "nn", "torch.nn.utils.prune": "nn", "torch.functional": "backends", "torch.utils.benchmark": "backends", "torch.testing": "backends", "torch.compiler": "backends", "torch.jit": "backends", "torch.backends.cuda": "backends", "torch.backends.mps": "backends",
    "torch.backends.cpu": "backends", "torch.backends.nnpack": "backends", "torch.backends.cusparselt": "backends",
    "torch.distributions": "distributions", "torch.distributions.constraint_registry": "distributions",
    "torch.distributions.constraints": "distributions", "torch.distributions.kl": "distributions",
    "torch.distributions.transforms": "distributions", "torch.distributions.utils": "distributions",
}  # fmt: skip
THE_REST = "tensors, dtypes, settings"
#: In the order of the count.
FAMILIES = ("pointwise", "reductions and scans", "shape, views, joining", "indexing, sorting, searching", "linear algebra",
            "linalg", "fft, signal", "special", "nn.functional", "random and creation", "nn", "distributions", "autograd",
            "cuda", "backends",
            THE_REST)  # fmt: skip

_FAMILY_OF = {name: family for family, names in OPERATIONS.items() for name in names.split()}


def operation(name: str) -> str:
    """Return the operation that a name belongs to, without the underscore of an in-place form."""
    return name if name.startswith("__") else name.rstrip("_")


def family(place: str, name: str) -> str:
    """Return the family of a name in a namespace (``"torch.Tensor"``, ``"add_"``)."""
    return PLACES.get(place) or _FAMILY_OF.get(operation(name), THE_REST)


def family_of_operation(name: str) -> str | None:
    """Return the family of an operation by its name alone, if it is in a list."""
    return _FAMILY_OF.get(name)


@cache
def recorded() -> dict[str, list[str]]:
    """Return PyTorch's public names by namespace (recorded by ``golden/record_names.py``)."""
    return load("names")["names"]  # type: ignore[no-any-return]


def supported_names() -> list[tuple[str, str]]:
    """Return every namespace and name of PyTorch's that is not deliberately unsupported."""
    return [
        (place, name)
        for place, names in recorded().items()
        for name in names
        if reason(below_torch(place, name)) is None
    ]


def below_torch(place: str, name: str) -> str:
    """Return a name as ``left_out.py`` writes it."""
    return f"{place}.{name}".removeprefix("torch.")


def missing() -> list[str]:
    """Return the supported names that retrograd lacks, as ``torch.…``."""
    return [f"{place}.{name}" for place, name in supported_names() if not hasattr(equivalent(place), name)]


def equivalent(place: str) -> object:
    """Return retrograd's module or class for one of PyTorch's, or None."""
    found: object = retrograd
    for part in place.split(".")[1:]:
        found = getattr(found, part, None)
    return found


MISSING = Path(__file__).with_name("missing_names.txt")


def allowed_missing() -> list[str]:
    """Return the names that may be missing, a list that only gets shorter."""
    return [line for line in MISSING.read_text().splitlines() if line and not line.startswith("#")]
