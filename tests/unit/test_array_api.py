"""``retrograd.array_api``: results and errors that differ from PyTorch's, as the array API standard defines them.

The whole standard is tested by array-api-tests (``scripts/array_api_tests.py``), which is no dependency of the suite.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import retrograd as torch

xp = torch.array_api


def same(found: torch.Tensor, expected: list[object] | object, dtype: torch.dtype) -> None:
    assert found.dtype is dtype
    numpy.testing.assert_array_equal(found.numpy(), numpy.asarray(expected))


def test_tensors_name_their_namespace() -> None:
    x = torch.ones(2)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2025.12") is xp
    assert xp.__array_api_version__ == "2025.12"
    with pytest.raises(ValueError, match=r"2020\.01"):
        x.__array_namespace__(api_version="2020.01")
    assert x.to_device("cpu") is x


#: Where the standard's parameters differ from PyTorch's.
SIGNATURES = {
    "sum": "(x, /, *, axis=None, dtype=None, keepdims=False)", "std": "(x, /, *, axis=None, correction=0.0, keepdims=False)",
    "concat": "(arrays, /, *, axis=0)", "squeeze": "(x, /, axis)", "add": "(x1, x2, /)", "sin": "(x, /)",
    "clip": "(x, /, min=None, max=None)", "moveaxis": "(x, source, destination, /)", "isdtype": "(dtype, kind)",
    "full": "(shape, fill_value, *, dtype=None, device=None)", "take": "(x, indices, /, *, axis=None)",
    "searchsorted": "(x1, x2, /, *, side='left', sorter=None)", "astype": "(x, dtype, /, *, copy=True, device=None)",
    "linalg.vector_norm": "(x, /, *, axis=None, keepdims=False, ord=2)", "linalg.solve": "(x1, x2, /)",
    "fft.fftn": "(x, /, *, s=None, axes=None, norm='backward')",
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_the_standards(name: str) -> None:
    function = xp
    for part in name.split("."):
        function = getattr(function, part)
    signature = inspect.signature(function)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == SIGNATURES[name]


PROMOTION = [
    ((torch.int8, torch.int16), torch.int16),
    ((torch.uint8, torch.int8), torch.int16),
    ((torch.uint16, torch.uint32), torch.uint32),
    ((torch.uint32, torch.int8), torch.int64),
    ((torch.float32, torch.float64), torch.float64),
    ((torch.float64, torch.complex64), torch.complex128),
    ((torch.float32, 1j), torch.complex64),
    ((torch.int8, 1), torch.int8),
    ((torch.float32, 1), torch.float32),
    ((1.0, torch.complex64, torch.float32), torch.complex64),
]


@pytest.mark.parametrize(("operands", "expected"), PROMOTION)
def test_promotion(operands: tuple[object, ...], expected: torch.dtype) -> None:
    assert xp.result_type(*operands) is expected
    assert xp.result_type(*reversed(operands)) is expected


@pytest.mark.parametrize(
    "operands",
    [
        (torch.int64, torch.float32), (torch.bool, torch.int8), (torch.uint64, torch.int8), (torch.bool, 1),
        (torch.int8, 1.0), (torch.bool, torch.float32),
    ],
)  # fmt: skip
def test_mixed_kinds_are_refused(operands: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        xp.result_type(*operands)
    arrays = [torch.ones(2, dtype=each) if isinstance(each, torch.dtype) else each for each in operands]
    with pytest.raises(TypeError):
        xp.where(torch.ones(2, dtype=torch.bool), *arrays)


def test_promotion_does_not_depend_on_the_number_of_dimensions() -> None:
    one, many = torch.tensor(1.0, dtype=torch.float64), torch.ones(2)
    assert (one + many).dtype is torch.float32
    same(xp.add(one, many), [2.0, 2.0], torch.float64)
    same(xp.concat([torch.ones(1, dtype=torch.uint8), torch.ones(1, dtype=torch.int8)]), [1, 1], torch.int16)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("sin", torch.int64), ("bitwise_and", torch.float32), ("logical_or", torch.int8), ("less", torch.complex64),
     ("mean", torch.int64), ("sort", torch.complex64), ("signbit", torch.int8)],
)  # fmt: skip
def test_dtypes_of_other_kinds_are_refused(name: str, dtype: torch.dtype) -> None:
    x = torch.ones(2, dtype=dtype)
    function = getattr(xp, name)
    with pytest.raises(TypeError, match=name):
        function(x, x) if len(inspect.signature(function).parameters) == 2 and name != "mean" else function(x)


def test_isdtype_and_infos() -> None:
    assert xp.isdtype(torch.uint8, "unsigned integer")
    assert xp.isdtype(torch.complex64, ("real floating", "complex floating"))
    assert not xp.isdtype(torch.bool, "numeric")
    with pytest.raises(ValueError, match="integer"):
        xp.isdtype(torch.int8, "integer")
    assert xp.finfo(torch.complex128).dtype is torch.float64
    assert (xp.iinfo(torch.int8).min, xp.iinfo(torch.ones(1, dtype=torch.int8)).dtype) == (-128, torch.int8)
    assert xp.can_cast(torch.int8, torch.int64)
    assert not xp.can_cast(torch.int64, torch.float64)
    with pytest.raises(TypeError, match="real"):
        xp.astype(torch.ones(1, dtype=torch.complex64), torch.float32)


def test_dtypes_may_be_given_by_name() -> None:
    """xarray passes names."""
    assert xp.result_type(torch.float64, "float32") is torch.float64
    assert xp.astype(torch.ones(1), "float64").dtype is torch.float64
    with pytest.raises(TypeError, match="'object'"):
        xp.result_type(torch.float64, "object")


def test_small_integers_are_added_as_int64() -> None:
    same(xp.sum(torch.tensor([100, 100], dtype=torch.int8)), 200, torch.int64)
    same(xp.prod(torch.tensor([100, 100], dtype=torch.uint8)), 10000, torch.uint64)
    same(xp.sum(torch.tensor([True, True])), 2, torch.int64)
    same(xp.cumulative_sum(torch.tensor([1, 2], dtype=torch.int8), include_initial=True), [0, 1, 3], torch.int64)


def test_an_empty_tuple_of_axes_reduces_nothing() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert torch.sum(x, ()).item() == 10
    same(xp.sum(x, axis=()), x.tolist(), torch.float32)
    same(xp.var(x, axis=(), keepdims=True), [[0.0, 0.0], [0.0, 0.0]], torch.float32)
    same(xp.prod(x, axis=(0, -1), keepdims=True), [[24.0]], torch.float32)
    same(xp.any(x > 3, axis=(0, 1)), True, torch.bool)
    same(xp.count_nonzero(x - 1, axis=1, keepdims=True), [[1], [2]], torch.int64)
    same(xp.linalg.vector_norm(-x, axis=()), x.tolist(), torch.float32)
    with pytest.raises(IndexError):
        xp.sum(x, axis=2)


def test_special_values() -> None:
    inf, nan = math.inf, math.nan
    x = torch.tensor([inf, -inf, 7.0, -7.0, 1.0])
    same(xp.floor_divide(x, torch.tensor([2.0, 2.0, 2.0, inf, -inf])), [inf, -inf, 3.0, -0.0, -0.0], torch.float32)
    signs = torch.signbit(xp.remainder(torch.tensor([-0.0, 0.0]), torch.tensor([2.0, -2.0])))
    assert signs.tolist() == [False, True]
    same(xp.sign(torch.tensor([nan, -2.0])), [nan, -1.0], torch.float32)
    same(xp.expm1(torch.tensor([complex(inf, 0.0), complex(-inf, nan)])), [complex(inf, 0), -1], torch.complex64)
    small = xp.expm1(torch.tensor(1e-20 + 1e-20j)).item()
    assert small.real == pytest.approx(1e-20)
    same(xp.clip(torch.tensor([1.0]), nan, None), [nan], torch.float32)
    same(xp.clip(torch.tensor([5], dtype=torch.int8), -1000, 3), [3], torch.int8)


def test_unique_values_and_their_positions() -> None:
    x = torch.tensor([[3.0, math.nan, 1.0], [1.0, math.nan, 3.0]])
    values, indices, inverse, counts = xp.unique_all(x)
    same(values, [1.0, 3.0, math.nan, math.nan], torch.float32)
    same(indices, [2, 0, 1, 4], torch.int64)
    same(inverse, [[1, 2, 0], [0, 3, 1]], torch.int64)
    same(counts, [2, 2, 1, 1], torch.int64)
    same(xp.unique_values(torch.tensor([1j, 0, 1j, 1])), [0, 1j, 1], torch.complex64)
    same(xp.isin(torch.tensor([1j, 2]), torch.tensor([2j, 1j]), invert=True), [False, True], torch.bool)


def test_shapes() -> None:
    x = torch.arange(6).reshape(1, 2, 3)
    assert xp.expand_dims(x, (0, -1)).shape == (1, 1, 2, 3, 1)
    assert xp.squeeze(x, 0).shape == (2, 3)
    with pytest.raises(ValueError, match="size 2"):
        xp.squeeze(x, 1)
    with pytest.raises(ValueError):
        xp.broadcast_shapes((2,), (3,))
    with pytest.raises(ValueError):
        xp.reshape(xp.permute_dims(x, (2, 1, 0)), (6,), copy=False)
    same(xp.take(x, torch.tensor([-1]), axis=2), [[[2], [5]]], torch.int64)
    same(xp.take_along_axis(x, torch.tensor([[[-1], [0]]])), [[[2], [3]]], torch.int64)
    same(xp.concat([x, x[..., :1]], axis=None)[-2:], [0, 3], torch.int64)
    same(xp.repeat(torch.tensor([1, 2]), torch.tensor([2, 1], dtype=torch.int8)), [1, 1, 2], torch.int64)
    assert [each.tolist() for each in xp.unstack(torch.arange(2))] == [0, 1]
    with pytest.raises(ValueError):
        xp.nonzero(torch.tensor(1))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: xp.reshape(x, (4,)), lambda x: xp.reshape(x, (4,), copy=False), lambda x: xp.broadcast_to(x, (3, 2)),
        lambda x: xp.squeeze(x, 0), lambda x: xp.permute_dims(x, (0, 0)), lambda x: xp.permute_dims(x, (0,)),
        lambda x: xp.moveaxis(x, (0, 0), (0, 1)), lambda x: xp.concat([x, torch.ones(2)]), lambda x: xp.sum(x, axis=(0, -2)),
        lambda x: xp.stack([x, torch.ones(2)]), lambda x: xp.broadcast_arrays(x, torch.ones(2)),
    ],
)  # fmt: skip
def test_shapes_and_axes_that_do_not_fit_raise_value_error(call: Callable[[torch.Tensor], object]) -> None:
    with pytest.raises(ValueError):
        call(torch.ones(2, 3))


def functions_of_tensors() -> Iterator[Any]:
    for module in (xp, xp.linalg, xp.fft):
        for name in module.__all__:
            parameters = inspect.signature(getattr(module, name)).parameters if callable(getattr(module, name)) else {}
            first = next(iter(parameters.values()), None)
            if (
                first is not None
                and str(first.annotation).startswith("Tensor")
                and "Dtype" not in str(first.annotation)
            ):
                yield pytest.param(getattr(module, name), id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("function", [*functions_of_tensors()])
def test_other_objects_than_tensors_are_refused(function: Callable[..., object]) -> None:
    tensor = torch.ones(1, dtype=torch.int64)
    count = len([each for each in inspect.signature(function).parameters.values() if each.default is each.empty])
    with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) takes tensors, not list$"):
        function([1], *[tensor] * (count - 1))


def test_nan_is_sorted_as_the_largest_value() -> None:
    """As NumPy and array-api-strict sort; the standard leaves the order of NaN open."""
    x = torch.tensor([1.0, math.nan, 2.0])
    same(xp.sort(x), [1.0, 2.0, math.nan], torch.float32)
    same(xp.sort(x, descending=True), [math.nan, 2.0, 1.0], torch.float32)
    same(xp.argsort(x, descending=True), [1, 2, 0], torch.int64)


def test_linear_algebra() -> None:
    matrix = torch.tensor([[2.0, 0.0], [0.0, 4.0]])
    same(xp.linalg.solve(matrix, torch.tensor([2.0, 4.0])), [1.0, 1.0], torch.float32)
    same(xp.linalg.solve(matrix.expand(2, 2, 2), matrix)[1], [[1.0, 0.0], [0.0, 1.0]], torch.float32)
    same(xp.linalg.trace(torch.ones(2, 2, dtype=torch.int8)), 2, torch.int64)
    same(xp.vecdot(torch.tensor([1j]), torch.tensor([1j])), 1, torch.complex64)
    with pytest.raises(ValueError):
        xp.vecdot(torch.ones(1), torch.ones(2))
    assert xp.linalg.eigh(matrix).eigenvalues.tolist() == [2, 4]


def test_creation() -> None:
    assert xp.arange(3, 0).dtype is torch.int64
    assert xp.arange(0, 0.0).dtype is torch.float32
    for stop in (0, 1):
        with pytest.raises(RuntimeError, match="step must be nonzero"):
            xp.arange(0, stop, 0)
    same(xp.linspace(0, 4, 4, endpoint=False), [0.0, 1.0, 2.0, 3.0], torch.float32)
    same(xp.eye(2, 3, k=1), [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], torch.float32)
    same(xp.asarray(numpy.arange(3)[::-1]), [2, 1, 0], torch.int64)
    x = torch.ones(2)
    assert xp.asarray(x) is x
    with pytest.raises(ValueError):
        xp.asarray(x, dtype=torch.float64, copy=False)


def test_namespace_info() -> None:
    info = xp.__array_namespace_info__()
    assert info.default_dtypes() == {
        "real floating": torch.float32, "complex floating": torch.complex64, "integral": torch.int64, "indexing": torch.int64,
    }  # fmt: skip
    assert info.dtypes(kind="unsigned integer").keys() == {"uint8", "uint16", "uint32", "uint64"}
    assert info.default_device() in info.devices()
    assert info.capabilities()["boolean indexing"] is True


def test_gradients_pass_through() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = xp.sum(xp.concat([xp.asarray(x), xp.multiply(xp.astype(x, torch.float64), 3.0)]))
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [4, 4]


def test_standard_operators() -> None:
    one, many = torch.tensor(1.0, dtype=torch.float64), torch.ones(2)
    x = torch.arange(4).reshape(2, 2)
    before = torch.Tensor.__add__
    with xp.standard_operators():
        assert (one + many).dtype is torch.float64
        assert (2 - many).tolist() == [1, 1]
        assert x[::-1, 0].tolist() == [2, 0]
        x[..., ::-1] = torch.tensor([5, 6])
        assert x.tolist() == [[6, 5], [6, 5]]
        assert (torch.tensor(math.inf) // 2).item() == math.inf
        assert (x == "text") is False
        with pytest.raises(TypeError):
            x + many
        many += 1
        with pytest.raises(TypeError):
            many += one
        assert torch.nn.functional.cross_entropy(torch.ones(2, 2), torch.tensor([0, 1])).item() == pytest.approx(
            math.log(2)
        )
    assert torch.Tensor.__add__ is before
    with pytest.raises(ValueError, match="step"):
        x[::-1]


def test_an_imaginary_part_that_is_missing_is_a_missing_attribute() -> None:
    """xarray and NumPy read ``imag`` of any array."""
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="imag is not implemented"):
        x.imag
    assert not hasattr(x, "imag")
    assert numpy.imag(x).tolist() == [0, 0]


def test_contexts_of_standard_operators_may_overlap() -> None:
    own = torch.Tensor.__add__
    first, second = torch.array_api.standard_operators(), torch.array_api.standard_operators()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert torch.Tensor.__add__ is not own
    second.__exit__(None, None, None)
    assert torch.Tensor.__add__ is own
    assert (torch.tensor([1, 2]) + 1.5).dtype is torch.float32
