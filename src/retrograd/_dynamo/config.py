"""Settings of PyTorch's compiler, kept without effect. A program may set others, too."""

from __future__ import annotations

suppress_errors = False
verbose = False
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
dynamic_shapes = True
assume_static_by_default = True
automatic_dynamic_shapes = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
optimize_ddp = True
disable = False
error_on_recompile = False
inline_inbuilt_nn_modules = True
