"""Matrix products and linear algebra: results and errors. Expectations are PyTorch 2.13's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import retrograd as torch


def inputs() -> dict[str, Any]:
    return {
        "torch": torch,
        "numpy": numpy,
        "d": torch.tensor([1.5, 2.0]),
        "i": torch.tensor([1, 2]),
        "b": torch.tensor([True, False]),
        "m": torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "s": torch.tensor([[2.0, 1.0], [1.0, 3.0]]),
        "h": torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float16),
    }


ANSWERS = {
    "i @ i": "tensor(5)",
    "torch.addmm(s * float('nan'), s, s, beta=0)": "tensor([[ 5.,  5.],\n        [ 5., 10.]])",
    "torch.logdet(-s)": "tensor(1.6094)",
    "torch.logdet(s * 0)": "tensor(-inf)",
    "torch.linalg.matrix_power(s, 0)": "tensor([[1., 0.],\n        [0., 1.]])",
    "torch.matmul(m, m.mT, out=torch.empty(0))": "tensor([[14., 32.],\n        [32., 77.]])",
}

REFUSALS = {
    "m @ m": ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    "m @ d": ("RuntimeError", "size mismatch, got input (2), mat (2x3), vec (2)"),
    "d @ m.mT": ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (1x2 and 3x2)"),
    "d @ torch.ones(3)": (
        "RuntimeError",
        "inconsistent tensor size, expected tensor [2] and src [3] to have the same number of elements, but got 2 and 3 elements respectively",
    ),
    "d @ 2": ("TypeError", "unsupported operand type(s) for @: 'Tensor' and 'int'"),
    "2 @ d": ("TypeError", "unsupported operand type(s) for @: 'int' and 'Tensor'"),
    "torch.tensor(1.) @ d": ("RuntimeError", "both arguments to matmul need to be at least 1D, but they are 0D and 1D"),
    "m.long() @ m": ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    "m @ torch.ones(3).double()": (
        "RuntimeError",
        "addmv input tensors must have the same dtype, but got Double, Float, and Double",
    ),
    "d @ d.double()": ("RuntimeError", "dot : expected both vectors to have same dtype, but found Float and Double"),
    "torch.ones(2, 2, 3) @ torch.ones(2, 3, 2).double()": (
        "RuntimeError",
        "expected scalar type Float but found Double",
    ),
    "torch.ones(2, 2, 3) @ torch.ones(2, 2, 3)": (
        "RuntimeError",
        "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 2].",
    ),
    "torch.ones(2, 2, 3) @ torch.ones(3, 3, 2)": (
        "RuntimeError",
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
    ),
    "b @ b": ("NotImplementedError", "\"dot\" not implemented for 'Bool'"),
    "m.bool() @ m.bool().mT": ("NotImplementedError", "\"addmm_impl_cpu_\" not implemented for 'Bool'"),
    "torch.mm(m, d)": ("RuntimeError", "mat2 must be a matrix"),
    "torch.mm(m, m.mT.double())": (
        "RuntimeError",
        "expected m1 and m2 to have the same dtype, but got: float != double",
    ),
    "torch.bmm(m, m)": ("RuntimeError", "batch1 must be a 3D tensor"),
    "torch.bmm(torch.ones(2, 2, 3), torch.ones(2, 2, 2))": (
        "RuntimeError",
        "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 2].",
    ),
    "torch.mv(m, d)": ("RuntimeError", "size mismatch, got input (2), mat (2x3), vec (2)"),
    "torch.dot(m, m)": ("RuntimeError", "1D tensors expected, but got 2D and 2D tensors"),
    "torch.dot(d, torch.ones(3))": (
        "RuntimeError",
        "inconsistent tensor size, expected tensor [2] and src [3] to have the same number of elements, but got 2 and 3 elements respectively",
    ),
    "torch.vdot(d, torch.ones(3))": (
        "RuntimeError",
        "inconsistent tensor size, expected tensor [2] and src [3] to have the same number of elements, but got 2 and 3 elements respectively",
    ),
    "torch.inner(m, d)": (
        "RuntimeError",
        "inner() the last dimension must match on both input tensors but got shapes [2, 3] and [2]",
    ),
    "torch.outer(m, d)": ("RuntimeError", "outer: Expected 1-D argument self, but got 2-D"),
    "torch.addmm(torch.ones(3), s, s)": (
        "RuntimeError",
        "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 1.  Target sizes: [2, 2].  Tensor sizes: [3]",
    ),
    "torch.addmm(s.double(), s, s)": (
        "RuntimeError",
        "self and mat2 must have the same dtype, but got Double and Float",
    ),
    "torch.addmm(s, s, s.double())": (
        "RuntimeError",
        "self and mat2 must have the same dtype, but got Float and Double",
    ),
    "torch.addmm(s, m, m)": ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    "torch.addmv(torch.ones(3), s, d)": ("RuntimeError", "size mismatch, got input (3), mat (2x2), vec (2)"),
    "torch.addr(s, d, torch.ones(3))": (
        "RuntimeError",
        "The expanded size of the tensor (3) must match the existing size (2) at non-singleton dimension 1.  Target sizes: [2, 3].  Tensor sizes: [2, 2]",
    ),
    "torch.baddbmm(torch.ones(3), torch.ones(1, 2, 3), torch.ones(1, 3, 2))": (
        "RuntimeError",
        "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 2.  Target sizes: [1, 2, 2].  Tensor sizes: [3]",
    ),
    "torch.addbmm(s, torch.ones(2, 2, 3), torch.ones(2, 2, 2))": (
        "RuntimeError",
        "Incompatible matrix sizes for bmm (2x3 and 2x2)",
    ),
    "torch.einsum('ij,jk', m, m)": (
        "RuntimeError",
        "einsum(): subscript j has size 2 for operand 1 which does not broadcast with previously seen size 3",
    ),
    "torch.einsum('ij,jk', m)": (
        "RuntimeError",
        "einsum(): fewer operands were provided than specified in the equation",
    ),
    "torch.einsum('ij', m, m)": (
        "RuntimeError",
        "einsum(): more operands were provided than specified in the equation",
    ),
    "torch.einsum('ij->k', m)": (
        "RuntimeError",
        "einsum(): output subscript k does not appear in the equation for any input operand",
    ),
    "torch.einsum('ij->ii', m)": ("RuntimeError", "einsum(): output subscript i appears more than once in the output"),
    "torch.einsum('i', m)": (
        "RuntimeError",
        "einsum(): the number of subscripts in the equation (1) does not match the number of dimensions (2) for operand 0 and no ellipsis was given",
    ),
    "torch.einsum('i1', m)": (
        "RuntimeError",
        "einsum(): invalid subscript given at index 1 in the equation string, subscripts must be in [a-zA-Z]",
    ),
    "torch.einsum('.i', d)": ("RuntimeError", "einsum(): found '.' for operand 0 that is not part of any ellipsis"),
    "torch.tensordot(m, m, dims=1)": (
        "RuntimeError",
        "contracted dimensions need to match, but first has size 3 in dim -1 and second has size 2 in dim 0",
    ),
    "torch.tensordot(m, m, dims=3)": ("RuntimeError", "tensordot expects dims < ndim_a or ndim_b, but got dims=3"),
    "torch.tensordot(m, m, dims=-1)": ("RuntimeError", "tensordot expects dims >= 0, but got dims=-1"),
    "torch.tensordot(m, m, dims=([0, 1], [0]))": ("RuntimeError", "both dimension lists should have same length"),
    "torch.linalg.multi_dot([m])": ("RuntimeError", "multi_dot(): expected at least 2 tensors but got 1"),
    "torch.linalg.multi_dot([m, s])": (
        "RuntimeError",
        "multi_dot(): tensors 0 and 1 with shapes [2, 3] and [2, 2] cannot be multiplied",
    ),
    "torch.cross(s, s)": ("RuntimeError", "no dimension of size 3 in input"),
    "torch.linalg.cross(m, torch.ones(3))": (
        "RuntimeError",
        "linalg.cross: inputs must have the same number of dimensions.",
    ),
    "torch.linalg.cross(s, s)": ("RuntimeError", "linalg.cross: inputs dimension -1 must have length 3. Got 2 and 2"),
    "torch.linalg.inv(m)": (
        "RuntimeError",
        "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices",
    ),
    "torch.linalg.inv(d)": ("RuntimeError", "linalg.inv: The input tensor A must have at least 2 dimensions."),
    "torch.linalg.inv(i)": ("RuntimeError", "linalg.inv: The input tensor A must have at least 2 dimensions."),
    "torch.linalg.inv(s.long())": (
        "RuntimeError",
        "linalg.inv: Expected a floating point or complex tensor as input. Got Long",
    ),
    "torch.linalg.inv(h)": ("RuntimeError", "linalg.inv: Low precision dtypes not supported. Got Half"),
    "torch.linalg.inv(s * 0)": (
        "_LinAlgError",
        "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular.",
    ),
    "torch.linalg.inv(torch.stack([s, s * 0]))": (
        "_LinAlgError",
        "linalg.inv: (Batch element 1): The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular.",
    ),
    "torch.linalg.inv(torch.ones(2, 2))": (
        "_LinAlgError",
        "linalg.inv: The diagonal element 2 is zero, the inversion could not be completed because the input matrix is singular.",
    ),
    "torch.linalg.solve(s * 0, d)": (
        "_LinAlgError",
        "torch.linalg.solve: The solver failed because the input matrix is singular.",
    ),
    "torch.linalg.solve(torch.stack([s, s * 0]), s)": (
        "_LinAlgError",
        "torch.linalg.solve: (Batch element 1): The solver failed because the input matrix is singular.",
    ),
    "torch.linalg.solve(s, torch.ones(3))": (
        "RuntimeError",
        "linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)",
    ),
    "torch.linalg.solve(s, d.double())": (
        "RuntimeError",
        "linalg.solve: Expected A and B to have the same dtype, but found A of type Float and B of type Double instead",
    ),
    "torch.linalg.solve(m, d)": (
        "RuntimeError",
        "linalg.solve: A must be batches of square matrices, but they are 2 by 3 matrices",
    ),
    "torch.linalg.det(m)": (
        "RuntimeError",
        "linalg.det: A must be batches of square matrices, but they are 2 by 3 matrices",
    ),
    "torch.linalg.det(h)": ("NotImplementedError", "\"lu_cpu\" not implemented for 'Half'"),
    "torch.linalg.slogdet(m)": (
        "RuntimeError",
        "linalg.slogdet: A must be batches of square matrices, but they are 2 by 3 matrices",
    ),
    "torch.linalg.norm(m, 'abc')": ("RuntimeError", "linalg.matrix_norm: Order abc not supported."),
    "torch.linalg.norm(m, 3)": ("RuntimeError", "linalg.matrix_norm: Order 3 not supported."),
    "torch.linalg.norm(torch.ones(2, 2, 2), 2)": (
        "RuntimeError",
        "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D.",
    ),
    "torch.linalg.norm(m, dim=(0, 1, 1))": (
        "RuntimeError",
        "linalg.norm: If dim is specified, it must be of length 1 or 2. Got [0, 1, 1]",
    ),
    "torch.linalg.norm(d, 'fro')": (
        "RuntimeError",
        "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.",
    ),
    "torch.linalg.norm(i)": (
        "RuntimeError",
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long",
    ),
    "torch.linalg.matrix_norm(d)": (
        "RuntimeError",
        "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.",
    ),
    "torch.linalg.matrix_norm(m, dim=(0, 0))": (
        "RuntimeError",
        "linalg.matrix_norm: dims must be different. Got (0, 0)",
    ),
    "torch.linalg.matrix_power(m, 2)": (
        "RuntimeError",
        "linalg.matrix_power: A must be batches of square matrices, but they are 2 by 3 matrices",
    ),
}


@pytest.mark.parametrize("expression", ANSWERS)
def test_results(expression: str) -> None:
    assert repr(eval(expression, inputs())) == ANSWERS[expression]


@pytest.mark.parametrize("expression", REFUSALS)
def test_errors(expression: str) -> None:
    kind, text = REFUSALS[expression]
    with pytest.raises(Exception) as caught:
        eval(expression, inputs())
    assert (type(caught.value).__name__, str(caught.value).splitlines()[0]) == (kind, text)


FOLDED = {  # shapes, and which operand requires grad: the nodes from the result back
    ((2, 3), (2, 3, 2), 0): ["CloneBackward0", "TransposeBackward0", "UnsafeViewBackward0", "MmBackward0"],
    ((2, 3), (2, 3, 2), 1): ["UnsafeViewBackward0", "BmmBackward0"],
    ((1, 2, 3), (2, 3, 2), 0): ["CloneBackward0", "TransposeBackward0", "UnsafeViewBackward0", "MmBackward0"],
    ((2, 2, 3), (1, 3, 2), 0): ["UnsafeViewBackward0", "BmmBackward0"],
    ((2, 2, 3), (1, 3, 2), 1): ["UnsafeViewBackward0", "MmBackward0"],
    ((3,), (2, 3, 2), 0): ["UnsafeViewBackward0", "MvBackward0"],
    ((3,), (2, 3, 2), 1): ["UnsafeViewBackward0", "BmmBackward0"],
    ((2, 2, 3), (3, 2), 0): ["UnsafeViewBackward0", "MmBackward0"],
    ((2, 2, 3), (3,), 1): ["UnsafeViewBackward0", "MvBackward0"],
}


@pytest.mark.parametrize(("left", "right", "graded"), FOLDED)
def test_matmul_folds_batches_where_pytorch_does(left: Any, right: Any, graded: int) -> None:
    operands = [torch.arange(float(numpy.prod(shape))).reshape(shape) for shape in (left, right)]
    operands[graded].requires_grad_()
    product = operands[0] @ operands[1]
    assert product.tolist() == numpy.matmul(*(each.detach().numpy() for each in operands)).tolist()
    node, names = product.grad_fn, []
    for _ in FOLDED[left, right, graded]:
        names.append(type(node).__name__)
        node = next((edge for edge, _ in node.next_functions if edge is not None), None)
    assert names == FOLDED[left, right, graded]


def test_singular_matrices_raise_linalg_error() -> None:
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.inv(torch.zeros(2, 2))
    assert issubclass(torch.linalg.LinAlgError, RuntimeError)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (("float32", "bfloat16", "bfloat16"), "float32"), (("bfloat16", "float32", "float32"), "float32"),
        (("float32", "int64", "int64"), "float32"), (("bool", "int64", "bfloat16"), "bfloat16"),
        (("int64", "float32", "bool"), "float32"),
    ],
)  # fmt: skip
def test_addr_promotes_dtypes(kinds: tuple[str, ...], expected: str) -> None:
    x, a, b = (torch.ones(size).to(getattr(torch, kind)) for size, kind in zip(((2, 2), 2, 2), kinds, strict=True))
    assert torch.addr(x, a, b).dtype is getattr(torch, expected)
