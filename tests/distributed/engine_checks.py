"""Checks of the engine on MPI, which several ranks run together: ``python -m tests.distributed.engine_checks NAME …``."""

from __future__ import annotations

import faulthandler
import io
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from datetime import timedelta
from typing import Any

import numpy
import pytest

import retrograd as torch
import retrograd.distributed as dist

faulthandler.dump_traceback_later(50, exit=True)
CHECKS: dict[str, Callable[[int, int], None]] = {}


def check(function: Callable[[int, int], None]) -> Callable[[int, int], None]:
    CHECKS[function.__name__] = function
    return function


def short(milliseconds: float) -> timedelta:
    return timedelta(milliseconds=milliseconds)


# -- Results -----------------------------------------------------------------------------------------------------------


@check
def layouts_that_gloo_mixes_up(rank: int, size: int) -> None:
    """Strided views are reduced and copied element by element; the elements between them stay."""
    for make in (lambda x: x[:, ::2], lambda x: x.t(), lambda x: x[1], lambda x: x[:, 1], lambda x: x[1:, 1:3]):
        whole = torch.arange(24.0).reshape(4, 6) + 100 * rank
        expected = make(torch.arange(24.0).reshape(4, 6)) * size + 100 * sum(range(size))
        part = make(whole)
        before = whole.sum() - part.sum()
        dist.all_reduce(part)
        assert part.tolist() == expected.tolist() and whole.sum() - part.sum() == before
        part = make(torch.arange(24.0).reshape(4, 6) + 100 * rank)
        dist.broadcast(part, size - 1)
        assert part.tolist() == (make(torch.arange(24.0).reshape(4, 6)) + 100 * (size - 1)).tolist()
        output = make(torch.zeros(4, 6))
        dist.scatter(output, [make(torch.full((4, 6), float(each))) for each in range(size)] if rank == 0 else None)
        assert (output == rank).all()


@check
def integers_that_gloo_refuses(rank: int, size: int) -> None:
    for dtype in (torch.int16, torch.uint16, torch.uint32, torch.uint64):
        x = torch.tensor([1 + rank, 5]).to(dtype)
        dist.all_reduce(x)
        assert x.tolist() == [sum(range(size + 1)), 5 * size] and x.dtype == dtype
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.complex32, torch.int16):
        x = torch.tensor([rank, 2.0]).to(dtype)
        received = [torch.zeros_like(x) for _ in range(size)]
        dist.all_gather(received, x)
        dist.broadcast(x, 1)
        assert [each.to(torch.complex64)[0].item() for each in received] == list(range(size))
        assert x.to(torch.complex64).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="Invalid scalar type"):
        dist.all_reduce(torch.zeros(2).to(torch.float8_e5m2))
    dist.barrier()  # the number of operations is the same in all ranks


@check
def half_precision_is_summed_in_float32(rank: int, size: int) -> None:
    x = torch.tensor([2048.0 if rank == 0 else 1.0], dtype=torch.float16)  # 2048 + 1 is 2048 in float16
    dist.all_reduce(x)
    assert x.item() == (torch.tensor(2048.0 + size - 1).to(torch.float16)).item()


@check
def sums_in_the_order_of_ranks(rank: int, size: int) -> None:
    generator = numpy.random.default_rng(0)
    parts = (generator.standard_normal((size, 10007)) * 10.0 ** generator.integers(-8, 8, (size, 1))).astype("float32")
    total = parts[0].copy()
    for each in parts[1:]:
        total += each
    torch.use_deterministic_algorithms(True)
    everywhere, at_root = torch.tensor(parts[rank]), torch.tensor(parts[rank])
    works = [dist.all_reduce(everywhere, async_op=True), dist.reduce(at_root, 1, async_op=True)]
    for each in works:
        assert each is not None and each.wait()
    scattered = torch.zeros(size)
    dist.reduce_scatter(scattered, [torch.tensor(parts[rank][each * size : (each + 1) * size]) for each in range(size)])
    torch.use_deterministic_algorithms(False)
    assert (everywhere.numpy() == total).all() and (rank != 1 or (at_root.numpy() == total).all())
    assert (at_root.numpy() == parts[rank]).all() or rank == 1
    assert (scattered.numpy() == total[rank * size : (rank + 1) * size]).all()
    x = torch.tensor(parts[rank])
    dist.all_reduce(x)
    same = [torch.zeros_like(x) for _ in range(size)]
    dist.all_gather(same, x)
    assert all((each == x).all() for each in same)  # the same bits in all ranks


@check
def extrema_are_alike_in_all_ranks(rank: int, size: int) -> None:
    """Of numbers that do not compare, NaN and zeros of both signs, that of the first rank is kept, as by gloo."""
    nan = float("nan")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        rows = [[nan, 1.0, -0.0, 3.0], [1.0, nan, 0.0, 4.0], [2.0, 0.5, 0.0, 5.0]][:size]
        for op, last in (("MIN", 3.0), ("MAX", 2.0 + size)):
            x = torch.tensor(rows[rank], dtype=dtype)
            dist.all_reduce(x, getattr(dist.ReduceOp, op))
            second = {"MIN": min, "MAX": max}[op](row[1] for row in rows if row[1] == row[1])
            assert str(x.tolist()) == str([nan, second, -0.0, last])
            x = torch.tensor(rows[rank], dtype=dtype)
            dist.reduce(x, size - 1, getattr(dist.ReduceOp, op))
            assert str(x.tolist()) == str([nan, second, -0.0, last] if rank == size - 1 else rows[rank])


@check
def versions_and_gradients(rank: int, size: int) -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    dist.all_reduce(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    leaf = torch.ones(3, requires_grad=True)
    dist.all_reduce(leaf)  # as in PyTorch
    assert leaf.tolist() == [size] * 3 and leaf.is_leaf and leaf._version == 1
    received = [torch.zeros(3) for _ in range(size)]
    dist.all_gather(received, leaf)
    assert [each._version for each in received] == [1] * size and not received[0].requires_grad
    with torch.inference_mode():
        inside = torch.ones(2)
        dist.all_reduce(inside)
    assert inside.tolist() == [size] * 2


@check
def sparse_tensors_are_summed(rank: int, size: int) -> None:
    x = torch.sparse_coo_tensor([[rank, size, rank]], [[1.0, 2.0], [3.0, 4.0], [1.0, 1.0]], (size + 1, 2))
    y = torch.sparse_coo_tensor(
        torch.zeros(1, rank).long(), torch.ones(rank, dtype=torch.float64), (2,)
    )  # 0, 1 … elements
    works = [dist.all_reduce(each, async_op=True) for each in (x, y)]
    for work in works:
        assert work is not None and work.wait()
    assert x.to_dense().tolist() == [[2.0, 3.0]] * size + [[3.0 * size, 4.0 * size]] and x.is_coalesced()
    assert y.to_dense().tolist() == [sum(range(size)), 0] and works[0].result()[0] is x
    with pytest.raises(RuntimeError, match="sparse tensors can only be summed"):
        dist.all_reduce(x, dist.ReduceOp.MAX)


@check
def views_are_their_own_buffers(rank: int, size: int) -> None:
    """Parts of one memory are gathered into and scattered from without a copy, also where input and output overlap."""
    whole = torch.zeros(size, 4)
    whole[rank] = rank + 1
    dist.all_gather(list(whole.unbind(0)), whole[rank])
    assert whole.tolist() == [[each + 1.0] * 4 for each in range(size)]
    dist.all_gather_single(whole.view(-1), whole[(rank + 1) % size])
    assert whole[:, 0].tolist() == [(each + 1) % size + 1 for each in range(size)]
    exchanged = torch.arange(float(size)) + 10 * rank
    dist.all_to_all_single(exchanged, exchanged)
    assert exchanged.tolist() == [10.0 * each + rank for each in range(size)]


@check
def large_tensors(rank: int, size: int) -> None:
    x = torch.full((3_000_001,), float(rank + 1))
    work = dist.all_reduce(x, async_op=True)
    y = torch.full((1_000_000,), rank, dtype=torch.uint8)
    dist.broadcast(y, 1)
    assert work is not None and work.wait() and (x == sum(range(size + 1))).all() and (y == 1).all()


# -- Asynchronous operations ---------------------------------------------------------------------------------------------


@check
def works_and_futures(rank: int, size: int) -> None:
    x, named = torch.ones(4), []
    work = dist.all_reduce(x, async_op=True)
    assert work is not None
    future = work.get_future()
    named.append(future.then(lambda done: threading.current_thread().name))
    assert work.wait() and future.wait()[0] is x and work.is_success() and work.exception() is None
    assert work.result()[0] is x and named[0].wait() in ("MainThread", "retrograd-distributed")
    if rank == 0:
        late = dist.barrier(async_op=True)
        assert late is not None and not late.is_completed()
        with pytest.raises(RuntimeError, match="Operation timed out! `barrier`"):
            late.wait(short(50))
        dist.send(torch.zeros(1), 1)
        assert late.wait()
    else:
        if rank == 1:
            dist.recv(torch.zeros(1), 0)
        dist.barrier()
    source = dist.irecv(x, (rank - 1) % size)
    sent = dist.isend(torch.full((4,), float(rank)), (rank + 1) % size)
    assert source is not None and sent is not None
    assert source.wait() and sent.wait() and source.source_rank() == (rank - 1) % size
    with pytest.raises(RuntimeError, match="sourceRank"):
        work.source_rank()


@check
def operations_run_while_nobody_waits(rank: int, size: int) -> None:
    """Buffers live as long as their operation, and it makes progress although this thread does not call MPI."""
    for _ in range(20):
        dist.all_reduce(torch.full((50_000,), 1.0), async_op=True)
    x = torch.ones(1 << 20)
    work = dist.all_reduce(x, async_op=True)
    assert work is not None
    end = time.monotonic() + 20
    while not work.get_future().done():
        time.sleep(0.001)
        assert time.monotonic() < end
    assert (x == size).all()


@check
def thousands_of_operations(rank: int, size: int) -> None:
    """Operations that are started at once, more than MPI gets at a time, are complete in order."""
    count = 3000
    time.sleep(0.2 * rank)
    tensors = [torch.tensor([float(each), rank]) for each in range(count)]
    works = [dist.all_reduce(each, async_op=True) for each in tensors]
    with (
        dist.group.WORLD._engine._posting
    ):  # the time of thousands of requests would grow with the square of their number
        assert sum(each.header is not None for each in dist.group.WORLD._engine._waiting) <= 64
    last = works[-1].get_future().wait()[0]
    assert last.tolist() == [size * (count - 1), sum(range(size))]
    for each in works:
        each.wait()
    assert [each[0].item() for each in tensors] == [size * each for each in range(count)]


@check
def errors_of_callbacks_are_printed(rank: int, size: int) -> None:
    """A callback that ends the program, or a future that the program completes, does not end the progress of others."""
    with redirect_stderr(io.StringIO()) as printed:
        works = []
        if rank == 0:
            works = [dist.irecv(torch.zeros(2), 1, tag=each) for each in range(2)]
            works[0].get_future().add_done_callback(lambda future: sys.exit(3))
            works[1].get_future().set_result(None)
        dist.barrier()
        if rank == 1:
            works = [dist.isend(torch.ones(2), 0, tag=each) for each in range(2)]
        while not all(each.is_completed() for each in works):
            time.sleep(0.001)
        for _ in range(3):
            value = dist.all_reduce(torch.ones(2), async_op=True).get_future().wait()
            assert value[0].tolist() == [size, size]
    text = printed.getvalue()
    assert rank != 0 or ("SystemExit: 3" in text and "Attempting to mark a completed Future as complete" in text)


@check
def too_many_groups(rank: int, size: int) -> None:
    """More groups than MPI can have are an error; after some are destroyed, others can be created."""
    groups: list[Any] = []
    with pytest.raises(
        dist.DistBackendError, match=r"new_group: MPI cannot create another group .* destroy_process_group"
    ):
        while len(groups) < 5000:
            groups.append(dist.new_group())
    for each in groups:
        dist.destroy_process_group(each)
    x = torch.ones(1)
    dist.all_reduce(x, group=dist.new_group())
    assert x.item() == size


@check
def threads_with_groups_of_their_own(rank: int, size: int) -> None:
    groups = [dist.new_group() for _ in range(3)]
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            for step in range(10):
                x = torch.full((100,), float(rank + step))
                dist.all_reduce(x, group=groups[index])
                assert x[7] == sum(range(size)) + size * step
                found = [None] * size
                dist.all_gather_object(found, (index, rank, step), group=groups[index])
                assert found == [(index, each, step) for each in range(size)]
        except BaseException as error:  # raised by the main thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(each,)) for each in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    for each in groups:
        dist.destroy_process_group(each)
    with pytest.raises(ValueError, match="is not registered"):
        dist.all_reduce(torch.ones(1), group=groups[0])


@check
def an_interrupt_leaves_the_program_responsive(rank: int, size: int) -> None:
    if rank == 0:
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            dist.all_reduce(torch.zeros(3))
        dist.send(torch.zeros(1), 1)
    else:
        if rank == 1:
            dist.recv(torch.zeros(1), 0)
        dist.all_reduce(torch.zeros(3))
    dist.barrier()


# -- Errors ------------------------------------------------------------------------------------------------------------


@check
def monitored_barrier_names_the_missing(rank: int, size: int) -> None:
    last = size - 1
    if rank == last:
        dist.recv(torch.zeros(1), 0)
        with pytest.raises(RuntimeError, match="successfully reached monitoredBarrier"):  # too late
            dist.monitored_barrier(timeout=short(100))
    else:
        words = (
            rf"\[Rank 0\]: Rank {last} failed to pass monitoredBarrier in 100 ms"
            if rank == 0
            else f"Rank {rank} successfully reached monitoredBarrier, but received errors"
        )
        with pytest.raises(RuntimeError, match=words):
            dist.monitored_barrier(timeout=short(100))
        if rank == 0:
            dist.send(torch.zeros(1), last)
    dist.monitored_barrier()


@check
def tags_are_not_negative(rank: int, size: int) -> None:
    for function in (dist.send, dist.recv, dist.isend, dist.irecv):
        with pytest.raises(RuntimeError, match="Tag must be nonnegative"):
            function(torch.ones(2), (rank + 1) % size, tag=-1)


@check
def messages_of_another_size(rank: int, size: int) -> None:
    for sent, words in ((2, "has sent 8 bytes, but the tensor has 12"), (4, "more bytes than the tensor has")):
        group = dist.new_group([0, 1])
        if rank == 0:
            dist.send(torch.zeros(sent), 1, group=group)
        elif rank == 1:
            with pytest.raises(RuntimeError, match=words):
                dist.recv(torch.zeros(3), 0, group=group)


@check
def different_operations_are_named(rank: int, size: int) -> None:
    def differ(call: Callable[[Any], object], *patterns: str) -> None:
        group = dist.new_group()
        with pytest.raises(RuntimeError, match="Detected mismatch between collectives on ranks") as caught:
            call(group)
        for each in patterns:
            assert each in str(caught.value), str(caught.value)
        with pytest.raises(RuntimeError, match="An earlier operation of this process group has failed"):
            dist.barrier(group)

    here = f"{__file__}:{sys._getframe().f_lineno + 5}"
    others = "are" if size > 2 else "is"
    x = torch.zeros(3)
    differ(lambda group: dist.all_reduce(torch.zeros(3 + (rank == 1)), group=group), "float32[4]", "float32[3]")
    differ(
        lambda group: dist.broadcast(x, 1, group=group) if rank == 1 else dist.all_reduce(x, group=group),
        f"rank 1 is in `broadcast`(float32[3], src=1) at {here}", f"{others} in `all_reduce`(float32[3], SUM) at {here}",
    )  # fmt: skip
    differ(lambda group: dist.all_reduce(x.double() if rank else x, group=group), "float64[3]", "float32[3]")
    differ(lambda group: dist.reduce(x, rank % 2, group=group), "dst=0", "dst=1")
    y = torch.full((3 + rank,), 1.0)
    differ(lambda group: dist.all_reduce(y, group=group), f"float32[{3 + rank}]")
    assert (y == 1).all()  # nothing was sent


@check
def a_missing_rank_is_a_timeout(rank: int, size: int) -> None:
    group = dist.new_group(timeout=short(300))
    if rank == 0:
        dist.recv(torch.zeros(1), 1)
    else:
        with pytest.raises(
            RuntimeError, match=r"Timed out waiting 300ms for `all_reduce`\(float32\[2\], SUM\) at "
        ) as caught:
            dist.all_reduce(torch.zeros(2), group=group)
        assert "rank 0 is in `recv`" in str(caught.value) and os.path.basename(__file__) in str(caught.value)
        if rank == 1:
            dist.send(torch.zeros(1), 0)
    dist.barrier()


@check
def a_long_wait_is_reported(rank: int, size: int) -> None:
    from retrograd.distributed import mpi_engine

    mpi_engine.PATIENCE, before = 0.3, mpi_engine.PATIENCE
    try:
        if rank == 0:
            dist.recv(torch.zeros(1), 1)
        if rank != 1:
            dist.barrier()
        else:
            printed = io.StringIO()
            with redirect_stderr(printed):
                work = dist.barrier(async_op=True)
                assert work is not None
                end = time.monotonic() + 10
                while not printed.getvalue() and time.monotonic() < end:
                    with pytest.raises(RuntimeError, match="timed out"):
                        work.wait(short(100))
            words = (
                re.escape(f"retrograd: `barrier`() at {__file__}:") + r"\d+ has waited for \d s: .*rank 0 is in `recv`"
            )
            assert re.match(words, printed.getvalue()), printed.getvalue()
            dist.send(torch.zeros(1), 0)
            assert work.wait()
    finally:
        mpi_engine.PATIENCE = before


@check
def a_dead_rank_fails_all_operations(rank: int, size: int) -> None:
    """The last check: rank 1 is killed within an operation."""
    dist.barrier()
    if rank == 1:
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
        dist.recv(torch.zeros(1), 0)
    begun = time.monotonic()
    works = [dist.all_reduce(torch.zeros(3), async_op=True) for _ in range(3)]
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"rank 1 .*is gone"):
            dist.all_reduce(torch.zeros(3))
    for each in works:
        assert each is not None
        with pytest.raises(RuntimeError, match=r"rank 1 .*is gone"):
            each.get_future().wait()
    assert time.monotonic() - begun < 10


def main(names: list[str]) -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank, size = dist.get_rank(), dist.get_world_size()
    for name in names or CHECKS:
        CHECKS[name](rank, size)
        print(f"{name} {rank}", flush=True)
    if not names or names[-1] != "a_dead_rank_fails_all_operations":
        dist.destroy_process_group()
    else:
        os._exit(0)


if __name__ == "__main__":  # by hand, with the variables of env://
    main(sys.argv[1:])
