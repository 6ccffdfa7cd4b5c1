"""``torch.utils.model_zoo``: the former name of functions of ``torch.hub``."""

from ..hub import _progress_bar as tqdm  # noqa: F401 - libraries import it from here
from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
