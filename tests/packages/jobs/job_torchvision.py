"""Transforms of tensors, data sets of local files, a residual network with its checkpoint, and operators of boxes."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from report import show
from torchvision import datasets, models, ops, tv_tensors
from torchvision.transforms import v2

torch.manual_seed(0)
image = torch.randint(0, 256, (3, 20, 24), dtype=torch.uint8)
pipeline = v2.Compose(
    [
        v2.RandomResizedCrop(12, antialias=True),
        v2.RandomHorizontalFlip(0.5),
        v2.ColorJitter(0.2, 0.2, 0.2),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5] * 3, [0.25] * 3),
    ]
)
show("transformed", pipeline(image))
show("rotated", v2.functional.rotate(image.float(), 30.0))
show("blurred", v2.functional.gaussian_blur(image.float(), [3, 3], [1.0, 1.0]))
boxes = tv_tensors.BoundingBoxes(torch.tensor([[1.0, 2.0, 9.0, 11.0]]), format="XYXY", canvas_size=(20, 24))
resized, moved = v2.Resize((10, 12))(image, boxes)
show("resized", resized), show("boxes", moved)

with tempfile.TemporaryDirectory() as folder:
    numbers = np.random.default_rng(0).integers(0, 256, (4, 3072), dtype=np.uint8)
    for kind in ("a", "b"):
        (Path(folder) / "images" / kind).mkdir(parents=True)
        Image.fromarray(numbers[ord(kind) % 4].reshape(32, 32, 3)).save(Path(folder) / "images" / kind / "0.png")
    found = datasets.ImageFolder(
        str(Path(folder) / "images"), v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    )
    for x, label in torch.utils.data.DataLoader(found, batch_size=2):
        show("image folder", x), show("labels", label)

    model = models.resnet18(num_classes=5)
    torch.save(model.state_dict(), Path(folder) / "resnet.pth")
    other = models.resnet18(num_classes=5)
    other.load_state_dict(torch.load(Path(folder) / "resnet.pth"))
    show("weights", model.conv1.weight), show("fc", model.fc.weight)
    x = torch.randn(2, 3, 64, 64)
    show("training", model(x))
    loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([1, 3]))
    loss.backward()
    show("loss", loss), show("gradient", model.conv1.weight.grad)
    show("evaluation", other.eval()(x))

corners = torch.rand(30, 2) * 10
boxes = torch.cat([corners, corners + torch.rand(30, 2) * 8], 1)
show("iou", ops.box_iou(boxes[:3], boxes))
show("giou loss", ops.generalized_box_iou_loss(boxes[:5], boxes[5:10]))
show("focal loss", ops.sigmoid_focal_loss(torch.randn(4, 3), torch.rand(4, 3), reduction="mean"))
