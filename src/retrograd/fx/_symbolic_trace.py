"""``torch.fx._symbolic_trace``: tracing of functions and modules.

While a function is traced, ``Module.__call__``, ``Module.__getattr__`` and the wrapped functions are replaced.
"""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import math
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from ..core.pytree import tree_flatten, tree_map, tree_unflatten
from ..core.tensor import Tensor
from ..nn import Module, Parameter, Sequential
from ..private_names import ScriptObject as ScriptObject
from ..private_names import _assert
from ..runtime.user_frame import MARK, warn
from ._compatibility import compatibility as compatibility
from .codegen import _PyTreeCodeGen, _PyTreeInfo
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, base_types, map_aggregate
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

Wrapped = TypeVar("Wrapped", bound=Callable[..., Any] | str)

_orig_module_call = Module.__call__
_orig_module_getattr = Module.__getattr__
_proxyable_classes: set[type] = set()
_is_fx_tracing_flag = False


def is_fx_tracing() -> bool:
    """Whether a function is being traced."""
    return _is_fx_tracing_flag


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """Metaclass of classes whose creation is recorded if an argument is a recorded value."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.add(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = _find_proxy(args, kwargs) if is_fx_tracing() else None
        if found is not None:
            return found.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class PHBase:
    """Mark of a value in ``concrete_args`` that stays a parameter."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """:class:`PHBase` whose attributes are copied to the node of the parameter."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _without_stars(function: FunctionType, count: int) -> FunctionType:
    """Return a copy of ``function`` that takes all parameters by position, ``*args`` and ``**kwargs`` as single values."""
    code = function.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    code = code.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


class Tracer(TracerBase):
    """Tracer of :func:`symbolic_trace`. A subclass changes how modules are traced by redefining methods.

    Args:
        autowrap_modules: Modules whose functions are recorded when a recorded value is passed to them.
        autowrap_functions: Functions that are recorded in this case.
        param_shapes_constant: Whether shapes of parameters are read during tracing, instead of recorded.

    >>> import retrograd as torch
    >>> class Flat(torch.fx.Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name):
    ...         return False
    >>> graph = Flat().trace(torch.nn.Sequential(torch.nn.ReLU()))
    >>> [str(node.target) for node in graph.nodes if node.op == "call_function"][0][:14]
    '<function relu'
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        found = [each for module in autowrap_modules for name, each in vars(module).items() if name[0] != "_"]
        self._autowrap_function_ids = {id(each) for each in (*found, *autowrap_functions) if callable(each)}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}
        self._qualname_counter: dict[str, int] = defaultdict(int)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        result = type(self).__new__(type(self))
        memo[id(self)] = result
        shared = {"_autowrap_search": list(self._autowrap_search)}  # modules cannot be copied
        rest = {name: value for name, value in vars(self).items() if name not in shared}
        vars(result).update(shared, **copy.deepcopy(rest, memo))
        return result

    # -- values

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return ``prefix`` with the first number for which the root module has no such attribute."""
        if not hasattr(self.root, f"{prefix}0"):
            self._qualname_counter[prefix] = 0
        while hasattr(self.root, name := f"{prefix}{self._qualname_counter[prefix]}"):
            self._qualname_counter[prefix] += 1
        return name

    def create_arg(self, a: Any) -> Argument:
        """Return the argument of a node for ``a``, a value of the program.

        Parameters, buffers and submodules of the root become attributes of it. A constant tensor becomes a new
        attribute. NameError is raised for another module's parameter.
        """
        if isinstance(a, Parameter):
            found = _name_of(a, self.root.named_parameters())
            if found is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", found, (), {})
        if isinstance(a, (Tensor, Module)):
            found = _name_of(a, self.root.named_buffers() if isinstance(a, Tensor) else self.root.named_modules())
            if found is not None:
                return self.create_node("get_attr", found, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(each) for each in a), {})
        if isinstance(a, Tensor):
            if a not in self.tensor_attrs:
                self.tensor_attrs[a] = self.get_fresh_qualname("_tensor_constant")
                setattr(self.root, self.tensor_attrs[a], a)
            return self.create_node("get_attr", self.tensor_attrs[a], (), {})
        if type(a) in _proxyable_classes:
            found = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, found, a)
            return self.create_node("get_attr", found, (), {})
        return super().create_arg(a)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Return what a traced ``forward`` gets for an attribute of a module: for a parameter, a recorded value.

        Args:
            attr: Name of the attribute.
            attr_val: Its value.
            parameter_proxy_cache: Recorded values by the paths of the parameters, so that each is recorded once.
        """
        name = None
        if isinstance(attr_val, Parameter):
            name = _name_of(attr_val, self.root.named_parameters())
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            name = _name_of(attr_val, self.root.named_buffers())
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            made: dict[str, Any] = {}
            if self.param_shapes_constant and isinstance(attr_val, Parameter):
                made["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, name, attr_val)
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **made)
        return parameter_proxy_cache[name]

    # -- modules

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of the module ``m`` is recorded as one node. The default is true for those of ``torch.nn``.

        ``Sequential`` is an exception.
        """
        return m.__module__.startswith(("torch.nn", "torch.ao.nn")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """Return the path of ``mod`` in the root module; NameError is raised if it is not a submodule."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = _name_of(mod, self.root.named_modules())
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call of a module: a recorded value for a leaf module, else what ``forward`` returns."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            calls = self.num_calls.get(path, 0)
            self.num_calls[path] = calls + 1
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = (path, type(m))
            if self.is_leaf_module(m, path):
                result = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            del self.module_stack[key]
        return result

    # -- tracing

    def trace(self, root: Module | Callable[..., Any], concrete_args: Any = None) -> Graph:
        """Return the graph of ``root``, a module or a function; see :func:`symbolic_trace`.

        ``self.root`` is then the module with the attributes that the graph refers to: ``root``, or a new one.
        """
        global _is_fx_tracing_flag
        before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            is_module = isinstance(root, Module)
            function: Any = root
            self.root: Module = root if is_module else Module()  # type: ignore[assignment]
            if is_module:
                name = self.traced_func_name
                assert hasattr(type(root), name), f"traced_func_name={name} doesn't exist in {type(root).__name__}"
                function = getattr(type(root), name)
                self.root_module_name = self.root._get_name()
                self.submodule_paths = {module: path for path, module in self.root.named_modules()}
            self.graph = Graph(tracer_cls=type(self))
            if hasattr(function, "__code__"):
                fields = ("co_name", "co_filename", "co_firstlineno")
                self.graph._co_fields = {each: getattr(function.__code__, each) for each in fields}
            self.tensor_attrs: dict[Tensor, str] = {
                value: f"{path}.{name}".lstrip(".")
                for path, module in self.root.named_modules()
                for name, value in vars(module).items()
                if isinstance(value, Tensor)
            }
            assert isinstance(function, FunctionType), f"Expected FunctionType, got {type(function)}"
            self._record(function, is_module, concrete_args)
            self.submodule_paths = None
        finally:
            _is_fx_tracing_flag = before
        return self.graph

    def _record(self, function: FunctionType, is_module: bool, concrete_args: Any) -> None:
        """Create the placeholders, call ``function`` with them, and create the output node."""
        spaces = [function.__globals__, *map(vars, self._autowrap_search)]
        called, args = self.create_args_for_root(function, is_module, concrete_args)
        annotation = _annotations(inspect.unwrap(called)).get("return")
        proxies: dict[str, Proxy] = {}

        @functools.wraps(_orig_module_getattr)
        def read(module: Module, name: str) -> Any:
            return self.getattr(name, _orig_module_getattr(module, name), proxies)

        @functools.wraps(_orig_module_call)
        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _orig_module_call(module, *args, **kwargs)

            space = getattr(getattr(module, "forward", module), "__globals__", {})
            _autowrap_check(patcher, space, self._autowrap_function_ids)
            return self.call_module(module, forward, args, kwargs)

        with _Patcher() as patcher:
            patcher.patch_method(Module, "__getattr__", read, deduplicate=False)
            patcher.patch_method(Module, "__call__", call, deduplicate=False)
            _patch_wrapped_functions(patcher)
            for space in spaces:
                _autowrap_check(patcher, space, self._autowrap_function_ids)
            self.create_node("output", "output", (self.create_arg(called(*args)),), {}, type_expr=annotation)

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Return the function to call, and its arguments: new placeholders, and values of ``concrete_args``."""
        inner: Any = inspect.unwrap(root_fn)
        code = inner.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        stars = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        args: list[Any] = []
        if is_module:
            if count == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
        names = list(code.co_varnames[len(args) : count])
        if isinstance(concrete_args, tuple):
            if concrete_args and stars and count == 1:
                return root_fn, [*args, *(self._flat_placeholder(i, each) for i, each in enumerate(concrete_args))]
            if len(names) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args, strict=True))
        further = list(code.co_varnames[count:])
        if code.co_flags & inspect.CO_VARARGS:
            names.append("*" + further.pop(0))
        if code.co_flags & inspect.CO_VARKEYWORDS:
            names.append("**" + further.pop(0))
        signature = inspect.signature(inner)
        args += [self._placeholder(name, concrete_args or {}, signature, _annotations(inner)) for name in names]
        if code.co_kwonlyargcount or stars:
            root_fn = _without_stars(root_fn, len(args))  # type: ignore[arg-type]
        leaves, in_spec = tree_flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args

        codegen = _PyTreeCodeGen(_PyTreeInfo(list(code.co_varnames[:count]), in_spec, None))
        self.graph._codegen = codegen

        def flat(*leaves):  # type: ignore[no-untyped-def]  # its annotations would be in the generated code
            result, out_spec = tree_flatten(root_fn(*tree_unflatten(list(leaves), in_spec)))
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return result

        return flat, leaves

    def _flat_placeholder(self, index: int, value: Any) -> Proxy:
        proxy = self.create_proxy("placeholder", f"input_{index}", (), {})
        _copy_mark(value, proxy)
        return proxy

    def _placeholder(
        self, name: str, concrete_args: dict[str, Any], signature: inspect.Signature, annotations: dict[str, Any]
    ) -> Any:
        """Return the argument for the parameter ``name``: a new placeholder, or its value in ``concrete_args``.

        The value in ``concrete_args`` may be a container, each leaf of which gets a placeholder: as a parameter where it
        is marked by ``PH``, and to check its value elsewhere.
        """
        given = inspect.Parameter.empty if name[0] == "*" else signature.parameters[name].default
        default = () if given is inspect.Parameter.empty else (given,)
        if name not in concrete_args:
            return self.create_proxy("placeholder", name, default, {}, type_expr=annotations.get(name))
        count = 0

        def replaced(value: Any) -> Any:
            nonlocal count
            count += 1
            proxy = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(value, PHBase):
                _copy_mark(value, proxy)
                return proxy
            text = f"{name} has been specialized to have value {value} but got another value"
            if value is None:
                self.create_proxy("call_function", _assert_is_none, (proxy, text), {})
            elif type(value) in base_types and not isinstance(value, Tensor):
                _assert(proxy == value, text)
            else:
                warn(
                    f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to "
                    "the user to make sure that your inputs match the inputs you specialized the function with."
                )
            return value

        return tree_map(replaced, concrete_args[name])


def _annotations(function: Any) -> dict[str, Any]:
    """Return the annotations of ``function``; for functions of the package, whose are strings, only those of tensors."""
    found: dict[str, Any] = getattr(function, "__annotations__", {})
    if MARK in getattr(function, "__globals__", {}):
        return {name: Tensor for name, each in found.items() if each == "Tensor"}
    return found


def _name_of(value: Any, named: Iterable[tuple[str, Any]]) -> str | None:
    return next((name for name, each in named if each is value), None)


def _copy_mark(mark: Any, proxy: Proxy) -> None:
    """Copy the attributes of ``mark``, a :class:`PHWithMeta`, to the node of ``proxy``."""
    if isinstance(mark, PHBase) and mark is not PH:
        for name, value in vars(mark).items():
            if not hasattr(proxy.node, name):
                setattr(proxy.node, name, value)


# -- Replaced functions ------------------------------------------------------------------------------------------------

#: For each function registered by :func:`wrap`, the global variables in which it is replaced.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
#: Methods that are replaced, as pairs of a class and a name.
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_PATCHED = "__fx_already_patched"
_ABSENT = object()


def _find_proxy(*values: Any) -> Proxy | None:
    """Return a recorded value in the nested containers ``values``, or None."""
    found: list[Proxy] = []
    map_aggregate(values, lambda each: found.append(each) if isinstance(each, Proxy) else None)
    return found[-1] if found else None


def _create_wrapped_func(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that records a call of ``orig_fn`` with recorded values, and makes any other call."""

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = _find_proxy(args, kwargs)
        if found is None:
            return orig_fn(*args, **kwargs)
        result = found.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    """Return a function that records a call of the method ``name`` with recorded values, and makes any other call."""
    original = getattr(cls, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = _find_proxy(args, kwargs)
        return (
            original(*args, **kwargs) if found is None else found.tracer.create_proxy("call_method", name, args, kwargs)
        )

    return wrapped


class _Patcher:
    """Context manager that replaces global variables and methods, and sets them back at its end."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], None]] = []
        self.visited: set[int] = set()

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace the global variable ``name``, unless it is replaced already; a builtin is hidden by a variable."""
        before = frame_dict.get(name, _ABSENT)
        if getattr(before, _PATCHED, False):
            return
        if before is _ABSENT and not hasattr(builtins, name):
            raise KeyError(name)
        setattr(new_fn, _PATCHED, deduplicate)
        if before is _ABSENT:
            self.undo.append(functools.partial(frame_dict.__delitem__, name))
        else:
            self.undo.append(functools.partial(frame_dict.__setitem__, name, before))
        frame_dict[name] = new_fn

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace the method ``name`` of ``cls``, unless it is replaced already."""
        before = getattr(cls, name)
        if getattr(before, _PATCHED, False):
            return
        setattr(new_fn, _PATCHED, deduplicate)
        self.undo.append(functools.partial(setattr, cls, name, before))
        setattr(cls, name, new_fn)

    def visit_once(self, thing: Any) -> bool:
        """Return True at the first call with ``thing``, and False later."""
        new = id(thing) not in self.visited
        self.visited.add(id(thing))
        return new

    def __enter__(self) -> _Patcher:
        return self

    def __exit__(self, *error: object) -> None:
        while self.undo:
            self.undo.pop()()
        self.visited.clear()


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Replace the functions and methods that are registered as wrapped."""
    for (_, name), space in list(_wrapped_fns_to_patch.items()):
        original = space[name] if name in space else getattr(builtins, name, None)
        if original is None:
            raise KeyError(name)
        patcher.patch(space, name, _create_wrapped_func(original))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Replace the functions with the identities ``function_ids`` in the global variables ``frame_dict``."""
    if MARK not in frame_dict and patcher.visit_once(frame_dict):
        for name, value in list(frame_dict.items()):
            if name[:1] != "_" and id(value) in function_ids and callable(value):
                patcher.patch(frame_dict, name, _create_wrapped_func(value))


def wrap(fn_or_name: Wrapped) -> Wrapped:
    """Register a global function, which is recorded as one call when a recorded value is passed to it.

    Called at the top level of a module with the name of a function of the module or a builtin, or as a decorator.
    NotImplementedError is raised elsewhere.

    >>> import retrograd as torch
    >>> _ = torch.fx.wrap("len")
    >>> print(torch.fx.symbolic_trace(lambda x: x / len(x)).graph)
    graph():
        %x : [num_users=2] = placeholder[target=x]
        %len_1 : [num_users=1] = call_function[target=builtins.len](args = (%x,), kwargs = {})
        %truediv : [num_users=1] = call_function[target=operator.truediv](args = (%x, %len_1), kwargs = {})
        return truediv
    """
    if not (callable(fn_or_name) or isinstance(fn_or_name, str)):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: Any = None) -> GraphModule:
    """Return a module that runs the operations which ``root`` performs when it is called with recorded values.

    ``root`` is a module or a function. Modules of ``torch.nn`` are recorded as calls, other modules by what their
    ``forward`` does. The parameters are those of ``root``. ``concrete_args`` has the values of arguments that are
    constants of the program; a container may mark elements by ``torch.fx.PH``, which stay arguments. TraceError is
    raised if a recorded value decides a branch.

    >>> import retrograd as torch
    >>> def f(x, double):
    ...     return 2 * x if double else x.relu()
    >>> print(torch.fx.symbolic_trace(f, {"double": False}).code.strip())
    def forward(self, x, double_1):
        eq = double_1 == False;  double_1 = None
        _assert = torch._assert(eq, 'double has been specialized to have value False but got another value');  eq = _assert = None
        relu = x.relu();  x = None
        return relu
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    return GraphModule(tracer.root, graph, type(root).__name__ if isinstance(root, Module) else root.__name__)


def _assert_is_none(value: Any, msg: str) -> None:
    assert value is None, msg


_wrapped_fns_to_patch[id(globals()), "_assert_is_none"] = globals()

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"]
