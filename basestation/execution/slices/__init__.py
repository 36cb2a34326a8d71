"""Slices: window aggregates combined from slices; each tuple, or partial, is folded into one slice once."""
