"""rearrange, reduce, repeat, pack and layers with gradients."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange
from report import show

torch.manual_seed(0)
x = torch.randn(2, 3, 4, 6, requires_grad=True)
show("rearrange", rearrange(x, "b c (h i) (w j) -> b (h w) (c i j)", i=2, j=3))
show("reduce", reduce(x, "b c (h 2) w -> b c h", "max"))
show("repeat", repeat(x[0, 0], "h w -> (k h) w", k=2))
packed, shapes = pack([x, torch.ones(2, 5)], "b *")
show("packed", packed), show("unpacked", unpack(packed, shapes, "b *")[1])
show("einsum", einsum(x, torch.ones(6, 2), "b c h w, w o -> b o h"))
layer = torch.nn.Sequential(Rearrange("b c h w -> b (h w) c"), EinMix("b n c -> b n o", weight_shape="c o", c=3, o=4))
layer(x).sum().backward()
show("gradient", x.grad)
