"""Point-to-point messages, groups, a hand-written ring all-reduce, and training on parts of a data set.

ring.py WORLD_SIZE PORT
"""

import os
import sys
from math import ceil
from random import Random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def say(rank, *words):
    print("Rank", rank, *words, flush=True)


def blocking(rank, size):
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        dist.send(tensor=tensor, dst=1)
    elif rank == 1:
        dist.recv(tensor=tensor, src=0)
    say(rank, "has data", tensor[0])


def immediate(rank, size):
    tensor = torch.zeros(1)
    req = None
    if rank == 0:
        tensor += 1
        req = dist.isend(tensor=tensor, dst=1)
    elif rank == 1:
        req = dist.irecv(tensor=tensor, src=0)
    if req is not None:
        req.wait()
    say(rank, "has data", tensor[0])


def some(rank, size):
    group = dist.new_group([0, 1])
    tensor = torch.ones(1)
    if rank < 2:
        dist.all_reduce(tensor, op=dist.ReduceOp.SUM, group=group)
    say(rank, "has data", tensor[0])


def allreduce(send, recv):
    """All-reduce in a ring: each rank adds what comes from the left and passes it on to the right."""
    rank, size = dist.get_rank(), dist.get_world_size()
    send_buff, recv_buff, accum = send.clone(), send.clone(), send.clone()
    left, right = ((rank - 1) + size) % size, (rank + 1) % size
    for i in range(size - 1):
        if i % 2 == 0:
            send_req = dist.isend(send_buff, right)
            dist.recv(recv_buff, left)
            accum[:] += recv_buff[:]
        else:
            send_req = dist.isend(recv_buff, right)
            dist.recv(send_buff, left)
            accum[:] += send_buff[:]
        send_req.wait()
    recv[:] = accum[:]


def ring(rank, size):
    torch.manual_seed(rank)
    t, c = torch.rand(2, 2), torch.rand(2, 2)
    expected = t.clone()
    for _ in range(2):
        allreduce(t, c)
        t.set_(c)
    for _ in range(2):
        dist.all_reduce(expected)
    say(rank, [[round(each, 4) for each in row] for row in t.tolist()], torch.allclose(t, expected))


class Partition:
    def __init__(self, data, index):
        self.data, self.index = data, index

    def __len__(self):
        return len(self.index)

    def __getitem__(self, index):
        return self.data[self.index[index]]


class DataPartitioner:
    def __init__(self, data, sizes, seed=1234):
        self.data, self.partitions = data, []
        indexes = list(range(len(data)))
        Random(seed).shuffle(indexes)
        for fraction in sizes:
            length = int(fraction * len(data))
            self.partitions.append(indexes[:length])
            indexes = indexes[length:]

    def use(self, partition):
        return Partition(self.data, self.partitions[partition])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, kernel_size=5)
        self.conv2 = nn.Conv2d(4, 8, kernel_size=3)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(32, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.view(-1, 32)))
        x = F.dropout(x, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


def images(count):
    """Return ``count`` small images, each with a bright bar whose place is its label."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.randint(0, 10, (count,), generator=generator)
    pictures = 0.3 * torch.randn(count, 1, 16, 16, generator=generator)
    for picture, label in zip(pictures, labels):
        picture[0, label + 3] += 2.0
    return TensorDataset(pictures, labels)


def partition_dataset():
    data, size = images(256), dist.get_world_size()
    bsz = int(128 / float(size))
    partition = DataPartitioner(data, [1.0 / size] * size).use(dist.get_rank())
    generator = torch.Generator().manual_seed(7)
    return DataLoader(partition, batch_size=bsz, shuffle=True, generator=generator), bsz


def average_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= size


def train(rank, size):
    torch.manual_seed(1234)
    train_set, bsz = partition_dataset()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    num_batches = ceil(len(train_set.dataset) / float(bsz))
    for epoch in range(3):
        epoch_loss = 0.0
        for data, target in train_set:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            epoch_loss += loss.item()
            loss.backward()
            average_gradients(model)
            optimizer.step()
        say(dist.get_rank(), ", epoch ", epoch, ": ", f"{epoch_loss / num_batches:.5f}")


def run(rank, size):
    for part in (blocking, immediate, some, ring, train):
        part(rank, size)


def init_process(rank, size, port, fn, backend="gloo"):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = port
    dist.init_process_group(backend, rank=rank, world_size=size)
    fn(rank, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    world_size = int(sys.argv[1])
    processes = []
    if "google.colab" not in sys.modules:
        mp.set_start_method("spawn")
    for rank in range(world_size):
        p = mp.Process(target=init_process, args=(rank, world_size, sys.argv[2], run))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
    print([p.exitcode for p in processes])
