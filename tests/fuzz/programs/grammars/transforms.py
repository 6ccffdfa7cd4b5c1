"""Grammar of nested ``torch.func`` transforms.

A statement is a line, or a pair of a header (``def``, ``with``) and the statements in its block. The functions nest to
depth 3 and use variables of the enclosing functions, leaves, in-place operations, views, random numbers, pytrees, and
blocks of ``no_grad`` and ``inference_mode``.
"""

from __future__ import annotations

import math
import random
from typing import Any

Shape = tuple[int, ...]
Variables = dict[str, Shape]
Statement = Any  # str | tuple[str, list[Statement]]

DTYPES = ["float64"] * 6 + ["float32"] * 2 + ["float16", "bfloat16", "complex64"]

#: Operations that keep the shape.
SAME = [
    "{a}.sin()", "{a}.tanh()", "{a} * 2", "{a} * {a}", "{a} ** 3", "{a} ** 2", "-{a}", "({a} * 0.3).exp()", "{a}.clone()",
    "{a}.sigmoid()", "{a} + 1.5", "{a} / 2", "torch.zeros_like({a})", "torch.ones_like({a})", "{a}.detach()", "{a}.cos()",
    "1 / (2 + {a} * {a})", "{a}.view({a}.shape)", "2 - {a}", "{a}.contiguous()", "{a}.expand({a}.shape)", "{a}.neg().abs()",
    "{a} * 1",
]  # fmt: skip
REAL = [
    "{a}.clamp(-1, 1)", "torch.relu({a})", "torch.where({a} > 0, {a}, {a} * {a})", "{a}.abs()", "({a} * {a} + 1).log()",
    "torch.nn.functional.gelu({a})", "torch.nn.functional.softplus({a})", "{a}.masked_fill({a} > 0.5, 0.25)",
    "({a} * {a} + 1).sqrt()", "torch.atan2({a}, {a} + 2)", "{a}.erf()",
]  # fmt: skip
ROWS = ["{a}.cumsum(-1)", "{a}.flip(-1)", "{a}.roll(1, -1)", "{a} - {a}.mean(-1, keepdim=True)"]
REAL_ROWS = [
    "{a}.softmax(-1)", "{a}.sort(-1)[0]", "{a}.log_softmax(-1)", "{a}.cumprod(-1)", "torch.nn.functional.layer_norm({a}, {a}.shape[-1:])",
]  # fmt: skip
PAIRS = [
    "{a} + {b}",
    "{a} * {b}",
    "{a} - {b}",
    "{a} / (2 + {b} * {b})",
    "torch.lerp({a}, {b}, 0.3)",
    "torch.addcmul({a}, {a}, {b})",
]
REAL_PAIRS = ["torch.maximum({a}, {b})", "torch.hypot({a} + 2, {b})", "torch.where({b} > 0, {a}, {b})"]
CHANGES = [
    "{a}.mul_({b})", "{a}.add_({b})", "{a}.sin_()", "{a}.mul_(2)", "{a}.copy_({b})", "{a}.zero_()", "{a}.sub_({b})",
    "{a}.neg_()", "{a}.fill_(0.5)", "{a}.tanh_()", "{a}.div_(2)",
]  # fmt: skip
CHANGES_OF_ROWS = [
    "{a}[0] = {b}[0]", "{a}[..., 0].mul_(2)", "{a}[0] = 1.5", "{a}[:1].add_({b}[:1])", "{a}[-1].sin_()", "{a}.view(-1)[0] = 0.5",
    "{a}[0].mul_({b}[-1])", "{a}.select(-1, 0).copy_({b}.select(-1, 1))",
]  # fmt: skip
RANDOM = [
    "torch.rand_like({a})",
    "torch.nn.functional.dropout({a}, 0.5)",
    "{a} * torch.randn({shape})",
    "{a} + torch.randn_like({a})",
]


class Writer:
    """Writer of one random program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.dtype = self.rng.choice(DTYPES)
        self.complex = self.dtype == "complex64"
        self.count = 2
        self.randomness = self.rng.choice(["error", "error", "same", "different"])

    def name(self, prefix: str = "t") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def program(self) -> list[Statement]:
        rng, dtype = self.rng, f"dtype=torch.{self.dtype}"
        tracked = [rng.choice(["", ", requires_grad=True"]) for _ in range(2)]
        lines: list[Statement] = [
            f"t0 = torch.tensor([[0.5, -0.25, 1.25], [0.75, 1.5, -0.5]], {dtype}{tracked[0]})",
            f"t1 = torch.tensor([0.3, -0.7, 1.1], {dtype}{tracked[1]})",
            f"net = torch.nn.Linear(3, 3, {dtype})",
        ]
        variables: Variables = {"t0": (2, 3), "t1": (3,)}
        if rng.random() < 0.4:
            value = rng.choice(
                ["t0.sin()", "t0 * 1", "t0[:, 1:]", f"torch.tensor([0.5, 1.5], requires_grad=True, {dtype}) * 2"]
            )
            lines.append(f"t2 = {value}")
            variables["t2"] = {"t0[:, 1:]": (2, 2), "t0.sin()": (2, 3), "t0 * 1": (2, 3)}.get(value, (2,))
        results: list[str] = []
        for _ in range(rng.randint(1, 3)):
            made, new = self.transform(variables, 1)
            if rng.random() < 0.12:
                made = [*made[:-1], (rng.choice(["with torch.no_grad():", "with torch.inference_mode():"]), [made[-1]])]
            lines += made
            for each, shape in new.items():
                if math.prod(shape) <= 12 and len(shape) <= 3:
                    variables[each] = shape
                results.append(each)
        return lines

    def body(
        self, variables: Variables, own: Variables, depth: int, scalar: bool
    ) -> tuple[list[Statement], str, Shape]:
        """Return the statements of a function body, and its result with its shape."""
        rng, lines = self.rng, []
        local: Variables = {}
        scope = {**variables, **own}
        for _ in range(rng.randint(1, 4)):
            kind = rng.random()
            if kind < 0.3 and depth < 3:
                made, new = self.transform({**scope, **local}, depth + 1)
                local.update({k: s for k, s in new.items() if math.prod(s) <= 12 and len(s) <= 3})
            elif kind < 0.5 and local:
                made = [self.change({**scope, **local}, local, own)]
            else:
                name = self.name()
                source = self.pick({**scope, **local}, own, local)
                expression, shape = self.expression(source, {**scope, **local})
                made, local[name] = [f"{name} = {expression}"], shape
            if rng.random() < 0.06:
                made = [
                    *made[:-1],
                    (
                        rng.choice(
                            ["with torch.no_grad():"] * 3
                            + ["with torch.inference_mode():", "with torch.enable_grad():"]
                        ),
                        [made[-1]],
                    ),
                ]
            elif rng.random() < 0.05 and len(local) > 1:
                gone = rng.choice(list(local))
                made.append(f"del {gone}")
                del local[gone]
            lines += made
        result = (
            self.pick({**scope, **local}, local, local) if local and rng.random() < 0.85 else self.pick(scope, own, own)
        )
        shape = {**scope, **local}[result]
        if rng.random() < 0.4:
            other = self.pick(scope, own, own)
            if scope[other] == shape:
                result = f"{result} * {other}"
        if scalar:
            total = (
                f"(({result}) * ({result}).conj()).real.sum()"
                if self.complex
                else rng.choice(["({0}).sum()", "(({0}) * ({0})).sum()", "({0}).sin().mean()"]).format(result)
            )
            return lines, total, ()
        return lines, result, shape

    def pick(self, variables: Variables, *favoured: Variables) -> str:
        for some in favoured:
            if some and self.rng.random() < 0.5:
                return self.rng.choice(list(some))
        return self.rng.choice(list(variables))

    def expression(self, a: str, variables: Variables) -> tuple[str, Shape]:
        rng, shape = self.rng, variables[a]
        kind = rng.random()
        others = [each for each, s in variables.items() if s == shape]
        if kind < 0.05 and self.randomness != "error":
            return rng.choice(RANDOM).format(a=a, shape=f"{shape}, dtype=torch.{self.dtype}"), shape
        if kind < 0.35 and others:
            choices = PAIRS + ([] if self.complex else REAL_PAIRS)
            return rng.choice(choices).format(a=a, b=rng.choice(others)), shape
        if kind < 0.6 and shape:
            n = len(shape)
            forms: list[tuple[str, Shape]] = [
                ("{a}[0]", shape[1:]), ("{a}.sum(-1)", shape[:-1]), ("{a}.sum()", ()), ("{a}.mean(0)", shape[1:]), ("{a}.t()" if n == 2 else "{a}.clone()", shape[::-1] if n == 2 else shape),
                ("{a}[:1]", (1, *shape[1:])), ("{a}[..., :2]", (*shape[:-1], min(2, shape[-1]))), ("{a}.unsqueeze(0)", (1, *shape)), ("{a}.reshape(-1)", (math.prod(shape),)),
                ("torch.cat([{a}, {a} * 2])", (2 * shape[0], *shape[1:])), ("torch.stack([{a}, {a}.sin()])", (2, *shape)), ("{a}.prod(-1)", shape[:-1]), ("{a}.unbind(0)[-1]", shape[1:]),
                ("{a}.diagonal()" if n == 2 else "{a}[-1]", (min(shape),) if n == 2 else shape[1:]), ("{a}.index_select(-1, torch.tensor([0, 0]))", (*shape[:-1], 2)),
            ]  # fmt: skip
            if not self.complex:
                forms += [
                    ("{a}.logsumexp(-1)", shape[:-1]),
                    ("{a}.norm()", ()),
                    ("{a}.amax(-1)", shape[:-1]),
                    ("{a}.max(-1)[0]", shape[:-1]),
                    ("{a}.var(-1)" if shape[-1] > 1 else "{a}.sum(-1)", shape[:-1]),
                ]
            if n == 1:
                forms += [
                    ("{a} @ {a}", ()),
                    ("torch.outer({a}, {a})", (shape[0], shape[0])),
                    ("torch.einsum('i,j->ij', {a}, {a}.sin())", (shape[0], shape[0])),
                ]
            if n == 2:
                forms += [("{a} @ {a}.t()", (shape[0], shape[0])), ("{a} @ {a}[0]", shape[:1])]
            if shape[-1] == 3:
                forms += [
                    ("torch.func.functional_call(net, dict(net.named_parameters()), ({a},))", shape),
                    ("net({a})", shape),
                ]
                forms += [
                    (
                        "torch.func.functional_call(net, {{'weight': torch.stack([{a}.reshape(-1)[:3]] * 3)}}, ({a},))",
                        shape,
                    )
                ]
            form, new = rng.choice([each for each in forms if math.prod(each[1]) <= 12 and len(each[1]) <= 3])
            return form.format(a=a), new
        choices = SAME + ([] if self.complex else REAL) + (ROWS + ([] if self.complex else REAL_ROWS) if shape else [])
        return rng.choice(choices).format(a=a), shape

    def change(self, variables: Variables, local: Variables, own: Variables) -> str:
        rng = self.rng
        a = rng.choice(list(own if rng.random() < 0.08 else local))
        shape = variables[a]
        b = rng.choice([each for each, s in variables.items() if s == shape])
        return rng.choice(CHANGES + (CHANGES_OF_ROWS if shape and shape[-1] > 1 else [])).format(a=a, b=b)

    def tangent(self, a: str, variables: Variables) -> str:
        shape = variables[a]
        others = [each for each, s in variables.items() if s == shape]
        other = self.rng.choice(others)  # cloned, because an in-place operation would write into it
        return self.rng.choice(
            [f"{a}.clone()", f"torch.ones_like({a})", f"{a} * 0.5", f"{other}.clone()", f"{other}.detach() * 1"]
        )

    def transform(self, variables: Variables, depth: int) -> tuple[list[Statement], Variables]:
        """Return the statements that define a function and call a transform of it, and the variables they set."""
        rng = self.rng
        kinds = [
            "grad",
            "grad",
            "vjp",
            "jvp",
            "jvp",
            "vmap",
            "vmap",
            "jacrev",
            "jacfwd",
            "hessian",
            "grad_and_value",
            "params",
        ]
        kinds += ["linearize"] if depth == 1 and self.randomness == "error" else []
        kinds += ["autograd"] if depth > 1 else []
        kind = rng.choice(kinds)
        a = self.pick(variables)
        if kind == "vmap" and not variables[a]:
            kind = "grad"
        if self.complex and kind in ("jacrev", "jacfwd", "hessian"):
            kind = rng.choice(["grad", "vjp", "jvp"])
        f, out, shape = self.name("f"), self.name(), variables[a]
        if kind == "params":
            rows = [each for each, s in variables.items() if s and s[-1] == 3]
            if rows:
                total = f"torch.func.functional_call(net, p, ({rng.choice(rows)},))"
                total = f"({total} * {total}.conj()).real.sum()" if self.complex else f"{total}.sin().sum()"
                given = rng.choice(
                    ["dict(net.named_parameters())", "{k: v.detach() for k, v in net.named_parameters()}"]
                )
                return [
                    f"{out} = torch.func.grad(lambda p: {total})({given})['{rng.choice(['weight', 'bias'])}'][0]"
                ], {out: ()}
            kind = "grad"
        if kind == "autograd":
            return [
                f"{out} = torch.autograd.grad((({a}) * ({a}).sin()).sum(){'.real' if self.complex else ''}, {a}, create_graph={rng.random() < 0.7})[0]"
            ], {out: shape}
        several = rng.random() < 0.3 and kind not in ("linearize", "hessian")
        tree = not several and rng.random() < 0.12 and kind in ("grad", "vjp", "jacrev", "jacfwd", "grad_and_value")
        p, q = self.name("a"), self.name("b")
        b = self.pick(variables) if several else a
        if kind == "vmap":
            dim = rng.randrange(len(shape))
            inside = {p: shape[:dim] + shape[dim + 1 :]}
            other: int | None = None
            if several:
                fits = [i for i, size in enumerate(variables[b]) if size == shape[dim]]
                other = rng.choice([*fits, None])
                inside[q] = variables[b] if other is None else variables[b][:other] + variables[b][other + 1 :]
        else:
            inside = {f"{p}['k']" if tree else p: shape, **({q: variables[b]} if several else {})}
        scalar = kind in ("grad", "hessian", "grad_and_value")
        lines, result, new = self.body(variables, inside, depth, scalar)
        aux = kind in ("grad", "vjp", "jvp", "jacrev", "jacfwd", "grad_and_value") and rng.random() < 0.15
        source = rng.choice(list(inside))
        returned = f"return {result}, {source} * 2" if aux else f"return {result}"
        if rng.random() < 0.1 and kind == "vmap":
            returned = f"return {{'o': {result}}}"
        define = (f"def {f}({p}{', ' + q if several else ''}):", [*lines, returned])
        given = f"{{'k': {a}}}" if tree else a
        args = f"{given}, {b}" if several else given
        numbers = rng.choice(["", ", argnums=1", ", argnums=(0, 1)"]) if several else ""
        chosen = {"": shape, ", argnums=1": variables[b], ", argnums=(0, 1)": variables[b]}[numbers]
        suffix = ("['k']" if tree else "") + ("[1]" if "(0" in numbers else "")
        flag = ", has_aux=True" if aux else ""
        other_out = self.name()
        call = f"torch.func.{kind}({f}"
        if kind in ("grad", "jacrev", "jacfwd", "hessian"):
            found = {"grad": chosen, "hessian": chosen + chosen}.get(kind, new + chosen)
            if kind == "jacrev" and rng.random() < 0.2:
                flag += ", chunk_size=1"
            if kind == "jacfwd" and self.randomness != "error":
                flag += f", randomness='{self.randomness}'"
            if aux:
                return [define, f"{out}, {other_out} = {call}{numbers}{flag})({args})", f"{out} = {out}{suffix}"], {
                    out: found,
                    other_out: inside[source],
                }
            return [define, f"{out} = {call}{numbers}{flag})({args}){suffix}"], {out: found}
        if kind == "grad_and_value":
            value = f"({other_out}, {self.name()})" if aux else other_out
            return [define, f"{out}, {value} = {call}{numbers}{flag})({args})", f"{out} = {out}{suffix}"], {
                out: chosen,
                other_out: (),
            }
        if kind == "vjp":
            pull, taken = self.name("p"), rng.randrange(2) if several else 0
            extra = f", {self.name()}" if aux else ""
            cotangent = rng.choice(
                [
                    f"torch.ones_like({other_out})",
                    other_out,
                    f"{other_out}.detach()",
                    *[each for each, s in variables.items() if s == new],
                ]
            )
            lines = [define, f"{other_out}, {pull}{extra} = {call}, {args}{flag})"]
            if rng.random() < 0.15 and len(new) <= 2 and math.prod(new) <= 6:
                return [*lines, f"{out} = torch.vmap({pull})(torch.stack([{cotangent}] * 2))[{taken}]{suffix}"], {
                    other_out: new,
                    out: (2, *(variables[b] if taken else shape)),
                }
            return [*lines, f"{out} = {pull}({cotangent})[{taken}]{suffix}"], {
                other_out: new,
                out: variables[b] if taken else shape,
            }
        if kind == "jvp":
            primals = f"({a}, {b})" if several else f"({a},)"
            tangents = (
                f"({self.tangent(a, variables)}, {self.tangent(b, variables)})"
                if several
                else f"({self.tangent(a, variables)},)"
            )
            extra = f", {self.name()}" if aux else ""
            return [define, f"{other_out}, {out}{extra} = {call}, {primals}, {tangents}{flag})"], {
                other_out: new,
                out: new,
            }
        if kind == "linearize":
            push = self.name("p")
            lines = [define, f"{other_out}, {push} = {call}, {a})"]
            return [*lines, f"{out} = {push}({self.tangent(a, variables)})"], {other_out: new, out: new}
        where = rng.choice([0, 0, -1, len(new)])
        if where and "def " not in returned:  # PyTorch misplaces the dimension of a result that has no slices
            define[1][-1] = define[1][-1].replace(result, f"({result}) + 0 * {p}.sum()", 1)
        position = where % (len(new) + 1)
        dims = f"in_dims=({dim}, {other})" if several else f"in_dims={dim}"
        more = "" if self.randomness == "error" else f", randomness='{self.randomness}'"
        more += f", chunk_size={rng.randint(1, 2)}" if rng.random() < 0.1 and self.randomness != "different" else ""
        unpacked = "['o']" if returned.startswith("return {") else ""
        return [define, f"{out} = torch.vmap({f}, {dims}, out_dims={where}{more})({args}){unpacked}"], {
            out: (*new[:position], shape[dim], *new[position:])
        }


def program(seed: int) -> str:
    """Return the text of program number ``seed``."""
    return "\n".join(map(text, Writer(seed).program()))


def text(statement: Statement, indent: str = "") -> str:
    """Return the source text of a statement."""
    if isinstance(statement, str):
        return indent + statement
    header, block = statement
    return "\n".join([indent + header, *[text(each, indent + "    ") for each in block or ["pass"]]])
