"""``Reducer``: averages of gradients over ranks, computed in buckets while the backward pass is still running.

Note [Buckets]. An all-reduce has a latency, so many small gradients are copied into one buffer, a bucket, and reduced
together. An all-reduce of all gradients could start only after the backward pass. With several buckets, one is reduced
while the gradients of the next are computed. After the first iteration, the buckets are rebuilt once, in the order in
which the gradients of rank 0 became ready. The first bucket is small (1 MB), so that communication starts early.

All ranks reduce their buckets in the same order: a complete bucket waits for the buckets before it. Therefore the n-th
collective operation of one rank is the n-th of every other rank.

Note [One iteration]. :meth:`Reducer.prepare_for_backward` is called at the end of the forward pass. In the backward
pass, a hook of each parameter's AccumulateGrad copies the gradient, divided by the number of ranks, into its bucket. The
last gradient of a bucket starts the all-reduce, which runs during the rest of the backward pass. The last bucket queues
a callback for the end of the backward pass, which waits for all buckets and copies them to the gradients.

Note [A backward pass that raises]. Other ranks wait for the buckets that this rank has not reduced. So before the next
forward pass these are reduced with zeros for the missing gradients, and the results are dropped. Every rank then has
taken part in the same operations, and training can go on.

Source: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy

from ..autograd.backward import gradient_edge_of
from ..core.devices import array_module_of
from ..core.dtypes import int32, int64
from ..core.engine import Plan, queue_callback
from ..core.grad_mode import no_grad
from ..core.rule_namespace import arithmetic
from ..core.tensor import Tensor, strided, wrap
from ..core.views import is_dense
from ..futures import Future
from ..operations.creation.factory import empty, zeros
from ..operations.creation.from_data import tensor
from ..operations.shape.join import cat
from ..runtime.user_frame import warn
from ..sparse.creation import sparse_coo_tensor
from .collectives import all_reduce, broadcast
from .groups import ProcessGroup
from .object_collectives import all_gather_object
from .unused_parameters import Reason, reasons, tensors_in
from .work import Work

#: Function that gets the state and a bucket, and returns a future of the tensor that replaces the bucket's buffer.
Hook = Callable[[Any, Any], Any]


class GradBucket:
    """Bucket of gradients that a communication hook gets: a flat tensor, and views of it for the parameters."""

    __module__ = "torch._C._distributed_c10d"

    def __init__(self, index: int, count: int, buffer: Tensor, parameters: list[Tensor]) -> None:
        self._index, self._count, self._buffer, self._parameters = index, count, buffer, parameters

    def index(self) -> int:
        """Return the number of this bucket; buckets are reduced in the order of their numbers."""
        return self._index

    def buffer(self) -> Tensor:
        """Return the gradients as a flat tensor, not divided by the number of ranks; or one sparse gradient."""
        return self._buffer

    def gradients(self) -> list[Tensor]:
        """Return a list of the gradients, views of :meth:`buffer` with the shapes of the parameters."""
        if self._buffer.layout is not strided:
            return [self._buffer]
        with no_grad():
            return _views(self._buffer, self._parameters)

    def parameters(self) -> list[Tensor]:
        """Return a list of the parameters, in the order of :meth:`gradients`."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether this is the last bucket of the iteration."""
        return self._index == self._count - 1

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the flat tensor by ``buffer``."""
        self._buffer = buffer


class Bucket:
    """Parameters whose gradients are reduced together, and the state of this reduction.

    Attributes:
        indices: Indices of the parameters.
        parameters: The parameters.
        sparse: Whether the bucket has a single parameter with a sparse gradient.
        buffer: Flat tensor of the gradients, or None if ``sparse``.
        views: Views of ``buffer`` with the shapes of the parameters.
        gradient: Sparse gradient of this iteration, or None.
        pending: Number of gradients that are not ready yet.
        result: Function that waits for the reduction and returns its result, or None if the bucket is not reduced.
    """

    indices: list[int]
    parameters: list[Tensor]
    sparse: bool

    def __init__(self, indices: list[int], parameters: list[Tensor], sparse: bool) -> None:
        self.indices, self.parameters, self.sparse = indices, parameters, sparse
        self.buffer: Tensor | None = None
        self.views: list[Tensor] = []
        self.gradient: Tensor | None = None
        self.result: Callable[[], Any] | None = None
        self.pending: int = len(indices)
        if not sparse:
            first = parameters[0]
            self.buffer = empty(sum(each.numel() for each in parameters), dtype=first.dtype, device=first.device)
            self.views = _views(self.buffer, parameters)


def _views(buffer: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Return views of successive parts of the flat tensor ``buffer``, with the layouts of ``parameters``."""
    views, begin = [], 0
    for each in parameters:
        part = buffer[begin : begin + each.numel()]
        dense = not each._array.flags.c_contiguous and is_dense(each._array)
        views.append(part.as_strided(each.shape, each.stride()) if dense else part.view(each.shape))
        begin += each.numel()
    return views


def assign_buckets(
    parameters: Sequence[Tensor], sparse: Sequence[bool], limits: Sequence[float], order: Sequence[int] | None = None
) -> list[list[int]]:  # fmt: skip
    """Return lists of indices of ``parameters``, one for each bucket.

    Parameters are taken in ``order``, by default that of registration, in which case the buckets are sorted by their
    first parameter. A bucket has one dtype and one device. It is complete when it has at least as many bytes as its
    limit. The k-th bucket of a dtype has the k-th of ``limits``; the last of these holds for further buckets.
    """
    complete: list[list[int]] = []
    unfinished: dict[Any, tuple[list[int], int, int]] = {}
    for index in range(len(parameters)) if order is None else order:
        each = parameters[index]
        if sparse[index]:
            complete.append([index])
            continue
        key = each.dtype, each.device
        members, nbytes, limit = unfinished.get(key, ([], 0, 0))
        members.append(index)
        nbytes += each.numel() * each.element_size()
        if nbytes >= limits[limit]:
            complete.append(members)
            members, nbytes, limit = [], 0, min(limit + 1, len(limits) - 1)
        unfinished[key] = members, nbytes, limit
    complete += [members for members, _, _ in unfinished.values() if members]
    return sorted(complete, key=min) if order is None else complete


def _copy_divided(view: Tensor, grad: Any, divisor: int) -> None:
    """Copy ``grad / divisor`` to ``view``, computed as PyTorch does: multiplied by the reciprocal. ``grad`` is an array."""
    dtype = grad.dtype
    if dtype.kind in "fc" and dtype.itemsize > 2 and dtype == view._array.dtype:
        array_module_of(grad).multiply(grad, dtype.type(1 / divisor), out=view._array)
    else:
        view.copy_(wrap(grad) * (1 / divisor))


def sum_sparse(group: ProcessGroup, gradient: Tensor | None) -> Tensor | None:
    """Return the coalesced sum of the sparse tensors ``gradient`` of all ranks; None is a tensor of zeros."""
    parts: list[Any] = [None] * group.size()
    mine = None if gradient is None else (gradient._indices(), gradient._values(), tuple(gradient.shape))
    all_gather_object(parts, mine, group)
    present = [each for each in parts if each is not None]
    if not present:
        return None
    indices, values, shapes = zip(*present, strict=True)
    return sparse_coo_tensor(cat(indices, 1), cat(values), shapes[0]).coalesce()


class Reducer:
    """Averages of the gradients of ``parameters`` over the ranks of ``group``, for ``DistributedDataParallel``.

    Methods that packages call have PyTorch's names.

    Args:
        parameters: Parameters that require gradients, in the order of registration.
        names: Names of the parameters, for error messages.
        sparse: For each parameter, whether its gradient is sparse.
        group: Process group.
        limits: Numbers of bytes of the buckets in the first iteration.
        later_limits: Numbers of bytes of the buckets after the first iteration.
        find_unused: Whether parameters without a gradient are found by a traversal of the graph in each iteration.
        as_view: Whether gradients are views of buckets.
        skip_unused: Whether buckets without a used parameter are not reduced; all ranks must agree on them.
    """

    group: ProcessGroup
    names: list[str]
    parameters: list[Tensor]
    sparse: list[bool]
    as_view: bool
    find_unused: bool
    later_limits: Sequence[float]
    skip_unused: bool
    iterations: int
    rebuilt: bool
    next: int
    raised: bool
    divisor: int

    def __init__(
        self, parameters: list[Tensor], names: list[str], sparse: list[bool], group: ProcessGroup, limits: Sequence[float],
        later_limits: Sequence[float], find_unused: bool = False, as_view: bool = False, skip_unused: bool = False,
    ) -> None:  # fmt: skip
        self.parameters, self.names, self.sparse, self.group = parameters, names, sparse, group
        self.later_limits, self.find_unused, self.as_view, self.skip_unused = (
            later_limits,
            find_unused,
            as_view,
            skip_unused,
        )
        self.static_graph = False
        self.hook: tuple[Hook, Any] | None = None
        self.iterations = 0
        self.expecting = False  # whether hooks of parameters are to reduce gradients
        self.unfinished: bool = False  # whether gradients have become ready, and the reduction has not been completed
        self.raised = False  # whether the backward pass that left the reduction unfinished raised an exception
        self.marked_unused: bool = False
        self.unused: list[int] = []
        self.ready: set[int] = set()
        self.next = 0
        self.divisor = 0
        self.joined: tuple[Work, bool] | None = None
        self.used: list[int] = [0] * len(parameters)  # 1 for a parameter with a gradient in this rank
        self.used_sum: tuple[Work, Tensor] | None = None  # the reduction of `used`, and its result
        self.used_by_static: list[bool] | None = None
        self.order: list[int] = []  # in which gradients became ready, until the buckets have been rebuilt
        self.rebuilt = False
        self.delayed: bool = False
        self.counts: list[int] = [0] * len(parameters)  # calls of the hooks in the first iteration of a static graph
        self.left: list[int] = []
        self.futures: list[Any] = []
        self.reasons: dict[int, Reason] = {}
        self.outputs: list[tuple[str, Any]] = []
        self.device: Any = parameters[0].device
        self._place(list(reversed(assign_buckets(parameters, sparse, limits))))
        reference = weakref.ref(self)
        self.handles = [
            each._grad_edge.register_hook(partial(_run_hook, reference, index))  # type: ignore[union-attr]
            for index, each in enumerate(parameters)
        ]

    def __del__(self) -> None:
        self._remove_autograd_hooks()

    def _remove_autograd_hooks(self) -> None:
        """Remove the hooks of the parameters."""
        for each in self.__dict__.get("handles", ()):
            each.remove()

    def _place(self, assigned: list[list[int]]) -> None:
        """Create the buckets with the parameters ``assigned`` to them."""
        with no_grad():
            self.buckets: list[Bucket] = [
                Bucket(indices, [self.parameters[each] for each in indices], self.sparse[indices[0]])
                for indices in assigned
            ]
        self.places: dict[int, tuple[Bucket, int]] = {
            index: (bucket, position) for bucket in self.buckets for position, index in enumerate(bucket.indices)
        }

    # -- The forward pass ----------------------------------------------------------------------------------------------

    def prepare_for_forward(self) -> None:
        """Count an iteration; called before the forward pass of an iteration in which gradients are reduced."""
        self.iterations += 1

    def _rebuild_buckets(self) -> bool:
        """Assign parameters to buckets in the order in which their gradients became ready; return whether that was done.

        This is done once, before the second iteration. All ranks use the order of rank 0. Raises RuntimeError if the
        reduction of the previous iteration was not completed.
        """
        self._check_reducer_finalized()
        if self.rebuilt or not self.order or (self.find_unused and not self.static_graph):
            return False
        assigned = assign_buckets(self.parameters, self.sparse, self.later_limits, self.order)
        numbers = [0] * len(self.parameters)
        for number, indices in enumerate(assigned):
            for each in indices:
                numbers[each] = number
        if self.group.size() > 1:
            agreed = tensor([self.order, numbers], dtype=int64, device=self.device)
            broadcast(agreed, group=self.group, group_src=0)
            self.order, numbers = agreed.tolist()
            assigned = [[] for _ in range(max(numbers) + 1)]
            for each in self.order:
                assigned[numbers[each]].append(each)
        self._place(assigned)
        self.rebuilt, self.order = True, []
        return True

    def prepare_for_backward(self, output: Any) -> None:
        """Expect a backward pass from the tensors in ``output``, the result of the forward pass."""
        self.expecting, self.marked_unused, self.next = True, False, 0
        self.ready.clear()
        self.reasons, self.outputs = {}, []
        for each in self.buckets:
            each.pending, each.result = len(each.indices), None
        self.left = self.counts[:]
        searching = self.find_unused and not self.static_graph
        if searching or self.iterations == 1:
            found = list(tensors_in(output))
            edges = [edge for _, each in found if (edge := gradient_edge_of(each)) is not None]
            reached = Plan([(edge, None) for edge in edges], None, True).awaited or {}
            unused = [index for index, each in enumerate(self.parameters) if each._grad_edge not in reached]
            if searching:
                self.unused = unused
                if not unused and self.iterations == 1:
                    warn(
                        "find_unused_parameters=True was specified in DDP constructor, but did not find any unused "
                        "parameters in the forward pass. This flag results in an extra traversal of the autograd graph every "
                        "iteration,  which can adversely affect performance. If your model indeed never has any unused "
                        "parameters in the forward pass, consider turning this flag off. Note that this warning may be a "
                        "false positive if your model has flow control causing later iterations to have unused parameters."
                    )
            elif unused:
                self.reasons = reasons(found, {index: self.parameters[index] for index in unused}, self.names)
        if not searching:
            self.outputs = [
                (path, weakref.ref(edge))
                for path, each in tensors_in(output)
                if (edge := gradient_edge_of(each)) is not None
            ]

    def _check_reducer_finalized(self) -> None:
        """Raise RuntimeError if the backward pass of the previous iteration has left gradients without a reduction."""
        if not self.unfinished:
            return
        if self.raised:
            self._complete_with_zeros()
            return
        text = "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates "
        if self.static_graph:
            text += (
                "that your training graph has changed in this iteration, e.g., one parameter is used in first iteration, but "
                "then got unused in the second iteration. this is not compatible with static_graph set to True."
            )
        else:
            text += "that your module has parameters that were not used in producing loss. "
            if self.find_unused:
                text += (
                    "Since `find_unused_parameters=True` is enabled, this likely  means that not all `forward` outputs "
                    "participate in computing loss. You can fix this by "
                )
            else:
                text += (
                    "You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` "
                    "to `torch.nn.parallel.DistributedDataParallel`, and by "
                )
            text += (
                "\nmaking sure all `forward` function outputs participate in calculating loss. \nIf you already have done the "
                "above, then the distributed data parallel module wasn't able to locate the output tensors in the return value "
                "of your module's `forward` function. Please include the loss function and the structure of the return value "
                "of `forward` of your module when reporting this issue (e.g. list, dict, iterable)."
            )
        missing = [index for index in range(len(self.parameters)) if index not in self.ready]
        rank = self.group.rank()
        text += f"\nParameters which did not receive grad for rank {rank}: {', '.join(self.names[each] for each in missing)}"
        text += f"\nParameter indices which did not receive grad for rank {rank}: {' '.join(map(str, missing))}"
        by_reason: dict[str, list[str]] = {}
        for each in missing:
            by_reason.setdefault(str(self.reasons.get(each, "")), []).append(self.names[each])
        for why, names in by_reason.items():
            text += f"\n  {', '.join(names)}: {why}" if why else ""
        raise RuntimeError(text)

    def _complete_with_zeros(self) -> None:
        """Complete the operations of a backward pass that raised; see Note [A backward pass that raises]."""
        warn(
            "The previous backward pass of DistributedDataParallel raised an exception. The gradients that it did not "
            "compute count as zero in the other ranks."
        )
        with no_grad():
            for bucket in self.buckets[self.next :]:
                for index, view in zip(bucket.indices, bucket.views, strict=False):
                    if index not in self.ready:
                        view.zero_()
                bucket.gradient = None if bucket.pending else bucket.gradient
                self._reduce(bucket)
            if self.order:  # other ranks rebuild their buckets next
                self.order += [index for index in range(len(self.parameters)) if index not in self.ready]
            if self.find_unused and not self.static_graph and self.used_sum is None:
                self._reduce_used()
            results, used = [bucket.result for bucket in self.buckets], self.used_sum
            self._reset()
            for result in results:
                if result is not None:
                    result()
        if used is not None:
            used[0].wait()

    # -- The backward pass ---------------------------------------------------------------------------------------------

    def on_gradient(self, index: int) -> None:
        """Reduce the gradient of the parameter ``index``, which has been accumulated; called by its hook."""
        first_of_static = self.static_graph and not self.delayed
        if (first_of_static or (self.find_unused and not self.static_graph)) and self.parameters[
            index
        ]._grad is not None:
            self.used[index] = 1  # also under no_sync: its gradient is reduced later
        if not self.expecting:
            return
        with no_grad():
            if first_of_static:
                self.counts[index] += 1
                return
            if not self.marked_unused:
                self.marked_unused = True
                for each in self.unused:
                    self._mark(each)
            if self.static_graph:
                if self.left[index] <= 0:
                    raise RuntimeError(
                        "Your training graph has changed in this iteration, e.g., one parameter is unused in first iteration, "
                        "but then got used in the second iteration. this is not compatible with static_graph set to True."
                    )
                self.left[index] -= 1
                if self.left[index]:
                    return
            if not self.rebuilt and (self.static_graph or not self.find_unused):
                self.order.append(index)
            self._mark(index)

    def _mark(self, index: int) -> None:
        """Copy the gradient of the parameter ``index`` to its bucket; start the reduction of complete buckets."""
        if index in self.ready:
            raise RuntimeError(
                "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of "
                "a module parameter outside the `forward` function. Please make sure model parameters are not shared across "
                "multiple concurrent forward-backward passes. or try to use _set_static_graph() as a workaround if this "
                "module graph does not change during training loop.2) Reused parameters in multiple reentrant backward "
                "passes. For example, if you use multiple `checkpoint` functions to wrap the same part of your model, it "
                "would result in the same set of parameters been used by different reentrant backward passes multiple "
                "times, and hence marking a variable ready multiple times. DDP does not support such use cases in default. "
                "You can try to use _set_static_graph() as a workaround if your module graph does not change over "
                f"iterations.\nParameter at index {index} with name {self.names[index]} has been marked as ready twice. This "
                "means that multiple autograd engine  hooks have fired for this particular parameter during this iteration."
                + " It is not found in the output of `forward`, nested lists, tuples, dictionaries or data classes."
                * (index in self.unused)
            )
        self.ready.add(index)
        if not self.unfinished:
            self.unfinished = self.raised = True
            queue_callback(self._end_pass, outermost=True)
        bucket, position = self.places[index]
        self._copy_in(bucket, position)
        bucket.pending -= 1
        while self.next < len(self.buckets) and not self.buckets[self.next].pending:
            self._reduce(self.buckets[self.next])
            self.next += 1
        if self.next == len(self.buckets) and len(self.ready) == len(self.parameters):
            if self.find_unused and not self.static_graph:
                self._reduce_used()
            queue_callback(self._finish)

    def _end_pass(self) -> None:
        """Note that the backward pass ended without an exception; find out why gradients are missing."""
        self.raised = False
        if self.next < len(self.buckets):
            missing = {i: each for i, each in enumerate(self.parameters) if i not in self.ready}
            alive = [(path, edge) for path, reference in self.outputs if (edge := reference()) is not None]
            dropped = len(alive) < len(self.outputs)
            known = self.reasons
            self.reasons = reasons([], missing, self.names, alive, dropped)
            self.reasons.update({index: why for index, why in known.items() if index in missing})
        self.outputs = []

    def _copy_in(self, bucket: Bucket, position: int) -> None:
        """Copy the gradient of a parameter, divided by the number of ranks, to its view of the ``bucket``."""
        parameter = bucket.parameters[position]
        held = parameter._grad
        if held.__class__ is numpy.ndarray and held.base is None and self.hook is None and not bucket.sparse:
            view = bucket.views[position]
            _copy_divided(view, held, self._divisor())
            if self.as_view:
                parameter._grad = view
            return
        grad = parameter.grad
        if bucket.sparse:
            if grad is not None and grad.layout is strided:
                raise RuntimeError("Expected variable to have sparse gradient.")
            if grad is not None and self.hook is None:
                grad = grad.detach() / self._divisor()
            bucket.gradient = grad
            return
        view = bucket.views[position]
        if grad is None:
            view.zero_()
        elif _same_memory(grad, view):
            if self.hook is None:
                view.div_(self._divisor())
        else:
            if grad.layout is not strided:
                raise RuntimeError(
                    f"the gradient of `{self.names[bucket.indices[position]]}` is sparse, and its module is no Embedding or "
                    "EmbeddingBag with sparse=True. Remedy: register a hook that returns grad.to_dense()"
                )
            if grad.requires_grad:
                warn(
                    "Using DistributedDataParallel with create_graph=True  is not well-supported. The higher-order gradient "
                    "will  not be synchronized across ranks, and backpropagation  through all_reduce operations will not occur."
                )
            if self.hook is None:
                _copy_divided(view, grad._array, self._divisor())
            else:
                view.copy_(grad)
            if self.as_view:
                parameter.grad = view

    def _divisor(self) -> int:
        """Return the number by which gradients are divided: the number of ranks, or of those that have not joined."""
        if not self.divisor:
            self.divisor = self.group.size()
            if self.joined is not None and not self.joined[1]:
                self.divisor = int(self.joined[0].result()[0].item())
        return self.divisor

    def _reduce(self, bucket: Bucket) -> None:
        """Start the reduction of a complete bucket."""
        if self.skip_unused and set(bucket.indices) <= set(self.unused):
            return
        if self.hook is not None:
            bucket.result = self.run_hook(self._grad_bucket(bucket))
        elif bucket.sparse:
            gradient, bucket.gradient = bucket.gradient, None
            bucket.result = lambda: sum_sparse(self.group, gradient)
        else:
            buffer = bucket.buffer
            work = all_reduce(buffer, group=self.group, async_op=True)  # type: ignore[arg-type]
            bucket.result = lambda: work.wait() and buffer  # type: ignore[union-attr]

    def _grad_bucket(self, bucket: Bucket) -> GradBucket:
        buffer: Any = bucket.gradient if bucket.sparse else bucket.buffer
        return GradBucket(self.buckets.index(bucket), len(self.buckets), buffer, bucket.parameters)

    def run_hook(self, bucket: GradBucket) -> Callable[[], Any]:
        """Start the reduction of ``bucket`` as the communication hook does; return a function that waits for the result."""
        if self.hook is None:
            work = all_reduce(bucket.buffer(), group=self.group, async_op=True)
            return lambda: work.wait() and bucket.buffer()  # type: ignore[union-attr]
        hook, state = self.hook
        future = hook(state, bucket)
        if not isinstance(future, Future):
            kind = f"{type(future).__module__}.{type(future).__qualname__}"
            raise RuntimeError(
                f"DDP communication hook's callback must return a torch.futures.Future object, but got {kind}"
            )

        def wait() -> Tensor:
            value = future.wait()
            return value[0] if isinstance(value, (list, tuple)) else value

        return wait

    def _reduce_used(self) -> None:
        """Start the sum of the numbers 1 of the parameters that are used in each rank, and 0 of the others."""
        total = tensor(self.used, dtype=int32, device=self.device)
        work = all_reduce(total, group=self.group, async_op=True)
        self.used_sum = work, total  # type: ignore[assignment]

    def _reset(self) -> None:
        """Expect no further gradients until the next forward pass."""
        self.expecting = self.unfinished = self.raised = False
        self.divisor, self.used_sum, self.joined = 0, None, None
        self.used = [0] * len(self.parameters)
        for each in self.buckets:
            each.result = None

    def _finish(self) -> None:
        """Wait for the reduction of all buckets, and copy the results to the gradients."""
        if self.static_graph and self.order:
            self.order += [each for each in self.unused if each not in self.order]
        results = [each.result for each in self.buckets]
        used_sum, futures = self.used_sum, self.futures
        self.futures = []
        self._reset()
        with no_grad():
            reduced = [result and result() for result in results]
            for each in futures:
                each.wait()
            used = self.used_by_static
            if used_sum is not None:
                used_sum[0].wait()
                used = used_sum[1].bool().tolist()
                if self.static_graph:
                    self.used_by_static = used
            for bucket, result in zip(self.buckets, reduced, strict=True):
                if result is not None:
                    self._copy_out(bucket, result, used)

    def _copy_out(self, bucket: Bucket, result: Tensor, used: list[bool] | None) -> None:
        """Copy the averages ``result`` to the gradients of the parameters that are ``used`` in any rank."""
        if bucket.sparse:
            bucket.parameters[0].grad = result
            return
        if not isinstance(result, Tensor):
            raise RuntimeError(f"expected a Tensor from the communication hook, but got {type(result).__name__}")
        own = result is bucket.buffer or (result.layout is strided and _same_memory(result, bucket.buffer))
        views = bucket.views if own else _views(result.reshape(-1), bucket.parameters)
        for index, parameter, view, out in zip(bucket.indices, bucket.parameters, bucket.views, views, strict=True):
            if used is not None and not used[index]:
                continue
            held = parameter._grad
            if self.as_view:
                if not own:
                    view.copy_(out)
                if held is not view and (held is None or not _same_memory(parameter.grad, view)):
                    parameter.grad = view
            elif held is None:
                parameter.grad = out.to(parameter.dtype, copy=True)
            elif held.__class__ is numpy.ndarray and held.dtype == out._array.dtype:
                arithmetic.copy_into(held, out._array)
            else:
                grad: Any = parameter.grad
                grad.detach().copy_(out)

    # -- Static graphs -------------------------------------------------------------------------------------------------

    def reduce_after_pass(self) -> None:
        """Reduce all gradients, at the end of the first backward pass of a static graph."""
        self.delayed = True
        self.unused = [index for index, count in enumerate(self.counts) if not count]
        self.unfinished = True
        with no_grad():
            for bucket in self.buckets:
                for position in range(len(bucket.indices)):
                    self._copy_in(bucket, position)
                self._reduce(bucket)
            self._reduce_used()
        self._finish()

    # -- Ranks that have joined ----------------------------------------------------------------------------------------

    def zero_buckets(self) -> list[GradBucket]:
        """Return buckets of zeros in the order of reduction, for a rank without further inputs."""
        with no_grad():
            found = [(bucket, bucket.buffer) for bucket in self.buckets]
            return [
                GradBucket(number, len(found), buffer.new_zeros(buffer.shape), bucket.parameters)
                for number, (bucket, buffer) in enumerate(found)
                if buffer is not None
            ]

    def shadow(self) -> None:
        """Take part in the reduction of one iteration of the other ranks, with zeros."""
        for result in [self.run_hook(each) for each in self.zero_buckets()]:
            result()
        for bucket in self.buckets:
            if bucket.sparse:
                sum_sparse(self.group, None)
        if self.find_unused and not self.static_graph:
            all_reduce(zeros(len(self.parameters), dtype=int32), group=self.group)
        if not self.rebuilt and not self.order:
            self.order = [index for bucket in self.buckets for index in bucket.indices]


def _run_hook(reference: Any, index: int, grads: Any, outputs: Any) -> None:
    """Call the method ``on_gradient`` of a Reducer that still exists."""
    reducer = reference()
    if reducer is not None:
        reducer.on_gradient(index)


def _same_memory(grad: Tensor | None, view: Tensor | None) -> bool:
    """Whether the two tensors have the same elements in memory."""
    if grad is view:
        return True
    if grad is None or view is None or grad.layout is not strided:
        return False
    return grad.data_ptr() == view.data_ptr() and grad.numel() == view.numel() > 0


__all__ = ["Bucket", "GradBucket", "Reducer", "assign_buckets", "sum_sparse"]
