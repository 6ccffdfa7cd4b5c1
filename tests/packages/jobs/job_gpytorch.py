"""An exact Gaussian process: hyperparameters by Adam, and its predictions."""

import gpytorch
import torch
from report import show


class Process(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


torch.manual_seed(0)
x = torch.linspace(0, 1, 15).double()
y = torch.sin(6 * x) + 0.1 * torch.randn(15).double()
likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
model = Process(x, y, likelihood).double()
optimizer = torch.optim.Adam(model.parameters(), 0.1)
likelihood_of = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
for _ in range(10):
    optimizer.zero_grad()
    loss = -likelihood_of(model(x), y)
    loss.backward(), optimizer.step()
show("loss", loss), show("length", model.kernel.base_kernel.lengthscale)
model.eval(), likelihood.eval()
with torch.no_grad():
    found = likelihood(model(torch.linspace(0, 1, 6).double()))
    show("mean", found.mean), show("variance", found.variance)
