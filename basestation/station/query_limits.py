"""Query limits: how many queries a station takes, and how much state and time they may take, of all users and of each."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from basestation.execution.counters import OperatorShare
from basestation.execution.description import LOGGED, held_states
from basestation.explain.operators import build_executable_plan
from basestation.planner.binder import bind_text
from basestation.planner.plan import Plan
from basestation.station.journal import Command, Journal
from basestation.station.service import Station
from gateway.diagnostics import DiagnosticError
from gateway.errors import MoteloomError


class QueryLimitError(MoteloomError):
    """A query more than there may be, or one that would take more than it may; `help` says what to do."""

    def __init__(self, message: str, help: str, code: str = "too-many-queries") -> None:
        super().__init__(message)
        self.help, self.code = help, code


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Queries that have not ended, paused ones among them: of all users, and of each. None is without limit.

    `state_bytes` and `cpu_share` (seconds of a core in a second) are of each query, those `of_user` of all queries of a user.
    """

    queries: int = 1_000
    of_user: int = 1_000
    state_bytes: int | None = None
    state_bytes_of_user: int | None = None
    cpu_share: float | None = None
    cpu_share_of_user: float | None = None

    def check(self, command: Command, station: Station, journal: Journal, owner: str | None) -> None:
        """QueryLimitError where a query that a command submits would be too many, or would take too much."""
        kept = [number for number, query in station.world.queries.items() if not query.has_ended]
        if len(kept) >= self.queries:
            raise QueryLimitError(
                f"the station has {len(kept):,} queries, and takes no more",
                "stop one, or raise `limits.queries` in the deployment",
            )
        if owner is not None and len(kept) >= self.of_user:
            count = sum(journal.owner(number) == owner for number in kept)
            if count >= self.of_user:
                raise QueryLimitError(
                    f"{owner} has {count:,} queries, and may have no more",
                    "stop one, or raise `limits.queries_of_user` in the deployment",
                )
        if self.state_bytes is not None or (owner is not None and self.state_bytes_of_user is not None):
            self._check_state(json.loads(command.argument)["text"], station, journal, owner)

    def _check_state(self, text: str, station: Station, journal: Journal, owner: str | None) -> None:
        """QueryLimitError where a query would need too much state at the declared rates and horizons."""
        needed = predict_state(text, station)
        if self.state_bytes is not None and needed > self.state_bytes:
            raise QueryLimitError(
                f"the query would hold up to {needed / 1e6:,.1f} MB of state, and may hold {self.state_bytes / 1e6:,.1f} MB",
                "ask for a shorter window, or raise `limits.state_mb` in the deployment",
                "too-much-state",
            )
        if owner is None or self.state_bytes_of_user is None:
            return
        shares, _ = station.usage({})
        held = sum_by_owner(shares, journal)[owner].bytes
        if held + needed > self.state_bytes_of_user:
            raise QueryLimitError(
                f"the queries of {owner} hold {held / 1e6:,.1f} MB of state, this one would add up to {needed / 1e6:,.1f} MB, "
                f"and they may hold {self.state_bytes_of_user / 1e6:,.1f} MB together",
                "stop one, ask for a shorter window, or raise `limits.state_mb_of_user` in the deployment",
                "too-much-state",
            )


def predict_state(text: str, station: Station) -> int:
    """The most bytes of state of a query at the declared rates and horizons, as EXPLAIN shows them.

    States without a limit count as nothing, and so does a text with errors: the submission says them.
    """
    try:
        plans = [each for each in bind_text(text, station.world.catalog) if isinstance(each, Plan)]
    except DiagnosticError:
        return 0
    lines = [line for plan in plans for line in held_states(build_executable_plan(plan).operators)]
    return sum(each.state.limit_bytes or 0 for each in lines if each.state is not None and each.state.what != LOGGED)


def sum_by_owner(shares: Mapping[int, OperatorShare], journal: Journal) -> defaultdict[str, OperatorShare]:
    """By user, the sum of the shares of their queries; nothing for a user without."""
    found: defaultdict[str, OperatorShare] = defaultdict(lambda: OperatorShare(0.0, 0.0))
    for number, share in shares.items():
        if (owner := journal.owner(number)) is not None:
            found[owner] = OperatorShare(found[owner].time + share.time, found[owner].bytes + share.bytes)
    return found
