"""Typical programs for either engine: ``python tests/programs/typical`` prints their output as JSON."""
