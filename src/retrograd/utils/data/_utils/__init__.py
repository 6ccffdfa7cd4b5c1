"""``torch.utils.data._utils``: modules from which packages import parts of the ``DataLoader``."""

from . import collate as collate
from . import worker as worker

MP_STATUS_CHECK_INTERVAL = 5.0
python_exit_status = False

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "worker"]
