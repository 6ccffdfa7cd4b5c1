"""Reductions, norms and scans: many elements to one, or to a running one."""
