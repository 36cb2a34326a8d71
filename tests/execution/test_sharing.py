"""Queries that share operators: each gives the updates that it gives alone, and equal operators exist once."""

from dataclasses import dataclass, field
from itertools import zip_longest

import pytest

from basestation.execution.engine import Engine
from basestation.execution.graph import STREAM, Operator, OperatorGraph
from basestation.execution.plan_checks import StartBeforeRecordError, UnsupportedPlanError, find_history_extents
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import Recording, read_recording
from basestation.updates.update import EpochMark, QueryFailure, TupleUpdates, split_singly
from gateway.diagnostics import DiagnosticError
from tests.agreement.history import bag, typed
from tests.conftest import count_of
from tests.oracles.generate import CaseMaker

MANY = 100
"""A longer recording ends only the clock ticks with a sampling."""
NEVER = 10**9
"""A clock tick after all others, and a number of steps after all others."""


@dataclass
class Asked:
    """A query that is added before the end of clock tick `comes`, and removed before the end of `goes`."""

    text: str
    comes: int = 0
    goes: int = NEVER


@dataclass
class Case:
    recording: Recording
    queries: list[Asked]
    corrections: dict = field(default_factory=dict)  # clock tick -> what is corrected
    restored: frozenset = frozenset()  # clock ticks after which several queries go on in a restored engine

    def run(self, which, tidy_every):
        """Run some of the queries: ({position of a query: [(clock tick, update)]}, the engine after all were removed)."""
        engine, until = Engine(self.recording.catalog, tidy_every=tidy_every), self.recording.end()
        for name, versions in self.recording.versions.items():
            for tick, columns in versions:
                engine.load(name, tick, columns)
        for at in which:
            [plan] = bind_text(self.queries[at].text, self.recording.catalog)
            # A history is kept from when a query reads it, or is announced, as a replay does.
            if " SINCE " in self.queries[at].text and any(find_history_extents(plan.root)):
                engine.announce(at, plan)
        said, running = {at: [] for at in which}, set()
        step = self.recording.catalog.find("road").interval if until > MANY else 1
        for clock in range(0, until + 1, step):
            for at in [at for at in running if self.queries[at].goes == clock]:
                running.remove(at)
                engine.remove(at)
            for at in which:
                if self.queries[at].comes == clock and self._added(engine, at, said):
                    running.add(at)
            for name, batch in self.recording.batches.items():
                engine.deliver(name, batch.take(batch.arrival == clock))
            for correction in self.corrections.get(clock, ()):
                engine.correct(correction)
            for update in split_singly(engine.on_clock(clock)):
                said[update.query] += [(clock, *each) for each in plainly(update)]
                if isinstance(update, QueryFailure):
                    running.remove(update.query)
            if len(which) > 1 and clock in self.restored:
                engine = restore_engine(save_engine(engine))
        for at in running:
            engine.remove(at)
        return said, engine

    def _added(self, engine, at, said):
        [plan] = bind_text(self.queries[at].text, self.recording.catalog)
        try:
            engine.add(at, plan)
        except (UnsupportedPlanError, StartBeforeRecordError) as why:
            said[at].append(str(why))
            return False
        return True

    def check(self, tidy_every, judged=None):
        """AssertionError with the first difference between the updates of the queries together and of each alone."""
        found = self.difference(tidy_every, judged)
        assert found is None, found

    def difference(self, tidy_every, judged=None):
        """The first difference between the updates of a query among the others and alone without pruning; None for none.

        `judged` has the positions of the queries to compare.
        """
        places = range(len(self.queries))
        together, engine = self.run(places, tidy_every)
        assert is_empty(engine)
        for at in places if judged is None else judged:
            alone = self.run([at], NEVER)[0][at]
            for one, other in zip_longest(alone, together[at]):
                if one != other:
                    return f"{self.queries[at]}, tidied every {tidy_every}\nalone    {one}\ntogether {other}"
        return None


def plainly(update):
    """An update as values that compare."""
    match update:
        case TupleUpdates(tick=tick, index=index, weight=weight, rows=rows):
            tags = zip(tick.tolist(), index.tolist(), weight.tolist(), strict=True)
            return [(*tag, typed(row)) for tag, row in zip(tags, rows.to_lists(), strict=True)]
        case EpochMark(tick=tick, coverage=coverage):
            return [(tick, coverage)]
        case QueryFailure(code=code, message=message):
            return [(code, message)]
    rows = bag(update.added.to_lists()), bag(update.removed.to_lists())
    return [(update.tick, update.n, update.t, update.revision, update.coverage, *rows)]


def is_empty(engine):
    """Whether no state is left of any query."""
    kept = (engine._graph, engine._graph._uses, engine._graph._below, engine._interner._numbers, engine._interner._uses)
    return not any(map(len, kept))


# --- generated queries -------------------------------------------------------------------------------------------------


class SeveralMaker(CaseMaker):
    """Queries that have much in common: equal ones, equal windows with other SELECT lists, other windows over equal streams."""

    def inputs(self):
        self.end = self.rng.randint(12, 40)
        return {"road": self.sensed(), "hits": self.pushed(), "kinds": self.stored()}

    def window(self):
        far = self.pick("[FROM NOW-25 TO NOW SLIDE 2 SEC]", "[FROM NOW-12 TO NOW-2 SLIDE 1 SEC]")
        return far if self.chance(0.4) else super().window()

    def several(self):
        """Texts, some of them equal."""
        texts = [*self.related(), *self.related(), self.query()]
        texts += self.rng.choices(texts, k=3)
        self.rng.shuffle(texts)
        return texts

    def related(self):
        """Queries over the same streams, mostly in the same windows."""
        self.taken = set()
        streams = [self.stream(1) for _ in range(self.pick(1, 1, 1, 2))]
        refs = [ref for _, of in streams for ref in of]
        windows = [self.window() for _ in streams]
        for _ in range(self.rng.randint(2, 3)):
            if self.chance(0.3):
                windows[self.rng.randrange(len(windows))] = self.window()
            source = ", ".join(f"{text} {window}" for (text, _), window in zip(streams, windows, strict=True))
            yield self.over(source, refs, alone=len(streams) == 1)

    def over(self, source, refs, alone):
        where = f" WHERE {self.predicate(refs)}" if self.chance(0.4) else ""
        if self.chance(0.5):
            text = f"SELECT {self.items(refs)[0]} FROM {source}{where}"
        else:
            groups = [self.rng.choice(refs).text] if self.chance(0.5) else []
            items = [f"{g} AS g" for g in groups] + [f"{self.aggregate(refs, alone)[0]} AS k{i}" for i in range(2)]
            text = f"SELECT {', '.join(items)} FROM {source}{where}" + "".join(f" GROUP BY {g}" for g in groups)
        if self.chance(0.4):
            text = f"{self.pick('RSTREAM', 'ISTREAM', 'DSTREAM')}({text})"
        if self.chance(0.15):
            return f"{text} SINCE {self.rng.randint(0, self.end)}"
        return text + (f" FOR {self.rng.randint(2, 9)} SEC" if self.chance(0.1) else "")


def generated(seed):
    make = SeveralMaker(seed)
    catalog = read_schema(make.schema())
    recording = read_recording(catalog, make.inputs())
    corrections = {clock: bind_text(text, catalog) for text, clock in make.statements()}
    moments = [0, *sorted(make.rng.randint(0, make.end) for _ in range(4)), NEVER]
    queries = []
    for text in make.several():
        comes, goes = sorted(make.rng.sample(moments, 2))
        try:
            bind_text(text, catalog)
        except DiagnosticError:
            continue
        queries += [Asked(text, comes, goes)] if comes < goes else []
    return Case(recording, queries, corrections)


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("shard", range(count_of(3, 20)))
def test_query_among_others_gives_updates_of_query_alone(shard, rng):
    for _ in range(count_of(2, 4)):
        seed = rng.randrange(2**32)
        what = generated(seed).difference(tidy_every=rng.choice((1, 5, NEVER)))
        assert what is None, f"case {seed}: {what}"


# --- later queries -----------------------------------------------------------------------------------------------------


def recorded(count, every="1 sec", horizon="4 sec"):
    """One site, read many times."""
    schema = f"road: sensed (site:integer, v:integer) every {every} at sites 1 late revise by {horizon}"
    catalog = read_schema(schema)
    step = catalog.find("road").interval
    return read_recording(catalog, {"road": [{"_tick": step * at, "_site": 1, "v": at % 7} for at in range(count)]})


SHORT, FAR = "[FROM NOW-2 TO NOW SLIDE 1 SEC]", "[FROM NOW-20 TO NOW SLIDE 1 SEC]"
ROWS = "[FROM NOW-2 TO NOW SLIDE 1 ROW]"
JOIN = "SELECT a.v FROM road AS a {0}, road AS b {0} WHERE a.v = b.v"
LATER = {
    "windows that reach further": [Asked(f"SELECT v FROM road {SHORT}"), Asked(f"SELECT v FROM road {FAR}", 40)],
    "joined": [Asked(JOIN.format(SHORT)), Asked(JOIN.format(FAR), 40)],
    "slices of windows in the past": [
        Asked(f"SELECT v, COUNT(*) FROM road {SHORT} GROUP BY v"),
        Asked(f"SELECT v, COUNT(*) FROM road {SHORT} GROUP BY v SINCE 20", 40),
    ],
    "a loop in the past": [
        Asked(f"SELECT v FROM road {SHORT}"),
        Asked("SELECT v FROM road FOR (t = 0; t < 40; t++) { WindowIs(road, t - 1, t); } SINCE 5", 40),
    ],
    "landmarks with one beginning": [
        Asked("SELECT SUM(v) FROM road [UNBOUNDED SLIDE 1 SEC] SINCE 20", 30),
        Asked("SELECT SUM(v) FROM road [UNBOUNDED SLIDE 1 SEC] SINCE 20", 50),
    ],
    "a stream of windows": [
        Asked(f"SELECT SUM(i.v) FROM ISTREAM(SELECT v FROM road {SHORT}) AS i {SHORT}"),
        Asked(f"SELECT SUM(i.v) FROM ISTREAM(SELECT v FROM road {SHORT}) AS i {FAR}"),
    ],
}


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("what", LATER)
def test_later_query_finds_state_that_earlier_ones_dropped(what):
    Case(recorded(61), LATER[what]).check(tidy_every=1)


def test_first_prune_keeps_tuples_that_selection_reads():
    query = Asked("SELECT MAX(v) FROM road [FROM NOW-80 TO NOW SLIDE 1 HOUR] WHERE v > -1")
    Case(recorded(100, "1 hour", "1 hour"), [query]).check(tidy_every=50)


def test_landmark_survives_start_of_equal_landmark():
    queries = [Asked("SELECT SUM(v) FROM road [UNBOUNDED SLIDE 1 HOUR] SINCE 0", comes) for comes in (0, 80 * 3600)]
    Case(recorded(100, "1 hour", "1 hour"), queries).check(tidy_every=1, judged=[0])


# --- shared operators --------------------------------------------------------------------------------------------------


def operators(texts):
    """The number of operators for some queries."""
    engine = Engine(recorded(1).catalog)
    for number, text in enumerate(texts):
        engine.add(number, bind_text(text, engine.catalog)[0])
    return len(engine._graph)


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize(
    "text",
    [
        f"SELECT v FROM road {SHORT}",
        f"ISTREAM({JOIN.format(SHORT)})",
        f"SELECT v, COUNT(*) FROM road {SHORT} WHERE v > 2 GROUP BY v",
    ],
)
def test_equal_queries_share_all_operators(text):
    assert operators([text] * 100) == operators([text])


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT v, COUNT(*) FROM road {SHORT} GROUP BY v HAVING COUNT(*) > {{}}",
        f"SELECT v FROM road {SHORT} WHERE v > {{}}",
        f"SELECT v + {{}} AS u, AVG(v) FROM road {SHORT} GROUP BY v",
        f"SELECT a.v + {{}} AS k FROM road AS a {SHORT}, road AS b {SHORT} WHERE a.v = b.v",
        f"SELECT MAX(b.v) FROM road AS a {SHORT}, road AS b {ROWS} WHERE a.v = b.v AND b.v > {{}}",
        f"SELECT LAST(v) FROM road {ROWS} WHERE v > {{}}",
        f"SELECT MEDIAN(v) FROM road {SHORT} WHERE v > {{}}",
    ],
)
def test_queries_over_equal_windows_share_all_but_output(text):
    alone = operators([text.format(0)])
    assert operators([text.format(number) for number in range(100)]) == alone + 99  # for each what it shows


def stream():
    made = Operator(0)
    made.kind = STREAM
    return made


def test_failed_operator_leaves_graph_empty():
    graph = OperatorGraph()
    with pytest.raises(ZeroDivisionError):
        graph.get("above", lambda: (graph.get("below", stream), 1 // 0))
    assert len(graph) == 0
    assert graph.get("above", lambda: graph.get("below", stream)) and len(graph) == 2
