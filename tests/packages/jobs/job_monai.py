"""A segmentation network with its loss and metric, and transforms of volumes."""

import torch
from monai.losses import DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import Compose, RandFlip, RandGaussianNoise, ScaleIntensity
from report import show

torch.manual_seed(0)
model = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2))
x, y = torch.randn(2, 1, 16, 16), torch.randint(0, 2, (2, 1, 16, 16))
found = model(x)
loss = DiceLoss(to_onehot_y=True, softmax=True)(found, y)
loss.backward()
show("loss", loss), show("gradient", next(model.parameters()).grad)
show("dice", DiceMetric()(found.argmax(1, keepdim=True).eq(1).float(), y.float()))
pipeline = Compose([ScaleIntensity(), RandFlip(1.0, 0), RandGaussianNoise(1.0, std=0.1)]).set_random_state(0)
show("transformed", pipeline(x[0]))
