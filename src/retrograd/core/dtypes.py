"""The class ``dtype``, its instances, and their limits (``finfo``, ``iinfo``).

All instances are created here, one for each NumPy dtype that is supported; ``dtype_of(array.dtype)`` returns the
instance for an array. The rules of promotion are in ``promotion.py``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy

from ..compat.module_names import shown_in
from ..compat.pickle_names import pickled_as
from ..compat.type_names import type_name
from ..runtime.user_frame import strips_frames
from .deferral import end_segment

if TYPE_CHECKING:
    from .typing import Array, ArrayDType, Scalar

# Categories, in the order of promotion: bool with an integer gives an integer, an integer with a float gives a float.
BOOL, INTEGER, FLOATING, COMPLEX = range(4)


class dtype:
    """Type of a tensor's elements, as ``torch.dtype``: ``retrograd.float32``, ``retrograd.int64`` …

    >>> import retrograd as torch
    >>> torch.float32, torch.float32.itemsize, torch.float32.is_floating_point
    (torch.float32, 4, True)
    """

    __slots__ = ("bits", "category", "is_complex", "is_floating_point", "is_signed", "itemsize", "name", "numpy")
    __module__ = shown_in("torch", __name__)

    def __new__(cls, *arguments: Any) -> dtype:  # Note [Any in public signatures]
        """Create a dtype from three arguments, which only this module passes.

        Raises TypeError for any other number of arguments, because in PyTorch a program cannot create a dtype.
        """
        if len(arguments) != 3:
            raise TypeError("cannot create 'torch.dtype' instances")
        return super().__new__(cls)

    def __init__(self, name: str, array_dtype: Any, category: int) -> None:  # Note [Any in public signatures]
        self.name: str = name
        self.numpy: ArrayDType = numpy.dtype(array_dtype)
        self.category: int = category
        self.itemsize: int = self.numpy.itemsize
        self.is_floating_point: bool = category == FLOATING
        self.is_complex: bool = category == COMPLEX
        self.is_signed: bool = (category >= FLOATING and name != "float8_e8m0fnu") or self.numpy.kind == "i"
        self.bits: int = 8 * self.itemsize

    def __setattr__(self, name: str, value: Any) -> None:  # Note [Any in public signatures]
        if hasattr(self, "bits"):  # the constructor sets this attribute last
            if name not in self.__slots__:
                raise AttributeError(f"'torch.dtype' object has no attribute '{name}'")
            raise AttributeError(f"attribute '{name}' of 'torch.dtype' objects is not writable")
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:  # Note [Any in public signatures]
        raise AttributeError(f"'torch.dtype' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, tuple[str]]:  # Note [Any in public signatures]
        return named, (self.name,)

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> dtype:  # Note [Any in public signatures]
        return self

    def to_complex(self) -> dtype:
        """Return the complex dtype whose real and imaginary parts have this dtype; a complex dtype returns itself.

        Raises RuntimeError for a floating dtype of 8 bits.
        """
        if self in FLOAT8:
            raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(self)}")
        return self if self.is_complex else _COMPLEX_OF.get(self, complex64)

    def to_real(self) -> dtype:
        """Return the dtype of the real and imaginary parts of a complex dtype; any other dtype returns itself."""
        return _REAL_OF.get(self, self)


bool_: Final = dtype("bool", numpy.bool_, BOOL)
uint8: Final = dtype("uint8", numpy.uint8, INTEGER)
int8: Final = dtype("int8", numpy.int8, INTEGER)
int16: Final = dtype("int16", numpy.int16, INTEGER)
int32: Final = dtype("int32", numpy.int32, INTEGER)
int64: Final = dtype("int64", numpy.int64, INTEGER)
uint16: Final = dtype("uint16", numpy.uint16, INTEGER)
uint32: Final = dtype("uint32", numpy.uint32, INTEGER)
uint64: Final = dtype("uint64", numpy.uint64, INTEGER)
float16: Final = dtype("float16", numpy.float16, FLOATING)
bfloat16: Final = dtype("bfloat16", ml_dtypes.bfloat16, FLOATING)
float32: Final = dtype("float32", numpy.float32, FLOATING)
float64: Final = dtype("float64", numpy.float64, FLOATING)
complex64: Final = dtype("complex64", numpy.complex64, COMPLEX)
complex128: Final = dtype("complex128", numpy.complex128, COMPLEX)

ALL: Final = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip
#: Floating dtypes of 8 bits, whose elements are stored and converted, and in which few operations compute.
FLOAT8: Final = tuple(
    dtype(name, getattr(ml_dtypes, name), FLOATING)
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
)
#: The complex dtype of two float16. Operations that PyTorch supports for it compute in complex64.
complex32: Final = dtype("complex32", ml_dtypes.complex32, COMPLEX)
#: The dtypes that most operations refuse: ``dispatch/stored_dtypes.py``.
STORED: Final = (*FLOAT8, complex32)
ALIASES: Final = {
    "half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64,
    "cfloat": complex64, "cdouble": complex128, "chalf": complex32,
}  # fmt: skip
_REAL_OF = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX_OF = {float16: complex32, bfloat16: complex64, float32: complex64, float64: complex128}
_BY_NAME = {each.name: each for each in (*ALL, *STORED)}
_BY_NUMPY: Final = {each.numpy: each for each in (*ALL, *STORED)}
#: The NumPy dtypes of ``STORED``.
STORED_NUMPY: Final = frozenset(each.numpy for each in STORED)
#: The NumPy dtypes that NumPy itself does not have; ``ml_dtypes`` defines them.
EXTENSIONS: Final = STORED_NUMPY | {bfloat16.numpy}
_SATURATING, _UNSIGNED = FLOAT8[0].numpy, FLOAT8[-1].numpy

#: Half-precision dtypes, whose elements are computed in float32.
HALF_PRECISION: Final = frozenset({float16.numpy, bfloat16.numpy})


@pickled_as("dtype")
def named(name: str) -> dtype:
    """Return the dtype called ``name``, such as ``float32``; pickles call this function."""
    return _BY_NAME[name]


def dtype_of(array_dtype: ArrayDType) -> dtype:
    """Return the ``dtype`` for a NumPy dtype; raise TypeError if it is not supported."""
    try:
        return _BY_NUMPY[array_dtype]
    except KeyError:
        raise TypeError(
            f"can't convert np.ndarray of type {numpy.dtype(array_dtype).type.__module__}."
            f"{numpy.dtype(array_dtype).type.__name__}. The only supported types are: float64, float32, float16, "
            "complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        ) from None


def with_shared_dtype(array: Array) -> Array:
    """Return ``array`` with the NumPy dtype object that all arrays of this dtype share in tensors.

    NumPy creates new dtype objects when it loads a pickled array. Fast paths compare dtypes by identity.
    """
    kind = dtype_of(array.dtype).numpy
    return array if array.dtype is kind else array.view(kind)


def cast(array: Array, kind: ArrayDType) -> Array:
    """Return a copy of ``array`` in the NumPy dtype ``kind``, rounded as PyTorch rounds.

    It differs from NumPy's conversion in two dtypes: numbers out of the range of float8_e4m3fn become its largest
    number, and float8_e8m0fnu takes absolute values, of which zero becomes the smallest number.
    """
    if kind is _SATURATING:
        return array.astype(numpy.float32).clip(-448, 448).astype(kind)
    if kind is _UNSIGNED:
        sizes = abs(array.astype(numpy.float32))
        return numpy.where(sizes == 0, numpy.float32(2.0**-127), sizes).astype(kind)
    return (native(array) if array.dtype in EXTENSIONS else array).astype(kind)


def native(array: Array) -> Array:
    """Return ``array``, or a copy in float32 or complex64 if NumPy itself does not have its dtype."""
    if array.dtype not in EXTENSIONS:
        return array
    return array.astype(numpy.complex64 if array.dtype == complex32.numpy else numpy.float32)


def as_dtype(value: object) -> dtype:
    """Return the dtype for ``value``, a dtype or Python's ``float``, ``int``, ``bool`` or ``complex``.

    Raises TypeError for any other value.
    """
    if value.__class__ is dtype:
        return value
    if value is float:
        return float64
    if value is int:
        return int64
    if value is bool:
        return bool_
    if value is complex:
        return complex128
    raise TypeError(f"expected a torch.dtype, but got {type(value).__name__}")


class _Default:
    """Default dtypes, which hold for the whole process.

    ``floating`` is the dtype of tensors created from Python floats, and ``complex`` that of tensors created from Python
    complex numbers.
    """

    floating = float32
    complex = complex64


default: Final = _Default()


def get_default_dtype() -> dtype:
    """Return the dtype of tensors created from Python floats: ``float32`` unless set by :func:`set_default_dtype`.

    >>> import retrograd as torch
    >>> torch.get_default_dtype()
    torch.float32
    """
    return default.floating


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of tensors created from Python floats to ``d``.

    Tensors created from Python complex numbers get the dtype ``complex128`` if ``d`` is ``float64``, and else
    ``complex64``. Raises TypeError if ``d`` is not a floating dtype.

    >>> import retrograd as torch
    >>> torch.set_default_dtype(torch.float64)
    >>> torch.tensor([1.5]).dtype
    torch.float64
    >>> torch.set_default_dtype(torch.float32)
    """
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d in FLOAT8:
        raise TypeError(f"couldn't find storage object {scalar_name(d)}Storage")
    end_segment("the default dtype changes")
    default.floating = d
    default.complex = complex128 if d is float64 else complex64


# --- Errors and names -----------------------------------------------------------------------------------------------


def _check_dtypes(function: str, **arguments: object) -> None:
    """Raise TypeError unless all values in ``arguments`` are dtypes.

    ``arguments`` are the arguments of a call by name, and ``function`` is the name of the called function, for the
    error message.
    """
    for position, (name, value) in enumerate(arguments.items()):
        if not isinstance(value, dtype):
            raise TypeError(
                f"{function}(): argument '{name}' (position {position + 1}) must be torch.dtype, not {type_name(value)}"
            )


def _cpp(each: dtype) -> str:
    """Return the name of the bool or integer dtype ``each`` in PyTorch's C++ code: ``Bool``, ``Byte``, ``UInt16`` …"""
    return {"bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long"}.get(
        each.name, each.name.replace("uint", "UInt")
    )


def cpp_name(each: dtype | ArrayDType) -> str:
    """Return the C++ type of ``each``, a ``dtype`` or a NumPy dtype, as some of PyTorch's errors show it."""
    return _C_NAMES.get(each.name, each.name)


_C_NAMES: Final = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int",
    "int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char",
    "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
    **{each.name: f"c10::{each.name.capitalize()}" for each in FLOAT8},
}  # fmt: skip


def scalar_name(each: dtype) -> str:
    """Return the name of the dtype ``each`` in most of PyTorch's errors: ``Float``, ``Long``, ``ComplexDouble`` …"""
    return {
        "float16": "Half", "bfloat16": "BFloat16", "float32": "Float", "float64": "Double",
        "complex32": "ComplexHalf", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    }.get(each.name) or (each.name.capitalize() if each.category == FLOATING else _cpp(each))  # fmt: skip


def legacy_type_name(each: dtype) -> str:
    """Return the name of PyTorch's legacy tensor type with the dtype ``each`` (``CPUBoolType`` …), for errors."""
    scalar = scalar_name(each)
    return f"CPU{scalar}Type" if scalar in ("Bool", "BFloat16") or each.is_complex else f"torch.{scalar}Tensor"


def unsupported(name: str, array_dtype: ArrayDType) -> NotImplementedError:
    """Return PyTorch's error for a kernel called ``name`` that does not support the NumPy dtype ``array_dtype``."""
    return NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(dtype_of(array_dtype))}'")


def number_to_array(value: Scalar, target: ArrayDType) -> Array:
    """Return the Python number ``value`` as a 0-d array of the NumPy dtype ``target``.

    Raises PyTorch's RuntimeError if the number is out of range.
    """
    kind = target.kind
    if kind == "b":
        return numpy.asarray(bool(value))
    if kind in "cW":
        return numpy.asarray(value).astype(target)
    is_complex = isinstance(value, (complex, numpy.complexfloating))
    fits = not is_complex or value.imag == 0
    number: float = value.real if is_complex else value  # type: ignore[assignment]
    if fits and kind in "iu":
        limits = numpy.iinfo(target)
        # Negative ints wrap around in unsigned dtypes: -1 is the largest.
        least = limits.min if kind == "i" or isinstance(number, float) else -limits.max
        fits = least <= number <= limits.max  # false for nan
        number = int(number) % (limits.max + 1) if fits and kind == "u" else number
    elif fits and math.isfinite(number):
        fits = (
            abs(number) <= 65504 or abs(number) <= finfo(dtype_of(target)).max
        )  # the range of float16 is part of all ranges
    if not fits:
        raise RuntimeError(f"value cannot be converted to type {_FIXED_WIDTH[dtype_of(target).name]} without overflow")
    return cast(numpy.asarray(int(number) if kind in "iu" else number), target)


def number_to_scalar(value: Scalar, target: ArrayDType) -> numpy.generic:
    """Return the Python number ``value`` as a scalar of the NumPy dtype ``target``, which functions of CuPy accept, too.

    Raises PyTorch's RuntimeError if the number is out of range.
    """
    scalar: numpy.generic = number_to_array(value, target)[()]  # type: ignore[assignment]
    return scalar


_FIXED_WIDTH = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "int64_t",
    "int32": "int", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t", "uint16": "uint16_t",
    "uint32": "uint32_t", "uint64": "uint64_t", **{each.name: f"c10::{each.name.capitalize()}" for each in FLOAT8},
}  # fmt: skip


# --- Limits ---------------------------------------------------------------------------------------------------------


class finfo:
    """Limits of a floating dtype, as ``torch.finfo``.

    The attributes are ``bits``, ``eps``, ``max``, ``min``, ``tiny``, ``smallest_normal``, ``resolution`` and ``dtype``.

    >>> import retrograd as torch
    >>> torch.finfo(torch.float16).max, torch.finfo(torch.float32).eps
    (65504.0, 1.1920928955078125e-07)
    """

    __module__ = shown_in("torch", __name__)

    @strips_frames
    def __init__(self, type: dtype | None = None) -> None:
        type = default.floating if type is None else type
        _check_dtypes("finfo", type=type)
        if type.category < FLOATING:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        real = type.to_real()
        limits: Any = ml_dtypes.finfo(real.numpy)  # type: ignore[no-untyped-call]
        self.bits: int = real.bits
        # PyTorch's eps of float8_e5m2fnuz is half of this one.
        self.eps: float = 0.125 if type is FLOAT8[3] else float(limits.eps)
        self.max: float = float(limits.max)
        self.min: float = float(limits.min)
        self.tiny: float = float(limits.tiny)
        self.smallest_normal: float = self.tiny
        self.resolution: float = 1.0 if type in FLOAT8 else 10.0 ** -int(limits.precision)
        self.dtype: str = real.name

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={getattr(self, name):g}" for name in ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        )
        return f"finfo({shown}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """Limits of an integer dtype, as ``torch.iinfo``, with the attributes ``bits``, ``max``, ``min`` and ``dtype``.

    >>> import retrograd as torch
    >>> torch.iinfo(torch.int8).min, torch.iinfo(torch.int8).max
    (-128, 127)
    """

    __module__ = shown_in("torch", __name__)

    @strips_frames
    def __init__(self, type: dtype) -> None:
        _check_dtypes("iinfo", type=type)
        if type.category >= FLOATING:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        limits = numpy.iinfo(type.numpy)
        self.bits: int = limits.bits
        self.max: int = int(limits.max)
        self.min: int = int(limits.min)
        self.dtype: str = type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
