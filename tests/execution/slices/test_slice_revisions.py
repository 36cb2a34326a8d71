"""Late readings and corrections in a step of many clock ticks: answered as if each clock tick had been a step."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import MonkeyPatch

from acquisition.batch import Batch
from basestation.execution import thresholds
from basestation.execution.engine import Engine
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import EpochMark, PunctuationUpdate, TupleUpdates, WindowUpdate, split_singly

QUERIES = (
    "SELECT site, MIN(v) AS low, AVG(v) AS mean, COUNT(*) AS n FROM p [FROM NOW-6 TO NOW SLIDE 2 SEC] GROUP BY site",
    "SELECT COUNT(*) AS n FROM p [FROM NOW-6 TO NOW SLIDE 2 SEC] GROUP BY site",  # rows of different groups are alike
    "SELECT SUM(v) AS s, MAX(v) AS high FROM p [FROM NOW-3 TO NOW-1 SLIDE 3 SEC]",
    "SELECT site, COUNT(v) AS n FROM p [FROM NOW-9 TO NOW SLIDE 1 SEC] WHERE v > 2 GROUP BY site HAVING COUNT(v) > 1",
    "SELECT v, MAX(site) AS last FROM p [FROM NOW-4 TO NOW SLIDE 5 SEC] GROUP BY v",  # a correction changes the group
    "SELECT ROUND(AVG(v)) AS about, site FROM p [UNBOUNDED SLIDE 4 SEC] GROUP BY site",
    "SELECT site, FIRST(v) AS f, LAST(v) AS l FROM p [FROM NOW-5 TO NOW SLIDE 2 SEC] GROUP BY site",
    "SELECT a.n, COUNT(*) AS c FROM (SELECT v + site AS n FROM p WHERE site < 3) AS a [FROM NOW-5 TO NOW SLIDE 2 SEC] GROUP BY a.n",
    "ISTREAM(SELECT site, COUNT(*) AS n FROM p [FROM NOW-6 TO NOW SLIDE 2 SEC] GROUP BY site)",  # clock tick by clock tick
)
END, LATER = 40, 9  # the last clock tick; the number of a query that comes later
EVERY, PLAIN = range(END + 1), "SELECT v FROM p"
"""Beside a plain stream each clock tick in which something is amended has a step of its own: the way without versions."""


@dataclass(frozen=True)
class Given:
    """A tuple that is delivered in a clock tick: `back` ticks old, or of a tuple that came before (`index`), which it replaces
    or takes back."""

    clock: int
    back: int
    site: int
    v: int | None
    index: int
    weight: int


def coming():
    plain = st.builds(Given, st.integers(0, END), st.integers(-2, 3), st.integers(1, 3), st.integers(0, 5) | st.none(),
                      st.just(0), st.just(1))  # fmt: skip
    late = st.builds(Given, st.integers(5, END), st.integers(3, 20), st.integers(1, 3), st.integers(0, 5),
                     st.just(0), st.just(1))  # fmt: skip
    amends = st.builds(Given, st.integers(1, END), st.just(0), st.integers(1, 3), st.integers(0, 5) | st.none(),
                       st.integers(1, 15), st.sampled_from([1, 1, -1]))  # fmt: skip
    return st.lists(plain | late | amends, min_size=1, max_size=40)


def batch(came):
    came = sorted(came, key=lambda each: each.clock)
    column = lambda name: np.array([getattr(each, name) or 0 for each in came], np.int64)  # noqa: E731
    clock = column("clock")
    there = np.array([each.v is not None for each in came], bool)
    columns = {"site": column("site"), "v": column("v")}
    return Batch(
        clock - column("back"), column("site"), clock, column("weight"), columns, {"v": there}, column("index")
    )


def collect_updates(schema, texts, came, ends, marked=(), later=None, moves=False):
    """Each update by itself, query by query, when the clock ticks up to each of `ends` end together; and the ledger.

    `later` is (clock tick, text) of a query that comes behind one of these; an engine that `moves` is saved and restored there.
    """
    catalog = read_schema(schema)
    engine, updates, begin = Engine(catalog, tidy_every=7), [], -1
    asked = [*texts, PLAIN] if ends is EVERY else texts
    for number, text in enumerate(asked, 1):
        engine.add(number, bind_text(text, catalog)[0])
    whole = replace(batch(came), marks=tuple((at, at) for at in marked if at < len(came)))
    for end in ends:
        first, behind = np.searchsorted(whole.arrival, [begin, end], "right").tolist()
        engine.deliver("p", whole.take(slice(first, behind)))
        updates += split_singly(engine.on_clock(end) if end < ends[-1] else engine.finish(end))
        begin = end
        if later is not None and later[0] == end:
            engine.add(LATER, bind_text(later[1], catalog)[0])
        engine = restore_engine(save_engine(engine)) if moves else engine
    found = [
        (each.query, *line)
        for each in updates
        for line in _lines(each)
        if each.query in (*range(len(texts) + 1), LATER)
    ]
    return sorted(found, key=lambda each: each[0]), {what: of for what, of in engine.ledger()["p"].items() if of}


def _lines(update):
    match update:
        case WindowUpdate():
            return [(update.tick, update.n, update.revision, update.removed.to_lists(), update.added.to_lists())]
        case TupleUpdates():
            tags = update.tick.tolist(), update.index.tolist(), update.weight.tolist()
            return list(zip(*tags, update.rows.to_lists(), strict=True))
        case PunctuationUpdate():
            return [(update.tick, update.value)]
        case EpochMark():
            return [(update.tick,)]
    raise TypeError(f"what is {update!r}?")


LATE = st.sampled_from(
    ["wait 0 sec late revise by 12 sec", "wait 3 sec late revise", "late drop", "wait 2 sec late append"]
)
CUTS = st.sets(st.integers(0, END - 1), max_size=4)
ANOTHER = (
    "SELECT MAX(v) AS high, site FROM p [FROM NOW-6 TO NOW SLIDE 2 SEC] GROUP BY site",  # cut alike, with another aggregate
    "SELECT site, COUNT(*) AS n FROM p [FROM NOW-6 TO NOW SLIDE 2 SEC] GROUP BY site HAVING COUNT(*) > 1 SINCE 2",
)


@pytest.mark.promise("late-readings")
@given(coming(), st.lists(st.sampled_from(QUERIES), min_size=1, max_size=2, unique=True), LATE, CUTS)
def test_multi_tick_step_revises_as_single_ticks_do(came, texts, late, cuts):
    schema = f"p: pushed (site:integer, v:integer) {late}"
    assert collect_updates(schema, texts, came, [*sorted(cuts), END]) == collect_updates(schema, texts, came, EVERY)


@pytest.mark.promise("live-is-replay")
@given(coming(), st.lists(st.sampled_from(QUERIES), min_size=1, max_size=2, unique=True), LATE, st.integers(1, 9))
def test_batch_answers_as_its_portions_do(came, texts, late, portion):
    schema = f"p: pushed (site:integer, v:integer) {late}"
    with MonkeyPatch.context() as patch:
        patch.setattr(thresholds, "MAX_STEP_TUPLES", portion)
        portions = collect_updates(schema, texts, came, [END])
    assert portions == collect_updates(schema, texts, came, [END])


@pytest.mark.promise("late-readings")
@given(coming(), st.sampled_from(QUERIES[:-1]), CUTS, st.sets(st.integers(0, 20), max_size=3))
def test_punctuation_keeps_its_place_among_revisions(came, text, cuts, marked):
    schema = "p: pushed (site:integer, v:integer) wait 3 sec late revise"
    together = collect_updates(schema, [text], came, [*sorted(cuts), END], marked)
    assert together == collect_updates(schema, [text], came, EVERY, marked)


@pytest.mark.promise("late-readings")
@given(coming(), st.sampled_from(QUERIES[:2]), st.sampled_from(ANOTHER), CUTS, st.integers(0, END - 1))
def test_later_query_and_restored_engine_revise_per_tick(came, text, other, cuts, comes):
    schema = "p: pushed (site:integer, v:integer) wait 1 sec late revise by 30 sec"
    together = collect_updates(schema, [text], came, [*sorted({*cuts, comes}), END], later=(comes, other), moves=True)
    assert together == collect_updates(schema, [text], came, EVERY, later=(comes, other))


# Site 3 comes into the first place of the window and has a row like that of site 2, whose group is not revised:
#   before  (5) site 1   (1) site 2
#   after   (1) site 3   (4) site 1   (1) site 2         the (1) of site 3 is the first equal one, so (4) (1) are left
TO_SITE_3 = [*[Given(0, 0, 1, 0, 0, 1)] * 5, Given(0, 0, 2, 0, 0, 1), Given(2, 0, 3, None, 1, 1)]


@pytest.mark.promise("late-readings")
@pytest.mark.parametrize(
    "beside", [[], [ANOTHER[0]]]
)  # a query beside it shows the groups, so its output compares the rows
def test_rows_of_a_revision_stand_in_order_of_the_window(beside):
    schema = "p: pushed (site:integer, v:integer) wait 1 sec late revise by 30 sec"
    together, _ = collect_updates(schema, [QUERIES[1], *beside], TO_SITE_3, [1, END])
    assert together == collect_updates(schema, [QUERIES[1], *beside], TO_SITE_3, EVERY)[0]
    assert (1, 0, 1, 1, [(5,)], [(4,), (1,)]) in together


def test_correction_names_index_given_before_its_clock_tick():
    schema = "p: pushed (site:integer, v:integer) late revise by 12 sec"
    came = [Given(5, 0, 1, 1, 0, 1), Given(5, 0, 1, 4, 1, 1), Given(7, 0, 1, 3, 1, 1)]
    together = collect_updates(schema, QUERIES[:1], came, [END])
    assert together == collect_updates(schema, QUERIES[:1], came, EVERY)
    assert together[1]["rejected: no such tuple"] == 1


def test_later_query_beyond_horizon_sees_the_last_values():
    schema = "p: pushed (site:integer, v:integer) late revise by 12 sec"
    came = [Given(5, 0, 1, 1, 0, 1), Given(16, 0, 1, 2, 1, 1), Given(20, 0, 1, 3, 1, 1)]
    together = collect_updates(schema, QUERIES[:1], came, [30, END], later=(30, ANOTHER[0] + " SINCE 2"))
    assert together == collect_updates(schema, QUERIES[:1], came, EVERY, later=(30, ANOTHER[0] + " SINCE 2"))
    assert (LATER, 6, 1, 0, [], [(2, 1)]) in together[0]


def test_punctuation_follows_revisions_of_its_clock_tick():
    schema = "p: pushed (site:integer, v:integer) wait 3 sec late revise"
    came = [Given(5, 0, 1, 1, 0, 1), Given(10, 0, 1, 2, 0, 1), Given(13, 0, 1, 4, 1, 1)]
    together, _ = collect_updates(schema, QUERIES[:1], came, [10, END], marked=[1])
    assert together == collect_updates(schema, QUERIES[:1], came, EVERY, marked=[1])[0]
    assert together.index((1, 10, 1)) == 1 + max(at for at, line in enumerate(together) if line[3:4] == (1,))


def test_empty_window_between_slices_has_a_row():
    schema = "p: pushed (site:integer, v:integer) late revise by 12 sec"
    came = [Given(15, -2, 1, 4, 0, 1), Given(21, 10, 1, 1, 0, 1), Given(23, 11, 1, 3, 0, 1)]
    together, _ = collect_updates(schema, QUERIES[2:3], came, [5, END])
    assert together == collect_updates(schema, QUERIES[2:3], came, EVERY)[0]
    assert (1, 15, 1, 1, [(None, None)], [(3, 3)]) in together
