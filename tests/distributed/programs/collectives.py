"""Print what each operation of torch.distributed gives: dtypes, layouts, asynchronous calls, groups, gradients, errors."""

import warnings

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as functional
from torch.distributed.device_mesh import init_device_mesh

warnings.simplefilter("ignore")
LINES = []


def text(value):
    if isinstance(value, torch.Tensor):
        return str(value.tolist())
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text, value)) + "]"
    return str(value)


def show(name, function, *args):
    try:
        result = text(function(*args))
    except (RuntimeError, ValueError, TypeError, IndexError, KeyError) as error:
        words = str(error).splitlines()[0].partition("Check failed: ")
        result = f"{type(error).__name__}: {(words[2] or words[0]).partition(' (at ')[0]}"
    LINES.append(f"{name}, rank {dist.get_rank()}: {result}")


def like(values, dtype):
    return torch.tensor(values).to(getattr(torch, dtype))


# -- Reductions and copies


def reductions(rank, size, op, dtype):
    op = getattr(dist.ReduceOp, op)
    everywhere, at_root = like([rank + 1, 3 - rank, 0, 5], dtype), like([rank + 1, 3, 0], dtype)
    scattered, single = like([0, 0], dtype), like([0, 0], dtype)
    dist.all_reduce(everywhere, op)
    dist.reduce(at_root, size - 1, op)
    dist.reduce_scatter(scattered, [like([each + rank, 1], dtype) for each in range(size)], op)
    dist.reduce_scatter_tensor(single, like([each + rank for each in range(2 * size)], dtype), op)
    return everywhere, at_root if rank == size - 1 else "", scattered, single


def copies(rank, size, dtype):
    sent = like([rank, 1, 2], dtype)
    received = [torch.zeros_like(sent) for _ in range(size)]
    joined, exchanged = torch.zeros_like(torch.cat(received)), torch.zeros_like(torch.cat(received))
    others = [torch.zeros_like(sent) for _ in range(size)]
    spread = like([rank, 7], dtype)
    dist.all_gather(received, sent)
    dist.all_gather_into_tensor(joined, sent)
    dist.all_to_all(others, [like([rank, each, 1], dtype) for each in range(size)])
    dist.all_to_all_single(exchanged, joined + sent[0])
    dist.broadcast(spread, size - 1)
    return received, joined, others, exchanged, spread


def roots(rank, size, root):
    gathered = [torch.zeros(2) for _ in range(size)] if rank == root else None
    scattered = torch.zeros(2)
    dist.gather(torch.tensor([1.0, rank]), gathered, root)
    dist.scatter(scattered, [torch.tensor([10.0 * rank, each]) for each in range(size)] if rank == root else None, root)
    return gathered, scattered


def layouts(rank, size):
    transposed = (torch.arange(6.0) + 10 * rank).reshape(3, 2).t()
    everywhere, received = transposed.clone(), [torch.zeros(3, 4)[:2, ::2][:, :2] for _ in range(size)]
    number, empty = torch.tensor(1.5 + rank), torch.zeros(0, 3)
    dist.all_reduce(everywhere)
    dist.all_gather(received, torch.arange(8.0).reshape(4, 2).t()[:, ::2] + rank)
    dist.all_reduce(number)
    dist.all_reduce(empty)
    dist.broadcast(empty, 0)
    return everywhere, received, number, empty


def uneven(rank, size):
    output = torch.zeros(size * (size + 1) // 2)
    dist.all_to_all_single(
        output,
        torch.arange(float(size * (rank + 1))) + 100 * rank,
        [each + 1 for each in range(size)],
        [rank + 1] * size,
    )
    return output


# -- Between two ranks


def messages(rank, size):
    if rank:
        work = dist.isend(torch.tensor([1.0, rank]), 0)
        dist.send(torch.tensor([2.0, rank]), 0, tag=5)
        work.wait()
        dist.barrier()
        return ""
    late = [torch.zeros(2) for _ in range(1, size)]
    for each in range(1, size):
        dist.recv(late[each - 1], each, tag=5)
    found = [torch.zeros(2) for _ in range(1, size)]
    senders = [dist.recv(each) for each in found]
    dist.barrier()  # before a message of a later operation can come
    return late, sorted(senders), sorted(each.tolist() for each in found)


def ring(rank, size):
    first, second = torch.zeros(1), torch.zeros(1)
    works = [dist.irecv(first, (rank - 1) % size), dist.isend(torch.tensor([1.0 * rank]), (rank + 1) % size)]
    for each in works:
        each.wait()
    sent = torch.tensor([2.0 * rank])
    operations = [
        dist.P2POp(dist.isend, sent, (rank + 1) % size),
        dist.P2POp(dist.irecv, second, (rank - 1) % size),
    ]
    for each in dist.batch_isend_irecv(operations):
        each.wait()
    return first, second, operations


# -- Asynchronous operations and objects


def works(rank, size):
    tensors = [torch.full((3,), 1.0 * rank + each) for each in range(4)]
    started = [dist.all_reduce(each, async_op=True) for each in tensors]
    twice = [each.get_future().then(lambda done: 2 * done.value()[0]) for each in started]
    for each in started:
        each.wait()
    gathered = [torch.zeros(1) for _ in range(size)]
    work = dist.all_gather(gathered, torch.tensor([1.0 * rank]), async_op=True)
    work.wait()
    dist.barrier(async_op=True).wait()
    return [each.wait() for each in twice], [each.is_completed() for each in started], work.result(), gathered


def objects(rank, size):
    everywhere, at_root, sent, received = [None] * size, [None] * size if rank == 1 else None, [rank, "a"], [None]
    dist.all_gather_object(everywhere, {"rank": rank, "text": "x" * rank})
    dist.gather_object(("rank", rank), at_root, 1)
    dist.broadcast_object_list(sent, size - 1)
    dist.scatter_object_list(received, [[each, rank] for each in range(size)] if rank == 1 else None, 1)
    return everywhere, at_root, sent, received


# -- Groups


def groups(rank, size):
    pair, none = dist.new_group([size - 1, 0]), dist.GroupMember.NON_GROUP_MEMBER
    turned = dist.new_group([size - 1, 0], sort_ranks=False)
    mine, all_of_them = dist.new_subgroups(2)
    total, sent = torch.tensor([1.0 * rank]), torch.tensor([1.0 * rank])
    dist.all_reduce(total, group=mine)
    facts = [
        dist.get_process_group_ranks(mine),
        dist.get_rank(mine),
        len(all_of_them),
        total,
        dist.get_world_size(pair),
    ]
    if pair is not none:
        dist.broadcast(sent, size - 1, group=turned)
        facts += [sent, dist.get_rank(pair), dist.get_rank(turned), dist.get_group_rank(turned, 0), pair.size()]
        facts += [dist.get_process_group_ranks(turned), dist.get_global_rank(pair, 1)]
    return facts


def meshes(rank, size):
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("data", "model"))
    totals = [torch.tensor([1.0 * rank]) for _ in range(2)]
    for total, name in zip(totals, ("data", "model"), strict=True):
        dist.all_reduce(total, group=mesh.get_group(name))
    return (
        mesh,
        mesh["data"],
        mesh["model"],
        mesh.get_coordinate(),
        totals,
        mesh.get_local_rank("data"),
        mesh["data"].mesh,
    )


# -- Gradients


def gradients(rank, size):
    weights, found = torch.arange(1.0, 5.0), []

    def collect(inputs, outputs):
        sum((each * weights * (rank + 1) * (1 + index)).sum() for index, each in enumerate(outputs)).backward()
        found.append([[each.detach() for each in outputs], [each.grad for each in inputs]])

    def leaves(count):
        return [(weights * (rank + 1) * (1 + each)).clone().requires_grad_() for each in range(count)]

    x = leaves(1)
    collect(x, [functional.all_reduce(x[0])])
    x = leaves(1)
    collect(x, [functional.broadcast(x[0], 1)])
    x = leaves(1)
    collect(x, functional.all_gather(x[0]))
    x = leaves(1)
    collect(x, functional.gather(x[0], 0))
    x = leaves(size)
    collect(x, [functional.scatter(x, 0)])
    x = leaves(size)
    collect(x, [functional.reduce_scatter(torch.zeros(4), x)])
    x = leaves(size)
    collect(x, functional.all_to_all([torch.zeros(4) for _ in range(size)], x))
    x = leaves(1)
    collect(x, [functional.all_to_all_single(torch.zeros(4), x[0])])
    x = leaves(1)
    functional.reduce(x[0], 1).sum().backward()
    return found, x[0].grad


# -- Errors that all ranks get, before anything is sent


def errors(rank, size):
    two = torch.zeros(2)
    return {
        "all_gather list": lambda: dist.all_gather([two], two),
        "all_gather shapes": lambda: dist.all_gather([torch.zeros(3)] * size, two),
        "all_gather dtypes": lambda: dist.all_gather([two.double()] * size, two),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(torch.zeros(size, 2), two),
        "all_reduce AVG": lambda: dist.all_reduce(torch.ones(2, dtype=torch.int64), dist.ReduceOp.AVG),
        "all_reduce BOR": lambda: dist.all_reduce(two, dist.ReduceOp.BOR),
        "all_reduce complex": lambda: dist.all_reduce(two.to(torch.complex64), dist.ReduceOp.MAX),
        "all_to_all_single": lambda: dist.all_to_all_single(two, two, [1] * size, [2] * size),
        "broadcast": lambda: dist.broadcast(two),
        "new_group": lambda: dist.new_group([0, 9]),
        "new_subgroups": lambda: dist.new_subgroups(3),
        "reduce_scatter": lambda: dist.reduce_scatter(two, [torch.zeros(3)] * size),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(two, torch.zeros(2 * size + 2)),
        "send": lambda: dist.send(torch.zeros(2, 2).t()[:1], (rank + 1) % size),
        "a leaf": lambda: dist.all_gather([two.clone().requires_grad_() for _ in range(size)], two)[0],
    }


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    for op in ("SUM", "PRODUCT", "MIN", "MAX", "AVG"):
        for dtype in (
            "float32",
            "float64",
            "float16",
            "bfloat16",
            "complex64",
            "uint8",
            "int8",
            "int32",
            "int64",
            "bool",
        ):
            if (op == "AVG" and dtype in ("uint8", "int8", "int32", "int64", "bool")) or (op, dtype[:3]) in (
                ("PRODUCT", "com"), ("MIN", "com"), ("MAX", "com"),
            ):  # fmt: skip
                continue
            show(f"{op} of {dtype}", reductions, rank, size, op, dtype)
    for op in ("BAND", "BOR", "BXOR"):
        show(f"{op} of int32", reductions, rank, size, op, "int32")
    for dtype in ("float32", "float16", "bfloat16", "bool", "int64", "complex64"):
        show(f"copies of {dtype}", copies, rank, size, dtype)
    for root in range(size):
        show(f"gather and scatter, root {root}", roots, rank, size, root)
    for function in (layouts, uneven, messages, ring, works, objects, groups, meshes, gradients):
        show(function.__name__, function, rank, size)
    for name, function in errors(rank, size).items():
        show(name, function)
    dist.monitored_barrier()
    for each in range(size):
        if rank == each:
            print("\n".join(LINES), flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
