"""``torch.utils.data._utils``: modules from which packages import parts of the ``DataLoader``."""

from ....compat.lazy_imports import module_getattr
from . import collate as collate
from . import worker as worker

HAS_NUMPY = True

MP_STATUS_CHECK_INTERVAL = 5.0
python_exit_status = False

__getattr__ = module_getattr(__name__, {each: each for each in ("fetch", "pin_memory", "signal_handling")})
__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "worker"]
