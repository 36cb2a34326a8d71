"""Query names: a name is that of one query of its user, and users need not know the names of others.

The log and the engine have a name as `OWNER.NAME`, so that it is one station-wide; users see `NAME`. A query that no user owns, and
one of a log of before names had owners, has its plain name there.
"""

from collections.abc import Iterator

from basestation.controller.query_lifecycle import QueryRecord, QueryState, QueryStateError
from basestation.controller.world import World
from basestation.station.journal import Journal
from gateway.errors import MoteloomError

SEPARATOR = "."
"""No name of a query has it, so the last one ends the owner, as a schema ends before the name of a table in SQL."""


class AmbiguousNameError(MoteloomError):
    """Queries of several users have a name; `help` lists them."""

    def __init__(self, name: str, found: list[tuple[int, str | None]]) -> None:
        super().__init__(f"{len(found)} queries have the name `{name}`")
        self.help = "send one of " + ", ".join(
            str(number) if owner is None else f"{owner}{SEPARATOR}{name}" for number, owner in sorted(found)
        )


def qualify(name: str | None, owner: str | None) -> str | None:
    """A name as the log has it."""
    return name if name is None or owner is None else f"{owner}{SEPARATOR}{name}"


def split_name(name: str) -> tuple[str | None, str]:
    """The owner that a name begins with, or None, and the name that users see."""
    owner, _, plain = name.rpartition(SEPARATOR)
    return owner or None, plain


def plain_name(name: str | None) -> str | None:
    """A name as users see it."""
    return None if name is None else split_name(name)[1]


def check_name(name: str | None, owner: str | None, world: World, journal: Journal) -> None:
    """QueryStateError if another query of an owner has a name."""
    if name is None:
        return
    for query, of in _find_live(name, world, journal):
        if of == owner:
            raise QueryStateError(
                f"query {query.number} has the name `{name}`", "choose another name, or replace that query"
            )


def find_owned(name: str, owner: str | None, world: World, journal: Journal) -> int | None:
    """The number of an owner's query with a name: the one that may still answer, else the newest that had it."""
    for query, of in _find_live(name, world, journal):
        if of == owner:
            return query.number
    return journal.query_named((name, qualify(name, owner) or name), owner)


def find_of_any(name: str, world: World, journal: Journal) -> int | None:
    """The number of the one query with a name, of any owner; of those that may still answer, if there are some.

    AmbiguousNameError: several owners have one.
    """
    found = [(query.number, of) for query, of in _find_live(name, world, journal)]
    found = found or journal.queries_named(name, f"{SEPARATOR}{name}")
    if len(found) > 1:
        raise AmbiguousNameError(name, found)
    return found[0][0] if found else None


def _find_live(name: str, world: World, journal: Journal) -> Iterator[tuple[QueryRecord, str | None]]:
    """The queries with a name that answer new windows, now or after they are resumed, with their owners."""
    for query in world.queries.values():
        is_over = query.has_ended or query.state is QueryState.DRAINING
        if query.name is not None and not is_over and plain_name(query.name) == name:
            yield query, journal.owner(query.number)
