"""Declaration of operations, and generation of the functions that call them. Knows no particular operation."""
