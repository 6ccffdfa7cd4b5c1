"""All groups of rows, by name. This module imports no engine: programs take the engine as a parameter."""

from __future__ import annotations

from . import compile, higher, large, live, losses, overhead, products, programs, training, tutorials, windows
from .row import Group

GROUPS = {
    group.name: group
    for group in (
        Group("overhead", "Single operations and small graphs", tuple(overhead.rows()), 2.5),
        Group("again", "create_graph, hooks, custom functions, autograd.grad", tuple(overhead.again()), 1.5),
        Group("calls", "Single calls as programs make them", tuple(overhead.calls())),
        Group("live", "Operations and small programs while a graph is alive", tuple(live.rows()), 1.5),
        Group("tutorials", "Small graphs of tutorials, beside PyTorch", tuple(tutorials.rows())),
        Group("large", "Large tensors: elementwise operations and reductions", tuple(large.rows()), 2.0),
        Group("chains", "Chains of elementwise operations", tuple(large.chains()), 2.0),
        Group("losses", "softmax, normalization, losses, dropout", tuple(losses.rows()), 1.5),
        Group("products", "Matrix products, linear algebra", tuple(products.rows()), 1.0),
        Group("windows", "Convolution, pooling, embedding, attention", tuple(windows.rows()), 1.0),
        Group("picking", "Indexing, sorting, scans, random numbers", tuple(windows.picking()), 1.0),
        Group("training", "Training steps", tuple(training.rows()), 1.5),
        Group("programs", "Training steps of small models of many kinds", tuple(programs.rows()), 1.2),
        Group("compile", "Compiled functions, beside eager PyTorch", tuple(compile.rows()), 2.0),
        Group("higher", "Higher-order derivatives", tuple(higher.rows()), 1.5),
    )
}
