"""A small U-Net with focal and dice losses, a spatial transformer, interpolation."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def dc(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False),
        nn.BatchNorm2d(o),
        nn.ReLU(inplace=True),
        nn.Conv2d(o, o, 3, padding=1),
        nn.GroupNorm(2, o),
        nn.SiLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, bilinear):
        super().__init__()
        self.inc = dc(3, 4)
        self.d1 = nn.Sequential(nn.MaxPool2d(2), dc(4, 8))
        self.up = (
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            if bilinear
            else nn.ConvTranspose2d(8, 8, 2, 2)
        )
        self.conv = dc(12, 4)
        self.outc = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.up(self.d1(x1))
        dy, dx = x1.size(2) - x2.size(2), x1.size(3) - x2.size(3)
        return self.outc(self.conv(torch.cat([x1, F.pad(x2, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])], 1)))


def dice(p, t, eps=1.0):
    p = p.sigmoid()
    return 1 - (2 * (p * t).sum((2, 3)) + eps) / (p.sum((2, 3)) + t.sum((2, 3)) + eps)


def focal(l, t, a=0.25, g=2.0):
    bce = F.binary_cross_entropy_with_logits(l, t, reduction="none")
    pt = torch.exp(-bce)
    return (torch.where(t == 1, a, 1 - a) * (1 - pt) ** g * bce).mean()


for b in (True, False):
    net = UNet(b)
    opt = torch.optim.RMSprop(net.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9, foreach=True)
    x = torch.randn(2, 3, 13, 11).to(memory_format=torch.channels_last)
    t = (x.mean(1, keepdim=True) > 0).float()
    for e in range(3):
        l = net(x)
        loss = dice(l, t).mean() + focal(l, t)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        print(b, e, f"{loss.item():.5f}")
    net.eval()
    m = torch.sigmoid(net(x)) > 0.5
    print(m.sum(), ((m & t.bool()).sum((1, 2, 3)) / (m | t.bool()).sum((1, 2, 3))))


class STN(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc = nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2, stride=2), nn.ReLU(True))
        self.fc = nn.Linear(2 * 9, 6)
        self.fc.weight.data.zero_()
        self.fc.bias.data.copy_(torch.tensor([1, 0, 0.1, 0, 1, 0], dtype=torch.float))

    def forward(self, x):
        th = self.fc(self.loc(x).flatten(1)).view(-1, 2, 3)
        return F.grid_sample(x, F.affine_grid(th, x.size(), align_corners=False), align_corners=False)


s = STN()
z = torch.rand(2, 1, 8, 8)
o = s(z)
o.sum().backward()
print(o[0, 0, 0], s.fc.bias.grad)
print(
    F.interpolate(z, (5, 5), mode="bicubic")[0, 0, 0],
    F.interpolate(z, scale_factor=0.5, mode="area")[0, 0, 0],
    F.interpolate(z, (3, 3), mode="bilinear", antialias=True)[0, 0, 0],
)
print(F.unfold(z, 3).shape, F.fold(F.unfold(z, 2, stride=2), (8, 8), 2, stride=2).equal(z))
ps = nn.PixelShuffle(2)
print(ps(torch.arange(16.0).view(1, 4, 2, 2)))
g = z.flatten(2)
print((g @ g.mT / 64).squeeze())
tv = (z[..., 1:] - z[..., :-1]).abs().mean()
print(tv)
