"""spectral_norm and remove_spectral_norm: spectral normalisation of weights by a forward pre-hook.

``parametrizations.spectral_norm`` supersedes these functions.
"""

from __future__ import annotations

from typing import Any

from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ...operations.linalg.matmul import dot, mv
from ...operations.linalg.solve import pinverse
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from ..parameter import Parameter

#: Modules whose output channels are the second dimension of the weight.
TRANSPOSED = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """Return ``weight`` as a matrix with one row for each index along ``dim``."""
    if dim != 0:
        weight = weight.permute(dim, *(each for each in range(weight.dim()) if each != dim))
    return weight.reshape(weight.size(0), -1)


def power_iteration(matrix: Tensor, u: Tensor, v: Tensor, times: int, eps: float, v_first: bool) -> None:
    """Improve the estimates ``u`` and ``v`` of the first left and right singular vectors of ``matrix`` in place.

    The method is power iteration with ``times`` iterations. The norms by which ``u`` and ``v`` are divided are at least
    ``eps``. If ``v_first`` is true, each iteration updates ``v`` before ``u``, otherwise ``u`` before ``v``.
    """
    with no_grad():
        for _ in range(times):
            for turn in "vu" if v_first else "uv":
                product, target = (mv(matrix.t(), u), v) if turn == "v" else (mv(matrix, v), u)
                target.copy_(F.normalize(product, dim=0, eps=eps))


class SpectralNorm:
    """Forward pre-hook that divides a weight of a module by the largest singular value of the weight.

    In training mode, each call first improves the estimate of the singular value by power iterations.
    """

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        self.name = name
        self.dim = dim
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Return the weight of ``module`` divided by the estimate of its largest singular value.

        If ``do_power_iteration`` is true, the estimate is first improved by power iterations.
        """
        weight, u, v = (getattr(module, self.name + end) for end in ("_orig", "_u", "_v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            power_iteration(matrix, u, v, self.n_power_iterations, self.eps, v_first=True)
            u, v = u.clone(), v.clone()
        return weight / dot(u, mv(matrix, v))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Add a SpectralNorm hook for the parameter ``name`` to ``module`` and return the hook.

        The parameter is renamed to ``<name>_orig``. The estimates of the singular vectors are registered as the buffers
        ``<name>_u`` and ``<name>_v``.
        """
        if any(isinstance(hook, SpectralNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        created = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        with no_grad():
            rows, columns = as_matrix(weight, dim).size()
            u = F.normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(created)
        module._register_state_dict_hook(SpectralNormStateDictHook(created))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(created))
        return created

    def remove(self, module: Module) -> None:
        """Replace the tensors that this hook added to ``module`` by one parameter with the normalised weight."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for name in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + name)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


class _StateHook:
    """Base class of the hooks of ``state_dict`` and ``load_state_dict`` that :class:`SpectralNorm` registers.

    ``fn`` is the SpectralNorm hook of the module.
    """

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn


class SpectralNormStateDictHook(_StateHook):
    """Hook of ``state_dict`` that stores the version of the SpectralNorm state format in ``local_metadata``."""

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        local_metadata.setdefault("spectral_norm", {})[f"{self.fn.name}.version"] = self.fn._version


class SpectralNormLoadStateDictPreHook(_StateHook):
    """Hook of ``load_state_dict`` that converts states that were saved by PyTorch versions before 1.0.

    Such a state has the normalised weight W / s, but not the vector v, which follows from ``W v = s u``.
    """

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str], *rest: Any
    ) -> None:
        fn = self.fn
        name = prefix + fn.name
        if f"{fn.name}.version" in local_metadata.get("spectral_norm", {}) or name not in state_dict:
            return
        missing = [name + end for end in ("_orig", "_u") if name + end not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else [])
            return
        with no_grad():
            original, u = state_dict[name + "_orig"], state_dict[name + "_u"]
            sigma = (original / state_dict.pop(name)).mean()
            matrix = as_matrix(original, fn.dim)
            v = mv(pinverse(matrix), u)
            state_dict[name + "_v"] = v * (sigma / dot(u, mv(matrix, v)))


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide the parameter ``name`` of ``module`` by its largest singular value in each call (Miyato et al. 2018).

    In training mode, each call of ``module`` improves the estimate of the singular value by ``n_power_iterations``
    power iterations. The norms by which the power iterations divide vectors are at least ``eps``. ``dim`` is the
    dimension of the output channels: by default 1 for transposed convolutions, otherwise 0. Returns ``module``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.utils.spectral_norm(nn.Linear(3, 4))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_orig']
    >>> layer.weight_u.shape
    torch.Size([4])
    """
    if dim is None:
        dim = 1 if isinstance(module, TRANSPOSED) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Remove the hook that :func:`spectral_norm` added for the parameter ``name`` of ``module``; return ``module``.

    The parameter keeps its normalised value.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.utils.remove_spectral_norm(nn.utils.spectral_norm(nn.Linear(3, 4)))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight']
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
                for key in [key for key, each in hooks.items() if getattr(each, "fn", None) is hook]:
                    del hooks[key]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")


__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]
