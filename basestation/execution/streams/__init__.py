"""Flowing: what streams carry between extents, windows and answers, and what should have come in them."""
