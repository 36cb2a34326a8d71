"""Shape: what a reader of a query's answers knows about it: windows or a stream, of which columns."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResultSchema:
    number: int
    kind: str  # window or stream
    columns: tuple  # of the algebra: label, type, scale, unit
    loops: bool = False  # windows have a `t`

    @property
    def scales(self):
        return [column.scale for column in self.columns]


def schema_of(number, plan):
    return ResultSchema(number, plan.kind, tuple(plan.root.columns), bool(getattr(plan.statement, "loops", ())))
