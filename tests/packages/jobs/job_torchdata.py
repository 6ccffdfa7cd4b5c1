"""A loader whose state is saved in the middle of a pass, and a pipeline of nodes."""

import torch
import torchdata.nodes as nodes
from report import show
from torchdata.stateful_dataloader import StatefulDataLoader

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.arange(10))
loader = StatefulDataLoader(data, batch_size=3, shuffle=True)
passes = iter(loader)
show("first", next(passes)[0].float())
state = loader.state_dict()
again = StatefulDataLoader(data, batch_size=3, shuffle=True)
again.load_state_dict(state)
show("rest", torch.cat([each[0] for each in again]).float())
node = nodes.Batcher(nodes.Mapper(nodes.IterableWrapper(range(7)), lambda x: x + 1), batch_size=4, drop_last=False)
show("nodes", torch.tensor([sum(each) for each in nodes.Loader(node)]).float())
