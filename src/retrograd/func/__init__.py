"""``torch.func``: functions that return the derivatives, or a batched version, of a given function."""

from .jacobians import hessian, jacfwd, jacrev
from .modules import debug_unwrap, functional_call, replace_all_batch_norm_modules_, stack_module_state
from .transforms import grad, grad_and_value, jvp, linearize, vjp
from .vmap import vmap

__all__ = [
    "debug_unwrap", "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
