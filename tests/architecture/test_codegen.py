"""Generated code has file names that no code of a user has; renamed functions are copies."""

from __future__ import annotations

import linecache
import traceback

import pytest

import retrograd as torch
from retrograd.runtime.codegen import PREFIX, compile_source, renamed


def test_code_of_the_user_is_never_shown_with_lines_of_the_package() -> None:
    """A program may compile code under any name in angle brackets, such as the name of an operation."""
    x = torch.ones(2, 2, requires_grad=True)
    torch.t(x), torch.mul(x, x).sum().backward(), torch.nn.Linear(2, 2)(x)
    torch.compile(lambda x: x.exp() * 2)(x)
    for title in (
        "t",
        "mul",
        "Linear.forward",
        "compiled forward",
        "compiled call",
        "compiled guard",
        "string",
        "stdin",
    ):
        assert linecache.getlines(f"<{title}>") == []
    space = {"x": x, "torch": torch}
    with pytest.raises(IndexError) as seen:
        exec(compile("def f(x):\n    return torch.cat([x], 9)\n\n\nf(x)\n", "<t>", "exec"), space)
    own = [each for each in traceback.extract_tb(seen.tb) if each.filename == "<t>"]
    assert [(each.name, each.line) for each in own] == [("<module>", ""), ("f", "")]


def test_generated_code_has_file_names_of_its_own() -> None:
    first = compile_source("<same title>", ["def f(): return 1"], {}, "f")
    second = compile_source("<same title>", ["def f(): return 2"], {}, "f")
    again = compile_source("<same title>", ["def f(): return 1"], {}, "f")
    names = [each.__code__.co_filename for each in (first, second, again)]
    assert names == [f"{PREFIX}same title>", f"{PREFIX}same title 2>", f"{PREFIX}same title>"]
    assert linecache.getline(names[1], 1) == "def f(): return 2\n"
    assert compile_source(f"{PREFIX}other>", ["def f(): pass"], {}, "f").__code__.co_filename == f"{PREFIX}other>"


def test_renamed_functions_are_copies_under_another_name() -> None:
    cell = 3

    def original(a: int, /, b: int = 2, *, c: int = 4) -> int:
        """Return a sum."""
        return a + b + c + cell

    made = renamed(original, "shown", "Class.shown")
    assert (made(1), made.__name__, made.__qualname__, made.__doc__) == (10, "shown", "Class.shown", "Return a sum.")
    assert (made.__module__, made.__annotations__) == (original.__module__, original.__annotations__)
    assert (made.__code__.co_name, original.__code__.co_name) == ("shown", "original")
    with pytest.raises(TypeError, match=r"^Class\.shown\(\) missing 1 required positional argument: 'a'$"):
        made()
