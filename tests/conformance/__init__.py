"""Conformance tests: results compared with the answers of PyTorch 2.13 that are recorded in ``golden``."""
