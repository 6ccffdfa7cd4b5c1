"""``Tensor``: an array, its place in the graph, its version and what it is a view of.

What a tensor *is* stands here; what can be computed with it is installed by ``operations/tensor_methods.py``. The fields:

``_array``  the numbers (``numpy.ndarray`` or ``cupy.ndarray``, also when 0-d)
``_grad_edge``   where its gradient arrives: a Node or Output, a leaf's AccumulateGrad, or None if no gradient is required
``_version_counter``   ``[version, place of the last modification]``, one list for all tensors on one memory; None in inference mode
``_counter``  where the cell lies; None as long as nobody asked for it (most results are never saved, viewed or modified,
            and a list costs 50 ns), empty in inference mode
``_view``   the tensor that it is a view of (never itself a view), or None
``_view_version``   of a view: the version at which its place in the graph was right
``_creation_meta``   of a view: in which mode it was made, or by what kind of operation (see ``views``)
``_grad``   its gradient: None, an array (not looked at yet) or a Tensor
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy

from ..compat.pickle_names import pickled_as
from ..compat.type_names import type_name
from ..runtime.user_frame import strip_frames, strips_frames, warn
from . import devices, dtypes, torch_function
from .devices import device
from .dtypes import dtype
from .error_context import with_remedy
from .grad_mode import in_inference
from .graph import AccumulateGrad, Handle, HookList, Node, OutputEdge, dead_ref, hooks_of
from .size import Size, size_of

new = object.__new__


class layout:
    """How a tensor's elements are laid out: here always ``torch.strided``."""

    __slots__ = ("name",)
    __module__ = "torch"

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return layout_named, (self.name,)


class memory_format(layout):
    """An order of the elements in memory: ``torch.contiguous_format`` and others."""

    __slots__ = ()
    __module__ = "torch"


@pickled_as("layout")
def layout_named(name: str) -> layout:
    """A layout or a memory format from what a pickle holds."""
    return globals()[name]


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


class Tensor:
    """An array of numbers that remembers how it was computed, so that derivatives can be taken.

    Made by :func:`retrograd.tensor` and the other creating functions; ``Tensor(2, 3)`` and ``Tensor([1, 2])`` are
    PyTorch's old constructors. See https://docs.pytorch.org/docs/stable/tensors.html.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_array",
        "_counter",
        "_grad",
        "_creation_meta",
        "_grad_edge",
        "_view_version",
        "_view",
    )
    __module__ = "torch"

    _array: Any
    _counter: list[Any] | tuple[()] | None
    _grad: Any
    _grad_edge: Any
    _view: Tensor | None
    _view_version: int
    _creation_meta: int
    _construct: ClassVar[Callable[..., Tensor]]  # PyTorch's old constructor; set by operations/creation/factory.py
    _current: ClassVar[Callable[..., Any]]  # the place of a view in the graph; set by views.py

    if TYPE_CHECKING:  # what operations/tensor_methods.py installs

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __len__(self) -> int: ...
        def __bool__(self) -> bool: ...
        def __iter__(self) -> Any: ...

    @strips_frames
    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return Tensor._construct(cls, *args, **kwargs)

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        torch_function.register_class(cls)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What ``func`` gives, as instances of ``cls``; NotImplemented if one of ``types`` is no base of ``cls``.

        Subclasses override it, and call it by ``super()`` for what they do not change.
        """
        if not all(issubclass(cls, each) for each in types):
            return NotImplemented
        result = torch_function.call_without_overrides(func, args, kwargs or {})
        plain = cls is Tensor or (func.__class__ is not FunctionType and func in Tensor._unwrapped())
        return result if plain else _instances(result, cls)

    @classmethod
    def _unwrapped(cls) -> set[Any]:
        """What gives plain tensors to subclasses too: a tensor's gradient, and the tensor that it is a view of."""
        return {vars(Tensor)[name].__get__ for name in ("grad", "_base")}

    @staticmethod
    def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: Any = False) -> Any:
        """``data`` as a leaf of class ``cls`` on the same memory, outside the graph of ``data``."""
        return leaf_of(cls, data, require_grad)

    @property
    def _version_counter(self) -> list[Any] | None:
        count = self._counter
        if count is None:
            count = self._counter = [0, None]
        return count or None

    @_version_counter.setter
    def _version_counter(self, cell: list[Any] | None) -> None:
        self._counter = () if cell is None else cell

    # -- shape and memory

    @property
    def shape(self) -> Size:
        """The size of every dimension."""
        return size_of(Size, self._array.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of dimension ``dim``."""
        if dim is None:
            return size_of(Size, self._array.shape)
        try:
            return self._array.shape[dimension(dim, self._array.ndim)]
        except TypeError:
            raise TypeError(f"size(): argument 'dim' (position 1) must be int, not {type_name(dim)}") from None
        except IndexError as error:
            raise strip_frames(error) or error from None

    def stride(self, dim: int | None = None) -> Any:
        """How many elements apart in memory neighbours are, per dimension or in dimension ``dim``."""
        strides = element_strides(self._array)
        try:
            return strides if dim is None else strides[dimension(dim, len(strides))]
        except IndexError as error:
            raise strip_frames(error) or error from None

    def storage_offset(self) -> int:
        """Where in its memory the tensor begins, in elements."""
        return offset_in_memory(self._array)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    def dim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self._array.size

    nelement = numel
    ndimension = dim

    def element_size(self) -> int:
        """Bytes per element."""
        return self._array.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._array.nbytes

    @property
    def dtype(self) -> dtype:
        """The type of the elements."""
        return dtypes.of(self._array.dtype)

    @property
    def device(self) -> device:
        """Where the memory is."""
        return devices.device_of(self._array)

    @property
    def layout(self) -> layout:
        """``torch.strided``."""
        return strided

    def is_floating_point(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the elements are complex numbers."""
        return self.dtype.is_complex

    def is_contiguous(self, *, memory_format: Any = contiguous_format) -> bool:
        """Whether the elements lie in memory one after the other, the last dimension fastest."""
        if memory_format is channels_last or memory_format is channels_last_3d:
            array = self._array
            return array.ndim == (4 if memory_format is channels_last else 5) and bool(
                numpy_moveaxis(array).flags.c_contiguous
            )
        return bool(self._array.flags.c_contiguous)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return address(self._array)

    is_cuda = property(lambda self: self.device.type == "cuda", doc="Whether the memory is a GPU's.")
    is_cpu = property(lambda self: self.device.type == "cpu", doc="Whether the memory is the processor's.")
    is_sparse = property(lambda self: False, doc="False: there are no sparse tensors here.")
    is_quantized = property(lambda self: False, doc="False: there are no quantised tensors here.")
    is_meta = property(lambda self: False, doc="False: there are no tensors without numbers here.")
    is_mkldnn = property(lambda self: False, doc="False.")
    is_mps = property(lambda self: False, doc="False.")
    is_xpu = property(lambda self: False, doc="False.")
    is_ipu = property(lambda self: False, doc="False.")
    is_maia = property(lambda self: False, doc="False.")
    is_mtia = property(lambda self: False, doc="False.")
    is_vulkan = property(lambda self: False, doc="False.")
    is_xla = property(lambda self: False, doc="False.")
    is_sparse_csr = property(lambda self: False, doc="False: there are no sparse tensors here.")
    grad_dtype = property(lambda self: self.dtype, doc="The dtype of the tensor's gradient: the tensor's own.")
    name = property(lambda self: None, doc="None.")
    is_nested = property(lambda self: False, doc="False: there are no nested tensors here.")

    # -- the graph

    @property
    def requires_grad(self) -> bool:
        """Whether what is done with this tensor is recorded, so that gradients can be computed."""
        if self._grad_edge is not None or self._view is None:
            return self._grad_edge is not None
        return self._view._grad_edge is not None and self._array.dtype.kind in "fcV"

    @requires_grad.setter
    def requires_grad(self, value: Any) -> None:
        if value.__class__ is not bool:
            raise RuntimeError("requires_grad must be a bool")
        if not _without_node(self):
            text = "you can only change requires_grad flags of leaf variables." + (value is False) * DETACHED
            raise RuntimeError(with_remedy(text, "detach() it", self._grad_edge))
        if value and self.dtype.category < dtypes.FLOATING:
            text = "only Tensors of floating point and complex dtype can require gradients"
            raise RuntimeError(with_remedy(text, "convert it, as by .float()"))
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: Any = True) -> Tensor:
        """Set :attr:`requires_grad` in place and return the tensor.

        Raises RuntimeError for a tensor of integers or booleans, and for switching off a computed tensor.
        """
        if requires_grad.__class__ is not bool:
            kind = type(requires_grad).__name__
            raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {kind}")
        unrecorded = self._grad_edge.__class__ is AccumulateGrad and self._grad_edge.variable_ref is dead_ref
        if requires_grad == self.requires_grad and not unrecorded:
            return self
        if not requires_grad:
            if not _without_node(self):
                text = "you can only change requires_grad flags of leaf variables." + DETACHED
                raise RuntimeError(with_remedy(text, "detach() it", self._grad_edge))
            _freeze(self)
            return self
        if self.dtype.category < dtypes.FLOATING:
            text = f"only Tensors of floating point dtype can require gradients. This one is of {self.dtype}"
            raise RuntimeError(with_remedy(text, "convert it, as by .float()"))
        if self._version_counter is None and not in_inference():
            raise RuntimeError(with_remedy(LEAF_OF_INFERENCE, "clone() it first, or make it under torch.no_grad()"))
        self._grad_edge = _frozen.pop(id(self), None)
        if self._grad_edge is None:
            self._grad_edge = AccumulateGrad(self, self._array, self._version_counter)
        else:
            self._grad_edge.cell = self._version_counter
            self._renew_leaf()
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was not computed by a recorded operation."""
        node = self._grad_edge if self._view is None else Tensor._current(self, True)
        return node is None or node.__class__ is AccumulateGrad

    @property
    def grad_fn(self) -> Node | None:
        """The graph's node that computed this tensor; None for a leaf."""
        node = self._grad_edge if self._view is None else Tensor._current(self, True)
        if node is None or node.__class__ is AccumulateGrad:
            return None
        return node.node

    @property
    def output_nr(self) -> int:
        """Which result of its node this tensor is."""
        return 0 if self._grad_edge is None else self._grad_edge.position

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward passes have accumulated, or None. Only leaves, and tensors that retain it."""
        found = self._grad
        if found is None:
            if not _without_node(self) and not self.retains_grad:
                warn(NOT_A_LEAF)
            return None
        if not isinstance(found, Tensor):
            found = self._grad = wrap(found)
        return found

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        try:
            if value is not None:
                self._check_grad(value)
        except Exception as error:
            raise strip_frames(error) or error from None
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def _check_grad(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {_short(value)}")
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value.dtype is not self.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{dtypes.c_name(value.dtype)}' to a tensor with grad_dtype "
                f"'{dtypes.scalar_name(self.dtype)}'. The gradient must match the tensor's grad_dtype (defaults to the "
                "tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow "
                "any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break "
                "downstream systems that assume they match."
                + with_remedy("", f"convert the gradient to {self.dtype}", self._grad_edge, "The tensor is")
            )
        if value.device.type != self.device.type:
            raise RuntimeError(
                f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with device type "
                f"'{self.device.type}'. Please ensure that the gradient and the tensor are on the same device"
            )
        if value._array.shape != self._array.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value._array.shape)}' to a tensor of size "
                f"'{list(self._array.shape)}'. Please ensure that the gradient and the tensor are the same size."
                + with_remedy("", "give a gradient of the tensor's shape", self._grad_edge, "The tensor is")
            )

    @property
    def retains_grad(self) -> bool:
        """Whether a computed tensor keeps its gradient in :attr:`grad` (see :meth:`retain_grad`)."""
        node = self._grad_edge
        return not _without_node(self) and node.hooks is not None and node.hooks.retaining is not None

    def retain_grad(self) -> None:
        """Keep the gradient of this computed tensor in :attr:`grad`; a leaf does so anyway.

        Among the tensor's hooks, retaining acts in the order of registration: it keeps what the hooks registered
        before it have made of the gradient (see ``autograd.graph.set_retain_grad_last`` for PyTorch 2's order).
        """
        if not self.requires_grad:
            raise RuntimeError(with_remedy("can't retain_grad on Tensor that has requires_grad=False", REQUIRE))
        if _without_node(self) or self.retains_grad:
            return
        hooks = hooks_of(Tensor._current(self))
        hooks.retaining, Handle.next_id = Handle.next_id, Handle.next_id + 1
        hooks.tensor[hooks.retaining] = Retain(self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Handle:
        """Call ``hook(grad)`` whenever this tensor's gradient is computed; a Tensor returned replaces it.

        Returns a handle whose ``remove()`` takes the hook away.

        >>> import retrograd as torch
        >>> v = torch.tensor([0.0, 0.0], requires_grad=True)
        >>> h = v.register_hook(lambda grad: grad * 2)
        >>> v.backward(torch.tensor([1.0, 2.0]))
        >>> v.grad
        tensor([2., 4.])
        """
        if not self.requires_grad:
            raise RuntimeError(with_remedy("cannot register a hook on a tensor that doesn't require gradient", REQUIRE))
        node = self._grad_edge if self._view is None else Tensor._current(self)
        # A view that nothing recorded gets no gradient, and its hooks are never called.
        hooks = HookList() if node.variable_ref is dead_ref else hooks_of(node).tensor
        return Handle(hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Handle:
        """Call ``hook(leaf)`` whenever this leaf's ``grad`` has been accumulated."""
        if not self.requires_grad:
            raise RuntimeError(with_remedy("cannot register a hook on a tensor that doesn't require gradient", REQUIRE))
        if not self.is_leaf:
            text = "post accumulate grad hooks cannot be registered on non-leaf tensors"
            raise RuntimeError(with_remedy(text, "use register_hook, or retain_grad()", self._grad_edge))
        return Handle(hooks_of(self._grad_edge).own("accumulated"), hook)

    @property
    def data(self) -> Tensor:
        """The same numbers in the same memory, outside the graph, with a version of their own."""
        out = wrap(self._array)
        out._version_counter = None if self._version_counter is None else [0, None]
        return out

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {_short(value)}")
        if self._grad_edge is not None and value.dtype.category < dtypes.FLOATING:
            text = "data set to a tensor that requires gradients must be floating point or complex dtype"
            raise RuntimeError(with_remedy(text, "convert it, as by .float()", self._grad_edge, "The tensor is"))
        self._array = value._array
        self._renew_leaf()

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def _renew_leaf(self) -> None:
        """Let the end of the graph at this leaf know the leaf's array after a change; graphs of old keep the old end."""
        end = self._grad_edge
        if end.__class__ is AccumulateGrad:
            if end.shape == self._array.shape and end.dtype == self._array.dtype:
                end.array = self._array
            else:
                self._grad_edge = AccumulateGrad(self, self._array, self._version_counter)
                self._grad_edge.hooks = end.hooks

    def detach(self) -> Tensor:
        """The same numbers in the same memory, outside the graph."""
        out = wrap(self._array)
        out._version_counter = self._version_counter
        return out

    def detach_(self) -> Tensor:
        """Take this tensor out of the graph that computed it: a leaf that requires no gradient."""
        if self._view is not None:
            raise RuntimeError(with_remedy(DETACH_VIEW, "use detach()", self._grad_edge))
        _freeze(self)
        return self

    @property
    def _version(self) -> int:
        """How often the memory has been modified in place."""
        if self._version_counter is None:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._version_counter[0]

    @property
    def _base(self) -> Tensor | None:
        """The tensor that this one is a view of."""
        return self._view

    def _is_view(self) -> bool:
        return self._view is not None

    def is_inference(self) -> bool:
        """Whether the tensor was made in :class:`inference_mode`."""
        return self._version_counter is None

    def __hash__(self) -> int:
        return id(self)


def wrap(array: Any) -> Tensor:
    """A Tensor of ``array`` that is on its own: not recorded, not a view."""
    out: Tensor = new(Tensor)
    out._array = array
    out._grad_edge = None
    out._counter = () if in_inference() else None
    out._view = None
    out._grad = None
    return out


def at_edge(array: Any, cell: list[Any] | None, place: Any) -> Tensor:
    """A Tensor of ``array`` whose gradient arrives at ``place``: a saved value put back into the graph."""
    out: Tensor = new(Tensor)
    out._array = array
    out._grad_edge = place
    out._version_counter = cell
    out._view = None
    out._grad = None
    return out


def graded_leaf(array: Any) -> Tensor:
    """A Tensor of ``array`` that is on its own and requires gradients."""
    if array.dtype.kind not in "fcV":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    out = wrap(array)
    if in_inference():
        return out.requires_grad_()
    cell = out._counter = [0, None]
    out._grad_edge = AccumulateGrad(out, array, cell)
    return out


#: The ends of the graph at leaves that require no gradient any more, by the leaf's id: hooks and recorded graphs refer to
#: them, so that ``requires_grad_()`` restores them.
_frozen: dict[int, AccumulateGrad] = {}


def _freeze(x: Tensor) -> None:
    """Take ``x`` out of the graph; the end of the graph at a leaf is kept as long as the leaf lives."""
    node, key = x._grad_edge, id(x)
    if node.__class__ is AccumulateGrad and node.variable_ref is not dead_ref:
        node.variable_ref = weakref.ref(x, lambda _: _frozen.pop(key, None))
        _frozen[key] = node
    x._grad_edge = None


def leaf_of(cls: type, data: Tensor, requires_grad: Any, function: str = "_make_subclass") -> Any:
    """``data`` as a leaf of class ``cls`` on the same memory, with the same count of versions."""
    if requires_grad.__class__ is not bool:
        kind = type(requires_grad).__name__
        raise TypeError(f"{function}(): argument 'require_grad' (position 3) must be bool, not {kind}")
    if requires_grad and data._array.dtype.kind not in "fcV":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    made: Any = new(cls)
    made._array, made._version_counter, made._grad_edge, made._view, made._grad = (
        data._array,
        data._version_counter,
        None,
        None,
        None,
    )
    if requires_grad:
        if made._version_counter is None and not in_inference():
            raise RuntimeError(LEAF_OF_INFERENCE)
        made._grad_edge = AccumulateGrad(made, made._array, made._version_counter)
    return made


def _instances(result: Any, cls: type[Tensor]) -> Any:
    """``result``, and each element of tuples and lists, as an instance of ``cls`` if it is a tensor."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and result.__class__ is not Size:
        return type(result)([_instances(each, cls) for each in result])
    return result


def _remake(accumulate: AccumulateGrad) -> Tensor:
    """A new Tensor in the place of a leaf that is gone."""
    out = at_edge(accumulate.array, accumulate.cell, accumulate)
    accumulate.variable_ref = weakref.ref(out)
    return out


AccumulateGrad.remake = staticmethod(_remake)


class Retain:
    """The hook by which a computed tensor keeps its gradient; it does not keep the tensor."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = weakref.ref(tensor)

    def __call__(self, grad: Tensor) -> None:
        tensor = self.tensor()
        if tensor is not None:
            before = tensor._grad
            if before is None:
                tensor._grad = grad.clone()
            else:
                tensor._grad = tensor.grad + grad


def _without_node(x: Tensor) -> bool:
    """Whether no node is known to have computed ``x``; unlike ``is_leaf`` this does not remake a stale view's place."""
    return x._grad_edge is None or x._grad_edge.__class__ is AccumulateGrad


# -- arrays and their memory


def dimension(dim: int, ndim: int, *, wrap_scalar: bool = True) -> int:
    """``dim`` counted from the front, checked against ``ndim`` as torch does (a 0-d tensor has dims 0 and -1)."""
    reach = ndim or (1 if wrap_scalar else 0)
    if not -reach <= dim < reach:
        if reach == 0:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        raise IndexError(f"Dimension out of range (expected to be in range of [{-reach}, {reach - 1}], but got {dim})")
    return dim + reach if dim < 0 else dim


def element_strides(array: Any) -> tuple[int, ...]:
    """The strides of ``array`` in elements, in torch's form for empty and one-element dimensions."""
    if array.flags.c_contiguous and (1 not in array.shape if array.size else not any(array.strides)):
        return contiguous_strides(array.shape)  # NumPy's strides of an empty array are 0
    size: int = array.itemsize
    return tuple(step // size for step in array.strides)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a tensor of ``shape`` whose elements lie one after the other."""
    strides, step = [], 1
    for size in shape[::-1]:
        strides.append(step)
        step *= size or 1
    return tuple(strides[::-1])


def memory_of(array: Any) -> Any:
    """The array that owns the memory in which ``array`` lies."""
    owner = array
    while (below := owner.base) is not None:
        if not hasattr(below, "dtype"):  # NumPy's as_strided puts a stand-in between; else it is somebody's buffer
            below = getattr(below, "base", None)
            if not hasattr(below, "dtype"):
                break
        owner = below
    return owner


def share_memory(a: Any, b: Any) -> bool:
    """Whether two arrays lie in the same memory (if not at the same place in it)."""
    return a is b if a.base is None and b.base is None else memory_of(a) is memory_of(b)


def address(array: Any) -> int:
    """The address of the first element of ``array``."""
    return int(array.ctypes.data if isinstance(array, numpy.ndarray) else array.data.ptr)


def offset_in_memory(array: Any) -> int:
    """How far behind the start of its memory ``array`` begins, in elements."""
    return (address(array) - address(memory_of(array))) // array.itemsize


def numpy_moveaxis(array: Any) -> Any:
    """``array`` with its channels (dimension 1) last."""
    return array.transpose(0, *range(2, array.ndim), 1)


def _short(value: Any) -> str:
    return type(value).__name__


REQUIRE = "requires_grad_() it, or compute it from what requires gradients while that is recorded"
NOT_A_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
    "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use "
    ".retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf "
    "Tensor instead."
)
LEAF_OF_INFERENCE = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
DETACHED = (
    " If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = "
    "var.detach()."
)
DETACH_VIEW = (
    "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
    "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
    "these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py "
    "as the solution."
)
__all__ = ["OutputEdge", "Tensor", "at_edge", "wrap"]
