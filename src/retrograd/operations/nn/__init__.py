"""Operations of neural network layers: activations, losses, convolution, pooling, normalization and attention."""
