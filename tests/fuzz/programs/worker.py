"""Process that executes programs: a line of JSON for each program, and one for what is observed of it."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import signal
import sys
from typing import Any

from . import execution

SECONDS = 60


def serve(engine: str) -> None:
    """Execute the programs that arrive on the standard input.

    ``engine`` is ``torch``, ``retrograd``, ``eager`` (which compiles nothing) or ``compile`` (whole programs).
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints does not disturb the protocol
    torch: Any = importlib.import_module("torch" if engine == "torch" else "retrograd")
    torch.set_num_threads(1)
    if engine == "torch":
        importlib.import_module("torch._dynamo")  # takes seconds, and remains unusable if it is interrupted
    hooked = configure_engine(torch)
    compiler = None
    if engine in ("retrograd", "compile"):
        from retrograd.compiler import compiled_function, segments

        compiled_function.FEWEST_STEPS[:], segments.strict, compiler = [0, 0, 0], True, torch.compile
    signal.signal(signal.SIGALRM, expired)
    for number, line in enumerate(sys.stdin):
        signal.alarm(SECONDS)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                seen = execution.run(torch, json.loads(line), compiler, engine == "compile")
        except BaseException as error:  # TimeoutError, or an error of the execution itself
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            seen = {"failed": execution.describe_error(error)}
        signal.alarm(0)
        answers.write(json.dumps(seen) + "\n")
        answers.flush()
        if number % 500 == 499:
            execution.collect()
    del hooked


def configure_engine(torch: Any) -> Any:
    """Let retrograd's engine retain gradients last and accumulate during the backward pass, as PyTorch does."""
    hooked = torch.ones(1, requires_grad=True)
    hooked.register_hook(lambda grad: None)
    if hasattr(torch.autograd.graph, "set_retain_grad_last"):
        torch.autograd.graph.set_retain_grad_last(True)
    return hooked


def expired(*args: object) -> None:
    raise TimeoutError(f"a program took {SECONDS} seconds")


if __name__ == "__main__":
    serve(sys.argv[1])
