"""Acquisition: extents, readings, and one schedule per site for the needs of all queries."""
