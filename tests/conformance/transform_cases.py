"""Calls of ``torch.func`` as expressions; their results and errors are recorded from PyTorch."""

from __future__ import annotations

from typing import Any

PRELUDE = """
vmap, grad, vjp, jvp, jacrev, jacfwd, hessian, grad_and_value, linearize = (
    getattr(torch.func, n) for n in "vmap grad vjp jvp jacrev jacfwd hessian grad_and_value linearize".split()
)
x = torch.arange(6.0).reshape(2, 3) / 3
y = torch.zeros(3)
i = torch.tensor([[0, 2], [1, 1]])
k = torch.tensor([[[1.0, -2.0]]])
w = torch.ones(3, requires_grad=True)
f = lambda a: (a.sin() * a).sum()
g = lambda a: torch.stack([a.sin().sum(), (a**3).sum(), a.prod()])
o, p = vjp(lambda a: (a.sin(), a.sum()), x)

def ip(a):
    y = a * 2
    y[0] = a[1] * 3
    y.mul_(a)
    return y.sum()

def seeded(a):
    torch.manual_seed(3)
    return a

def drawn(a, b):
    return a * 0 + b

def cube(a):
    return a**3

class Plain(torch.autograd.Function):
    @staticmethod
    def forward(a):
        return a**3
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * 3 * a**2
    @staticmethod
    def jvp(ctx, t):
        (a,) = ctx.saved_tensors
        return t * 3 * a**2

class Cube(Plain):
    generate_vmap_rule = True

class Doubled(Plain):
    @staticmethod
    def vmap(info, in_dims, a):
        return a * info.batch_size, in_dims[0]

class Old(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
"""

EXPRESSIONS = [
    "grad(f)(x)",
    "vmap(grad(f))(x)",
    "grad(lambda a: vmap(f)(a).prod())(x)",
    "grad(lambda a: grad(f)(a).sum())(x)",
    "vmap(lambda z: grad(lambda a: (a*z).sin().sum())(x[0]))(x)",
    "jvp(grad(f),(x,),(x*2,))",
    "grad(lambda a: jvp(f,(a,),(x*2,))[1])(x)",
    "jvp(lambda a: jvp(f,(a,),(x*2,))[1],(x,),(x,))",
    "hessian(f)(x[1])",
    "vmap(hessian(f))(x)",
    "jacrev(jacrev(jacfwd(lambda a: (a**4).sum())))(x[1][:2])",
    "vmap(jacrev(g))(x)",
    "vmap(jacfwd(g))(x)",
    "jacrev(lambda a: vmap(grad(f))(a))(x)",
    "jacfwd(lambda a: vmap(grad(f))(a))(x)",
    "grad_and_value(lambda a: (a*w*w).sum())(x[0])",
    "grad(lambda a: (a*w*w).sum())(x[0])",
    "grad(lambda a: a.sum()*grad(lambda b: (a*b).sum())(x).sum())(x)",
    "p((x,torch.tensor(2.)))",
    "vmap(lambda c: p((x,c)))(torch.arange(3.))",
    "jvp(vmap(f),(x,),(x,))",
    "vmap(lambda a,b: jvp(f,(a,),(b,)))(x,x*2)",
    "vmap(lambda b: jvp(f,(x[0],),(b,)))(x)",
    "vmap(vmap(grad(lambda a: a.sin())))(x)",
    "grad(lambda a: vmap(lambda b: jvp(f,(b,),(a[0],))[1])(a).sum())(x)",
    "vmap(lambda a: torch.cumsum(a,0)[torch.tensor([0,2])].sum() )(x)",
    "grad(lambda d: d['a'].sum()*d['b'][0].sum())({'a':x,'b':[x]})",
    "grad(lambda a,b: (a*b).sum(), argnums=(1,0))(x,x*3)",
    "hessian(lambda a,b: (a*b*b).sum(), argnums=(0,1))(x[0],x[1])",
    "jacrev(lambda a: torch.linalg.inv(a))(torch.tensor([[2.,1.],[0.,1.]]))",
    "jacfwd(lambda a: torch.linalg.inv(a))(torch.tensor([[2.,1.],[0.,1.]]))",
    "(vmap(ip)(x), vmap(grad(ip))(x), jvp(ip,(x[0],),(x[1],)), vmap(hessian(ip))(x))",
    "jacrev(lambda a: a.abs())(torch.tensor([1+2j,3.]))",
    "jvp(lambda a: (a*a).abs(),(torch.tensor([1+2j,3.]),),(torch.tensor([1j,1.]),))",
    "grad(lambda a: (a*a).abs().sum())(torch.tensor([1+2j,3.]))",
    "vmap(lambda a: a.sum().item())(x)",
    "vmap(lambda a: a if a.sum()>0 else -a)(x)",
    "vmap(lambda a: float(a.sum()))(x)",
    "vmap(lambda a: a.tolist())(x)",
    "vmap(lambda a: a.numpy())(x)",
    "vmap(lambda a: a.nonzero())(x)",
    "vmap(lambda a: a[a>1])(x)",
    "vmap(lambda a: a.unique())(x)",
    "vmap(lambda a: y.copy_(a))(x)",
    "vmap(lambda a: torch.sin(a,out=torch.empty(3)))(x)",
    "vmap(lambda a: a+torch.rand(3))(x)",
    "vmap(lambda a: torch.nn.functional.dropout(a))(x)",
    "vmap(lambda a: torch.zeros(3).normal_()+a, randomness='different')(x)",
    "vmap(lambda a: 3)(x)",
    "vmap(lambda a: None)(x)",
    "vmap(lambda a: (a,'s'))(x)",
    "vmap(lambda a: a, in_dims=3)(x)",
    "vmap(lambda a: a, in_dims=(0,0))(x)",
    "vmap(lambda a: a, in_dims='a')(x)",
    "vmap(lambda a: a, in_dims=(None,))(x)",
    "vmap(lambda a: a, in_dims=[0])(x)",
    "vmap(lambda a,b: a, in_dims=(0,0))(x, 3)",
    "vmap(lambda a,b: a, in_dims=([0],0))(x, x)",
    "vmap(lambda a,b: a)(x, torch.zeros(3))",
    "vmap(lambda : 3)()",
    "vmap(lambda a : a)(torch.tensor(1.))",
    "vmap(lambda a: a, out_dims=2)(x)",
    "vmap(lambda a: a, out_dims=(0,1))(x)",
    "vmap(lambda a: a, out_dims='a')(x)",
    "vmap(lambda a: (a,a), out_dims=(0,))(x)",
    "vmap(lambda a: (a,a), out_dims=(0,None))(x)",
    "vmap(lambda a: torch.ones(2), out_dims=None)(x)",
    "vmap(lambda a: torch.ones(2))(x)",
    "vmap(lambda a: a, randomness='x')(x)",
    "vmap(lambda a: a, chunk_size=0)(x)",
    "vmap(lambda a: a, chunk_size=1)(x)",
    "vmap(lambda a: a*2)(torch.zeros(0,3))",
    "grad(lambda a: (a.sum().backward(), a.sum())[1])(x)",
    "grad(lambda a: torch.autograd.grad(a.sum(),a)[0].sum())(x)",
    "grad(lambda a: a)(x)",
    "grad(lambda a: 3.)(x)",
    "grad(lambda a: a.sum().long())(x)",
    "grad(lambda a: a.sum())(x.long())",
    "grad(lambda a: a.sum(),argnums=1)(x)",
    "grad(lambda a: a.sum(),argnums=-2)(x)",
    "grad(lambda a: a.sum(),argnums='a')(x)",
    "grad(lambda a: a.sum(),argnums=(0,'a'))(x)",
    "grad(lambda a: a.sum(),has_aux=True)(x)",
    "grad(lambda a: (a.sum(),a,3),has_aux=True)(x)",
    "grad(lambda a: (a.sum(),3),has_aux=True)(x)",
    "grad(lambda a: (a.sum(),))(x)",
    "grad(lambda a: a.sum())(3.)",
    "grad(lambda a: a['k'].sum())({'k':x})",
    "grad(lambda a: torch.ones(()))(x)",
    "grad(lambda a: a.sum()*1j)(x)",
    "grad(lambda a: a.sum(), argnums=(0,0))(x)",
    "grad(lambda a: a.sum(), argnums=())(x)",
    "vjp(lambda a: a)(3.) if 0 else vjp(lambda a: a.sum(), 3.)",
    "vjp(lambda a: 3., x)",
    "vjp(lambda a: (a,3.), x)",
    "vjp(lambda a: a, x)[1](torch.ones(3))",
    "vjp(lambda a: a, x)[1]((x,x))",
    "vjp(lambda a: (a,a), x)[1](x)",
    "vjp(lambda a: a, x)[1](3.)",
    "vjp(lambda a: {'q':a}, x)[1]({'q':x})",
    "vjp(lambda a: a)",
    "vjp(lambda a: a, x, has_aux=True)",
    "vjp(lambda a: a.long(), x)[1](x.long())",
    "vjp(lambda a: torch.ones(2), x)[1](torch.ones(2))",
    "vjp(lambda a,b: a, x, x)[1](x)",
    "jvp(lambda a: a, x, x)",
    "jvp(lambda a: a, (x,), (x,x))",
    "jvp(lambda a: a, (x,), (torch.ones(3),))",
    "jvp(lambda a: a, (3.,), (x,))",
    "jvp(lambda a: 3., (x,), (x,))",
    "jvp(lambda a: torch.ones(2), (x,), (x,))",
    "jvp(lambda a: torch.ones(2), (x,), (x,), strict=True)",
    "jvp(lambda a: a['k'], ({'k':x},), ({'j':x},))",
    "jvp(lambda a: (a,a), (x,), (x,), has_aux=True)",
    "jvp(lambda a: a, (x,), (x,), has_aux=True)",
    "jvp(lambda : 1, (), ())",
    "jvp(lambda a: a.long(), (x,), (x,))",
    "jvp(lambda a: a*2, (x.long(),), (x.long(),))",
    "jacrev(lambda a: a*2)(x[0])",
    "jacrev(lambda a: 3.)(x[0])",
    "jacrev(lambda a: a*2,chunk_size=-1)(x[0])",
    "jacrev(lambda a: (a*2,a.sum()))(x[0])",
    "jacrev(lambda a,b: {'k':a*b},argnums=(0,1))(x[0],x[1])",
    "jacrev(lambda a: {'k':a['u']*2})({'u':x[0]})",
    "jacrev(lambda a: (a*2,a),has_aux=True)(x[0])",
    "jacrev(lambda a: a*2,argnums=3)(x[0])",
    "jacrev(lambda a: a*2,argnums='s')(x[0])",
    "jacrev(lambda a: a*2,argnums=())(x[0])",
    "jacfwd(lambda a: a*2)(x[0])",
    "jacfwd(lambda a: 3.)(x[0])",
    "jacfwd(lambda a: (a*2,a.sum()))(x[0])",
    "jacfwd(lambda a,b: {'k':a*b},argnums=(0,1))(x[0],x[1])",
    "jacfwd(lambda a: {'k':a['u']*2})({'u':x[0]})",
    "jacfwd(lambda a: (a*2,a),has_aux=True)(x[0])",
    "jacfwd(lambda a: a*2,argnums=3)(x[0])",
    "jacfwd(lambda a: torch.ones(2))(x[0])",
    "jacfwd(lambda a: a*2, randomness='q')(x[0])",
    "hessian(lambda a: (a**3).sum())(x[0])",
    "grad_and_value(lambda a: (a.sum(),{'z':a}),has_aux=True)(x)",
    "grad_and_value(lambda a: (a.sum()))(x)",
    "grad_and_value(lambda a: (a*a).sum())(w)",
    "grad_and_value(lambda a: (a*a*w).sum())(w)",
    "vmap(lambda a: (a*a*w).sum())(x)",
    "jvp(lambda a: (a*a*w).sum(),(x[0],),(x[1],))",
    "vmap(lambda a: torch.bernoulli(a*0+0.5), randomness='same',out_dims=0)(x)",
    "vmap(lambda a: torch.zeros(3).uniform_(), randomness='different',out_dims=0)(x)",
    "vmap(lambda a: (a*0).uniform_(), randomness='different',out_dims=0)(x)",
    "vmap(lambda a: (a*0).uniform_(), randomness='same',out_dims=0)(x)",
    "vmap(lambda a: torch.multinomial(a+1,2), randomness='different',out_dims=0)(x)",
    "vmap(lambda a: torch.normal(a,1.), randomness='different',out_dims=0)(x)",
    "vmap(lambda a: torch.poisson(a), randomness='different',out_dims=0)(x)",
    "linearize(f, x)[0]",
    "linearize(f, x)[1](x * 2)",
    "vmap(linearize(f, x)[1])(torch.stack([x, x * 2]))",
    "linearize(f, x)[1](x[0])",
    "linearize(f, x)[1](x, x)",
    "vmap(cube)(x)",
    "vmap(Cube.apply)(x)",
    "grad(lambda a: Cube.apply(a).sum())(x)",
    "vmap(grad(lambda a: Cube.apply(a).sum()))(x)",
    "jvp(Cube.apply, (x,), (x,))",
    "hessian(lambda a: Cube.apply(a).sum())(x[0])",
    "vmap(Doubled.apply)(x)",
    "vmap(Plain.apply)(x)",
    "vmap(Old.apply)(x)",
    "grad(lambda a: Old.apply(a).sum())(x)",
    'vmap(lambda a: drawn(a, torch.rand(3)), randomness="different")(x)',
    'vmap(lambda a: drawn(a, torch.rand(3)), randomness="same")(x)',
    'vmap(lambda a: drawn(a, torch.randn_like(a)), randomness="different")(x)',
    'vmap(lambda a: torch.nn.functional.dropout(a + 1), randomness="different")(seeded(x))',
    'vmap(lambda a: torch.nn.functional.dropout(a + 1), randomness="same")(seeded(x))',
    'vmap(lambda a: torch.bernoulli(a / 3), randomness="different")(seeded(x))',
    'vmap(lambda a: torch.multinomial(a + 1, 2), randomness="different")(seeded(x))',
    'vmap(lambda a: torch.randperm(4), randomness="different")(seeded(x))',
    "vmap(lambda a: a[i[0]])(x)",
    "vmap(lambda a, k: a[k], in_dims=(0, 0))(x, i)",
    "vmap(lambda a, k: a.gather(0, k))(x, i)",
    "vmap(lambda a, k: a.index_select(0, k))(x, i)",
    "vmap(lambda a: torch.stack([a, x[0]], 1))(x)",
    "vmap(lambda a: torch.cat([a, a * 2]))(x)",
    "vmap(torch.dot, in_dims=(0, None))(x, x[0])",
    "vmap(torch.mv, in_dims=(None, 0))(x, x)",
    "vmap(torch.mm, in_dims=(0, None))(torch.stack([x, x]), x.t())",
    "vmap(lambda a: a, in_dims=1, out_dims=-1)(x)",
    'vmap(lambda a, b: {"s": a + b, "t": (a, b)}, in_dims=({"u": 0}["u"], None), out_dims=1)(x, x[0])',
    'vmap(lambda d: d["a"] * d["b"], in_dims=({"a": 0, "b": None},))({"a": x, "b": x[0]})',
    "vmap(lambda a, *, k: a * k)(x, k=x)",
    "vmap(f, chunk_size=1)(x)",
    "jacrev(g, chunk_size=1)(x[1])",
    "jacrev(g, chunk_size=2)(x[1])",
    "grad(lambda a: a.relu().sum())(x)",
    "vmap(lambda a: torch.nn.functional.conv1d(a[None, None], k))(x)",
    "vmap(lambda c: torch.nn.functional.conv1d(x[None], c), in_dims=0)(torch.stack([k, k * 2]).expand(2, 1, 2, 2).clone())",
    "vmap(lambda a, t: torch.nn.functional.cross_entropy(a[None], t[None]))(x, i[:, 0])",
    "vmap(grad(lambda a, t: torch.nn.functional.cross_entropy(a[None], t[None])))(x, i[:, 0])",
    "vmap(lambda a: torch.nn.functional.layer_norm(a, (3,)))(x)",
    "vmap(lambda a: torch.nn.functional.batch_norm(a[:, None], None, None, training=True))(x)",
    "vmap(lambda a: torch.linalg.solve(torch.eye(3) + torch.outer(a, a), a))(x)",
    "hessian(lambda a: torch.logsumexp(a, 0))(x[1])",
    "jacfwd(jacrev(lambda a: a.prod()))(x[1])",
    "jacrev(jacfwd(lambda a: a.prod()))(x[1])",
    "jvp(lambda a: vjp(f, a)[1](torch.tensor(1.0))[0], (x,), (x,))",
    "vjp(lambda a: jvp(f, (a,), (a,))[1], x)[1](torch.tensor(1.0))",
    "vmap(lambda a: a.view(3, 1).expand(3, 2).t().reshape(-1))(x)",
    'vmap(lambda a: torch.einsum("i,j->ij", a, a))(x)',
    "vmap(lambda a: a.sort(descending=True))(x)",
    "vmap(lambda a: a.max(0))(x)",
    "vmap(lambda a: torch.where(a > 1, a, -a))(x)",
    "vmap(lambda a: a.masked_fill(a > 1, 0.0))(x)",
    "vmap(lambda a: a.clone().fill_(2.0))(x)",
]


def outcome(torch: Any, expression: str) -> Any:
    """Return the leaves (dtype, shape, numbers) of an expression's result, or its error."""
    space = {"torch": torch}
    try:
        torch.manual_seed(0)
        exec(PRELUDE, space)
        torch.manual_seed(0)
        return {"leaves": list(map(leaf, flat(eval(expression, space))))}
    except Exception as error:
        return {"error": [type(error).__name__, str(error)]}


def flat(value: Any) -> list[Any]:
    """Return the leaves of a nested result."""
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in flat(each)]
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in flat(each)]
    return [value]


def leaf(value: Any) -> Any:
    """Return one leaf as it is recorded."""
    if not hasattr(value, "detach"):
        return "function" if callable(value) else repr(value)
    numbers = value.detach().reshape(-1)
    parts = [numbers.real, numbers.imag] if numbers.is_complex() else [numbers]
    return [
        str(value.dtype),
        list(value.shape),
        value.requires_grad,
        [each for part in parts for each in part.tolist()],
    ]
