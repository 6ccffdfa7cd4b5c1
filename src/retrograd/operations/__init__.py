"""The table of operations: every operation once, as one block."""
