"""Data loaders with workers, collate functions, weighted sampling and splits."""

import random

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)


class Sentences(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.items = [(rng.integers(1, 20, size=rng.integers(2, 7)), i % 2) for i in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        a, b = self.items[i]
        return torch.as_tensor(a), b


def collate(batch):
    xs, ys = zip(*batch)
    lens = torch.tensor([len(x) for x in xs])
    return pad_sequence(xs, batch_first=True, padding_value=0), lens, torch.tensor(ys)


def seed_worker(worker_id):
    s = torch.initial_seed() % 2**32
    np.random.seed(s)
    random.seed(s)


class Stream(IterableDataset):
    def __iter__(self):
        w = get_worker_info()
        start, step = (0, 1) if w is None else (w.id, w.num_workers)
        return iter(range(start, 10, step))


if __name__ == "__main__":
    g = torch.Generator()
    g.manual_seed(0)
    ds = Sentences(20)
    for xs, lens, ys in DataLoader(
        ds, batch_size=4, shuffle=True, collate_fn=collate, num_workers=2, worker_init_fn=seed_worker, generator=g
    ):
        print(xs.shape, lens.tolist(), ys.tolist())
    print([b.tolist() for b in DataLoader(Stream(), batch_size=2, num_workers=2)])
    tr, va = random_split(range(10), [0.7, 0.3], generator=torch.Generator().manual_seed(42))
    print(list(tr), list(va), len(tr))
    torch.manual_seed(0)
    w = WeightedRandomSampler([0.1, 0.9, 0.4, 0.7, 3.0, 0.6], 6, replacement=True)
    print(list(w))
    print(list(BatchSampler(SequentialSampler(range(7)), 3, False)))
    print(next(iter(DataLoader([{"a": np.float32(1), "b": [1, 2]}, {"a": np.float32(2), "b": [3, 4]}], batch_size=2))))
    print(len(ConcatDataset([tr, va])), Subset(range(5), [1, 3])[1])
    x, l, y = next(iter(DataLoader(ds, 3, collate_fn=collate, pin_memory=False, persistent_workers=False)))
    print(x, l, y)
    torch.manual_seed(1)
    print([t.tolist() for t in DataLoader(torch.arange(6), 2, shuffle=True)])
