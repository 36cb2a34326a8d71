"""Pushed-down operators compute exactly the same on motes as at the base station."""

import dataclasses
import random
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acquisition.schedule import Sampling, Schedule, channel_of
from acquisition.ticks import EpochGrid
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.node import walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_select import StreamSelect
from basestation.execution.columns.tuples import Tuples
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.execution.slices.partial_slices import make_cells
from basestation.execution.slices.slice_folder import SliceFolder
from basestation.execution.slices.window_merger import WindowMerger
from gateway.frame import Frame, FrameKind, MoteId
from innet.operators.column_evaluation import ValueColumn
from innet.operators.fold import Fold
from innet.operators.mote_expression import SensorValue, SiteNumber
from innet.operators.value_ranges import Interval
from innet.payload import decode_partial_frames, encode_partials
from innet.placement.fold_sharing import find_state, merge_folds
from innet.placement.placement import PlacedOperator, select_sites
from innet.program.batch_interpreter import SampleColumns, run_batch
from innet.program.compiler import compile_programs
from innet.program.interpreter import TickSample, run
from innet.program.table_memory import TableMemory
from tests.algebra.vectors import vector_of
from tests.planner.pushdown_helpers import CATALOG, SITES, pushdown_of

SMALL = st.integers(-9, 9)
HARD = st.one_of(SMALL, st.sampled_from([2**31 - 1, -(2**31), 2050, -2049, 10, 100]), st.integers(-(2**31), 2**31 - 1))
VALUE = st.one_of(st.none(), HARD)
ROWS = st.lists(
    st.tuples(st.sampled_from(SITES), st.integers(0, 12), VALUE, VALUE, VALUE, VALUE), min_size=1, max_size=14,
    unique_by=lambda row: row[:2],
)  # fmt: skip
CONSTANT = st.one_of(
    SMALL.map(str), HARD.map(str), st.sampled_from(["0.5", "20.5", "-0.005", "1e9", "3.0", "0.1", "-7.25"])
)


@st.composite
def terms(draw, depth=2):
    """The text of a value over columns, with arithmetic."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["v", "u", "x", "y", "site"]))
    inner, constant = draw(terms(depth - 1)), draw(CONSTANT)
    return draw(
        st.sampled_from([
            f"({inner} + {constant})", f"({constant} - {inner})", f"({inner} * {constant})", f"({inner} / {constant})",
            f"-({inner})", f"ABS({inner})", f"ROUND({inner})", f"CAST({inner} AS integer)", f"CAST({inner} AS float)",
            f"({inner} % {constant})", f"LEAST({inner}, {constant})", f"COALESCE({inner}, {constant})",
            f"NULLIF({inner}, {constant})", f"CASE WHEN {inner} > {constant} THEN {constant} ELSE {inner} END",
        ])
    )  # fmt: skip


@st.composite
def predicates(draw, depth=2):
    op = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    if depth == 0 or draw(st.booleans()):
        a, b = draw(terms()), draw(st.one_of(CONSTANT, terms(1)))
        return draw(
            st.sampled_from([
                f"{a} {draw(op)} {b}", f"{b} {draw(op)} {a}", f"{a} IS NULL", f"{a} IN ({b}, {draw(CONSTANT)}, NULL)",
                f"{a} BETWEEN {draw(CONSTANT)} AND {b}",
            ])
        )  # fmt: skip
    a, b = draw(predicates(depth - 1)), draw(predicates(depth - 1))
    return draw(st.sampled_from([f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})"]))


RAW = [None, {SensorValue("f", name): Interval(-(2**10), 2**10) for name in "vuxy"}]


def within(rows, raw):
    """The rows, limited to the ranges of the sensors."""
    if raw is None:
        return rows
    return [(*row[:2], *(None if n is None else max(-(2**10), min(n, 2**10)) for n in row[2:])) for row in rows]


def schedules(attributes):
    channels = tuple(channel_of(CATALOG.find("f").schema.find(name)) for name in attributes)
    sampling = Sampling(0, "f", EpochGrid(0, 10), channels)
    return [Schedule(site, 1, (sampling,)) for site in SITES]


def measured(root, rows):
    """The readings at the base station: Tuples with the columns of the plan's StreamAcquire."""
    [acquire] = [node for node in walk(root) if isinstance(node, StreamAcquire)]
    at = {"site": 0, "v": 2, "u": 3, "x": 4, "y": 5}
    columns = {}
    for column in acquire.attributes:
        entries = [10 * row[1] if column.name == "time" else row[at[column.name]] for row in rows]
        columns[column.id] = vector_of(entries, CATALOG.find("f").site_attribute.type)
    tick = np.array([10 * row[1] for row in rows], np.int64)
    site = np.array([row[0] for row in rows], np.int64)
    none = np.zeros(len(rows), np.int64)
    return Tuples(np.arange(len(rows)), tick, tick, none, site, none, site, np.zeros(len(rows), bool), columns)


def streamed(node, tuples):
    """Selections and projections of a stream, by the base station's own evaluation."""
    if isinstance(node, StreamAcquire):
        return tuples
    below = streamed(node.child, tuples)
    evaluation = Evaluation(below.columns, len(below))
    if isinstance(node, StreamSelect):
        return below.take(evaluation.of(node.predicate).is_true)
    assert isinstance(node, StreamProject)
    return below.with_columns({column.id: evaluation.as_type(e, column.type) for column, e in node.outputs})


@pytest.mark.promise("placement")
@given(predicates(), ROWS, st.sampled_from(RAW))
def test_mote_and_base_station_select_equal_readings(text, rows, raw):
    found, root = pushdown_of(f"SELECT v, u, x, y FROM f WHERE {text}", raw)
    rows = within(rows, raw)
    [deliver] = found.readings
    programs = {
        p.site: p
        for p in compile_programs([PlacedOperator(deliver, select_sites(deliver, SITES))], schedules(deliver.sent))
    }
    sent = []
    for i, (site, epoch, *values) in enumerate(rows):
        taken = [dict(zip("vuxy", values, strict=True))[name] for name in deliver.sent]
        if site not in programs:  # a condition about the site alone excludes it
            continue
        outcome = run(programs[site], TickSample(10 * epoch, taken), TableMemory())
        assert outcome.is_due
        if outcome.reading is not None:
            assert outcome.reading == tuple(taken)
            sent.append(i)
    [select] = [node for node in walk(root) if isinstance(node, StreamSelect)] or [None]
    selected = [] if select is None else streamed(select, measured(root, rows)).ident.tolist()
    if select is None:
        assert sent == list(range(len(rows)))
    elif all(decision.code == "moves" and "in part" not in decision.reason for decision in found.decisions):
        assert sent == selected
    else:
        assert set(selected) <= set(sent)


@st.composite
def comparisons(draw):
    """A column, and a comparison of only this column with a constant, perhaps negated."""
    name = draw(st.sampled_from(["v", "x", "y", "site"]))
    term = draw(terms().filter(lambda text: not set(re.findall(r"\b[vuxy]\b", text)) - {name}))
    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    return name, f"{draw(st.sampled_from(['', 'NOT ']))}{term} {op} {draw(CONSTANT)}"


@pytest.mark.promise("placement")
@given(comparisons())
@example(("x", "x % 0.5 > 0.2"))
@example(("x", "NOT x = 0.005"))
@example(("x", "NOT x <> 0.01"))
@example(("y", "-3 - y / -0.3 <= 0.1"))
@example(("v", "v * -0.1 + 0.3 < 0.7"))
def test_threshold_agrees_for_every_sensor_value(compared):
    """All possible values, and null."""
    name, text = compared
    found, root = pushdown_of(f"SELECT v, u, x, y FROM f WHERE {text}", RAW[1])
    [deliver] = found.readings
    if found.decisions[0].code != "moves" or not (sites := select_sites(deliver, SITES)):
        return
    values = [None, *range(-(2**10), 2**10 + 1)]
    rows = [(sites[0], i, *(v if column == name else 1 for column in "vuxy")) for i, v in enumerate(values)]
    lanes = {
        column: ValueColumn(np.array([row[at] or 0 for row in rows]), np.array([row[at] is not None for row in rows]))
        for at, column in enumerate("vuxy", 2)
    }
    program = next(
        p for p in compile_programs([PlacedOperator(deliver, sites)], schedules(deliver.sent)) if p.site == sites[0]
    )
    tuples = measured(root, rows)
    outcomes = run_batch(program, SampleColumns(tuples.site, tuples.tick, [lanes[sent] for sent in deliver.sent]))
    [select] = [node for node in walk(root) if isinstance(node, StreamSelect)] or [None]
    selected = tuples.ident if select is None else streamed(select, tuples).ident
    assert np.array_equal(np.flatnonzero(outcomes.sent), selected)


AGGREGATE = st.sampled_from(["COUNT", "SUM", "AVG", "MIN", "MAX", "STDEV", "VARIANCE", "FIRST", "LAST"])


@st.composite
def aggregations(draw):
    """A query with an aggregation that may be pushed down, and its windows."""
    listed = draw(
        st.lists(st.tuples(AGGREGATE, st.sampled_from(["v", "x", "site", "v + 1", "ABS(u)"])), min_size=1, max_size=4)
    )
    items = ["COUNT(*)", *(f"{name}({argument})" for name, argument in listed)]
    groups = draw(st.lists(st.sampled_from(["site", "u", "x"]), max_size=2, unique=True))
    begin, slide = draw(st.integers(0, 70)), draw(st.integers(1, 45))
    end = draw(st.integers(0, begin))
    point = "NOW" if end == 0 else f"NOW-{end}"
    frm = "NOW" if begin == 0 else f"NOW-{begin}"
    text = f"SELECT {', '.join([*groups, *items])} FROM f [FROM {frm} TO {point} SLIDE {slide} SEC]"
    if draw(st.booleans()):
        text += f" WHERE {draw(predicates(1))}"
    return text + (f" GROUP BY {', '.join(groups)}" if groups else "")


@pytest.mark.promise("placement")
@given(aggregations(), ROWS, st.randoms(use_true_random=False))
@example(
    "SELECT COUNT(*) FROM f [FROM NOW TO NOW SLIDE 3 SEC]", [(3, 1, *[None] * 4), (3, 0, *[None] * 4)], random.Random(1)
)
@example(
    "SELECT COUNT(*) FROM f [FROM NOW-9 TO NOW SLIDE 40 SEC]", [(3, n, *[None] * 4) for n in range(9)], random.Random(1)
)
def test_merged_partials_equal_aggregate_of_readings(text, rows, rng):
    """For each window, compare the merged partials of motes with the fold of all readings at the base station."""
    found, root = pushdown_of(text, RAW[1])
    rows = within(rows, RAW[1])
    if not found.fold_candidates:
        assert all(
            decision.code in ("float", "wide", "long", "function")
            for decision in found.decisions
            if not decision.is_pushed_down
        )
        return
    [feed] = found.fold_candidates
    [interval] = [node.interval for node in walk(root) if isinstance(node, StreamAcquire)]
    rows = [row for row in rows if 10 * row[1] % interval == 0]  # the others are in no window, and not sampled
    [held] = merge_folds([feed.fold, dataclasses.replace(feed.fold, states=OTHERS)])
    came = in_network(held, rows, rng)
    slices = feed.fold.slices
    kept = [
        row[0] in select_sites(feed.fold, SITES) and slices.is_in_windows(slices.number(10 * row[1])) for row in rows
    ]
    assert sum(partial.readings for partial in came) == sum(kept)
    node = next(n for n in walk(root) if isinstance(n, SliceAggregation))
    folding = SliceFolder(node, node.aggregates)
    sources = tuple(None if at is None else find_state(held, feed.fold.states[at]) for at in feed.sources)
    there = folding.concatenate([])
    if came:
        partials = PartialBatch.from_frames(framed(placed(held), came), 0)
        partials = partials.take(~partials.bare)
        begins = held.slices.begin(partials.slice)
        there = make_cells(partials, begins, begins, feed.node, sources, folding)
    tuples = streamed(node.child, measured(root, rows))
    for window in list(range(0, 200, node.slide))[:: -(-200 // node.slide // 12)]:
        low, high = window + node.begin, window + node.end
        within_window = (tuples.tick >= low) & (tuples.tick <= high)
        inside = np.array([reaches(feed.fold, begin, interval, low, high) for begin in there.slice.tolist()], bool)
        assert bag(folding, node, there.take(inside)) == bag(folding, node, all_of(folding, tuples.take(within_window)))


OTHERS = (("VARIANCE", SiteNumber()), ("MIN", SiteNumber()))
"""The states that another query needs of the same tuples, slices and groups."""


def all_of(folding, tuples):
    """Every reading of one window, folded at the base station."""
    return folding.cells(np.zeros(len(tuples), np.int64), tuples, Stream())


def framed(placed, came):
    """The partials after encoding and decoding as frames."""
    payloads = encode_partials(placed.shape, came)
    frames = [Frame(FrameKind.PARTIAL, MoteId(3), 1, seq, payload) for seq, payload in enumerate(payloads)]
    [decoded], errors = decode_partial_frames(frames, {placed.number: placed.shape})
    assert not errors
    return decoded


class Stream:
    by_site = True


def reaches(fold, begin, interval, low, high):
    """Whether a slice is in a window; no slice is in it in part."""
    ticks = fold.slices.ticks(fold.slices.number(begin), interval)
    inside = [low <= tick <= high for tick in ticks]
    assert all(inside) or not any(inside)
    return any(inside)


def placed(fold: Fold) -> PlacedOperator:
    sites = select_sites(fold, SITES)
    return PlacedOperator(fold, sites, 7, tuple(site for site in SITES if site not in sites), 2)


def in_network(fold: Fold, rows, rng):
    """The partials that reach the base: 9 sends to 4, 4 to 3, 3 to the base, each with memory for two groups."""
    sites, fold_at = select_sites(fold, SITES), placed(fold)
    names = tuple(sorted(fold.child.attributes))
    programs = {p.site: p for p in compile_programs([fold_at], schedules(names))}
    memories = {site: TableMemory() for site in SITES}
    for site in SITES:
        memories[site].install([programs[site]])
    came = []
    for tick in range(0, 1_000, 10):
        for site, epoch, *values in rows:
            if 10 * epoch == tick and site in sites:
                taken = [dict(zip("vuxy", values, strict=True))[name] for name in names]
                run(programs[site], TickSample(tick, taken), memories[site])
        for site, parent in ((9, 4), (4, 3), (3, None)):
            sent = [partial for _, partial in memories[site].take(tick)]
            rng.shuffle(sent)
            if parent is None:
                came += sent
            else:
                memories[parent].add(7, sent)
    return came


def bag(folding, node, cells):
    """The rows of one window over all these cells, in any order."""
    cells = folding.unite(dataclasses.replace(cells, slice=np.zeros(len(cells), np.int64)))
    found = WindowMerger(folding).windows([cells], np.zeros(1, np.int64), np.zeros(1, np.int64))
    frame = found.frame([column for column, _ in node.groups], folding.own)
    columns = [frame.columns[id].to_list() for id in frame.columns]
    return sorted(zip(*columns, strict=True), key=repr)
