"""Checkpoint files: the formats of PyTorch and of safetensors, and readers that execute no code from a file."""
