"""Stochastic variational inference of a coin, and samples by Hamiltonian Monte Carlo."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from report import show

pyro.set_rng_seed(0)
flips = torch.tensor([1.0, 1, 1, 0, 1, 0, 1, 1])


def model(data):
    p = pyro.sample("p", dist.Beta(2.0, 2.0))
    with pyro.plate("flips", len(data)):
        pyro.sample("x", dist.Bernoulli(p), obs=data)


def guide(data):
    a = pyro.param("a", torch.tensor(3.0), constraint=dist.constraints.positive)
    b = pyro.param("b", torch.tensor(3.0), constraint=dist.constraints.positive)
    pyro.sample("p", dist.Beta(a, b))


steps = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
show("losses", [steps.step(flips) for _ in range(15)])
show("parameters", [pyro.param("a").item(), pyro.param("b").item()])
chain = MCMC(NUTS(model, jit_compile=False), num_samples=8, warmup_steps=4, disable_progbar=True)
chain.run(flips)
show("samples", chain.get_samples()["p"])
