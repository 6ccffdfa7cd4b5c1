"""Checks of arguments that a function would accept although PyTorch refuses them.

Most arguments of a wrong type make a call fail, and :mod:`.argument_errors` finds PyTorch's error afterwards. A few do
not, such as ``keepdim=3``. Generated functions therefore compare the classes of their arguments with the usual ones, by
identity (``templates.unusual``). Only if an argument has another class, :func:`check_arguments` compares the arguments with
the signatures. It remembers the classes of arguments that fit.

Note [Usual arguments]: an argument is usual if it is the default value, or an instance of a class that a signature states
for the parameter. Such an argument is not compared with the signatures. A NumPy int as ``dim`` is not usual, but accepted.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NamedTuple

import numpy

from ..core.devices import device
from ..core.dtypes import as_dtype, dtype
from ..core.tensor import Tensor, layout, memory_format, sparse_layout
from ..core.torch_function import overriding_arguments
from . import signatures
from .argument_errors import GIVEN_ON, inner_arguments
from .given_arguments import as_given
from .op import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..core.typing import Function
    from .form import PublicForm
    from .typing import ArgumentList

__retrograd_call__ = True  # see user_frame.CALL_MARK


class _Every:
    """Collection that contains every class."""

    def __contains__(self, kind: object) -> bool:
        return True


EVERY = _Every()
Classes = tuple[type, ...] | _Every
#: The classes of usual arguments by the kinds in ``signatures.txt``. Lists are described by the class of their elements.
CLASSES: dict[str, Classes] = {
    "Tensor": (Tensor,), "bool": (bool,), "int": (int,), "Number": (int, float), "float": (int, float), "int[]": (),
    "dtype": (dtype,), "str": (str,), "device": (str, device), "layout": (layout,),
    "memory_format": (memory_format,), "float[]": (tuple, list), "Number[]": (tuple, list),
}  # fmt: skip
#: The classes that are remembered: those of usual arguments.
KEPT = frozenset({Tensor, bool, int, float, complex, str, type(None), tuple, list, dtype, device})
#: The classes of arguments that a signature may accept or refuse, depending on the argument.
UNCERTAIN = frozenset({Tensor, tuple, list})
#: Python functions whose arguments PyTorch checks only inside (``argument_errors.GIVEN_ON``).
PYTHON_FUNCTIONS = frozenset({
    "adaptive_max_pool1d", "affine_grid", "alpha_dropout", "celu", "ctc_loss", "dropout", "elu",
    "feature_alpha_dropout", "grid_sample", "hardshrink", "hardtanh", "istft", "leaky_relu", "lu", "max_pool1d",
    "max_pool2d", "max_pool3d", "poisson_nll_loss", "rrelu", "stft", "threshold", "unique", "unique_consecutive",
})  # fmt: skip
#: The number of combinations of classes that a function remembers.
REMEMBERED = 256


class Usual(NamedTuple):
    """The usual arguments for one parameter: Note [Usual arguments]."""

    #: The index of the parameter.
    place: int
    #: The classes of usual arguments.
    classes: tuple[type, ...]
    #: Whether a list or tuple is usual if it is empty or begins with an int.
    ints: bool
    #: Whether the default value is usual though it is not of these classes, and that value.
    optional: bool
    default: object

    @property
    def tensor(self) -> bool:
        """Whether tensors are usual."""
        return Tensor in self.classes


def signature_lines(space: str, name: str) -> list[signatures.Signature]:
    """Return the signatures with which the arguments of the function ``name`` of ``space`` are compared."""
    known = signatures.signatures(space, name)
    if not known and name in PYTHON_FUNCTIONS:
        return [signatures.Signature(GIVEN_ON[name])]
    return known


def usual_arguments(
    space: str, name: str, args: Sequence[str], defaults: Mapping[str, object], left_out: Iterable[int] = ()
) -> tuple[Usual, ...]:
    """Return what usual arguments are for the parameters of the function ``name`` of ``space``.

    ``args`` are the names of the function's arguments and ``defaults`` their default values by name. ``left_out`` are the
    indices of arguments that need no check. The object of a method is not checked either.
    """
    start = int(space == "Tensor")
    lines = [each for each in signature_lines(space, name) if not each.hidden]
    found: list[Usual] = []
    python = not signatures.signatures(space, name)
    for i, each in enumerate(args[start:], start):
        # A signature may give a parameter another name: the first argument of arange(end) is called start.
        named = [p for line in lines for p in line.parameters if p.name == each] + [
            line.parameters[i - start]
            for line in lines
            if i - start < line.positional and line.parameters[i - start].name not in args[: i + 1]
        ]
        classes = _union([CLASSES.get(p.kind, EVERY) for p in named])
        if (named or not python) and not isinstance(classes, _Every) and i not in left_out:
            if any(p.kind == "int[]" and p.single for p in named):
                classes = (*classes, int)
            required = all(p.name == each and not p.default and not p.nullable for p in named) and len(named) == len(
                lines
            )
            optional = each in defaults and defaults[each].__class__ not in classes
            optional = optional and not (required and all(line.positional > i - start for line in lines))
            if optional and isinstance(defaults[each], (int, float, str)) and defaults[each].__class__ is not bool:
                classes, optional = (*classes, defaults[each].__class__), False
            found.append(Usual(i, classes, any(p.kind == "int[]" for p in named), optional, defaults.get(each)))
    return tuple(found)


def _union(several: Iterable[Classes]) -> Classes:
    found: list[type] = []
    for each in several:
        if isinstance(each, _Every):
            return EVERY
        found.extend(each)
    return tuple(dict.fromkeys(found))


def usual_keywords(space: str, name: str, args: Sequence[str], creates: bool) -> tuple[tuple[str, Classes], ...]:
    """Return pairs (keyword, classes of usual arguments) for the keyword arguments of the function ``name`` of ``space``.

    ``args`` are the names of its positional arguments, which are left out. If ``creates`` is true, all others but
    ``layout`` and ``pin_memory`` are left out, too: a function that creates a tensor refuses other classes itself.
    """
    found: dict[str, Classes] = {}
    for each in [p for line in signatures.signatures(space, name) for p in line.parameters]:
        if each.name not in args and (each.name in ("layout", "pin_memory") or not creates):
            classes = CLASSES.get(each.kind, EVERY)
            lists = (tuple, list) if each.kind == "int[]" else ()
            nothing = (type(None),) if each.nullable or each.default == "None" else ()
            found[each.name] = _union([found.get(each.name, ()), classes, lists, nothing])
    return tuple([(key, classes) for key, classes in found.items() if classes is not EVERY])


def usual_rest(space: str, name: str) -> Classes:
    """Return the classes of usual positional arguments, without the object, of a function that has ``*args``.

    A function of separate ints, such as the sizes of ``zeros``, checks their classes itself.
    """
    lines = [each for each in signature_lines(space, name) if not each.hidden]
    taken = [p for line in lines for p in line.parameters[: line.positional]]
    if not lines or any(line.spread for line in lines):
        return EVERY
    lists = (tuple, list, int) if any("[]" in p.kind for p in taken) else ()
    nothing = (type(None),) if any(p.nullable for p in taken) else ()
    return _union([lists, nothing, *(CLASSES.get(p.kind, EVERY) for p in taken)])


def _class_of(value: object) -> object:
    """Return what decides whether a signature accepts ``value``: its class, or a tuple of further properties."""
    kind = value.__class__
    if isinstance(value, (tuple, list)):
        return tuple if isinstance(value, tuple) else list, tuple([_element_class(each) for each in value[:8]])
    if isinstance(value, Tensor):
        array = value._array  # the properties of a subclass may call functions
        return array.ndim == 0, array.size == 1, array.dtype, value._grad_edge is None
    if isinstance(value, numpy.ndarray):
        return value.ndim == 0, value.dtype.kind
    return kind if kind in KEPT else (kind.__module__, kind.__qualname__)  # a reference would keep the user's class


def _element_class(value: object) -> object:
    return value.__class__.__name__ if isinstance(value, (tuple, list)) else _class_of(value)


Fit = tuple[signatures.Signature, tuple[object, ...], dict[str, object]]


def _fit(space: str, name: str, args: tuple[object, ...], named: dict[str, object]) -> Fit | None:
    found = signatures.fitting(space, name, args, named)
    return None if found is None else (found, args, named)


def _find_fit(
    space: str, name: str, values: dict[str, object], rest: tuple[object, ...], named: dict[str, object],
    defaults: dict[str, object],
) -> Fit | None:  # fmt: skip
    """Return the signature that the arguments of a call fit, and the arguments, or None.

    The parameters have the same meaning as for :func:`check_arguments`.
    """
    given = {each: value for each, value in values.items() if value is not MISSING}
    others = {each: value for each, value in named.items() if value is not defaults.get(each, MISSING)}
    start = int(space == "Tensor")
    passed = [*given.values(), *rest]
    if start and not (passed and isinstance(passed[0], Tensor)):
        return None
    positional = tuple(passed[start:])
    while not rest and positional and positional[-1] is defaults.get([*given][len(positional) + start - 1], MISSING):
        positional = positional[:-1]
    fit = _fit(space, name, positional, others) or _fit(space, name, tuple(passed[start:]), others)
    if fit is None and not rest:  # an argument before others that has its default value was perhaps not passed
        names = [*given][start : start + len(positional)]
        changed = [each for each in names if given[each] is not defaults.get(each, MISSING)]
        first = next((k for k, each in enumerate(names) if given[each] is defaults.get(each, MISSING)), len(names))
        later = {each: given[each] for each in changed if each in names[first:]}
        fit = _fit(space, name, positional[:first], {**later, **others}) if later else None
    if fit is None:
        args, keywords = as_given(values, rest, named, defaults, 1, bool(start), False)
        fit = _fit(space, name, args[start:], keywords)
    return fit


def _plain(kind: str, value: object) -> object:
    """Return the argument ``value`` for a parameter of this kind converted to a plain int, float, list or dtype.

    PyTorch's parser converts NumPy scalars and 0-d tensors, so that a function need not accept them.
    """
    if kind == "int[]" and isinstance(value, (tuple, list)):
        return value if all(each.__class__ is int for each in value) else [_plain("int", each) for each in value]
    if kind in ("int", "int[]"):
        if isinstance(value, Tensor):
            return int(value.item()) if value.__class__ is Tensor else value
        return operator.index(value) if value.__class__ is not int and hasattr(value, "__index__") else value
    if kind == "float" and value.__class__ not in (int, float):
        if isinstance(value, Tensor):
            return value.item() if value.__class__ is Tensor else value
        if isinstance(value, (numpy.floating, numpy.integer)):
            return float(value)
    if kind in ("Number", "float") and isinstance(value, (int, float)) and value.__class__ not in (bool, int, float):
        return float(value) if isinstance(value, float) else int(value)
    if value.__class__ is sparse_layout and kind == "layout":
        raise NotImplementedError(
            f"layout={value} is not implemented for this function. Remedy: create the tensor by torch.sparse_coo_tensor() "
            "or another function of docs/sparse.md, or convert it by to_sparse()."
        )
    return as_dtype(value) if kind == "dtype" and isinstance(value, type) else value


def check_arguments(
    space: str, name: str, values: dict[str, object], rest: tuple[object, ...], named: dict[str, object],
    defaults: dict[str, object], fitting: dict[object, bool], target: Function | None = None,
) -> dict[int, object]:  # fmt: skip
    """Raise TypeError if the arguments of a call fit no signature of the function ``name`` of ``space``.

    The error has no text, because the function that was called finds it. The result is a dict from the ``id`` of arguments
    to those that :func:`_plain` returns instead. The other parameters have the same meaning as for
    :func:`.argument_errors.explain`. ``fitting`` has the combinations of classes that fit, to which this call may be added,
    with whether arguments are to be replaced, and ``target`` is the Python function that is called, or None.
    """
    key = (*map(_class_of, values.values()), *map(_class_of, rest), *named, *map(_class_of, named.values()))
    if fitting.get(key) is False:
        return {}
    if signatures.signatures(space, name):
        fit = _find_fit(space, name, values, rest, named, defaults)
        if fit is None:
            raise TypeError
        line, args, keywords = fit
        pairs = [*zip(line.kinds(len(args)), args, strict=False)]
        pairs += [(each.kind, keywords[k]) for each in line.parameters if (k := each.find(keywords)) is not None]
    elif target is not None and name in PYTHON_FUNCTIONS and not any(v is MISSING for v in values.values()):
        inner = inner_arguments(name, target, (*values.values(), *rest), named)
        if inner is None:
            raise TypeError
        pairs = inner
    else:
        return {}
    found = {id(value): plain for kind, value in pairs if (plain := _plain(kind, value)) is not value}
    if len(fitting) < REMEMBERED:
        fitting[key] = bool(found)
    return found


def use_numpy_names(
    form: PublicForm, args: ArgumentList, unknown: dict[str, object]
) -> tuple[ArgumentList, dict[str, object]]:
    """Return the arguments of a call of a public wrapper with PyTorch's names of parameters in place of NumPy's.

    Raise TypeError, without a text, if an argument is passed by both names. If the class of an argument may override the
    call, the arguments are returned unchanged: the class gets them as they were passed. The parameters have the same
    meaning as for ``templates.public``.
    """
    if overriding_arguments((*args, *unknown.values()), Tensor):
        return args, unknown
    if form.space == "Tensor" and "axis" in unknown and unknown.get("out", MISSING) is None:
        raise TypeError  # ``numpy.sum(x)`` calls ``x.sum(axis=None, out=None)``: see call_errors._as_numpy_calls
    named = {}
    for key, value in unknown.items():
        i = form.numpy_names.get(key, key)
        if isinstance(i, str):
            if i in named or (i is not key and i in unknown):
                raise TypeError
            named[i] = value
        elif args[i] is not form.passed_defaults.get(form.args[i], MISSING):
            raise TypeError
        else:
            args[i] = value
    return args, named


def check_call(
    form: PublicForm, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object]
) -> tuple[ArgumentList, tuple[object, ...], dict[str, object]]:
    """Return the arguments of a call of a public wrapper, of plain classes: ``args``, ``rest`` and ``unknown``.

    Raise TypeError, without a text, if they fit no signature. ``form`` describes the wrapper, whose other parameters have
    the same meaning as for ``templates.public``.
    """
    values = dict(zip(form.args, args, strict=True))
    found = check_arguments(
        form.space, form.name, values, rest, unknown, form.passed_defaults, form.fitting, form.target
    )
    if not found:
        return args, rest, unknown
    return (
        [found.get(id(each), each) for each in args],
        tuple([found.get(id(each), each) for each in rest]),
        {key: found.get(id(each), each) for key, each in unknown.items()},
    )
