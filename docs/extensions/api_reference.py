"""Write the API reference from the package itself: a page for each family of names, an entry for each public name.

The pages are written to ``docs/api/`` when a build begins, and are not part of the repository. An entry consists of the
signature, the docstring and a link to the code. If the docstring has no example, the entry gets one from ``TEMPLATES``,
from the original of an alias, or from the samples of the tests (``tests/conformance/samples``), evaluated while the page
is written.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import inspect
import io
import re
import sys
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy
from api_facts import errors, operation_names, samples_of, shapes, typed_signatures
from api_templates import TEMPLATES
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring

import retrograd
from tests.conformance.samples import Sample

PACKAGE = Path(retrograd.__file__).parent
#: Modules with a page of their own, and its title. Their names are those of ``__all__``.
MODULES = {
    "autograd": "Backward passes, modes, custom functions",
    "autograd.functional": "Jacobians, Hessians and products with them",
    "autograd.graph": "The graph and saved tensors",
    "autograd.forward_ad": "Forward mode",
    "func": "Function transforms",
    "nn": "Modules",
    "nn.functional": "Functions of neural networks",
    "nn.init": "Initialisation",
    "nn.utils": "Utilities for modules",
    "nn.utils.rnn": "Packed sequences",
    "nn.utils.parametrizations": "Parametrizations",
    "nn.utils.parametrize": "Parametrized tensors of modules",
    "nn.utils.prune": "Pruning",
    "nn.attention": "Backends of attention",
    "nn.grad": "Gradients of convolutions",
    "nn.parallel": "Replicas of modules",
    "optim": "Optimizers",
    "optim.lr_scheduler": "Learning rate schedulers",
    "optim.swa_utils": "Averages of weights",
    "utils.data": "Datasets and loaders",
    "utils.checkpoint": "Checkpoints of activations",
    "linalg": "Linear algebra",
    "fft": "Fourier transforms",
    "special": "Special functions",
    "signal.windows": "Windows",
    "sparse": "Sparse tensors",
    "nested": "Nested tensors",
    "masked": "Masked tensors",
    "quasirandom": "Sobol sequences",
    "random": "Random numbers",
    "distributions": "Probability distributions",
    "amp": "Automatic mixed precision",
    "testing": "Comparing tensors",
    "profiler": "Time and memory of operations",
    "library": "Operators of a library",
    "extend": "Operations of your own",
    "inspection": "Looking into the graph",
    "fx": "Programs as graphs",
    "compiler": "Compiling",
    "distributed": "Distribution over processes",
    "distributed.checkpoint": "Checkpoints of several processes",
    "distributed.fsdp": "Sharded parameters",
    "distributed.tensor": "Distributed tensors",
    "distributed.algorithms": "Communication hooks, uneven inputs",
    "distributed.nn": "Differentiable collectives",
    "distributed.optim": "Sharded optimizers",
    "multiprocessing": "Processes",
    "futures": "Futures",
    "hub": "Models of a repository",
    "overrides": "Overriding functions",
    "utils": "Hooks, DLPack, counts of operations and other utilities",
    "utils.benchmark": "Measuring time",
    "serialization": "Safe globals of checkpoints",
    "types": "Types, storages and named results",
    "array_api": "Functions of the array API standard",
    "accelerator": "Devices and their settings",
    "cuda": "GPUs",
    "backends": "Settings of libraries",
    "jit": "Scripting and tracing",
    "onnx": "Names for ONNX",
    "ao": "Names for quantization",
    "monitor": "Counters and events",
}  # fmt: skip
#: Modules whose entries are on the page of another module, except for objects that the page already has.
SUBMODULES = {
    "accelerator": ("cpu", "mps", "mtia", "xpu"),
    "ao": ("ao.quantization", "ao.nn.quantized"),
    "array_api": ("array_api.fft", "array_api.linalg"),
    "autograd": ("autograd.function",),
    "backends": (
        "backends.cpu", "backends.cuda", "backends.cudnn", "backends.cusparselt", "backends.kleidiai", "backends.mha",
        "backends.miopen", "backends.mkl", "backends.mkldnn", "backends.mps", "backends.nnpack", "backends.openmp",
        "backends.opt_einsum",
    ),
    "cuda": ("cuda.memory", "cuda.nvtx", "cuda.profiler", "cuda.random", "cuda.streams", "cuda.amp"),
    "distributed": ("distributed.device_mesh", "distributed.rpc"),
    "distributed.algorithms": (
        "distributed.algorithms.join", "distributed.algorithms.ddp_comm_hooks.debugging_hooks",
        "distributed.algorithms.ddp_comm_hooks.default_hooks", "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook",
        "distributed.algorithms.ddp_comm_hooks.powerSGD_hook", "distributed.algorithms.ddp_comm_hooks",
    ),
    "distributed.checkpoint": (
        "distributed.checkpoint.state_dict", "distributed.checkpoint.default_planner", "distributed.checkpoint.filesystem",
        "distributed.checkpoint.hf_storage", "distributed.checkpoint.metadata", "distributed.checkpoint.planner",
        "distributed.checkpoint.state_dict_loader", "distributed.checkpoint.state_dict_saver",
        "distributed.checkpoint.stateful", "distributed.checkpoint.storage", "distributed.checkpoint.format_utils",
    ),
    "distributed.tensor": ("distributed.tensor.placement_types",),
    "distributions": (
        "distributions.constraints", "distributions.constraint_registry", "distributions.relaxed_bernoulli",
        "distributions.relaxed_categorical", "distributions.utils",
    ),
    "fx": (
        "fx.graph", "fx.graph_module", "fx.immutable_collections", "fx.node", "fx.passes.shape_prop",
        "fx.passes.utils.matcher_utils", "fx.proxy", "fx.subgraph_rewriter", "fx.experimental.proxy_tensor",
    ),
    "masked": ("masked.maskedtensor",),
    "nn": ("nn.modules.module", "nn.modules.lazy", "nn.parameter"),
    "nn.attention": ("nn.attention.flex_attention",),
    "nn.parallel": ("nn.parallel.scatter_gather",),
    "nn.utils": ("nn.utils.stateless",),
    "onnx": ("onnx.operators", "onnx.symbolic_helper"),
    "optim": ("optim.optimizer",),
    "profiler": ("autograd.profiler", "autograd.profiler_util"),
    "types": ("return_types", "storage", "torch_version"),
    "utils": (
        "utils.collect_env", "utils.dlpack", "utils.flop_counter", "utils.hooks", "utils.module_tracker", "utils.weak",
    ),
    "utils.benchmark": ("utils.benchmark.measurement",),
    "utils.data": (
        "utils.data.distributed", "utils.data.datapipes.datapipe", "utils.data.datapipes.iter",
        "utils.data.datapipes.map", "utils.data.datapipes.utils.common", "utils.data.graph", "utils.data.graph_settings",
    ),
}  # fmt: skip
#: Groups of pages in the contents: a caption, and the first parts of the modules' names. The rest is the last group.
GROUPS = {
    "Functions of torch": ("torch",),
    "Methods of torch.Tensor": ("tensor",),
    "Gradients and transforms": ("autograd", "func"),
    "Neural networks and training": ("nn", "optim", "utils", "amp"),
    "Mathematics": (
        "linalg", "fft", "special", "signal", "sparse", "nested", "masked", "random", "quasirandom", "distributions",
    ),
    "Several processes": ("distributed", "multiprocessing", "futures"),
    "Devices": ("accelerator", "cuda", "backends"),
    "Programs, operators and tools": (),
}  # fmt: skip
#: Families of the names of ``torch`` and ``torch.Tensor``: the folder or module of the definition, and a title.
FAMILIES_OF_TORCH = {
    "operations.creation": "Creation and conversion",
    "operations.elementwise": "Elementwise operations",
    "operations.reductions": "Reductions, scans and distances",
    "operations.shape": "Shapes and views",
    "operations.indexing": "Indexing, search and scatter",
    "operations.linalg": "Products and matrices",
    "operations.nn": "Operations of neural networks",
    "operations.signal": "Signals",
    "": "Settings, devices, types and other names",
}


class Entry(NamedTuple):
    """A public name: its full name below ``torch``, the object and the kind of its directive."""

    name: str
    value: Any
    kind: str


# -- Collect -----------------------------------------------------------------------------------------------------------


def public_names(module: ModuleType) -> list[str]:
    """Return the public names of a module in the order of ``__all__``, or sorted."""
    names = getattr(module, "__all__", None) or sorted(dir(module))
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def kind_of(value: Any) -> str | None:
    """Return the directive for a value, or None if it has no entry."""
    module = str(getattr(value, "__module__", "")).partition(".")[0]
    if inspect.ismodule(value) or module in sys.stdlib_module_names - {"builtins"}:
        return None
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) else "data"


def entries(path: str) -> Iterator[Entry]:
    """Yield the entries of the module ``path`` below ``retrograd``."""
    module = importlib.import_module(f"retrograd.{path}" if path else "retrograd")
    for name in public_names(module):
        value = getattr(module, name, None)
        entry = Entry(f"{path}.{name}" if path else name, value, kind_of(value) or "")
        if entry.kind and documentation(entry):
            yield entry


def documentation(entry: Entry) -> str:
    """Return the docstring of an entry, or the description of a constant."""
    value = entry.value.fget if isinstance(entry.value, property) else entry.value
    if entry.kind == "data":
        return description(entry)
    return inspect.getdoc(value) or inspect.getdoc(entry.value) or ""


def description(entry: Entry) -> str:
    """Return the text of an entry for a constant: a dtype, a layout, a memory format, a number."""
    name, value = entry.name, entry.value
    if isinstance(value, retrograd.dtype):
        kind = "Complex" if value.is_complex else "Floating-point" if value.is_floating_point else "Integer or boolean"
        text = f"{kind} data type with {value.itemsize} bytes for an element."
        example = f">>> torch.zeros(2, dtype=torch.{name}).dtype\n{value}"
        alias = "" if str(value) == f"torch.{name}" else f" Alias of :py:data:`~{value}`."
        return f"{text}{alias}\n\n{example}"
    if value is None:
        shown = ">>> torch.ones(2)[:, torch.newaxis].shape\ntorch.Size([2, 1])"
        return f"None, which inserts a dimension of size 1 in an index.\n\n{shown}"
    if isinstance(value, (int, float, str)):
        return f"The constant {value!r}.\n\n>>> torch.{name}\n{value!r}"
    if source_module(type(value)):
        return (inspect.getdoc(type(value)) or "").partition("\n\n")[0] + f"\n\n>>> torch.{name}\n{value!r}"
    return ""


def tensor_entries() -> Iterator[Entry]:
    """Yield the entries of the methods and attributes of ``Tensor``."""
    for name in sorted(each for each in dir(retrograd.Tensor) if not each.startswith("_")):
        value = inspect.getattr_static(retrograd.Tensor, name, None)
        if isinstance(value, property):
            yield Entry(f"Tensor.{name}", value, "attribute")
        else:
            try:
                found = getattr(retrograd.Tensor, name)
            except (AttributeError, RuntimeError, NotImplementedError):
                continue
            if inspect.getdoc(found):
                yield Entry(f"Tensor.{name}", found, "method" if callable(found) else "attribute")


def source_module(value: Any) -> str:
    """Return the module, below ``retrograd``, of the file that defines ``value``; "" if there is none."""
    try:
        found = inspect.getsourcefile(inspect.unwrap(value.fget if isinstance(value, property) else value))
    except (TypeError, ValueError, AttributeError):
        return ""
    path = Path(found or "")
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts) if path.is_relative_to(PACKAGE) else ""


def family(value: Any) -> str:
    """Return the key of ``FAMILIES_OF_TORCH`` for ``value``."""
    module = source_module(value)
    return next((key for key in FAMILIES_OF_TORCH if key and module.startswith(key)), "")


# -- Text --------------------------------------------------------------------------------------------------------------

_NAPOLEON = Config(napoleon_use_param=True, napoleon_use_rtype=False)
#: Literals and roles, in which nothing is escaped.
_LITERAL = re.compile(r"(``.+?``|:[\w:]+:`[^`]+`|https?://[^\s)>]+)", re.DOTALL)


def escape(text: str) -> str:
    """Return ``text`` with the characters escaped that reStructuredText would interpret outside of literals."""
    parts = _LITERAL.split(text)
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"([\\*|`]|_(?!\w))", r"\\\1", parts[index])
    return "".join(parts)


def paragraphs(docstring: str) -> str:
    """Return a docstring as reStructuredText: prose is escaped, examples are separated from it."""
    result: list[str] = []
    for part in re.split(r"\n[ ]*\n", docstring.strip("\n")):
        if part.lstrip().startswith(">>>"):
            result.append(textwrap.dedent(part))
        elif re.match(r"\w+:\n ", part):
            result.append(str(GoogleDocstring(escape(part), _NAPOLEON)).strip("\n"))
        elif part.startswith(" "):
            result.append("::\n\n" + textwrap.indent(textwrap.dedent(part), "    "))
        else:
            result.append(escape(part))
    return "\n\n".join(result)


def signatures(entry: Entry) -> list[str]:
    """Return the signatures of an entry as texts, without ``self`` for methods; those of the stubs have types."""
    if entry.kind in ("attribute", "exception", "data"):
        return [""]
    if found := typed_signatures(entry.name, entry.value, entry.kind):
        return [_PRIVATE.sub("", each).replace("retrograd.", "torch.") for each in found]
    try:
        own = inspect.signature(entry.value)
    except (TypeError, ValueError):
        return ["(...)"]
    if entry.kind == "method":
        own = own.replace(parameters=list(own.parameters.values())[1:])
    text = str(own).replace("retrograd.", "torch.")
    return [re.sub(r"<([^<>]*?)( at 0x\w+)?>", lambda each: "..." if each[2] else each[1], text)]


#: The underscore of names that the stubs import under another name, such as ``_int`` beside ``Tensor.int``.
_PRIVATE = re.compile(r"(?<![\w.])_(?=[a-zA-Z])")


def facts(entry: Entry) -> str:
    """Return the fields of an entry: shapes of a function's arguments and results, and errors."""
    lines = []
    if entry.kind in ("function", "method") and (found := shapes(entry.name, entry.value)):
        lines += [":Shapes:", *(f"   * {each}" for each in found)]
    if entry.kind in ("function", "method", "class"):
        lines += [f":raises {kind}: ``{call}``: {escape(text)}" for kind, call, text in errors(entry.name)]
    return "\n".join(lines)


# -- Examples ----------------------------------------------------------------------------------------------------------


def literal(array: numpy.ndarray) -> str:
    """Return the text of an expression for a tensor with the elements of ``array``, rounded."""
    rounded = numpy.round(array, 1) if array.dtype.kind in "fc" else array
    return f"torch.tensor({rounded.tolist()})"


def counting(array: numpy.ndarray) -> str:
    """Return the text of an expression for a tensor with the shape of ``array`` that counts its elements."""
    if array.dtype.kind != "f" or array.ndim < 2:
        return literal(array)
    return f"torch.arange({float(array.size)}).reshape{array.shape}"


def drawn(array: numpy.ndarray) -> str:
    """Return the text of an expression for a random tensor with the shape of ``array``."""
    return f"torch.randn{array.shape}" if array.dtype.kind == "f" and array.size > 4 else literal(array)


def evaluated(sample: Sample, expression: str, recipe: Callable[[numpy.ndarray], str], show: str = "{}") -> str:
    """Return the lines of an example with its result, or "" if it is long or its inputs do not fit."""
    lines, names = [], {"torch": retrograd}
    try:
        for key, array in sample.arrays().items():
            text = recipe(array)
            names[key] = eval(text, {"torch": retrograd})
            lines.append(f">>> {key} = {text}")
        shown = show.format(expression.strip())
        text = "\n".join([*lines, f">>> {shown}", repr(eval(shown, dict(names)))])
    except Exception:  # the inputs of the recipe may be outside of the domain, and a result may have no shape
        return ""
    return text if max(map(len, text.splitlines())) <= 110 and text.count("\n") <= 14 else ""


def called_as(expression: str, name: str, known: str) -> str:
    """Return ``expression``, a sample's call of the operation ``known``, as a call of its other form or name ``name``."""
    base = name.removesuffix("_") if name.endswith("_") and not known.endswith("_") else name
    if base != name:  # the in-place form is a method
        found = re.fullmatch(rf"torch\.{known}\((\w+)(?:, )?(.*)\)|(\w+)\.{known}\((.*)\)", expression.strip())
        return f"{found[1] or found[3]}.{name}({found[2] or found[4] or ''})" if found else ""
    return re.sub(rf"\.{known}\(", f".{name}(", expression) if f".{known}(" in expression else ""


def session(statements: Iterable[str]) -> str:
    """Return the lines of an interactive session: each statement with the text that it prints.

    A statement after an exclamation mark must raise an error, of which the session shows the type and the message.
    """
    names = {"torch": retrograd}
    lines = []
    for each in statements:
        statement = each.removeprefix("!")
        lines.append(f">>> {statement}")
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(statement + "\n", "<example>", "single"), names)
        except Exception as error:
            if statement == each:
                raise
            printed.write(f"Traceback (most recent call last):\n    ...\n{type(error).__name__}: {error}\n")
        else:
            assert statement == each, f"{statement} raises no error"
        lines += [line or "<BLANKLINE>" for line in printed.getvalue().splitlines()]
    return "\n".join(lines)


def from_template(name: str) -> str:
    """Return the example of a name that a pattern of ``TEMPLATES`` matches, or ""."""
    for pattern, statements in TEMPLATES.items():
        if found := re.fullmatch(pattern, name):
            groups = [each or "" for each in found.groups()]
            return session(each.format(*groups, name=name.rpartition(".")[2]) for each in statements)
    return ""


def of_original(entry: Entry, docstring: str) -> str:
    """Return the example of the name of which ``entry`` is a deprecated alias, or ""."""
    found = re.match(r"Deprecated alias of :\w+:`(\w+)`", docstring)
    if not found:
        return ""
    space = importlib.import_module("retrograd." + entry.name.rpartition(".")[0])
    parts = re.split(r"\n[ ]*\n", inspect.getdoc(getattr(space, found[1])) or "")
    return "\n\n".join(part for part in parts if part.startswith(">>>"))


def example(entry: Entry, docstring: str) -> str:
    """Return a short example of a name whose docstring has none, or "".

    It is the example of the original for an alias, otherwise that of a template, or a sample of the tests.
    """
    if found := of_original(entry, docstring) or from_template(entry.name):
        return found
    return sampled(entry) if entry.kind in ("function", "method") else ""


def sampled(entry: Entry) -> str:
    """Return a sample of the tests for an operation, with its result, or "" if there is none that is short."""
    name = entry.name.rpartition(".")[2]
    for known in operation_names(name, entry.value):
        found = samples_of(entry.name, known)
        calls = [
            (each, text) for each in found if (text := called_as(each.expression, name, known)) and "#" not in text
        ]
        for recipe, show in ((literal, "{}"), (counting, "{}"), (drawn, "{}.shape"), (drawn, "{}[0].shape")):
            texts = [evaluated(each, text, recipe, show) for each, text in calls[:8]]
            if shortest := min(filter(None, texts), key=len, default=""):
                return shortest
    return ""


# -- Pages -------------------------------------------------------------------------------------------------------------


def described(entry: Entry, seen: set[str]) -> str:
    """Return the directive of an entry."""
    docstring = documentation(entry)
    text, mark, example_text = paragraphs(docstring).partition("\n\n>>> ")
    if found := facts(entry):
        text += "\n\n" + found
    text += mark + example_text
    if ">>>" not in docstring and (found := example(entry, docstring)):
        text += "\n\n" + found
    directive = f".. py:{entry.kind}:: "
    heads = f"\n{' ' * len(directive)}".join(f"{entry.name}{each}" for each in signatures(entry))
    again = "   :no-index-entry:\n" if entry.name in seen else ""
    seen.add(entry.name)
    record_definition(entry)
    return f"{directive}{heads}\n   :module: torch\n{again}\n{textwrap.indent(text, '   ')}\n"


def page(title: str, found: Iterable[Entry], seen: set[str]) -> str:
    """Return the text of a page."""
    body = "\n".join(described(each, seen) for each in found)
    return f"{title}\n{'=' * len(title)}\n\n.. py:currentmodule:: torch\n\n{body}"


def pages() -> Iterator[tuple[str, str, list[Entry]]]:
    """Yield the file name, the title and the entries of each page."""
    for heading, prefix, found in (
        ("torch", "torch", list(entries(""))),
        ("torch.Tensor", "tensor", list(tensor_entries())),
    ):
        for key, title in FAMILIES_OF_TORCH.items():
            members = [each for each in found if family(each.value) == key]
            if members:
                yield f"{prefix}-{key.rpartition('.')[2] or 'other'}", f"{heading}: {title.lower()}", members
    for path, title in MODULES.items():
        found = list(entries(path))
        for submodule in SUBMODULES.get(path, ()):
            known = {id(each.value) for each in found}
            found += [each for each in entries(submodule) if id(each.value) not in known]
        yield path, f"torch.{path}: {title}", found


def contents(names: Iterable[str]) -> str:
    """Return a table of contents of the pages ``names`` for each of ``GROUPS``."""
    groups: dict[str, list[str]] = {caption: [] for caption in GROUPS}
    for name in names:
        first = re.split(r"[.-]", name)[0]
        caption = next((caption for caption, parts in GROUPS.items() if first in parts), list(GROUPS)[-1])
        groups[caption].append(f"   {name}\n")
    return "\n".join(
        f".. toctree::\n   :caption: {caption}\n   :maxdepth: 1\n\n{''.join(found)}"
        for caption, found in groups.items()
    )


def write_pages(app: Sphinx) -> None:
    """Write the pages into the folder ``api`` of the sources, and remove those that are not written any more."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")  # those of deprecated functions, whose examples are evaluated
    seen: set[str] = set()
    written = {"index.rst"}
    listed: list[str] = []
    for name, title, found in pages():
        update(folder / f"{name}.rst", page(title, found, seen))
        written.add(f"{name}.rst")
        listed.append(name)
    heading = "API reference"
    update(
        folder / "index.rst",
        f"{heading}\n{'=' * len(heading)}\n\nEvery public name, by module. Names are those of PyTorch; "
        "``import retrograd as torch``. :ref:`The index <genindex>` lists all of them in one alphabet.\n\n"
        + contents(listed),
    )
    for path in folder.glob("*.rst"):
        if path.name not in written:
            path.unlink()


def update(path: Path, text: str) -> None:
    """Write ``text`` if the file differs, so that Sphinx reads only what changed."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


# -- Links to the code -------------------------------------------------------------------------------------------------

#: Line ranges of the definitions, for ``sphinx.ext.viewcode``: module, full name, (kind, first line, last line).
_DEFINITIONS: dict[str, dict[str, tuple[str, int, int]]] = defaultdict(dict)


def record_definition(entry: Entry) -> None:
    """Record where the object of an entry is defined."""
    value = entry.value.fget if isinstance(entry.value, property) else entry.value
    if entry.kind == "data":
        return
    try:
        lines, first = inspect.getsourcelines(inspect.unwrap(value))
    except (TypeError, OSError, ValueError, AttributeError):
        return
    if module := source_module(value):
        kind = "class" if inspect.isclass(value) else "def"
        _DEFINITIONS[module][entry.name] = (kind, max(first, 1), first + len(lines) - 1)


def find_module(app: Sphinx, module: str, attribute: str) -> str | None:
    """Return the module below ``retrograd`` that defines ``attribute``."""
    return next((found for found, names in _DEFINITIONS.items() if attribute in names), None)


def find_source(app: Sphinx, module: str) -> tuple[str, dict[str, tuple[str, int, int]]] | None:
    """Return the text of a module and the line ranges of its definitions."""
    if module not in _DEFINITIONS:
        return None
    path = PACKAGE.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path.read_text(encoding="utf-8"), _DEFINITIONS[module]


def unlink_types(app: Sphinx, document: nodes.document) -> None:
    """Remove the links of Python's types in signatures, because ``bool`` would lead to the dtype ``torch.bool``."""
    for heading in document.findall(addnodes.desc_signature):
        for link in list(heading.findall(addnodes.pending_xref)):
            if hasattr(builtins, link["reftarget"]):
                link.replace_self(link.children)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hooks of this extension."""
    app.connect("builder-inited", write_pages)
    app.connect("doctree-read", unlink_types)
    app.connect("viewcode-follow-imported", find_module)
    app.connect("viewcode-find-source", find_source)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
