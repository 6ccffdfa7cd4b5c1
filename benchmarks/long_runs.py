"""Train the networks of two examples for many steps, and check memory, time and resuming.

    python -m benchmarks.long_runs                       10,000 steps of each
    python -m benchmarks.long_runs --steps 100 cnn       100 steps of the convolutional network

``gpt`` is the network of ``examples/character_gpt.py`` with AdamW, a cosine schedule and clipped gradients on the text of
``docs``. ``cnn`` is that of ``examples/digits.py`` with Adam, a step schedule, dropout and a shuffling ``DataLoader`` on
1,437 random images. After nine tenths of the steps a checkpoint is written: network, optimizer, schedule, random state,
order and position of the loader. Another process resumes from it; at the end its state must be the same bit for bit.

The command fails if a state differs, or, from 1,000 steps on, if between the first tenth and the end the memory of the
process grows by more than 2 % or the processor time of a step by more than 10 %. Both are measured on one thread.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib.util
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import retrograd as torch
from retrograd import nn
from retrograd.import_hook import installed

from . import trees

F = nn.functional
STATUS = Path("/proc/self/statm")


def example(name: str) -> ModuleType:
    """Return the module of an example; what it imports to draw and to show its progress is not needed here."""
    spec = importlib.util.spec_from_file_location(name, trees.ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    unused = dict.fromkeys(("matplotlib", "sklearn", "sklearn.datasets", "tqdm"), mock.MagicMock())
    with mock.patch.dict(sys.modules, unused), installed():
        spec.loader.exec_module(module)
    return module


class Loader:
    """Endless batches of a shuffling ``DataLoader``, with a state that has the order and the position in the epoch."""

    def __init__(self, data: Any, batch: int) -> None:
        self.generator = torch.Generator().manual_seed(1)
        self.loader = torch.utils.data.DataLoader(data, batch, shuffle=True, generator=self.generator)
        self.load_state_dict({"generator": self.generator.get_state(), "taken": 0})

    def __next__(self) -> Any:
        batch = next(self.batches, None)
        if batch is None:
            self.load_state_dict({"generator": self.generator.get_state(), "taken": 0})
            batch = next(self.batches)
        self.taken += 1
        return batch

    def state_dict(self) -> dict[str, Any]:
        return {"generator": self.begun, "taken": self.taken}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Begin the epoch of ``state`` and skip the batches that it has taken."""
        self.begun, self.taken = state["generator"], state["taken"]
        self.generator.set_state(self.begun)
        self.batches: Iterator[Any] = iter(self.loader)
        for _ in range(self.taken):
            next(self.batches)


class Training(NamedTuple):
    """The objects with a state, by name, and the function that runs one step and returns the loss."""

    parts: dict[str, Any]
    step: Callable[[], Any]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parts and of the random numbers."""
        return {**{name: each.state_dict() for name, each in self.parts.items()}, "random": torch.get_rng_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of all parts, then of the random numbers, because a loader may draw some."""
        for name, each in self.parts.items():
            each.load_state_dict(state[name])
        torch.set_rng_state(state["random"])


def gpt(steps: int) -> Training:
    """Training of the network of ``examples/character_gpt.py``."""
    module = example("character_gpt")
    pages = "".join(page.read_text(encoding="utf-8") for page in sorted(module.PAGES.glob("*.md")))
    text = torch.tensor([ord(each) for each in pages if each.isascii()])
    model = module.Writer(128)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

    def step() -> Any:
        read, follows = module.passages(text)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(read).flatten(0, 1), follows.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return loss

    return Training({"model": model, "optimizer": optimizer, "schedule": schedule}, step)


def cnn(steps: int) -> Training:
    """Training of the network of ``examples/digits.py`` on images with one lit row; a fifth of the labels is random."""
    model = example("digits").Network()
    digits = torch.randint(10, (1437,))
    images = torch.rand(1437, 1, 8, 8)
    images[torch.arange(1437), 0, digits % 8] += digits[:, None] / 5
    digits[::5] = torch.randint(10, (288,))
    loader = Loader(torch.utils.data.TensorDataset(images, digits), 64)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, max(steps // 4, 1), 0.3)

    def step() -> Any:
        seen, labels = next(loader)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(seen), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss

    return Training({"model": model, "optimizer": optimizer, "schedule": schedule, "loader": loader}, step)


TRAININGS = {"gpt": gpt, "cnn": cnn}


class Outcome(NamedTuple):
    """Measurements of a run: ``megabytes`` are those of the process, ``objects`` those that Python's collector tracks.

    Of both there are two values, after the first tenth and at the end; of ``seconds``, processor time of a step, the
    medians of the second tenth and of the last. ``minutes`` are those of the clock, ``digest`` is that of the last state.
    """

    megabytes: tuple[float, float]
    objects: tuple[int, int]
    seconds: tuple[float, float]
    loss: float
    minutes: float
    digest: str


def digest(state: Any) -> str:
    """Return a digest of all tensors and numbers in nested dictionaries and sequences."""
    if isinstance(state, dict):
        state = [*state, *state.values()]
    if isinstance(state, (list, tuple)):
        text = " ".join(map(digest, state)).encode()
    else:
        text = state.numpy().tobytes() if isinstance(state, torch.Tensor) else repr(state).encode()
    return hashlib.sha256(text).hexdigest()


def megabytes() -> float:
    """Return the resident memory of the process where Linux shows it, otherwise 0."""
    if not STATUS.exists():
        return 0.0
    import resource

    return int(STATUS.read_text().split()[1]) * resource.getpagesize() / 1e6


def train(name: str, steps: int, save: Path | None, resume: Path | None) -> Outcome:
    """Train up to step ``steps``, from the start or a checkpoint; write one after nine tenths of the steps."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    start, training = time.perf_counter(), TRAININGS[name](steps)
    first = steps * 9 // 10 if resume else 0
    if resume:
        training.load_state_dict(torch.load(resume))
    times, memory, objects, loss = [], [megabytes()], [0], None
    for step in range(first, steps):
        before = time.process_time()
        loss = training.step()
        times.append(time.process_time() - before)
        if save and step + 1 == steps * 9 // 10:
            torch.save(training.state_dict(), save)
        if step + 1 in (steps // 10, steps):
            gc.collect()
            memory.append(megabytes())
            objects.append(len(gc.get_objects()))
    assert loss is not None
    tenth = max(steps // 10, 1)
    seconds = statistics.median(times[tenth : 2 * tenth] or times), statistics.median(times[-tenth:])
    minutes = (time.perf_counter() - start) / 60
    final = digest(training.state_dict())
    return Outcome((memory[-2], memory[-1]), (objects[-2], objects[-1]), seconds, loss.item(), minutes, final)


def in_new_process(*arguments: Any) -> Outcome:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(train, *arguments).result()


def main() -> int:
    """Run the command; return 1 if a check fails."""
    options = argparse.ArgumentParser("python -m benchmarks.long_runs", description=(__doc__ or "").splitlines()[0])
    options.add_argument("names", nargs="*", metavar="name", help="gpt, cnn or both, the default")
    options.add_argument("--steps", type=int, default=10_000)
    chosen = options.parse_args()
    if unknown := set(chosen.names) - set(TRAININGS) or chosen.steps < 10:
        options.error(f"no such training: {', '.join(unknown)}" if chosen.names else "at least 10 steps are needed")
    failed = False
    for name in chosen.names or TRAININGS:
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = Path(folder) / "checkpoint.pt"
            run = in_new_process(name, chosen.steps, checkpoint, None)
            resumed = in_new_process(name, chosen.steps, None, checkpoint)
        growth, slowdown = (1 - pair[0] / pair[1] if pair[1] else 0.0 for pair in (run.megabytes, run.seconds))
        same = run.digest == resumed.digest
        print(
            f"{name}: {chosen.steps} steps in {run.minutes:.1f} min, loss {run.loss:.4f}\n"
            f"  memory   {run.megabytes[0]:.1f} MB after a tenth, {run.megabytes[1]:.1f} MB at the end; "
            f"{run.objects[0]} and {run.objects[1]} objects\n"
            f"  a step   {1000 * run.seconds[0]:.2f} ms in the second tenth, {1000 * run.seconds[1]:.2f} ms in the last\n"
            f"  resumed  {'bit for bit' if same else 'DIFFERENT'} after step {chosen.steps * 9 // 10}",
            flush=True,
        )
        failed |= not same or (chosen.steps >= 1000 and (growth > 0.02 or slowdown > 0.1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
