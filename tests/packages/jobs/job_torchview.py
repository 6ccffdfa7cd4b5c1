"""The graph of a module's calls as text."""

import torch
from torchview import draw_graph

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
graph = draw_graph(model, input_size=(2, 3), graph_name="model")
print(len(graph.edge_list), graph.num_tensors if hasattr(graph, "num_tensors") else "")
print("\n".join(sorted(each.name for pair in graph.edge_list for each in pair)))
