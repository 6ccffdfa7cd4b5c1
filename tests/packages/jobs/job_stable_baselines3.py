"""Policies for a small environment: two algorithms, a few steps each."""

import gymnasium as gym
import numpy as np
from report import show
from stable_baselines3 import A2C, PPO


class Line(gym.Env):
    observation_space = gym.spaces.Box(-5, 5, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = np.array([1.0, 0.0], np.float32), 0
        return self.place.copy(), {}

    def step(self, action):
        self.place[0] += 0.5 if action else -0.5
        self.steps += 1
        return self.place.copy(), -abs(float(self.place[0])), self.steps == 10, False, {}


for algorithm, options in ((PPO, {"n_steps": 32, "batch_size": 16, "n_epochs": 2}), (A2C, {"n_steps": 8})):
    model = algorithm("MlpPolicy", Line(), seed=0, device="cpu", policy_kwargs={"net_arch": [8]}, **options).learn(64)
    show(algorithm.__name__, model.policy.action_net.weight)
    show("value", model.policy.predict_values(model.policy.obs_to_tensor(np.zeros((1, 2), np.float32))[0]))
