"""The queries of `bench.epochs`: one of each form, and many at once that differ in WHERE or range, or begin at different ticks."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.ceiling.epochs import EVERY, OwnRange, OwnWhere

_SLIDE = "[FROM NOW-10 TO NOW SLIDE 1 MIN]"
FORMS = {
    "filter": "SELECT road.time, road.site, road.vibration FROM road WHERE road.temp < 50 AND road.vibration > 20",
    "aggregate": (
        "SELECT site, MIN(vibration) AS low, MAX(vibration) AS high, AVG(vibration) AS mean, COUNT(*) AS readings "
        "FROM road [FROM NOW-10 TO NOW SLIDE 1 MIN] GROUP BY site"
    ),
    "join": (
        "SELECT MIN(temp), MAX(vibration) FROM road [FROM NOW-10 TO NOW SLIDE 1 MIN], "
        "traffic [FROM NOW-10 TO NOW SLIDE 1 MIN] WHERE road.site = traffic.site AND road.time = traffic.time"
    ),
}  # fmt: skip
"""Those with a ceiling by hand."""
LIVE_FORMS = FORMS | {
    "ten groups": (
        "SELECT line, AVG(vibration) AS mean, COUNT(*) AS readings "
        "FROM (SELECT site % 10 AS line, vibration FROM road) [FROM NOW-10 TO NOW SLIDE 1 MIN] GROUP BY line"
    ),
    "last rows": "SELECT site, temp FROM road [FROM NOW-99 TO NOW SLIDE 10 ROWS]",
    "changes": "ISTREAM(SELECT site, temp FROM road [FROM NOW-5 TO NOW SLIDE 1 MIN] WHERE temp > 40)",
    "since the start": "SELECT site, MAX(temp) AS high FROM road [UNBOUNDED SLIDE 1 MIN] GROUP BY site",
    "landmark loop": "SELECT MAX(temp) AS high FROM road FOR (t = ST; t >= ST; t += 60) { WindowIs(road, ST, t); }",
    "all rows": "RSTREAM(SELECT site, AVG(temp) AS mean FROM road [FROM NOW-10 TO NOW SLIDE 1 MIN] GROUP BY site)",
    "union": (
        "SELECT AVG(x) AS mean FROM (SELECT temp AS x FROM road WHERE temp > 30 UNION ALL SELECT vibration AS x FROM road) "
        "[FROM NOW-10 TO NOW SLIDE 1 MIN]"
    ),
    "median": "SELECT site, MEDIAN(vibration) AS middle FROM road [FROM NOW-10 TO NOW SLIDE 1 MIN] GROUP BY site",
}
"""Those that are measured epoch by epoch."""
TABLE_JOIN = (
    "SELECT road.site, tempClass.category FROM road [FROM NOW-5 TO NOW SLIDE 1 MIN], tempClass [SCAN 10 MIN] "
    "WHERE tempClass.temp = road.temp"
)


def bounds_of(k):
    """The bounds of the k-th query: its WHERE is `vibration > first AND temp > second`."""
    return k % 60, k // 60 - 20


def _own_aggregates(n):
    where = "WHERE vibration > {} AND temp > {} GROUP BY"
    return [FORMS["aggregate"].replace("GROUP BY", where.format(*bounds_of(k))) for k in range(n)]


def _own_table_joins(n):
    return ["{} AND road.vibration > {} AND road.temp > {}".format(TABLE_JOIN, *bounds_of(k)) for k in range(n)]


def _own_filters(n):
    return [
        "SELECT site, vibration FROM road WHERE vibration > {} AND temp > {}".format(*bounds_of(k)) for k in range(n)
    ]


def minutes_of(k):
    """The minutes that the window of the k-th query reaches back."""
    return 10 + k


def _own_ranges(n):
    window = "[FROM NOW-{} MIN TO NOW SLIDE 30 SEC]"
    return [FORMS["aggregate"].replace(_SLIDE, window.format(minutes_of(k))) for k in range(n)]


def _own_whole_ranges(n):
    return [text.replace("SELECT site, ", "SELECT ").replace(" GROUP BY site", "") for text in _own_ranges(n)]


def _own_both(n):
    window = "[FROM NOW-{} MIN TO NOW SLIDE 30 SEC]"
    return [text.replace(_SLIDE, window.format(10 + k % 50)) for k, text in enumerate(_own_aggregates(n))]


def _own_sites(n):
    text = "SELECT AVG(vibration) AS mean FROM road [FROM NOW-10 MIN TO NOW SLIDE 30 SEC] WHERE site = {} AND vibration > {}"
    return [text.format(k % 54 + 1, k // 54) for k in range(n)]


def _mixed(n):
    """A third each of filters, aggregates and joins with a table."""
    third = -(-n // 3)
    kinds = (_own_filters(third), _own_aggregates(third), _own_table_joins(third))
    return [text for texts in zip(*kinds, strict=True) for text in texts][:n]


def _equal(form):
    texts = LIVE_FORMS | {"changes of a join": f"ISTREAM({FORMS['join']})"}
    return lambda n: [texts[form]] * n


@dataclass(frozen=True)
class ManyQueries:
    """`texts(n)` are n of the queries. Goals: milliseconds of an epoch, or the times of one query's time and state."""

    what: str
    count: int
    texts: Callable
    form: str = "aggregate"  # it decides which extents there are
    staggered: bool = False  # one more begins at each tick
    table: bool = False
    goal_ms: float | None = None
    by_hand: Callable | None = None  # what makes the same by hand, for a scale and so many queries
    past: int = 0  # epochs before the queries begin


def _where_by_hand(scale, n):
    return OwnWhere(scale, [bounds_of(k) for k in range(n)])


def _ranges_by_hand(scale, n, grouped=True):
    return OwnRange(scale, [minutes_of(k) for k in range(n)], grouped)


def _whole_ranges_by_hand(scale, n):
    return _ranges_by_hand(scale, n, grouped=False)


EQUAL, DIFFERENT = 50, 1_000
PAST = 60 * (minutes_of(DIFFERENT) + 1) // EVERY  # all windows are full from the first on
MANY = {
    "aggregates": ManyQueries("aggregates with their own WHERE", DIFFERENT, _own_aggregates, goal_ms=20, by_hand=_where_by_hand),
    "ranges": ManyQueries("aggregates with their own range", DIFFERENT, _own_ranges, goal_ms=20, by_hand=_ranges_by_hand, past=PAST),
    "whole ranges": ManyQueries("aggregates of all sites with their own range", DIFFERENT, _own_whole_ranges, goal_ms=20, by_hand=_whole_ranges_by_hand, past=PAST),
    "table joins": ManyQueries("joins with a table and their own WHERE", DIFFERENT, _own_table_joins, table=True, goal_ms=20),
    "mixed": ManyQueries("filters, aggregates and joins with a table", DIFFERENT, _mixed, table=True, goal_ms=20),
    "both": ManyQueries("aggregates with their own WHERE and one of 50 ranges", DIFFERENT, _own_both, goal_ms=20),
    "sites": ManyQueries("aggregates of one site each, with their own WHERE", DIFFERENT, _own_sites, goal_ms=20),
    "equal filters": ManyQueries("filters that begin together", EQUAL, _equal("filter")),
    "staggered filters": ManyQueries("filters that begin one tick apart", EQUAL, _equal("filter"), staggered=True),
    "equal aggregates": ManyQueries("aggregates that begin together", EQUAL, _equal("aggregate")),
    "staggered aggregates": ManyQueries("aggregates that begin one tick apart", EQUAL, _equal("aggregate"), staggered=True),
    "equal joins": ManyQueries("joins that begin together", EQUAL, _equal("join"), "join"),
    "staggered joins": ManyQueries("joins that begin one tick apart", EQUAL, _equal("join"), "join", staggered=True),
    "equal changes": ManyQueries("ISTREAMs that begin together", EQUAL, _equal("changes")),
    "staggered changes": ManyQueries("ISTREAMs that begin one tick apart", EQUAL, _equal("changes"), staggered=True),
    "staggered changes of joins": ManyQueries("ISTREAMs of a join that begin one tick apart", EQUAL, _equal("changes of a join"), "join", staggered=True),
}  # fmt: skip
