"""All groups of rows, by name. Imports no engine: rows take the module as a parameter."""

from __future__ import annotations

from . import compile, higher, large, losses, overhead, products, training, tutorials, windows
from .row import Group

GROUPS = {
    group.name: group
    for group in (
        Group("overhead", "Single operations and small graphs", tuple(overhead.rows()), 2.5),
        Group("again", "create_graph, hooks, functions of one's own, autograd.grad", tuple(overhead.again()), 1.5),
        Group("calls", "Single calls as programs make them", tuple(overhead.calls())),
        Group("tutorials", "Beside NumPy by hand", tuple(tutorials.rows())),
        Group("large", "Large tensors: element by element, and reductions", tuple(large.rows()), 2.0),
        Group("chains", "Chains of operations element by element", tuple(large.chains()), 2.0),
        Group("losses", "softmax, normalisation, losses, dropout", tuple(losses.rows()), 1.5),
        Group("products", "Products of matrices, linear algebra", tuple(products.rows()), 1.0),
        Group("windows", "Convolution, pooling, embedding, attention", tuple(windows.rows()), 1.0),
        Group("picking", "Picking, sorting, scanning, drawing", tuple(windows.picking()), 1.0),
        Group("training", "Steps of training", tuple(training.rows()), 1.5),
        Group("compile", "Compiled, beside PyTorch as it is", tuple(compile.rows()), 2.0),
        Group("higher", "Derivatives of higher order", tuple(higher.rows()), 1.5),
    )
}
