"""``torch.library``: operations of the program's own, ``custom_op``, ``Library`` and ``register_autograd``.

A custom operation is a Python function, which is called as it is. With ``register_autograd`` it is recorded as one node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .autograd.function import Function

#: The custom operations by name, such as ``"mylib::scale"``.
_OPERATIONS: dict[str, CustomOpDef] = {}


def _not_implemented(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"Could not run '{name}' with arguments from the 'CPU' backend. The operation has no implementation in Python; "
            "retrograd does not load compiled libraries of operations."
        )

    function.__name__ = name.partition("::")[2]
    return function


class CustomOpDef:
    """Operation made by :func:`custom_op`; it calls the decorated function.

    >>> import retrograd as torch
    >>> schema = "(Tensor x) -> Tensor"
    >>> twice = torch.library.custom_op("example::twice", lambda x: 2 * x, mutates_args=(), schema=schema)
    >>> twice
    <CustomOpDef(example::twice)>
    >>> twice(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, name: str, function: Callable[..., Any] | None = None) -> None:
        self._qualname, self._function = name, _not_implemented(name) if function is None else function
        self._namespace, _, self._name = name.partition("::")
        self._recorded: Any = None
        self.__name__, self.__doc__ = getattr(self._function, "__name__", self._name), self._function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._recorded is None:
            return self._function(*args, **kwargs)
        return self._recorded.apply(*args, **kwargs)

    def register_fake(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``fn``, which computes only shapes; it is not used."""
        return fn

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None) -> Any:
        """Use ``fn`` for the CPU if ``device_types`` contains it. Without ``fn``, return a decorator."""
        if fn is None:
            return lambda function: self.register_kernel(device_types, function)
        types = [device_types] if isinstance(device_types, str) else device_types
        if types is None or "cpu" in types:
            self._function = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:  # fmt: skip
        """Use ``backward(ctx, *gradients)``, which returns the gradients of the arguments.

        ``setup_context(ctx, inputs, output)`` stores what ``backward`` needs.
        """
        operation = self

        class Recorded(Function):
            @staticmethod
            def forward(*args: Any) -> Any:
                return operation._function(*args)

            @staticmethod
            def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
                if setup_context is not None:
                    setup_context(ctx, inputs, output)

        Recorded.backward = staticmethod(backward)  # type: ignore[method-assign]
        self._recorded = Recorded

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


def custom_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Sequence[str], device_types: Any = None,
    schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Return an operation that calls ``fn``; without ``fn``, return a decorator. The other arguments have no effect.

    >>> import retrograd as torch
    >>> @torch.library.custom_op("mylib::twice", mutates_args=())
    ... def twice(x: torch.Tensor) -> torch.Tensor:
    ...     return 2 * x
    >>> twice(torch.ones(2)), torch.ops.mylib.twice(torch.ones(1))
    (tensor([2., 2.]), tensor([2.]))
    """
    if fn is None:
        return lambda function: custom_op(
            name, function, mutates_args=mutates_args, device_types=device_types, schema=schema, tags=tags
        )
    if "::" not in name:
        raise ValueError(f"Expected `name` to be of the form `namespace::name`, got {name}")
    operation = _OPERATIONS[name] = CustomOpDef(name, fn)
    return operation


class Library:
    """Operations of the namespace ``ns``: ``define`` declares one, and ``impl`` sets the function that it calls.

    ``kind`` is "DEF" for a new namespace, "FRAGMENT" for more operations of one, and "IMPL" for functions only.

    >>> import retrograd as torch
    >>> mine = torch.library.Library("mine", "DEF")
    >>> mine.define("halve(Tensor x) -> Tensor")
    'halve'
    >>> mine.impl("halve", lambda x: x / 2, "CPU")
    >>> torch.ops.mine.halve(torch.ones(2))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported kind: ", kind)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declare the operation with this schema, of which only the name is read; return the name."""
        name = schema.partition("(")[0].strip()
        _OPERATIONS.setdefault(f"{self.ns}::{name}", CustomOpDef(f"{self.ns}::{name}"))
        return name

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:  # fmt: skip
        """Use ``fn`` for the operation ``op_name`` if it is for the CPU or for all devices; ignore others."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        name = op_name if isinstance(op_name, str) else op_name.name().partition("::")[2].partition(".")[0]
        operation = _operation(f"{self.ns}::{name.removeprefix(f'{self.ns}::')}")
        if key in ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd"):
            operation._function = fn


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Declare the operation ``qualname``, such as ``"mine::halve"``; ``schema`` has its parameters.

    >>> import retrograd as torch
    >>> torch.library.define("example::triple", "(Tensor x) -> Tensor")
    >>> _ = torch.library.impl("example::triple", "cpu", lambda x: 3 * x)
    >>> torch.ops.example.triple(torch.ones(2))
    tensor([3., 3.])
    """
    namespace, _, name = qualname.partition("::")
    if not name:
        raise ValueError(
            f"torch.library.define(qualname, ...): expected qualname to be instance of str of the form "
            f"namespace::name, got {qualname!r}"
        )
    Library(namespace, "FRAGMENT").define(name + schema)


def impl(qualname: str, types: Any, func: Callable[..., Any] | None = None, *, lib: Any = None) -> Any:
    """Use ``func`` for the operation ``qualname`` on devices of these types. Without ``func``, return a decorator.

    >>> import retrograd as torch
    >>> torch.library.define("example::halve", "(Tensor x) -> Tensor")
    >>> function = torch.library.impl("example::halve", "cpu")(lambda x: x / 2)
    >>> torch.ops.example.halve(torch.ones(2))
    tensor([0.5000, 0.5000])
    """
    if func is None:
        return lambda function: impl(qualname, types, function)
    names = {each.lower() for each in ((types,) if isinstance(types, str) else types)}
    if names & {"cpu", "default", "compositeexplicitautograd", "compositeimplicitautograd"}:
        _operation(qualname)._function = func
    return func


def get_ctx() -> NoReturn:
    """Raise RuntimeError: shapes that depend on values exist only in functions of shapes, which are not called."""
    raise RuntimeError("get_ctx() can only be called inside a fake implementation, which retrograd does not call")


def _operation(op: Any) -> CustomOpDef:
    name = op if isinstance(op, str) else getattr(op, "_qualname", repr(op))
    if name not in _OPERATIONS:
        raise RuntimeError(f"Could not find the operator {name}")
    return _OPERATIONS[name]


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, _stacklevel: int = 1) -> Any:
    """Return ``func``, which computes only shapes and is not used; without ``func``, return a decorator.

    >>> import retrograd as torch
    >>> torch.library.define("example::quarter", "(Tensor x) -> Tensor")
    >>> function = torch.library.register_fake("example::quarter")(lambda x: torch.empty_like(x))
    >>> function(torch.ones(2)).shape
    torch.Size([2])
    """
    return _operation(op).register_fake if func is None else func


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Use ``func`` as the function of the operation ``op`` (see :meth:`CustomOpDef.register_kernel`).

    >>> import retrograd as torch
    >>> schema = "(Tensor x) -> Tensor"
    >>> op = torch.library.custom_op("example::fifth", lambda x: x / 5, mutates_args=(), schema=schema)
    >>> function = torch.library.register_kernel(op, "cpu", lambda x: x * 0.2)
    >>> op(torch.ones(2))
    tensor([0.2000, 0.2000])
    """
    return _operation(op).register_kernel(device_types, func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:  # fmt: skip
    """Use ``backward`` as the derivative of the operation ``op`` (see :meth:`CustomOpDef.register_autograd`).

    >>> import retrograd as torch
    >>> schema = "(Tensor x) -> Tensor"
    >>> op = torch.library.custom_op("example::square", lambda x: x * x, mutates_args=(), schema=schema)
    >>> def save(ctx, inputs, output):
    ...     ctx.save_for_backward(*inputs)
    >>> torch.library.register_autograd(op, lambda ctx, g: 2 * g * ctx.saved_tensors[0], setup_context=save)
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> op(x).backward()
    >>> x.grad
    tensor(6.)
    """
    _operation(op).register_autograd(backward, setup_context=setup_context)


__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "get_ctx",
    "impl",
    "register_autograd",
    "register_fake",
    "register_kernel",
]
