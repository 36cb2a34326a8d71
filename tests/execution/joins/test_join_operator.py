"""Joins by every plan, changed after every step; and differences of windows against differences of whole products.

The reference joins whole windows and takes differences of products: it runs when the state modules are left out.
"""

import numpy as np
import pytest

from acquisition.batch import Batch
from basestation.algebra.vector import Vector
from basestation.execution import operator_builder
from basestation.execution.engine import Engine
from basestation.execution.joins.join_plan import InvalidJoinPlanError, enumerate_join_plans, make_default_plan
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import EpochMark, TupleUpdates, split_singly
from tests.agreement.compare import agree
from tests.oracles.generate import case

CATALOG = read_schema(
    "\n".join(
        f"{name}: pushed (k:integer, v:integer, f:float) wait 1 sec late {late}"
        for name, late in [("a", "revise by 6 sec"), ("b", "append"), ("c", "revise by 6 sec"), ("d", "drop")]
    )
    + "\nkinds: stored (k:integer, what:string)"
)
WINDOWS = {
    "a": "a [FROM NOW-4 TO NOW SLIDE 2 SEC]", "b": "b [FROM NOW-6 TO NOW-1 SLIDE 3 SEC]",
    "c": "c [FROM NOW-3 TO NOW SLIDE 1 SEC]", "d": "d [FROM NOW-5 TO NOW SLIDE 4 SEC]",
}  # fmt: skip
WHERE = {
    2: "a.k = b.k AND a.v <= b.v + 2",
    3: "a.k = b.k AND b.v = c.f AND a.v <= c.v + 2",
    4: "a.k = b.k AND b.k = c.k AND c.v = d.v AND a.v + d.v < 5",
}
PAIR = "SELECT a.k, b.v AS w FROM a [FROM NOW-4 TO NOW SLIDE 1 SEC], b [FROM NOW-5 TO NOW SLIDE {} SEC]"
SHAPES = [
    PAIR.format(1) + " WHERE a.k = b.k",
    PAIR.format(2) + " WHERE a.k = b.k AND a.v < b.v + 1",
    PAIR.format(1) + " WHERE a.v < b.v",
    PAIR.format(3),
    PAIR.format(9) + " WHERE a.k = b.k",
    "SELECT a.k + b.v AS s FROM a [FROM NOW-4 TO NOW SLIDE 1 SEC], b [FROM NOW-2 TO NOW SLIDE 1 SEC] WHERE a.k = b.k",
    "SELECT x.v, y.v AS w FROM a AS x [FROM NOW-4 TO NOW SLIDE 1 SEC], a AS y [FROM NOW-2 TO NOW-1 SLIDE 1 SEC] WHERE x.k = y.k",
    "SELECT a.v, b.k FROM a [FROM NOW-4 TO NOW SLIDE 1 SEC], b [FROM NOW-3 TO NOW SLIDE 2 ROWS] WHERE a.k = b.k",
    "SELECT a.v, kinds.what FROM a [FROM NOW-4 TO NOW SLIDE 1 SEC], kinds [SCAN 2 SEC] WHERE a.k = kinds.k",
    "SELECT a.f, b.f AS g, c.f AS h FROM a [FROM NOW-4 TO NOW SLIDE 1 SEC], b [FROM NOW-3 TO NOW SLIDE 1 SEC], "
    "c [UNBOUNDED SLIDE 2 SEC] WHERE a.k = b.k AND b.k = c.k FOR 30 SEC",
]


def query(inputs):
    names = "abcd"[:inputs]
    return f"SELECT {', '.join(f'{n}.v AS v_{n}' for n in names)} FROM {', '.join(WINDOWS[n] for n in names)} WHERE {WHERE[inputs]}"


def deliveries(rng, ticks, size=4):
    """For each clock tick {extent: Batch}, some of it late."""
    for clock in range(ticks):
        found = {}
        for name in "abcd":
            rows = [
                (
                    max(0, clock - (rng.random() < 0.15) * rng.randrange(8)),
                    rng.randrange(3),
                    rng.randrange(4),
                    rng.randrange(4),
                )
                for _ in range(rng.randrange(size))
            ]
            if rows:
                tick, *values = (np.array(column, np.int64) for column in zip(*rows, strict=True))
                there = np.array([rng.random() < 0.9 for _ in rows])
                columns = {"k": values[0], "v": values[1], "f": values[2] / 2.0}
                none = np.zeros(len(rows), np.int64)
                found[name] = Batch(tick, none, none + clock, none + 1, columns, {"k": there})
        yield found


def engine_with(text, **more):
    engine = Engine(CATALOG, **more)
    for tick, rows in [(0, [(0, "x"), (1, "y"), (1, "z")]), (7, [(0, "y"), (2, "x")])]:
        numbers, words = zip(*rows, strict=True)
        whats = np.empty(len(words), object)
        whats[:] = words
        engine.load("kinds", tick, {"k": Vector(np.array(numbers, np.int64)), "what": Vector(whats)})
    engine.add(1, bind_text(text, CATALOG)[0])
    return engine


def describe_update(update):
    """An update with its rows in their order."""
    if isinstance(update, TupleUpdates):
        return (
            update.tick.tolist(),
            update.index.tolist(),
            update.weight.tolist(),
            update.rows.to_lists([None] * len(update.rows.columns)),
        )
    if isinstance(update, EpochMark):
        return update
    rows = [part.to_lists([None] * len(part.columns)) for part in (update.added, update.removed)]
    return update.tick, update.n, update.revision, rows


def play(text, given, before_step=lambda engine: engine, **more):
    engine, said = engine_with(text, **more), []
    for clock, found in enumerate(given):
        engine = before_step(engine)
        for name, batch in found.items():
            engine.deliver(name, batch)
        updates = engine.finish(clock) if clock == len(given) - 1 else engine.on_clock(clock)
        said.append([describe_update(update) for update in split_singly(updates)])
    return said


def formerly(monkeypatch, text, given, **more):
    with monkeypatch.context() as patched:
        patched.setattr(operator_builder, "find_join", lambda *_: None)
        return play(text, given, **more)


# --- plans -----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("joins")
@pytest.mark.parametrize("inputs", [2, 3, 4])
def test_every_join_plan_gives_the_same_answers(inputs, rng, counts, monkeypatch):
    plans = list(enumerate_join_plans(inputs))
    for plan in plans if len(plans) < 20 else rng.sample(plans, counts(10, 300)):
        given = list(deliveries(rng, 14))
        expected = formerly(monkeypatch, query(inputs), given)

        def begin(engine, plan=plan):
            if engine.clock < 0:
                engine.change_join_plan(1, plan)
            return engine

        assert play(query(inputs), given, begin) == expected, str(plan)


@pytest.mark.promise("joins")
@pytest.mark.parametrize("inputs", [2, 3, 4])
@pytest.mark.parametrize("kind", ["{}", "ISTREAM({})", "DSTREAM({})"])
def test_join_plan_changed_after_each_step_keeps_answers(inputs, kind, rng, monkeypatch):
    """All plans there are, one after another: 1,439 of four inputs."""
    plans = list(enumerate_join_plans(inputs))
    rng.shuffle(plans)
    pending = iter(plans)
    text = kind.format(query(inputs))

    def change_join_plan(engine):
        for _ in range(60 if inputs == 4 else 1):
            plan = next(pending, None)
            if plan is None:
                return engine
            engine.change_join_plan(1, plan)
            join = engine._queries[1].joins[0]
            for place in plan.kept:
                join.source(place)  # what is kept is made, and used if this is the last of this step
        return engine

    given = list(deliveries(rng, 26))
    assert play(text, given, change_join_plan, tidy_every=3) == formerly(monkeypatch, text, given, tidy_every=3)
    assert next(pending, None) is None


def test_restored_join_continues_with_the_same_answers(rng, monkeypatch):
    plan = make_default_plan(3, [(0, 1), (1, 2)], kept=[(0, 1)])

    def again(engine):
        if engine.clock == 4:
            engine.change_join_plan(1, plan)
        engine = restore_engine(save_engine(engine))
        assert engine.clock < 4 or [join.plan for join in engine._queries[1].joins] == [plan]
        return engine

    given = list(deliveries(rng, 16))
    for text in (query(3), f"ISTREAM({query(3)})"):
        assert play(text, given, again) == formerly(monkeypatch, text, given)


def test_plan_for_another_join_is_refused():
    engine = engine_with(SHAPES[7])
    with pytest.raises(InvalidJoinPlanError):
        engine.change_join_plan(1, make_default_plan(3, []))
    now = "[FROM NOW TO NOW SLIDE 1 SEC]"
    engine = engine_with(f"SELECT a.v FROM a {now}, b [FROM NOW-1 TO NOW SLIDE 1 ROW], c {now}")
    with pytest.raises(InvalidJoinPlanError, match="input 1 has no lasting state"):
        engine.change_join_plan(1, make_default_plan(3, [], kept=[(0, 1)]))
    engine.change_join_plan(1, make_default_plan(3, [], kept=[(0, 2)]))


# --- differences -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ISTREAM", "DSTREAM"])
@pytest.mark.parametrize("shape", SHAPES)
def test_join_delta_equals_difference_of_products(shape, kind, rng, counts, monkeypatch):
    select, _, lasting = shape.partition(" FOR ")
    text = f"{kind}({select})" + (f" FOR {lasting}" if lasting else "")
    for _ in range(counts(2, 40)):
        given = list(deliveries(rng, 16, size=rng.choice([2, 4, 7])))
        assert play(text, given, tidy_every=4) == formerly(monkeypatch, text, given, tidy_every=4)


def test_join_delta_joins_no_unchanged_rows(rng, monkeypatch):
    """Where little moves, few rows are put together, whatever stands in the windows."""
    size = 60
    window = "[FROM NOW-99 TO NOW SLIDE 1 SEC]"
    text = f"ISTREAM(SELECT a.v, b.v AS w FROM a {window}, b {window} WHERE a.k = b.k)"
    engine = engine_with(text)
    join = engine._queries[1].joins[0]
    made, framed = [], join.to_contents
    monkeypatch.setattr(join, "to_contents", lambda rows, windows: made.append(len(rows)) or framed(rows, windows))
    for clock in range(size):
        for name in "ab":
            tick = np.array([clock])
            engine.deliver(
                name, Batch(tick, tick * 0, tick, tick * 0 + 1, {"k": tick * 0, "v": tick, "f": tick / 2}, {})
            )
        engine.on_clock(clock)
    assert max(made) <= 2 * size  # a product has the square of it


# --- state -----------------------------------------------------------------------------------------------------------


def test_join_state_is_bounded(rng):
    for kept in ([], [(0, 1)], [(1, 2)]):
        engine = engine_with(query(3), tidy_every=5)
        engine.change_join_plan(1, make_default_plan(3, [(0, 1), (1, 2)], kept))
        join, most = engine._queries[1].joins[0], []
        for clock, found in enumerate(deliveries(rng, 300)):
            for name, batch in found.items():
                engine.deliver(name, batch)
            engine.on_clock(clock)
            most.append(max(join.state.values()))
        assert max(most[150:]) < 3 * max(most[40:150])


def test_equal_streams_share_one_tuple_store():
    engine = engine_with(SHAPES[6])
    first, second = engine._queries[1].joins[0].inputs
    assert first.store is second.store
    window = "[FROM NOW-1 TO NOW SLIDE 1 SEC]"
    engine = engine_with(f"SELECT a.v FROM a {window}, (SELECT a.v FROM a WHERE a.k > 1) AS y {window}")
    first, second = engine._queries[1].joins[0].inputs
    assert first.store is not second.store


# --- and the oracle --------------------------------------------------------------------------------------------------


def test_generated_joins_agree_with_the_oracle(rng, counts):
    wanted, agreed = counts(20, 400), 0
    while agreed < wanted:
        made = case(rng.randrange(2**32))
        if "join" not in made.traits:
            continue
        found = agree(made.schema, made.inputs, made.queries, seconds=20)
        assert found.verdict != "disagree", found.report
        agreed += found.verdict == "agree"


def test_loop_windows_going_back_are_joined():
    """All that a loop backwards makes is due at once, and what is in several windows is joined once."""
    schema = "a: pushed (k:integer, v:integer)\nb: pushed (k:integer, w:integer)"
    inputs = {
        name: [{"_arrival": t, "k": t % 2, value: t} for t in range(14)] for name, value in (("a", "v"), ("b", "w"))
    }
    windows = "WindowIs(a, t - 4, t); WindowIs(b, t - 6, t - 1);"
    text = f"SELECT v, w FROM a, b WHERE a.k = b.k FOR (t = 12; t > 2; t--) {{ {windows} }}"
    outcome = agree(schema, inputs, [text])
    assert outcome.verdict == "agree" and outcome.non_empty, outcome.report
