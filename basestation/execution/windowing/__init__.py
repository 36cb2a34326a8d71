"""Sequences: windows over one input, one after the other, what they hold, and which of several inputs stand together."""
