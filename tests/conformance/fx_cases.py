"""Programs to trace with ``torch.fx``, and sessions that change graphs.

Each entry of ``PROGRAMS`` defines ``root``, and may define ``inputs`` and ``concrete`` (the argument ``concrete_args``).
The answer has the text of the graph, the code, and the sums of results and gradients of the traced program. Entries of
``SESSIONS`` call ``show``; the answer is the list of the texts that they show, or the error. ``LAYERS`` are modules of
``torch.nn`` that are traced through, without leaf modules.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import warnings
from types import ModuleType
from typing import Any

PROGRAMS = {
    "perceptron": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(4))
        self.hidden, self.out = nn.Linear(4, 6), nn.Linear(6, 2, bias=False)
    def forward(self, x):
        return self.out(self.hidden(x * self.scale).tanh()).clamp(max=0.5)
root, inputs = Net(), [torch.rand(3, 4)]
""",
    "sequential": """
root = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(72, 2))
inputs = [torch.rand(2, 1, 8, 8)]
""",
    "residual": """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x
        out = F.relu(self.bn(self.conv(x)), inplace=True)
        out += identity
        return F.max_pool2d(out, 2)
root = nn.Sequential(Block(), Block())
inputs = [torch.rand(1, 2, 8, 8)]
""",
    "shared module called twice": """
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.again = self.lin
    def forward(self, x):
        return self.again(self.lin(x)) @ self.lin.weight
root, inputs = Twice(), [torch.rand(2, 3)]
""",
    "buffers and constants": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([1.0, 2.0]))
        self.offset = torch.tensor([3.0, 4.0])
    def forward(self, x):
        return (x * self.scale + self.offset) * torch.tensor([1.0, 10.0]) - torch.tensor([0.5, 0.5]) + self.offset
root, inputs = Net(), [torch.rand(3, 2)]
""",
    "operators": """
def root(x, y):
    a = x + 1 - y * 2 / 3 // 4 % 5 ** x
    b = -a + (+a) - abs(y) + 1.5 * x - 2 + 3 / y + 2 ** x + 7 // y + 5 % y
    c = (x < y) & (x <= y) | (x > y) ^ (x >= y)
    d = ~c | (x == y) | (x != y)
    return torch.where(d, b, x @ y), x[0], y[1:, None], x[..., ::2], y[[0, 1]], x[d]
inputs = [torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[2.0, 3.0], [1.0, 4.0]])]
""",
    "integer operators": """
def root(x, y):
    return x << 1, y >> 1, 2 << x, 64 >> y, x & 3, 3 | y, x ^ y, ~x
inputs = [torch.tensor([1, 2]), torch.tensor([3, 4])]
""",
    "in-place operators": """
def root(x, y):
    x = x * 1
    x += y
    x *= 2
    x -= 1
    x /= 4
    return x
inputs = [torch.ones(2), torch.ones(2)]
""",
    "functions": """
def root(x, y, w):
    a = torch.relu(x) + F.relu(y) + F.gelu(x) + torch.sigmoid(y) + F.sigmoid(x) + F.tanh(y) + F.silu(x) + F.softplus(y)
    b = torch.cat([a, x], dim=1), torch.stack((x, y)), torch.einsum("ij,kj->ik", x, y), torch.einsum("ij,kj->ik", [x, y]), torch.norm(x), torch.max(x, dim=1)[0]
    c = F.linear(x, w), torch.matmul(x, w.t()), torch.linalg.norm(x), torch.fft.fft(x).real, torch.special.erf(y)
    d = F.softmax(x, dim=1), F.dropout(x, 0.5, training=False), F.layer_norm(x, (3,)), torch.split(x, 2), x.chunk(3, dim=1)
    return b, c, d, F.mse_loss(x, y), F.pad(x, (1, 1)), torch.unbind(x), torch.zeros_like(x), F.normalize(x)
inputs = [torch.rand(2, 3), torch.rand(2, 3), torch.rand(4, 3)]
""",
    "attributes and methods": """
def root(x, n=2):
    size = x.size()
    b, c = x.shape
    x = x.view(x.size(0), -1).reshape(b * c).view(size[0], size[1]).t().contiguous()
    return x.T.to(torch.float64).sum(dim=(0, 1), keepdim=True), x.device, x.dtype, x.ndim, x.view(x.shape[0], -1) * n
inputs = [torch.rand(2, 3)]
""",
    "containers": """
def root(x, y=None, *args, flag=True, **options):
    first, (second, third) = x[0], (x[1], x[2])
    return {"a": [first, second], "b": (third,), "c": {"d": options["k"]}, "e": [], "f": (), "g": None, "h": ..., "i": slice(first, 2)}
""",
    "named results": """
import collections
Pair = collections.namedtuple("Pair", ["left", "right"])
def root(x):
    values, indices = torch.topk(x, 2)
    return Pair(values, indices), torch.sort(x).values
inputs = [torch.tensor([3.0, 1.0, 2.0])]
""",
    "keyword-only parameters": """
def root(x, *, y, z=3):
    return x + y * z
""",
    "annotations": """
import typing
def root(x: torch.Tensor, y: typing.Optional[torch.Tensor] = None, z: typing.List[int] = [1], u: "list[int]" = (),
         v: dict[str, torch.Tensor] = None, w: int | float = 1, s: typing.Tuple[()] = ()) -> typing.Tuple[torch.Tensor, int]:
    return x, w
""",
    "names": """
def root(input, self_, len, x_1, x, for_, torch_, inf):
    y = torch.add(input, x_1)
    z = torch.add(y, x)
    add = torch.add(z, 1)
    return torch.add(add, inf), getattr(x, "some attribute"), x.sum(), x.sum(), input.max().min(), len.type(torch.int64)
""",
    "constants": """
import math
import enum
class Color(enum.Enum):
    RED = 1
def root(x):
    return x.to(torch.device("cpu")), x.to(dtype=torch.float16), x * float("inf"), x - math.nan, x.new(Color.RED), x.f(1j, 1e-8, -3, "q'")
""",
    "mathematics": """
import math
def root(x):
    return math.sqrt(x) + math.floor(x) + math.sqrt(4.0)
inputs = [torch.tensor(2.5)]
""",
    "wrapped functions": """
def outer(x, y=1):
    if x.sum() > 0:
        return x
    return -x
torch.fx.wrap("outer")
torch.fx.wrap("len")
@torch.fx.wrap
def decorated(x):
    return x + 1
def root(x):
    return outer(x) + outer(x, y=len(x)) * decorated(x) + outer(torch.ones(2), 3)
inputs = [torch.rand(2)]
""",
    "random numbers and creation": """
def root(x):
    return x + torch.zeros(2, 3) + torch.ones_like(x) + torch.arange(3) + torch.full((2, 1), 5.0) + torch.rand_like(x) * 0
inputs = [torch.rand(2, 3)]
""",
    "no operations": "def root(x):\n    return x\ninputs = [torch.ones(1)]\n",
    "no result": "def root(x):\n    x.sin()\n    return None\n",
    "concrete flag": """
def root(x, flag, other=2, nothing=None):
    if nothing is None and flag:
        return x * other
    return x
concrete, inputs = {"flag": True, "nothing": None}, [torch.ones(2), True]
""",
    "concrete containers": """
def root(x, data, y: torch.Tensor = 3):
    total = x
    for value in data.values():
        total = total + value
    return {"total": total, "list": [y, x]}
concrete = {"data": {"a": torch.fx.PH, "b": torch.fx.PH, "c": 3}}
inputs = [torch.ones(2), {"a": torch.ones(2), "b": torch.ones(2), "c": 3}, 4]
""",
    "concrete list": """
def root(tensors):
    return [2 * each for each in tensors]
concrete, inputs = {"tensors": [torch.fx.PH, torch.fx.PH]}, [[torch.ones(2), torch.ones(3)]]
""",
    "concrete tuple": "def root(x, n):\n    return [x * i for i in range(n)]\nconcrete, inputs = (torch.fx.PH, 2), [torch.ones(2), 2]\n",
    "recurrent": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.head = nn.Embedding(10, 4), nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 2)
    def forward(self, tokens, state: torch.Tensor = None):
        out, (h, c) = self.lstm(self.embed(tokens))
        return self.head(out[:, -1]), h, c
root, inputs = Net(), [torch.tensor([[1, 2, 3]])]
""",
    "module list and dictionary": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])
        self.heads = nn.ModuleDict({"a-b": nn.Linear(2, 1), "c": nn.Linear(2, 1)})
        self.params = nn.ParameterList([nn.Parameter(torch.ones(2)) for _ in range(2)])
    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x)) * self.params[0]
        return {name: head(x) for name, head in self.heads.items()}
root, inputs = Net(), [torch.rand(3, 2)]
""",
    "attention": """
def root(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True), (q @ k.transpose(-2, -1) / q.size(-1) ** 0.5).softmax(-1) @ v
inputs = [torch.rand(1, 2, 3, 4), torch.rand(1, 2, 3, 4), torch.rand(1, 2, 3, 4)]
""",
    "lambda": "root = lambda x: x.sin() + 1\ninputs = [torch.ones(2)]\n",
    "dataclass": """
import dataclasses
@dataclasses.dataclass
class Output:
    logits: object
    loss: object = None
def root(x):
    return Output(x * 2).logits + 1
inputs = [torch.ones(2)]
""",
    "proxyable class": """
class Pair(metaclass=torch.fx.ProxyableClassMeta):
    def __init__(self, left, right):
        self.left, self.right = left, right
    def add(self, other):
        return Pair(self.left + other.left, self.right + other.right)
def root(x: Pair, y: torch.Tensor):
    return x.add(Pair(y, y)).left
inputs = [Pair(torch.ones(1), torch.ones(1)), torch.ones(1)]
""",
}

#: Programs that cannot be traced.
REFUSED = [
    "lambda x: x if x else 1", "lambda x: [y for y in x]", "lambda x: len(x)", "lambda x: x.f(*x)", "lambda x: {**x}",
    "lambda x: int(x)", "lambda x: range(x)", "lambda x: x and 1", "lambda x: not x", "lambda x: x in [1]", "lambda x: max(x, 1)",
    "lambda x: bool(x.sum() > 0)", "lambda x: x.f(print)", "lambda x: x.f({x: 1})", "lambda x: x.f(object)", "lambda x: float(x)",
    "lambda x: torch.tensor(x)", "lambda x: torch.tensor([x, 1])", "lambda x: x + nn.Parameter(torch.ones(1))", "lambda x: nn.Linear(2, 2)(x)", "3", "print",
    "lambda x: math.sqrt(x) if math.sqrt(x) else 0", "lambda x: dict(x)", "lambda x: list(x)", "lambda x: sorted(x)",
]  # fmt: skip

SESSIONS = {
    "replace an operation": """
traced = torch.fx.symbolic_trace(lambda x, y: (x + y) * 2 + torch.add(x, 1))
for node in traced.graph.nodes:
    if node.op == "call_function" and node.target is operator.add:
        with traced.graph.inserting_after(node):
            new = traced.graph.call_function(torch.bitwise_and, node.args, node.kwargs)
            node.replace_all_uses_with(new)
        traced.graph.erase_node(node)
traced.graph.lint()
traced.recompile()
show(traced.code)
show(traced.graph)
""",
    "a graph by hand": """
graph = torch.fx.Graph()
x = graph.placeholder("x", torch.Tensor)
y = graph.placeholder("y", default_value=2)
weight = graph.get_attr("weight")
with graph.inserting_before(weight):
    first = graph.call_method("sin", (x,))
with graph.inserting_after(x):
    second = graph.call_function(torch.cos, (x,))
linear = graph.call_module("sub.linear", (first,))
graph.inserting_before(linear)
third = graph.create_node("call_function", operator.mul, (second, y), name="product")
graph.inserting_after()
graph.output({"a": [linear, third], "b": (weight,)}, type_expr=dict)
show(graph)
show(len(graph.nodes), [node.name for node in reversed(graph.nodes)])
show(x.users, linear.all_input_nodes, x.next, x.prev.op, graph.output_node(), x < y, sorted([y, weight, x]))
show(graph.find_nodes(op="placeholder"), graph.find_nodes(op="call_function", target=torch.cos), graph.find_nodes(op="output", target="output"))
module = torch.fx.GraphModule({"weight": torch.ones(2), "sub.linear": nn.Linear(2, 2, bias=False)}, graph)
show(module.code)
show(module)
show([name for name, _ in module.named_buffers()], [name for name, _ in module.named_modules()])
with graph.inserting_before():
    graph.placeholder("first")
show(list(graph.nodes))
""",
    "arguments of nodes": """
graph = torch.fx.Graph()
x, y, z = (graph.placeholder(name) for name in "xyz")
call = graph.call_function(torch.cat, ([x, y],), {"dim": 1, "options": {"a": z}})
show(call.args, call.kwargs, type(call.args[0]).__name__, type(call.kwargs).__name__, call.all_input_nodes, x.users, z.users)
call.update_arg(0, [x, x])
show(call.args, y.users)
call.insert_arg(1, z)
call.update_kwarg("dim", y)
show(call.args, call.kwargs, y.users, call.all_input_nodes)
call.replace_input_with(x, y)
show(call.args, x.users)
call.args = (slice(x, None, y), (1, [z]))
call.kwargs = {}
show(call.args, call.kwargs, call.format_node())
show(torch.fx.node.map_arg((x, [y, {"a": z, "b": 3}]), lambda n: n.name))
show(torch.fx.node.map_aggregate((1, [2, {"a": slice(3, 4)}]), lambda n: n and n + 1))
call.meta["a"], call.stack_trace = 3, "trace"
show(call.meta, call.type, call.op, call.target is torch.cat, repr(call), str(call), [call])
x.append(z)
show(list(graph.nodes))
z.prepend(y)
show(list(graph.nodes))
call.replace_all_uses_with(x)
graph.erase_node(call)
show(list(graph.nodes), z.users)
x._rename("y")
z._rename("z")
show(list(graph.nodes))
""",
    "mutation of arguments": """
node = torch.fx.symbolic_trace(lambda x: torch.cat([x, x], dim=0)).graph.find_nodes(op="call_function", target=torch.cat)[0]
node.args[0].append(1)
""",
    "mutation of keyword arguments": """
node = torch.fx.symbolic_trace(lambda x: torch.cat([x, x], dim=0)).graph.find_nodes(op="call_function", target=torch.cat)[0]
node.kwargs["dim"] = 1
""",
    "immutable collections": """
from_list, from_dict = torch.fx.immutable_collections.immutable_list([1, 2]), torch.fx.immutable_collections.immutable_dict(a=1)
show(from_list, from_dict, hash(from_list) == hash((1, 2)), from_list == [1, 2], from_list + [3], pickle.loads(pickle.dumps([from_list, from_dict])))
show(torch.utils._pytree.tree_map(lambda x: 2 * x, [from_list, from_dict]))
from_list[0] = 3
""",
    "erase a node in use": """
graph = torch.fx.symbolic_trace(lambda x: x + 1).graph
graph.erase_node(graph.find_nodes(op="call_function", target=operator.add)[0])
""",
    "erase twice": """
graph = torch.fx.Graph()
x = graph.placeholder("x")
graph.erase_node(x)
graph.erase_node(x)
show(list(graph.nodes))
torch.fx.Graph().erase_node(x)
""",
    "bad nodes": """
graph = torch.fx.Graph()
for op, target, args in [("call_function", "name", ()), ("call_method", 3, ()), ("call_nothing", "name", ()), ("call_method", "x", [])]:
    try:
        graph.create_node(op, target, args)
    except Exception as error:
        show(type(error).__name__, str(error).replace("<built", "built"))
""",
    "lint: order": """
graph = torch.fx.Graph()
x = graph.placeholder("x")
first = graph.call_function(torch.sin, (x,))
second = graph.call_function(torch.cos, (first,))
graph.output(second)
graph.lint()
first.args = (second,)
graph.lint()
""",
    "lint: another graph": """
graph, other = torch.fx.Graph(), torch.fx.Graph()
graph.output(other.placeholder("x"))
graph.lint()
""",
    "lint: missing attribute": """
traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
traced.delete_submodule("0")
traced.graph.lint()
""",
    "lint: repeated name": """
graph = torch.fx.Graph()
x, y = graph.placeholder("x"), graph.placeholder("y")
y.name = "x"
graph.lint()
""",
    "dead code": """
def f(x, unused):
    a = x.sin()
    b = torch.exp(x) + 1
    torch._assert(x, "text")
    c = torch.rand_like(x)
    torch.fx.wrap
    return a
traced = torch.fx.symbolic_trace(f)
show(traced.graph.eliminate_dead_code(), traced.graph, traced.graph.eliminate_dead_code())
show(traced.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output")), traced.graph)
""",
    "copy a graph": """
first = torch.fx.symbolic_trace(lambda x, y: (x.sin() + y, y))
first.graph.find_nodes(op="call_function", target=operator.add)[0].meta["k"] = [1]
new = torch.fx.Graph()
values = {}
result = new.graph_copy(first.graph, values)
show(result, new, len(values), [node.meta for node in new.nodes])
second = copy.deepcopy(first.graph)
show(second, second.owning_module, [node.meta for node in second.nodes])
inputs = {node: new.placeholder("q") for node in first.graph.nodes if node.op == "placeholder"}
show(new.graph_copy(first.graph, inputs), new)
""",
    "copy a module": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.register_buffer("b", torch.ones(2))
    def forward(self, x):
        return self.lin(x) * self.b
traced = torch.fx.symbolic_trace(Net())
traced.extra, traced.meta["m"] = 3, 4
traced.eval()
for made in (copy.copy(traced), copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
    show(made.code, made.graph, type(made).__name__, [n for n, _ in made.state_dict().items()], made.training, hasattr(made, "extra"))
    show(made.meta, made.lin is traced.lin, isinstance(made, torch.fx.GraphModule), torch.equal(made(torch.ones(1, 2)), traced(torch.ones(1, 2))))
""",
    "classes": """
traced = torch.fx.symbolic_trace(nn.Sequential(nn.ReLU()))
show(type(traced).__name__, [each.__name__ for each in type(traced).__mro__[1:3]], repr(traced), type(traced).__module__)
class Own(torch.fx.GraphModule):
    def extra(self):
        return 5
own = Own(traced, traced.graph, "Named")
show(own.extra(), type(own).__name__, isinstance(own, Own), own)
again = copy.deepcopy(own)
show(again.extra(), type(again).__name__, [each.__name__ for each in type(again).__mro__[:3]])
""",
    "submodules": """
traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Tanh())))
show(traced.add_submodule("a.b.c", nn.Tanh()), traced.add_submodule("1.2", nn.Linear(1, 1)), [n for n, _ in traced.named_modules()])
show(traced.delete_submodule("a.b"), traced.delete_submodule("a.b"), traced.delete_submodule("0.weight"), [n for n, _ in traced.named_modules()])
traced.delete_all_unused_submodules()
show([n for n, _ in traced.named_modules()])
traced.value = 3
show(traced.add_submodule("value.x", nn.Tanh()), traced.delete_submodule("value"))
""",
    "attributes that a module lacks": """
traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    traced.graph.get_attr("nothing")
    traced.graph.get_attr("no.thing")
    traced.graph.get_attr("0.weight")
show([str(each.message) for each in caught])
try:
    traced.graph.call_module("nothing")
except AttributeError as error:
    show("nothing" in str(error))
torch.fx.GraphModule({}, traced.graph)
""",
    "bad roots": """
graph = torch.fx.Graph()
graph.output(None)
for root in (3, None):
    try:
        torch.fx.GraphModule(root, graph)
    except RuntimeError as error:
        show(error)
torch.fx.GraphModule({}, 3)
""",
    "interpreter": """
class Swap(torch.fx.Interpreter):
    def run_node(self, n):
        result = super().run_node(n)
        show(n.name, n.op, tuple(result.shape) if isinstance(result, torch.Tensor) else result)
        return result
    def call_function(self, target, args, kwargs):
        return super().call_function(torch.cos if target is torch.sin else target, args, kwargs)
    def call_method(self, target, args, kwargs):
        return args[0] * 2 if target == "neg" else super().call_method(target, args, kwargs)
traced = torch.fx.symbolic_trace(lambda x, y=3.0: torch.sin(x).neg() + y)
show(Swap(traced).run(torch.zeros(2)))
running = torch.fx.Interpreter(traced, garbage_collect_values=False)
show(running.run(torch.zeros(2), 1.0), [node.name for node in running.env])
args = [torch.zeros(2), 2.0]
show(torch.fx.Interpreter(traced).boxed_run(args), args)
show(torch.fx.Interpreter(traced).run(torch.zeros(2), initial_env={next(iter(traced.graph.nodes)): torch.ones(1)}))
for call in (lambda: torch.fx.Interpreter(traced).run(), lambda: torch.fx.Interpreter(traced).boxed_run([1])):
    try:
        call()
    except RuntimeError as error:
        show(str(error).split("Original")[0])
""",
    "interpreter of nested arguments": """
def f(x, data):
    return {"a": x + data["k"][0], "b": data["k"][1]}
traced = torch.fx.symbolic_trace(f, {"data": {"k": [torch.fx.PH, torch.fx.PH]}})
show(torch.fx.Interpreter(traced).run(torch.ones(1), {"k": [torch.ones(1), 5]}))
""",
    "interpreter: an error": """
traced = torch.fx.symbolic_trace(lambda x: x.reshape(5) + 1)
try:
    torch.fx.Interpreter(traced).run(torch.zeros(2))
except RuntimeError as error:
    show("While executing %reshape : [num_users=1] = call_method[target=reshape](args = (%x, 5), kwargs = {})" in str(error))
""",
    "transformer": """
class Other(torch.fx.Transformer):
    def call_function(self, target, args, kwargs):
        return torch.erf(*args, **kwargs) if target is torch.tanh else super().call_function(target, args, kwargs)
    def call_method(self, target, args, kwargs):
        return args[0] * args[0] if target == "abs" else super().call_method(target, args, kwargs)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.p, self.lin = nn.Parameter(torch.ones(2)), nn.Linear(2, 2)
    def forward(self, x, y=1):
        return torch.tanh(self.lin(x) - self.p).abs() / y
traced = torch.fx.symbolic_trace(Net())
new = Other(traced).transform()
show(new.code, new.graph, new.lin is traced.lin)
show(torch.fx.Transformer(traced).transform().code == traced.code)
""",
    "shapes": """
net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net
    def forward(self, x):
        out = self.net(x)
        return out, out.max(1), x.shape[0], x.transpose(0, 1)
traced = torch.fx.symbolic_trace(Both())
from_propagation = shape_prop.ShapeProp(traced)
from_propagation.propagate(torch.zeros(2, 1, 4, 4))
for node in traced.graph.nodes:
    show(node.name, node.meta["type"].__name__, node.meta.get("tensor_meta"))
show(traced.print_readable(print_output=False))
show(traced.graph.python_code("self", verbose=True, include_stride=True, include_device=True, colored=True).src)
show(traced.print_readable(print_output=False, expanded_def=True, additional_meta=["type"]))
""",
    "shapes: an error": """
traced = torch.fx.symbolic_trace(lambda x: x.reshape(5) + 1)
with contextlib.redirect_stderr(io.StringIO()):
    try:
        shape_prop.ShapeProp(traced).propagate(torch.zeros(2))
    except RuntimeError as error:
        show(str(error).partition("Use tlparse")[0].strip())
""",
    "readable submodules": """
inner = torch.fx.symbolic_trace(nn.Sequential(nn.ReLU()))
outer = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
outer.add_submodule("inner", inner)
show(outer.print_readable(print_output=False))
outer.print_readable()
""",
    "replace a pattern": """
def program(x, low, high):
    left, right = torch.mul(low, x).exp(), torch.mul(x, high).exp()
    return left - right / torch.exp(x)
traced = torch.fx.symbolic_trace(program)
found = torch.fx.replace_pattern(traced, lambda u, v: torch.mul(u, v).exp(), lambda u, v: torch.pow(v, u))
show(len(found), [each.anchor for each in found], [each.nodes_map for each in found], traced.code)
""",
    "replace several results": """
def program(x, y):
    a = torch.relu(x) + 1
    b = torch.tanh(a) * a
    return b + y, a
traced = torch.fx.symbolic_trace(program)
def pattern(x):
    a = torch.relu(x) + 1
    return torch.tanh(a) * a, a
def replacement(x):
    return torch.sin(x), torch.cos(x)
show(len(torch.fx.replace_pattern(traced, pattern, replacement)), traced.code)
""",
    "patterns that do not match": """
def program(x, y):
    a = torch.relu(x)
    return torch.sigmoid(a) + a, F.relu(y, inplace=True), torch.clamp(y, 0, 1)
for pattern in (lambda x: torch.sigmoid(torch.relu(x)), lambda x: F.relu(x), lambda x: torch.clamp(x, 0, 2), lambda x: torch.relu(x), lambda x, y: torch.clamp(x, y, 1)):
    traced = torch.fx.symbolic_trace(program)
    found = torch.fx.replace_pattern(traced, pattern, (lambda x, y: x) if pattern.__code__.co_argcount > 1 else lambda x: torch.cos(x))
    show(len(found), traced.code)
""",
    "overlapping patterns": """
traced = torch.fx.symbolic_trace(lambda x: torch.neg(torch.neg(torch.neg(torch.neg(torch.neg(x))))))
show(len(torch.fx.replace_pattern(traced, lambda x: torch.neg(torch.neg(x)), lambda x: torch.abs(x))), traced.code)
""",
    "patterns of modules": """
class Net(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.lin = linear
    def forward(self, x):
        return self.lin(x).relu()
class New(nn.Module):
    def __init__(self):
        super().__init__()
        self.other = nn.Tanh()
    def forward(self, x):
        return self.other(x)
traced = torch.fx.symbolic_trace(Net(nn.Linear(2, 2)))
show(len(torch.fx.replace_pattern(traced, torch.fx.symbolic_trace(Net(nn.Linear(2, 2))), torch.fx.symbolic_trace(New()))), traced.code, [n for n, _ in traced.named_modules()])
""",
    "filters of patterns": """
rewriter = torch.fx.subgraph_rewriter
traced = torch.fx.symbolic_trace(lambda x: torch.clamp(torch.clamp(x, 0, 2), 0, 3) + 1)
only = [lambda match, graph, pattern: match.anchors[0].name == "clamp" and match.returning_nodes[0].args[2] == 3]
found = rewriter.replace_pattern_with_filters(traced, lambda x: torch.clamp(x, 0, 1), lambda x: torch.relu(x), only, ignore_literals=True)
show(len(found), found[0].replacements, traced.code)
""",
    "leaf modules": """
class Inner(nn.Module):
    def forward(self, x):
        return x.sin()
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Inner(), nn.Linear(2, 2)
    def forward(self, x):
        return self.a(self.b(x)) + self.a(x)
class Leaf(torch.fx.Tracer):
    def is_leaf_module(self, m, name):
        return isinstance(m, Inner)
root = Outer()
tracer = Leaf()
graph = tracer.trace(root)
show(graph, torch.fx.GraphModule(tracer.root, graph, "Outer"))
show(tracer.node_name_to_scope)
show([(node.name, {k: v[0] for k, v in node.meta["nn_module_stack"].items()}) for node in graph.nodes if "nn_module_stack" in node.meta])
show([(node.name, {k: v[0] for k, v in node.meta.get("nn_module_stack", {}).items()}) for node in torch.fx.symbolic_trace(root).graph.nodes])
""",
    "tracers": """
class Bools(torch.fx.Tracer):
    trace_asserts, proxy_buffer_attributes = True, True
    def to_bool(self, obj):
        return True
    def iter(self, obj):
        return iter([obj[0], obj[1]])
    def call_module(self, m, forward, args, kwargs):
        return super().call_module(m, forward, args, kwargs) * 2
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.register_buffer("b", torch.ones(2))
    def forward(self, x):
        if x.sum() > 0:
            x = self.lin(x) + self.b.neg()
        return [each.sin() for each in x]
show(Bools().trace(Net()))
class Shapes(torch.fx.Tracer):
    def __init__(self):
        super().__init__(param_shapes_constant=True, autowrap_functions=(helper,))
def helper(x):
    return x.f()
def uses_shape(self, x):
    weight = self.lin.weight
    return weight.size()[0] * x + weight.numel() * weight.dim() + weight.shape[1]
Net.forward = uses_shape
show(Shapes().trace(Net()))
class Method(torch.fx.Tracer):
    traced_func_name = "other"
Net.other = lambda self, x: self.lin(x)
show(Method().trace(Net()))
""",
    "proxies": """
graph = torch.fx.Graph()
tracer = torch.fx.proxy.GraphAppendingTracer(graph)
x, y = (torch.fx.Proxy(graph.placeholder(name), tracer) for name in "xy")
value = torch.einsum("i,i->", x, y) * 0.5 + x.shape[0]
show(repr(x), repr(value), value.node, isinstance(x.shape, torch.fx.proxy.Attribute), x.node.graph is graph)
a, (b, c), *d = x[0], (x[1], x[2]), 3
first, second = y
graph.output([value.node, first.node, second.node])
show(graph)
show(torch.fx.GraphModule({}, graph).code)
other = torch.fx.Proxy(torch.fx.Graph().placeholder("z"))
try:
    torch.add(x, other)
except RuntimeError as error:
    show(str(error).partition("[")[0])
""",
    "code generation": """
import operator
class Keyed(torch.fx.CodeGen):
    def gen_fn_def(self, free_vars, maybe_return_annotation):
        keys = ", ".join(map(repr, free_vars))
        return f"def forward(self, given){maybe_return_annotation}:\\n    {', '.join(free_vars)} = pick({keys})(given)"
    def additional_globals(self):
        return [("pick", operator.itemgetter)]
    def process_inputs(self, given):
        return tuple(given.values())
traced = torch.fx.symbolic_trace(lambda x, y: x - y)
traced.graph.set_codegen(Keyed())
traced.recompile()
given = {"x": torch.ones(1), "y": torch.zeros(1)}
show(traced.code, traced(given), torch.fx.Interpreter(traced).run(given))
plain = torch.fx.symbolic_trace(lambda x: x + 1)
with plain.graph.on_generate_code(lambda _: lambda body: ["print('called')\\n", *body]):
    plain.recompile()
    show(plain(1), plain.code)
plain.recompile()
show(plain(1), plain.code)
show(plain.graph.python_code("self").src == plain.code)
""",
    "marked arguments": """
mark = torch.fx._symbolic_trace.PHWithMeta(ph_key="first")
traced = torch.fx.symbolic_trace(lambda pair: pair[0] * pair[1], {"pair": (mark, torch.fx.PH)})
show([(node.name, getattr(node, "ph_key", None)) for node in traced.graph.nodes], traced.code)
""",
    "metadata": """
graph = torch.fx.Graph()
x = graph.placeholder("x")
first, second = graph.call_function(torch.sin, (x,)), graph.call_function(torch.cos, (x,))
graph.output((first, first))
first.meta["k"] = 1
show(first.replace_all_uses_with(second, propagate_meta=True), second.meta, graph)
show(second.replace_all_uses_with(first, delete_user_cb=lambda user: user.op != "output"))
try:
    first.replace_all_uses_with(second, propagate_meta=True)
except AssertionError as error:
    show(error)
""",
    "stack traces": """
class Net(nn.Module):
    def forward(self, x):
        return x.sin()
class Stacks(torch.fx.Tracer):
    record_stack_traces = True
graph = Stacks().trace(Net())
show([(node.name, node.stack_trace is not None and "in forward" in node.stack_trace) for node in graph.nodes])
""",
    "basic operations": """
def f(x, y):
    return torch.ops.aten.add(x, 1) + torch.ops.aten.mul.Tensor(x, y), torch.ops.aten.relu.default(x)
traced = torch.fx.symbolic_trace(f)
show(traced.graph, traced.code, traced(torch.ones(1), torch.ones(1)), torch.ops.aten.add(torch.ones(1), 1))
show(pickle.loads(pickle.dumps(traced)).graph)
""",
    "copies of proxies": """
def f(x):
    return copy.copy(x) + 1, copy.deepcopy(torch.ones(1)) + x
show(torch.fx.symbolic_trace(f).graph)
made = copy.deepcopy(torch.fx.Tracer())
show(type(made).__name__, made.trace(lambda x: x + 1))
""",
    "wrong places of wrap": """
def f():
    torch.fx.wrap("len")
try:
    torch.fx.wrap(3)
except RuntimeError as error:
    show(error)
f()
""",
    "retracing": """
def f(x, y):
    return helper(x) + F.linear(x, y) + x.clamp(0) - torch.linalg.norm(y) + len(x)
def helper(x):
    return x * 3
torch.fx.wrap("helper")
torch.fx.wrap("len")
first = torch.fx.symbolic_trace(f)
second = torch.fx.symbolic_trace(first)
show(first.code, first.code == second.code, str(first.graph) == str(second.graph))
show(pickle.loads(pickle.dumps(torch.fx.symbolic_trace(lambda x, y: F.linear(x, y) - math.inf))).code)
""",
    "nested tracing": """
inner = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return self.inner(x) + 1
show(torch.fx.symbolic_trace(Net()))
show(torch.fx._symbolic_trace.is_fx_tracing())
""",
    "hooks": """
traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
traced.register_forward_hook(lambda module, args, output: show("hook", tuple(output.shape)))
traced(torch.ones(1, 2))
getattr(traced, "0").register_forward_pre_hook(lambda module, args: show("inner"))
traced(torch.ones(3, 2))
""",
    "an error in the code": """
def f(x):
    return (x + 1).reshape(5)
traced = torch.fx.symbolic_trace(f)
printed = io.StringIO()
with contextlib.redirect_stderr(printed):
    try:
        traced(torch.ones(2))
    except RuntimeError as error:
        pass
show(printed.getvalue()[printed.getvalue().index("Call using"):])
graph = torch.fx.Graph()
graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
outer, printed = torch.fx.GraphModule({"inner": traced}, graph), io.StringIO()
with contextlib.redirect_stderr(printed):
    try:
        outer(torch.ones(2))
    except RuntimeError as error:
        show(str(error))
show(printed.getvalue().count("Call using"))
""",
    "training": """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5)))
traced = torch.fx.symbolic_trace(net)
optimizer = torch.optim.Adam(traced.parameters(), 0.1)
x, y = torch.rand(5, 3), torch.tensor([0, 1, 0, 1, 1])
for _ in range(3):
    optimizer.zero_grad()
    loss = F.cross_entropy(traced(x), y)
    loss.backward()
    optimizer.step()
    show(round(loss.item(), 4))
show(traced.eval()(x).argmax(1), traced.training, net.training)
""",
    "flatten by a structure": """
flatten, structure = torch.fx._pytree.tree_flatten_spec, torch.utils._pytree.tree_structure
show(flatten({"a": 1, "b": [2, 3], "c": 4}, structure({"b": [0, 0], "a": 0})), flatten((1, 2), structure((0, 0))), flatten(3, structure(0)))
""",
}

#: Modules of ``torch.nn`` with the shape of an input, which are traced through.
LAYERS = (
    """
Linear(3, 2): 4, 3|Bilinear(2, 3, 4): 1, 2; 1, 3|Identity(): 2|Flatten(): 2, 3, 4|Unflatten(1, (2, 2)): 3, 4
Conv1d(2, 3, 3): 1, 2, 5|Conv2d(2, 4, 3, padding=1, groups=2): 1, 2, 5, 5|Conv3d(1, 1, 2): 1, 1, 3, 3, 3|ReLU(): 3
ReLU(inplace=True): 3|ReLU6(): 3|ELU(): 3|SELU(): 3|CELU(): 3|GELU(): 3|GELU('tanh'): 3|SiLU(): 3|Mish(): 3|Softsign(): 3
Tanhshrink(): 3|Hardtanh(): 3|Hardswish(): 3|Hardsigmoid(): 3|LeakyReLU(0.2): 3|PReLU(): 3|GLU(): 4|Dropout(0.1): 3
Dropout2d(0.1): 1, 2, 3, 3|AlphaDropout(0.1): 3|LayerNorm(3): 2, 3|GroupNorm(2, 4): 1, 4, 3|InstanceNorm2d(2): 1, 2, 3, 3
LocalResponseNorm(2): 1, 2, 3, 3|MaxPool1d(2): 1, 1, 4|MaxPool2d(2): 1, 1, 4, 4|AdaptiveAvgPool2d(2): 1, 1, 4, 4
AdaptiveMaxPool2d(2): 1, 1, 4, 4|Upsample(scale_factor=2): 1, 1, 2, 2|ZeroPad2d(1): 1, 1, 2, 2|ReflectionPad1d(1): 1, 1, 3
ConstantPad1d(1, 2.0): 1, 1, 3|PairwiseDistance(): 2, 3; 2, 3|MSELoss(): 3; 3|L1Loss(): 3; 3|SmoothL1Loss(): 3; 3
HuberLoss(): 3; 3|BCEWithLogitsLoss(): 3; 3|KLDivLoss(): 3; 3|CrossEntropyLoss(): 2, 3; 2, 3|Fold((4, 4), 2): 1, 4, 9
Unfold(2): 1, 1, 3, 3|BatchNorm1d(3, track_running_stats=False): 4, 3
""".strip()
    .replace("\n", "|")
    .split("|")
)

#: Modules whose ``forward`` calls functions in another form than PyTorch's.
OTHER_LAYERS = (
    """
Conv2d(1, 1, 3, padding='same', padding_mode='reflect'): 1, 1, 5, 5|Sigmoid(): 3|Tanh(): 3|Softplus(): 3|LogSigmoid(): 3
Softmax(1): 2, 3|LogSoftmax(1): 2, 3|Softmin(1): 2, 3|Threshold(0.1, 1): 3|RMSNorm(3): 2, 3|AvgPool2d(2): 1, 1, 4, 4
AvgPool1d(2): 1, 1, 4|LPPool2d(2, 2): 1, 1, 4, 4|PixelShuffle(2): 1, 4, 2, 2|CosineSimilarity(): 2, 3; 2, 3
ChannelShuffle(2): 1, 4, 2, 2
""".strip()
    .replace("\n", "|")
    .split("|")
)

#: Functions whose names in texts of graphs are recorded.
_NAMED = """
torch.relu torch.cat torch.conv2d torch.einsum torch.norm torch.split torch.unique torch.stft torch.max torch.zeros torch.meshgrid
torch.block_diag torch.bilinear torch.Tensor.add torch.Tensor.__getitem__ torch.linalg.norm torch.linalg.svd torch.fft.fft
torch.special.erf F.relu F.linear F.gelu F.conv2d F.max_pool2d F.avg_pool2d F.adaptive_avg_pool2d F.softmax F.logsigmoid F.pad
F.one_hot F.cross_entropy F.scaled_dot_product_attention F.interpolate F.batch_norm F.embedding F.mse_loss F.upsample F.dropout
nn.init.ones_ nn.init.normal_ nn.init.kaiming_uniform_ torch._assert torch.sym_int torch.fx.wrap operator.add math.sqrt getattr len
"""
NAMED = _NAMED.split()


class _Summary:
    """Sums of the tensors in nested containers, as text that does not depend on the last digits."""

    def __init__(self, torch: ModuleType) -> None:
        self.torch = torch

    def __call__(self, value: Any) -> Any:
        if isinstance(value, self.torch.Tensor):
            total = value.detach().abs().sum().item() if value.numel() else 0
            return f"{tuple(value.shape)} {str(value.dtype).rpartition('.')[2]} {total:.3f}"
        if isinstance(value, dict):
            return {key: self(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self(each) for each in value]
        return str(value) if isinstance(value, (int, float, str)) or value is None else type(value).__name__


def namespace(torch: ModuleType) -> dict[str, Any]:
    """Return the global variables of a program; a line that is shown later is taken from its text."""
    import copy
    import math
    import operator
    import pickle

    return {
        "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "operator": operator, "copy": copy, "pickle": pickle,
        "math": math, "io": io, "contextlib": contextlib, "warnings": warnings, "__name__": "fx_case",
    }  # fmt: skip


def _run(source: str, space: dict[str, Any], name: str) -> None:
    file = f"<fx case {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec", dont_inherit=True), space)


def traced(torch: ModuleType, name: str) -> dict[str, Any]:
    """Return the texts of the traced program ``name``, and sums of its results and gradients."""
    torch.manual_seed(0)
    space = namespace(torch)
    _run(PROGRAMS[name], space, name)
    module = torch.fx.symbolic_trace(space["root"], space.get("concrete"))
    answer = {"graph": str(module.graph), "code": module.code}
    if "inputs" in space:
        inputs = space["inputs"]
        torch.manual_seed(1)
        result = module(*inputs)
        summary = _Summary(torch)
        answer["results"] = summary(result)
        roots = [each for each in torch.utils._pytree.tree_leaves(result) if getattr(each, "grad_fn", None) is not None]
        if roots:
            sum(each.sum() for each in roots).backward()
            answer["gradients"] = {each: summary(p.grad) for each, p in module.named_parameters() if p.grad is not None}
    return answer


def refusal(torch: ModuleType, program: str) -> str:
    """Return the error of tracing ``program``."""
    space = namespace(torch)
    try:
        root = eval(program, space)
        torch.fx.symbolic_trace(root)
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("retrograd.", "torch.")
    return "traced"


def session(torch: ModuleType, name: str) -> list[str]:
    """Return the lines that the session ``name`` shows and prints, and its error."""
    from importlib import import_module

    torch.manual_seed(0)
    shown: list[str] = []

    def show(*values: Any) -> None:
        shown.extend(str(each) for each in values)

    package = torch.fx.__name__.partition(".")[0]
    passes = import_module(f"{package}.fx.passes.shape_prop")
    space = namespace(torch) | {"show": show, "shape_prop": passes}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _run(SESSIONS[name], space, name)
        except Exception as error:
            shown.append(f"{type(error).__name__}: {error}")
    return [*shown, *printed.getvalue().splitlines()]


def layer(torch: ModuleType, case: str) -> str:
    """Return the text of the graph of a module of ``torch.nn`` that is traced through, without annotations."""

    class Through(torch.fx.Tracer):  # type: ignore[misc, name-defined]
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return False

    made, _, _ = case.partition(": ")
    try:
        graph = Through().trace(eval(f"torch.nn.{made}", {"torch": torch}))
        return str(graph).replace(": torch.Tensor [", ": [")
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def layer_results_agree(torch: ModuleType, case: str) -> bool:
    """Whether a module of ``torch.nn`` and the program that was traced through it have the same results."""

    class Through(torch.fx.Tracer):  # type: ignore[misc, name-defined]
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return False

    made, _, shapes = case.partition(": ")
    torch.manual_seed(0)
    module = eval(f"torch.nn.{made}", {"torch": torch})
    inputs = [torch.rand([int(size) for size in each.split(", ")]) for each in shapes.split("; ")]
    through = torch.fx.GraphModule(module, Through().trace(module))
    results = []
    for called in (module, through):
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.append(called(*(each.clone() for each in inputs)))
    return bool(torch.equal(*results))


def qualified_names(torch: ModuleType, name_of: Any) -> dict[str, str]:
    """Return the names in texts of graphs of the functions in ``NAMED``."""
    return {each: name_of(eval(each, namespace(torch))) for each in NAMED}
