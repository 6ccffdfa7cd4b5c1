"""Looking into a graph: reading, tracing, drawing and explaining it. Loaded on demand; shown as ``autograd.graph``."""
