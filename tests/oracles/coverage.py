"""Coverage: which readings a window should have had, and which it had (12.3 and its corners in 14)."""

from dataclasses import dataclass

from tests.oracles.expressions import Env


@dataclass(frozen=True)
class Cover:
    """One occurrence of an extent below a window, with the range it looks at. Readings are (site, tick)."""

    extent: str
    due: frozenset | None  # None: a pushed extent
    known: frozenset = frozenset()
    excluded: frozenset = frozenset()


def cover(log, low, high, clock, at, every, excludes):
    """The readings that the range low .. high of an extent covers at the end of a clock tick.

    `at` is the tick of the window (`late append` tuples count from their arrival on), None where there is none.
    `every` is the interval that the query samples at; `excludes` are its conjuncts over `site` alone.
    """
    extent = log.extent
    if extent.kind == "pushed":
        return Cover(extent.name, None)
    # Every declared site at every tick that this query samples, from tick 0.
    begin = max(0, low)
    due_ticks = range(begin + -begin % every, high + 1, every)
    due = frozenset((site, tick) for site in extent.sites for tick in due_ticks)
    here = log.here(clock)
    known = frozenset(x for x in due if x in here and (at is None or extent.late != "append" or here[x] <= at))
    excluded = frozenset(x for x in due if any(keeps(x[0]) is not True for keeps in excludes))
    return Cover(extent.name, due, known, excluded)


def coverage(covers):
    """{extent: [used, due]}, over the set of (site, tick) in the ranges of all windows below, each once."""
    result = {}
    for name in sorted({c.extent for c in covers}):
        below = [c for c in covers if c.extent == name]
        if below[0].due is None:
            result[name] = None
            continue
        due = frozenset().union(*(c.due for c in below))
        used = {
            reading for reading in due
            if any(reading in c.known for c in below)
            # 14: excluded only if every occurrence whose range holds it excludes it
            or all(reading in c.excluded for c in below if reading in c.due)
        }  # fmt: skip
        result[name] = [len(used), len(due)]
    return result


def site_test(predicate, places, width):
    """A conjunct over `site` alone as a function of the site."""

    def keeps(site):
        return predicate(Env(row=tuple(site if i in places else None for i in range(width))))

    return keeps
