"""Coalescing of small batches changes no update, whatever is queried and whenever.

The expected updates are those of an engine in which no batch waits: every clock tick is a step there.
"""

import numpy as np
import pytest

from acquisition.batch import Batch
from basestation.algebra.vector import Vector
from basestation.execution.columns.next_due import DUE_NOW
from basestation.execution.ingest import intake_set
from basestation.execution.ingest.coalesce import CoalescingBuffer
from basestation.execution.output import output_group
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.updates.update import split_singly
from tests.execution.joins.test_join_operator import CATALOG, deliveries, engine_with
from tests.execution.test_sharing import plainly

WINDOWS = [
    "SELECT k, COUNT(*) AS n, AVG(f) AS mean FROM a [FROM NOW-6 TO NOW SLIDE 4 SEC] GROUP BY k",
    "SELECT v FROM a [FROM NOW-3 TO NOW-1 SLIDE 5 SEC] WHERE k > 0",
    "SELECT a.k, b.v AS w FROM a [FROM NOW-4 TO NOW SLIDE 4 SEC], b [FROM NOW-5 TO NOW SLIDE 6 SEC] WHERE a.k = b.k",
    "SELECT a.v, kinds.what FROM a [FROM NOW-4 TO NOW SLIDE 8 SEC], kinds [SCAN 6 SEC] WHERE a.k = kinds.k",
    "SELECT MAX(v) AS high FROM d [UNBOUNDED SLIDE 5 SEC] FOR 30 SEC",
    "ISTREAM(SELECT v, k FROM a [FROM NOW-5 TO NOW SLIDE 5 SEC])",
    "SELECT v FROM a [FROM NOW-4 TO NOW SLIDE 6 ROWS]",
    "ISTREAM(SELECT v FROM a [FROM NOW-8 TO NOW SLIDE 7 ROWS] WHERE v > 0)",
    "SELECT a.v, b.v AS w FROM a [FROM NOW-2 TO NOW SLIDE 8 ROWS], b [FROM NOW-5 TO NOW SLIDE 6 SEC] WHERE a.k = b.k",
    "SELECT x.v, y.v AS w FROM a [FROM NOW-2 TO NOW SLIDE 9 ROWS] x, a [FROM NOW-4 TO NOW SLIDE 4 ROWS] y WHERE x.k = y.k",
    "SELECT COUNT(*) AS n FROM RSTREAM(SELECT v FROM a [FROM NOW-3 TO NOW SLIDE 4 SEC]) [FROM NOW-9 TO NOW SLIDE 6 SEC]",
]
AT_ONCE = [
    "SELECT v FROM a WHERE v > 1",
    "SELECT i, v FROM (SELECT index AS i, v FROM a) [FROM NOW-6 TO NOW SLIDE 6 SEC]",
]


def told(text, given, meddling, every=64):
    """The updates of each clock tick, and the final counters of each operator and extent.

    `meddling` says before which clock ticks something else is done, and what.
    """
    engine, said = engine_with(text, tidy_every=every), []
    for clock, found in enumerate(given):
        what, number = meddling.get(clock), 100 + clock
        if what == "save":
            engine = restore_engine(save_engine(engine))
        elif what == "add":
            engine.add(number, bind_text(WINDOWS[clock % len(WINDOWS)], CATALOG)[0])
        elif what == "come and go":
            engine.add(number, bind_text(AT_ONCE[clock % 2], CATALOG)[0])
            engine.remove(number)
        elif what == "load":
            engine.load(
                "kinds", clock - 1, {"k": Vector(np.array([clock % 3])), "what": Vector(np.array(["new"], object))}
            )
        elif what == "count":
            said.append((engine.ledger(), _counted(engine)))
        for name, batch in found.items():
            engine.deliver(name, batch)
        updates = engine.finish(clock) if clock == len(given) - 1 else engine.on_clock(clock)
        said.append([(each.query, *plainly(each)) for each in split_singly(updates)])
    return said, engine.ledger(), _counted(engine)


def _counted(engine):
    return [(each.operator, each.counts.rows_out) for each in engine.counts(1)]


@pytest.mark.promise("live-is-replay")
@pytest.mark.parametrize("text", WINDOWS + AT_ONCE)
def test_coalescing_changes_no_update_and_no_counter(text, rng, counts, monkeypatch):
    for _ in range(counts(2, 20)):
        given = [found if rng.random() < 0.7 else {} for found in deliveries(rng, 40)]
        if rng.random() < 0.5:  # nothing is late
            given = [
                {n: Batch(b.arrival, b.site, b.arrival, b.weight, b.columns, b.valid) for n, b in f.items()}
                for f in given
            ]
        ways = ["save", "add", "come and go", "load", "count"]
        meddling = {rng.randrange(1, 40): rng.choice(ways) for _ in range(rng.randrange(6))}
        every = rng.choice([1, 3, 64])
        with monkeypatch.context() as patched:
            patched.setattr(output_group.OutputGroup, "next_due", DUE_NOW)
            patched.setattr(intake_set, "can_wait", lambda *_: False)
            expected = told(text, given, meddling, every)
        assert told(text, given, meddling, every) == expected, meddling


def steps(text, ticks, replaces=None):
    """The clock ticks of the steps that an engine takes if a tuple comes in each of `ticks` clock ticks."""
    engine, one, taken = engine_with(text), np.ones(1, np.int64), []
    step = engine._graph.step
    engine._graph.step = lambda clock: taken.append(clock) or step(clock)
    for clock in range(ticks):
        columns = {"k": one, "v": one, "f": one / 2}
        engine.deliver("a", Batch(clock * one, one, clock * one, one, columns, replaces=replaces))
        engine.on_clock(clock)
    return taken


@pytest.mark.promise("live-is-replay")
@pytest.mark.parametrize("text", WINDOWS)
def test_quiet_clock_ticks_take_no_step(text):
    assert len(steps(text, 60)) <= 45


def test_batch_whose_replaces_are_zero_waits_like_plain_one():
    assert (
        steps(WINDOWS[0], 60, np.zeros(1, np.int64))
        == steps(WINDOWS[0], 60)
        != steps(WINDOWS[0], 60, np.ones(1, np.int64))
    )


@pytest.mark.promise("live-is-replay")
def test_plain_stream_takes_a_step_per_clock_tick():
    assert steps(AT_ONCE[0], 20) == list(range(20))


def test_buffer_is_full_before_a_step_gets_too_large():
    one = np.ones(1, np.int64)
    small, aside = Batch(one, one, one, one, {}), CoalescingBuffer()
    for _ in range(10_000):
        aside.put({"a": [small]})
        if aside.full:
            break
    [together] = aside.flush()["a"]
    assert len(together) < 1_000 and not aside and not aside.full
