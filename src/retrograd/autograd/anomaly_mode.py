"""``detect_anomaly`` and ``set_detect_anomaly``; the checks that they enable are in ``core/anomaly_mode.py``."""

from __future__ import annotations

from ..compat.module_names import shown_in
from ..core.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled, setting
from ..runtime.user_frame import warn


class set_detect_anomaly:
    """Enable or disable anomaly detection: permanently when called, for a block when used as a context manager.

    While it is enabled, an error in a backward pass is preceded by a warning that shows the line of the program on
    which the forward operation was called. If ``check_nan`` is true, a gradient that contains NaN raises RuntimeError.
    If ``check_inf`` is true, a gradient that contains an infinity raises RuntimeError too. PyTorch does not have the
    parameter ``check_inf``.

    >>> import retrograd as torch
    >>> with torch.autograd.set_detect_anomaly(True):
    ...     print(torch.is_anomaly_enabled())
    True
    >>> torch.is_anomaly_enabled()
    False
    """

    __module__ = shown_in("torch.autograd.anomaly_mode", __name__)

    def __init__(self, mode: bool, check_nan: bool = True, *, check_inf: bool = False) -> None:
        self.prev, self.prev_check_nan = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        self.prev_check_inf = setting.check_inf
        try:
            set_anomaly_enabled(mode, check_nan)
            setting.check_inf = bool(check_inf)
        except BaseException:
            self._restore()
            raise

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        try:
            self._restore()
        except BaseException:  # an interrupt
            self._restore()
            raise

    def _restore(self) -> None:
        """Restore the settings at the creation of this object; a second call has no effect."""
        set_anomaly_enabled(self.prev, self.prev_check_nan)
        setting.check_inf = self.prev_check_inf


class detect_anomaly(set_detect_anomaly):
    """Context manager that reports the operation which makes a backward pass fail or produces its first NaN.

    The error names the operation and its line in the program, and shows the values around the first NaN. The checks
    slow the backward pass down, so use them for debugging only.

    >>> import retrograd as torch
    >>> x = torch.zeros(1, requires_grad=True)
    >>> with torch.autograd.set_detect_anomaly(True):
    ...     (x.sqrt() * 0).backward()
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output...
    """

    __module__ = shown_in("torch.autograd.anomaly_mode", __name__)

    def __init__(self, check_nan: bool = True, *, check_inf: bool = False) -> None:
        self.prev, self.prev_check_nan = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        self.prev_check_inf = setting.check_inf
        self.check_nan, self.check_inf = check_nan, bool(check_inf)
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
        )

    def __enter__(self) -> None:
        try:
            set_anomaly_enabled(True, self.check_nan)
            setting.check_inf = self.check_inf
        except BaseException:  # an interrupt: __exit__ is not called
            self._restore()
            raise


__all__ = ["detect_anomaly", "set_detect_anomaly"]
