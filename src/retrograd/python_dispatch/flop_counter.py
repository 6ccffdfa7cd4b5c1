"""``torch.utils.flop_counter``: ``FlopCounterMode``, which counts floating-point operations."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Self

from ..core.pytree import tree_map
from ..core.tensor import Tensor
from ..ops import OpOverloadPacket, aten
from ..runtime.user_frame import warn
from ..utils.module_tracker import GLOBAL, ModuleTracker
from .modes import TorchDispatchMode

Shape = Sequence[int]
Formula = Callable[..., int]
#: Formulas by operation; they are called with shapes in place of tensors.
flop_registry: dict[Any, Formula] = {}


def get_shape(value: Any) -> Any:
    """Return the shape of a tensor; another value is returned unchanged."""
    return value.shape if isinstance(value, Tensor) else value


def shape_wrapper(formula: Formula) -> Formula:
    """Return ``formula`` as a function of tensors: it gets their shapes, and that of the result as ``out_shape``."""

    @wraps(formula)
    def counted(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, shape = tree_map(get_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=shape, **kwargs)

    return counted


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """Return a decorator that registers the formula of the operations ``targets``, such as ``torch.ops.aten.mm``.

    The formula gets shapes, or the tensors if ``get_raw`` is true, and the result as ``out_shape`` (``out_val``).

    Raises:
        ValueError: A target is no operation without overload.
        RuntimeError: It has a formula.
    """

    def register(formula: Formula) -> Formula:
        made = formula if get_raw else shape_wrapper(formula)

        def enter(target: Any) -> None:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                    f"torch.ops.mylib.foo), or JitFunction, got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = made

        tree_map(enter, targets)
        return made

    return register


# --- Formulas -------------------------------------------------------------------------------------------------------


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the count of a product of matrices."""
    return a_shape[0] * b_shape[1] * 2 * a_shape[1]


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the count of ``addmm``, that of its product."""
    return a_shape[0] * b_shape[1] * 2 * a_shape[1]


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the count of a batch of products of matrices."""
    return a_shape[0] * a_shape[1] * b_shape[2] * 2 * a_shape[2]


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the count of ``baddbmm``, that of its products."""
    return a_shape[0] * a_shape[1] * b_shape[2] * 2 * a_shape[2]


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """Return the count of a convolution without bias: two for each weight at each place where it is applied."""
    places = (x_shape if transposed else out_shape)[2:]
    return x_shape[0] * math.prod(w_shape) * math.prod(places) * 2


@register_flop_formula([aten.convolution, aten._convolution])
def conv_flop(x_shape: Shape, w_shape: Shape, _bias: Any, _stride: Any, _padding: Any, _dilation: Any, transposed: bool,
              *args: Any, out_shape: Any = None, **kwargs: Any) -> int:  # fmt: skip
    """Return the count of a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Shape, x_shape: Any, w_shape: Any, _bias: Any, _stride: Any, _padding: Any, _dilation: Any,
    transposed: bool, _output_padding: Any, _groups: int, output_mask: Sequence[bool], out_shape: Any,
) -> int:  # fmt: skip
    """Return the count of the gradients of a convolution with respect to its input and its weight."""

    def turned(shape: Shape) -> Shape:
        return [shape[1], shape[0], *shape[2:]]

    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, get_shape(out_shape[0]), not transposed)
    if output_mask[1]:
        first, second = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        count += conv_flop_count(turned(first), turned(second), turned(get_shape(out_shape[1])))
    return count


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Return the count of attention: that of its two products."""
    *batch, queries, size = query_shape
    return 2 * math.prod(batch) * queries * key_shape[-2] * (size + value_shape[-1])


def sdpa_backward_flop_count(grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Return the count of the gradients of attention: five products, as the scores are computed again."""
    *batch, queries, size = query_shape
    return 2 * math.prod(batch) * queries * key_shape[-2] * (3 * size + 2 * value_shape[-1])


# --- The mode -------------------------------------------------------------------------------------------------------


class FlopCounterMode(TorchDispatchMode):
    """Mode that counts the floating-point operations of matrix products and convolutions, forward and backward.

    The counts are those of the basic operations that have a formula: ``mm``, ``addmm``, ``bmm``, ``baddbmm``,
    convolutions and their gradients, and those registered by :func:`register_flop_formula`. As in PyTorch on a CPU, fused
    attention is not counted.

    Args:
        mods: Not used.
        depth: Number of levels of modules that the table shows.
        display: If true, the table is printed at the end.
        custom_mapping: Further formulas by operation, which get shapes and ``out_shape``.

    >>> import retrograd as torch
    >>> from retrograd.utils.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    __module__ = "torch.utils.flop_counter"
    depth: int
    display: bool

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        super().__init__()
        if mods is not None:
            warn("mods argument is not needed anymore, you can stop passing it")
        self.depth, self.display = depth, display
        self.flop_counts: defaultdict[str, defaultdict[Any, int]] = defaultdict(lambda: defaultdict(int))
        own = {
            key: each if getattr(each, "_get_raw", False) else shape_wrapper(each)
            for key, each in (custom_mapping or {}).items()
        }
        self.flop_registry: dict[Any, Formula | Any] = flop_registry | own
        self.mod_tracker: ModuleTracker = ModuleTracker()

    def __enter__(self) -> Self:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.mod_tracker.__exit__(*error)
        if self.display:
            print(self.get_table(self.depth))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        result = func(*args, **named)
        formula = self.flop_registry.get(func.overloadpacket)
        if formula is not None:
            count = formula(*args, **named, out_val=result)
            for parent in self.mod_tracker.parents:
                self.flop_counts[parent][func.overloadpacket] += count
        return result

    def get_total_flops(self) -> int:
        """Return the number of all operations."""
        return sum(self.flop_counts[GLOBAL].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the numbers by name of the module and operation; the module ``"Global"`` is everything."""
        return {key: dict(value) for key, value in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return the numbers of modules down to ``depth`` as a table."""
        depth = self.depth if depth is None else depth
        depth = 999999 if depth is None else depth
        total = self.get_total_flops()
        modules = [each for each in sorted(self.flop_counts) if each != GLOBAL and each.count(".") < depth]
        whole = any(sum(self.flop_counts[each].values()) >= total for each in modules)
        rows: list[tuple[str, int]] = []
        for module in modules if whole else [GLOBAL, *modules]:
            counts = self.flop_counts[module]
            rows.append((module, sum(counts.values())))
            rows += [(f"- {operation}", count) for operation, count in counts.items()]
        largest = max([each[1] for each in rows], default=0)
        power = min(max(len(str(largest)) - 1, 0) // 3, len(SUFFIXES) - 1)
        shown = [("Module", "FLOP", "% Total")]
        for name, count in rows:
            value = f"{count / 1000**power:.3f}{SUFFIXES[power]}" if power else f"{count}"
            shown.append((name, value, f"{count / total if total else 0:.2%}"))
        widths = [max(len(each[i]) for each in shown) for i in range(3)]
        widths = [max(each, len(title) + 2) for each, title in zip(widths, shown[0], strict=True)]
        lines = [
            f"{name:<{widths[0]}}  {count:>{widths[1]}}  {part:>{widths[2]}}".rstrip() for name, count, part in shown
        ]
        return "\n".join([lines[0], "  ".join("-" * each for each in widths), *lines[1:]])


#: Units of the counts in a table, by powers of 1000.
SUFFIXES = ("", "K", "M", "B", "T")
__all__ = ["FlopCounterMode", "register_flop_formula"]
