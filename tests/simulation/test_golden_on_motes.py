"""Golden queries in a simulated network, whatever runs on its motes: they say what a replay says of what was heard."""

import re
from collections import Counter
from functools import cache

import pytest

from basestation.algebra.node import walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.pushdown_policy import PushdownPolicy
from tests.golden.expectations import QUERIES
from tests.golden.golden_file import golden_files, read_golden
from tests.simulation import scenario_judge
from tests.simulation.golden_on_motes import (
    NOT_HERE,
    judge,
    less_moved,
    moved,
    one_by_one,
    run,
    stated,
    swept,
    texts_of,
    unheard,
)
from tests.simulation.golden_world import world_of
from tests.simulation.random_faults import LOSSY, mishaps

GOLDEN = [read_golden(path) for path in golden_files(QUERIES)]
CASES = {
    f"{golden.path.stem}:{case.name}": (golden, case)
    for golden in GOLDEN
    for case in golden.cases
    if case.word == "query"
}
if lacking := [name for name, (_, case) in CASES.items() if "motes" not in case.expected]:
    raise ValueError(f"no section `motes`: {lacking}; `python -m tests.simulation.golden_on_motes --rewrite` writes it")
HERE = [name for name, (_, case) in CASES.items() if not case.expected["motes"].startswith(NOT_HERE)]
SAMPLE = pytest.mark.sample("name", 15)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return cache(lambda golden: world_of(GOLDEN[golden], tmp_path_factory.mktemp("world")))


def asked(name, world):
    golden, case = CASES[name]
    return world(GOLDEN.index(golden)), texts_of(golden, case)


@pytest.mark.promise("placement")
@pytest.mark.parametrize("moves", PushdownPolicy)
@SAMPLE
@pytest.mark.parametrize("name", HERE)
def test_without_loss_answers_equal_replay(name, moves, world, tally):
    of, texts = asked(name, world)
    bed = run(of, texts, moves)
    tally("windows and epochs of golden queries without loss", {moves.value: judge(of, bed)})
    assert unheard(bed) == []
    found = moved(bed)
    if moves is PushdownPolicy.EVERYTHING:
        assert less_moved(stated(CASES[name][1].expected["motes"]), found) is None
    if moves is PushdownPolicy.NOTHING:
        assert all(counts["sent"] == counts["measured"] > 0 for counts in found.values())


@pytest.mark.promise("placement")
@SAMPLE
@pytest.mark.parametrize("name", HERE)
def test_with_loss_answers_equal_replay_of_arrivals(name, world, rng, tally):
    of, texts = asked(name, world)
    moves, agenda = rng.choice(list(PushdownPolicy)), rng.random() < 0.5
    bed = run(of, texts, moves, seed=rng.randrange(1_000), agenda=agenda, **LOSSY)
    tally("windows and epochs of golden queries with loss", {moves.value: judge(of, bed)})


@pytest.mark.parametrize(
    "name, seed",
    [
        ("short_windows:no_slide", 382),  # the station re-optimizes the query within the run
        ("loops:by_rows_joined", 987),  # a frame arrives just before a table is loaded
    ],
)
def test_replay_takes_plan_and_time_of_each_window(name, seed, world):
    of, texts = asked(name, world)
    assert judge(of, run(of, texts, PushdownPolicy.PLANNED, seed=seed, **LOSSY)) > 3


@pytest.mark.promise("placement")
@SAMPLE
@pytest.mark.parametrize("name", HERE)
def test_with_faults_answers_equal_replay(name, world, rng, tally):
    """Beside some others of its file, which its motes have to serve, too."""
    of, [*texts] = asked(name, world)
    others = [each for each in HERE if each.split(":")[0] == name.split(":")[0]]
    texts += [
        text for each in rng.sample(others, min(rng.choice((0, 1, 4)), len(others))) for text in asked(each, world)[1]
    ]
    wrong = mishaps(rng, of.scenario, of.seconds)
    moves, agenda = rng.choice(list(PushdownPolicy)), rng.random() < 0.5
    bed = run(of, texts, moves, seed=rng.randrange(1_000), agenda=agenda, **wrong)
    title = "windows and epochs of golden queries when something goes wrong"
    tally(title, {", ".join(sorted({fault.what for fault in wrong["faults"]})) or "nothing": judge(of, bed)})


@pytest.mark.promise("deterministic", "placement")
@pytest.mark.sample("name", 50)
@pytest.mark.parametrize("name", HERE)
def test_swept_trace_equals_events_and_answers_equal_replay(name, world, rng, tally):
    of, texts = asked(name, world)
    moves, radio = rng.choice(list(PushdownPolicy)), rng.choice([{}, LOSSY])
    seed = rng.randrange(1_000)
    bed = swept(of, texts, moves, seed, **radio)
    assert str(bed.trace) == str(one_by_one(bed, seed))
    found = sum(scenario_judge.judge(bed, each) for each in bed.numbers)
    tally("windows and epochs of golden queries that are swept", {moves.value: found})


def test_plan_that_folds_everything_sends_no_reading():
    moves = {name: set(re.findall(r"^ *moves: (.*)$", CASES[name][1].expected["plan"], re.MULTILINE)) for name in HERE}
    folds = [name for name, told in moves.items() if told and set(", ".join(told).split(", ")) == {"SliceAggregation"}]
    assert len(folds) >= 49
    sent = [name for name in folds if any(of["sent"] for of in stated(CASES[name][1].expected["motes"]).values())]
    assert not sent


@pytest.mark.promise("placement")
def test_query_left_out_states_its_reason():
    out = {name: case.expected["motes"].removeprefix(NOT_HERE) for name, (_, case) in CASES.items() if name not in HERE}
    # A query that a replay refuses, too, is no difference.
    [alike] = [name for name, why in out.items() if f"refused: {why[:5]}" in CASES[name][1].expected["answer"]]
    assert out.pop(alike) == "SN434 tick -20 is before all that is on record; the first possible tick is 0"
    reasons = Counter(out.values())
    del reasons["it reads nothing that is measured"]
    assert reasons == {
        "SN601 submit one query at a time": 13,
        "it reads a string of a sensed extent": 6,  # a deployment with one is refused (SN711): sensors give numbers
        "SN601 EXPLAIN cannot be submitted; use `moteloom explain`": 2,
    }
    assert len(HERE) >= 262


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.path.stem)
def test_every_query_over_readings_runs_on_motes(golden):
    """A query that names a sensed extent, not only its history, is measured for, or cannot be deployed at all."""
    catalog = read_schema(golden.schema)
    for name, (_, case) in CASES.items():
        if name.startswith(f"{golden.path.stem}:") and "nothing that is measured" in case.expected["motes"]:
            plans = bind_text(case.text, catalog)
            assert not any(isinstance(node, StreamAcquire) for plan in plans for node in walk(plan.root))
