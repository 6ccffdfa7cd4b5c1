"""Activation checkpointing: ``checkpoint`` discards saved tensors and recomputes them in the backward pass.

With ``use_reentrant=False``, saved-tensor hooks replace each saved tensor by an empty :class:`Holder`. When the
backward pass unpacks an empty holder, the function runs again, with hooks that store the recomputed tensors in the
holders, in the same order. Checkpoints may be nested: the inputs of an inner function are then also discarded and
recomputed, because the hooks of the outer checkpoint apply to them.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from ..autograd import backward
from ..autograd.function import Function, save_value
from ..autograd.graph import saved_tensors_hooks
from ..compat.lazy_imports import module_getattr
from ..core import engine
from ..core.error_context import describe_node, with_remedy
from ..core.grad_mode import enable_grad, modes_to_restore, no_grad, recording
from ..core.graph import require_plan
from ..core.tensor import Tensor
from ..operations.creation.random import fork_rng, get_rng_state, set_rng_state
from ..runtime import user_frame
from ..runtime.user_frame import warn

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class CheckpointError(RuntimeError):
    """Error raised if the recomputation of a function does not save the same tensors as its forward pass."""

    __module__ = "torch.utils.checkpoint"


def noop_context_fn() -> Contexts:
    """Return two context managers without effect; the default of the argument ``context_fn`` of :func:`checkpoint`.

    >>> import retrograd as torch
    >>> forward, recomputation = torch.utils.checkpoint.noop_context_fn()
    >>> with forward:
    ...     print(torch.ones(2).sum())
    tensor(2.)
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


class _Overrides:
    """Values that override the arguments ``early_stop`` and ``debug`` of :func:`checkpoint`.

    The functions ``set_checkpoint_…`` set them. A value is None if it does not override the argument.
    """

    early_stop: ClassVar[bool | None] = None
    debug: ClassVar[bool | None] = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Return a context manager that overrides the argument ``early_stop`` of :func:`checkpoint` by ``enable``.

    If ``enable`` is true, the recomputation of a function ends as soon as all needed tensors are computed.

    >>> import retrograd as torch
    >>> from retrograd.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = torch.tensor([0.0], requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     checkpoint(torch.exp, x, use_reentrant=False).backward()
    >>> x.grad
    tensor([1.])
    """
    before, _Overrides.early_stop = _Overrides.early_stop, enable
    try:
        yield
    finally:
        _Overrides.early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Return a context manager that overrides the argument ``debug`` of :func:`checkpoint` by ``enabled``.

    The argument ``debug`` has no effect on error messages, which always contain the source lines that saved the
    tensors.

    >>> import retrograd as torch
    >>> from retrograd.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled
    >>> x = torch.tensor([0.0], requires_grad=True)
    >>> with set_checkpoint_debug_enabled(False):
    ...     print(checkpoint(torch.exp, x, use_reentrant=False))
    tensor([1.], grad_fn=<ExpBackward0>)
    """
    before, _Overrides.debug = _Overrides.debug, enabled
    try:
        yield
    finally:
        _Overrides.debug = before


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the GPUs on which tensors among ``args`` are, and the states of their generators: two empty lists.

    A GPU has no generator of its own; the random numbers of all devices are drawn by the CPU's.
    """
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Do nothing; :func:`get_device_states` returns no states."""


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Return ``function(*args, **kwargs)`` without saving its intermediate tensors; the backward pass recomputes them.

    Args:
        use_reentrant: If false (recommended), ``backward()``, ``autograd.grad`` and keyword arguments are supported. If
            true, the function runs without recording operations. In the backward pass it runs again, followed by a
            nested backward pass through its operations. Only ``backward()`` without ``inputs`` is supported, and
            ``function`` receives no keyword arguments.
        preserve_rng_state: Keyword argument. If true (default), the recomputation starts from the random state of
            the forward pass, so that it draws the same random numbers.
        context_fn: Function that returns two context managers, for the forward pass and for the recomputation.
        determinism_check: With "default", the shapes, dtypes and devices of the tensors saved by the forward pass and
            by the recomputation are compared; with "none", only the number of tensors.
        debug: Accepted for compatibility with PyTorch; errors always contain the source lines that saved the tensors.
        early_stop: If true, the recomputation ends as soon as all needed tensors are computed.

    The backward pass raises CheckpointError if the recomputation does not save the same tensors as the forward pass.

    >>> import retrograd as torch
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> y = torch.utils.checkpoint.checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False)
    >>> y.backward()
    >>> x.grad
    tensor(3.3129)

    See https://docs.pytorch.org/docs/stable/checkpoint.html.
    """
    if use_reentrant is None:
        warn(UNDECIDED)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if (debug if _Overrides.debug is None else _Overrides.debug) and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    first, again = context_fn()
    if not recording():
        return function(*args, **kwargs)
    frame = Frame(_Rerun(function, kwargs, again, preserve), args, determinism_check == "default")
    frame.early_stop = early_stop if _Overrides.early_stop is None else _Overrides.early_stop
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        result = function(*args, **kwargs)
        frame.complete = True
    if not frame.complete:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during the "
            "checkpointed forward. This is not supported because checkpoint cannot return a value for a failed forward."
        )
    return result


class _Rerun:
    """Callable that runs a checkpointed function again, with gradients enabled and autocast as at its creation.

    If ``preserve`` is true, the random state at the creation of this object is restored for the run.
    """

    def __init__(
        self, function: Callable[..., Any], kwargs: dict[str, Any], context: AbstractContextManager[Any], preserve: bool
    ) -> None:
        self.function, self.kwargs, self.context = function, kwargs, context
        self.random = get_rng_state() if preserve else None
        self.modes = [mode for current in modes_to_restore for mode in current()]

    def __call__(self, *args: Any) -> Any:
        with fork_rng(enabled=self.random is not None), contextlib.ExitStack() as modes:
            if self.random is not None:
                set_rng_state(self.random)
            for mode in self.modes:
                modes.enter_context(mode)
            with enable_grad(), self.context:
                return self.function(*args, **self.kwargs)


class _StopRecomputation(Exception):
    """Exception that ends the second run of a checkpointed function early, if ``early_stop`` is true."""


class Holder:
    """Placeholder in the graph for a tensor that a checkpointed function saved.

    ``value`` is the recomputed tensor, or None before the recomputation.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self) -> None:
        self.value: Tensor | None = None


class Frame:
    """State of one call of :func:`checkpoint`: the inputs of the function, and a holder for each saved tensor."""

    def __init__(self, rerun: _Rerun, args: tuple[Any, ...], check: bool) -> None:
        self.code, self.instruction = user_frame.user_location()
        self.rerun, self.check, self.early_stop = rerun, check, True
        self.complete = False
        self.inputs = [save_value(each) if isinstance(each, Tensor) else each for each in args]
        self.are_tensors = [isinstance(each, Tensor) for each in args]
        self.holders: list[weakref.ref[Holder]] = []
        self.facts: list[Any] = []  # shape, dtype and device of each saved tensor
        self.lines: list[Any] = []
        self.unpacked: weakref.WeakSet[Holder] = weakref.WeakSet()  # in the backward pass `backward_pass`
        self.backward_pass: Any = None

    def pack(self, tensor: Tensor) -> Holder:
        """Return a new empty holder, which the graph stores in place of ``tensor``.

        ``tensor`` is a tensor that the first run of the checkpointed function saved for the backward pass.
        """
        holder = Holder()
        self.holders.append(weakref.ref(holder))
        self.facts.append(_metadata(tensor))
        self.lines.append(user_frame.user_location())
        return holder

    def unpack(self, holder: Holder) -> Tensor:
        """Return the recomputed tensor in ``holder``, and remove it from ``holder``.

        If ``holder`` has no tensor yet, the checkpointed function runs again to recompute the tensor. Raises
        CheckpointError if this run does not recompute the tensor of ``holder``.
        """
        running = engine.running_frame()
        if running is not self.backward_pass:
            self.backward_pass = running
            self.unpacked.clear()
            if running is not None:
                engine.queue_callback(self.end_pass)
        if running is not None and holder in self.unpacked:
            raise CheckpointError(TWICE + self._place())
        self.unpacked.add(holder)
        if holder.value is None:
            self.run_again()
        found, holder.value = holder.value, None
        if found is None:
            raise CheckpointError(NOT_RECOMPUTED + self._place())
        return found

    def end_pass(self) -> None:
        """Forget which tensors the backward pass that ends has unpacked."""
        self.backward_pass = None
        self.unpacked.clear()

    def run_again(self) -> None:
        """Run the checkpointed function again, and store the recomputed tensors in the holders.

        Raises CheckpointError if the number of saved tensors differs from the first run. With
        ``determinism_check="default"``, CheckpointError is also raised if a tensor has another shape, dtype or device
        than in the first run.
        """
        args = [each.tensor(self) if is_tensor else each for each, is_tensor in zip(self.inputs, self.are_tensors)]  # noqa: B905
        again = _SecondRun(self)
        with contextlib.suppress(_StopRecomputation), saved_tensors_hooks(again.pack, lambda tensor: tensor):
            self.rerun(*args)
        if not again.beyond:
            self._compare(again)

    def _compare(self, again: _SecondRun) -> None:
        if len(self.holders) != len(again.facts):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\nNumber of tensors saved "
                f"during recomputation: {len(again.facts)}.\n{self._differing(again)}" + self._place()
            )
        if not self.check:
            return
        different = [
            (index, before, after)
            for index, (before, after) in enumerate(zip(self.facts, again.facts, strict=True))
            if self.holders[index]() is not None and before != after
        ]
        if different:
            listed = "".join(
                f"tensor at position {index}:\nsaved metadata: {before}\nrecomputed metadata: {after}\n"
                for index, before, after in different
            )
            first = different[0][0]
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during "
                f"the forward pass.\n{listed}.\ntensor at position {first}:\n{_line('saved', self.lines[first])}"
                f"{_line('recomputed', again.lines[first])}" + self._place()
            )

    def _differing(self, again: _SecondRun) -> str:
        """Return a text for an error: the source lines where the two runs first saved different tensors.

        The tensors that the first run and the second run, ``again``, saved are compared in order. They are considered
        different if they were saved at different source lines. The text is empty if no tensor is different.
        """
        for index in range(max(len(self.lines), len(again.lines))):
            before, after = (lines[index] if index < len(lines) else None for lines in (self.lines, again.lines))
            if before != after:
                return f"tensor at position {index}:\n{_line('saved', before)}{_line('recomputed', after)}"
        return ""

    def _place(self) -> str:
        place = user_frame.describe(self.code, self.instruction)
        remedy = "Remedy: let the function do the same each time it is called, whatever happened in between."
        return f"\nThe function is checkpointed at {place}\n{remedy}" if place else f"\n{remedy}"


def _line(what: str, place: Any) -> str:
    return f"{what} at {user_frame.describe(*place)}\n" if place else f"not {what}\n"


def _metadata(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


class _SecondRun:
    """State of the second run of a checkpointed function: metadata and source lines of the tensors saved so far."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.facts: list[Any] = []
        self.lines: list[Any] = []
        self.beyond = False  # the second run has saved more than the first, which is still running

    def pack(self, tensor: Tensor) -> Tensor:
        """Store ``tensor`` in the next :class:`Holder`, and return it detached from the graph.

        This method is called for each tensor that the second run of the checkpointed function saves. Raises
        CheckpointError if it saves more tensors than the first run. If ``early_stop`` is true, the exception
        _StopRecomputation ends the second run when all holders are filled.
        """
        tensor = tensor.detach() if tensor.requires_grad else tensor
        frame, index = self.frame, len(self.facts)
        if index >= len(frame.holders):
            if frame.complete:
                raise CheckpointError(TOO_MANY_SAVED + frame._place())
            self.beyond = True  # the function itself runs a backward pass
            return tensor
        self.facts.append(_metadata(tensor))
        self.lines.append(user_frame.user_location())
        holder = frame.holders[index]()
        if holder is not None:  # None: a backward pass inside the function has freed it
            holder.value = tensor
        if frame.early_stop and index + 1 == len(frame.holders):
            raise _StopRecomputation
        return tensor


TWICE = (
    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are calling "
    "ctx.saved_tensors in backward, make sure to do so only once.\n"
)
TOO_MANY_SAVED = (
    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward pass.\n"
)
NOT_RECOMPUTED = "torch.utils.checkpoint: a saved tensor was not computed by the second run of the function.\n"
UNDECIDED = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling "
    "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to "
    "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
    "differences between the two variants."
)
UNDECIDED_SEQUENTIAL = (
    "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In version 2.9 "
    "we will raise an exception if use_reentrant is not passed. use_reentrant=False is recommended, but if you need to "
    "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
    "differences between the two variants."
)


# --- Reentrant checkpoints: a backward pass inside a backward pass --------------------------------------------------


def detach_variable(inputs: Any) -> tuple[Any, ...]:
    """Return the tuple ``inputs`` with each tensor replaced by a detached leaf that has the same ``requires_grad``.

    >>> import retrograd as torch
    >>> (leaf,) = torch.utils.checkpoint.detach_variable((torch.ones(1, requires_grad=True) * 2,))
    >>> leaf.is_leaf, leaf.requires_grad
    (True, True)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(
        each.detach().requires_grad_(each.requires_grad) if isinstance(each, Tensor) else each for each in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if none of the tensors among ``inputs`` requires a gradient.

    >>> import retrograd as torch
    >>> torch.utils.checkpoint.check_backward_validity([torch.ones(1, requires_grad=True)]) is None
    True
    """
    if not any(each.requires_grad for each in inputs if isinstance(each, Tensor)):
        warn("None of the inputs have requires_grad=True. Gradients will be None")


class CheckpointFunction(Function):
    """Autograd function for ``checkpoint(…, use_reentrant=True)``."""

    __module__ = "torch.utils.checkpoint"

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Return ``run_function(*args)``, computed without recording its operations.

        ``args`` are saved for the backward pass. If ``preserve_rng_state`` is true, the random state is saved too.
        """
        check_backward_validity(args)
        require_plan(ctx)  # backward() reads the engine's plan
        ctx.rerun = _Rerun(run_function, {}, contextlib.nullcontext(), preserve_rng_state)
        ctx.inputs = [None if isinstance(each, Tensor) else each for each in args]
        ctx.are_tensors = [isinstance(each, Tensor) for each in args]
        ctx.save_for_backward(*(each for each in args if isinstance(each, Tensor)))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients of the inputs, computed from ``grads``, the gradients of the outputs.

        The function runs again, and its operations are recorded. Then a nested backward pass through these operations
        computes the gradients.
        """
        plan = engine.running_plan()
        if plan is not None and plan.flow is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                f".backward() without passing the `inputs` argument.{describe_node(ctx)} Remedy: checkpoint with "
                "use_reentrant=False."
            )
        saved = iter(ctx.saved_tensors)
        given = zip(ctx.inputs, ctx.are_tensors, strict=True)
        inputs = detach_variable(tuple(next(saved) if is_tensor else each for each, is_tensor in given))
        outputs = ctx.rerun(*inputs)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [
            (out, grad)
            for out, grad in zip(outputs, grads, strict=False)
            if isinstance(out, Tensor) and out.requires_grad
        ]
        if not pairs:
            text = "none of output has requires_grad=True, this checkpoint() is not necessary"
            raise RuntimeError(with_remedy(f"{text}.{describe_node(ctx)}", "call the function itself"))
        backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return None, None, *(each.grad if isinstance(each, Tensor) else None for each in inputs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Return the result of ``functions``, a list or an ``nn.Sequential``, applied to ``input`` in order.

    The functions are divided into ``segments`` parts of about equal length. All parts except the last are checkpointed:
    only the input of the part is saved. ``use_reentrant`` and the keyword argument ``preserve_rng_state`` are passed to
    :func:`checkpoint`.

    >>> import retrograd as torch
    >>> x = torch.tensor(1.0, requires_grad=True)
    >>> steps = [torch.sin, torch.exp, torch.sqrt, torch.cos]
    >>> torch.utils.checkpoint.checkpoint_sequential(steps, 2, x, use_reentrant=False)
    tensor(0.0477, grad_fn=<CosBackward0>)
    """
    if use_reentrant is None:
        warn(UNDECIDED_SEQUENTIAL)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children() if hasattr(functions, "children") else functions)

    def segment(start: int, end: int) -> Callable[[Any], Any]:
        def run(input: Any) -> Any:
            for step in steps[start:end]:
                input = step(input)
            return input

        return run

    if segments > len(steps):
        raise ValueError(
            f"checkpoint_sequential: {len(steps)} functions cannot be divided into {segments} segments. Remedy: pass at most "
            "as many segments as functions"
        )
    size, done = len(steps) // segments, 0
    for start in range(0, size * (segments - 1), size):
        done = start + size
        input = checkpoint(segment(start, done), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return segment(done, len(steps))(input)


__getattr__ = module_getattr(
    __name__,
    dict.fromkeys(("CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"),
                  "..python_dispatch.selective_checkpoint"),
)  # fmt: skip
__all__ = [
    "CheckpointError", "CheckpointFunction", "check_backward_validity", "checkpoint", "checkpoint_sequential",
    "detach_variable", "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop",
]  # fmt: skip
