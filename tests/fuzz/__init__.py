"""Random programs, compared with what PyTorch 2.13 made of them."""
