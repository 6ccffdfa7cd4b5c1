"""The process that runs the library: threads, memory allocation, NumPy's warnings, frames of the user's program."""
