"""``torch.func``: functions that return the derivatives, or a batched version, of a given function."""

from ..compat.lazy_imports import module_getattr
from .jacobians import hessian, jacfwd, jacrev
from .modules import debug_unwrap, functional_call, replace_all_batch_norm_modules_, stack_module_state
from .transforms import grad, grad_and_value, jvp, linearize, vjp
from .vmap import vmap

__all__ = [
    "debug_unwrap", "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
#: Names of the package ``functorch``, which PyTorch has deprecated; ``import functorch`` is this module.
_STATELESS = (
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional",
    "make_functional_with_buffers",
)  # fmt: skip
__getattr__ = module_getattr(__name__, dict.fromkeys(_STATELESS, ".nn.modules.make_functional"))
