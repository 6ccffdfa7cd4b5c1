"""Functions that describe, draw and measure an autograd graph; ``autograd`` loads these modules on first access."""
