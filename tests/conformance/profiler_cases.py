"""Profiled programs, tables of synthetic events, and schedules, compared with PyTorch's record."""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from typing import Any

#: ``p`` is the profiler; ``x`` and ``w`` are tensors of (3, 4) and (4, 4) that require grad, ``torch`` is the engine.
PROGRAMS = {
    "a product of matrices": "with p: (x @ w).relu().sum().backward()",
    "pointwise": "with p: ((x * 2 + 1).exp() / (x - 3).abs()).mean().backward()",
    "nothing recorded": "with p, torch.no_grad(): y = (x @ w).tanh(); y.add_(1); y.mul_(y)",
    "named blocks": """
with p:
    with record_function("forward"):
        with record_function("inner"):
            y = x * x
        z = y.sum()
    with record_function("backward"):
        z.backward()
""",
    "a decorated function": """
@record_function("step")
def step(v):
    return (v * 2).sum()
with p:
    step(x); step(w)
""",
    "views and indices": "with p: (x.t()[1:, 0] + x.reshape(4, 3)[:, 1][:3] + x[torch.arange(3), 0] + x[1, :3]).sum().backward()",
    "in place": "with p: y = x * 1; y[0] = w[0]; y.mul_(w[:3]); y += 1; y.sum().backward()",
    "joined and cut": "with p: a, b = torch.cat([x, w]).split([3, 4]); torch.stack([a, b[:3]]).sum().backward()",
    "a classifier": """
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
target = torch.arange(3)
with p: torch.nn.functional.cross_entropy(net(x), target).backward()
""",
    "images": """
net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.MaxPool2d(2))
image = torch.ones(2, 1, 6, 6)
with p: net(image).sum().backward()
""",
    "normalised and dropped": """
layer = torch.nn.LayerNorm(4)
with p: torch.nn.functional.dropout(torch.softmax(layer(x), -1), 0.5).sum().backward()
""",
    "training": """
layer = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(layer.parameters())
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 4), torch.zeros(4, 1)), batch_size=2)
with p:
    for value, target in data:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(layer(value), target).backward()
        optimizer.step()
""",
    "a custom function": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        return v * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
with p: Double.apply(x).sum().backward()
""",
    "autograd.grad": "with p: torch.autograd.grad((x * x).sum(), x)",
    "gradients of gradients": """
with p:
    (g,) = torch.autograd.grad((x.sin() * x).sum(), x, create_graph=True)
    g.sum().backward()
""",
    "numbers": "with p: float(x.sum()); bool(x.sum() > 0); x.sum().item(); int(w.max())",
    "a hook that calculates": "x.register_hook(lambda g: g * 2)\nwith p: (x * w[:3]).sum().backward()",
    "several results": "with p: v, i = x.sort(dim=1); (v * 2).sum().backward()",
    "a broadcast sum": "b = torch.ones(4, requires_grad=True)\nwith p: (x + b).prod().backward()",
    "an error inside": "try:\n    with p: x.exp(); x @ x\nexcept RuntimeError: pass",
}  # fmt: skip

#: PyTorch's internal events, which are not compared.
_MADE = ["aten::to", "aten::lift_fresh", "aten::detach_"]
_OPTIMIZERS = "Optimizer.step", "enumerate(DataLoader)"


def outline(events: Any) -> list[str]:
    """Return the indented names of a program's operations, derivative nodes and blocks.

    Calls below a node, an optimizer or a loader are left out, because the engines implement them differently.
    """
    lines: list[str] = []
    for event in events:
        if event.name in ("[memory]", "aten::empty"):
            continue
        around, depth = event.cpu_parent, 0
        while around is not None and (around.is_user_annotation or (event.scope == 1 and depth == 0)):
            if around.name.startswith(_OPTIMIZERS):
                break
            around, depth = around.cpu_parent, depth + 1
        if around is None:
            lines.append("  " * depth + event.name)
    return _without_making(lines)


def _without_making(lines: list[str]) -> list[str]:
    """Treat the creation of a tensor from numbers as one operation."""
    found: list[str] = []
    for line in lines:
        found.append(line)
        if [each.strip() for each in found[-3:]] == _MADE:
            del found[-3], found[-1]
    return found


def outline_of_program(torch: Any, program: str) -> list[str]:
    """Return the outline of ``program``."""
    return outline(run(torch, program).events())


def run(torch: Any, program: str, **options: Any) -> Any:
    """Return the profiler of ``program``."""
    torch.manual_seed(0)
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options)
    space = {
        "torch": torch, "p": profiler, "record_function": torch.profiler.record_function,
        "x": torch.arange(12.0).reshape(3, 4).requires_grad_(), "w": torch.ones(4, 4).requires_grad_(),
    }  # fmt: skip
    exec(program, space)
    return profiler


# --- Synthetic events: their tables are compared exactly ----------------------------------------

#: Name, begin, end, bytes, shapes, floating-point operations, stack, whether the user named it.
EVENTS: list[tuple[Any, ...]] = [
    ("train", 0.0, 5_000_000.0, 2**21, [], 0, ["train.py(3): step", "train.py(9): <module>"], True),
    ("aten::linear", 10.0, 1500.5, 2048, [[3, 4], [5, 4], [5]], 0, ["train.py(4): forward", "train.py(9): <module>"], False),
    ("aten::addmm", 20.0, 1400.25, 2048, [[5], [3, 4], [4, 5], [], []], 120, ["layers.py(1): call"], False),
    ("aten::relu", 1600.0, 1700.0, -100, [[3, 5]], 0, [], False),
    ("aten::relu", 1800.0, 1850.0, 60, [[2, 5]], 0, ["train.py(4): forward"], False),
    ("autograd::engine::evaluate_function: a_node_of_a_very_long_name_indeed", 2000.0, 3_000_000.0, 0, [], 0, [], False),
    ("aten::mm", 2100.0, 9000.0, 3 * 2**30, [[300, 400], [400, 500]], 120_000_000, ["a/very/long/path" * 8 + ".py(1): f"], False),
    ("aten::detach", 9100.0, 9100.0, 0, [[3]], 0, [], False),
]  # fmt: skip

#: Calls on ``events``, a list of these.
SHOWN = [
    "events.table()",
    "events.table(sort_by='cpu_time_total')",
    "events.table(sort_by='self_cpu_time_total', row_limit=3)",
    "events.table(sort_by='self_cuda_time_total', row_limit=2)",
    "events.table(row_limit=-1, max_name_column_width=20, max_shapes_column_width=15, max_src_column_width=30)",
    "events.table(row_limit=0)",
    "events.table(header='What was done', top_level_events_only=True)",
    "events.table(header='In seconds', time_unit='s', max_name_column_width=None)",
    "events.table(time_unit='us', row_limit=2)",
    "events.table(sort_by='nothing')",
    "str(events)",
    "events.key_averages().table(sort_by='self_cpu_memory_usage')",
    "events.key_averages().table(sort_by='count', time_unit='ms')",
    "events.key_averages(group_by_input_shapes=True).table(sort_by='cpu_memory_usage')",
    "events.key_averages(group_by_stack_n=1).table(sort_by='cpu_time')",
    "events.key_averages(True, 2).table(max_src_column_width=20)",
    "[(e.key, e.count, e.cpu_time_total, e.self_cpu_time_total, e.cpu_memory_usage, e.flops) for e in events.key_averages()]",
    "[(e.cpu_time, e.cpu_time_str, e.cpu_time_total_str, e.self_cpu_time_total_str, e.device_time_str) for e in events]",
    "[(e.self_cpu_memory_usage, e.self_device_memory_usage, e.device_time_total, e.key, e.count) for e in events]",
    "events.total_average()",
    "events.self_cpu_time_total",
    "events.key_averages()[3]",
    "events[3]",
    "events[1].cpu_parent.name, [e.name for e in events[0].cpu_children], events[0].cpu_parent",
    "events[0].time_range.elapsed_us()",
    "type(events)([]).table()",
    "events.supported_export_stacks_metrics()",
    "stacks(events, 'self_cpu_time_total')",
    "stacks(events, 'self_cuda_time_total')",
    "stacks(events, 'time')",
    "trace(events)",
    "events.key_averages()[0] .add(events[1])",
]  # fmt: skip


def made(torch: Any, memory: bool, flops: bool, stack: bool) -> Any:
    """Return the synthetic events as the engine's list of events."""
    util = torch.autograd.profiler_util
    events = util.EventList(profile_memory=memory, with_flops=flops)
    for number, (name, start, end, count, shapes, operations, lines, named) in enumerate(EVENTS):
        event = util.FunctionEvent(
            number, name, 1, start, end, overload_name="", input_shapes=shapes, stack=lines if stack else [],
            cpu_memory_usage=count, flops=operations, is_user_annotation=named, trace_name=name, fwd_thread=0,
        )  # fmt: skip
        around = [each for each in events if each.time_range.start <= start and end <= each.time_range.end]
        if around:
            event.set_cpu_parent(around[-1])
            around[-1].append_cpu_child(event)
        events.append(event)
    events._tree_built = True  # required by PyTorch
    return events


def shown(torch: Any, call: str, memory: bool = True, flops: bool = False, stack: bool = False) -> str:
    """Return the text of a call on the synthetic events."""
    space = {"events": made(torch, memory, flops, stack), "stacks": _stacks, "trace": _trace}
    try:
        return str(eval(call, space))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _written(write: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        write(path)
        with open(path, encoding="utf-8") as file:
            return file.read()


def _stacks(events: Any, metric: str) -> str:
    return _written(lambda path: events.export_stacks(path, metric))


def _trace(events: Any) -> str:
    return json.dumps(json.loads(_written(events.export_chrome_trace)))


# --- Schedules ------------------------------------------------------------------------------------------------------

SCHEDULES = [
    "wait=1, warmup=1, active=2",
    "wait=1, warmup=1, active=2, repeat=1",
    "wait=0, warmup=1, active=1, repeat=2",
    "wait=2, warmup=1, active=3, repeat=2, skip_first=3",
    "wait=3, warmup=1, active=1, skip_first=2, skip_first_wait=1",
    "wait=0, warmup=0, active=1",
    "wait=0, warmup=0, active=3, repeat=1",
    "wait=1, warmup=0, active=2",
    "wait=0, warmup=2, active=1",
    "wait=-1, warmup=0, active=1",
    "wait=1, warmup=1, active=0",
]
#: Custom schedules: an action for each step, the last for all further steps.
OWN = ["NONE", "RECORD", "RECORD RECORD NONE", "WARMUP NONE", "RECORD_AND_SAVE",
       "WARMUP", "NONE RECORD_AND_SAVE NONE", "NONE WARMUP RECORD RECORD_AND_SAVE RECORD", "DEVICE_STOPPED"]  # fmt: skip


def schedule_run(torch: Any, schedule: str) -> dict[str, Any]:
    """Return when a profiler with a schedule has traces in nine steps, their contents, and warnings."""
    ready: list[Any] = []

    def note(p: Any) -> None:
        ready.append([p.step_num, [(e.key, e.count) for e in p.key_averages() if e.key != "[memory]"]])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if "=" in schedule:
                plan = eval(f"torch.profiler.schedule({schedule})", {"torch": torch})
            else:
                names = schedule.split()
                plan = lambda step: getattr(torch.profiler.ProfilerAction, names[min(step, len(names) - 1)])
            x = torch.ones(2)
            with torch.profiler.profile(
                activities=[torch.profiler.ProfilerActivity.CPU], schedule=plan, on_trace_ready=note
            ) as p:
                for _ in range(9):
                    x + x
                    p.step()
            ready.append(["end", [(e.trace_name, e.key) for e in p.events()] if p.profiler is not None else None])
            actions = [plan(step).name for step in range(12)]
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
    said = [str(each.message) for each in caught if "clears events" not in str(each.message)]
    return {"ready": ready, "actions": actions, "warnings": said}


#: Mistakes, and results where nothing was recorded.
MISTAKES = [
    "torch.profiler.profile(activities=[])",
    "torch.profiler.profile().events()",
    "torch.profiler.profile().key_averages()",
    "torch.profiler.profile().export_chrome_trace('nowhere')",
    "torch.profiler.profile().export_stacks('nowhere')",
    "torch.profiler.profile().start_trace()",
    "torch.profiler.profile().stop_trace()",
    "ran(torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])).export_stacks('nowhere')",
    "repr(torch.autograd.profiler.profile())",
    "str(torch.autograd.profiler.profile())",
    "torch.autograd.profiler.profile().table()",
    "torch.autograd.profiler.profile().key_averages()",
    "torch.autograd.profiler.profile().total_average()",
    "torch.autograd.profiler.profile().self_cpu_time_total",
    "torch.autograd.profiler.profile(enabled=False).__enter__()",
    "ran(torch.autograd.profiler.profile()).__enter__()",
    "[e.name for e in ran(torch.autograd.profiler.profile()).function_events]",
    "sorted(map(str, torch.profiler.supported_activities()))",
    "list(torch.profiler.ProfilerAction)",
    "torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA",
    "str(torch.profiler.ProfilerActivity.CPU), torch.profiler.ProfilerActivity.CPU.name",
    "torch.profiler.schedule(1, 1, 1)",
    "torch.profiler.schedule(wait=1, warmup=1, active=1)(-1)",
    "torch.profiler.record_function('a').name",
    "torch.profiler.kineto_available(), torch.autograd.profiler.kineto_available()",
    "torch.autograd.profiler_util.MEMORY_EVENT_NAME, torch.autograd.profiler.EventList.__name__",
]  # fmt: skip


def _ran(profiler: Any) -> Any:
    with profiler:
        pass
    return profiler


def error_of(torch: Any, call: str) -> str:
    """Return the result or error of a call of :data:`MISTAKES`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            text = repr(eval(call, {"torch": torch, "ran": _ran}))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    return re.sub(r"\b[\w.]*(?=schedule\(\) takes)", "", text)


#: Options of the tables of synthetic events: memory, flops, stacks.
OPTIONS = [(True, False, False), (False, False, False), (True, True, False), (False, False, True)]
