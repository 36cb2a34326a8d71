"""Counts: what an operator has done so far, for whoever tunes it, and asks what a query costs."""

from dataclasses import dataclass


@dataclass(slots=True)
class OperatorCounters:
    """`time` is in the units of the clock that the engine was handed; 0 without one."""

    rows_in: int = 0
    rows_out: int = 0
    inserted: int = 0  # into its state
    purged: int = 0  # from its state
    probed: int = 0  # rows that looked for partners in the state of another
    time: int = 0


@dataclass(frozen=True, slots=True)
class OperatorReport:
    """The counts of one operator below a query; `queries` is how many of them share it."""

    operator: str
    counts: OperatorCounters
    queries: int
