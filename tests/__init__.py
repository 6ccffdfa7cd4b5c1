"""The tests, one file a topic."""
