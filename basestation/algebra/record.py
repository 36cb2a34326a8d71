"""Often: how values are declared of which each step makes many."""

from dataclasses import dataclass

record = dataclass(slots=True)
"""Nobody writes to such a value once it is made, as to any other. It is not frozen, since to make one that is takes four to eight
times as long: a step of few tuples is mostly the making of such values, and so is cutting answers apart."""
