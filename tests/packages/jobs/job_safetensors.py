"""Tensors and modules in files."""

import tempfile
from pathlib import Path

import torch
from report import show
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "tensors.safetensors"
    save_file(
        {"a": torch.randn(3, 4), "b": torch.arange(5), "c": torch.randn(2).to(torch.bfloat16)}, path, {"from": "here"}
    )
    for name, value in sorted(load_file(path).items()):
        show(name, value.float())
    with safe_open(path, "pt") as opened:
        print(opened.metadata(), sorted(opened.keys()))
        show("slice", opened.get_slice("a")[1:, :2])
    model, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    save_model(model, str(path))
    print(load_model(other, path))
    show("weight", other.weight - model.weight)
