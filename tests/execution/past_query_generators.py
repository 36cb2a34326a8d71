"""Queries about the past, and in a hurry, that the general generator seldom makes: histories, SINCE, DELIVER WITHIN."""

import random
import re

from tests.execution.query_generators import LoopMaker
from tests.oracles.generate import Case, CaseMaker, Ref

_CLAUSE = re.compile(r" (FOR \d+ SEC|ACQUIRE EVERY \d+ SEC|DELIVER WITHIN \d+ SEC)$")
_SENSED = re.compile(r"\broad\b(?!\.)")


class HistoryMaker(CaseMaker):
    """Scans of histories in most places, and corrections of all kinds at several clock ticks."""

    def history(self):
        return self.pick("road.history", "road.history", "hits.history")

    def entry(self, depth, aggregating):
        if not self.chance(0.6):
            return super().entry(depth, aggregating)
        extent, alias = self.history(), self.alias()
        refs = self.refs(extent.split(".")[0], alias)
        refs += [Ref(f"{alias}.{name}", "integer") for name in ("tick", "index", "_site", "_arrival")]
        return f"{extent} AS {alias} [SCAN {self.rng.randint(1, 3)} SEC]", refs, False

    def statement(self, clock):
        due = clock // self.every * self.every
        return self.pick(
            "REVISE road SET n = n + 1 WHERE n = 2", "REVISE road SET n = n + 1, s = 'r' WHERE tick < 5",
            "REVISE hits SET n = 3 WHERE index <= 3", "DELETE FROM road WHERE n = 1", "DELETE FROM hits WHERE tick < 5",
            f"INSERT INTO hits (tick, n, s) VALUES ({clock}, 1, 'new')", "INSERT INTO hits (tick, n, s) VALUES (0, 1, 'new')",
            f"INSERT INTO road (tick, site, n) VALUES ({due}, {self.sites[0]}, 2)",
            f"INSERT INTO road (tick, site, n) VALUES (0, {self.sites[0]}, 2)",
        )  # fmt: skip

    def statements(self):
        clocks = sorted(self.rng.randint(1, self.end) for _ in range(self.rng.randint(0, 3)))
        return [(self.statement(clock), clock) for clock in clocks]

    def one_off(self):
        here, there = self.history(), self.pick("road.history", "hits.history", "kinds")
        kind = self.pick("INNER JOIN", "LEFT JOIN", "FULL JOIN")
        return self.pick(
            f"SELECT * FROM {here}",
            f"SELECT a.tick, a.index, a.n, b.s, a._arrival FROM {here} AS a {kind} {there} AS b ON a.n = b.n",
            f"SELECT COUNT(*), SUM(n), MAX(_arrival) FROM {here} GROUP BY _site",
            f"SELECT n FROM kinds WHERE n IN (SELECT n FROM {here})",
            f"RSTREAM(SELECT n, index FROM {here})",
        )

    def scanning(self):
        text, _ = self.window_query(1)
        return text if self.chance(0.6) else f"{self.pick('RSTREAM', 'ISTREAM', 'DSTREAM')}({text})"


def _made(make, query, clock=0):
    """A Case; the clock tick at which its query is asked stands with it."""
    return Case(make.seed, make.text, make.given, (query, clock), make.statements(), make.traits)


def _begun(maker, seed):
    make = maker(seed)
    make.seed, make.text, make.given, make.taken = seed, make.schema(), make.inputs(), set()
    return make


def asked_of_history(seed):
    """A one-off query over a history, asked at some time."""
    make = _begun(HistoryMaker, seed)
    return _made(make, make.one_off(), make.rng.choice((0, make.rng.randint(0, make.end), make.end)))


def scanning_history(seed):
    make = _begun(HistoryMaker, seed)
    return _made(make, make.scanning())


def _since(make, query):
    """The query with a SINCE before its clause, and the clock tick at which it is asked."""
    clause = _CLAUSE.search(query)
    head, tail = (query[: clause.start()], query[clause.start() :]) if clause else (query, "")
    clock = make.rng.choice((0, make.rng.randint(1, make.end)))
    ago = clock and make.chance(0.4)
    since = f"NOW - {make.rng.randint(1, clock)} SEC" if ago else make.rng.randint(0, make.end + 1)
    return f"{head} SINCE {since}{tail}", clock


def _continuous(seed):
    """A maker and its query; every fifth has a loop."""
    maker = random.Random(f"maker of {seed}").choice((CaseMaker, CaseMaker, HistoryMaker, HistoryMaker, LoopMaker))
    make = _begun(maker, seed)
    if maker is LoopMaker:
        return make, make.loop_query()
    return make, make.window_query(1)[0] if make.chance(0.5) else make.stream_query(2)[0]


def since(seed):
    """A query that begins at some tick, in the past or not."""
    make, query = _continuous(seed)
    made = _made(make, *_since(make, query))
    if make.chance(0.3):  # corrected when it is asked
        made.statements = [(text, made.query[1]) for text, _ in made.statements]
    return made


def within(seed):
    """A query that does not wait for all readings; None where it reads no sensed extent."""
    make, query = _continuous(seed)
    if not _SENSED.search(query):
        return None
    query, clock = _since(make, query) if make.chance(0.3) else (query, 0)
    query = query if _CLAUSE.search(query) is None or "FOR" in query else _CLAUSE.sub("", query)
    return _made(make, f"{query} DELIVER WITHIN {make.rng.randint(1, 4)} SEC", clock)
