"""Arrays in, arrays out. Nothing here knows a Tensor."""
