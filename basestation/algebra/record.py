"""record: declares the values of which each step makes many."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record  # type checkers know this one by name
else:
    from dataclasses import dataclass

    record = dataclass(slots=True)

__all__ = ["record"]
"""Treat a record as immutable. It is not declared frozen, because to create a frozen value takes four to eight times as long, and
a step of few tuples spends most of its time creating such values."""
