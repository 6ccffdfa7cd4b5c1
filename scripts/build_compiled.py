"""Build the extension module ``retrograd/runtime/_compiled``: compiled copies of the functions that small programs call most.

The package is complete without it. It needs Cython, a C compiler and the headers of this Python and of NumPy::

    pip install cython
    python scripts/build_compiled.py            into the package of this checkout, src/retrograd/runtime
    python scripts/build_compiled.py FOLDER     into FOLDER
    RETROGRAD_BUILD_COMPILED=1 pip wheel .      into a wheel for this platform (scripts/build_stubs.py)

The script runs the ``PROGRAMS`` and collects the functions that they specialise (``runtime/lazy_functions.py``), and the
functions of modules in ``MODULE_FUNCTIONS``. From the syntax tree of each it writes a function in Cython's language:

- Attributes are read and written by ``compiled_functions.h``, slots directly at their offset in the object. The classes
  stay those of Python.
- A call of an operation returns ``DECLINED`` in place of a call of the fallback, and for an error of the kernel.
- The globals of a specialised function are variables of the extension module, set when the copy is first used.
"""

from __future__ import annotations

import ast
import builtins
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ["RETROGRAD_CODEGEN"] = "1"  # specialise at the first call
os.environ["RETROGRAD_COMPILED"] = "0"

HERE = Path(__file__).resolve().parent
BUILTINS = frozenset(dir(builtins))

#: Functions of modules that are compiled as they stand, with their globals as they are at each call.
MODULE_FUNCTIONS = {
    "retrograd.core.accumulate": ("sum_gradients",),
    "retrograd.core.engine": ("_run",),
    "retrograd.core.views": ("view_of",),
}

#: Names of fallbacks: a specialised function that returns their result declines.
FALLBACKS = ("form_slow", "form_device_call", "fall_back")

#: Functions of ``compiled_functions.h`` for operators in vjps.
OPERATORS: dict[type[ast.operator], str] = {
    ast.Mult: "op_multiply", ast.Add: "op_add", ast.Sub: "op_subtract", ast.Div: "op_divide",
}  # fmt: skip

#: Parameters that are empty on the usual path of a call.
ABSENT = ("rest", "unknown", "out")

#: Programs whose functions are compiled: with ``x`` and ``y`` of shape (3,), ``w`` and ``m`` of shape (3, 3).
PROGRAMS = (
    "x + y", "x - y", "x * y", "x / y", "x + 2.0", "x - 2.0", "x * 2.0", "x / 2.0", "2 + x", "2 - x", "2 * x", "2.0 / x",
    "-x", "x ** 2", "x ** 3", "x ** 4", "x ** 0.5", "x ** y", "x @ y", "w @ x", "w @ m", "x.abs()", "abs(x)",
    "x > 0", "x >= 0", "x < y", "x == y", "torch.where(x > 0, x, y)",
    "torch.add(x, y)", "torch.sub(x, y)", "torch.mul(x, y)", "torch.div(x, y)", "torch.pow(x, 2)", "torch.neg(x)",
    "torch.maximum(x, y)", "torch.minimum(x, y)", "torch.matmul(w, m)", "torch.mm(w, m)", "torch.abs(x)",
    *[f"{owner}.{name}({args})" for name in (
        "exp", "log", "tanh", "sigmoid", "sin", "cos", "sqrt", "square", "relu", "rsqrt", "log1p", "expm1", "erf",
    ) for owner, args in (("x", ""), ("torch", "x"))],
    "torch.nn.functional.relu(x)", "torch.nn.functional.softplus(x)", "torch.nn.functional.gelu(x)",
    "torch.nn.functional.silu(x)", "torch.nn.functional.leaky_relu(x)", "torch.nn.functional.linear(w, m, y)",
    "x.clamp(min=0)", "x.clamp(0, 1)", "torch.clamp(x, 0, 1)",
    "x.sum()", "w.sum(1)", "w.sum(dim=0, keepdim=True)", "w.mean(1)", "x.mean()", "torch.sum(x)", "torch.mean(x)",
    "w.max()", "w.amax(1)", "w.logsumexp(1)", "torch.softmax(w, -1)", "w.softmax(1)", "w.log_softmax(1)",
    "torch.nn.functional.softmax(w, 1)", "torch.nn.functional.log_softmax(w, 1)", "torch.dot(x, y)", "w.norm()",
    "x[1]", "x[:2]", "w[1]", "w[:, 1]", "w[::2, 1:]", "w.select(0, 1)", "w.t()", "w.T", "w.transpose(0, 1)",
    "w.permute(1, 0)", "w.reshape(9)", "w.reshape(1, 9)", "w.view(9)", "w.view(-1)", "w.flatten()", "x.unsqueeze(0)",
    "x.expand(3, 3)", "w[:1].squeeze(0)", "torch.cat([x, y])", "torch.stack([x, y])", "x.clone()", "x.detach()",
    "torch.nn.functional.mse_loss(x, y)", "w.diagonal()", "x.cumsum(0)", "w.unbind()", "w.view_as(m)",
)  # fmt: skip


def run_programs(programs: Sequence[str]) -> None:
    """Run each of the ``programs`` with every combination of leaves, in two dtypes, with gradients of two orders."""
    import retrograd as torch

    for dtype in (torch.float32, torch.float64):
        for program in programs:
            code = compile(program, "<program>", "eval")
            for leaves in (("x", "w"), ("y", "m"), ("x", "y", "w", "m")):
                given: dict[str, Any] = {"torch": torch}
                given.update({name: torch.rand(3, dtype=dtype) + 0.5 for name in "xy"})
                given.update({name: torch.rand(3, 3, dtype=dtype) + 0.5 for name in "wm"})
                eval(code, given)
                inputs = [given[name].requires_grad_() for name in leaves]
                result = eval(code, given)
                if not isinstance(result, torch.Tensor) or not result.requires_grad:
                    continue
                for create_graph in (False, True):
                    first = torch.autograd.grad(
                        result.sum(), inputs, create_graph=create_graph, retain_graph=True, allow_unused=True
                    )
                again = [each.sum() for each in first if each is not None and each.requires_grad]
                if again:
                    sum(again[1:], again[0]).backward()


@dataclass
class Function:
    """A function to compile: its key in ``runtime/extension_module.py``, its syntax tree, and what it is.

    ``declines`` is true for the call of an operation, ``module`` is the name of the module of a function that is compiled
    as it stands. ``spaces`` are the globals of the specialised functions with this text, which are copies of each other.
    """

    key: str
    tree: ast.FunctionDef
    declines: bool = False
    module: str = ""
    spaces: list[dict[str, Any]] = field(default_factory=list)

    @property
    def params(self) -> list[str]:
        """Names of the parameters of the compiled function."""
        args = self.tree.args
        return [each.arg for each in (*args.args, *args.kwonlyargs) if not self.declines or each.arg != "out"]

    def distinct(self, own: Sequence[str]) -> int:
        """Return the number of specialised functions that differ in the values of the globals ``own``."""
        return len({tuple([id(value_of(space, name)) for name in own]) for space in self.spaces}) or 1


def value_of(space: dict[str, Any], name: str) -> Any:
    """Return the global variable ``name``, or the object of a bound method for a name such as ``recording.__self__``."""
    base, _, attribute = name.partition(".")
    return getattr(space[base], attribute) if attribute else space[base]


def collected(programs: Sequence[str]) -> list[Function]:
    """Return the functions that ``programs`` specialise."""
    from retrograd.dispatch import form
    from retrograd.runtime import extension_module, lazy_functions

    found: dict[str, Function] = {}

    def note(tree: ast.FunctionDef, space: dict[str, Any]) -> None:
        described = space["form"]
        declines = isinstance(described, form.Form)
        if isinstance(described, form.VjpForm) or (declines and is_pure(described)):
            text = ast.unparse(tree)
            key = extension_module.key_of_text(text)
            if key not in found:
                found[key] = Function(key, ast.parse(text).body[0], declines)  # type: ignore[arg-type]
            found[key].spaces.append(space)

    lazy_functions.compiled_copy = note
    run_programs(programs)
    return list(found.values())


def is_pure(form: Any) -> bool:
    """Whether a call that ``form`` describes can be repeated: it is neither in place nor random."""
    return not (form.over or form.on_gpu or form.count == 0 or "rand" in form.op.name or "drop" in form.op.name)


class Translator(ast.NodeTransformer):
    """Transformer of the tree of a function into Cython's language. ``local`` are the names of its variables.

    ``name_of`` returns the expression for a global variable. ``attributes`` is the set of the attributes found.
    """

    def __init__(
        self, local: set[str], name_of: Callable[[str], str], attributes: set[str], declines: bool, module: bool
    ) -> None:
        self.local, self.name_of, self.attributes = local, name_of, attributes
        self.declines, self.module = declines, module

    def body(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        """Return the translated ``statements``."""
        made: list[ast.stmt] = []
        for each in statements:
            found = self.visit(each)
            made += found if isinstance(found, list) else [found]
        return made or [ast.Pass()]

    def call(self, function: str, *args: ast.expr) -> ast.Call:
        return ast.Call(ast.Name(function, ast.Load()), list(args), [])

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if self.declines and node.id in ABSENT:
            return ast.Constant(None)
        if not isinstance(node.ctx, ast.Load) or node.id in self.local or node.id in BUILTINS:
            return node
        return ast.Name(self.name_of(node.id), ast.Load())

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        value = self.visit(node.value)
        if isinstance(node.value, ast.Name) and node.value.id in ("numpy", "np", "devices"):
            return ast.Attribute(value, node.attr, node.ctx)
        if node.attr == "size":
            return self.call("get_size", value)
        self.attributes.add(node.attr)
        return self.call(f"read_{node.attr}", value)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func
        if isinstance(function, ast.Name) and function.id not in self.local and not node.keywords:
            name, args = function.id, [self.visit(each) for each in node.args]
            if name == "new":
                return self.call("new_object", *args)
            if name.startswith(("form_lone_nodes_only", "form_node")) and not args:
                return self.call("call_class", self.visit(function))
            if name == "next_number" and not self.module:
                return self.call("get_next", ast.Name(self.name_of("next_number.__self__"), ast.Load()))
            if name in ("recording", "in_inference") and not self.module:
                return self.call("get_context", ast.Name(self.name_of(f"{name}.__self__"), ast.Load()))
            return ast.Call(self.visit(function), args, [])
        if ast.unparse(function) == "object.__new__":
            return self.call("new_object", self.visit(node.args[0]))
        if isinstance(function, ast.Attribute):  # the call of a method
            made = ast.Attribute(self.visit(function.value), function.attr, ast.Load())
            return ast.Call(
                made, [self.visit(each) for each in node.args], [self.visit(each) for each in node.keywords]
            )
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if type(node.op) in OPERATORS and not self.declines:
            return self.call(OPERATORS[type(node.op)], self.visit(node.left), self.visit(node.right))
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        left, right = node.left, node.comparators[0]
        one = len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and isinstance(right, ast.Name)
        if one and isinstance(left, ast.Attribute) and left.attr == "shape":
            made = self.call("compare_shape", self.visit(left.value), self.visit(right))
            return made if isinstance(node.ops[0], ast.Eq) else ast.UnaryOp(ast.Not(), made)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        called = node.value.func if isinstance(node.value, ast.Call) else None
        if self.declines and isinstance(called, ast.Name) and called.id.startswith(FALLBACKS):
            return ast.Return(ast.Name("declined", ast.Load()))
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        called = node.value.func if isinstance(node.value, ast.Call) else None
        if self.declines and isinstance(called, ast.Name) and called.id in ("watched", "complete_hooked"):
            return ast.Return(ast.Name("declined", ast.Load()))  # never reached: see `straight`
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | list[ast.stmt]:
        return ast.Pass() if node.value is None else self.visit_Assign(ast.Assign([node.target], node.value))

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        target, value = node.targets[0], node.value
        attributes = isinstance(target, ast.Tuple) and any(isinstance(each, ast.Attribute) for each in target.elts)
        if attributes and isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            return self.body([ast.Assign([one], each) for one, each in zip(target.elts, value.elts, strict=True)])
        if self.declines and ast.unparse(target) == "found" and self.calls_kernel(value):
            assert isinstance(value, ast.Call)
            called = map(self.visit, (value.func, *value.args))
            return ast.Assign([target], self.call(f"call_{len(value.args)}", *called))
        if not any(isinstance(each, ast.Attribute) for each in node.targets):
            return self.generic_visit(node)  # type: ignore[return-value]
        value = self.visit(value)
        made: list[ast.stmt] = []
        if len(node.targets) > 1 and not isinstance(value, (ast.Constant, ast.Name)):
            made.append(ast.Assign([ast.Name("assigned", ast.Store())], value))
            value = ast.Name("assigned", ast.Load())
        for each in node.targets:
            if isinstance(each, ast.Attribute):
                self.attributes.add(each.attr)
                made.append(ast.Expr(self.call(f"write_{each.attr}", self.visit(each.value), value)))
            else:
                made.append(ast.Assign([each], value))
        return made

    def calls_kernel(self, value: ast.expr) -> bool:
        """Whether ``value`` is the call of a global function with one or two arguments, which may be a ufunc."""
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or value.keywords:
            return False
        return len(value.args) in (1, 2) and value.func.id not in self.local

    def visit_Try(self, node: ast.Try) -> ast.stmt | list[ast.stmt]:
        first = node.body[0]
        if isinstance(first, ast.Assign) and ast.unparse(first.targets[0]).startswith("frame_"):  # find_user_frame
            return ast.Assign([ast.Name("user_code", ast.Store())], self.call("user_code_of", ast.Name("MARKER")))
        return self.generic_visit(node)  # type: ignore[return-value]


def straight(tree: ast.FunctionDef) -> list[ast.stmt]:
    """Return the usual path of a call: the statements of its ``try``, without the part for handlers.

    The recording mode is read first, because a mode with hooks is left to the specialised function.
    """
    body = next(each for each in tree.body if isinstance(each, ast.Try)).body
    if isinstance(body[0], ast.If) and ast.unparse(body[0].test) == "HANDLERS":
        body = body[1:]
    reads = [each for each in body if ast.unparse(each) == "mode = recording()"]
    if reads:
        body = [each for each in body if each not in reads]
        body = [*reads[:1], *ast.parse("if mode is not True and mode:\n    return form_slow()").body, *body]
    return body


#: A global variable of a function in the translated text, before it is known which copy of the function it belongs to.
OWN = "own_of_this_"


def translated(function: Function, common: set[str], attributes: set[str]) -> tuple[list[str], set[str], set[str]]:
    """Return the lines of ``function`` in Cython's language, and the names of its globals: its own, shared ones.

    ``common`` is the set of global variables that may be shared with other functions. The globals of a function of a
    module are looked up in the module when they are needed.
    """
    tree, declines = function.tree, function.declines
    stored = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    stored |= {each.name for each in ast.walk(tree) if isinstance(each, ast.ExceptHandler) and each.name}
    own, shared = set[str](), set[str]()

    def name_of(name: str) -> str:
        if function.module:
            own.add(name)
            return f"get_global({OWN}space, text_{name})"
        base = name.partition(".")[0]
        (shared if base in common else own).add(name)
        return ("shared_" if base in common else OWN) + name.replace(".", "_")

    translator = Translator({*function.params, *stored}, name_of, attributes, declines, bool(function.module))
    body = translator.body(straight(tree) if declines else tree.body)
    text = "\n".join(ast.unparse(ast.fix_missing_locations(each)) for each in body)
    for before, after in FRAME.items():
        text = text.replace(before, after)
    lines = text.splitlines()
    if declines:
        lines = ["try:", *["    " + each for each in ("computed_0 = False", *lines)], "except ERRORS as error:"]
        lines += ["    if passed_user_code(error):", "        raise", "    return declined"]
    return ["cdef long instruction = -1", *lines], own, shared


#: What replaces the search for the user's frame: ``find_user_code`` returns its code, and sets ``instruction``.
FRAME = {
    "user_code_of(MARKER)": "find_user_code(mark, &instruction)",
    "read_f_code(frame_0)": "user_code",
    "read_f_lasti(frame_0)": "instruction",
}

HEAD = """# cython: language_level=3, binding=False, always_allow_keywords=False, annotation_typing=False
cimport cython
cdef extern from "compiled_functions.h":
    ctypedef struct slot_entry:
        Py_ssize_t offset
    object get_attribute(object, slot_entry*, object)
    int set_attribute(object, slot_entry*, object, object) except -1
    object get_class(object, slot_entry*, object)
    object get_dtype(object, slot_entry*, object)
    Py_ssize_t get_size(object) except? -1
    int has_shape(object, object, object) except -1
    object new_object(object)
    object call_class(object)
    object get_next(object)
    object get_context(object)
    object get_global(object, object)
    object find_user_code(object, long*)
    object call_1(object, object)
    object call_2(object, object, object)
    object op_multiply(object, object)
    object op_add(object, object)
    object op_subtract(object, object)
    object op_divide(object, object)
    int start_numpy() except -1
cdef object mark, declined, passed_user_code
ERRORS = (RuntimeError, TypeError, ValueError, IndexError, ArithmeticError, MemoryError, AttributeError)
start_numpy()
def set_up(*given):
    global mark, declined, passed_user_code
    mark, declined, passed_user_code = given
cdef inline int compare_shape(object x, object shape) except -1:
    return has_shape(x, shape, name_shape)
"""


def module_functions() -> Iterator[Function]:
    """Yield the ``MODULE_FUNCTIONS``."""
    from retrograd.runtime.extension_module import key_of_function

    for name, functions in MODULE_FUNCTIONS.items():
        module = import_module(name)
        tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
        for each in tree.body:
            if isinstance(each, ast.FunctionDef) and each.name in functions:
                yield Function(key_of_function(getattr(module, each.name)), each, module=name)


def accessors(attributes: Iterable[str]) -> Iterator[str]:
    """Yield the definitions of the functions that read and write ``attributes``."""
    for name in sorted(attributes):
        getter = {"__class__": "get_class", "dtype": "get_dtype"}.get(name, "get_attribute")
        yield f"cdef object name_{name} = {name!r}"
        yield f"cdef slot_entry[64] table_{name}"
        yield f"cdef inline object read_{name}(object x):\n    return {getter}(x, table_{name}, name_{name})"
        yield f"cdef inline int write_{name}(object x, object value) except -1:"
        yield f"    return set_attribute(x, table_{name}, name_{name}, value)"


def shared_globals(names: Iterable[str]) -> Iterator[str]:
    """Yield the shared variables ``names``, each with a function that sets it, or returns whether it has this value."""
    for name in sorted(names):
        variable = name.replace(".", "_")
        yield f"cdef object shared_{variable}\ncdef bint is_set_{variable} = False"
        yield f"cdef bint share_{variable}(object value) except -1:\n    global shared_{variable}, is_set_{variable}"
        yield f"    if not is_set_{variable}:\n        shared_{variable} = value\n        is_set_{variable} = True"
        yield f"    return shared_{variable} is value"


def definitions(index: str, function: Function, lines: list[str], own: list[str], shared: set[str]) -> Iterator[str]:
    """Yield a compiled function with the number ``index``, its globals, and the function ``bind`` that sets them.

    ``bind`` returns None if the globals already have other values, those of another specialised function.
    """
    name, params = function.tree.name, ", ".join(function.params)
    args, named = function.tree.args, function.params
    if function.module:
        free = len(args.args) - len(args.defaults)
        defaults = ["", *[f"={ast.unparse(each)}" for each in args.defaults]]
        named = [each + defaults[max(0, i - free + 1)] for i, each in enumerate(named)]
        yield f"cdef dict own{index}_space = None"
    variables = {each: f"own{index}_{each.replace('.', '_')}" for each in own if not function.module}
    yield from (f"cdef object {each}" for each in variables.values())
    yield f"cdef bint is_bound{index} = False"
    yield f"cdef object function{index}({', '.join(f'object {each}' for each in function.params)}):"
    yield from ("    " + each.replace(OWN, f"own{index}_") for each in lines)
    if not function.declines:
        yield "@cython.binding(True)"  # a method
    yield f"def {name}{index}({', '.join(named)}):\n    return function{index}({params})"
    yield f"def bind{index}(dict space):\n    global is_bound{index}"
    if function.module:
        yield f"    global own{index}_space\n    own{index}_space = space\n    return {name}{index}"
        return
    for each in sorted(shared):
        base, _, attribute = each.partition(".")
        value = f"space[{base!r}].{attribute}" if attribute else f"space[{base!r}]"
        yield f"    if not share_{each.replace('.', '_')}({value}):\n        return None"
    for each, variable in variables.items():
        base, _, attribute = each.partition(".")
        value = f"space[{base!r}].{attribute}" if attribute else f"space[{base!r}]"
        yield f"    global {variable}\n    if is_bound{index} and {variable} is not {value}:\n        return None"
        yield f"    {variable} = {value}"
    yield f"    is_bound{index} = True\n    return {name}{index}"


def source(functions: Sequence[Function]) -> str:
    """Return the source of the extension module, in Cython's language, with copies of ``functions``."""
    from retrograd.dispatch import templates

    common, attributes, texts, shared = set(vars(templates)), {"shape", "dtype"}, set[str](), set[str]()
    parts: list[str] = []
    table: list[str] = []
    for i, function in enumerate(functions):
        lines, own, used = translated(function, common, attributes)
        shared |= used
        texts |= own if function.module else set()
        numbers = [f"{i}_{k}" for k in range(function.distinct(sorted(own)))]
        for index in numbers:
            parts += definitions(index, function, lines, sorted(own), used)
        table.append(f"    {function.key!r}: ({', '.join(f'bind{each}' for each in numbers)},),")
    names = [f"cdef object text_{each} = {each!r}" for each in sorted(texts)]
    head = [HEAD, *accessors(attributes), *shared_globals(shared), *names]
    return "\n".join([*head, *parts, "functions = {", *table, "}"]) + "\n"


def build(folder: Path, programs: Sequence[str] = PROGRAMS) -> Path:
    """Build the extension module for ``programs``, put it into ``folder``, and return its path."""
    import numpy

    from retrograd.runtime import extension_module

    functions = [*collected(programs), *module_functions()]
    target = folder / Path(extension_module.default_path()).name
    with tempfile.TemporaryDirectory() as temporary:
        text, code = Path(temporary, "_compiled.pyx"), Path(temporary, "_compiled.c")
        text.write_text(source(functions), encoding="utf-8")
        run = [sys.executable, "-m", "cython", "-3", "-X", "initializedcheck=False", "-I", str(HERE), str(text)]
        subprocess.run([*run, "-o", str(code)], check=True)
        compiler = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
        include = [f"-I{each}" for each in (HERE, sysconfig.get_paths()["include"], numpy.get_include())]
        flags = [
            "-O2",
            "-g0",
            *os.environ.get("CFLAGS", "").split(),
            "-fPIC",
            "-shared",
            "-fwrapv",
            "-fvisibility=hidden",
            "-w",
        ]
        subprocess.run([compiler, *flags, *include, str(code), "-o", f"{target}.new", "-s"], check=True)
        os.replace(f"{target}.new", target)
    print(f"{target}: {len(functions)} functions, {target.stat().st_size / 1e6:.1f} MB")
    return target


def main() -> None:
    """Run the command."""
    sys.path.insert(0, str(HERE.parent / "src"))
    from retrograd.runtime import extension_module

    folder, *programs = sys.argv[1:] or [str(Path(extension_module.default_path()).parent)]
    build(Path(folder), programs or PROGRAMS)


if __name__ == "__main__":
    main()
