"""``torch.__future__``: settings of how modules convert their parameters."""

from .nn.modules import conversion as _conversion


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether ``module.to`` and similar methods replace parameters by new ones, instead of changing their data."""
    _conversion.overwrite_parameters = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return whether ``module.to`` and similar methods replace parameters by new ones."""
    return _conversion.overwrite_parameters


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set whether ``module.to`` and ``load_state_dict`` exchange parameters with new ones by ``swap_tensors``."""
    _conversion.swap_parameters = value


def get_swap_module_params_on_conversion() -> bool:
    """Return whether ``module.to`` and ``load_state_dict`` exchange parameters with new ones."""
    return _conversion.swap_parameters


__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion",
]  # fmt: skip
