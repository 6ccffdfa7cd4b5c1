"""Training steps of the programs that tutorials and papers are made of: small models of many kinds, each a whole step.

A row is a model, its loss and an optimizer, with data of the sizes that people try on a laptop. What is slow in one of them
is rarely seen in rows of single operations: an embedding of few rows, a mask, a 1 x 1 convolution of a small image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .row import Row
from .training import stepped

Loss = Callable[[], Any]


def _trained(torch: Any, model: Any, loss: Loss, name: str = "Adam", **options: Any) -> Callable[[], Any]:
    optimizer = getattr(torch.optim, name)(model.parameters(), **{"lr": 1e-3, **options})
    return stepped(torch, model, loss, optimizer)


# -- Images and signals ------------------------------------------------------------------------------------------------


def batch_norm_network(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    x, y = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
    return _trained(torch, model, lambda: F.cross_entropy(model(x), y))


def residual_blocks(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(channels, outputs, 3, stride, 1, bias=False)
            self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(outputs) for _ in range(3)])
            self.side = nn.Conv2d(channels, outputs, 1, stride, bias=False)

        def forward(self, x: Any) -> Any:
            y = self.norms[1](self.second(F.relu(self.norms[0](self.first(x)))))
            return F.relu(y + self.norms[2](self.side(x)))

    model = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    x, y = torch.randn(8, 16, 16, 16), torch.randint(0, 10, (8,))
    return _trained(torch, model, lambda: F.cross_entropy(model(x), y), "SGD", lr=0.1, momentum=0.9, weight_decay=1e-4)


def separable_convolutions(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(
        nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False), nn.BatchNorm2d(16), nn.ReLU6(),
        nn.Conv2d(16, 32, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(32, 10),
    )  # fmt: skip
    x, y = torch.randn(8, 16, 16, 16), torch.randint(0, 10, (8,))
    return _trained(torch, model, lambda: F.cross_entropy(model(x), y))


def u_net(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    first, second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
    up, last = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.Conv2d(32, 1, 3, padding=1)
    model = nn.ModuleList([first, second, up, last])
    x, y = torch.randn(4, 1, 32, 32), (torch.rand(4, 1, 32, 32) < 0.5).float()

    def loss() -> Any:
        fine = F.relu(first(x))
        coarse = F.relu(second(F.max_pool2d(fine, 2)))
        return F.binary_cross_entropy_with_logits(last(torch.cat([fine, up(coarse)], 1)), y)

    return _trained(torch, model, loss)


def volumes(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(
        nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(8, 16, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 2),
    )  # fmt: skip
    x, y = torch.randn(4, 1, 12, 12, 12), torch.randint(0, 2, (4,))
    return _trained(torch, model, lambda: F.cross_entropy(model(x), y))


def dilated_convolutions(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    layers = [nn.Conv1d(16 if k else 4, 16, 3, padding=2**k, dilation=2**k) for k in range(3)]
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2], nn.ReLU(), nn.Conv1d(16, 1, 1))
    x, y = torch.randn(16, 4, 128), torch.randn(16, 1, 128)
    return _trained(torch, model, lambda: F.mse_loss(model(x), y))


# -- Sequences ---------------------------------------------------------------------------------------------------------


def character_lstm(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    table, lstm, head = nn.Embedding(60, 32), nn.LSTM(32, 128, batch_first=True), nn.Linear(128, 60)
    x, y = torch.randint(0, 60, (16, 50)), torch.randint(0, 60, (16, 50))
    return _trained(
        torch, nn.ModuleList([table, lstm, head]),
        lambda: F.cross_entropy(head(lstm(table(x))[0]).reshape(-1, 60), y.reshape(-1)),
    )  # fmt: skip


def attention_decoder(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    encoder, decoder, head = nn.GRU(16, 32, batch_first=True), nn.GRUCell(16, 32), nn.Linear(64, 16)
    x, y = torch.randn(16, 12, 16), torch.randn(16, 10, 16)

    def loss() -> Any:
        seen, state = encoder(x)
        h, found = state[0], []
        for t in range(10):
            h = decoder(y[:, t], h)
            shares = torch.softmax(torch.bmm(seen, h[:, :, None]).squeeze(2), 1)
            found.append(head(torch.cat([h, torch.bmm(shares[:, None], seen).squeeze(1)], 1)))
        return F.mse_loss(torch.stack(found, 1), y)

    return _trained(torch, nn.ModuleList([encoder, decoder, head]), loss)


def small_transformer(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    table, head = nn.Embedding(100, 64), nn.Linear(64, 100)
    layers = nn.ModuleList([
        nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, activation="gelu", norm_first=True) for _ in range(2)
    ])  # fmt: skip
    mask = nn.Transformer.generate_square_subsequent_mask(64)
    x, y = torch.randint(0, 100, (8, 64)), torch.randint(0, 100, (8, 64))

    def loss() -> Any:
        h = table(x)
        for layer in layers:
            h = layer(h, src_mask=mask, is_causal=True)
        return F.cross_entropy(head(h).reshape(-1, 100), y.reshape(-1))

    return _trained(torch, nn.ModuleList([table, layers, head]), loss, "AdamW")


def einsum_attention(torch: Any) -> Callable[[], Any]:
    nn = torch.nn
    layers = nn.ModuleList([nn.Linear(32, 32) for _ in range(3)])
    x = torch.randn(8, 24, 32)

    def loss() -> Any:
        q, k, v = (layer(x).view(8, 24, 4, 8) for layer in layers)
        shares = torch.einsum("bihd,bjhd->bhij", q, k).div(8**0.5).softmax(-1)
        return torch.einsum("bhij,bjhd->bihd", shares, v).pow(2).mean()

    return _trained(torch, layers, loss)


def word_vectors(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    words, contexts = nn.Embedding(5000, 64), nn.Embedding(5000, 64)
    centre, near, far = (torch.randint(0, 5000, shape) for shape in ((128,), (128,), (128, 5)))

    def loss() -> Any:
        here = words(centre)
        others = torch.bmm(contexts(far), here[:, :, None]).squeeze(2)
        return -(F.logsigmoid((here * contexts(near)).sum(1)) + F.logsigmoid(-others).sum(1)).mean()

    return _trained(torch, nn.ModuleList([words, contexts]), loss, "SGD", lr=0.05)


# -- Tables, graphs, generative models ---------------------------------------------------------------------------------


def layer_norm_perceptron(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(
        nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 128), nn.LayerNorm(128),
        nn.GELU(), nn.Linear(128, 1),
    )  # fmt: skip
    x, y = torch.randn(256, 64), torch.randn(256, 1)
    return _trained(torch, model, lambda: F.mse_loss(model(x), y), "AdamW")


def graph_convolutions(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    edges = (torch.rand(200, 200) < 0.05).float() + torch.eye(200)
    near = edges / edges.sum(1)[:, None]
    first, last = nn.Linear(50, 64), nn.Linear(64, 7)
    x, y, known = torch.randn(200, 50), torch.randint(0, 7, (200,)), torch.rand(200) < 0.5

    def loss() -> Any:
        h = F.dropout(F.relu(near @ first(x)), 0.5)
        return F.cross_entropy((near @ last(h))[known], y[known])

    return _trained(torch, nn.ModuleList([first, last]), loss)


def matrix_factorization(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    users, items = nn.Embedding(1000, 32), nn.Embedding(2000, 32)
    i, j, rating = torch.randint(0, 1000, (512,)), torch.randint(0, 2000, (512,)), torch.randn(512)
    return _trained(
        torch, nn.ModuleList([users, items]), lambda: F.mse_loss((users(i) * items(j)).sum(1), rating), "SGD", lr=0.1
    )  # fmt: skip


def variational_autoencoder(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    encoder, heads = nn.Sequential(nn.Linear(784, 200), nn.ReLU()), nn.Linear(200, 40)
    decoder = nn.Sequential(nn.Linear(20, 200), nn.ReLU(), nn.Linear(200, 784))
    x = torch.rand(64, 784)

    def loss() -> Any:
        mean, log_variance = heads(encoder(x)).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        error = F.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum")
        return error - 0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()

    return _trained(torch, nn.ModuleList([encoder, heads, decoder]), loss)


def coupling_flow(torch: Any) -> Callable[[], Any]:
    nn = torch.nn
    layers = nn.ModuleList([nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 2)) for _ in range(4)])
    x = torch.randn(128, 2)

    def loss() -> Any:
        first, second, logs = x[:, :1], x[:, 1:], 0
        for layer in layers:
            scale, shift = layer(first).chunk(2, 1)
            scale = scale.tanh()
            first, second, logs = second * scale.exp() + shift, first, logs + scale.sum(1)
        return (0.5 * torch.cat([first, second], 1).pow(2).sum(1) - logs).mean()

    return _trained(torch, layers, loss)


def vector_quantization(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    encoder, decoder, codes = nn.Linear(16, 8), nn.Linear(8, 16), nn.Embedding(64, 8)
    x = torch.randn(256, 16)

    def loss() -> Any:
        z = encoder(x)
        nearest = codes(torch.cdist(z, codes.weight).argmin(1))
        error = F.mse_loss(nearest, z.detach()) + 0.25 * F.mse_loss(z, nearest.detach())
        return error + F.mse_loss(decoder(z + (nearest - z).detach()), x)

    return _trained(torch, nn.ModuleList([encoder, decoder, codes]), loss)


def contrastive(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
    one, other, y = torch.randn(128, 64), torch.randn(128, 64), torch.arange(128)

    def loss() -> Any:
        return F.cross_entropy(F.normalize(model(one)) @ F.normalize(model(other)).T / 0.1, y)

    return _trained(torch, model, loss)


def mixture_of_experts(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    gate, experts = nn.Linear(32, 4), nn.ModuleList([nn.Linear(32, 32) for _ in range(4)])
    x, y = torch.randn(128, 32), torch.randn(128, 32)

    def loss() -> Any:
        shares, chosen = gate(x).softmax(-1).topk(2, -1)
        out = torch.zeros_like(x)
        for k, expert in enumerate(experts):
            rows, places = torch.where(chosen == k)
            out = out.index_add(0, rows, expert(x[rows]) * shares[rows, places][:, None])
        return F.mse_loss(out, y)

    return _trained(torch, nn.ModuleList([gate, experts]), loss)


# -- Reinforcement learning, differential equations, statistics --------------------------------------------------------


def q_learning(torch: Any) -> Callable[[], Any]:
    nn, F = torch.nn, torch.nn.functional
    model, target = (
        nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)) for _ in range(2)
    )
    state, after = torch.randn(128, 4), torch.randn(128, 4)
    action, reward = torch.randint(0, 2, (128, 1)), torch.randn(128)

    def loss() -> Any:
        with torch.no_grad():
            wanted = reward + 0.99 * target(after).max(1).values
        return F.smooth_l1_loss(model(state).gather(1, action).squeeze(1), wanted)

    return _trained(torch, model, loss)


def policy_gradient(torch: Any) -> Callable[[], Any]:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 3))
    state, gain = torch.randn(200, 4), torch.randn(200)

    def loss() -> Any:
        policy = torch.distributions.Categorical(logits=model(state))
        return -(policy.log_prob(policy.sample()) * gain).mean() - 0.01 * policy.entropy().mean()

    return _trained(torch, model, loss)


def neural_ode(torch: Any) -> Callable[[], Any]:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    start, end, h = torch.randn(64, 2), torch.randn(64, 2), 0.1

    def loss() -> Any:
        y = start
        for _ in range(10):
            k1 = model(y)
            k2 = model(y + h / 2 * k1)
            k3 = model(y + h / 2 * k2)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + model(y + h * k3))
        return (y - end).pow(2).mean()

    return _trained(torch, model, loss)


def physics_informed(torch: Any) -> Callable[[], Any]:
    nn, grad = torch.nn, torch.autograd.grad
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    x = torch.linspace(0, 1, 100)[:, None].requires_grad_()

    def loss() -> Any:
        u = model(x)
        (slope,) = grad(u.sum(), x, create_graph=True)
        (bend,) = grad(slope.sum(), x, create_graph=True)
        return ((bend + u) ** 2).mean()

    return _trained(torch, model, loss)


def mixture_of_normals(torch: Any) -> Callable[[], Any]:
    means, logs, weights = (torch.nn.Parameter(each) for each in (torch.randn(5, 2), torch.zeros(5, 2), torch.zeros(5)))
    model = torch.nn.ParameterList([means, logs, weights])
    x = torch.randn(500, 2)

    def loss() -> Any:
        each = (-0.5 * ((x[:, None] - means) / logs.exp()) ** 2 - logs).sum(-1) + weights.log_softmax(0)
        return -each.logsumexp(1).mean()

    return _trained(torch, model, loss, lr=1e-2)


def logistic_by_lbfgs(torch: Any) -> Callable[[], Any]:
    F = torch.nn.functional
    x, y = torch.randn(500, 20), (torch.rand(500) < 0.5).float()
    w = torch.zeros(20, requires_grad=True)

    def work() -> Any:
        with torch.no_grad():
            w.zero_()
        optimizer = torch.optim.LBFGS([w], max_iter=10)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(x @ w, y) + 1e-3 * w.dot(w)
            loss.backward()
            return loss

        return optimizer.step(closure).detach(), w.detach()

    return work


def kalman_filter(torch: Any) -> Callable[[], Any]:
    moves = torch.eye(4).requires_grad_()
    seen, drift, error, data = torch.randn(2, 4), torch.eye(4) * 0.1, torch.eye(2), torch.randn(30, 2)

    def work() -> Any:
        mean, spread, total = torch.zeros(4), torch.eye(4), 0
        for t in range(30):
            mean, spread = moves @ mean, moves @ spread @ moves.T + drift
            gap, wide = data[t] - seen @ mean, seen @ spread @ seen.T + error
            gain = torch.linalg.solve(wide, seen @ spread).T
            mean, spread = mean + gain @ gap, spread - gain @ seen @ spread
            total = total + 0.5 * (gap @ torch.linalg.solve(wide, gap) + torch.logdet(wide))
        return torch.autograd.grad(total, moves)

    return work


ROWS = {
    "batch norm network, 16 × 32²": batch_norm_network,
    "residual blocks, 8 × 16²": residual_blocks,
    "separable convolutions, 8 × 16²": separable_convolutions,
    "U-net, 4 × 32²": u_net,
    "volumes, 4 × 12³": volumes,
    "dilated convolutions, 16 × 128": dilated_convolutions,
    "character LSTM, 16 × 50, 128 units": character_lstm,
    "GRU encoder, attention decoder": attention_decoder,
    "transformer of two layers, 8 × 64 × 64": small_transformer,
    "attention by einsum": einsum_attention,
    "word vectors with negative samples": word_vectors,
    "perceptron with layer norm and dropout": layer_norm_perceptron,
    "graph convolutions, 200 nodes": graph_convolutions,
    "matrix factorization": matrix_factorization,
    "variational autoencoder, 64 × 784": variational_autoencoder,
    "coupling flow": coupling_flow,
    "vector quantization": vector_quantization,
    "contrastive loss, 128": contrastive,
    "mixture of experts": mixture_of_experts,
    "Q-learning, batch 128": q_learning,
    "policy gradient": policy_gradient,
    "neural ODE, Runge-Kutta": neural_ode,
    "physics-informed network": physics_informed,
    "mixture of normals": mixture_of_normals,
    "logistic regression by L-BFGS": logistic_by_lbfgs,
    "Kalman filter, 30 steps": kalman_filter,
}


def rows() -> Iterator[Row]:
    """Yield all rows."""
    for name, program in ROWS.items():
        yield Row(name, program, 1.0, tolerance=1e-3)
