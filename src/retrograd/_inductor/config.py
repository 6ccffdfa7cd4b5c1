"""Settings of PyTorch's compiler, kept without effect. A program may set others, too."""

from __future__ import annotations

from types import SimpleNamespace

coordinate_descent_tuning = False
max_autotune = False
fx_graph_cache = True
freezing = False
epilogue_fusion = True
triton = SimpleNamespace(unique_kernel_names=True, cudagraphs=False)
cpp = SimpleNamespace(threads=-1)
