"""Functions that describe, draw and measure autograd graphs; ``torch.autograd`` imports them on first access."""
