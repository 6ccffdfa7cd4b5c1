"""Declaration of operations, and generation of the functions that call them; no operation is defined here."""
