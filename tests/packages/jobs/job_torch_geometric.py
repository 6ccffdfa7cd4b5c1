"""Convolutions of graphs, batches and pooling."""

import torch
from report import show
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool
from torch_geometric.utils import degree, to_undirected

torch.manual_seed(0)
edges = to_undirected(torch.randint(0, 10, (2, 20)))
data = Data(x=torch.randn(10, 4), edge_index=edges)
print(data)
show("degree", degree(edges[0], 10))
conv = GCNConv(4, 3)
conv(data.x, edges).square().sum().backward()
show("gradient", conv.lin.weight.grad)
show("attention", GATConv(4, 2, heads=2)(data.x, edges)), show("sage", SAGEConv(4, 2)(data.x, edges))
batch = Batch.from_data_list([data, data.clone()])
show("pooled", global_mean_pool(batch.x, batch.batch))
