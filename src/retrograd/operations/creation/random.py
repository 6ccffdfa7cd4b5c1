"""Functions that draw random samples: ``rand``, ``randn``, ``randint``, ``randperm``, ``normal``; class ``Generator``.

With the same seed, the samples are the same as PyTorch's.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy

from ...compat.module_names import shown_in
from ...compat.pickle_names import pickled_as
from ...compat.type_names import type_name
from ...core import devices, dtypes
from ...core.dtypes import cpp_name
from ...core.grad_mode import recording
from ...core.saved_tensor_hooks import before_modification
from ...core.tensor import Tensor, contiguous_format, preserve_format, strided, wrap
from ...core.views import assign, check_in_place
from ...dispatch.declare import op, public
from ...dispatch.generic_path import is_directly_writable, modify
from ...dispatch.operand_promotion import F32, F64, PLAIN, broadcast_mismatch
from ...dispatch.transform_tensor import TransformTensor, active_levels, batch_levels, draw, in_vmap
from ...kernels import random as draws
from ...kernels import samplers
from ...runtime.user_frame import strips_frames
from ..engine_ops import expand
from ..indexing.masked_fill import copy_block
from .factory import array_module_for, empty_array_like, new_leaf, numpy_dtype_for, parse_sizes, simple_shape


class Generator:
    """Random number generator with its own state, compatible with ``torch.Generator``.

    >>> import retrograd as torch
    >>> g = torch.Generator().manual_seed(0)
    >>> torch.rand(2, generator=g)
    tensor([0.4963, 0.7682])
    """

    __module__ = shown_in("torch", __name__)

    @strips_frames
    def __init__(self, device: Any = "cpu") -> None:
        self.device = devices.as_device(device)
        if self.device.type == "meta":
            raise RuntimeError("META device type not an accelerator.")
        self._stream = draws.Stream()

    def __reduce__(self) -> Any:
        return _generator, (str(self.device), self.__getstate__())

    def __getstate__(self) -> Any:
        return self.initial_seed(), None, self.get_state()  # PyTorch's tuple; the None is the offset of GPU generators

    def __setstate__(self, state: Any) -> None:
        seed, _, numbers = state
        self.manual_seed(seed).set_state(numbers)

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed to ``seed`` and return this generator."""
        if not isinstance(seed, (int, float, numpy.number)):
            raise RuntimeError(f"manual_seed expected a long, but got {type_name(seed)}")
        self._stream.seed_with(int(seed))
        return self

    def initial_seed(self) -> int:
        """Return the seed that was last set for this generator."""
        return self._stream.initial_seed

    def seed(self) -> int:
        """Set the seed of this generator to a random number from the operating system, and return the seed."""
        chosen = int.from_bytes(os.urandom(8)) >> 1
        self._stream.seed_with(chosen)
        return chosen

    def get_state(self) -> Tensor:
        """Return the state of this generator as a uint8 tensor, in the format of PyTorch."""
        return wrap(self._stream.state())

    @strips_frames
    def set_state(self, new_state: Tensor) -> None:
        """Set the state of this generator to ``new_state``, a tensor that :meth:`get_state` returned."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type_name(new_state)}")
        if new_state.dtype is not dtypes.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        self._stream.set_state(new_state._array)

    def clone_state(self) -> Generator:
        """Return a new generator with a copy of the state of this generator."""
        other = Generator(self.device)
        other._stream.set_state(self._stream.state())
        return other


@pickled_as("generator")
def _generator(device: str, state: Any) -> Generator:
    """Return a new generator on ``device`` with the state ``state``. ``pickle`` calls this to load a generator."""
    restored = Generator(device)
    restored.__setstate__(state)
    return restored


default_generator = Generator()


def _stream(generator: Generator | None) -> draws.Stream:
    return (default_generator if generator is None else generator)._stream


@public(method=False)
def manual_seed(seed: int) -> Generator:
    """Set the seed of the default generator to ``seed``, and return the default generator.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(2)
    tensor([0.4963, 0.7682])
    """
    return default_generator.manual_seed(int(seed))


@public(method=False)
def seed() -> int:
    """Set the seed of the default generator to a random number from the operating system, and return the seed.

    >>> import retrograd as torch
    >>> seed = torch.seed()
    >>> torch.initial_seed() == seed
    True
    """
    return default_generator.seed()


@public(method=False)
def initial_seed() -> int:
    """Return the seed that was last set for the default generator.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(42)
    >>> torch.initial_seed()
    42
    """
    return default_generator.initial_seed()


@public(method=False)
def get_rng_state() -> Tensor:
    """Return the state of the default generator as a uint8 tensor.

    >>> import retrograd as torch
    >>> state = torch.get_rng_state()
    >>> x = torch.rand(2)
    >>> torch.set_rng_state(state)
    >>> torch.equal(torch.rand(2), x)
    True
    """
    return default_generator.get_state()


@public(method=False)
def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator to ``new_state``, a tensor that :func:`get_rng_state` returned.

    >>> import retrograd as torch
    >>> state = torch.get_rng_state()
    >>> x = torch.rand(2)
    >>> torch.set_rng_state(state)
    >>> torch.equal(torch.rand(2), x)
    True
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **rest: Any) -> Iterator[None]:
    """Context manager that restores the state of the default generator at the end of the ``with`` block.

    If ``enabled`` is false, the state is not restored. The other arguments have no effect.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(0)
    >>> with torch.random.fork_rng():
    ...     x = torch.rand(2)
    >>> torch.equal(torch.rand(2), x)
    True
    """
    before = default_generator.get_state()
    try:
        yield
    finally:
        if enabled:
            default_generator.set_state(before)


# -- Creating --------------------------------------------------------------------------------------------------------


def _drawn(
    sample: Any, shape: tuple[int, ...], device: Any, requires_grad: bool, pin_memory: bool = False
) -> Tensor:  # fmt: skip
    """Return the random samples ``sample(shape)``, an array, as a leaf tensor on ``device``.

    If the call is inside ``torch.vmap``, the argument ``randomness`` of ``vmap`` determines whether all elements of the
    batch get the same samples or different ones.
    """
    if in_vmap():
        return draw(sample, shape)
    place = devices.get_default_device() if device is None else devices.as_device(device)
    array = devices.meta().empty(shape, sample((0,)).dtype) if place.type == "meta" else sample(shape)
    if place is devices.CPU and requires_grad is False and not pin_memory:
        return wrap(array)
    return new_leaf(array if place.type == "cpu" else devices.to_device(array, place), requires_grad, pin_memory)


def _drawn_like(
    input: Tensor, kind: Any, order: Any, sample: Any, serial: Any, device: Any, requires_grad: bool,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return a leaf tensor of random samples with the shape of ``input``, for functions such as ``rand_like``.

    ``kind`` is the NumPy dtype, and ``order`` is the memory format. ``sample(shape)`` draws the samples. If the result
    is not contiguous, PyTorch computes normal samples by another method. ``serial`` holds the keyword arguments of
    ``sample`` that select this method, such as ``blocks=False``.
    """
    if in_vmap():
        return draw(_in_order_of_slices(input, kind, order, sample, serial), input._array.shape)
    place = devices.as_device(device or input.device)
    if place.type == "meta":
        return new_leaf(empty_array_like(devices.meta(), input, kind, order), requires_grad)
    drawn = _ordered(input, kind, order, sample, serial)
    return _drawn(lambda shape: drawn, drawn.shape, device or input.device, requires_grad, pin_memory)


def _sampler(name: str, sample: Any, doc: str, **serial: Any) -> None:
    """Define the public functions ``name`` and ``name_like``, where ``name`` is ``rand`` or ``randn``.

    ``sample(stream, shape, dtype)`` draws the samples, where ``stream`` is the state of the random number generator.
    ``doc`` describes the samples in the docstrings. If the result of ``name_like`` is not contiguous, PyTorch computes
    normal samples by another method. ``serial`` holds the keyword arguments of ``sample`` that select this method, such
    as ``blocks=False``.
    """

    def common(given: tuple[Any, ...]) -> Any:
        size = simple_shape(given)
        return (
            None
            if size is None or active_levels()
            else sample(default_generator._stream, size, dtypes.default.floating.numpy)
        )

    def common_like(input: Any) -> Any:
        kind: Any = input.__class__
        if kind not in PLAIN or active_levels() or input._array.__class__ is not numpy.ndarray:
            return None
        array = input._array
        plain = array.dtype is F32 and array.flags.c_contiguous
        return sample(default_generator._stream, array.shape, F32) if plain else None

    def create(
        *shape: Any, size: Any = None, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None,
        layout: Any = strided, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    ) -> Tensor:  # fmt: skip
        kind = dtypes.default.floating.numpy if dtype is None else numpy_dtype_for(name, dtype)
        if dtype is not None:
            _check_floating(name, kind)
        stream = _stream(generator)
        return _drawn(
            lambda full: sample(stream, full, kind), parse_sizes(name, shape, size), device, requires_grad, pin_memory
        )

    def create_like(
        input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
        pin_memory: bool = False, memory_format: Any = preserve_format, generator: Generator | None = None,
    ) -> Tensor:  # fmt: skip
        kind = numpy_dtype_for(name, input.dtype if dtype is None else dtype)
        _check_floating(name, kind)
        stream = _stream(generator)
        return _drawn_like(
            input,
            kind,
            memory_format,
            lambda shape, **how: sample(stream, shape, kind, **how),
            serial,
            device,
            requires_grad,
            pin_memory,
        )

    for function, title, text, fast_path in (
        (create, name, f"Return {doc} with the shape ``shape``, ints or one sequence.", common),
        (create_like, f"{name}_like", f"Return {doc} with the shape and dtype of ``input``.", common_like),
    ):
        function.__name__ = function.__qualname__ = title
        function.__doc__ = text
        public(method=False, name=title, array_factory=fast_path)(function)


def _ordered(like: Tensor, kind: Any, memory_format: Any, sample: Any, serial: dict[str, Any]) -> Any:
    """Return an array of random samples with the shape of ``like``, for functions such as ``rand_like``.

    ``kind`` is the dtype of the array. ``sample(shape)`` draws the samples, and successive samples are stored at
    increasing addresses. If ``memory_format`` is ``preserve_format``, the dimensions of the array have the same order
    in memory as those of ``like``. If the array is not contiguous, ``sample`` is called with the keyword arguments
    ``serial``.
    """
    array = empty_array_like(numpy, like, kind, memory_format)
    order = dims_by_stride(array)
    if array.flags.c_contiguous:
        return sample(array.shape)
    array.transpose(order)[...] = sample(tuple(array.shape[axis] for axis in order), **serial)
    return array


def _in_order_of_slices(like: Any, kind: Any, memory_format: Any, sample: Any, serial: dict[str, Any]) -> Any:
    """Return ``sample``, a function that draws samples, for a tensor with the memory order of the batch ``like`` of vmap.

    Its argument is the shape of all slices, of which the first dimension is the batch. The other parameters have the same
    meaning as for :func:`_ordered`. If ``like`` is not a batch, the samples are in C order.
    """
    if not isinstance(like, TransformTensor) or not like.sliced or like._inner.__class__ is not Tensor:
        return sample
    whole = numpy.moveaxis(like._inner._array, like._dim, 0)

    def sample_slices(shape: tuple[int, ...]) -> Any:
        return _ordered(wrap(whole), kind, memory_format, sample, serial) if shape == whole.shape else sample(shape)

    return sample_slices


def dims_by_stride(array: Any) -> list[int]:
    """Return the dimensions of ``array`` as a list of ints, ordered by decreasing absolute stride."""
    return sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))


def _check_floating(name: str, kind: Any) -> None:
    if kind.kind in "biu":
        what = "normal_kernel_cpu" if name == "randn" else "check_uniform_bounds"
        raise dtypes.unsupported(what, kind)


_sampler("rand", samplers.uniform, "a tensor of random numbers of the uniform distribution on [0, 1)")
_sampler("randn", samplers.normal, "a tensor of random numbers of the standard normal distribution", blocks=False)


def _common_integers(given: tuple[Any, ...]) -> Any:
    """Return ``randint(*given)`` as an array if the arguments are simple, else None.

    The arguments are simple if the size is a tuple of ints and the bounds are ints with ``0 <= low < high < 2**28``.
    The result is also None inside ``torch.vmap``, and if the default device is not the CPU. If it is None, the general
    implementation of ``randint`` is used, which is slower.
    """
    if len(given) == 2:
        low, high, size = 0, *given
    elif len(given) == 3:
        low, high, size = given
    else:
        return None
    size = None if size.__class__ is not tuple or active_levels() else simple_shape((size,))
    if size is None or low.__class__ is not int or high.__class__ is not int or not 0 <= low < high < 2**28:
        return None
    return samplers.integers(default_generator._stream, size, draws.I64, low, high)


@public(method=False, array_factory=_common_integers)
def randint(
    *given: Any, low: Any = None, high: Any = None, size: Any = None, generator: Generator | None = None,
    out: Tensor | None = None, dtype: Any = None, layout: Any = strided, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return random integers from ``low`` (by default 0) to ``high - 1``. The default dtype is int64.

    The shape of the result is ``size``. Call the function as ``randint(high, size)`` or ``randint(low, high, size)``.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randint(10, (5,))
    tensor([4, 9, 3, 0, 3])
    >>> torch.randint(3, 5, (2, 4))
    tensor([[4, 4, 4, 4],
            [4, 4, 3, 3]])
    """
    bounds = list(given)
    if size is None and bounds:
        size = bounds.pop()
    if high is None and bounds:
        high = bounds.pop()
    if bounds:
        (low,) = bounds
    low, high = (each.__index__() for each in (0 if low is None else low, high))
    if hasattr(size, "__index__"):
        raise TypeError("a size is a sequence of ints")
    kind = numpy_dtype_for("randint", dtype, dtypes.int64)
    shape = parse_sizes("randint", (), size)
    if kind.kind == "c":
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    _check_span(low, high, dtypes.dtype_of(kind))
    stream = _stream(generator)
    return _drawn(
        lambda full: samplers.integers(stream, full, kind, low, high), shape, device, requires_grad, pin_memory
    )


def _check_span(low: int, high: int, dtype: Any) -> None:
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    least, greatest = samplers.bounds(dtype.numpy)
    for name, bound in (("from", low), ("to - 1", high - 1)):
        if not least <= bound <= greatest:
            raise RuntimeError(f"{name} is out of bounds for {cpp_name(dtype)}")


@public(method=False)
def randint_like(
    input: Tensor, low: Any = None, high: Any = None, *, generator: Generator | None = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = preserve_format,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return random integers from ``low`` to ``high - 1`` in a tensor with the shape and dtype of ``input``.

    ``randint_like(input, high)`` draws integers from 0 to ``high - 1``; ``high`` may then be a tensor with one element.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randint_like(torch.zeros(4), 10)
    tensor([4., 9., 3., 0.])
    """
    if low is None or high is None:
        low, high = 0, low if high is None else high
        if high is None:
            raise TypeError
    low, high = low.__index__(), high.__index__()
    kind = numpy_dtype_for("randint_like", input.dtype if dtype is None else dtype)
    _check_span(low, high, dtypes.dtype_of(kind))
    stream = _stream(generator)
    return _drawn_like(
        input,
        kind,
        memory_format,
        lambda shape: samplers.integers(stream, shape, kind, low, high),
        {},
        device,
        requires_grad,
        pin_memory,
    )


def _common_order(n: Any) -> Any:
    """Return ``randperm(n)`` as an array if ``n`` is a non-negative int, else None.

    The result is also None inside ``torch.vmap``, and if the default device is not the CPU. If it is None, the general
    implementation of ``randperm`` is used, which is slower.
    """
    if n.__class__ is not int or n < 0 or active_levels() or array_module_for(None) is not numpy:
        return None
    return samplers.permutation(default_generator._stream, n, draws.I64)


@public(method=False, array_factory=_common_order)
def randperm(
    n: int, *, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return a random permutation of the integers from 0 to ``n - 1``. The default dtype is int64.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randperm(5)
    tensor([4, 0, 1, 3, 2])
    """
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    kind = numpy_dtype_for("randperm", dtype, dtypes.int64)
    if kind.kind in "cb":
        raise dtypes.unsupported("randperm", kind)
    dtypes.number_to_array(n, kind)
    stream = _stream(generator)

    def permutations(shape: tuple[int, ...]) -> Any:
        count = math.prod(shape[:-1])
        return numpy.stack([samplers.permutation(stream, n, kind) for _ in range(count)]).reshape(shape)

    place = devices.as_device(device)
    if place.type == "meta":
        return new_leaf(array_module_for(place).empty(n, kind), requires_grad, pin_memory=pin_memory)
    return _drawn(permutations, (n,), device, requires_grad, pin_memory)


def _scaled_noise(number: int) -> Any:
    """Return a new operation, which computes ``noise * std + mean`` for ``normal``.

    ``noise`` holds samples of the standard normal distribution. As in PyTorch, the gradients of ``mean`` and ``std``
    are zero. ``number`` is the digit at the end of the name ``NormalBackward…`` of the autograd node: 1 if only
    ``mean`` is a tensor, 2 if only ``std`` is a tensor, and 3 if both are tensors.
    """

    def scaled_noise(np: Any, mean: Any, std: Any, /, noise: Any) -> Any:
        """Return ``noise * std + mean``."""
        return np.add(noise * std, mean)

    block = op(name=f"scaled_noise_{number}", function=False, method=False,
               backward=f"NormalBackward{number}")(scaled_noise)  # fmt: skip
    block.derivative(mean=lambda F, g: F.zeros_as(g), std=lambda F, g: F.zeros_as(g))
    return block


_SCALED = {number: _scaled_noise(number) for number in (1, 2, 3)}


@public(method=False)
def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, out: Tensor | None = None,
    dtype: Any = None, layout: Any = strided, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return random numbers of the normal distribution with mean ``mean`` and standard deviation ``std``.

    If ``mean`` and ``std`` are numbers, ``size`` is the shape of the result. If at least one of ``mean`` and ``std`` is
    a tensor, the result has the shape to which they broadcast, and each sample has its own mean and standard deviation.
    """
    tensors = [each for each in (mean, std) if isinstance(each, Tensor)]
    if not tensors:
        if size is None:
            raise TypeError("normal() needs a size if mean and std are numbers")
        _check_std(std)
        kind = numpy_dtype_for("normal", dtype)
        shape = parse_sizes("normal", (), size)
        stream = _stream(generator)
        return _drawn(
            lambda full: samplers.normal(stream, full, kind, float(mean), float(std)),
            shape,
            device,
            requires_grad,
            pin_memory,
        )
    if isinstance(std, Tensor) and not devices.on_gpu(std._array) and bool((std._array < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    if not isinstance(std, Tensor):
        _check_std(std)
    kind = tensors[0]._array.dtype
    if kind.kind not in "fVc":
        raise dtypes.unsupported("normal_kernel_cpu", kind)
    shapes, stream = [each._array.shape for each in tensors], _stream(generator)
    if shapes[0] == shapes[-1]:
        shape = shapes[0]
    else:
        error = broadcast_mismatch(shapes[0], shapes[-1])
        if error is not None:
            raise error
        shape = numpy.broadcast_shapes(*shapes)
    if in_vmap():
        return draw(lambda full: samplers.normal(stream, full, kind), shape) * std + mean
    np = devices.array_module_of(tensors[0]._array)
    noise = np.empty(shape, kind) if np.__name__ == "meta" else np.asarray(samplers.normal(stream, shape, kind))
    operands = [each if isinstance(each, Tensor) else wrap(np.asarray(each).astype(kind)) for each in (mean, std)]
    block = _SCALED[3 if len(tensors) == 2 else 1 if isinstance(mean, Tensor) else 2]
    return block(*operands, noise)


def _check_std(std: float) -> None:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def _check_probabilities(np: Any, p: Any) -> None:
    if p.dtype.kind not in "fV":
        raise dtypes.unsupported("bernoulli_tensor_cpu_p_", p.dtype)
    if samplers.any_outside(np, p, 0, 1):
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If so, "
            "please report an enhancement request to PyTorch.)"
        )


@op(backward="BernoulliBackward0", function=False, method=False, vmap="random")
def bernoulli_block(np: Any, self: Any, /, stream: Any) -> Any:
    """Return samples of Bernoulli distributions: 1 with the probability ``self``, else 0, elementwise.

    ``stream`` is the state of the random number generator.
    """
    _check_probabilities(np, self)
    return np.empty_like(self) if devices.is_meta(self) else samplers.bernoulli(stream, self.shape, self.dtype, self)


bernoulli_block.derivative(self=lambda F, g: F.zeros_as(g))


@public()
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Return samples of Bernoulli distributions in a tensor of the shape of ``input``.

    A sample is 1 with the probability in the corresponding element of ``input``, else 0. If ``p`` is passed, it is the
    probability for all samples.
    """
    if p is not None:
        return input.detach().clone(memory_format=contiguous_format).bernoulli_(p, generator=generator)
    return bernoulli_block(input, _stream(generator))


@op(function=False, method=False, backward="PoissonBackward0", vmap="random")
def poisson_block(np: Any, self: Any, /, stream: Any) -> Any:
    """Return one sample of the Poisson distribution for each rate in ``self``.

    ``stream`` is the state of the random number generator.
    """
    if self.dtype.kind not in "fV":
        raise dtypes.unsupported("poisson_cpu", self.dtype)
    if not devices.on_gpu(self) and np.any(self < 0):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if devices.is_meta(self):
        return np.empty_like(self)
    return np.asarray(samplers.poisson(stream, devices.on_cpu(self)))


poisson_block.derivative(self=lambda F, g: F.zeros_as(g))


@public(method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return one sample of the Poisson distribution for each rate in ``input``."""
    return poisson_block(input, _stream(generator))


@op(function=False, method=False, differentiable=0, vmap="random")
def binomial_block(np: Any, count: Any, prob: Any, /, stream: Any) -> Any:
    """Return samples of binomial distributions with ``count`` trials of success probability ``prob``.

    ``count`` and ``prob`` hold one element for each sample. ``stream`` is the state of the random number generator.
    """
    if devices.is_meta(count):
        return np.empty(numpy.broadcast_shapes(count.shape, prob.shape), count.dtype)
    return np.asarray(samplers.binomial(stream, devices.on_cpu(count), devices.on_cpu(prob)))


@public(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Return samples of binomial distributions with ``count`` trials of success probability ``prob``.

    ``count`` and ``prob`` are tensors with one element for each sample. A sample is the number of successes.

    >>> import retrograd as torch
    >>> torch.binomial(torch.tensor([0.0, 5.0]), torch.tensor([0.5, 1.0]))
    tensor([0., 5.])
    """
    for name, each in (("count", count), ("prob", prob)):
        if each.dtype.category != dtypes.FLOATING:
            shown = dtypes.scalar_name(each.dtype)
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {shown}")
    if count.dtype is not prob.dtype:
        found, expected = (dtypes.scalar_name(each.dtype) for each in (prob, count))
        raise RuntimeError(f"Found dtype {found} but expected {expected}")
    if count.dtype.numpy in dtypes.HALF_PRECISION:
        raise dtypes.unsupported("binomial_cpu", count.dtype.numpy)
    error = broadcast_mismatch(count._array.shape, prob._array.shape)
    if error is not None:
        raise error
    return binomial_block(count, prob, _stream(generator))


@op(function=False, method=False, differentiable=0, vmap="random")
def multinomial_block(np: Any, self: Any, /, stream: Any, count: int, replacement: bool) -> Any:
    """Return ``count`` random indices for each row of weights in ``self``.

    A row is a vector along the last dimension. An index is drawn with a probability proportional to its weight. If
    ``replacement`` is false, no index is drawn twice for a row. ``stream`` is the state of the random number generator.
    """
    if devices.is_meta(self):
        return np.empty((*self.shape[:-1], count), numpy.int64)
    rows = devices.on_cpu(self).reshape(-1, self.shape[-1])
    return np.asarray(samplers.multinomial(stream, rows, count, replacement)).reshape(*self.shape[:-1], count)


def _check_weights(weights: Any, several: bool) -> None:
    """Raise PyTorch's RuntimeError if ``multinomial`` cannot use ``weights``.

    ``several`` is true if several indices are drawn with replacement, which has errors of its own.
    """
    try:
        samplers.check_weights(devices.array_module_of(weights), weights)
    except RuntimeError:
        bad = weights[(weights < 0) | ~numpy.isfinite(weights.astype(numpy.float64))]
        if several and bad.size:
            entry = "= infinity or NaN" if bad[0] > 0 else "< 0"
            raise RuntimeError(f"invalid multinomial distribution (encountering probability entry {entry})") from None
        raise


@public()
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return ``num_samples`` random indices for each row of weights in ``input``.

    ``input`` is 1-d (one row) or 2-d (several rows), and the weights are not negative. An index is drawn with a
    probability proportional to its weight. If ``replacement`` is false, no index is drawn twice for a row.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 8, replacement=True)
    tensor([2, 2, 2, 2, 2, 2, 1, 2])
    """
    weights = input._array
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if weights.dtype.kind not in "fV":
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {dtypes.scalar_name(input.dtype)}"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if not weights.size:
        if weights.ndim == 1 or len(weights):
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        return wrap(devices.array_module_of(weights).empty((0, num_samples), numpy.int64))
    if not input.is_meta:
        _check_weights(weights, replacement and num_samples > 1)
    return multinomial_block(input, _stream(generator), num_samples, replacement)


# -- In place --------------------------------------------------------------------------------------------------------


def _overwriting(node: str) -> Any:
    """Return a new operation, which replaces all elements of a tensor by random samples.

    Methods such as ``uniform_`` call this operation, so that autograd records the replacement. ``node`` is the name of
    the autograd node.
    """

    def overwrite(np: Any, self: Any, /, values: Any) -> Any:
        """Return ``values``, the samples that replace the elements of ``self``.

        The gradient of ``self`` is zero, because the result does not depend on ``self``.
        """
        return values

    block = op(name="overwrite_" + node, function=False, method=False, backward=node)(overwrite)
    block.derivative(self=lambda F, g: F.zeros_as(g))
    return block


#: Overwriting operations by node name, which PyTorch numbers by overload.
_OVERWRITE = {
    node: _overwriting(node)
    for node in (
        "UniformBackward0", "NormalBackward0", "RandomBackward0", "RandomBackward1", "RandomBackward2",
        "ExponentialBackward0", "CauchyBackward0", "LogNormalBackward0", "GeometricBackward0", "BernoulliBackward1",
        "BernoulliBackward2",
    )
}  # fmt: skip


def _writable_directly(x: Tensor) -> bool:
    """Whether a method such as ``uniform_`` may write samples directly to the memory of ``x``.

    The result is False unless ``x`` is a contiguous float32 or float64 tensor on the CPU. It is also False if autograd
    must record the operation, inside ``torch.vmap``, and for a subclass of Tensor. If the result is False, the caller
    must write the samples by an in-place operation.
    """
    array = x._array
    if x.__class__ not in PLAIN or array.__class__ is not numpy.ndarray or not array.flags.c_contiguous:
        return False
    if x._grad_edge is not None or x._view is not None:
        return is_directly_writable(x) and array.dtype in (F32, F64) and not active_levels()
    return (
        (array.dtype is F32 or array.dtype is F64)
        and x._counter != ()
        and not before_modification
        and not active_levels()
    )


def _write(node: str, x: Tensor, sample: Any, one_by_one: Any = None) -> Tensor:
    """Overwrite ``x`` with the samples that ``sample(shape)`` draws, and return ``x``.

    Successive samples are stored at increasing addresses. If ``x`` is not contiguous, PyTorch computes normal samples
    by another method. ``one_by_one(shape)`` draws samples by this method; None means that there is only one method.
    ``node`` is the name of the autograd node.
    """
    if in_vmap():
        return _write_drawn(x, sample)
    array = x._array
    if _writable_directly(x):
        assign(x, sample(array.shape))
        return x
    check_in_place(x, recording() and x.requires_grad)  # before the generator advances
    if devices.is_meta(array):
        return modify(_OVERWRITE[node].op, (x,), (array,))
    order = dims_by_stride(array)
    dense = array.flags.c_contiguous
    drawn = sample(array.shape) if dense else (one_by_one or sample)(tuple(array.shape[axis] for axis in order))
    values = drawn if dense else numpy.transpose(drawn, numpy.argsort(order))
    if array.__class__ is not numpy.ndarray:
        values = devices.to_device(values, x.device)
    return modify(_OVERWRITE[node].op, (x,), (values,))


def _write_drawn(x: Tensor, sample: Any) -> Tensor:
    """Overwrite ``x`` with random samples inside a function that ``torch.vmap`` calls, and return ``x``.

    ``sample(shape)`` draws samples for the shape of ``x``. If ``vmap`` was called with ``randomness="different"``, each
    element of the batch gets different samples. In this case, raise RuntimeError if ``x`` has no batch dimension.
    """
    if not {each for each in active_levels() if each.differs()} <= batch_levels(x):
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
            "randomness. If this is necessary for your usage, please file an issue with functorch."
        )
    ordered = _in_order_of_slices(x, x._array.dtype, preserve_format, sample, {})
    return modify(copy_block.op, (x, draw(ordered, x._array.shape)), ())


@public(function=False)
def uniform_(
    input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None, **rest: float
) -> Tensor:
    """Overwrite ``input`` with random numbers of the uniform distribution on [from, to), and return ``input``.

    The lower bound can be passed as ``from_`` or, in ``rest``, as the keyword argument ``from``.
    """
    low, high = rest.pop("from", from_), to
    _check_floating("uniform_", input._array.dtype)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if low == 0 and high == 1 and _writable_directly(input):
        array = input._array
        assign(input, samplers.uniform(_stream(generator), array.shape, array.dtype))
        return input
    least, greatest = samplers.bounds(input._array.dtype)
    for name, bound in (("from", low), ("to", high)):
        if not least <= bound <= greatest:
            raise RuntimeError(f"{name} is out of bounds for {cpp_name(input.dtype)}")
    return _write(
        "UniformBackward0",
        input,
        lambda shape: samplers.uniform(_stream(generator), shape, input._array.dtype, low, high),
    )


@public(function=False)
def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite ``input`` with random numbers of a normal distribution, and return ``input``.

    The distribution has the mean ``mean`` and the standard deviation ``std``.
    """
    if std < 0:
        _check_std(std)
    array, stream = input._array, _stream(generator)
    kind = array.dtype
    if _writable_directly(input):
        maker = (
            samplers.standard_normal_converter(stream, array.size) if kind is F32 and mean == 0 and std == 1 else None
        )
        if maker is None:
            drawn = samplers.normal(stream, array.shape, kind, mean, std)
        else:
            drawn = stream.numbers(array.size, maker).reshape(array.shape)
        assign(input, drawn)
        return input
    _check_floating("randn", kind)
    return _write(
        "NormalBackward0",
        input,
        lambda shape: samplers.normal(stream, shape, kind, mean, std),
        lambda shape: samplers.normal(stream, shape, kind, mean, std, blocks=False),
    )


_MISSING: Any = object()


@public(function=False)
def random_(
    input: Tensor, from_: Any = _MISSING, to: Any = _MISSING, *, generator: Generator | None = None, **rest: Any
) -> Tensor:
    """Overwrite ``input`` with random integers, and return ``input``.

    ``random_(from, to)`` draws integers from ``from`` to ``to - 1``, and ``random_(to)`` from 0 to ``to - 1``.
    ``random_()`` draws integers from 0 to the largest integer of the dtype. For a floating dtype, this is the largest
    integer up to which the dtype represents all integers exactly.

    >>> import retrograd as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(5).random_(10)
    tensor([4., 9., 3., 0., 3.])
    """
    low = rest.pop("from", from_)
    kind, stream = input._array.dtype, _stream(generator)
    if kind.kind == "c":
        raise dtypes.unsupported("random_kernel_cpu", kind)
    if low is _MISSING and to is _MISSING:
        return _write("RandomBackward2", input, lambda shape: samplers.full_range_integers(stream, shape, kind))
    node = "RandomBackward1" if to is _MISSING or low is _MISSING else "RandomBackward0"
    low, high = (0, low) if to is _MISSING else (0 if low is _MISSING else low, to)
    if high is None:
        high = samplers.largest_integer(kind) + 1
    _check_span(low, high, input.dtype)
    return _write(node, input, lambda shape: samplers.integers(stream, shape, kind, low, high))


@public(function=False)
def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Overwrite each element of ``input`` with 1 with probability ``p``, else with 0, and return ``input``.

    ``p`` is a number, or a tensor that broadcasts to the shape of ``input`` and holds a probability for each element.
    """
    kind, stream = input._array.dtype, _stream(generator)
    if kind.kind == "c":
        raise dtypes.unsupported("bernoulli_scalar_cpu_", kind)
    if isinstance(p, Tensor) and input.is_meta:
        p = 0.5  # the values of the samples do not matter
    if isinstance(p, Tensor):
        probabilities = expand(p, input._array.shape)._array
        np = devices.array_module_of(probabilities)
        _check_probabilities(np, probabilities)
        return _write(
            "BernoulliBackward1", input,
            lambda shape: samplers.bernoulli(stream, shape, kind, np.asarray(probabilities, order="C")),
        )  # fmt: skip
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return _write("BernoulliBackward2", input, lambda shape: samplers.bernoulli(stream, shape, kind, p))


def _filler(name: str, sample: Any, defaults: dict[str, float | None], doc: str, check: Any, refuse: Any) -> None:
    """Define the method ``name``, such as ``exponential_``, which overwrites a tensor with samples of a distribution.

    ``sample(stream, shape, dtype, *parameters)`` draws the samples, where ``stream`` is the state of the random number
    generator. ``doc`` describes the samples in the docstring. ``defaults`` maps the names of the parameters of the
    distribution to their default values, or None. ``check(**parameters)`` returns an error message, or an empty string if the
    parameters are valid. ``refuse(dtype)`` is called for a dtype that is not a real floating dtype; it raises an error
    if the method does not support this dtype.
    """
    node = "".join(part.capitalize() for part in name.split("_")) + "Backward0"

    def fill(input: Tensor, *args: float, generator: Generator | None = None, **kwargs: float) -> Tensor:
        given = dict(zip(defaults, args, strict=False))
        if len(args) > len(defaults) or not given.keys().isdisjoint(kwargs):
            raise TypeError(f"{name}() got too many arguments")
        values = {**defaults, **given, **kwargs}
        if None in values.values():
            raise TypeError(f"{name}() lacks an argument")
        problem = check(**values)
        if problem:
            raise RuntimeError(problem)
        if input._array.dtype.kind not in "fV":
            refuse(input.dtype)
        parameters = list(values.values())
        return _write(node, input, lambda shape: sample(_stream(generator), shape, input._array.dtype, *parameters))

    fill.__name__ = fill.__qualname__ = name
    fill.__doc__ = f"Overwrite ``input`` with {doc}, and return ``input``."
    public(function=False, name=name)(fill)


def _continuous(name: str, shown: Any) -> Any:
    """Return a function that raises PyTorch's error for a continuous distribution and a dtype that is not floating.

    The function takes the dtype, and is the argument ``refuse`` of :func:`_filler`. ``name`` is the name of the
    distribution, and ``shown(dtype)`` returns the name of the dtype in the message.
    """

    def refuse(dtype: Any) -> None:
        raise RuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {shown(dtype)}"
        )

    return refuse


def _no_kernel(name: str, kinds: str) -> Any:
    """Return a function that takes a dtype, and raises PyTorch's error if the dtype is not supported.

    The function is the argument ``refuse`` of :func:`_filler`. A dtype is unsupported if its ``numpy.dtype.kind`` is a
    character of the string ``kinds``, such as "bc". ``name`` is the name of PyTorch's kernel in the error message.
    """

    def refuse(dtype: Any) -> None:
        if dtype.numpy.kind in kinds:
            raise dtypes.unsupported(name, dtype.numpy)

    return refuse


_filler(
    "exponential_", samplers.exponential, {"lambd": 1.0}, "samples of the exponential distribution of rate ``lambd``",
    lambda lambd: "" if lambd > 0 else f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}",
    _continuous("Exponential", dtypes.scalar_name),
)  # fmt: skip
_filler(
    "cauchy_", samplers.cauchy, {"median": 0.0, "sigma": 1.0}, "samples of the Cauchy distribution",
    lambda median, sigma: "" if sigma > 0 else f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}",
    _continuous("Cauchy", cpp_name),
)  # fmt: skip
_filler(
    "log_normal_", samplers.log_normal, {"mean": 1.0, "std": 2.0}, "samples of the log-normal distribution",
    lambda mean, std: "" if std > 0 else f"log_normal_ expects std > 0.0, but found std={std:g}",
    _no_kernel("log_normal_cpu", "biuc"),
)  # fmt: skip
_filler(
    "geometric_", samplers.geometric, {"p": None}, "geometric samples: the number of trials until the first success",
    lambda p: "" if 0 < p < 1 else f"geometric_ expects p to be in (0, 1), but got p={p:g}",
    _no_kernel("geometric_cpu", "bc"),
)  # fmt: skip


__all__ = ["Generator", "default_generator", "fork_rng"]
