"""Operations on complex tensors: ``real``, ``imag``, ``conj``, ``complex``, ``view_as_real``, ``view_as_complex``."""

from __future__ import annotations

from typing import Any

import numpy

from ...core import dtypes
from ...core.rule_namespace import RULE_NAMESPACES
from ...core.tensor import Tensor, offset_in_memory
from ...dispatch.declare import op, public
from ...dispatch.operand_promotion import broadcast_mismatch
from ...runtime.user_frame import strips_frames
from ..engine_ops import as_strided_of
from ..rule_helpers import check_complex_parts
from ..shape.slicing import select_block
from ..shape.views import PROPERTIES

#: Complex NumPy dtypes by the size of their parts in bytes.
_COMPLEX_OF_SIZE = {each.itemsize // 2: each.numpy for each in (dtypes.complex32, dtypes.complex64, dtypes.complex128)}


@op(view=True, backward="ViewAsRealBackward0", method=False, vmap="leading")
def view_as_real(np: Any, self: Any, /) -> Any:
    """Return a view of the complex tensor ``self`` as a real tensor with an additional last dimension.

    The last dimension has size 2 and holds the real part and the imaginary part of each element.
    """
    if self.dtype.kind not in "cW":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    part = np.dtype(f"f{self.dtype.itemsize // 2}")
    return as_strided_of(np)(self.reshape(-1)[:1].view(part) if self.flags.c_contiguous and self.size else
                              self[..., None].view(part), (*self.shape, 2), (*self.strides, part.itemsize))  # fmt: skip


def _as_complex(F: Any, g: Any) -> Any:
    """Return the gradient of ``view_as_real`` with respect to its complex operand.

    ``g``, the gradient of the result, is real and has the shape (…, 2). Its last dimension holds the real part and the
    imaginary part of each element of the complex gradient. If ``g`` is a contiguous NumPy array that owns its memory,
    the returned array is a view of ``g``. Otherwise it is a copy. ``F`` is a namespace of operations (``F.matmul``, …)
    on tensors or on arrays.
    """
    owned = g.__class__ is numpy.ndarray and g.flags.c_contiguous and g.base is None
    return F.view_as_complex(g) if owned else F.complex_of_pairs(g)


view_as_real.derivative(self=_as_complex)


@op(function=False, method=False, holomorphic=False, linear=True, vmap="leading")
def complex_of_pairs(np: Any, self: Any, /) -> Any:
    """Return the real array ``self`` of shape (…, 2) as a new complex array.

    The last dimension of ``self`` holds the real part and the imaginary part of each element.
    """
    return np.array(self, order="C").view(_COMPLEX_OF_SIZE[self.itemsize])[..., 0]


complex_of_pairs.derivative(self=lambda F, g: F.view_as_real(g))


@op(view=True, backward="ViewAsComplexBackward0", method=False, vmap="leading")
def view_as_complex(np: Any, self: Any, /) -> Any:
    """Return a view of the real tensor ``self`` of shape (…, 2) as a complex tensor.

    The last dimension of ``self`` holds the real part and the imaginary part of each element.
    """
    if self.dtype.kind != "f":
        raise RuntimeError("view_as_complex is only supported for half, float and double tensors, but got a tensor of "
                           f"scalar type: {dtypes.scalar_name(dtypes.dtype_of(self.dtype))}")  # fmt: skip
    if self.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if self.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    size = self.itemsize
    if self.strides[-1] != size and self.size:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(step % (2 * size) for count, step in zip(self.shape[:-1], self.strides, strict=False) if count != 1):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if offset_in_memory(self) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    pairs = as_strided_of(np)(self, (max(self.size, 2),) if self.size else (0,), (size,))
    elements = pairs.view(_COMPLEX_OF_SIZE[size])
    return as_strided_of(np)(elements, self.shape[:-1], self.strides[:-1])


view_as_complex.derivative(self=lambda F, g: F.view_as_real(g))


@op(name="real", backward="RealBackward0", method=False, function=False, holomorphic=False, linear=True, vmap="leading")
def real_block(np: Any, self: Any, /) -> Any:
    """Return a copy of the real part of ``self``.

    The backward pass uses this operation if the gradient of a real tensor is computed as a complex array.
    """
    return dtypes.native(self).real.copy()


real_block.derivative(self=lambda F, g, self_dtype: F.complex_of(g, None, self_dtype))


@op(function=False, method=False, holomorphic=False, linear=True, vmap="leading")
def imag_of(np: Any, self: Any, /) -> Any:
    """Return a copy of the imaginary part of ``self``."""
    return dtypes.native(self).imag.copy()


imag_of.derivative(self=lambda F, g, self_dtype: F.complex_of(None, g, self_dtype))


@op(function=False, method=False, holomorphic=False, linear=True, vmap="elementwise")
def complex_of(np: Any, re: Any, im: Any, /, dtype: Any) -> Any:
    """Return a complex array of ``dtype`` with the real part ``re`` and the imaginary part ``im``.

    ``re`` or ``im``, but not both, may be None, which means zeros.
    """
    out = np.zeros((re if im is None else im).shape, dtype)
    if re is not None:
        out.real = re
    if im is not None:
        out.imag = im
    return out


complex_of.derivative(re=lambda F, g: F.real(g), im=lambda F, g: F.imag_of(g))


def _part(input: Tensor, which: int) -> Tensor:
    """Return a view of one part of the complex ``input``: the real part for ``which=0``, the imaginary part for 1."""
    pairs = view_as_real(input)
    return select_block(pairs, pairs._array.ndim - 1, which)


@public(method=False)
def real(input: Tensor) -> Tensor:
    """Return a view of the real part of ``input``.

    If ``input`` is a real tensor, return ``input`` itself.
    """
    return _part(input, 0) if input.is_complex() else input


class NoImaginaryPart(RuntimeError, AttributeError):
    """PyTorch's RuntimeError for ``imag`` of a real tensor, which ``hasattr`` takes for a missing attribute.

    NumPy and the protocol classes of ``typing`` read ``imag`` of any array, and go on after an AttributeError.
    """


NoImaginaryPart.__module__, NoImaginaryPart.__name__ = "builtins", "RuntimeError"
NoImaginaryPart.__qualname__ = "RuntimeError"


@public(method=False)
def imag(input: Tensor) -> Tensor:
    """Return a view of the imaginary part of ``input``. Raise RuntimeError for a real tensor.

    >>> import retrograd as torch
    >>> torch.imag(torch.tensor([1 + 2j, 3 - 4j]))
    tensor([ 2., -4.])
    """
    if not input.is_complex():
        raise NoImaginaryPart("imag is not implemented for tensors with non-complex dtypes.")
    return _part(input, 1)


def _set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value if isinstance(value, Tensor) else self.new_tensor(value).real)


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value if isinstance(value, Tensor) else self.new_tensor(value).real)


PROPERTIES["real"] = property(strips_frames(real), strips_frames(_set_real), doc="The real part, as a view.")
PROPERTIES["imag"] = property(strips_frames(imag), strips_frames(_set_imag), doc="The imaginary part, as a view.")


@op(backward="ConjBackward0", function=False, method=False, holomorphic=False, linear=True, vmap="leading")
def conj_block(np: Any, self: Any, /) -> Any:
    """Return the complex conjugate of ``self`` as a new array."""
    return self.conj()


conj_block.derivative(self=lambda F, g: F.conj_block(g))


@public()
def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate of ``input`` as a new tensor.

    If ``input`` is a real tensor, return ``input`` itself. PyTorch instead returns a lazy view of a complex tensor: its
    elements are conjugated when they are used.

    >>> import retrograd as torch
    >>> torch.conj(torch.tensor([1 + 2j])).resolve_conj()
    tensor([1.-2.j])
    """
    return conj_block(input) if input.is_complex() else input


@public()
def conj_physical(input: Tensor, *, out: Any = None) -> Tensor:
    """Return the complex conjugate of ``input`` as a new tensor.

    If ``input`` is a real tensor, return ``input`` itself.
    """
    return RULE_NAMESPACES[Tensor].conj_physical(input) if input.is_complex() else input


@public(aliases=("resolve_neg",))
def resolve_conj(input: Tensor) -> Tensor:
    """Return ``input`` itself.

    In PyTorch, ``conj`` returns a view whose elements are conjugated later, and ``resolve_conj`` returns a tensor with
    the conjugated elements. In retrograd, ``conj`` conjugates immediately. ``resolve_neg`` is the same function, for
    lazy negation.

    >>> import retrograd as torch
    >>> torch.resolve_neg(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return _tensor(input)


@public(aliases=("is_neg",))
def is_conj(input: Tensor) -> bool:
    """Return False, because no tensor of retrograd is conjugated lazily.

    In PyTorch, ``conj`` returns a view whose elements are conjugated later, and ``is_conj`` returns True for this view.
    In retrograd, ``conj`` conjugates immediately. ``is_neg`` is the same function, for lazy negation.

    >>> import retrograd as torch
    >>> torch.is_conj(torch.tensor([1j]))
    False
    """
    return _tensor(input) is None


def _tensor(input: Any) -> Any:
    if not isinstance(input, Tensor):
        raise TypeError("only a tensor can be conjugate")
    return input


@op(backward="ComplexBackward0", function=False, method=False, holomorphic=False, linear=True, vmap="elementwise")
def complex_pair(np: Any, real: Any, imag: Any, /) -> Any:
    """Return the complex array with the real part ``real`` and the imaginary part ``imag``.

    ``real`` and ``imag`` are broadcast to a common shape.
    """
    shape = np.broadcast_shapes(real.shape, imag.shape)
    if real.itemsize == 2:  # arrays of complex32 have no attributes for their parts
        parts = np.empty((*shape, 2), real.dtype)
        parts[..., 0], parts[..., 1] = real, imag
        return parts.view(dtypes.complex32.numpy)[..., 0]
    out = np.empty(shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    out.real, out.imag = real, imag
    return out


complex_pair.derivative(real=lambda F, g: F.real(g), imag=lambda F, g: F.imag_of(g))


@public(method=False, name="complex")
def complex_(real: Tensor, imag: Tensor, *, out: Any = None) -> Tensor:
    """Return the complex tensor with the real part ``real`` and the imaginary part ``imag``.

    ``real`` and ``imag`` are broadcast to a common shape.
    """
    check_complex_parts("complex", ("real", "imag"), (real, imag))
    error = broadcast_mismatch(real._array.shape, imag._array.shape)
    if error is not None:
        raise error
    return complex_pair(real, imag)
