"""A network for the equation y' = cos x with y(0) = 0."""

import os

os.environ["DDE_BACKEND"] = "pytorch"
import deepxde as dde
import numpy as np
import torch
from report import show

dde.config.set_random_seed(0)
domain = dde.geometry.Interval(0, 3)
condition = dde.icbc.DirichletBC(domain, lambda x: 0, lambda x, on: on and np.isclose(x[0], 0))
data = dde.data.PDE(domain, lambda x, y: dde.grad.jacobian(y, x) - torch.cos(x), condition, 12, 2)
model = dde.Model(data, dde.nn.FNN([1, 10, 1], "tanh", "Glorot normal"))
model.compile("adam", lr=0.01, verbose=0)
history, _ = model.train(iterations=40, display_every=20, verbose=0)
show("losses", np.array(history.loss_train))
show("solution", model.predict(np.linspace(0, 3, 5)[:, None].astype("float32")))
