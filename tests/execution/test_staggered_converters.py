"""Equal converters that begin at different ticks share their windows, and each gives the tuples and indexes that it gives alone."""

from collections import defaultdict
from unittest.mock import patch

import numpy as np
import pytest

from basestation.execution import operator_builder
from basestation.execution.columns.index_offsets import IndexOffsets
from basestation.execution.description import count_bytes
from basestation.execution.engine import Engine
from basestation.execution.plan_checks import begins_with_query
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.updates.update import EpochMark, PunctuationUpdate, TupleUpdates, split_singly
from tests.conftest import count_of
from tests.execution.test_sharing import FAR, JOIN, NEVER, ROWS, SHORT, Asked, Case, recorded
from tests.execution.test_staggered_queries import CATALOG, ApartMaker, bind_columns, generated, slow

MANY = 50


class ConverterMaker(ApartMaker):
    """Converters over related windows, of which each begins and ends at any tick."""

    def over(self, source, refs, alone):
        text = super().over(source, refs, alone)
        if not text.startswith("SELECT") or "SINCE" in text:
            return text
        query, *end = text.partition(" FOR ")
        text = f"{self.pick('RSTREAM', 'ISTREAM', 'ISTREAM', 'DSTREAM')}({query}){''.join(end)}"
        return text + (" DELIVER WITHIN 2 SEC" if not any(end) and self.chance(0.15) else "")


class OwnOperators(Case):
    """A case in which a query that runs alone begins its operators, as those do that cannot share any."""

    def run(self, which, tidy_every):
        with patch.object(operator_builder, "begins_with_query", lambda *_: len(which) == 1 or begins_with_query(*_)):
            return super().run(which, tidy_every)


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("shard", range(count_of(2, 40)))
def test_converter_that_begins_apart_gives_updates_of_it_alone(shard, rng):
    for _ in range(count_of(2, 4)):
        seed = rng.randrange(2**32)
        made = generated(seed, ConverterMaker)
        case = OwnOperators(made.recording, made.queries, made.corrections, frozenset(rng.sample(range(40), 3)))
        what = case.difference(tidy_every=rng.choice((1, 5, NEVER)))
        assert what is None, f"case {seed}: {what}"


# --- shared work -------------------------------------------------------------------------------------------------------


def rows_read(text, count):
    """How many rows all operators read in 40 ticks, after queries began one tick apart. Each tick has a late reading."""
    engine, found = Engine(CATALOG), []
    for clock in range(120):
        if clock < count:
            engine.add(clock, bind_text(text, CATALOG)[0])
        engine.deliver("slow", slow([(clock, clock, clock % 7), (max(0, clock - 8), clock, clock % 3)]))
        engine.on_clock(clock)
        if clock in (79, 119):
            found.append(sum(operator.counts.rows_in for operator in engine._graph._operators.values()))
    return found[1] - found[0]


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("how", ["RSTREAM", "DSTREAM", "ISTREAM"])
def test_converters_that_begin_apart_do_the_work_of_one(how):
    text = f"{how}(SELECT v FROM slow [FROM NOW-3 TO NOW SLIDE 1 SEC])"
    assert rows_read(text, MANY) == rows_read(text, 1) > 0


# --- first windows -----------------------------------------------------------------------------------------------------


def tuples_of(text, added, deliveries, until, after=lambda engine, clock: engine):
    """By query, the tuples (clock tick, tick, index, weight, row) of equal queries, each added in a clock tick of `added`."""
    engine, found = Engine(CATALOG), defaultdict(list)
    for clock in range(until):
        if clock in added:
            engine.add(clock, bind_text(text, CATALOG)[0])
        if clock in deliveries:
            engine.deliver("slow", slow(deliveries[clock]))
        for update in split_singly(engine.on_clock(clock)):
            if isinstance(update, TupleUpdates):
                tags = zip(update.tick.tolist(), update.index.tolist(), update.weight.tolist(), strict=True)
                found[update.query] += [
                    (clock, *tag, *row) for tag, row in zip(tags, update.rows.to_lists(), strict=True)
                ]
        engine = after(engine, clock)
    return found


LATE = {0: [(0, 0, 7)], 2: [(2, 2, 8)], 4: [(4, 4, 9)], 5: [(5, 5, 9)], 9: [(4, 9, 1)], 12: [(3, 12, 2)]}
"""By clock tick, rows (tick, arrival, v) of `slow`, whose watermark is four ticks behind the clock."""


def test_istream_gives_a_later_query_all_of_its_first_window():
    """The first window of the second query, at tick 4, is revised at clock ticks 9 and 12.

    tick       0    1    2    3    4    5
    v          7         8   (2)   9    9
                                  (1)
    """
    found = tuples_of("ISTREAM(SELECT v FROM slow [FROM NOW-1 TO NOW SLIDE 2 SEC])", (0, 3), LATE, 20)
    assert found[0] == [
        (4, 0, 1, 1, 7),
        (6, 2, 2, 1, 8),
        (8, 4, 3, 1, 9),
        (13, 4, 4, 1, 1),
        (16, 4, 5, 1, 2),
    ]
    assert found[3] == [(8, 4, 1, 1, 9), (13, 4, 2, 1, 1), (16, 4, 3, 1, 2)]


def test_dstream_gives_a_later_query_nothing_of_its_first_window():
    found = tuples_of("DSTREAM(SELECT v FROM slow [FROM NOW TO NOW SLIDE 1 SEC])", (0, 5), LATE, 20)
    assert found[0] == [(5, 1, 1, 1, 7), (7, 3, 2, 1, 8), (9, 5, 3, 1, 1), (10, 6, 4, 1, 9), (16, 4, 5, 1, 2)]
    assert found[5] == [(10, 6, 1, 1, 9)]


def test_row_of_first_window_is_taken_back_under_its_index():
    text = "ISTREAM(SELECT MAX(v) FROM slow [FROM NOW-1 TO NOW SLIDE 1 SEC] HAVING COUNT(*) > 0)"
    deliveries = LATE | {9: [(4, 9, 11)]}
    found = tuples_of(text, (0, 3, 4), deliveries, 20)
    alone = tuples_of(text, (4,), deliveries, 20)
    assert found[4] == alone[4]
    assert [tags[1:] for tags in found[4]][:2] == [(4, 1, 1, 9), (4, 1, -1, 9)]


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("ISTREAM(SELECT v FROM {} [FROM NOW-9 TO NOW SLIDE 1 SEC])", [2, 60, 3]),
        ("RSTREAM(SELECT FIRST(v) FROM {} [FROM NOW-9 TO NOW-2 SLIDE 1 SEC])", [2]),
    ],
)
def test_later_query_of_a_union_has_the_order_that_it_has_alone(text, first):
    """A revision at clock tick 9 lets the tuple of tick 2 pass, after those of the ticks 3 and 4 had entered."""
    text = text.format("(SELECT v FROM slow WHERE v < 5 UNION ALL SELECT v FROM slow WHERE v > 50) AS u")
    deliveries = {0: [(0, 0, 1)], 2: [(2, 2, 8)], 3: [(2, 2, 60)], 4: [(4, 4, 3)]}

    def revise(engine, clock):
        if clock == 9:
            [correction] = bind_text("REVISE slow SET v = 2 WHERE v = 8", CATALOG)
            engine.correct(correction)
        return engine

    together, alone = (tuples_of(text, added, deliveries, 20, revise) for added in ((0, 8, 11), (11,)))
    assert together[11] == alone[11]
    assert [row for *_, row in alone[11]][: len(first)] == first


@pytest.mark.promise("queries-apart")
def test_first_over_a_union_is_what_it_is_alone():
    """As above, for windows."""
    union = "(SELECT v FROM slow WHERE v < 5 UNION ALL SELECT v FROM slow WHERE v > 50) AS u"
    text, found = f"SELECT FIRST(v) FROM {union} [FROM NOW-9 TO NOW SLIDE 1 SEC]", []
    for added in ((0, 11), (11,)):
        engine = Engine(CATALOG)
        for clock in range(16):
            if clock in added:
                engine.add(clock, bind_text(text, CATALOG)[0])
            if clock == 2:
                engine.deliver("slow", slow([(2, 2, 8), (2, 2, 60)]))
            if clock == 9:
                engine.correct(bind_text("REVISE slow SET v = 2 WHERE v = 8", CATALOG)[0])
            updates = [each for each in split_singly(engine.on_clock(clock)) if each.query == 11]
        found.append([row for each in updates for row in each.added.to_lists()])
    assert found == [[(2,)], [(2,)]]


def test_rows_are_taken_back_in_the_order_of_their_windows():
    """Late readings revise windows 5 to 8 at clock ticks 13 and 14, and windows 5 to 12 at 20. The row of window 9 is made at 13."""
    text = "ISTREAM(SELECT SUM(v) FROM slow [FROM NOW-3 TO NOW SLIDE 1 SEC])"
    late = {13: [(5, 13, 10)], 14: [(5, 14, 20)], 20: [(5, 20, 3), (9, 20, 4)]}
    rows = {clock: [*late.get(clock, ()), (clock, clock, 1)] for clock in range(21)}
    found = tuples_of(text, range(6), rows, 28)
    with patch.object(operator_builder, "begins_with_query", lambda *_: True):
        alone = {number: tuples_of(text, (number,), rows, 28)[number] for number in range(6)}
    assert found == alone
    assert [tags[1:] for tags in found[5] if tags[0] == 20][:2] == [(5, 3, -1, 34), (9, 2, -1, 4)]


def test_mark_that_waits_is_not_for_a_later_converter():
    engine, marks = Engine(CATALOG), []
    for clock in range(12):
        if clock in (0, 3):
            engine.add(clock, bind_text("RSTREAM(SELECT v FROM slow [FROM NOW TO NOW SLIDE 1 SEC])", CATALOG)[0])
        if clock in (2, 4):
            engine.deliver("slow", slow([(clock, clock, 1)], [(1, clock)]))
        updates = split_singly(engine.on_clock(clock))
        marks += [(update.query, update.value) for update in updates if isinstance(update, PunctuationUpdate)]
    assert sorted(marks) == [(0, 2), (0, 4), (3, 4)]


def test_restored_converter_remembers_first_windows_and_indexes():
    text = "ISTREAM(SELECT v FROM slow [FROM NOW-2 TO NOW SLIDE 1 SEC])"
    kept = tuples_of(text, (0, 2, 3), LATE, 20)
    again = tuples_of(text, (0, 2, 3), LATE, 20, lambda engine, _: restore_engine(save_engine(engine)))
    assert kept == again and all(kept[number] for number in (0, 2, 3))


def test_first_windows_go_with_the_queries_that_began_with_them():
    engine = Engine(CATALOG)
    text = "ISTREAM(SELECT v FROM slow [FROM NOW-9 TO NOW SLIDE 1 SEC])"
    for clock in range(12):
        if clock in (0, 4):
            engine.add(clock, bind_text(text, CATALOG)[0])
        engine.deliver("slow", slow([(clock, clock, clock)]))
        engine.on_clock(clock)
    held = [count_bytes(engine._queries[0].output_group._output.describe())]
    engine.remove(4)
    held.append(count_bytes(engine._queries[0].output_group._output.describe()))
    engine.remove(0)
    assert held[0] > held[1] > 0 and len(engine._graph) == 0


CASES = {
    "that ends, then one that does not": [
        Asked(f"ISTREAM(SELECT v FROM road {SHORT}) FOR 10 SEC", 3),
        Asked(f"ISTREAM(SELECT v FROM road {SHORT})", 20),
        Asked(f"ISTREAM(SELECT v FROM road {SHORT}) FOR 4 SEC", 40),
    ],
    "that begin together and end apart": [
        Asked(f"DSTREAM(SELECT v FROM road {SHORT}) FOR 10 SEC", 3),
        Asked(f"DSTREAM(SELECT v FROM road {SHORT}) FOR 20 SEC", 3),
        Asked(f"DSTREAM(SELECT v FROM road {SHORT})", 3, 30),
    ],
    "with one first window": [Asked("RSTREAM(SELECT v FROM road [FROM NOW-9 TO NOW SLIDE 10 SEC])", n) for n in range(9)],
    "of rows": [Asked(f"ISTREAM(SELECT v FROM road {ROWS})", comes) for comes in (0, 7, 7, 9)],
    "of a product": [
        Asked(f"ISTREAM(SELECT a.v FROM road AS a {SHORT}, road AS b {ROWS} WHERE a.v = b.v)", comes) for comes in (0, 9)
    ],
    "of a join": [Asked(f"DSTREAM({JOIN.format(FAR)})", comes) for comes in (0, 7, 30)],
    "above each other": [
        Asked(f"ISTREAM(SELECT v FROM RSTREAM(SELECT v FROM road {SHORT}) AS i {SHORT})", comes) for comes in (0, 9)
    ],
    "above a landmark": [
        Asked("ISTREAM(SELECT SUM(v) FROM road [UNBOUNDED SLIDE 1 SEC])", comes) for comes in (0, 9)
    ],
    "read by name of index": [
        Asked(f"SELECT index AS x, v FROM ISTREAM(SELECT v FROM road {SHORT}) AS i", comes) for comes in (0, 9)
    ],
    "in the past": [
        Asked(f"ISTREAM(SELECT v FROM road {SHORT})", 0),
        Asked(f"ISTREAM(SELECT v FROM road {SHORT}) SINCE 5", 30),
    ],
}  # fmt: skip


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("what", CASES)
def test_converters_give_updates_of_each_alone(what):
    OwnOperators(recorded(61), CASES[what]).check(tidy_every=1)


def test_converters_of_a_table_that_begin_apart_scan_at_one_grid():
    engine, found = Engine(CATALOG), defaultdict(list)
    engine.load("kinds", 0, bind_columns(v=[1, 2], name=["a", "b"]))
    for clock in range(12):
        if clock in (0, 5):
            engine.add(clock, bind_text("ISTREAM(SELECT v FROM kinds [SCAN 2 SEC])", CATALOG)[0])
        if clock == 8:
            engine.load("kinds", 8, bind_columns(v=[1, 3], name=["a", "c"]))
        for update in split_singly(engine.on_clock(clock)):
            if isinstance(update, TupleUpdates):
                rows = [value for (value,) in update.rows.to_lists()]
                found[update.query] += zip(update.tick.tolist(), update.index.tolist(), rows, strict=True)
    assert found[0] == [(0, 1, 1), (0, 2, 2), (8, 3, 3)]
    assert found[5] == [(6, 1, 1), (6, 2, 2), (8, 3, 3)]


def test_epoch_marks_begin_with_the_first_window_of_each_query():
    engine, found = Engine(CATALOG), defaultdict(list)
    for clock in range(9):
        if clock in (0, 3):
            engine.add(clock, bind_text(f"RSTREAM(SELECT v FROM road {SHORT})", CATALOG)[0])
        for update in split_singly(engine.on_clock(clock)):
            if isinstance(update, EpochMark):
                found[update.query].append(update.tick)
    assert found[0][:3] == [0, 1, 2] and found[3] == [tick for tick in found[0] if tick >= 3] != []


def test_index_offsets_are_runs():
    offsets = IndexOffsets()
    offsets.add(np.array([3, 4]), np.array([1, 2]))
    offsets.add(np.array([5]), np.array([3]))
    assert len(offsets) == 1
    offsets.add(np.array([7, 8, 10]), np.array([4, 5, 6]))
    assert offsets.of(np.array([10, 3, 8, 5, 7])).tolist() == [6, 1, 5, 3, 4] and len(offsets) == 3
