"""Linear operators: products, solves, decompositions and interpolation."""

import torch
from linear_operator import operators, to_linear_operator
from report import show

torch.manual_seed(0)
root = torch.randn(6, 6).double()
matrix = to_linear_operator(root @ root.T + 6 * torch.eye(6).double()).add_jitter(0.1)
b = torch.randn(6, 2).double()
show("solve", matrix.solve(b)), show("logdet", matrix.logdet()), show("cholesky", matrix.cholesky().to_dense())
diagonal = operators.DiagLinearOperator(torch.arange(1.0, 7).double())
(
    show("sum", ((matrix + diagonal) @ b)),
    show("product", operators.KroneckerProductLinearOperator(diagonal, diagonal).diagonal()),
)
show("toeplitz", operators.ToeplitzLinearOperator(torch.tensor([3.0, 1, 0.5])).matmul(torch.ones(3, 1)))
indices, values = torch.randint(0, 6, (4, 2)), torch.rand(4, 2).double()
show("interpolated", operators.InterpolatedLinearOperator(matrix, indices, values).matmul(torch.ones(6, 1).double()))
