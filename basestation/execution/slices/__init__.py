"""Slices: aggregates of windows put together from slices, whose tuples, or partials of them, are folded once."""
