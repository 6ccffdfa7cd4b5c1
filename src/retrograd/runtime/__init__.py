"""Services for the whole process: threads, memory allocation, NumPy's warnings, and frames of the user's program."""
