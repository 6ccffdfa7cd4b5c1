"""Names that ``dir`` and completion show, and the source that ``inspect.getsource`` shows."""

import inspect
import pickle
import subprocess
import sys

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.compat.module_names import ModuleName

NODE = ["metadata", "name", "next_functions", "register_hook", "register_prehook", "requires_grad"]


def names(value: object) -> list[str]:
    return [name for name in dir(value) if name[:2] != "__"]


def test_node_lists_the_names_of_pytorch() -> None:
    x = torch.ones(2, requires_grad=True)
    node = (x * x).grad_fn
    saved = ["_raw_saved_other", "_raw_saved_self", "_saved_other", "_saved_self"]
    assert names(node) == [*saved, "_sequence_nr", *NODE]
    leaf = node.next_functions[0][0]
    assert names(leaf) == ["_sequence_nr", *NODE, "variable"]
    node.mine = 1
    assert "mine" in dir(node)


def test_node_of_a_function_lists_what_the_program_has_set() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 2
            return ctx.factor * x

        @staticmethod
        def backward(ctx, grad):
            return ctx.factor * grad

    listed = names(Twice.apply(torch.ones(2, requires_grad=True)).grad_fn)
    assert {"factor", "save_for_backward", "saved_tensors", *NODE} <= set(listed)
    assert not {"edges", "vjp", "operands_at", "number"} & set(listed)


def test_tensor_lists_nothing_that_raises_attribute_errors() -> None:
    x = torch.ones(2, 2, dtype=torch.complex64, requires_grad=True)
    for value in (x, x.detach(), (x * x).grad_fn):
        for name in dir(value):
            getattr(value, name)


@pytest.mark.parametrize(
    "cls",
    [
        torch.Tensor, torch.Size, torch.dtype, torch.device, torch.Generator, torch.no_grad, nn.Module, nn.Parameter, nn.Linear,
        nn.Conv2d, nn.ReLU, nn.LSTM, nn.MultiheadAttention, nn.Sequential, torch.optim.Adam, torch.optim.Muon,
        torch.optim.lr_scheduler.StepLR, torch.distributions.Normal, torch.autograd.Function, torch.utils.data.DataLoader,
    ],
)  # fmt: skip
def test_source_of_a_class_is_found(cls: type) -> None:
    source = inspect.getsource(cls)
    assert f"class {cls.__name__}" in source and '"""' in source


def test_module_name_is_the_text_of_pytorch() -> None:
    name = nn.Linear.__module__
    assert (str(name), repr(nn.Linear)) == ("torch.nn.modules.linear", "<class 'torch.nn.modules.linear.Linear'>")
    assert name == "torch.nn.modules.linear" and name == "retrograd.nn.modules.linear" and name != "torch.nn"
    assert sys.modules[name].Linear is nn.Linear
    assert "torch.nn.modules.linear" not in sys.modules
    assert pickle.loads(pickle.dumps(torch.Tensor)) is torch.Tensor
    assert isinstance(name, ModuleName) and type(pickle.loads(pickle.dumps(name))) is str


def test_completion_loads_nothing_of_the_stubs() -> None:
    program = "import sys, retrograd; retrograd.ones(2).tanh(); sys.exit('retrograd.stubs' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
