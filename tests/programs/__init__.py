"""Whole programs, run by ``retrograd run`` and compared with what they printed under PyTorch 2.13."""
