"""Tests of one part each, with literal expectations."""
