"""Ceilings and engine agree on small data in batches of any size; the harness reports the runs it made."""

import csv
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import by_hand, ceiling, data, diff, flat, record, report, run, sharing, where
from bench.answers import Digest, Tuples, Windows
from bench.ceiling.exact import means, split
from bench.measure import Order, measured
from bench.ours import Ours, answers
from bench.tasks import TASKS, Case

SIZES = ((4, 600, 7), (4, 600, 600), (30, 2_000, 1_000), (10, 200, 1))


def digests(case):
    """Yield the digests of all systems after every batch."""
    streams = case.streams()
    systems = ((Ours(case, streams), answers), (ceiling.system("numpy", case.task.name)(case, streams), list))
    sums = [Digest() for _ in systems]
    for parts, last in data.batches(streams, case.batch):
        for digest, (system, common) in zip(sums, systems, strict=True):
            digest.add(common(system.step(system.prepare(parts, last))))
        yield tuple(map(str, sums))


@pytest.mark.promise("speed")
@pytest.mark.parametrize("task", ceiling.FILES)
@pytest.mark.parametrize(("sites", "readings", "batch"), SIZES)
def test_engine_and_ceiling_agree_after_every_batch(task, sites, readings, batch):
    found = list(digests(Case(TASKS[task], sites, readings, batch, queries=8)))
    assert all(ours == theirs for ours, theirs in found)
    assert int(found[-1][0].split(":")[0]) > readings // 50, "too few answers"


@pytest.mark.promise("speed")
@pytest.mark.parametrize("task", ceiling.FILES)
def test_batch_size_does_not_change_the_answer(task):
    sums = [list(digests(Case(TASKS[task], 5, 600, batch, queries=8)))[-1] for batch in (11, 600, 5_000)]
    assert len(set(sums)) == 1


@pytest.mark.promise("speed")
@pytest.mark.parametrize("task", ceiling.OTHERS)
def test_polars_and_duckdb_ceilings_agree_with_numpy(task):
    case = Case(TASKS[task], 20, 3_000, 250)
    streams = case.streams()
    systems = [ceiling.system(name, task)(case, streams) for name in ceiling.by_hand(task)]
    sums = [Digest() for _ in systems]
    for parts, last in data.batches(streams, case.batch):
        for digest, system in zip(sums, systems, strict=True):
            digest.add(system.step(system.prepare(parts, last)))
        assert len(set(map(str, sums))) == 1


@pytest.mark.parametrize("task", ["W1", "W2", "W3", "W4"])
def test_sensed_form_gives_as_many_answers_as_pushed_form(task):
    rows = []
    for name in (task, f"{task}s"):
        case = Case(TASKS[name], 6, 900, 50)
        streams = case.streams()
        engine, digest = Ours(case, streams), Digest()
        for parts, last in data.batches(streams, case.batch):
            digest.add(answers(engine.step(engine.prepare(parts, last))))
        rows.append(digest.rows)
    # Readings on the minute lie in the window that begins there as well as in the one that ends.
    assert rows[0] <= rows[1] <= 1.3 * rows[0] and rows[0] > 100


@pytest.mark.parametrize("task", ["W2", "W3", "W7"])
def test_ceilings_handle_sites_with_two_or_no_reports_a_minute(task):
    """The fast paths of the ceilings do not apply to such data."""
    case = Case(TASKS[task], 6, 600, 50)
    streams = {name: uneven(stream) for name, stream in case.streams().items()}
    ours, theirs = Ours(case, streams), ceiling.system("numpy", task)(case, streams)
    said = Digest(), Digest()
    for parts, last in data.batches(streams, case.batch):
        said[0].add(answers(ours.step(ours.prepare(parts, last))))
        said[1].add(theirs.step(theirs.prepare(parts, last)))
    assert str(said[0]) == str(said[1])


def uneven(stream):
    """Two minutes become one, and every seventh tuple is missing."""
    whole = stream.take(np.arange(len(stream)) % 7 != 3)
    tick = whole.tick // (2 * data.MINUTE) * data.MINUTE + whole.tick % (2 * data.MINUTE) // 2
    columns = whole.columns | {"time": tick}
    if "weight" in columns:  # a vehicle names the time of a reading, which has moved, too
        columns["time"] = (
            whole.columns["time"] // (2 * data.MINUTE) * data.MINUTE + whole.columns["time"] % (2 * data.MINUTE) // 2
        )
    return data.Stream(tick, tick, columns)


@given(st.lists(st.floats(-1e5, 1e5).filter(lambda v: v == 0 or abs(v) > 1e-5), min_size=1, max_size=60))
def test_means_of_the_ceiling_are_rounded_once(values):
    words = [word.sum(keepdims=True) for word in split(np.array(values))]
    mean = means(*words, np.array([len(values)]))[0]
    assert mean == float(sum(map(Fraction, values)) / len(values))


def test_mean_between_two_doubles_rounds_to_even():
    ties = [1.0 + 2.0**-52, 1.0], [1.0 + 2.0**-52, 1.0 + 2.0**-51], [3.0, 3.0 + 2.0**-51]
    for values in ties:
        words = [word.sum(keepdims=True) for word in split(np.array(values))]
        assert means(*words, np.array([2]))[0] == float(sum(map(Fraction, values)) / 2)


def test_value_beyond_two_words_is_refused():
    for value in (1e-30, 1e30):
        with pytest.raises(ValueError):
            split(np.array([value]))


def digest(*given):
    found = Digest()
    found.add(given)
    return str(found)


@pytest.mark.promise("speed")
def test_digest_depends_on_answers_not_on_row_order():
    tick, index = np.array([1, 1, 2]), np.array([1, 2, 3])
    values = np.array([1.0, 2.0, 3.0])
    said = digest(Tuples(tick, index, [(values, None)]))
    back = np.array([2, 0, 1])
    assert said == digest(Tuples(tick[back], index[back], [(values[back], None)]))
    assert said == digest(*(Tuples(tick[k : k + 1], index[k : k + 1], [(values[k : k + 1], None)]) for k in range(3)))
    others = (
        Tuples(tick, index, [(np.nextafter(values, 9), None)]),
        Tuples(tick, index, [(values.astype(np.int64), None)]),
        Tuples(tick, index + 1, [(values, None)]),
        Tuples(tick, index, [(values, np.array([True, False, True]))]),
        Tuples(tick, index, [(values, None)], sign=-1),
        Tuples(tick, index, [(values, None)], query=2),
    )
    assert said not in {digest(other) for other in others}
    empty = Windows(np.array([5]), np.array([0, 0]), [(values[:0], None)])
    assert digest(empty) != digest() != digest(Windows(np.array([6]), np.array([0, 0]), [(values[:0], None)]))


def test_late_and_replaced_tuples_arrive_at_their_ticks():
    road = data.amended_road(10, 4_000)
    assert (np.diff(road.arrival) > 0).all(), "one tuple in one tick"
    late = (road.replaces == 0) & (road.tick < road.arrival)
    again = road.replaces > 0
    assert 20 < late.sum() < 60 and again.sum() == 40
    assert (road.tick[~(late | again)] == road.arrival[~(late | again)]).all()
    delay = (road.arrival - road.tick)[late | again]
    assert delay.min() > data.MINUTE // 2 and delay.max() < 6 * data.MINUTE
    entered = np.flatnonzero(road.replaces == 0)
    named = entered[road.replaces[again] - 1]
    assert (road.tick[named] == road.tick[again]).all()
    assert (road.columns["site"][named] == road.columns["site"][again]).all()


def test_measurement_reports_its_readings_and_times():
    found = measured(Order("numpy", "W2", 4, 2_000, 100, check=True))
    assert found["done"] == 2_000 and found["seconds"] > 0 and found["median_us"] <= found["p99_us"]
    assert list(found["marks"]) == [100, 200, 400, 800, 1_600, 2_000]
    assert found["marks"] == measured(Order("ours", "W2", 4, 2_000, 100, check=True))["marks"]
    stopped = measured(Order("numpy", "W2", 4, 100_000, 10, limit=0.01))
    assert stopped["done"] < 100_000 and stopped["marks"] == {}


def test_systems_that_differ_after_any_batch_do_not_agree():
    assert run._agree({"marks": {"1": "a", "2": "b"}}, {"marks": {"1": "a", "4": "c"}}) == 1
    assert run._agree({"marks": {"1": "a", "2": "b"}}, {"marks": {"1": "a", "2": "c"}}) == -1


def rows(when, seconds, peak=1 << 20, agrees=1_000, system="ours", batch=65_536):
    head = {"when": when, "commit": "abc", "size": "default", "machine": "m", "cores": "2", "python": "3", "numpy": "2"}
    for repetition, each in enumerate(seconds, 1):
        yield head | {
            "task": "W2", "system": system, "sites": 4, "readings": 1_000_000, "batch": batch, "queries": 1,
            "repetition": repetition, "done": 1_000, "seconds": each, "median_us": 1, "p99_us": 2, "built_bytes": 0,
            "peak_bytes": peak, "agrees": agrees,
        }  # fmt: skip


@pytest.mark.promise("speed")
def test_results_of_several_runs_have_one_header(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    record.keep("some", list(rows("t1", [1.0, 2.0])))
    record.keep("some", list(rows("t2", [3.0])))
    assert [row["seconds"] for row in record.kept("some")] == ["1.0", "2.0", "3.0"]
    with (tmp_path / "some.csv").open(newline="") as lines:
        assert len(list(csv.reader(lines))) == 4
    with pytest.raises(ValueError, match="has the columns"):
        record.keep("some", [{"other": 1}])
    assert record.kept("none") == []


@pytest.mark.promise("speed")
def test_diff_shows_changes_larger_than_the_spread():
    before = list(rows("t1", [1.0, 1.2, 1.1]))
    lines = {
        "equal": [diff.line_of(*c) for c in diff.changes(before + list(rows("t2", [1.15, 1.3, 1.0])))],
        "faster": [diff.line_of(*c) for c in diff.changes(before + list(rows("t2", [0.5, 0.6, 0.55])))],
        "heavier": [diff.line_of(*c) for c in diff.changes(before + list(rows("t2", [1.0, 1.2, 1.1], peak=9 << 20)))],
        "wrong": [diff.line_of(*c) for c in diff.changes(before + list(rows("t2", [1.0, 1.2, 1.1], agrees=-1)))],
        "one run": [diff.line_of(*c) for c in diff.changes(before)],
    }
    assert lines["equal"] == [None] and lines["one run"] == []
    assert "( 2.00 times)" in lines["faster"][0] and "1 → 9 MB" in lines["heavier"][0]
    assert lines["wrong"][0].endswith("THE ANSWER DIFFERS")


def test_page_shows_newest_run_and_missed_goals():
    kept = [*rows("t1", [9.0]), *rows("t2", [1.0, 1.0, 4.0]), *rows("t2", [0.1], system="numpy")]
    lines = "\n".join(report.tables(report.newest(kept)))
    assert "| 1 k | 250 … 1 k | 10 k | 0.100 | 1/2, missed |" in lines
    assert "Every size" not in lines
    assert report.tables({}) == ["No run has been recorded yet."]


def test_size_table_has_a_line_for_each_complete_size():
    kept = [
        row
        for place, batch in enumerate(run.BATCHES, 1)
        for row in [
            *rows("t", [place], batch=batch, peak=3 << 20),
            *rows("t", [0.5], batch=batch, system="numpy", agrees=-(batch == 100)),
        ]
    ]
    lines = report.tables(report.newest(kept))
    assert "| W2 | 1 | 4 | 1 M | 1 k, 0.5 | 500, 0.25 **differs** | 333, 0.17 | 250, 0.12 | 200, 0.1 |" in lines
    assert "| W2 | 1 | 4 | 1 M |" + " 3 MB, 3.0 |" * 5 in lines
    assert sum("1/2, missed" in line for line in lines) == 1  # the other lengths have no goal, and no line of their own


def test_full_run_measures_each_size_once():
    cases = [*run.default_cases(), *run.other_cases()]
    assert len(set(cases)) == len(cases)
    wide = {(case.task, case.sites, case.readings, case.batch, case.queries) for case in cases}
    assert {("W3", 4, 10_000_000, 0, 1), ("W6", 1_000, 10_000_000, 1_000, 10_000), ("W8", 4, 1_000_000, 1, 1)} <= wide
    assert not any(batch in (1, 100) and readings > 1_000_000 for _, _, readings, batch, _ in wide)


@pytest.mark.parametrize("kind", sharing.KINDS)
def test_sharing_is_measured_for_each_kind_of_equality(kind):
    found = sharing.measured(kind, 2, 3_000)
    assert found["state"] > 1_000 and found["seconds"] > 0


@pytest.mark.parametrize("kind", by_hand.BY_HAND)
def test_hand_written_program_answers_queries_like_the_engine(kind):
    name, texts = sharing.KINDS[kind]
    case, queries = Case(TASKS[name], 50, 3_000, 130), 12
    ours = Ours(replace(case, task=replace(case.task, queries=lambda *_: texts(queries))), case.streams())
    hand = by_hand.BY_HAND[kind](queries)
    mine, theirs = Digest(), Digest()
    for parts, last in data.batches(case.streams(), case.batch):
        mine.add(answers(ours.step(ours.prepare(parts, last))))
        theirs.add(hand.step(hand.prepare(parts, last)))
        assert str(mine) == str(theirs)
    assert mine.rows > 100


def test_flat_memory_is_measured_in_ten_parts():
    found = flat.measured(1_000)
    assert [answered for answered, _, _ in found] == list(range(100, 1_001, 100))
    assert all(held > state > 0 for _, held, state in found)


def test_all_step_time_is_attributed_to_modules():
    stats = where.profiled(Case(TASKS["W2"], 4, 2_000, 100))
    seconds = where.by_module(stats)
    assert sum(seconds.values()) == pytest.approx(stats.total_tt, rel=1e-6)
    assert max(seconds, key=seconds.get).endswith(".py")
