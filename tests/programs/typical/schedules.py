"""Learning rate schedulers in training loops."""

import torch
import torch.nn as nn
from torch.optim import lr_scheduler as S

torch.manual_seed(0)


def run(make, steps=12, metric=False):
    m = nn.Linear(3, 1)
    o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    s = make(o)
    out = []
    for i in range(steps):
        o.zero_grad()
        m(torch.ones(2, 3)).pow(2).mean().backward()
        o.step()
        s.step(1.0 / (1 + i // 4)) if metric else s.step()
        out.append(round(o.param_groups[0]["lr"], 6))
    print(type(s).__name__, out, round(o.param_groups[0]["momentum"], 4))


run(lambda o: S.OneCycleLR(o, max_lr=0.5, total_steps=12))
run(lambda o: S.OneCycleLR(o, max_lr=0.5, epochs=3, steps_per_epoch=4, anneal_strategy="linear", three_phase=True))
run(lambda o: S.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=1e-3))
run(lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, total_iters=3), S.CosineAnnealingLR(o, 9)], milestones=[3]))
run(lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.5, 4), S.ExponentialLR(o, 0.9)]))
run(lambda o: S.LambdaLR(o, lambda e: min((e + 1) ** -0.5, (e + 1) * 4**-1.5)))
run(lambda o: S.ReduceLROnPlateau(o, "min", patience=1, factor=0.5), metric=True)
run(lambda o: S.CyclicLR(o, 0.01, 0.1, step_size_up=3, mode="triangular2"))
run(lambda o: S.PolynomialLR(o, 10, 2.0))
run(lambda o: S.MultiStepLR(o, [3, 6]))
run(lambda o: S.StepLR(o, 4, 0.3))
m = nn.Linear(1, 1)
o = torch.optim.Adam(m.parameters())
s = S.StepLR(o, 2)
o.step()
s.step()
d = s.state_dict()
print(d)
s.load_state_dict(d)
print(s.get_last_lr())
