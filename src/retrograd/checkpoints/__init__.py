"""Files of tensors: how PyTorch's checkpoints (and safetensors) are laid out, and how they are read without trust."""
