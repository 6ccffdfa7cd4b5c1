"""``GradScaler``: multiplies losses by a scale, so that half-precision gradients do not underflow.

Before the step of an optimiser, the gradients are divided by the scale.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from .. import cuda
from ..compat.pickle_names import TorchNamed
from ..core import dtypes
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..operations.creation.factory import full
from ..operations.elementwise.comparison import isfinite
from ..operations.multi_tensor import unscale_
from ..operations.shape.join import where_
from ..runtime.user_frame import warn


class OptState(enum.Enum):
    """State of one optimiser in :class:`GradScaler` since the last call of ``update``.

    ``READY`` is the initial state. ``UNSCALED`` means that the gradients have been divided by the scale, and
    ``STEPPED`` that :meth:`GradScaler.step` has been called.
    """

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler(TorchNamed):
    """Scaler that multiplies losses by a scale, divides gradients by the scale, and adjusts the scale.

    After ``growth_interval`` consecutive iterations with finite gradients, the scale is multiplied by
    ``growth_factor``. If a gradient is infinite or NaN, the step of the optimiser is skipped, and the scale is
    multiplied by ``backoff_factor``.

    >>> import retrograd as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer, scaler = torch.optim.SGD([w], lr=0.5), torch.amp.GradScaler("cpu")
    >>> scaler.scale(w.sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w, scaler.get_scale()
    (tensor([0.5000, 0.5000], requires_grad=True), 65536.0)

    See https://docs.pytorch.org/docs/stable/amp.html.
    """

    __module__ = "torch.amp.grad_scaler"

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device, self._enabled = device, enabled
        if enabled and device == "cuda" and not cuda.is_available():
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._scale = init_scale, None
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._tracker = growth_interval, 0
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    _scale: Tensor | None
    _per_optimizer_states: defaultdict[int, dict[str, Any]]

    def _known_scale(self, asking: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {asking} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """Return ``outputs`` multiplied by the scale.

        ``outputs`` is a tensor, or an iterable, such as a list or a tuple, that contains tensors at any depth. If the
        scaler is disabled, ``outputs`` is returned unchanged.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = full((), float(self._init_scale), dtype=dtypes.float32, device=outputs.device)
            return outputs * self._scale.to(outputs.device)
        if not isinstance(outputs, Iterable):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = [self.scale(each) for each in outputs]
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the parameters of ``optimizer`` by the scale in place.

        After this call, the gradients can be clipped, for example, and :meth:`step` does not divide them again. Raises
        RuntimeError if this method is called twice for the same optimiser before :meth:`update`, or after :meth:`step`.
        """
        if not self._enabled:
            return
        scale, state = self._known_scale("unscale_"), self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = 1.0 / float(scale) if scale.is_cpu else scale.double().reciprocal().float()
        state["infinite"] = self._unscaled(optimizer, inverse, False)
        state["stage"] = OptState.UNSCALED

    def _unscaled(self, optimizer: Any, inverse: Any, allow_fp16: bool) -> Any:
        """Multiply the gradients of the parameters of ``optimizer`` by ``inverse`` in place.

        Return whether a gradient has an infinite or NaN element, or None if there are no gradients. The result is a
        tensor if a gradient is on a GPU, so that the program does not wait for it before :meth:`step`. Raise ValueError
        for float16 gradients unless ``allow_fp16`` is true.
        """
        grads = [each.grad for group in optimizer.param_groups for each in group["params"] if each.grad is not None]
        if not allow_fp16 and any(each.dtype is dtypes.float16 for each in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        if not grads:
            return None
        infinite, flag = False, None
        with no_grad():
            if isinstance(inverse, Tensor) and (together := unscale_(grads, inverse)) is not None:
                return together
            for grad in grads:
                if grad.is_cpu:
                    infinite = infinite or not bool(isfinite(grad).all())
                else:
                    found = ~isfinite(grad).all()
                    flag = found if flag is None else flag | found.to(flag.device)
                if isinstance(inverse, Tensor):
                    grad.mul_(inverse.to(grad.device))
                elif inverse != 1.0:
                    grad.mul_(inverse)
        return infinite if infinite or flag is None else flag

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call ``optimizer.step(*args, **kwargs)`` if all gradients are finite.

        Before the call, the gradients are divided by the scale, unless :meth:`unscale_` has already divided them.
        Return the result of the call, or None if a gradient is infinite or NaN. Raises RuntimeError if this method is
        called twice for the same optimiser before :meth:`update`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._known_scale("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if state["infinite"] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        state["infinite"] = bool(state["infinite"])
        done = None if state["infinite"] else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return done

    def update(self, new_scale: Any = None) -> None:
        """Adjust the scale at the end of an iteration, or set it to ``new_scale`` if ``new_scale`` is not None."""
        if not self._enabled:
            return
        scale = self._known_scale("update")
        if new_scale is not None:
            self._set(scale, new_scale)
        else:
            found = [each["infinite"] for each in self._per_optimizer_states.values() if each["infinite"] is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adjust(scale, any(map(bool, found)))
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _set(self, scale: Tensor, new_scale: Any) -> None:
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
            return
        fits = isinstance(new_scale, Tensor) and new_scale.dtype is dtypes.float32 and new_scale.numel() == 1
        if not fits or new_scale.requires_grad:
            raise AssertionError(
                "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                "requires_grad=False."
            )
        scale.copy_(new_scale.reshape(()))

    def _adjust(self, scale: Tensor, infinite: bool) -> None:
        if infinite:
            scale.mul_(self._backoff_factor)
            self._tracker = 0
            return
        self._tracker += 1
        if self._tracker == self._growth_interval:
            grown = scale * self._growth_factor
            scale.copy_(where_(isfinite(grown), grown, scale))
            self._tracker = 0

    def get_scale(self) -> float:
        """Return the scale as a float, or 1.0 if the scaler is disabled."""
        if not self._enabled:
            return 1.0
        return float(self._init_scale) if self._scale is None else float(self._scale)

    def get_growth_factor(self) -> float:
        """Return the growth factor, by which the scale is multiplied after enough iterations with finite gradients."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the growth factor to ``new_factor``.

        The scale is multiplied by this factor after enough iterations with finite gradients.
        """
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the backoff factor, by which the scale is multiplied after infinite or NaN gradients."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the backoff factor to ``new_factor``.

        The scale is multiplied by this factor after infinite or NaN gradients.
        """
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the growth interval.

        The scale is increased after this number of consecutive iterations with finite gradients.
        """
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the growth interval to ``new_interval``.

        The scale is increased after this number of consecutive iterations with finite gradients.
        """
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether the scaler is enabled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return a dictionary with the scale and the parameters that control its adjustment.

        If the scaler is disabled, the dictionary is empty.
        """
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._tracker,
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the scale and the parameters from ``state_dict``, a result of :meth:`state_dict`."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state.update(_init_scale=self.get_scale(), _init_growth_tracker=state.pop("_tracker"))
            state.update(_scale=None, _growth_tracker=None)  # the attributes of PyTorch's pickles
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._enabled:
            self._tracker = self.__dict__.pop("_init_growth_tracker")
            del self.__dict__["_growth_tracker"]


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "infinite": None}


__all__ = ["GradScaler", "OptState"]
