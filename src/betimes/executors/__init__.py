"""The executors: each runs one kind of work; none knows another."""
