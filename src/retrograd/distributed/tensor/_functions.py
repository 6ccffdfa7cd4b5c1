"""Names of the functions that are computed on the parts of distributed tensors."""

_ELEMENTWISE = """
    __abs__ __add__ __and__ __eq__ __floordiv__ __ge__ __gt__ __iadd__ __iand__ __idiv__ __ifloordiv__ __ilshift__ __imod__
    __imul__ __invert__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__ __ixor__ __le__ __lshift__ __lt__ __mod__ __mul__
    __ne__ __neg__ __or__ __pos__ __pow__ __radd__ __rand__ __rdiv__ __rfloordiv__ __rlshift__ __rmod__ __rmul__ __ror__
    __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __sub__ __truediv__ __xor__
    abs absolute acos acosh add addcdiv addcmul alias angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh
    atan atan2 atanh bfloat16 bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bool byte
    ceil celu char clamp clamp_max clamp_min clip clone conj contiguous copy copysign cos cosh cpu cuda deg2rad detach digamma
    div divide double elu empty_like eq erf erfc erfinv exp exp2 expm1 fill float floor floor_divide fmax fmin fmod frac
    full_like ge gelu greater greater_equal gt half hardshrink hardsigmoid hardswish hardtanh heaviside hypot int isclose
    isfinite isinf isnan isneginf isposinf isreal ldexp le leaky_relu lerp less less_equal lgamma log log10 log1p log2
    logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit logsigmoid long lt masked_fill maximum minimum
    mish mul multiply nan_to_num ne neg negative nextafter not_equal ones_like positive pow rad2deg real reciprocal relu relu6
    remainder round rsqrt rsub selu sgn short sigmoid sign signbit silu sin sinc sinh softplus softshrink softsign sqrt square
    sub subtract tan tanh tanhshrink threshold to true_divide trunc where xlogy zero zeros_like"""
_OF_PARTS = """
    register_hook register_post_accumulate_grad_hook retain_grad requires_grad_ element_size is_floating_point is_complex
    is_signed data_ptr untyped_storage storage storage_offset is_inference detach_ share_memory_ is_shared get_device
    is_pinned __hash__"""
#: Elementwise functions and methods, without the ``_`` of their in-place forms.
ELEMENTWISE = frozenset(_ELEMENTWISE.split())
#: Methods that concern the part of this rank, or do not depend on the elements.
OF_PARTS = frozenset(_OF_PARTS.split())
#: Functions whose result is a partial sum where a dimension is split.
SUMS = frozenset({"sum"})
#: Functions that modify their first argument although their name does not end with ``_``.
WHOLE_IN_PLACE = frozenset({"__setitem__"})
