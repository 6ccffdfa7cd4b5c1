"""Tests of the package itself: import layers, import time, documentation, coverage count, fast paths."""
