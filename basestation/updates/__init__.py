"""Answers are histories of updates; what that means, and what may still change."""
