"""Output: turns the changes of streams and blocks into the updates of each query."""
