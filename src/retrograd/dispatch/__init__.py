"""From the declaration of an operation to a call of it. Knows no particular operation."""
