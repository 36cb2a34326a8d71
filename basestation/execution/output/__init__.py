"""Answers: what queries say at the end of a step, to whom, and which of them say it together."""
