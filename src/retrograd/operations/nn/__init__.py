"""Operations of layers of networks."""
