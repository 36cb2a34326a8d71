"""Counters: what each operator has done so far, which shows what a query costs."""

from dataclasses import dataclass


@dataclass(slots=True)
class OperatorCounters:
    """`time` is in the unit of the engine's timer; 0 without a timer."""

    rows_in: int = 0
    rows_out: int = 0
    inserted: int = 0  # rows put into its state
    purged: int = 0  # rows dropped from its state
    probed: int = 0  # rows that looked for partners in another state
    time: int = 0


@dataclass(frozen=True, slots=True)
class OperatorShare:
    """The part of a query in the operators that it uses: of each, an even share among the queries that use it now.

    `time` is in the unit of the engine's timer, since an operator was made; `bytes` are those of states, without the log of
    an extent, which belongs to no query.
    """

    time: float
    bytes: float

    def __add__(self, other: "OperatorShare") -> "OperatorShare":
        return OperatorShare(self.time + other.time, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class OperatorReport:
    """The counters of one operator below a query; `queries` is how many queries share it."""

    operator: str
    counts: OperatorCounters
    queries: int
