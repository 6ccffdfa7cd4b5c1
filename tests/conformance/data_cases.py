"""Data sets, samplers and loaders as expressions; their results, errors and warnings are recorded."""

from __future__ import annotations

import random
import re
import warnings
from collections import namedtuple
from typing import Any

import numpy as np

CALLS = (
    "list(d.DataLoader(range(10),3))",
    "list(d.DataLoader(range(10),3,shuffle=True))",
    "list(d.DataLoader(range(10),3,shuffle=True,drop_last=True))",
    "list(d.DataLoader(range(10),3,shuffle=True,generator=torch.Generator().manual_seed(3)))",
    "[list(l) for l in [d.DataLoader(range(5),2,shuffle=True)] for _ in range(2)]",
    "[torch.rand(2), list(d.DataLoader(range(5),2)), torch.rand(2)]",
    "list(d.DataLoader(range(10),None))",
    "list(d.DataLoader(d.TensorDataset(T,T*2),4))",
    "list(d.DataLoader(d.TensorDataset(T,T*2),None))",
    "list(d.DataLoader(Items(),4))",
    "list(d.DataLoader(It(7),3))",
    "list(d.DataLoader(It(7),3,drop_last=True))",
    "list(d.DataLoader(It(7),None))",
    "list(d.DataLoader(It(7),3,num_workers=2))",
    "list(d.DataLoader(Split(9),2,num_workers=2))",
    "list(d.DataLoader(Split(9),None,num_workers=2))",
    "list(d.DataLoader(Rnd(),3))",
    "list(d.DataLoader(Rnd(),3,num_workers=2,shuffle=True))",
    "list(d.DataLoader(Rnd(),3,num_workers=1,generator=torch.Generator().manual_seed(1)))",
    "[list(l) for l in [d.DataLoader(Rnd(),3,num_workers=2,persistent_workers=True,shuffle=True)] for _ in range(2)]",
    "[list(l) for l in [d.DataLoader(Split(5),2,num_workers=2,persistent_workers=True)] for _ in range(2)]",
    "list(d.DataLoader(Bad(),3))",
    "len(d.DataLoader(range(10),3))",
    "len(d.DataLoader(range(10),3,drop_last=True))",
    "len(d.DataLoader(It(3)))",
    "len(d.DataLoader(ItL(9),2))",
    "[(len(l),list(l)) for l in [d.DataLoader(ItL(9),2)]]",
    "[(len(l),list(l)) for l in [d.DataLoader(ItL(9),None)]]",
    "d.DataLoader(range(3),0)",
    "d.DataLoader(range(3),-1)",
    "d.DataLoader(range(3),2.)",
    "d.DataLoader(range(3),num_workers=-1)",
    "d.DataLoader(range(3),timeout=-1)",
    "d.DataLoader(range(3),prefetch_factor=2)",
    "d.DataLoader(range(3),persistent_workers=True)",
    "d.DataLoader(It(3),shuffle=True)",
    "d.DataLoader(It(3),shuffle=False) and 1",
    "d.DataLoader(It(3),sampler=[1])",
    "d.DataLoader(It(3),batch_sampler=[[1]])",
    "d.DataLoader(range(3),sampler=[1],shuffle=True)",
    "d.DataLoader(range(3),batch_sampler=[[1]],shuffle=True)",
    "d.DataLoader(range(3),batch_size=None,drop_last=True)",
    "d.DataLoader(range(3),multiprocessing_context='fork')",
    "d.DataLoader(range(3),multiprocessing_context='x',num_workers=1)",
    "d.DataLoader(range(3),multiprocessing_context=3,num_workers=1)",
    "setattr(d.DataLoader(range(3)),'batch_size',2)",
    "list(d.DataLoader(range(5),sampler=[3,1,2],batch_size=2))",
    "list(d.DataLoader(range(5),batch_sampler=[[3,1],[2]]))",
    "list(d.DataLoader([],2))",
    "list(d.DataLoader([],2,shuffle=True))",
    "list(d.DataLoader(range(3),collate_fn=lambda b:b,batch_size=2))",
    "list(d.DataLoader(range(3),pin_memory=True))",
    "list(d.DataLoader(range(3),timeout=1))",
    "list(d.RandomSampler(range(6)))",
    "list(d.RandomSampler(range(6),True))",
    "list(d.RandomSampler(range(6),True,70))",
    "list(d.RandomSampler(range(6),num_samples=15))",
    "d.RandomSampler([])",
    "d.RandomSampler([1],1)",
    "d.RandomSampler([1],num_samples=0)",
    "list(d.RandomSampler(range(6),generator=torch.Generator().manual_seed(2)))",
    "list(d.SubsetRandomSampler([5,6,7,8]))",
    "list(d.WeightedRandomSampler([.1,.9,.4,.7,3.,.6],5,replacement=True))",
    "list(d.WeightedRandomSampler([.9,.4,.05,.2,.3,.1],5,replacement=False))",
    "d.WeightedRandomSampler([[1.]],2)",
    "d.WeightedRandomSampler([1.],0)",
    "d.WeightedRandomSampler([1.],2,1)",
    "list(d.BatchSampler(d.SequentialSampler(range(10)),3,False))",
    "list(d.BatchSampler(d.SequentialSampler(range(10)),3,True))",
    "d.BatchSampler([1],0,False)",
    "d.BatchSampler([1],2,3)",
    "len(d.BatchSampler(range(10),3,False))",
    "[list(x) for x in d.random_split(range(10),[3,7])]",
    "[list(x) for x in d.random_split(range(10),[.3,.3,.4])]",
    "[x.indices for x in d.random_split(range(10),[3,7],generator=torch.Generator().manual_seed(42))]",
    "d.random_split(range(10),[3,6])",
    "d.random_split(range(10),[1.5,-.5])",
    "[len(x) for x in d.random_split(range(3),[.1,.9])]",
    "d.TensorDataset(T,T[:3])",
    "d.TensorDataset(T,T*2)[2]",
    "d.TensorDataset(T,T*2)[2:4]",
    "d.TensorDataset(T)[-1]",
    "len(d.TensorDataset(T))",
    "d.StackDataset(range(3),'abc')[1]",
    "d.StackDataset(x=range(3),y='abc')[1]",
    "d.StackDataset(x=range(3),y='abc').__getitems__([0,2])",
    "d.StackDataset(range(3),y='abc')",
    "d.StackDataset()",
    "d.StackDataset(range(3),'ab')",
    "(lambda c:[c[0],c[3],c[-1],len(c),c.cumulative_sizes,c[-5]])(d.ConcatDataset([range(3),'ab']))",
    "(d.ConcatDataset([range(3),'ab']))[-6]",
    "d.ConcatDataset([])",
    "d.ConcatDataset([It(3)])",
    "d.ConcatDataset([range(3)]).cummulative_sizes",
    "list(d.ChainDataset([It(2),It(3)]))",
    "list(It(2)+It(1))",
    "list(d.ChainDataset([range(2)]))",
    "(d.TensorDataset(T)+d.TensorDataset(T))[12]",
    "d.Subset(T,[3,4])[1]",
    "d.Subset(T,[3,4,5])[[0,2]]",
    "d.Subset(T,[3,4,5]).__getitems__([0,2])",
    "type('S',(d.Subset,),dict(__getitem__=lambda s,i:3))(T,[1])",
    "d.Dataset()[0]",
    "iter(d.Sampler())",
    "d.default_collate([1,2])",
    "d.default_collate([1.5,2])",
    "d.default_collate(['a','b'])",
    "d.default_collate([{'a':1,'b':[1,2]},{'a':3,'b':[4,5]}])",
    "d.default_collate([P(1,2.),P(3,4.)])",
    "d.default_collate([(1,'x'),(2,'y')])",
    "d.default_collate([[1,2],[3]])",
    "d.default_collate([np.ones(2),np.zeros(2)])",
    "d.default_collate([np.float32(1),np.float32(2)])",
    "d.default_collate([np.array('a')])",
    "d.default_collate([None])",
    "d.default_collate([True,False])",
    "d.default_collate([np.array([1,2],dtype=np.int32)]*2)",
    "d.default_collate([object()])",
    "d.default_collate([T[:2],T[2:4]])",
    "d.default_collate([T[:2],T[2:5]])",
    "d.default_convert({'a':np.ones(2),'b':[np.float64(2),'x',(1,np.int32(3))]})",
    "d.default_convert(P(np.ones(1),2))",
    "d.default_convert(np.array(['a']))",
    "d.default_convert(3)",
    "d.get_worker_info()",
    "list(d.DataLoader(range(4),2,worker_init_fn=lambda i:torch.manual_seed(i),num_workers=2))",
    "d.DataLoader[int]",
)
Pair = namedtuple("Pair", "a b")


def names(torch: Any) -> dict[str, Any]:
    """Return the namespace of the expressions; ``d`` is ``torch.utils.data``."""
    d = torch.utils.data

    class It(d.IterableDataset):
        def __init__(self, count: int) -> None:
            self.count = count

        def __iter__(self) -> Any:
            return iter(range(self.count))

        def __repr__(self) -> str:
            return "It"

    class ItL(It):
        """Iterable data set whose length is too small."""

        def __len__(self) -> int:
            return self.count - 2

    class Split(It):
        """Iterable data set of which each worker yields its share."""

        def __iter__(self) -> Any:
            info = d.get_worker_info()
            return iter(range(self.count)) if info is None else iter(range(info.id, self.count, info.num_workers))

    class Rnd(d.Dataset):
        """Data set of random numbers from every generator."""

        def __len__(self) -> int:
            return 8

        def __getitem__(self, index: int) -> Any:
            return index, torch.rand(()), random.random(), np.random.rand()

    class Bad(d.Dataset):
        def __len__(self) -> int:
            return 8

        def __getitem__(self, index: int) -> int:
            if index == 5:
                raise ValueError("bad five")
            return index

    class Items(d.Dataset):
        """Data set with ``__getitems__``."""

        def __len__(self) -> int:
            return 6

        def __getitems__(self, indices: Any) -> Any:
            return [index * 10 for index in indices]

    return {
        "d": d, "torch": torch, "np": np, "T": torch.arange(10), "It": It, "ItL": ItL, "Split": Split, "Rnd": Rnd,
        "Bad": Bad, "Items": Items, "P": Pair,
    }  # fmt: skip


def shown(torch: Any, value: Any) -> str:
    """Return a result as text, with the dtypes of tensors."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{value.tolist()}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {shown(torch, each)}' for key, each in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}[{', '.join(shown(torch, each) for each in value)}]"
    return re.sub(r"\b(torch|retrograd)\.|0x\w+", "", repr(value))


def answer(torch: Any, call: str) -> str:
    """Return the result or error of a call and its warnings, after seeding."""
    torch.manual_seed(5)
    random.seed(1)
    np.random.seed(1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            said = shown(torch, eval(call, names(torch)))
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    told = {
        str(each.message)
        for each in caught
        if "fork" not in str(each.message) and "processes in total" not in str(each.message)
    }
    return re.sub(r"\b(torch|retrograd)\.", "", "\n".join([said, *sorted(told)]))
