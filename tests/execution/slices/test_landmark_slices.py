"""Landmark windows: their prefix changes no answer, whatever comes late, is corrected or is restored; it keeps state and time small."""

import numpy as np
import pytest

from acquisition.batch import Batch
from basestation.execution import thresholds
from basestation.execution.engine import Engine
from basestation.execution.slices.landmark_slices import LandmarkSlices
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import split_singly
from tests.conftest import count_of
from tests.execution.windowing.test_recall import EVERY, SCHEMA, SITES, disturbances, epochs_of, lines_of

UNBOUNDED = "[UNBOUNDED SLIDE 1 MIN]"
UNION = "(SELECT site, v FROM r WHERE v > 9 UNION ALL SELECT site, v FROM p)"
FORMS = {
    "by site": f"SELECT site, MAX(v) AS high, AVG(v) AS a FROM r {UNBOUNDED} GROUP BY site",
    "all": f"SELECT MIN(v) AS low, SUM(v) AS a, COUNT(*) AS n FROM r {UNBOUNDED}",
    "filtered": f"SELECT v, COUNT(*) AS n FROM r {UNBOUNDED} WHERE v > 30 GROUP BY v",
    "first and last": f"SELECT site, FIRST(v) AS a, LAST(v) AS b FROM p {UNBOUNDED} GROUP BY site",
    "union": f"SELECT site, VARIANCE(v) AS d, MAX(v) AS high FROM {UNION} {UNBOUNDED} GROUP BY site",
    "insertions": f"ISTREAM(SELECT site, MAX(v) AS high FROM r {UNBOUNDED} GROUP BY site)",
    "loop": "SELECT MAX(v) AS high FROM r FOR (t = ST; t >= ST; t += 60) { WindowIs(r, ST, t); }",
    "loop that lags": "SELECT site, MIN(v) AS low FROM r GROUP BY site FOR (t = ST; t < 900; t += 40) { WindowIs(r, ST - 30, t - 70); }",
    "loop that ends": "SELECT SUM(v) AS a FROM p FOR (t = ST; t < ST + 400; t += 30) { WindowIs(p, ST, t); }",
    "backward loop": "SELECT SUM(v) AS a FROM r FOR (t = 600; t > ST; t -= 60) { WindowIs(r, ST, t); }",
}


@pytest.fixture
def small_prefixes(monkeypatch):
    monkeypatch.setattr(thresholds, "PREFIX_FACTOR", 0)
    monkeypatch.setattr(thresholds, "OPEN_SLICES", 1)
    monkeypatch.setattr(thresholds, "UNFOLDED_SLICES", 3)


@pytest.fixture
def unfolded(monkeypatch):
    """The spans that were folded again."""
    found, unfold = [], LandmarkSlices._unfold

    def noting(self):
        if self._unfolded_from is not None:
            found.append((self._unfolded_from, self._kept_from))
        unfold(self)

    monkeypatch.setattr(LandmarkSlices, "_unfold", noting)
    return found


def prefixes(engine):
    """The landmark windows of an engine that have a prefix."""
    stores = [each for each in engine._graph._operators.values() if isinstance(each, LandmarkSlices)]
    return [each for each in stores if each._unfolded_from is not None]


def answers_of(rng_state, rng, epochs, late="", restored=False, every=1, **how):
    """All updates of the queries, which begin one after another, under late rows and corrections."""
    rng.setstate(rng_state)
    held, corrections = disturbances(rng, epochs)
    catalog = read_schema(SCHEMA.format(late=late), tick_ms=1_000)
    engine, waiting, updates = Engine(catalog, **how), list(enumerate(FORMS.values())), []
    away = {(name, epoch, row): at for at, rows in held.items() for epoch, row, name in rows}
    most = 0
    for epoch in range(epochs):
        clock = epoch * EVERY + 5
        for number, text in waiting[2 * epoch : 2 * epoch + 2]:
            engine.add(number, bind_text(text, catalog)[0])
        for name, batch in epochs_of(epoch, 1):
            engine.deliver(name, batch.take(np.array([(name, epoch, row) not in away for row in range(SITES)])))
        for (name, earlier, row), at in away.items():
            if at == epoch:
                batch = dict(epochs_of(earlier, 1))[name].take(np.array([row]))
                engine.deliver(name, Batch(batch.tick, batch.site, np.array([clock]), batch.weight, batch.columns))
        for text in corrections.get(epoch, ()):
            engine.correct(bind_text(text, catalog)[0])
        if epoch % every and epoch < epochs - 1:
            continue  # several clock ticks are one step
        updates += engine.on_clock(clock)
        most = max(most, len(prefixes(engine)))
        if restored and epoch % 7 == 0:
            engine = restore_engine(save_engine(engine))
    lines = [line for update in split_singly(updates) for line in lines_of(update)]
    return sorted(lines, key=lambda line: line[0]), most


@pytest.mark.promise("late-readings")
@pytest.mark.parametrize("seed", range(count_of(2, 8, 40)))
@pytest.mark.parametrize("late", ["", "late revise by 4 min", "late append", "late drop"])
def test_prefix_changes_no_answer(late, seed, rng, small_prefixes, unfolded):
    state, epochs = rng.getstate(), count_of(36, 60)
    every = rng.choice([1, 1, 3])
    seldom, none = answers_of(state, rng, epochs, late, every=every, tidy_every=10_000)
    assert none == 0 and not unfolded
    for how in ({"tidy_every": 1}, {"tidy_every": 2, "restored": True}):
        often, most = answers_of(state, rng, epochs, late, every=every, **how)
        assert often == seldom
        assert most > 3 or late in ("late append", "late drop")  # there all slices are final at once
    assert late or unfolded


def engine_of(texts, late="", **how):
    catalog = read_schema(SCHEMA.format(late=late), tick_ms=1_000)
    engine = Engine(catalog, **how)
    for number, text in enumerate(texts, 1):
        engine.add(number, bind_text(text, catalog)[0])
    return engine


def run(engine, first, count):
    """The lines of some epochs."""
    updates = []
    for epoch in range(first, first + count):
        for name, batch in epochs_of(epoch, 1):
            engine.deliver(name, batch)
        updates += engine.on_clock(epoch * EVERY + 5)
    return [line for update in split_singly(updates) for line in lines_of(update)]


def correct(engine, text, clock):
    """The lines of a correction."""
    catalog = read_schema(SCHEMA.format(late=""), tick_ms=1_000)
    engine.correct(bind_text(text, catalog)[0])
    return [line for update in split_singly(engine.on_clock(clock)) for line in lines_of(update)]


@pytest.mark.promise("bounded-memory")
@pytest.mark.parametrize("form", ["by site", "all", "loop", "first and last"])
def test_landmark_state_does_not_grow_with_the_horizon(form):
    own = []
    for late in ("late revise by 10 min", "late revise by 1 day"):
        engine = engine_of([FORMS[form]], late, tidy_every=8)
        run(engine, 0, 400)
        saved = len(save_engine(engine))
        engine.remove(1)
        own.append(saved - len(save_engine(engine)))
    assert 0 < own[1] < 1.5 * own[0]


@pytest.mark.promise("bounded-memory")
@pytest.mark.parametrize("form", ["by site", "loop"])
def test_window_since_a_landmark_merges_as_few_cells_after_days(form, monkeypatch):
    merged, windows = [], LandmarkSlices._make_windows

    def noting(self, left, right):
        merged.append(len(self))
        return windows(self, left, right)

    monkeypatch.setattr(LandmarkSlices, "_make_windows", noting)
    engine = engine_of([FORMS[form]], tidy_every=8)
    for first in range(0, 800, 100):
        run(engine, first, 100)
    assert len(merged) >= 399
    assert max(merged[-50:]) <= max(merged[:50])


def test_late_reading_in_the_open_slices_reads_no_log(unfolded):
    engine = engine_of([FORMS["by site"]], tidy_every=4)
    run(engine, 0, 100)
    assert prefixes(engine)
    revised = correct(engine, f"REVISE r SET v = 99 WHERE tick = {96 * EVERY}", 99 * EVERY + 6)
    assert revised and not unfolded
    assert correct(engine, f"REVISE r SET v = 99 WHERE tick = {20 * EVERY}", 99 * EVERY + 7)
    assert len(unfolded) == 1


def test_prefix_is_begun_again_once_no_revision_reached_into_it():
    engine = engine_of([FORMS["loop"]], tidy_every=4)
    run(engine, 0, 100)
    correct(engine, f"REVISE r SET v = 99 WHERE tick = {20 * EVERY}", 99 * EVERY + 6)
    assert not prefixes(engine)
    run(engine, 100, 8)
    assert prefixes(engine)


def test_prefix_without_states_that_ended_with_a_query():
    """Two queries share slices; with one of them some of their states end."""
    texts = [FORMS["by site"], f"SELECT site, SUM(v) AS a, MIN(v) AS low FROM r {UNBOUNDED} GROUP BY site"]
    answers = []
    for every in (10_000, 1):
        engine = engine_of(texts, "late revise by 20 min", tidy_every=every)
        lines = run(engine, 0, 90)
        engine.remove(1)
        lines += run(engine, 90, 30)
        lines += correct(engine, f"REVISE r SET v = 99 WHERE tick = {85 * EVERY}", 119 * EVERY + 6)
        answers.append(lines)
    assert answers[0] == answers[1]


def test_groups_are_renumbered_in_the_prefix_too(monkeypatch, small_prefixes, unfolded):
    """Values are deleted as soon as they come, at last so many that groups are renumbered; then a revision asks for what is final."""
    monkeypatch.setattr(thresholds, "MATRIX_SLACK", 0)
    answers = []
    for every in (10_000, 1):
        engine = engine_of(
            [f"SELECT v, COUNT(*) AS n FROM p {UNBOUNDED} GROUP BY v"], "late revise by 5 min", tidy_every=every
        )
        lines = []
        for epoch in range(60):
            v = {0: np.arange(40), 10: np.append(np.arange(1_000, 1_030), 2_000), 50: np.arange(1_000, 1_200)}.get(
                epoch, np.array([39, 1])
            )
            tick = np.full(len(v), epoch * EVERY)
            engine.deliver("p", Batch(tick, 0 * tick, tick + 5, 0 * tick + 1, {"site": 0 * tick, "v": v}))
            lines += [line for update in split_singly(engine.on_clock(epoch * EVERY + 5)) for line in lines_of(update)]
            if epoch in (10, 50):
                lines += correct(engine, "DELETE FROM p WHERE v >= 1000 AND v < 2000", epoch * EVERY + 6)
        lines += correct(engine, f"REVISE p SET v = 2 WHERE tick = {53 * EVERY}", 59 * EVERY + 6)
        answers.append(lines)
    assert unfolded
    assert answers[0] == answers[1]


def test_prefix_that_is_final_as_a_whole_is_no_prefix(small_prefixes):
    """The clock jumps far beyond the horizon; readings go on after that."""
    answers = []
    for every in (10_000, 1):
        engine = engine_of([FORMS["by site"], FORMS["loop"]], "late revise by 5 min", tidy_every=every)
        lines = run(engine, 0, 40)
        before = len(prefixes(engine))
        lines += [line for update in split_singly(engine.on_clock(200 * EVERY)) for line in lines_of(update)]
        lines += run(engine, 201, 40)
        lines += correct(engine, f"REVISE r SET v = 99 WHERE tick = {236 * EVERY}", 240 * EVERY + 6)
        answers.append(sorted(lines, key=lambda line: line[0]))
        assert before == (2 if every == 1 else 0)
    assert answers[0] == answers[1]


SINCE = (
    "SELECT SUM(v) + {} AS a, COUNT(*) AS n FROM r FOR (t = ST; t >= ST; t += 60) {{ WindowIs(r, ST, t); }} SINCE 600",
    "RSTREAM(SELECT SUM(v) + {} AS a, COUNT(*) AS n FROM r [UNBOUNDED SLIDE 1 MIN]) SINCE 600",
)


@pytest.mark.parametrize("text", SINCE)
def test_second_query_of_a_tick_reads_pruned_slices(text):
    """A submission with SINCE prunes before its query begins: the prefix that was made for the first one has to go."""
    catalog = read_schema(SCHEMA.format(late=""), tick_ms=1_000)
    engine = Engine(catalog, live=True)
    engine.add(9, bind_text("SELECT COUNT(*) AS n FROM r [FROM NOW-5 TO NOW SLIDE 1 MIN]", catalog)[0])
    found = {1: [], 2: []}
    for epoch in range(124):
        if epoch == 120:
            for number in found:
                engine.prune()
                engine.add(number, bind_text(text.format(number), catalog)[0])
        for name, batch in epochs_of(epoch, 1):
            engine.deliver(name, batch)
        for update in split_singly(engine.on_clock(epoch * EVERY + 5)):
            rows = getattr(update, "added", getattr(update, "rows", None))
            if update.query in found and rows is not None:
                found[update.query] += rows.to_lists()
    assert len(found[1]) > 40 and all(count for _, count in found[1])
    assert found[2] == [(total + 1, count) for total, count in found[1]]
