"""``Form`` and other classes that describe one function whose code is generated from a template.

A template (``dispatch/templates.py``) has such a description as its first parameter. An operation has several
functions: the one that only the package calls, those that users call (function, method, operator, in-place method), and
one for each Python function with a fast path, which runs the operation directly.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from ..kernels.numba_dispatch import for_ufunc, stretched
from ..runtime.cached_property import cached_property
from ..runtime.specialization import lambda_tree
from . import argument_checks, signatures
from .fallback import PASSED
from .given_arguments import ArgumentReader
from .kernel_traits import supported_dtypes, ufunc_of
from .node_classes import all_results_class, node_class, uses_arithmetic
from .op import MISSING, arguments, is_shared
from .operand_promotion import annotated_numbers

if TYPE_CHECKING:
    from ..core.typing import Args, Function, Kwargs
    from .op import Op, Saved
    from .typing import ArgumentList, DeclaredFunction, GivenByName, ParameterSource, ResultClass, Rules, Sharing, Slow

#: ``result_class`` of a fast path that returns only the first result of its operation.
FIRST = "first"
#: Values in ``fixed``: the parameter is a dimension (of the operand, or a new one); negative ones are normalised for the
#: operation.
AXIS, NEW_AXIS = "axis", "new axis"
#: Kinds of parameters besides AXIS, NEW_AXIS and PASSED: computed from arguments, a constant.
COMPUTED, CONSTANT = "computed", "constant"
#: The ``public`` kind of operators, which take operands and no other arguments.
OPERATOR = "operator"
#: Parameters that are numbers, for which PyTorch accepts a 0-d tensor.
NUMBERS_SAVED = frozenset({"alpha", "beta", "correction", "eps", "max_val", "min_val", "number", "value"})
#: The numbers in ``Form.sources`` of the first operand's dtype and of the first parameter.
DTYPE, PARAMETERS = -1, -2


class FastPathSpec:
    """Fast path of the Python function ``surface``: for common arguments, the operation ``op`` is called directly.

    The arguments of the constructor, of which several are arguments of ``declare.public`` under other names:

    op        the record of the operation (an ``Op``)
    surface   the public Python function; it is the fallback if the fast path does not apply
    when      a function of some arguments of ``surface``; the fast path applies only if it returns true, or is None
    if_arrays such a function of operands (as arrays), parameters of ``op`` and ``_d``, the dtype of the first array
    inline    if true, the fast path applies only if ``op.inline``, a faster variant of the kernel, supports the arguments
    fixed     a dictionary from names of parameters of ``op`` to their values. An item may also be AXIS or NEW_AXIS for
              a dimension, the name of an argument of ``surface``, or a function that computes the value from the first
              array and the arguments of ``surface`` with the names of its parameters (from the tuple of ``*args`` if
              ``surface`` has it); if the function returns None, the fast path does not apply
    gives     the tuple class of several results, or FIRST: only the first result is returned
    operands  the names of the arguments of ``surface`` that are the tensors of ``op``; the first ones by default
    other     the fast path to try if this one does not apply
    over      if true, the result is written into the first operand
    itself    a function like ``if_arrays``, or None; if it returns true, the result is the first operand itself
    """

    def __init__(
        self, op: Op, surface: Function, when: Function | None, if_arrays: Function | None, inline: bool,
        fixed: dict[str, object], gives: ResultClass = None, operands: Sequence[str] = (), other: FastPathSpec | None = None,
        over: bool = False, itself: Function | None = None,
    ) -> None:  # fmt: skip
        code = surface.__code__
        self.op, self.fixed, self.gives, self.other, self.over = op, fixed, gives, other, over
        self.when, self.if_arrays, self.inline, self.itself = when, if_arrays, inline, itself
        self.target = self.surface = surface  # surface: the fallback if the fast path does not apply
        count = code.co_argcount + code.co_kwonlyargcount
        self.names: tuple[str, ...] = code.co_varnames[:count]
        self.spread = bool(code.co_flags & inspect.CO_VARARGS)
        self.named = bool(code.co_flags & inspect.CO_VARKEYWORDS)
        self.positional: int = code.co_argcount
        self.operands = tuple(operands) or self.names[: len(op.tensors)]
        given = surface.__defaults__ or ()
        self.defaults: dict[str, object] = dict(zip(self.names[code.co_argcount - len(given) :], given, strict=False))
        self.defaults.update(surface.__kwdefaults__ or {})

    def behind(self, surface: Function) -> FastPathSpec:
        """Return a copy of this fast path with another fallback ``surface``, a function with the same arguments."""
        made = copy(self)
        made.surface = surface
        return made

    def before_operator(self, surface: Function) -> FastPathSpec:
        """Return a copy for an operator method, which has only positional arguments and the fallback ``surface``."""
        made = self.behind(surface)
        made.names = self.names[: self.positional]
        return made

    def read(self) -> set[str]:
        """Return the names of the Python function's arguments that the operation or the condition ``when`` uses."""
        found = [each for value in self.fixed.values() if inspect.isfunction(value) for each in arguments(value)]
        found += [value for value in self.fixed.values() if value.__class__ is str]
        return {*self.operands, *self.op.params, *found, *arguments(self.when)}

    def for_users(self) -> FastPathSpec:
        """Return a copy for a public function, without the keyword-only arguments that the operation does not use.

        The public function collects them in ``**unknown``, because they are passed rarely, and each parameter with a
        default makes every call 7 ns slower.
        """
        made, ours = copy(self), self.read()
        made.names = tuple([each for k, each in enumerate(self.names) if k < self.positional or each in ours])
        return made


class FunctionForm:
    """Base class of the descriptions of generated functions; its attributes describe the function's parameters.

    name               the name of the function
    args               the names of the named parameters
    positional         how many of them are positional; the others are keyword-only
    argument_defaults  a dictionary of default values by name
    accepts_missing    whether parameters without a default get the default MISSING, so that PyTorch's error is raised
                       for a missing argument
    has_rest, has_unknown, takes_out   whether there are parameters ``*rest``, ``**unknown`` and ``out``
    """

    #: Whether the function takes arrays on a GPU, and the function for them of one that takes arrays on the CPU.
    on_gpu = False
    device_call: Function | None = None
    args: tuple[str, ...]
    positional: int
    name: str
    argument_defaults: dict[str, object]
    accepts_missing = has_rest = has_unknown = takes_out = over = False
    tree: Callable[[], ast.FunctionDef]
    #: The generated function.
    function: DeclaredFunction = None
    #: Function that puts a compiled function in its place, or None.
    replace: Callable[[Function], None] | None = None
    #: Function of the parts of a call that returns positional and keyword arguments for an equal call.
    call: Callable[..., tuple[Args, Kwargs]]

    def signature(self) -> ast.arguments:
        """Return the parameters of the generated function.

        A default value is the name of a global variable, whose value is in :meth:`default_values`.
        """
        args = [ast.arg(each) for each in self.args]
        defaults: list[Any] = [
            ast.Name(f"default_{each}", ast.Load()) if each in self.argument_defaults
            else ast.Name("MISSING", ast.Load()) if self.accepts_missing else None
            for each in self.args
        ]  # fmt: skip
        free, keywords = args[: self.positional], args[self.positional :]
        given, named = [each for each in defaults[: self.positional] if each is not None], defaults[self.positional :]
        if self.takes_out:
            keywords, named = [*keywords, ast.arg("out")], [*named, ast.Constant(None)]
        rest, unknown = (
            ast.arg("rest") if self.has_rest else None,
            ast.arg("unknown") if self.has_unknown else None,
        )
        return ast.arguments([], free, rest, keywords, named, unknown, given)

    def parts(self) -> dict[str, list[str] | ast.expr]:
        """Return a dictionary from parameters of the template to their replacements in the generated function.

        The parameter ``args`` is replaced by the names of the function's parameters. A parameter that the function does
        not have is replaced by a constant: ``rest`` by ``()``, ``unknown`` by ``{}``, and ``out`` by None.
        """
        found: dict[str, Any] = {"args": list(self.args)}
        if not self.has_rest:
            found["rest"] = ast.Tuple([], ast.Load())
        if not self.has_unknown:
            found["unknown"] = ast.Dict([], [])
        if not self.takes_out:
            found["out"] = ast.Constant(None)
        return found

    def default_values(self) -> dict[str, object]:
        """Return a dictionary of the globals in which the generated function finds its default values."""
        return {"MISSING": MISSING, **{f"default_{each}": value for each, value in self.argument_defaults.items()}}


class Form(FunctionForm):
    """Description of one function that calls the operation ``op``; its code is generated from a template.

    op      the operation
    slow    the fallback for calls that the generated code does not support
    spec    the :class:`FastPathSpec` for the fast path of a Python function; None for a function that has the arguments
            of the operation
    public  "function" or "method" for a function that users call, "operator" for an operator, which has no parameters
            besides its operands, and "" for a function that only the package calls
    over    whether the result is written into the first operand
    name    the function's name, and ``space`` its namespace (for errors)

    Attributes that the templates read: ``args`` are the names of the function's parameters, and ``operands`` the
    indices in ``args`` of the operation's tensors. ``parameters`` has a tuple (index, kind,
    source, indices) for each parameter of the operation. The kind ``CONSTANT`` means that the source is the value.
    ``COMPUTED`` means that it is a function that computes the value from the arguments at ``indices`` in ``args``
    (-1 - j is parameter j of the operation). For all other kinds the source is an index in ``args``.
    """

    def __init__(
        self, op: Op, slow: Slow, spec: FastPathSpec | None, public: str, over: bool, name: str, space: str = "torch",
    ) -> None:  # fmt: skip
        wrapped = self.wrapped = self.accepts_missing = public not in ("", OPERATOR)
        if spec is not None and wrapped:
            spec = spec.for_users()
        self.op, self.slow, self.spec, self.public, self.over, self.name, self.space = (
            op, slow, spec, public, over, name, space,
        )  # fmt: skip
        self.count = len(op.tensors)
        self.target = None if spec is None else spec.target
        self.indices = tuple(range(self.count))
        self.pointwise, self.general, self.view = (op.kind == each for each in ("pointwise", "general", "view"))
        self.takes_number = tuple([self.pointwise and bool(op.numbers) and i > 0 for i in self.indices])
        self.optional = tuple([not over and each in op.optional for each in op.tensors])
        self.results = max(len(op.outputs), 1)
        gives = None if spec is None else spec.gives
        self.result_class = None if gives is FIRST else gives
        self.shown = 1 if gives is FIRST else self.results
        self.records = op.has_rules and op.result is None
        self.single = not op.several and (not op.outputs or op.differentiable == 1)
        if op.ufunc is None and op.united is None:
            op.ufunc, op.united = ufunc_of(op), {}
            op.dtypes = supported_dtypes(op)
        self.ufunc, self.dtypes = op.ufunc, op.dtypes
        self.refuses_floats = op.refuses is not None and "f" in op.refuses[1]
        self.parallel_ufunc = for_ufunc(op.ufunc)
        self.threaded_kernel = stretched(op.kernel, self.count)
        self._set_arguments(wrapped)
        self._set_parameters()
        self.modifies = not (op.several or op.outputs or self.view or op.result is not None)
        rules = op.rules
        self.one_rule = not over and all(rule is None for rule in rules[1:])
        self.has_edge = tuple([rule is not None or i == 0 for i, rule in enumerate(rules)])
        self.further = () if op.several else range(1, self.shown)[: (op.differentiable or self.shown) - 1]
        self.saved = op.saved()
        held = {each.index for each in self.saved if each.kind == "tensor"}
        self.saves_first, self.saved_operands = 0 in held, tuple([i for i in held if i])
        self.node = all_results_class(op, in_place=over)
        self.lone_nodes = [node_class(op, in_place=over, only=i) for i in self.indices if i == 0 or self.count < 3]

    def _set_arguments(self, wrapped: bool) -> None:
        """Set the attributes that describe the function's arguments, such as ``args`` and ``operands``.

        ``wrapped`` is true for a function or method that users call. It accepts further arguments as ``*rest``, for
        which it raises PyTorch's errors.
        """
        op, spec = self.op, self.spec
        if spec is None:
            names = [{"self": "input"}.get(each, each) for each in op.tensors]
            self.args = (*names, *op.params) if self.public != OPERATOR else tuple(names)
            self.positional = self.count + op.positional
            self.operands = self.indices
            self.argument_defaults = op.defaults
            self.takes_out, self.spread, named = self.public == "function" and not self.over, False, False
            self.ignored: tuple[tuple[int, object], ...] = ()
        else:
            self.args, self.positional = spec.names, spec.positional
            self.operands = tuple([self.args.index(each) for each in spec.operands])
            self.argument_defaults = spec.defaults
            self.takes_out, self.spread, named = False, spec.spread, spec.named
            ours = spec.read()
            self.ignored = tuple([(i, spec.defaults[each]) for i, each in enumerate(self.args) if each not in ours])
        if self.public == OPERATOR:
            self.argument_defaults = {}
        self.has_rest = wrapped or self.spread
        self.has_unknown = named or (wrapped and (spec is not None or self._has_numpy_names()))
        self.takes_rest, self.takes_unknown = self.has_rest and not self.spread, self.has_unknown
        self.keywords = self.args[self.positional :]
        #: Whether all arguments are positional and required.
        self.exact = not (self.argument_defaults or self.keywords or wrapped or self.spread or named)
        self.by_value = {i: default.__class__ in (int, float, str) for i, default in self.ignored}
        known = signatures.numbers("torch", op.shown) | annotated_numbers(op.kernel) if wrapped else frozenset()
        self.numbers = tuple([i for i, each in enumerate(self.args) if each in known and each in op.params])
        if spec is not None:
            self.numbers = tuple([i for i in self.numbers if self.args[i] not in spec.fixed])
        self.checked = self._checked() if wrapped else ()
        self.when = None if spec is None else spec.when
        self.when_arguments = tuple([self.args.index(each) for each in arguments(self.when)])

    def _has_numpy_names(self) -> bool:
        """Whether a parameter that can be passed by keyword has another name in NumPy, such as ``axis`` for ``dim``."""
        return not signatures.OTHER_NAMES.keys().isdisjoint(self.args[1:] if self.public == "method" else self.args)

    def _checked(self) -> tuple[argument_checks.Usual, ...]:
        """Return what usual arguments are for the parameters that are compared with them.

        These are the parameters that are no operands and no dimensions, which the template checks anyway.
        """
        fixed = {} if self.spec is None else self.spec.fixed
        axes = [self.args.index(each) for each, value in fixed.items() if value in (AXIS, NEW_AXIS)]
        left = {*self.operands, *axes, *(i for i, _ in self.ignored)}
        return argument_checks.usual_arguments(self.space, self.name, self.args, self.argument_defaults, left)

    def _set_parameters(self) -> None:
        """Set the attributes from which code for the operation's parameters and kernel is generated.

        A parameter is an argument without a gradient, such as ``dim``. The attribute ``parameters`` describes for each
        parameter whether it is passed by the caller, computed or constant.

        The declaration of an operation may have two lambda expressions: ``inline``, a short form of the kernel, and
        ``write``, a short form of the in-place operation. The attributes for them are set too.
        """
        op, fixed = self.op, {} if self.spec is None else self.spec.fixed
        self.parameters: list[tuple[int, str, ParameterSource, tuple[int, ...]]] = []
        for j, each in enumerate(op.params):
            value = fixed.get(each, MISSING)
            if value is not MISSING and value.__class__ is str and value in (AXIS, NEW_AXIS):
                self.parameters.append((j, value, self.args.index(each), ()))
            elif value.__class__ is str:
                self.parameters.append((j, PASSED, self.args.index(value), ()))
            elif value is not MISSING and inspect.isfunction(value):
                names = () if self.spread else arguments(value)[1:]
                given = [self.args.index(name) if name in self.args else -1 - op.params.index(name) for name in names]
                self.parameters.append((j, COMPUTED, value, tuple(given)))
            elif value is not MISSING:
                self.parameters.append((j, CONSTANT, value, ()))
            elif each in self.args:
                self.parameters.append((j, PASSED, self.args.index(each), ()))
            else:
                self.parameters.append((j, CONSTANT, op.defaults[each], ()))
        varies = [j for j, kind, _, _ in self.parameters if kind != CONSTANT]
        values = [(j, op.defaults[op.params[j]]) for j in varies if op.params[j] in op.defaults]
        #: The index of a parameter with a default value, this value, and whether only an int equals it.
        self.defaults = tuple([(j, default, default.__class__ is int) for j, default in values])
        # A 0-d tensor as such a parameter is converted by the fallback, because rules need the number.
        numbers = [j for j in varies if op.params[j] in NUMBERS_SAVED or self.pointwise]
        self.number_parameters = tuple(numbers) if op.ufunc is None else ()
        self.ufunc_parameters = tuple(numbers) if op.ufunc is not None else ()
        self.inline, self.inline_arguments = op.inline, self.sources(op.inline)
        self.inline_declines = op.inline is not None and _declines(op.inline)
        self.inline_only = self.spec is not None and self.spec.inline
        write: tuple[Any, ...] = (*(op.over or ()), None, None, None, None)
        self.write_if, self.write, self.write_ufunc, self.write_large = write[:4]
        self.write_if_arguments, self.write_arguments = self.sources(self.write_if), self.sources(self.write)
        self.write_large_arguments = self.sources(self.write_large)
        self.if_arrays = None if self.spec is None else self.spec.if_arrays
        self.array_arguments = self.sources(self.if_arrays)
        self.identity_if = None if self.spec is None else self.spec.itself
        self.identity_arguments = self.sources(self.identity_if)

    def sources(self, function: Function | None) -> tuple[int, ...]:
        """Return for each parameter of ``function`` a number that identifies the value passed to it.

        ``function`` is a variant of the kernel or a condition, which a generated function calls. ``templates.picked``
        returns the value for a number. The number is i >= 0 for operand i, -1 for the parameter
        ``_d`` (the dtype of the first operand), and -2 - j for parameter j of the operation.
        """
        places = {each: i for i, each in enumerate(self.op.tensors)}
        places |= {each: PARAMETERS - j for j, each in enumerate(self.op.params)}
        places["_d"] = DTYPE
        return tuple([places[each] for each in arguments(function)])

    def for_gpu(self) -> Form:
        """Return the description of a function with the same arguments that takes arrays on a GPU."""
        made = copy(self)
        made.on_gpu, made.device_call, made.function = True, None, None
        made.__dict__.pop("reader", None)
        return made

    @cached_property
    def reader(self) -> ArgumentReader:
        """Reader of the arguments of the function's calls, for handlers."""
        return ArgumentReader(
            self.function, self.args, self.positional, self.argument_defaults, self.space == "Tensor", self.exact
        )

    def call(
        self, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object], out: object
    ) -> tuple[Args, Kwargs]:
        """Return positional and keyword arguments for a call that is equal to the one with the given parts."""
        named = unknown
        if self.keywords:
            named = {**dict(zip(self.keywords, args[self.positional :], strict=True)), **unknown}
        if out is not None:
            named = {**named, "out": out}
        return (*args[: self.positional], *rest), named

    def given(self, args: ArgumentList, unknown: dict[str, object], out: object) -> GivenByName:
        """Return three dictionaries by name: positional arguments of a call, its keyword arguments, and all defaults.

        ``args`` are the values of the function's named parameters, ``unknown`` further keyword arguments, and ``out``
        is the argument ``out=``.
        """
        values = dict(zip(self.args[: self.positional], args, strict=False))
        named = {**dict(zip(self.keywords, args[self.positional :], strict=True)), **(unknown or {})}
        defaults = dict(self.argument_defaults)
        if self.takes_out:
            named["out"], defaults["out"] = out, None
        elif self.space == "Tensor":  # methods have no out=, so that even out=None is an error
            defaults.pop("out", None)
        return values, named, defaults


def _declines(function: Function) -> bool:
    """Whether ``function``, a variant of a kernel, may return None, which means that the variant does not apply.

    This is the case if the lambda expression ends with ``else None``, or if its source is not available.
    """
    tree = lambda_tree(function)
    if tree is None:
        return True
    body = tree.body
    return isinstance(body, ast.IfExp) and isinstance(body.orelse, ast.Constant) and body.orelse.value is None


#: Values of ``PublicForm.out``: a method, which has no ``out=``; a positional parameter; a keyword.
METHOD, POSITIONAL, KEYWORD = "method", "positional", "keyword"


class PublicForm(FunctionForm):
    """Description of the public wrapper of the Python function ``target``, called ``name`` in the namespace ``space``.

    If ``fallback`` is true, the wrapper is the fallback of a generated function. The generated function has already
    passed the call to the active handlers, which are objects that intercept calls.
    """

    def __init__(self, target: Function, space: str, name: str, fallback: bool = False) -> None:
        self.target, self.space, self.name, self.fallback = target, space, name, fallback
        self.wrapped = self.accepts_missing = self.has_rest = self.has_unknown = True
        self.exact = False
        code = target.__code__
        spread = code.co_flags & inspect.CO_VARARGS  # a target with *args gets the positional arguments as they are
        self.args: tuple[str, ...] = () if spread else code.co_varnames[: code.co_argcount]
        given = () if spread else target.__defaults__ or ()
        defaults = dict(zip(self.args[len(self.args) - len(given) :], given, strict=True))
        self.argument_defaults = {**defaults, **(target.__kwdefaults__ or {})}
        # Methods have no out=, so that even out=None is an error.
        self.passed_defaults = {
            each: value for each, value in self.argument_defaults.items() if each != "out" or space != "Tensor"
        }
        self.positional = len(self.args)
        self.array_factory = getattr(target, "common", None)
        self.fast_function = getattr(target, "fast_function", None)
        #: NumPy's names of parameters, each with the index of the parameter in ``args``, or with its name.
        self.numpy_names: dict[str, int | str] = {
            other: self.args.index(each) if each in self.args else each
            for other, each in signatures.numpy_names(space, name).items()
            if self.args and other not in self.argument_defaults and other not in self.args
        }
        self.required = tuple([i for i, each in enumerate(self.args) if each not in defaults])
        self.loose = bool(code.co_flags & inspect.CO_VARKEYWORDS)
        self.keywords = frozenset(target.__kwdefaults__ or ())
        known = signatures.numbers(space, name) | annotated_numbers(target)
        self.numbers = tuple([i for i, each in enumerate(self.args) if each in known])
        self.number_keywords = sorted(known.difference(self.args).intersection(self.keywords))
        #: What usual arguments are: Note [Usual arguments].
        self.checked = argument_checks.usual_arguments(space, name, self.args, self.argument_defaults)
        creates = "pin_memory" in self.argument_defaults
        self.usual_keywords = argument_checks.usual_keywords(space, name, self.args, creates)
        self.usual_rest = argument_checks.usual_rest(space, name)
        self.checks_rest = not self.args and self.usual_rest is not argument_checks.EVERY
        #: If a function with ``*args`` has several signatures, it finds out itself what a single argument is.
        self.start = int(space == "Tensor")
        self.unchecked = self.start + (len(signatures.signatures(space, name)) > 1)
        #: The combinations of classes of arguments that fit a signature: see ``argument_checks.check_arguments``.
        self.fitting: dict[object, bool] = {}
        self.out_index = self.args.index("out") if "out" in self.args else 0
        takes_out = "out" in self.argument_defaults
        takes_out = takes_out or "out" in (getattr(target, "__wrapped__", target).__kwdefaults__ or ())
        self.out = (
            None if not takes_out else METHOD if space == "Tensor" else POSITIONAL if "out" in self.args else KEYWORD
        )

    @cached_property
    def reader(self) -> ArgumentReader:
        """Reader of the arguments of the function's calls, for handlers."""
        return ArgumentReader(self.function, self.args, self.positional, self.passed_defaults, self.space == "Tensor")

    def call(
        self, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object], out: object
    ) -> tuple[Args, Kwargs]:
        """Return positional and keyword arguments for a call that is equal to the one with the given parts."""
        return (*args, *rest), unknown

    def given(self, args: ArgumentList, unknown: dict[str, object], out: object) -> GivenByName:
        """Return three dictionaries by name: positional arguments of a call, its keyword arguments, and all defaults.

        ``args`` are the values of the function's named parameters, ``unknown`` further keyword arguments, and ``out``
        is the argument ``out=``.
        """
        return dict(zip(self.args, args, strict=True)), unknown, self.passed_defaults


class VjpForm(FunctionForm):
    """Description of the method ``vjp`` (vector-Jacobian product) of a node class, generated from ``templates.vjp``.

    op         the operation
    saved      a list with a :class:`Saved` for each value that the nodes save
    conjugate  whether saved values are conjugated, because an operand or the result is complex
    record     whether the gradients are Tensors (``create_graph=True``), so that saved arrays become Tensors, too
    only       the index of the operand that has a gradient edge if there is only one, otherwise None
    """

    rules: Rules

    def __init__(self, op: Op, saved: Sequence[Saved], conjugate: bool, record: bool, only: int | None) -> None:
        self.args: tuple[str, ...] = ("node", "g", "edges", "keep")
        self.replace = self._replace_vjp
        self.positional, self.argument_defaults = len(self.args), {}
        self.op, self.record, self.only = op, record, only
        self.count, self.rules = len(op.rules), op.rules
        self.live = tuple(range(self.count)) if only is None else (only,)
        self.saved = list(enumerate(saved))
        self.saved_arrays = [(k, each) for k, each in self.saved if each.array]
        self.conjugate = conjugate and op.holomorphic
        self.several = bool(op.several or (op.outputs and op.differentiable != 1))
        rules = [op.rules[i] for i in self.live]
        self.uses_namespace = conjugate or any("F" in arguments(rule) for rule in rules)
        large = (
            not record
            and any(map(uses_arithmetic, rules))
            and (op.kind == "pointwise" or (len(op.tensors) == 1 and bool(self.saved_arrays)))
        )
        #: The saved value whose size decides whether arrays are computed in parallel; -1 for the gradient.
        self.large_sample = None if not large else -1 if op.kind == "pointwise" else self.saved_arrays[0][0]
        self.scalars = op.kind == "pointwise" and bool(self.saved_arrays) and not record
        places = {each.name: k for k, each in self.saved} | {"F": -1, "g": -2}
        self.factors = [rule if isinstance(rule, (int, float)) else None for rule in op.rules]
        self.calls = [callable(rule) for rule in op.rules]
        self.takes_gradient = ["g" in arguments(rule) for rule in op.rules]
        self.sources = [
            tuple([places[each] for each in arguments(rule)]) if i in self.live else ()
            for i, rule in enumerate(op.rules)
        ]
        self.sharing: Sharing = [
            [k for k, each in enumerate(op.rules) if each is rule] if is_shared(rule) else None for rule in op.rules
        ]
        self.position = [None if each is None else each.index(i) for i, each in enumerate(self.sharing)]

    def _replace_vjp(self, made: Function) -> None:
        """Put ``made``, a compiled function, in the place of this vjp in the node classes that have it."""
        for kind in self.op.nodes.values():
            for name in ("vjp", "vjp_recorded"):
                if vars(kind).get(name) is self.function:
                    setattr(kind, name, made)


class KernelForm(FunctionForm):
    """Description of the function that derivative rules call as the kernel of ``op``.

    The function calls the kernel for float32 arrays, and ``by_dtype`` for all other dtypes.
    """

    def __init__(self, op: Op, by_dtype: Function) -> None:
        self.op, self.by_dtype, self.argument_defaults = op, by_dtype, op.defaults
        self.args, self.positional = (*op.tensors, *op.params), len(op.tensors) + op.positional
        self.keywords = self.args[self.positional :]
