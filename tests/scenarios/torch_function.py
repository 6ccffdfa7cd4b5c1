"""``__torch_function__``: subclasses of Tensor, duck types, and modes of ``torch.overrides``."""

from __future__ import annotations

import copy
import functools
import io
import operator
import pickle
import threading
from typing import Any


def _of(torch: Any, name: str = "My", **body: Any) -> Any:
    """Return a subclass of Tensor that overrides nothing."""
    return type(name, (torch.Tensor,), body)


def _names(value: Any) -> Any:
    """Return the class names of values."""
    return [_names(each) for each in value] if type(value) in (tuple, list) else type(value).__name__


def _logging(torch: Any, log: Any) -> Any:
    """Return a subclass that logs every call."""

    class Logging(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is not torch.Tensor.__repr__:
                log.append((func.__name__, [each.__name__ for each in types], _names(args), sorted(kwargs or {})))
            return super().__torch_function__(func, types, args, kwargs)

    return Logging


def _mode(torch: Any, log: Any, name: str = "mode", change: Any = None) -> Any:
    """Return a mode that logs every call."""

    class Log(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append((name, func.__name__, [each.__name__ for each in types], len(args), sorted(kwargs or {})))
            kwargs = dict(kwargs or {})
            return func(*args, **(change(func, kwargs) if change else kwargs))

        def __repr__(self):
            return name

    return Log()


def _diagonal(torch: Any) -> Any:
    """Return the duck type of PyTorch's documentation (a multiple of the identity) and its table of functions."""
    handled: dict[Any, Any] = {}

    class Scalar:
        def __init__(self, n, value):
            self.n, self.value = n, value

        def __repr__(self):
            return f"Scalar({self.n}, {self.value})"

        def tensor(self):
            return self.value * torch.eye(self.n)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in handled or not all(issubclass(each, (torch.Tensor, Scalar)) for each in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    def implements(function):
        def register(own):
            handled[function] = functools.wraps(function)(own) if hasattr(function, "__wrapped__") else own
            return own

        return register

    def dense(x):
        return x.tensor() if isinstance(x, Scalar) else x

    @implements(torch.mean)
    def mean(input):
        return float(input.value) / input.n

    @implements(torch.add)
    def add(input, other):
        if isinstance(input, Scalar) and isinstance(other, Scalar):
            return Scalar(input.n, input.value + other.value)
        return torch.add(dense(input), dense(other))

    @implements(torch.nn.functional.relu)
    def relu(input, inplace=False):
        return Scalar(input.n, max(input.value, 0))

    for each in (
        torch.Tensor.add,
        torch.Tensor.mul,
        torch.Tensor.matmul,
        torch.Tensor.__rsub__,
        torch.cat,
        torch.stack,
    ):
        implements(each)(lambda *args, f=each, **kwargs: f(*[
            [dense(one) for one in arg] if isinstance(arg, (list, tuple)) else dense(arg) for arg in args
        ], **kwargs))  # fmt: skip
    return Scalar


# -- Subclasses that change nothing --------------------------------------------------------------------------------


def results_have_the_subclass(torch, log):
    m, t = _of(torch)([1.0, 2.0]), torch.ones(2)
    made = [m + 1, 1 + m, t + m, m - t, 2 / m, m**2, -m, m == t, m[0], m[:1], m.sum(), m.view(2, 1), m.view(2, 1).T, m.real, m.detach(),
            m.data, m.clone(), m.double(), m.bool(), m @ t]  # fmt: skip
    return _names(made), [repr(each) for each in made[:6]]


def functions_return_the_subclass(torch, log):
    m = _of(torch)([[1.0, -2.0], [3.0, 4.0]])
    F = torch.nn.functional
    made = [F.relu(m), F.softmax(m, 1), F.linear(m, m), torch.linalg.inv(m), torch.fft.fft(m), torch.special.erf(m),
            torch.where(m > 0, m, 0 * m), torch.einsum("ij->ji", m), torch.cat([m, m]), torch.stack((m, m)), F.pad(m, (1, 1)),
            torch.zeros_like(m), torch.ones_like(m), m.new_zeros(2), m.new_tensor([1]), torch.norm(m), F.mse_loss(m, m)]  # fmt: skip
    return _names(made)


def several_results(torch, log):
    m = _of(torch)([[1.0, 2.0], [3.0, 4.0]])
    made = [
        m.max(1),
        m.split(1),
        m.unbind(),
        torch.meshgrid(m[0], m[1], indexing="ij"),
        m.sort(),
        torch.atleast_1d(m, m),
    ]
    return [type(each).__name__ for each in made], [_names(tuple(each)) for each in made], repr(m.max(1))


def numbers_and_sizes_are_not_converted(torch, log):
    m = _of(torch)([[1.0, 2.0]])
    return _names((m[0, 0].item(), m.numel(), m.shape, m.size(0), m.dtype, m.tolist(), m.dim(), len(m), m.stride()))


def text(torch, log):
    my = _of(torch)
    leaf = my([1.0, 2.0]).requires_grad_()
    return (
        [repr(each) for each in (my([1, 2]), my(torch.eye(2)), leaf, leaf * 2, leaf[0], my([]))],
        f"{leaf[0]}",
        str(leaf),
    )


def plain_functions_stay_plain(torch, log):
    m = _of(torch)([1.0])
    return _names([m, torch.ones(1) + 1, torch.tensor(m), torch.as_tensor(m), torch.nn.Parameter(torch.ones(1)) * 2])


def gradients_are_plain(torch, log):
    my = _of(torch)
    m, x = my([1.0, 2.0]).requires_grad_(), torch.ones(2, requires_grad=True)
    loss = (m * x).sum()
    (g,) = torch.autograd.grad(loss, m, retain_graph=True)
    loss.backward()
    return _names([loss, g, m.grad, x.grad]), m.grad, x.grad


def nodes_of_results(torch, log):
    x = torch.ones(2, requires_grad=True)
    m = x.as_subclass(_of(torch))
    y = m * 2
    names = [m.grad_fn.name(), y.grad_fn.name(), y.grad_fn.next_functions[0][0].name()]
    y.sum().backward()
    return names, m.is_leaf, type(y._base).__name__, x.grad


def in_place(torch, log):
    my = _of(torch)
    m, t = my([1.0, 2.0]), torch.zeros(2)
    same = m.add_(1) is m
    m += 1
    m[0] = 7
    t += my([1.0, 1.0])
    t2 = torch.zeros(2)
    t2[0] = my([5.0])[0]
    torch.add(m, 1, out=t2)
    return same, repr(m), type(t).__name__, t, type(t2).__name__, t2, m._version


def views_share_memory(torch, log):
    m = _of(torch)([1.0, 2.0])
    v = m[:1]
    v.fill_(9)
    w = m.as_subclass(torch.Tensor)
    w[1] = 8
    return repr(m), type(w).__name__, v._base is not None


def made_from_a_tensor(torch, log):
    my = _of(torch)
    x = torch.ones(2, requires_grad=True)
    made = torch.Tensor._make_subclass(my, x * 2), torch.Tensor._make_subclass(my, x, True), my(torch.ones(2))
    return [repr(each) for each in made], [each.is_leaf for each in made], made[0].data_ptr() == x.data_ptr()


def as_subclass_of_another_type(torch, log):
    return torch.ones(1).as_subclass(int)


def subclasses_of_subclasses(torch, log):
    a = _of(torch, "A")
    b = type("B", (a,), {})
    c = type("C", (torch.Tensor,), {})
    made = [a([1.0]) + b([1.0]), b([1.0]) + a([1.0])]
    log.append(_names(made))
    return b([1.0]) + c([1.0])


def unrelated_subclasses(torch, log):
    a, b = _of(torch, "A"), _of(torch, "B")
    return torch.add(a([1.0]), b([1.0]))


def copies_and_pickles(torch, log):
    global Kept
    Kept = _of(torch, "Kept", __module__=__name__)
    m = Kept([1.0, 2.0])
    m.note = "kept"
    shallow, pickled = copy.copy(m), pickle.loads(pickle.dumps(m))
    return [(type(each).__name__, each.note, each) for each in (shallow, pickled)], shallow.data_ptr() == m.data_ptr()


def saved_to_a_file(torch, log):
    global Kept
    Kept = _of(torch, "Kept", __module__=__name__)
    file = io.BytesIO()
    torch.save(Kept([1.0, 2.0]), file)
    file.seek(0)
    found = torch.load(file, weights_only=False)
    return type(found).__name__, found


def attributes_are_not_inherited(torch, log):
    m = _of(torch)([1.0])
    m.note = 5
    return m.note, hasattr(m + 1, "note"), hasattr(m[0], "note"), m.add_(1).note


def parameters(torch, log):
    my = _of(torch)
    p = torch.nn.Parameter(my([1.0, 2.0]))
    q = torch.nn.Parameter(torch.ones(2))
    layer = torch.nn.Linear(2, 1, bias=False)
    layer.weight = torch.nn.Parameter(my([[1.0, 2.0]]))
    y = layer(torch.ones(2))
    y.sum().backward()
    return (repr(p), type(p).__name__, isinstance(p, torch.nn.Parameter), type(q * 2).__name__, type(p * 2).__name__,
            type(y).__name__, layer.weight.grad, type(layer.weight.grad).__name__, [n for n, _ in layer.named_parameters()])  # fmt: skip


def subclass_of_parameter(torch, log):
    own = type("Own", (torch.nn.Parameter,), {})
    p = own(torch.ones(2))
    return repr(p), type(p + 1).__name__, type(p.data).__name__, p.requires_grad


def through_modules(torch, log):
    my, nn = _of(torch), torch.nn
    x = my([[1.0, 2.0, 3.0, 4.0]])
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.LayerNorm(4), nn.Dropout(0.5), nn.Softmax(1))
    y = net(x)
    y.sum().backward()
    image = my([[[[1.0, 2.0], [3.0, 4.0]]]])
    return _names([y, nn.Conv2d(1, 2, 1)(image), nn.MaxPool2d(2)(image), nn.MSELoss()(x, x), net[0].weight.grad, nn.Flatten()(image),
                   nn.Embedding(3, 2)(my([1]).long()), nn.BatchNorm1d(4)(x.expand(2, 4))])  # fmt: skip


def in_a_training_step(torch, log):
    my = _of(torch)
    w = torch.nn.Parameter(my([1.0, 2.0]))
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
    return repr(w), type(w.grad).__name__


def disabled_torch_function(torch, log):
    m = _of(torch)([1.0])
    off = type("Off", (torch.Tensor,), {"__torch_function__": torch._C._disabled_torch_function_impl})
    with torch._C.DisableTorchFunctionSubclass():
        inside = type(m + 1).__name__, torch.overrides.has_torch_function((m,))
    return inside, type(m + 1).__name__, type(off([1.0]) + 1).__name__, type(off([1.0])[0]).__name__


def hooks_get_plain_gradients(torch, log):
    m = _of(torch)([1.0]).requires_grad_()
    m.register_hook(lambda grad: log.append(type(grad).__name__))
    y = m * 2
    y.register_hook(lambda grad: log.append(type(grad).__name__))
    y.sum().backward()


def custom_functions(torch, log):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            log.append(type(x).__name__)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            log.append(type(grad).__name__)
            return grad * 2

    m = _of(torch)([1.0]).requires_grad_()
    y = Double.apply(m)
    y.sum().backward()
    return type(y).__name__, m.grad


def double_backward(torch, log):
    m = _of(torch)([2.0]).requires_grad_()
    (g,) = torch.autograd.grad((m**3).sum(), m, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), m)
    return _names([g, h]), g, h


# -- Subclasses that answer ------------------------------------------------------------------------------------------


def logging_operators(torch, log):
    x, t = _logging(torch, log)([1.0, 2.0]), torch.ones(2)
    for each in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.eq, operator.lt, operator.mod,
                 operator.floordiv):  # fmt: skip
        each(x, 2), each(2, x), each(t, x)
    return _names([x @ t, t @ x, -x, abs(x), x[0], t[x > 1]])


def logging_in_place(torch, log):
    x = _logging(torch, log)([1.0, 2.0])
    x += 1
    x -= 1
    x *= 2
    x /= 2
    x[0] = 5
    x.mul_(2).add_(1, alpha=2)
    return repr(x)


def logging_properties(torch, log):
    x = _logging(torch, log)([1.0, 2.0])
    values = x.shape, x.ndim, x.dtype, x.requires_grad, x.is_leaf, x.grad_fn, x.device, x.data, x.grad, x.real
    x.requires_grad = True
    x.grad = torch.ones(2)
    return _names(values)


def logging_methods(torch, log):
    x = _logging(torch, log)([1.0, 2.0])
    (
        x.sum(0, keepdim=True),
        x.split(1),
        x.norm(),
        x.unique(),
        x.size(0),
        x.numel(),
        x.tolist(),
        x.to(torch.float64),
        x.type(),
    )
    (
        x.new_zeros(2),
        x.clamp(min=0),
        x.expand(2, 2),
        x.contiguous(),
        x.is_floating_point(),
        x.element_size(),
        x.unflatten(0, (1, 2)),
    )
    return len(x), bool(x[0]), float(x[1]), list(map(float, x)), 1.0 in x


def logging_functions(torch, log):
    x, F = _logging(torch, log)([[1.0, 2.0]]), torch.nn.functional
    (
        F.relu(x),
        F.relu(x, inplace=False),
        F.softmax(x, dim=1),
        F.linear(x, x),
        F.gelu(x),
        F.dropout(x, training=False),
        F.pad(x, (1, 1)),
    )
    (
        torch.cat([x, x]),
        torch.stack((x, x), dim=1),
        torch.add(x, 1, alpha=2),
        torch.mean(input=x),
        torch.split(x, 1),
        torch.norm(x),
    )
    (
        torch.einsum("ij,ij->", x, x),
        torch.where(x > 0, x, x),
        torch.linalg.norm(x),
        torch.fft.fft(x),
        torch.special.erf(x),
    )
    torch.add(torch.ones(1), 1, out=x[0, :1])
    return torch.atleast_1d(x, x), torch.allclose(x, x)


def logging_modules(torch, log):
    nn, x = torch.nn, _logging(torch, log)([[1.0, 2.0]])
    layers = (
        nn.Linear(2, 2),
        nn.ReLU(),
        nn.LayerNorm(2),
        nn.Dropout(0.0),
        nn.Softmax(dim=1),
        nn.Sigmoid(),
        nn.Tanh(),
        nn.GELU(),
    )
    for layer in layers:
        layer(x)
    nn.MSELoss()(x, x), nn.L1Loss()(x, x)


def logging_backward(torch, log):
    x = _logging(torch, log)([1.0, 2.0]).requires_grad_()
    (x * x).sum().backward()
    return repr(x.grad)


def metadata(torch, log):
    class Metadata(torch.Tensor):
        @staticmethod
        def __new__(cls, data, metadata=None):
            return torch.as_tensor(data).as_subclass(cls)

        def __init__(self, data, metadata=None):
            self.metadata = metadata

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            found = [each.metadata for each in args if hasattr(each, "metadata")]
            result = super().__torch_function__(func, types, args, kwargs or {})
            if isinstance(result, cls) and found:
                result.metadata = found[0]
            return result

    a, b = Metadata([1.0, 2.0], "first"), Metadata([3.0, 4.0], "second")
    return (a + b).metadata, (1 + b).metadata, torch.mul(a, 2).metadata, a[0].metadata, repr(a + b), (-b).sum().metadata


def unwrapping(torch, log):
    class Wrapped:
        def __init__(self, data, unit):
            self.data, self.unit = data, unit

        def __repr__(self):
            return f"{self.data.tolist()} {self.unit}"

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            units = {each.unit for each in args if isinstance(each, cls)}
            bare = [each.data if isinstance(each, cls) else each for each in args]
            return cls(func(*bare, **(kwargs or {})), "/".join(sorted(units)))

    x, y, t = Wrapped(torch.tensor([1.0, 2.0]), "m"), Wrapped(torch.tensor([3.0, 4.0]), "s"), torch.ones(2)
    return [repr(each) for each in (torch.add(x, y), t + x, 1 + torch.mul(x, 2).data, torch.sum(x), t * y, torch.sub(t, x, alpha=2),
                                    torch.nn.functional.relu(x), torch.unsqueeze(x, 0), t - x, t**x, t == x)]  # fmt: skip


def not_implemented_for_some_functions(torch, log):
    class Only(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented if func is torch.exp else super().__torch_function__(func, types, args, kwargs)

    log.append(repr(Only([1.0]) + 1))
    return torch.exp(Only([1.0]))


def not_implemented_for_an_operator(torch, log):
    class Never(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    return Never([1.0]) + 1


def raising(torch, log):
    class Bad(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise ValueError(f"not {func.__name__}")

    return torch.exp(Bad([1.0]))


def arguments_that_do_not_fit(torch, log):
    return torch.exp(_of(torch)([1.0]), 1, 2)


def shapes_that_do_not_fit(torch, log):
    my = _of(torch)
    return my([1.0, 2.0]) + my([1.0, 2.0, 3.0])


def not_called_by_super(torch, log):
    my = _of(torch)
    found = [torch.Tensor.__torch_function__(torch.add, (torch.Tensor,), (torch.ones(1), 1)),
             torch.Tensor.__torch_function__(torch.add, (my,), (torch.ones(1), 1)),
             my.__torch_function__(torch.add, (my, torch.Tensor), (torch.ones(1), 1)),
             my.__torch_function__(torch.add, (int,), (torch.ones(1), 1)),
             my.__torch_function__(torch.split, (my,), (torch.ones(2), 1), {"dim": 0})]  # fmt: skip
    return _names(found)


def dispatch_order(torch, log):
    def made(name, base, answer):
        def asked(cls, func, types, args=(), kwargs=None):
            log.append((name, [each.__name__ for each in types]))
            return answer

        return type(name, base, {"__torch_function__": classmethod(asked)})

    a = made("A", (), NotImplemented)
    b = made("B", (a,), NotImplemented)
    c = made("C", (), 7)
    found = [torch.add(a(), c()), torch.add(c(), a()), torch.stack([a(), b(), c()]), torch.cat([c(), b(), a(), b()])]
    found.append(torch.nn.functional.mse_loss(a(), c()))
    return found, torch.where(torch.ones(1), b(), c())


# -- Types that imitate tensors -------------------------------------------------------------------------------------


def documented_scalar(torch, log):
    scalar = _diagonal(torch)
    s, t = scalar(2, 3.0), torch.ones(2, 2)
    made = (
        torch.add(s, s),
        torch.add(s, t),
        torch.add(t, s),
        t + s,
        t * s,
        t @ s,
        s @ t if hasattr(s, "__matmul__") else 0,
    )
    return (
        torch.mean(s),
        repr(made[0]),
        made[1:],
        torch.nn.functional.relu(scalar(2, -3.0)).value,
        torch.nn.ReLU()(s).value,
    )


def documented_scalar_in_lists(torch, log):
    s, t = _diagonal(torch)(2, 3.0), torch.ones(2, 2)
    return torch.cat([s, t]), torch.stack((t, s)), 5 + torch.add(s, t)


def documented_scalar_is_not_a_tensor(torch, log):
    s = _diagonal(torch)(2, 3.0)
    return torch.is_tensor(s), torch.overrides.is_tensor_like(s), torch.mul(s, 2)


def reflected(torch, log):
    s = _diagonal(torch)(2, 3.0)
    return s - torch.ones(2, 2)


def missing_operator(torch, log):
    return _diagonal(torch)(2, 3.0) / torch.ones(2, 2)


def missing_method(torch, log):
    return torch.ones(2, 2).sub(_diagonal(torch)(2, 3.0))


def missing_python_function(torch, log):
    return torch.nn.functional.softmax(_diagonal(torch)(2, 3.0), dim=0)


def _duck(log: Any) -> Any:
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((func.__name__, [each.__name__ for each in types], _names(args), sorted(kwargs or {})))
            return "asked"

    return Duck()


def duck_types_in_functions(torch, log):
    d, t, F = _duck(log), torch.ones(2), torch.nn.functional
    return [torch.exp(d), torch.add(t, d), torch.add(d, t, alpha=2), torch.add(input=t, other=d), torch.cat([t, d]), torch.stack((d, t)),
            torch.where(d, t, t), torch.mean(d, 0), torch.clamp(t, min=d), F.relu(d), F.linear(t, d), F.layer_norm(t, (2,), d),
            F.cross_entropy(d, t), F.embedding(t, d), F.gelu(d), torch.linalg.inv(d), torch.fft.fft(d), torch.special.erf(d),
            torch.split(d, 1), torch.unique(d), torch.einsum("i,i->", t, d), torch.zeros_like(d), torch.numel(d), torch.allclose(t, d),
            torch.bmm(d, d), torch.index_select(t, 0, d), torch.var_mean(d), torch.atleast_1d(t, d), torch.matmul(t, d)]  # fmt: skip


def duck_types_in_methods(torch, log):
    d, t = _duck(log), torch.ones(2)
    return [t.add(d), t.mul(d), t.copy_(d), t.mul_(d), t.clamp(min=d), t.view_as(d), t.to(d), t.where(t > 0, d), t.masked_fill(d, 0.0),
            t.index_select(0, d), t.matmul(d), t.equal(d), t.new_tensor([1.0]).add(d)]  # fmt: skip


def duck_types_in_operators(torch, log):
    d, t = _duck(log), torch.ones(2)
    found = [t + d, d + t, t - d, d - t, t * d, t / d, d / t, t**d, d**t, t @ d, d @ t, t // d, t % d, t & d, d | t, t << d, t == d, d == t,
             t != d, t < d, d >= t, t[d]]  # fmt: skip
    t[0] = d
    t += d
    return found, t


def duck_types_in_modules(torch, log):
    d, nn = _duck(log), torch.nn
    return (
        nn.Linear(2, 2)(d),
        nn.ReLU()(d),
        nn.Conv2d(1, 1, 1)(d),
        nn.Dropout()(d),
        nn.LayerNorm(2)(d),
        nn.MSELoss()(d, d),
        nn.GELU()(d),
    )


def duck_types_where_nothing_dispatches(torch, log):
    return torch.tensor(_duck(log))


def functions_bound_before_the_mode(torch, log):
    add, relu, method, shape = torch.add, torch.nn.functional.relu, torch.Tensor.add, torch.Tensor.shape.__get__
    my, d = _of(torch), _duck(log)

    class Same(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(
                (func is add, func is relu, func is method, func == shape, {shape: "shape", add: "add"}.get(func))
            )
            return 0

    s = Same([1.0])
    return (type(add(my([1.0]), 1)).__name__, add(d, 1), relu(d), method(torch.ones(1), d), add(s, 1), relu(s), s + 1, s.shape,
            s.add(1))  # fmt: skip


# -- Modes -----------------------------------------------------------------------------------------------------------


def mode_sees_all(torch, log):
    t, F = torch.ones(2), torch.nn.functional
    with _mode(torch, log):
        (
            torch.zeros(2),
            torch.ones(2, dtype=torch.int32),
            torch.rand(1),
            torch.arange(3),
            torch.tensor([1.0]),
            torch.full((1,), 2.0),
        )
        (
            t + 1,
            2 - t,
            t.sum(),
            t[0],
            F.relu(t),
            F.softmax(t, 0),
            torch.split(t, 1),
            torch.cat([t, t]),
            torch.add(t, 1, alpha=2),
        )
        t.shape, t.view(2, 1), t.detach(), t.tolist(), t.split(1), t == t, t.requires_grad, torch.empty(1), torch.eye(2)
        (
            torch.linalg.norm(t),
            torch.fft.fft(t),
            torch.special.erf(t),
            torch.result_type(t, 1),
            torch.promote_types(t.dtype, t.dtype),
        )
    torch.zeros(1)
    return torch.is_tensor(t)


def mode_changes_factories(torch, log):
    def change(func, kwargs):
        return (
            {"dtype": torch.float64, **kwargs}
            if func in (torch.zeros, torch.ones, torch.rand, torch.tensor)
            else kwargs
        )

    with _mode(torch, log, change=change):
        made = (
            torch.zeros(1),
            torch.ones(2),
            torch.zeros(1, dtype=torch.int32),
            torch.tensor([1]),
            torch.full((1,), 1.0),
        )
    return [str(each.dtype) for each in (*made, torch.zeros(1))]


def nested_modes(torch, log):
    with _mode(torch, log, "outer"), _mode(torch, log, "inner"):
        torch.nn.functional.relu(torch.ones(1))


def the_same_mode_twice(torch, log):
    mode = _mode(torch, log)
    with mode, mode:
        torch.ones(1)
    with mode:
        torch.ones(1)


def mode_and_subclass(torch, log):
    x = _logging(torch, log)([1.0])
    with _mode(torch, log):
        y = x + 1
        torch.nn.functional.relu(x)
    return repr(y)


def mode_returns_not_implemented(torch, log):
    class No(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

        def __repr__(self):
            return "No()"

    with No():
        return torch.exp(torch.Tensor([1.0]))


def mode_delegates_to_the_subclass(torch, log):
    class No(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return NotImplemented

    x = _duck(log)
    with No():
        return torch.exp(x), torch.nn.functional.relu(x)


def mode_not_implemented_for_python(torch, log):
    class No(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

        def __repr__(self):
            return "No()"

    t = torch.ones(1)
    with No():
        return torch.nn.functional.relu(t)


def mode_returns_not_implemented_without_subclass(torch, log):
    class No(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

        def __repr__(self):
            return "No()"

    d = type(
        "Never", (), {"__torch_function__": classmethod(lambda cls, *given: NotImplemented), "__module__": "here"}
    )()
    with No():
        return torch.exp(d)


def mode_without_a_handler(torch, log):
    class Empty(torch.overrides.TorchFunctionMode):
        pass

    with Empty():
        return torch.ones(1)


def mode_that_raises(torch, log):
    mode = _mode(torch, log)
    try:
        with mode:
            torch.ones(1)
            raise KeyError("out")
    except KeyError:
        torch.ones(1)
    return torch.ones(1)


def base_mode(torch, log):
    with torch.overrides.BaseTorchFunctionMode() as mode:
        return torch.ones(1) + 1, isinstance(mode, torch.overrides.TorchFunctionMode)


def mode_switched_off(torch, log):
    with _mode(torch, log):
        with torch._C.DisableTorchFunction():
            torch.ones(1)
        with torch._C.DisableTorchFunctionSubclass():
            torch.zeros(1)


def mode_pushed(torch, log):
    kind = type(_mode(torch, log))
    with kind.push():
        torch.ones(1)


def mode_of_a_thread(torch, log):
    def other():
        torch.zeros(1)

    with _mode(torch, log):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        torch.ones(1)


def mode_in_a_training_step(torch, log):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    x = torch.ones(1, 2)
    with _mode(torch, log):
        loss = net(x).sum()
        loss.backward()
    return net[0].bias.grad is not None


def mode_that_counts(torch, log):
    class Count(torch.overrides.TorchFunctionMode):
        def __init__(self):
            self.counts = {}

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.counts[func] = self.counts.get(func, 0) + 1
            return func(*args, **(kwargs or {}))

    with Count() as count:
        x = torch.ones(2)
        for _ in range(3):
            x = torch.sin(x) + 1
        x.sum()
    counts = count.counts
    return [counts.get(each, 0) for each in (torch.ones, torch.sin, torch.Tensor.add, torch.Tensor.sum, torch.cos)]


def default_device_still_works(torch, log):
    with torch.device("cpu"):
        a = torch.ones(1)
    torch.set_default_device("cpu")
    b = torch.ones(1) + _of(torch)([1.0])
    torch.set_default_device(None)
    return a.device.type, repr(b)


# -- torch.overrides -------------------------------------------------------------------------------------------------


def has_torch_function(torch, log):
    has, t, m, d = torch.overrides.has_torch_function, torch.ones(1), _of(torch)([1.0]), _duck(log)
    found = [has(each) for each in ((t,), (m,), (d,), (1, "a", t), (t, m), [d], (torch.nn.Parameter(t),), ())]
    with _mode(torch, log):
        found.append(has((t,)))
    like = torch.overrides.is_tensor_like
    return found, [like(each) for each in (t, m, d, 1, torch.nn.Parameter(t), None)]


def handle_torch_function(torch, log):
    handle, m = torch.overrides.handle_torch_function, _of(torch)([1.0])
    return (
        handle(torch.add, (m,), m, 1),
        handle(torch.add, (_duck(log),), 1, alpha=2),
        type(handle(torch.add, (m,), m, 1)).__name__,
    )


def handle_torch_function_not_implemented(torch, log):
    never = type(
        "Never", (), {"__torch_function__": classmethod(lambda cls, *given: NotImplemented), "__module__": "here"}
    )
    return torch.overrides.handle_torch_function(torch.add, (never(),), never(), 1)


def wrap_torch_function(torch, log):
    @torch.overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def twice(a, b=None):
        """Twice."""
        return "itself"

    with _mode(torch, log):
        twice(1)
    return twice(1), twice(_duck(log)), twice(1, b=_duck(log)), twice(_of(torch)([1.0])), twice.__name__, twice.__doc__


def own_function(torch, log):
    def blend(a, b):
        if torch.overrides.has_torch_function((a, b)):
            return torch.overrides.handle_torch_function(blend, (a, b), a, b)
        return a + b * 2

    x = _logging(torch, log)([1.0])
    return repr(blend(x, 1)), blend(torch.ones(1), 1), blend(_duck(log), 1)


def redispatching(torch, log):
    class Logging(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return torch.overrides.redispatch_function(func, types, args, kwargs)

    def scaled(a, b):
        if torch.overrides.has_torch_function((a, b)):
            return torch.overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    found = scaled(Logging([3.0]), Logging([4.0]))
    return type(found).__name__, found


def names_of_functions(torch, log):
    name, T, F = torch.overrides.resolve_name, torch.Tensor, torch.nn.functional
    return [name(each) for each in (torch.add, T.add, F.relu, torch.split, T.shape.__get__, T.__add__, torch.linalg.inv, F.linear, torch.cat,
                                    T.requires_grad.__set__, torch.einsum, torch.nn.init.normal_, len, T.__getitem__, F.conv2d)]  # fmt: skip


def methods_and_properties(torch, log):
    is_method, T = torch.overrides.is_tensor_method_or_property, torch.Tensor
    return [
        is_method(each)
        for each in (T.add, torch.add, T.shape.__get__, T.__add__, torch.nn.functional.relu, T.add_, torch.cat)
    ]


def lists_of_functions(torch, log):
    o = torch.overrides
    ignored, listed, tests = o.get_ignored_functions(), o.get_overridable_functions(), o.get_testing_overrides()
    return [torch.zeros in ignored, torch.add in ignored, torch.is_tensor in ignored, torch.add in listed[torch],
            torch.Tensor.add in listed[torch.Tensor], torch.nn.functional.relu in listed[torch.nn.functional], torch.rand in listed[torch],
            tests[torch.add](1, 2), tests[torch.nn.functional.relu](1), torch.linalg.inv in tests, torch.zeros in tests,
            torch.Tensor.grad.__get__ in o.get_default_nowrap_functions()]  # fmt: skip


def name_attributes_of_functions(torch, log):
    T, F = torch.Tensor, torch.nn.functional
    each = (torch.add, T.add, T.__radd__, T.__rsub__, T.__rtruediv__, T.__pow__, T.__getitem__, T.__len__, T.__repr__, T.__bool__, T.__eq__,
            torch.linalg.inv, torch.fft.fft, torch.special.erf, F.relu, F.conv2d, torch.split, T.shape.__get__, T.__deepcopy__, T.add_)  # fmt: skip
    return [one.__name__ for one in each]


def aliases_in_two_namespaces(torch, log):
    F = torch.nn.functional
    return [
        getattr(F, name) is getattr(torch, name)
        for name in ("conv2d", "prelu", "pixel_shuffle", "cosine_similarity", "relu", "softmax")
    ]


def through_recurrent_layers(torch, log):
    my, nn = _of(torch), torch.nn
    x = my([[[1.0, 2.0]]])
    made = (
        nn.GRU(2, 3)(x),
        nn.LSTM(2, 3)(x),
        nn.RNN(2, 3)(x),
        nn.GRUCell(2, 3)(x[0]),
        nn.LSTMCell(2, 3)(x[0]),
        nn.RNNCell(2, 3)(x[0]),
    )
    return _names(made)


def through_attention(torch, log):
    my, nn = _of(torch), torch.nn
    x = my([[[1.0, 2.0]]])
    return _names(
        [
            nn.MultiheadAttention(2, 1)(x, x, x),
            nn.TransformerEncoderLayer(2, 1, 4)(x),
            nn.TransformerDecoderLayer(2, 1, 4)(x, x),
        ]
    )


def attributes_through_copies(torch, log):
    class Tagged(torch.Tensor):
        def __new__(cls, data, tag="x"):
            made = torch.Tensor._make_subclass(cls, torch.as_tensor(data))
            made.tag = tag
            return made

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs)
            if isinstance(result, Tagged) and not hasattr(result, "tag"):
                result.tag = "+".join(each.tag for each in args if isinstance(each, Tagged))
            return result

    a, b = Tagged([1.0, 2.0], "a"), Tagged([3.0, 4.0], "b")
    made = a + b, a[0], b.sum(), a.clone(), copy.copy(a), a.detach(), a * torch.ones(2), a > 1, a.double()
    return [each.tag for each in made]


def mode_changes_initialisation_of_layers(torch, log):
    class Double(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if func in (torch.empty, torch.zeros, torch.ones, torch.rand, torch.tensor):
                kwargs["dtype"] = torch.float64
            return func(*args, **kwargs)

    with Double():
        layer, norm, x = torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.ones(1, 2)
    return [str(each.dtype) for each in (layer.weight, norm.weight, norm.running_mean, x, layer(x))]


def mode_counts_calls_of_layers(torch, log):
    class Count(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return func(*args, **(kwargs or {}))

    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3), nn.LogSoftmax(1)
    )
    x, target = torch.ones(2, 1, 4, 4), torch.tensor([0, 1])
    with Count():
        loss = torch.nn.functional.nll_loss(net(x), target)
        loss.backward()


def torch_function_without_classmethod(torch, log):
    class Duck:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func.__name__, len(types)

    return torch.add(Duck(), 1), torch.nn.functional.relu(Duck())


def subclass_with_its_own_methods(torch, log):
    class Own(torch.Tensor):
        def double(self):
            return self * 2

        @property
        def first(self):
            return self[0]

        def __add__(self, other):
            log.append("mine")
            return super().__add__(other)

        def __repr__(self):
            return f"Own {self.tolist()}"

    x = Own([1.0, 2.0])
    return [repr(each) for each in (x.double(), x.first, x + 1, 1 + x, torch.add(x, 1), x.double() + x)]


def subclass_in_a_dataset(torch, log):
    data = torch.utils.data.TensorDataset(_of(torch)([[1.0], [2.0]]))
    (batch,) = next(iter(torch.utils.data.DataLoader(data, batch_size=2)))
    return type(batch).__name__, batch


def subclass_under_other_modes(torch, log):
    my = _of(torch)
    x = my([1.0]).requires_grad_()
    with torch.no_grad():
        a = x * 2
    with torch.inference_mode():
        b = x * 2
    return [(type(each).__name__, each.requires_grad, each.is_inference()) for each in (a, b, x * 2)]


#: Calls whose handlers get the arguments in different forms. Those after ``h`` are not calls of tensors.
FORMS = """torch.sum(x, 1)
torch.sum(x, dim=1)
torch.sum(x, axis=1, keepdims=True)
x.sum(1, False)
x.sum(1, keepdim=False)
torch.Tensor.sum(x, 1)
torch.Tensor.sum(x, 1, False)
Holder.Tensor.sum(x, 0)
Holder.x.sum(0, False)
torch.add(input=x, other=x)
torch.clamp(x, 0, None)
torch.clamp(x, min=0)
torch.nn.functional.linear(x, x, None)
torch.cat([x, x], 0)
torch.topk(x, 1, -1)
x.argmax(None)
total(x, 1)
total(*pair)
total(*pair, **named)
sorted([x], key=torch.sum)
functools.reduce(torch.add, [x, x])
(h(dim=1), torch.sum(x, 1))
h(keepdim=1) or x.sum(1, True)
x.sum((0 if named else 1), named is None)
x.sum(1).add(x[0],
    alpha=2)
[torch.sum(each, dim=0) for each in pair[:1]]
x + 1""".replace("\n    ", " ").splitlines()


def calls_without_source(torch, log):
    class Log(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            named = [(key, type(each).__name__) for key, each in (kwargs or {}).items()]
            log.append((func.__name__, [type(each).__name__ for each in args], named))
            return func(*args, **(kwargs or {}))

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    names = {
        "torch": torch,
        "functools": functools,
        "x": x,
        "h": lambda **named: None,
        "total": torch.sum,
        "pair": (x, 1),
    }
    names |= {"named": {"keepdim": True}, "Holder": type("Holder", (), {"x": x, "Tensor": torch.Tensor})}
    for each in FORMS:
        with Log():
            eval(each, names)
        local = {**names}
        exec(f"def run({', '.join(names)}): return {each}", local)
        with Log():
            local["run"](**names)


def mode_without_source(torch, log):
    source = """class Log(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        log.append((func.__name__, len(args), list(kwargs or {})))
        return func(*args, **kwargs or {})
x = torch.eye(2)
with Log(), Log():
    torch.sum(x, 1, False), x.sum(dim=1), torch.add(x, x, alpha=2), torch.nn.functional.linear(x, weight=x)
"""
    exec(source, {"torch": torch, "log": log})


def not_implemented_is_asked_once(torch, log):
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return NotImplemented

    x, f = torch.ones(2, 2), torch.nn.functional
    calls = [
        torch.exp, x.mul, x.add_, x.copy_, f.relu, lambda d: torch.sum(d, 1), lambda d: torch.sum(d, axis=1),
        lambda d: torch.max(x, d), lambda d: f.mse_loss(d, x), torch.norm, lambda d: torch.clamp(d, d),
        lambda d: f.conv1d(d, x), lambda d: torch.split(d, 1), lambda d: torch.where(d, x, x),
    ]  # fmt: skip
    for each in calls + calls:
        try:
            each(Duck())
        except TypeError as error:
            log.append(str(error).partition(":")[0])
