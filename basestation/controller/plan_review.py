"""PlanReview: a search for cheaper placements of the running queries, spread over looks of the station.

With a hundred queries a search takes seconds. So it is a function of the world and of the tick in which it begins, and its result
counts a fixed number of looks later. How its parts are spread over the looks between does not matter: a replay of the log does
none of them until the result counts, and takes the same decision at the same look.
"""

from basestation.controller.network_plan import PlanCache
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.reoptimization import PARTS_PER_QUERY, PlanComparison, Search, search_cheaper
from basestation.controller.world import World

QUERIES_AT_ONCE = 10
"""With so many live queries or fewer, a review ends in the look in which it begins; with more it takes a look for each query."""
MOST_DROPPED = 3
"""Where so many reviews in a row were dropped because queries or routes changed, the next one ends in the look in which it begins."""


class PlanReview:
    """A review of the plans of a world from a tick on. A copy or a pickle of it begins its search anew."""

    def __init__(self, world: World, now: int, min_saving: float, at_once: bool = False) -> None:
        self._world, self._now, self._min_saving = world, now, min_saving
        count = len(world.live)
        self._looks_left = 0 if at_once or count <= QUERIES_AT_ONCE else count
        self._forget_search()

    def _forget_search(self) -> None:
        self._parts_left = PARTS_PER_QUERY * len(self._world.live)
        self._search: Search | None = None
        self._found: PlanComparison | None = None
        self._is_over = False

    def __getstate__(self) -> tuple[World, int, float, int]:
        return self._world, self._now, self._min_saving, self._looks_left

    def __setstate__(self, state: tuple[World, int, float, int]) -> None:
        self._world, self._now, self._min_saving, self._looks_left = state
        self._forget_search()

    @property
    def is_due(self) -> bool:
        """Whether its result counts now."""
        return self._looks_left <= 0

    def count_look(self) -> None:
        """Come one look nearer to the result."""
        self._looks_left -= 1

    def is_about(self, world: World) -> bool:
        """Whether a later world has the queries and the routes that the review is about."""
        before = self._world
        if world.tree.parent != before.tree.parent:
            return False
        if world.live is before.live:
            return True
        return world.live.keys() == before.live.keys() and all(
            _placed(query) == _placed(before.live[number]) for number, query in world.live.items()
        )

    def advance(self) -> None:
        """Do the share of the search that is due until the next look."""
        for _ in range(-(-self._parts_left // max(1, self._looks_left))):
            self._advance()

    def find(self) -> PlanComparison | None:
        """Search to the end; return the cheaper placements, or None if there are none."""
        while not self._is_over:
            self._advance()
        return self._found

    def _advance(self) -> None:
        if self._is_over:
            return
        if self._search is None:
            self._search = search_cheaper(self._world, PlanCache(self._now), self._min_saving)
        try:
            next(self._search)
            self._parts_left = max(1, self._parts_left - 1)
        except StopIteration as end:
            self._found, self._is_over, self._search, self._parts_left = end.value, True, None, 0


def _placed(query: QueryRecord) -> tuple[object, ...]:
    """All of a query on which a search depends: its plan, and what runs for it."""
    return query.plan, query.deliveries, query.partial_sources, query.migration, query.last_tick
