"""The process around the library: threads, memory allocation, NumPy warnings, user frames. Knows no tensor."""
