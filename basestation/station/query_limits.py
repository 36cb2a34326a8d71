"""Query limits: how many queries a station takes at a time, of all users and of each."""

from dataclasses import dataclass

from basestation.controller.world import World
from basestation.station.journal import Journal
from gateway.errors import MoteloomError


class QueryLimitError(MoteloomError):
    """One query more than there may be; `help` says what to do."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Queries that have not ended, paused ones among them: of all users, and of each."""

    queries: int = 1_000
    of_user: int = 1_000

    def check(self, world: World, journal: Journal, owner: str | None) -> None:
        """QueryLimitError where one query more would be too many."""
        kept = [number for number, query in world.queries.items() if not query.has_ended]
        if len(kept) >= self.queries:
            raise QueryLimitError(
                f"the station has {len(kept):,} queries, and takes no more",
                "stop one, or raise `limits.queries` in the deployment",
            )
        if owner is None or len(kept) < self.of_user:
            return
        count = sum(journal.owner(number) == owner for number in kept)
        if count >= self.of_user:
            raise QueryLimitError(
                f"{owner} has {count:,} queries, and may have no more",
                "stop one, or raise `limits.queries_of_user` in the deployment",
            )
