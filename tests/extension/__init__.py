"""A package of operations that are declared outside of retrograd, as another project would do it."""
