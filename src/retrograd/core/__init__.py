"""What a tensor, a graph and a backward sweep are. Nothing here knows an operation."""
