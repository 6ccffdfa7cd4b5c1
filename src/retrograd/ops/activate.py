"""Activations and probabilities: softmax and its kin, dropout."""
