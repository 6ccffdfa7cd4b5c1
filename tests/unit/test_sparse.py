"""Sparse tensors: derivatives, gradients of leaves, refused functions, copies, files, SciPy and transforms."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
import scipy.sparse

import retrograd as torch
from retrograd.core import torch_function

INDICES = torch.tensor([[0, 1, 1, 2], [2, 0, 2, 1]])
REPEATED = torch.tensor([[0, 1, 1, 1, 2], [2, 0, 2, 0, 1]])
VALUES = torch.tensor([3.0, 4.0, 5.0, -2.0])


def matrix(values: Any = VALUES, size: tuple[int, int] = (3, 3)) -> Any:
    indices = INDICES if len(values) == 4 else REPEATED
    return torch.sparse_coo_tensor(indices, values, size)


def dense(*shape: int, seed: int = 0) -> Any:
    return torch.tensor(numpy.random.default_rng(seed).uniform(0.5, 1.5, shape)).requires_grad_()


# -- Derivatives -----------------------------------------------------------------------------------------------------

#: Functions of a sparse matrix S (3, 3) with repeated indices, of another one R, and of dense matrices A and B (3, 3).
FUNCTIONS = [
    "S.to_dense()", "S.coalesce().values()", "torch.sparse.mm(S, A)", "torch.mm(A, S)", "torch.mm(S, R).to_dense()",
    "torch.sparse.addmm(B, S, A, beta=2, alpha=3)", "torch.mv(S, A[0])", "(S + R).to_dense()", "(S - R * 2).to_dense()", "A + S",
    "(S * A).to_dense()", "(S * A[0]).to_dense()", "(S * R).to_dense()", "(S / 3).to_dense()", "S.sin().to_dense()",
    "(S ** 3).to_dense()", "S.sqrt().to_dense()", "S.sum()", "S.sum(0).to_dense()", "torch.sparse.sum(S, 1).to_dense()",
    "torch.sparse.softmax(S, 1).to_dense()", "torch.sparse.log_softmax(S, 0).to_dense()", "S.t().to_dense()",
    "torch.cat([S, R], 1).to_dense()", "torch.stack([S, R]).to_dense()", "S.index_select(0, torch.tensor([1, 1, 2])).to_dense()",
    "S[1].to_dense()", "S[1, 0]", "S.narrow(1, 1, 2).to_dense()", "A.sparse_mask(S).to_dense()", "S.sparse_mask(R).to_dense()",
    "S.norm()", "S.to_sparse_csr() @ A", "(S.to_sparse_csr() @ R.to_sparse_csr()).to_dense()", "S.to_sparse_csc().to_dense()",
    "A.to_sparse().to_dense() * A", "A.to_sparse(1).sum(1).to_dense()", "torch.sparse.sampled_addmm(S, A, B).to_dense()",
    "torch.bmm(torch.stack([S, R]), torch.stack([A, B]))", "torch.smm(S, A).to_dense()", "torch.hspmm(S, A).to_dense()",
    "torch.dsmm(S, A)", "torch.matmul(S, torch.stack([A, B]))",
    "torch.nn.functional.linear(A, S, B[0])",
]  # fmt: skip


@pytest.mark.parametrize("expression", FUNCTIONS)
def test_derivatives_match_finite_differences(expression: str) -> None:
    values, others, a, b = dense(5), dense(4, seed=1), dense(3, 3, seed=2), dense(3, 3, seed=3)

    def function(values: Any, others: Any, a: Any, b: Any) -> Any:
        names = {"torch": torch, "S": matrix(values), "R": matrix(others), "A": a, "B": b}
        return eval(expression, names)

    unused = [x for name, x in zip("SRAB", (values, others, a, b), strict=True) if name not in expression]
    for x in unused:
        x.requires_grad_(False)
    assert torch.autograd.gradcheck(function, (values, others, a, b))
    assert torch.autograd.gradgradcheck(function, (values, others, a, b))


def test_hspmm_keeps_the_rows_that_the_matrix_has() -> None:
    s = torch.sparse_coo_tensor([[0, 2, 0], [1, 0, 1]], [3.0, 4.0, 5.0], (3, 2))
    product = torch.hspmm(s, torch.arange(4.0).reshape(2, 2))
    assert (product.sparse_dim(), product.dense_dim(), product.is_coalesced()) == (1, 1, False)
    assert product._indices().tolist() == [[0, 2]]
    assert product._values().tolist() == [[16.0, 24.0], [0.0, 4.0]]
    with pytest.raises(RuntimeError, match="hspmm: Argument #3: Expected dim 0 size 2, got 3"):
        torch.hspmm(s, torch.ones(3, 2))


@pytest.mark.parametrize("coalesced", [True, False])
def test_gradient_of_a_leaf_has_its_indices(coalesced: bool) -> None:
    leaf = matrix(torch.tensor([3.0, 4.0, 5.0, 6.0, -2.0]))
    leaf = (leaf.coalesce() if coalesced else leaf).requires_grad_()
    factor = torch.arange(9.0).reshape(3, 3)
    (leaf.to_dense() * factor).sum().backward()
    assert leaf.grad.layout is torch.sparse_coo and leaf.grad.is_coalesced()
    assert leaf.grad._indices().tolist() == [[0, 1, 1, 2], [2, 0, 2, 1]]
    assert leaf.grad._values().tolist() == [2.0, 3.0, 5.0, 7.0]
    (again,) = torch.autograd.grad((leaf.to_dense() * factor).sum(), leaf)
    assert again.to_dense().equal(leaf.grad.to_dense())
    leaf.grad = None
    assert leaf.grad is None


def test_backward_from_a_sparse_tensor_takes_sparse_and_dense_gradients() -> None:
    for gradient in (torch.arange(9.0).reshape(3, 3), torch.arange(9.0).reshape(3, 3).to_sparse()):
        values = VALUES.clone().requires_grad_()
        (matrix(values) * 2).backward(gradient)
        assert values.grad.tolist() == [4.0, 6.0, 10.0, 14.0]
        (found,) = torch.autograd.grad([matrix(values)], [values], [gradient])
        assert found.tolist() == [2.0, 3.0, 5.0, 7.0]


def test_hooks_of_a_sparse_leaf_get_and_replace_sparse_gradients() -> None:
    leaf, seen = matrix().coalesce().requires_grad_(), []
    leaf.register_hook(lambda grad: seen.append(grad) or grad * 2)
    leaf.sum().backward()
    assert seen[0].layout is torch.sparse_coo and leaf.grad._values().tolist() == [2.0] * 4


def test_gradients_accumulate_whether_sparse_or_dense() -> None:
    def table() -> Any:
        return torch.ones(4, 2, requires_grad=True)

    def rows(weight: Any) -> Any:
        return torch.nn.functional.embedding(torch.tensor([1, 2, 1]), weight, sparse=True).sum()

    counts = torch.tensor([[0.0, 0], [2, 2], [1, 1], [0, 0]])
    weight = table()
    rows(weight).backward()
    assert weight.grad.layout is torch.sparse_coo and weight.grad._nnz() == 3
    rows(weight).backward()
    assert weight.grad.layout is torch.sparse_coo and weight.grad.to_dense().equal(counts * 2)
    weight.sum().backward()
    assert weight.grad.equal(counts * 2 + 1)
    rows(weight).backward()
    assert weight.grad.equal(counts * 3 + 1)
    for loss in (
        lambda w: rows(w) + w.sum(),
        lambda w: w.sum() + rows(w),
        lambda w: w.sum() + w.sum() + rows(w) - w.sum(),
    ):
        weight = table()
        loss(weight).backward()
        assert weight.grad.equal(counts + 1)
    weight = table()
    rows(weight * 2).backward()  # no leaf: the gradient of the product is dense
    assert weight.grad.equal(counts * 2)
    (gradient,) = torch.autograd.grad(rows(weight), weight, create_graph=True)
    assert gradient.to_dense().equal(counts)
    large = torch.zeros(300, 200, requires_grad=True)
    (large.sum() + torch.nn.functional.embedding(torch.tensor([7]), large, sparse=True).sum()).backward()
    large.sum().backward()
    assert large.grad[7].tolist() == [3.0] * 200 and large.grad[8].tolist() == [2.0] * 200


def test_a_custom_function_may_return_a_sparse_gradient() -> None:
    class Row(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, weight: Any, index: int) -> Any:
            ctx.index, ctx.sizes = index, weight.shape
            return weight[index].clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.sparse_coo_tensor([[ctx.index]], grad.unsqueeze(0), ctx.sizes), None

    weight = torch.ones(3, 2, requires_grad=True)
    Row.apply(weight, 1).sum().backward()
    assert weight.grad.layout is torch.sparse_coo and weight.grad.to_dense().tolist() == [[0, 0], [1, 1], [0, 0]]


def test_a_sparse_leaf_that_requires_gradients_is_not_modified_in_place() -> None:
    leaf = matrix().coalesce().requires_grad_()
    for function in (
        lambda: leaf.mul_(2),
        leaf.zero_,
        lambda: leaf.add_(leaf.detach()),
        lambda: leaf.copy_(leaf.detach()),
    ):
        with pytest.raises(
            RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"
        ):
            function()


def test_optimizers_update_sparse_parameters() -> None:
    parameter = torch.nn.Parameter(matrix().coalesce())
    optimizer = torch.optim.SGD([parameter], lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (parameter.to_dense() * torch.arange(9.0).reshape(3, 3)).sum().backward()
        optimizer.step()
    assert parameter.is_leaf and parameter.requires_grad
    assert parameter._values().tolist() == [1.0, 1.0, 0.0, -9.0]
    with pytest.raises(
        RuntimeError, match=r"Adam does not support sparse gradients, please consider SparseAdam instead"
    ):
        torch.optim.Adam([parameter]).step()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_anomaly_mode_checks_sparse_gradients() -> None:
    weight = torch.ones(3, 2, requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=True):
        rows = torch.nn.functional.embedding(torch.tensor([1]), weight, sparse=True)
        rows.sum().backward()
        assert weight.grad.to_dense().sum() == 2
        with pytest.raises(RuntimeError, match=r"EmbeddingBackward0.* returned nan"):
            torch.nn.functional.embedding(torch.tensor([1]), weight, sparse=True).backward(
                torch.full((1, 2), torch.nan)
            )


# -- Refused functions -----------------------------------------------------------------------------------------------

SPACES = {
    "torch": torch, "nn.functional": torch.nn.functional, "linalg": torch.linalg, "fft": torch.fft, "special": torch.special,
    "nn.init": torch.nn.init, "Tensor": torch.Tensor,
}  # fmt: skip
#: Functions whose results differ between layouts by their meaning, that ask about the layout, or that set options.
ABOUT_LAYOUT = [
    "compile",
    "seed",
    "manual_seed",
    "save",
    "load",
    "vmap",
    "hessian",
    "value_and_grad",
    "__new__",
    "__init_subclass__",
    "__reduce_ex__",
    "__reduce__",
    "__hash__",
    "__class__",
    "type",
    "_coalesced_",
    "_indices",
    "_nnz",
    "_values",
    "coalesce",
    "dense_dim",
    "indices",
    "is_coalesced",
    "sparse_dim",
    "sparse_mask",
    "to_sparse",
    "to_sparse_coo",
    "to_sparse_csr",
    "to_sparse_csc",
    "values",
    "is_sparse",
    "stride",
    "is_contiguous",
    "storage_offset",
    "data_ptr",
    "requires_grad_",
    "__repr__",
    "__format__",
    "__deepcopy__",
    "__copy__",
    "__dir__",
    "id",
    "detach_",
    "register_hook",
    "as_tensor",
    "asarray",
    "bfloat16",
    "empty_like",
    "new_empty",
    "smm",
    "hsmm",
    "hspmm",
    "saddmm",
    "sspaddmm",
    "new_zeros",
    "sparse_coo_tensor",
    "sparse_csr_tensor",
    "sparse_csc_tensor",
    "sparse_compressed_tensor",
    "prelu",
    "typename",
    "element_size",
    "_repr_html_",  # notebooks show a sparse tensor as text
]


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for space, module in SPACES.items():
        for name in vars(module) if space == "Tensor" else dir(module):
            function = getattr(module, name, None)
            plain = not name.startswith(("set_", "get_")) and name not in ABOUT_LAYOUT
            if plain and callable(function) and not inspect.isclass(function):
                yield f"{space}.{name}", function


def as_dense(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [as_dense(each) for each in value]
    if isinstance(value, torch.Tensor):
        return numpy.asarray(value.detach().to_dense().numpy(), complex)
    return value


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, numpy.ndarray) and isinstance(b, numpy.ndarray):
        return a.shape == b.shape and numpy.allclose(a, b, equal_nan=True)
    return a is b or repr(a) == repr(b)


ARGUMENTS: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "S": lambda s, d: (s,),
    "S, S": lambda s, d: (s, s),
    "D, S": lambda s, d: (d, s),
    "S, D": lambda s, d: (s, d),
    "S, 2": lambda s, d: (s, 2),
    "D > 1, S, D": lambda s, d: (d > 1, s, d),
    "[S, S]": lambda s, d: ([s, s],),
}


@pytest.mark.parametrize("given", ARGUMENTS)
def test_functions_of_sparse_tensors_raise_or_are_those_of_dense_tensors(given: str) -> None:
    wrong = []
    for name, function in functions():
        sparse = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 1]], [3.0, 4.0, 5.0], (2, 3)).coalesce()
        same = sparse.to_dense()
        twice = [torch.arange(1.0, 7.0).reshape(2, 3) for _ in range(2)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = as_dense(function(*ARGUMENTS[given](sparse, twice[0])))
            except Exception:
                continue
            try:
                expected = as_dense(function(*ARGUMENTS[given](same, twice[1])))
            except Exception as error:
                expected = error
        if not equal(found, expected) or not twice[0].equal(twice[1]):
            wrong.append((name, found, expected))
    assert wrong == []


def test_errors_name_the_function_and_what_exists() -> None:
    with pytest.raises(
        NotImplementedError, match=r"exp\(\) is not implemented for tensors of layout torch.sparse_coo.*to_dense"
    ):
        torch.exp(matrix())
    with pytest.raises(NotImplementedError, match=r"products .*sparse\.md"):
        matrix().to_sparse_csr().cos()
    with pytest.raises(NotImplementedError, match="is not implemented for tensors of layout"):
        torch.asarray(matrix(), copy=True)
    with pytest.raises(TypeError, match="can't convert Sparse layout tensor to numpy"):
        matrix().numpy()


FACTORIES = """
torch.zeros(2, layout=L)|torch.ones(2, layout=L)|torch.full((2,), 1.0, layout=L)|torch.rand(2, layout=L)|torch.arange(3, layout=L)
torch.eye(3, layout=L)|torch.zeros_like(x, layout=L)|torch.randn_like(x, layout=L)|x.new_ones(2, layout=L)|torch.empty(2, layout=L)
"""


@pytest.mark.parametrize("call", FACTORIES.replace("\n", "|").strip("|").split("|"))
def test_factories_refuse_sparse_layouts(call: str) -> None:
    names = {"torch": torch, "x": torch.ones(2)}
    with pytest.raises(NotImplementedError, match=r"layout=torch\.sparse_csr is not implemented"):
        eval(call, {**names, "L": torch.sparse_csr})
    assert eval(call, {**names, "L": torch.strided}).layout is torch.strided


# -- Copies, files, SciPy --------------------------------------------------------------------------------------------

TENSORS: dict[str, Callable[[], Any]] = {
    "uncoalesced": matrix,
    "coalesced": lambda: matrix().coalesce(),
    "csr": lambda: matrix().to_sparse_csr(),
    "csc": lambda: matrix().to_sparse_csc(),
    "hybrid": lambda: torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 3), (2, 3)),
    "empty": lambda: torch.sparse_coo_tensor((2, 3)),
    "integer": lambda: matrix().int(),
    "parameter": lambda: torch.nn.Parameter(matrix()),
}


def saved_and_loaded(x: Any) -> Any:
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x)), saved_and_loaded]
)
@pytest.mark.parametrize("kind", TENSORS)
def test_copies_and_files_restore_the_tensor(kind: str, copied: Callable[[Any], Any]) -> None:
    x = TENSORS[kind]()
    y = copied(x)
    assert repr(y) == repr(x) and y is not x
    if x.layout is torch.sparse_coo:
        assert y.is_coalesced() == x.is_coalesced()


def test_deepcopy_copies_memory_and_gradient_and_refuses_results() -> None:
    leaf = matrix().coalesce().requires_grad_()
    (leaf.sum() * 2).backward()
    copied = copy.deepcopy(leaf)
    copied.detach().mul_(0)
    assert leaf._values().tolist() == VALUES.tolist() and copied.grad._values().tolist() == [2.0] * 4
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(leaf * 2)


def test_a_file_with_indices_out_of_range_is_refused() -> None:
    x = torch.sparse_coo_tensor([[0, 7]], [1.0, 2.0], (3,))
    with pytest.raises(RuntimeError, match="size is inconsistent with indices: for dim 0, size is 3 but found index 7"):
        saved_and_loaded(x)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_scipy_matrices_are_converted_in_both_directions(kind: str) -> None:
    array = numpy.array([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
    made = torch.sparse.from_scipy(getattr(scipy.sparse, f"{kind}_array")(array))
    assert str(made.layout) == f"torch.sparse_{kind}" and made.to_dense().numpy().tolist() == array.tolist()
    back = torch.sparse.to_scipy(made)
    assert back.format == kind and back.toarray().tolist() == array.tolist()


def test_values_and_indices_share_memory_with_the_arguments() -> None:
    values = VALUES.clone()
    x = torch.sparse_coo_tensor(INDICES, values, (3, 3), is_coalesced=True)
    values[0] = 7
    assert x.to_dense()[0, 2] == 7
    x.values()[1] = 8
    assert values[1] == 8
    x.mul_(2)
    assert values.tolist() == [14.0, 16.0, 10.0, -4.0]


def test_half_precision_products_are_accumulated_in_float32() -> None:
    x = torch.sparse_coo_tensor(torch.zeros(2, 3000, dtype=torch.int64), torch.ones(3000).half(), (1, 1))
    assert torch.mm(x, torch.ones(1, 1).half()).item() == 3000 and x.coalesce().values().tolist() == [3000.0]


def test_indices_out_of_range_are_found_when_they_are_used() -> None:
    x = torch.sparse_coo_tensor([[0, 7]], [1.0, 2.0], (3,))
    for function in (x.to_dense, x.coalesce, lambda: x * torch.ones(3), lambda: torch.zeros(3).add_(x)):
        with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
            function()


# -- Transforms, modes, loading --------------------------------------------------------------------------------------


def test_transforms_of_functions_of_values() -> None:
    other = torch.arange(9.0).reshape(3, 3)

    def loss(values: Any) -> Any:
        return (torch.sparse.mm(matrix(values), other) ** 2).sum()

    expected = VALUES.clone().requires_grad_()
    loss(expected).backward()
    assert torch.allclose(torch.func.grad(loss)(VALUES), expected.grad)
    batch = torch.stack([VALUES, VALUES * 2])
    assert torch.allclose(torch.func.vmap(torch.func.grad(loss))(batch)[1], expected.grad * 2)
    _, tangent = torch.func.jvp(loss, (VALUES,), (torch.ones(4),))
    assert torch.allclose(tangent, expected.grad.sum())


def test_compiled_functions_and_modes_get_sparse_tensors() -> None:
    x, other = matrix(), torch.arange(9.0).reshape(3, 3)
    compiled = torch.compile(lambda x, other: torch.mm(x, other).sin() + other * 2)
    for _ in range(3):
        assert torch.allclose(compiled(x, other), torch.mm(x, other).sin() + other * 2)

    class Names(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    seen: list[str] = []
    with Names():
        torch.mm(x, other)
        x.to_dense()
    assert seen[0] == "mm" and "to_dense" in seen


def test_sparse_tensors_are_loaded_on_demand() -> None:
    program = (
        "import sys, retrograd as torch; x = torch.ones(2, requires_grad=True); (x * x).sum().backward(); "
        "torch.nn.Embedding(3, 2)(torch.tensor([1])).sum().backward(); x.is_sparse, x.layout, torch.sparse_coo, hasattr(x, 'values'); "
        "assert not [name for name in sys.modules if name.endswith('.sparse') and 'nn' not in name], 'loaded'; "
        "from retrograd.core.torch_function import OVERRIDING; assert not OVERRIDING; x.to_sparse(); assert OVERRIDING"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_properties_of_ordinary_tensors_do_not_ask_sparse_tensors() -> None:
    matrix()
    assert torch_function.OVERRIDING
    x = torch.ones(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_function.interceptor, "intercept", None)
        assert x.shape == (2,) and x.dtype is torch.float32 and not x.requires_grad


def test_sparse_products_refuse_dense_operands_and_other_objects() -> None:
    dense = torch.ones(2, 2)
    for call in (lambda: torch.smm(dense, dense), lambda: dense.sspaddmm(dense, dense)):
        with pytest.raises(RuntimeError, match="can only be called on sparse tensors"):
            call()
    with pytest.raises(TypeError, match=r"smm\(\): argument 'mat2' \(position 1\) must be Tensor, not bool"):
        dense.smm(False)
    with pytest.raises(TypeError, match=r"sspaddmm\(\): argument 'input' \(position 1\) must be Tensor, not ellipsis"):
        torch.sspaddmm(..., dense, dense)


def test_legacy_types_construct_from_indices_values_and_sizes() -> None:
    kind = torch.sparse.FloatTensor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = kind(INDICES, VALUES, torch.Size([3, 4]))
        assert made.shape == (3, 4) and made._values().tolist() == VALUES.tolist()
        assert kind(INDICES, values=VALUES).shape == (3, 3)
        assert kind(INDICES, VALUES.double()).dtype is torch.float64
        assert torch.sparse.LongTensor(2, 3).dtype is torch.int64
        assert kind(torch.Size([2, 3])).shape == kind(2, 3).shape == (2, 3) and kind().shape == (0,)
    assert repr(kind) == "<class 'torch.sparse.FloatTensor'>" and kind.layout is torch.sparse_coo
    assert made.type("torch.sparse.DoubleTensor").dtype is made.type(torch.sparse.DoubleTensor).dtype is torch.float64


def test_legacy_types_tell_layouts_apart() -> None:
    x = matrix()
    assert isinstance(x, torch.sparse.FloatTensor) and not isinstance(x, torch.sparse.DoubleTensor)
    assert not isinstance(x, torch.FloatTensor) and not isinstance(VALUES, torch.sparse.FloatTensor)
    assert not isinstance(x.to_sparse_csr(), torch.sparse.FloatTensor)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((INDICES.int(), VALUES), RuntimeError, "expected scalar type Long but found Int"),
        ((INDICES, VALUES, 2), TypeError, r"got \(Tensor, Tensor, int\), but expected one of:"),
        ((VALUES,), TypeError, r"got \(Tensor\), but expected one of:"),
        (((2, 3),), TypeError, r"SparseTensor\(sequence\) only accepts sizes"),
        ((2, "a"), TypeError, "failed to unpack the object at pos 2"),
    ],
)
def test_legacy_types_refuse_other_arguments(arguments: tuple[Any, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        torch.sparse.FloatTensor(*arguments)


def test_product_with_a_reduction() -> None:
    dense = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, -6.0]], requires_grad=True)
    csr = torch.sparse_csr_tensor([0, 2, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (3, 3))
    assert torch.sparse.mm(csr, dense, "sum").tolist() == [[11.0, -10.0], [0.0, 0.0], [9.0, 12.0]]
    assert torch.sparse.mm(csr, dense, "mean").tolist() == [[5.5, -5.0], [0.0, 0.0], [9.0, 12.0]]
    assert torch.sparse.mm(csr, dense, "amax").tolist() == [[10.0, 2.0], [0.0, 0.0], [9.0, 12.0]]
    torch.sparse.mm(csr, dense, "amin").sum().backward()
    assert dense.grad.tolist() == [[1.0, 0.0], [3.0, 3.0], [0.0, 2.0]]
