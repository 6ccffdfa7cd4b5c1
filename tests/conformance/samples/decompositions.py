"""Samples of factorisations and solvers.

Eigenvectors and singular vectors have signs that depend on the library: the samples use expressions that do not.
"""

from __future__ import annotations

import numpy

from . import Recipe, Sample, complexes, normal, spd, unit


def hermitian(size: int, *batch: int) -> Recipe:
    """Hermitian positive definite matrices."""

    def make(rng: numpy.random.Generator) -> numpy.ndarray:
        shape = (*batch, size, size)
        root = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
        return root @ numpy.swapaxes(root.conj(), -1, -2) + size * numpy.eye(size)

    return make


def regular(size: int, *batch: int) -> Recipe:
    """Square matrices far from singular."""
    return lambda rng: rng.standard_normal((*batch, size, size)) + 3 * numpy.eye(size)


def graded(n: int, m: int, *batch: int) -> Recipe:
    """Matrices whose singular values are far from each other."""

    def make(rng: numpy.random.Generator) -> numpy.ndarray:
        u = numpy.linalg.qr(rng.standard_normal((*batch, n, n)))[0]
        v = numpy.linalg.qr(rng.standard_normal((*batch, m, m)))[0]
        return u @ (numpy.eye(n, m) * (1 + 1.5 * numpy.arange(max(n, m))[:m][None, :])) @ v

    return make


SAMPLES = [
    # Cholesky
    Sample("linalg.cholesky", "torch.linalg.cholesky(x @ x.mT + 3 * torch.eye(x.shape[-1], dtype=x.dtype))", x=normal(3, 3)),
    Sample("linalg.cholesky", "torch.linalg.cholesky(x @ x.mT + 3 * torch.eye(x.shape[-1], dtype=x.dtype), upper=True)", x=normal(2, 3, 3)),
    Sample("linalg.cholesky", "torch.linalg.cholesky(x @ x.mH + 3 * torch.eye(2, dtype=x.dtype))", x=complexes(2, 2)),
    Sample("linalg.cholesky", "torch.linalg.cholesky(x @ x.mH + 3 * torch.eye(2, dtype=x.dtype), upper=True)", x=complexes(2, 2)),
    Sample("linalg.cholesky_ex", "torch.linalg.cholesky_ex(x)", smooth=False, x=spd(3)),
    Sample("linalg.cholesky_ex", "torch.linalg.cholesky_ex(x, upper=True)", smooth=False, x=spd(2, 2)),
    Sample("cholesky", "torch.cholesky(x @ x.mT + 3 * torch.eye(x.shape[-1], dtype=x.dtype))", x=normal(3, 3)),
    Sample("cholesky", "(x @ x.mT + 3 * torch.eye(x.shape[-1], dtype=x.dtype)).cholesky(upper=True)", x=normal(2, 2, 2)),
    Sample("cholesky_inverse", "torch.cholesky_inverse(x.tril())", x=spd(3)),
    Sample("cholesky_inverse", "torch.cholesky_inverse(x.triu(), upper=True)", x=spd(2, 2)),
    Sample("cholesky_inverse", "x.tril().cholesky_inverse()", x=hermitian(2)),
    Sample("cholesky_solve", "torch.cholesky_solve(y, x.tril())", x=spd(3), y=normal(3, 2)),
    Sample("cholesky_solve", "torch.cholesky_solve(y, x.triu(), upper=True)", x=spd(2), y=normal(2, 2, 1)),
    Sample("cholesky_solve", "y.cholesky_solve(x.tril())", x=hermitian(2), y=complexes(2, 1)),
    # inverses and solutions
    Sample("linalg.inv_ex", "torch.linalg.inv_ex(x)", smooth=False, x=regular(3)),
    Sample("linalg.inv_ex", "torch.linalg.inv_ex(x).inverse", x=regular(2, 2)),
    Sample("linalg.inv", "torch.linalg.inv(z)", z=complexes(2, 2)),
    Sample("linalg.inv", "torch.linalg.inv(x.mT)", x=regular(2)),
    Sample("linalg.solve", "torch.linalg.solve(x, y)", x=regular(2, 2), y=normal(2, 2)),
    Sample("linalg.solve", "torch.linalg.solve(x, y )", x=regular(2, 2), y=normal(2, 1)),
    Sample("linalg.solve", "torch.linalg.solve(x, y, left=False)", x=regular(2, 2), y=normal(3, 2)),
    Sample("linalg.solve", "torch.linalg.solve(z, w)", z=complexes(2, 2), w=complexes(2, 2)),
    Sample("linalg.solve", "torch.linalg.solve(z, w, left=False)", z=complexes(2, 2), w=complexes(1, 2)),
    Sample("linalg.solve_ex", "torch.linalg.solve_ex(x, y)", smooth=False, x=regular(2), y=normal(2, 1)),
    Sample("linalg.solve_ex", "torch.linalg.solve_ex(x, y).result", x=regular(2), y=normal(2)),
    Sample("linalg.solve_triangular", "torch.linalg.solve_triangular(x, y, upper=True)", x=regular(3), y=normal(3, 2)),
    Sample("linalg.solve_triangular", "torch.linalg.solve_triangular(x, y, upper=False)", x=regular(2, 2), y=normal(2, 1)),
    Sample("linalg.solve_triangular", "torch.linalg.solve_triangular(x, y, upper=True, left=False)", x=regular(2), y=normal(3, 2)),
    Sample("linalg.solve_triangular", "torch.linalg.solve_triangular(x, y, upper=False, unitriangular=True)", x=regular(3), y=normal(3, 2)),
    Sample("linalg.solve_triangular", "torch.linalg.solve_triangular(z, w, upper=False, left=False)", z=complexes(2, 2), w=complexes(2, 2)),
    Sample("triangular_solve", "torch.triangular_solve(y, x)", x=regular(3), y=normal(3, 2)),
    Sample("triangular_solve", "torch.triangular_solve(y, x, upper=False, transpose=True)", x=regular(2), y=normal(2, 2)),
    Sample("triangular_solve", "y.triangular_solve(x, True, True, True)", x=regular(2), y=normal(2, 2, 1)),
    Sample("triangular_solve", "torch.triangular_solve(w, z, transpose=True)", z=complexes(2, 2), w=complexes(2, 1)),
    # determinants
    Sample("linalg.det", "torch.linalg.det(x)", x=normal(3, 3)),
    Sample("linalg.det", "torch.linalg.det(z)", z=complexes(2, 2)),
    Sample("linalg.slogdet", "torch.linalg.slogdet(x)[1]", x=normal(2, 3, 3)),
    Sample("linalg.slogdet", "torch.linalg.slogdet(x)", smooth=False, x=normal(2, 3, 3)),
    Sample("linalg.slogdet", "torch.linalg.slogdet(z)", z=complexes(2, 2)),
    Sample("linalg.slogdet", "torch.linalg.slogdet(z).sign", z=complexes(2, 2, 2)),
    Sample("slogdet", "z.slogdet()", z=complexes(2, 2)),
    Sample("logdet", "torch.logdet(z)", z=complexes(2, 2)),
    Sample("logdet", "x.logdet()", x=spd(2, 2)),
    # eigenvalues
    Sample("linalg.eigh", "torch.linalg.eigh(x + x.mT)[0]", x=graded(3, 3)),
    Sample("linalg.eigh", "torch.linalg.eigh(x + x.mT, UPLO='U')[1].abs()", x=graded(3, 3)),
    Sample("linalg.eigh", "(lambda e: (e[0] * 2, e[1].square()))(torch.linalg.eigh(x + x.mT))", x=graded(2, 2, 2)),
    Sample("linalg.eigh", "torch.linalg.eigh(z + z.mH)[1].abs()", z=complexes(3, 3)),
    Sample("linalg.eigh", "(lambda e: (e[1] * e[0].exp()) @ e[1].mH)(torch.linalg.eigh(z + z.mH))", z=complexes(2, 2)),
    Sample("linalg.eigvalsh", "torch.linalg.eigvalsh(x + x.mT)", x=graded(3, 3)),
    Sample("linalg.eigvalsh", "torch.linalg.eigvalsh(x, 'U')", smooth=False, x=graded(2, 2, 2)),
    Sample("linalg.eigvalsh", "torch.linalg.eigvalsh(z + z.mH)", z=complexes(2, 2)),
    Sample("linalg.eig", "torch.linalg.eig(x)[0]", x=normal(3, 3)),
    Sample("linalg.eig", "torch.linalg.eig(x)[1].abs()", x=normal(3, 3)),
    Sample("linalg.eig", "torch.linalg.eig(z)[1].abs()", z=complexes(2, 2, 2)),
    Sample("linalg.eig", "(lambda e: (e[1] * e[0].exp()) @ torch.linalg.inv(e[1]))(torch.linalg.eig(x))", x=normal(3, 3)),
    Sample("linalg.eigvals", "torch.linalg.eigvals(x)", x=normal(2, 2, 2)),
    Sample("linalg.eigvals", "torch.linalg.eigvals(z)", z=complexes(3, 3)),
    # singular values
    Sample("linalg.svd", "torch.linalg.svd(x)[1]", x=graded(3, 2)),
    Sample("linalg.svd", "torch.linalg.svd(x, full_matrices=False)[0].abs()", x=graded(3, 2)),
    Sample("linalg.svd", "torch.linalg.svd(x, full_matrices=False)[2].abs()", x=graded(2, 3)),
    Sample("linalg.svd", "torch.linalg.svd(x, full_matrices=False).Vh.abs()", x=graded(3, 2)),
    Sample("linalg.svd", "torch.linalg.svd(x, full_matrices=False).U.abs()", x=graded(2, 3)),
    Sample("linalg.svd", "torch.linalg.svd(x).U[:, :2].abs()", x=graded(3, 2)),
    Sample("linalg.svd", "(lambda e: (e[0] * e[1].exp()) @ e[2])(torch.linalg.svd(x, full_matrices=False))", x=graded(3, 2)),
    Sample("linalg.svd", "(lambda e: (e[0] * e[1].exp()) @ e[2])(torch.linalg.svd(x, False))", x=graded(2, 3, 2)),
    Sample("linalg.svd", "(lambda e: (e[0] * e[1].exp()) @ e[2])(torch.linalg.svd(z, False))", z=complexes(3, 2)),
    Sample("linalg.svd", "(lambda e: (e[0] * e[1].exp()) @ e[2])(torch.linalg.svd(z, False)) ", z=complexes(2, 3)),
    Sample("linalg.svd", "torch.linalg.svd(z)[2].abs()", z=complexes(2, 2)),
    Sample("linalg.svdvals", "torch.linalg.svdvals(x)", x=graded(3, 2)),
    Sample("linalg.svdvals", "torch.linalg.svdvals(z)", z=complexes(2, 2, 2)),
    Sample("svd", "torch.svd(x)[1]", x=graded(3, 2)),
    Sample("svd", "torch.svd(x).V.abs()", x=graded(3, 2)),
    Sample("svd", "torch.svd(x, compute_uv=False)", x=graded(3, 2)),
    Sample("svd", "x.svd(some=False).S", x=graded(2, 3)),
    # QR and reflectors
    Sample("linalg.qr", "torch.linalg.qr(x)", x=normal(3, 2)),
    Sample("linalg.qr", "torch.linalg.qr(x) ", x=normal(2, 3)),
    Sample("linalg.qr", "torch.linalg.qr(x)[0]", x=normal(2, 3)),
    Sample("linalg.qr", "torch.linalg.qr(x)[1]", x=normal(2, 2, 3)),
    Sample("linalg.qr", "torch.linalg.qr(x, mode='complete')", x=normal(2, 3)),
    Sample("linalg.qr", "torch.linalg.qr(x, mode='complete') ", smooth=False, x=normal(3, 2)),
    Sample("linalg.qr", "torch.linalg.qr(x, mode='r')", smooth=False, x=normal(3, 2)),
    Sample("linalg.qr", "torch.linalg.qr(z)[0]", z=complexes(3, 2)),
    Sample("linalg.qr", "torch.linalg.qr(z)[1].abs()", z=complexes(2, 2)),
    Sample("linalg.qr", "torch.linalg.qr(z)[1].abs() ", z=complexes(2, 3)),
    Sample("qr", "torch.qr(x)", x=normal(2, 2, 2)),
    Sample("qr", "x.qr(some=False)", smooth=False, x=normal(3, 2)),
    Sample("geqrf", "torch.geqrf(x)", smooth=False, x=normal(3, 2)),
    Sample("geqrf", "x.geqrf()", smooth=False, x=normal(2, 2, 3)),
    Sample("linalg.householder_product", "torch.linalg.householder_product(x, t)", x=normal(3, 2), t=unit(2)),
    Sample("linalg.householder_product", "torch.linalg.householder_product(x, t) ", x=normal(2, 3, 2), t=unit(2, 1)),
    Sample("linalg.householder_product", "torch.linalg.householder_product(z, t)", z=complexes(3, 2), t=complexes(2)),
    Sample("orgqr", "x.orgqr(t)", x=normal(3, 2), t=unit(2)),
    Sample("ormqr", "torch.ormqr(x, t, y)", x=normal(3, 2), t=unit(2), y=normal(3, 2)),
    Sample("ormqr", "torch.ormqr(x, t, y, transpose=True)", x=normal(3, 2), t=unit(2), y=normal(3, 1)),
    Sample("ormqr", "torch.ormqr(x, t, y, left=False)", x=normal(2, 3, 2), t=unit(2, 2), y=normal(2, 1, 3)),
    Sample("ormqr", "x.ormqr(t, y, False, True)", x=normal(3, 2), t=unit(2), y=normal(2, 3)),
    Sample("ormqr", "torch.ormqr(z, t, w, transpose=True)", z=complexes(2, 2), t=complexes(2), w=complexes(2, 1)),
    # LU
    Sample("linalg.lu", "torch.linalg.lu(x)", x=normal(3, 3)),
    Sample("linalg.lu", "torch.linalg.lu(x) ", x=normal(3, 2)),
    Sample("linalg.lu", "torch.linalg.lu(x)  ", x=normal(2, 2, 3)),
    Sample("linalg.lu", "torch.linalg.lu(z)", z=complexes(2, 2)),
    Sample("linalg.lu", "torch.linalg.lu(x).L", x=normal(3, 2)),
    Sample("linalg.lu", "torch.linalg.lu(x).U", x=normal(2, 3)),
    Sample("linalg.lu_factor", "torch.linalg.lu_factor(x)", smooth=False, x=normal(3, 2)),
    Sample("linalg.lu_factor", "torch.linalg.lu_factor(x)[0]", x=normal(3, 2)),
    Sample("linalg.lu_factor", "torch.linalg.lu_factor(x)[0] ", x=normal(2, 2, 3)),
    Sample("linalg.lu_factor", "torch.linalg.lu_factor(z)[0]", z=complexes(2, 2)),
    Sample("linalg.lu_factor_ex", "torch.linalg.lu_factor_ex(x)", smooth=False, x=normal(2, 3, 3)),
    Sample("lu", "torch.lu(x)[0]", x=normal(2, 2)),
    Sample("lu", "x.lu(get_infos=True)", smooth=False, x=normal(2, 2, 2)),
    Sample("lu_unpack", "torch.lu_unpack(*torch.linalg.lu_factor(x))", x=normal(3, 2)),
    Sample("lu_unpack", "torch.lu_unpack(*torch.linalg.lu_factor(x))[1:]", x=normal(2, 2, 3)),
    Sample("lu_unpack", "torch.lu_unpack(x, torch.tensor([2, 2], dtype=torch.int32))", x=normal(2, 3)),
    Sample("linalg.lu_solve", "torch.linalg.lu_solve(*torch.linalg.lu_factor(x), y)", x=regular(3), y=normal(3, 2)),
    Sample("linalg.lu_solve", "torch.linalg.lu_solve(x, torch.tensor([2, 2], dtype=torch.int32), y)", x=regular(2), y=normal(2, 1)),
    Sample("linalg.lu_solve", "torch.linalg.lu_solve(x, torch.tensor([2, 2], dtype=torch.int32), y, left=False)", x=regular(2), y=normal(2, 1, 2)),
    Sample("linalg.lu_solve", "torch.linalg.lu_solve(x, torch.tensor([2, 2], dtype=torch.int32), y, adjoint=True)", x=regular(2), y=normal(2, 1)),
    Sample("linalg.lu_solve", "torch.linalg.lu_solve(z, torch.tensor([2, 2], dtype=torch.int32), w, left=False, adjoint=True)", z=complexes(2, 2), w=complexes(1, 2)),
    Sample("lu_solve", "torch.lu_solve(y, *torch.linalg.lu_factor(x))", x=regular(2, 2), y=normal(2, 2, 1)),
    # LDL
    Sample("linalg.ldl_factor", "torch.linalg.ldl_factor(x)", smooth=False, x=spd(3)),
    Sample("linalg.ldl_factor", "torch.linalg.ldl_factor(x + x.mT)", smooth=False, x=normal(2, 3, 3)),
    Sample("linalg.ldl_factor", "torch.linalg.ldl_factor(z, hermitian=True)", smooth=False, z=hermitian(3)),
    Sample("linalg.ldl_factor", "torch.linalg.ldl_factor(z + z.mT)", smooth=False, z=complexes(3, 3)),
    Sample("linalg.ldl_factor_ex", "torch.linalg.ldl_factor_ex(x)", smooth=False, x=spd(3)),
    Sample("linalg.ldl_solve", "torch.linalg.ldl_solve(*torch.linalg.ldl_factor(x), y)", smooth=False, x=spd(3), y=normal(3, 2)),
    Sample("linalg.ldl_solve", "torch.linalg.ldl_solve(*torch.linalg.ldl_factor(z, hermitian=True), w, hermitian=True)", smooth=False, z=hermitian(2), w=complexes(2, 1)),
    # least squares, pseudoinverses
    Sample("linalg.lstsq", "torch.linalg.lstsq(x, y)", x=normal(3, 2), y=normal(3, 2)),
    Sample("linalg.lstsq", "torch.linalg.lstsq(x, y)[0]", x=normal(2, 3), y=normal(2, 2)),
    Sample("linalg.lstsq", "torch.linalg.lstsq(x, y).solution", x=normal(2, 3, 2), y=normal(2, 3)),
    Sample("linalg.lstsq", "torch.linalg.lstsq(x, y, driver='gels')", x=normal(3, 2), y=normal(3, 2)),
    Sample("linalg.lstsq", "torch.linalg.lstsq(x, y, driver='gelsd')", x=normal(2, 3, 2), y=normal(2, 3, 1)),
    Sample("linalg.lstsq", "torch.linalg.lstsq(x, y, driver='gelss')", x=normal(3, 2), y=normal(3)),
    Sample("linalg.lstsq", "torch.linalg.lstsq(z, w)[0]", z=complexes(3, 2), w=complexes(3, 1)),
    Sample("linalg.pinv", "torch.linalg.pinv(x)", x=normal(3, 2)),
    Sample("linalg.pinv", "torch.linalg.pinv(x) ", x=normal(2, 2, 3)),
    Sample("linalg.pinv", "torch.linalg.pinv(x, hermitian=True)", smooth=False, x=spd(3)),
    Sample("linalg.pinv", "torch.linalg.pinv(x + x.mT, hermitian=True)", x=spd(3)),
    Sample("linalg.pinv", "torch.linalg.pinv(z)", z=complexes(3, 2)),
    Sample("linalg.pinv", "torch.linalg.pinv(x, rtol=0.1)", x=graded(3, 2)),
    Sample("linalg.pinv", "torch.linalg.pinv(x, atol=2.0)", smooth=False, x=graded(3, 2)),
    Sample("linalg.pinv", "torch.linalg.pinv(x, atol=torch.tensor([0.1, 2.0], dtype=torch.float64), rtol=torch.tensor(0.01))", smooth=False, x=graded(3, 2, 2)),
    Sample("pinverse", "x.pinverse()", x=normal(2, 3)),
    # tensors as matrices
    Sample("linalg.tensorinv", "torch.linalg.tensorinv(x.reshape(4, 2, 2), ind=1)", x=regular(4)),
    Sample("linalg.tensorinv", "torch.linalg.tensorinv(x.reshape(2, 2, 2, 2))", x=regular(4)),
    Sample("linalg.tensorsolve", "torch.linalg.tensorsolve(x.reshape(4, 2, 2), y)", x=regular(4), y=normal(4)),
    Sample("linalg.tensorsolve", "torch.linalg.tensorsolve(x.reshape(2, 4, 2), y, dims=(0, 2))", x=regular(4), y=normal(4)),
    # low rank
    Sample("svd_lowrank", "(torch.manual_seed(0), torch.svd_lowrank(x, q=2)[1])[1]", x=graded(3, 2)),
    Sample("pca_lowrank", "(torch.manual_seed(0), torch.pca_lowrank(x, q=2)[2].abs())[1]", x=graded(4, 3)),
]  # fmt: skip
