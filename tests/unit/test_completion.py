"""Names that ``dir`` and completion show, and the source that ``inspect.getsource`` shows."""

import inspect
import pickle
import subprocess
import sys

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.compat.module_names import ModuleName
from retrograd.stubs import names as public

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


def raising(value: object) -> list[str]:
    """Return the names that ``dir`` lists and that cannot be read."""
    found = []
    for name in dir(value):
        try:
            getattr(value, name)
        except Exception:
            found.append(name)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", sorted(public.modules()))
def test_public_modules_and_classes_list_nothing_that_raises(module: str) -> None:
    assert raising(public.modules()[module]) == []
    for name, value in public.contents(module).items():
        if isinstance(value, type) and public.home(value) == (module, name):
            # Python's `type` itself lists this name, which only abstract classes have.
            assert set(raising(value)) <= ({"__abstractmethods__"} if issubclass(value, type) else set()), name


def test_instances_list_nothing_that_raises() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    layers = [nn.Linear(3, 4), nn.LSTM(3, 4), nn.BatchNorm1d(3), nn.MultiheadAttention(4, 2), nn.Sequential(nn.ReLU())]
    optimizer = torch.optim.Adam(layers[0].parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    data = torch.utils.data.TensorDataset(x.detach())
    others = [
        nn.Parameter(x),
        nn.Buffer(x),
        x.shape,
        x.dtype,
        x.device,
        torch.Generator(),
        x.max(0),
        x.untyped_storage(),
    ]
    normal = torch.distributions.Normal(0.0, 1.0)
    for value in [
        *layers,
        optimizer,
        schedule,
        data,
        torch.utils.data.DataLoader(data),
        *others,
        normal,
        torch.no_grad(),
    ]:
        assert raising(value) == [], type(value)


@pytest.mark.filterwarnings("ignore")
def test_tensors_list_nothing_that_raises() -> None:
    x, mask = torch.eye(2), torch.tensor([[True, False], [True, True]])
    rows = [torch.ones(2), torch.ones(3)]
    for value in (
        *(torch.tensor(1.0), x[0], x[0] * 1j, x, x * 1j, x.to("meta"), torch.stack([x, x])),
        *(x.to_sparse(), x.to_sparse_csr(), torch.masked.masked_tensor(x, mask)),
        *(torch.nested.nested_tensor(rows), torch.nested.nested_tensor(rows, layout=torch.jagged)),
    ):
        assert raising(value) == [], value
        assert {"dtype", "grad", "sum"} <= set(dir(value)), value
    assert "imag" in dir(x * 1j) and "imag" not in dir(x)
    assert {"H", "mT"} <= set(dir(x)) and not {"H", "mT"} & set(dir(x[0]))


def test_names_left_out_are_not_listed_and_say_why() -> None:
    for value in (torch.Tensor, nn.Parameter, torch.ones(2)):
        assert "dequantize" not in dir(value) and "tanh" in dir(value)
        with pytest.raises(AttributeError, match="left out of retrograd on purpose"):
            value.dequantize
    named = type("Named", (torch.Tensor,), {"names": ("N",)})
    assert "names" in dir(named) and "names" in dir(torch.ones(2).as_subclass(named))


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
