"""Joins: n-way joins over shared state modules; a join plan is a value and can be exchanged between two steps."""
