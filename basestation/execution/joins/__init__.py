"""Joining: n-way joins over state modules, by plans that are values and can be exchanged between two steps."""
