"""Inspection of graphs: explain, trace, draw and measure them. ``autograd`` loads these modules on first access."""
