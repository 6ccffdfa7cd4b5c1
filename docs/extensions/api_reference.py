"""Write the API reference from the package itself: a page for each family of names, an entry for each public name.

The pages are written to ``docs/api/`` when a build begins, and are not part of the repository. An entry consists of the
signature, the docstring and a link to the code. If the docstring has no example, the entry gets one from ``TEMPLATES``,
from the original of an alias, or from the samples of the tests (``tests/conformance/samples``), evaluated while the page
is written.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import io
import re
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring

import retrograd
from tests.conformance.samples import FAMILIES, Sample, samples

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
    "hub": "Models of a repository",
    "overrides": "Overriding functions",
}  # fmt: skip
#: Groups of pages in the contents: a caption, and the first parts of the modules' names. The rest is the last group.
GROUPS = {
    "Functions of torch": ("torch",),
    "Methods of torch.Tensor": ("tensor",),
    "Gradients and transforms": ("autograd", "func"),
    "Neural networks and training": ("nn", "optim", "utils", "amp"),
    "Mathematics": ("linalg", "fft", "special", "signal", "sparse", "random", "distributions"),
    "Several processes": ("distributed",),
    "Programs, operators and tools": (),
}
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
    names = getattr(module, "__all__", None) or sorted(name for name in dir(module) if not name.startswith("_"))
    return list(dict.fromkeys(names))


def kind_of(value: Any) -> str | None:
    """Return the directive for a value, or None if it has no entry."""
    if inspect.ismodule(value):
        return None
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) else None


def entries(path: str) -> Iterator[Entry]:
    """Yield the entries of the module ``path`` below ``retrograd``."""
    module = importlib.import_module(f"retrograd.{path}" if path else "retrograd")
    for name in public_names(module):
        value = getattr(module, name, None)
        if (kind := kind_of(value)) and inspect.getdoc(value):
            yield Entry(f"{path}.{name}" if path else name, value, kind)


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


def signature(entry: Entry) -> str:
    """Return the signature of an entry as text, without ``self`` for methods."""
    if entry.kind in ("attribute", "exception"):
        return ""
    try:
        found = inspect.signature(entry.value)
    except (TypeError, ValueError):
        return "(...)"
    if entry.kind == "method":
        found = found.replace(parameters=list(found.parameters.values())[1:])
    text = str(found).replace("retrograd.", "torch.")
    return re.sub(r"<([^<>]*?)( at 0x\w+)?>", lambda each: "..." if each[2] else each[1], text)


# -- Examples ----------------------------------------------------------------------------------------------------------


@functools.cache
def samples_by_operation() -> dict[str, list[Sample]]:
    """Return the samples of all families by the name of their operation."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for name in FAMILIES:
        for each in samples(name):
            found[each.op].append(each)
    return found


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


_MATRIX = "x = torch.tensor([[1, 2], [3, 4]])"
_VOLUME = "x = torch.arange(8.0).reshape(1, 2, 2, 2)"
_SEED = "_ = torch.manual_seed(0)"
#: Examples of the families of names whose docstrings are written by a template: a pattern of the full names, and the
#: statements of the example. ``{name}`` is the last part of the name, ``{0}`` is the pattern's first group.
TEMPLATES: dict[str, tuple[str, ...]] = {
    r"Tensor\.(?:bool|byte|char|short|int|long|half|bfloat16|float|double|chalf|cfloat|cdouble)": (
        "torch.tensor([0, 2]).{name}()",
    ),
    r"\w+Tensor": ("torch.{name}([0, 1])",),
    r"(?:zeros|ones)_like": (_MATRIX, "torch.{name}(x)"),
    r"empty_like": (_MATRIX, "torch.{name}(x).shape"),
    r"randn?": (_SEED, "torch.{name}(2, 3)"),
    r"randn?_like": (_SEED, "torch.{name}(torch.zeros(2, 3))"),
    r"Tensor\.new_(?:zeros|ones)": (_MATRIX, "x.{name}(3)"),
    r"Tensor\.new_empty": (_MATRIX, "x.{name}(3).dtype"),
    r"Tensor\.geometric_": (_SEED, "torch.empty(5).{name}(0.5)"),
    r"atleast_[23]d": ("torch.{name}(torch.tensor([1, 2]))",),
    r"(?:Tensor\.)?[vd]split": ("x = torch.zeros(2, 3, 4)", "[part.shape for part in x.{name}(2)]"),
    r"(?:alias|diagonal|squeeze|t|unbind)_copy": (_MATRIX, "torch.{name}(x)"),
    r"(?:transpose|select)_copy": (_MATRIX, "torch.{name}(x, 0, 1)"),
    r"(?:split|unsqueeze)_copy": (_MATRIX, "torch.{name}(x, 1)"),
    r"split_with_sizes_copy": (_MATRIX, "torch.{name}(x, [1, 1])"),
    r"permute_copy": (_MATRIX, "torch.{name}(x, (1, 0))"),
    r"(?:expand|view)_copy": (_MATRIX, "torch.{name}(x, (1, 2, 2))"),
    r"slice_copy": (_MATRIX, "torch.{name}(x, 0, 0, 1)"),
    r"unfold_copy": (_MATRIX, "torch.{name}(x, 1, 2, 1)"),
    r"as_strided_copy": (_MATRIX, "torch.{name}(x, (2, 2), (1, 2))"),
    r"view_as_real_copy": ("torch.{name}(torch.tensor([1 + 2j]))",),
    r"Tensor\.(?:T|mT)": (_MATRIX, "x.{name}"),
    r"Tensor\.(?:H|mH|real)": ("x = torch.tensor([[1 + 2j, 3 - 4j]])", "x.{name}"),
    r"Tensor\.(?:swapaxes|swapdims)_": (_MATRIX, "x.{name}(0, 1)"),
    r"Tensor\.t_": (_MATRIX, "x.{name}()"),
    r"Tensor\.absolute_": ("torch.tensor([-1.0, 2.0]).{name}()",),
    r"Tensor\.logical_not_": ("torch.tensor([True, False]).{name}()",),
    r"Tensor\.bitwise_(?:left|right)_shift_": ("torch.tensor([4, 8]).{name}(1)",),
    r"Tensor\.float_power_": ("torch.tensor([2.0, 3.0], dtype=torch.float64).{name}(2)",),
    r"Tensor\.apply_": ("torch.tensor([1.0, 2.0]).{name}(lambda x: x + 1)",),
    r"Tensor\.map_": ("torch.tensor([1.0, 2.0]).{name}(torch.tensor([10.0, 20.0]), lambda x, y: x + y)",),
    r"Tensor\.map2_": ("x = torch.tensor([1.0, 2.0])", "x.{name}(x, x, lambda x, y, z: x + y * z)"),
    r"Tensor\.(?:crow|col)_indices": (_MATRIX, "x.to_sparse_csr().{name}()"),
    r"Tensor\.(?:ccol|row)_indices": (_MATRIX, "x.to_sparse_csc().{name}()"),
    r"Tensor\.(?:grad_dtype|is_(?:cpu|cuda|meta|sparse|sparse_csr|nested|quantized))": (_MATRIX, "x.{name}"),
    r"(?:feature_)?(?:alpha_)?dropout_?": (_SEED, "torch.{name}(torch.ones(1, 4, 2), 0.5, True)[0]"),
    r"nn\.functional\.hardtanh_": ("torch.nn.functional.{name}(torch.tensor([-2.0, 0.5]))",),
    r"(nn\.functional\.)?max_pool1d_with_indices": ("torch.{0}{name}(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)",),
    r"nn\.functional\.(?:adaptive_)?max_pool3d_with_indices": (_VOLUME, "torch.nn.functional.{name}(x, 2)"),
    r"nn\.functional\.adaptive_max_pool[12]d_with_indices": (_VOLUME, "torch.nn.functional.{name}(x[0], 1)"),
    r"nn\.functional\.max_pool2d_with_indices": (_VOLUME, "torch.nn.functional.{name}(x[0], 2)"),
    r"nn\.functional\.fractional_max_pool[23]d_with_indices": (
        "x = torch.ones(1, 4, 4, 4)", "torch.nn.functional.{name}(x, 2, output_size=2)[0].shape",
    ),
    r"nn\.\w+Pad1d": ("torch.nn.{name}((1, 2))(torch.tensor([[1.0, 2.0, 3.0]]))",),
    r"nn\.\w+Pad2d": ("torch.nn.{name}((1, 0, 1, 0))(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]))",),
    r"nn\.\w+Pad3d": ("torch.nn.{name}(1)(torch.ones(1, 1, 2, 3, 4)).shape",),
    r"signal\.windows\.\w+": ("torch.signal.windows.{name}(5)[1:4]",),
}  # fmt: skip


def session(statements: Iterable[str]) -> str:
    """Return the lines of an interactive session: each statement with the text that it prints."""
    names = {"torch": retrograd}
    lines = []
    for each in statements:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(each, "<example>", "single"), names)
        lines += [f">>> {each}", *(line or "<BLANKLINE>" for line in printed.getvalue().splitlines())]
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
    operation = getattr(inspect.unwrap(entry.value), "__name__", name)
    for known in dict.fromkeys((name, name.removesuffix("_"), operation, operation.removesuffix("_"))):
        found = samples_by_operation().get(known, ())
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
    value = entry.value.fget if isinstance(entry.value, property) else entry.value
    docstring = inspect.getdoc(value) or inspect.getdoc(entry.value) or ""
    text = paragraphs(docstring)
    if ">>>" not in docstring and (found := example(entry, docstring)):
        text += "\n\n" + found
    again = "   :no-index-entry:\n" if entry.name in seen else ""
    seen.add(entry.name)
    record_definition(entry)
    return f".. py:{entry.kind}:: {entry.name}{signature(entry)}\n   :module: torch\n{again}\n{textwrap.indent(text, '   ')}\n"


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
        yield path, f"torch.{path}: {title}", list(entries(path))


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


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hooks of this extension."""
    app.connect("builder-inited", write_pages)
    app.connect("viewcode-follow-imported", find_module)
    app.connect("viewcode-find-source", find_source)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
