"""A small network for images with noise schedulers, and a step of training."""

import torch
from diffusers import DDIMScheduler, DDPMScheduler, UNet2DModel
from report import show

torch.manual_seed(0)
model = UNet2DModel(
    sample_size=8, in_channels=1, out_channels=1, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)  # fmt: skip
scheduler = DDPMScheduler(num_train_timesteps=50)
x, noise = torch.randn(2, 1, 8, 8), torch.randn(2, 1, 8, 8)
steps = torch.tensor([3, 40])
noisy = scheduler.add_noise(x, noise, steps)
loss = torch.nn.functional.mse_loss(model(noisy, steps).sample, noise)
loss.backward()
show("noisy", noisy), show("loss", loss), show("gradient", model.conv_in.weight.grad)
sampler = DDIMScheduler(num_train_timesteps=50)
sampler.set_timesteps(3)
with torch.no_grad():
    for t in sampler.timesteps:
        x = sampler.step(model(x, t).sample, t, x).prev_sample
show("sample", x)
