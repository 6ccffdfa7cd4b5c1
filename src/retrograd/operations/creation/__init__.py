"""Operations that create tensors: from values, from data and from random numbers."""
