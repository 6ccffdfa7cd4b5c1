"""A classifier for scikit-learn: training, callbacks and cross-validation."""

import numpy as np
import torch
from report import show
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_score
from skorch import NeuralNetClassifier
from skorch.callbacks import EpochScoring, LRScheduler

x, y = make_classification(120, 8, n_informative=4, random_state=0)
x, y = x.astype(np.float32), y.astype(np.int64)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2), torch.nn.Softmax(-1)
        )

    def forward(self, X):
        return self.layers(X)


torch.manual_seed(0)
callbacks = [EpochScoring("roc_auc", lower_is_better=False), LRScheduler("StepLR", step_size=1)]
net = NeuralNetClassifier(Network, max_epochs=3, lr=0.1, iterator_train__shuffle=True, verbose=0, callbacks=callbacks)
net.fit(x, y)
show("losses", net.history[:, "train_loss"]), show("auc", net.history[:, "roc_auc"])
show("probabilities", net.predict_proba(x[:4]))
show("scores", cross_val_score(net, x, y, cv=2))
