"""The least code that does the same physical work."""
