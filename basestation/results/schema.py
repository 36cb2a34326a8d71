"""The schema of a query's answer: windows or a stream, of which columns."""

from collections.abc import Iterable
from dataclasses import dataclass

from basestation.algebra.expression import Column
from basestation.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class ResultSchema:
    """`kind` is window or stream; `has_loops`: each window has a loop variable `t`."""

    number: int
    kind: str
    columns: tuple[Column, ...]
    has_loops: bool = False

    @property
    def scales(self) -> list[int | None]:
        return [column.scale for column in self.columns]


def schema_of(number: int, plan: Plan) -> ResultSchema:
    """The schema of the query with this number."""
    return ResultSchema(number, plan.kind, tuple(plan.root.columns), bool(getattr(plan.statement, "loops", ())))


def make_unique(names: Iterable[str]) -> list[str]:
    """The names, with a number after each repetition, where rows are read by name."""
    found: list[str] = []
    for name in names:
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found
