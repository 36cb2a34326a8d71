"""Relational: selection, projection, aggregation and subqueries over the contents of windows, and their deltas."""
