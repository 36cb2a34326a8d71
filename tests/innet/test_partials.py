"""Partials merged on any tree, in any order, finish to the aggregate of all readings."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from innet.aggregates import create_aggregate
from innet.aggregates.state_fields import EMPTY_FIELDS, extract_fields, make_fields, make_state, merge_fields
from innet.operators.slices import SlicePattern
from innet.partials import MAX_SLOTS, Partial, PartialShape
from innet.program.interpreter import TickSample, run
from innet.program.mote_program import MoteProgram
from innet.program.opcodes import NO_SLOT, StateKind, assemble
from innet.program.table_memory import TableMemory, state_bytes
from innet.routing.tree import RoutingTree
from tests.innet.placement_fixtures import merged

KINDS = tuple(kind.name for kind in StateKind)
ASKED = ("COUNT", "SUM", "AVG", "VARIANCE", "STDEV", "MIN", "MAX", "FIRST", "LAST")
STATE = {"AVG": "SUM", "STDEV": "VARIANCE"}
INT = st.one_of(st.integers(-3, 3), st.integers(-(2**31), 2**31 - 1))
VALUE = st.one_of(INT, st.none())


def code(*words):
    return b"".join(assemble(name, *map(int, rest)) for name, *rest in (word.split() for word in words))


# --- fields and states -----------------------------------------------------------------------------------------------


@given(st.sampled_from(KINDS), st.lists(st.lists(st.tuples(INT, st.integers(0, 50), st.integers(1, 9))), max_size=4))
def test_fields_equal_aggregate_state(kind, groups):
    """Folded one by one as on a mote, and in columns by the aggregate object."""
    rows = []
    for group in groups:
        fields = EMPTY_FIELDS[kind]
        for value, tick, site in group:
            fields = merge_fields(kind, fields, make_fields(kind, value, tick, site))
        rows.append(fields)
    aggregate, state = create_aggregate(kind, "integer"), create_aggregate(kind, "integer").init(len(groups))
    number = np.array([i for i, group in enumerate(groups) for _ in group], np.int64)
    value, tick, site = (np.array([row[i] for group in groups for row in group], np.int64) for i in range(3))
    aggregate.update(state, number, value, None, None, (tick, site))
    assert extract_fields(kind, state) == rows
    assert same(aggregate, make_state(kind, rows), state)


@given(st.sampled_from(KINDS), st.data())
def test_merged_fields_equal_merged_states(kind, data):
    several = st.lists(st.tuples(INT, st.integers(0, 9), st.integers(1, 9)), max_size=5)
    sides = []
    for rows in (data.draw(several), data.draw(several)):
        fields = EMPTY_FIELDS[kind]
        for value, tick, site in rows:
            fields = merge_fields(kind, fields, make_fields(kind, value, tick, site))
        sides.append(fields)
    aggregate, whole = create_aggregate(kind, "integer"), make_state(kind, [sides[0]])
    aggregate.merge(whole, make_state(kind, [sides[1]]), np.zeros(1, np.int64))
    assert extract_fields(kind, whole) == [merge_fields(kind, *sides)]


def same(aggregate, a, b):
    left, right = aggregate.dump(a), aggregate.dump(b)
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


# --- slices ----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.data())
def test_slices_cover_all_ticks(period, data):
    edge, other = sorted((data.draw(st.integers(0, period - 1)), data.draw(st.integers(0, period - 1))))
    slices = SlicePattern(period, edge, other)
    for tick in range(3 * period):
        number = slices.number(tick)
        assert slices.begin(number) <= tick < slices.end(number)
        assert number - slices.number(tick + 1) == (-1 if (tick + 1) % period in (edge, other) else 0)
    assert slices.number(np.arange(3 * period)).tolist() == [slices.number(t) for t in range(3 * period)]


@given(st.integers(1, 40), st.integers(1, 12), st.integers(-80, 0), st.integers(-80, 0))
def test_window_is_run_of_whole_slices(slide, interval, begin, end):
    """However edges move, no slice has readings on both sides of a window's edge."""
    slices = SlicePattern.cut(slide, (begin, end + 1), interval)
    sampled = range(0, 400, interval)
    most = {}
    for tick in sampled:
        most[slices.number(tick)] = most.get(slices.number(tick), 0) + 1
    assert max(most.values()) <= slices.max_ticks(interval)
    for number in most:
        assert [t for t in slices.ticks(number, interval) if t < 400] == [
            t for t in sampled if slices.number(t) == number
        ]
    for window in range(0, 300, slide):
        inside = {slices.number(t) for t in sampled if window + begin <= t <= window + end}
        outside = {slices.number(t) for t in sampled if not window + begin <= t <= window + end}
        assert not inside & outside


@pytest.mark.parametrize("slide", [10, 20, 30, 60])
def test_edge_between_ticks_moves_to_later_tick(slide):
    """All edges, for a sampling every 10 ticks."""
    for begin in range(-25, 1):
        for end in range(begin, 1):
            slices = SlicePattern.cut(slide, (begin, end + 1), 10)
            for window in range(0, 120, slide):
                inside = {slices.number(t) for t in range(0, 200, 10) if window + begin <= t <= window + end}
                outside = {slices.number(t) for t in range(0, 200, 10) if not window + begin <= t <= window + end}
                assert not inside & outside


@pytest.mark.promise("placement")
@given(st.integers(1, 40), st.integers(1, 12), st.integers(-80, 0), st.integers(0, 40))
def test_slices_in_gap_are_not_in_windows(slide, interval, begin, length):
    slices = SlicePattern.cut(slide, (begin, begin + length + 1), interval, gap=length + 1 < slide)
    sampled = range(2 * slide * interval, 4 * slide * interval, interval)
    held = {tick for tick in sampled if (tick - begin) % slide <= length}
    kept = [tick for tick in sampled if slices.is_in_windows(slices.number(tick))]
    assert held <= set(kept)
    if slide % interval == 0:  # otherwise a slice may have no reading, and an edge may be superfluous
        assert not held or set(kept) == held
        ends = sorted({slices.end(slices.number(tick)) for tick in kept})
        assert all(b - a <= slices.longest_pause(interval) for a, b in pairwise(ends))
    if slices.gap_edge is not None:
        edge, ticks = slices.window_span
        assert kept == [tick for tick in sampled if (tick - edge) % slices.period < ticks]
        numbers = slices.number(np.array(sampled))
        assert slices.is_in_windows(numbers).tolist() == [tick in kept for tick in sampled]
        most = max(sum(slices.number(t) == number for t in kept) for number in numbers.tolist())
        assert most <= slices.max_ticks(interval)


@pytest.mark.parametrize("gap_edge", [5, 20])
def test_gap_that_is_no_edge_is_refused(gap_edge):
    with pytest.raises(ValueError, match=f"found {gap_edge}"):
        SlicePattern(60, 20, 20 if gap_edge == 20 else 30, gap_edge)


def test_patterns_of_same_readings_are_equal():
    assert SlicePattern.cut(60, (-299, 1), 10) == SlicePattern.cut(60, (-295, 5), 10) == SlicePattern(60, 10, 10)
    assert SlicePattern.cut(60, (0, 1), 60) == SlicePattern.cut(30, (0, 7), 60) == SlicePattern(60, 0, 0)
    assert SlicePattern.cut(60, (0, 1), 10) == SlicePattern(60, 0, 10)
    assert SlicePattern.cut(7, (0, 3), 10) == SlicePattern(7, 0, 3)


# --- a network -------------------------------------------------------------------------------------------------------


@st.composite
def networks(draw):
    """A tree of motes, and readings of some of them."""
    count = draw(st.integers(1, 9))
    parent = {site: draw(st.integers(0, site - 1)) for site in range(1, count + 1)}
    contributing = draw(st.sets(st.sampled_from(sorted(parent)), min_size=1))
    readings = [
        (site, 10 * epoch, draw(VALUE), draw(st.sampled_from([None, 1, 2])))
        for site in sorted(contributing)
        for epoch in range(draw(st.integers(0, 7)))
    ]
    return RoutingTree((0,), parent), tuple(sorted(contributing)), readings


PERIOD = 30
FOLDS = tuple(word for place in range(len(KINDS)) for word in ("LOAD 0", f"FOLD {place}"))


def programs_for(sites, contributing, room):
    body = code("MARK 1", "LOAD 0", "LIT8 3", "NE", f"SKIP {len(code('LOAD 1', 'KEY', 'ENTER 1', *FOLDS))}")
    body += code("LOAD 1", "KEY", "ENTER 1", *FOLDS)
    kept = code(*(f"KEEP {kind}" for kind in StateKind))
    for site in sites:
        slot = contributing.index(site) if site in contributing else NO_SLOT
        declared = code(f"TABLE 1 {len(contributing)} {slot} 1 {room} {PERIOD} 0 0") + kept
        yield site, MoteProgram(site, 0, 1, 2, declared + body + code("HALT"))


def risen(tree, contributing, readings, room, rng):
    """The partials at the root when every mote sends, children before parents, in any such order."""
    programs = dict(programs_for(tree.parent, contributing, room))
    memories = {site: TableMemory() for site in programs}
    for site, program in programs.items():
        memories[site].install([program])
    came, due = [], sorted({tick for _, tick, _, _ in readings} | {10**6})
    for tick in due:
        for site, at, value, key in readings:
            if at == tick:
                run(programs[site], TickSample(at, (value, key)), memories[site])
        for site in tree.leaves_first:
            sent = memories[site].take(tick)
            rng.shuffle(sent)
            if tree.parent[site] == 0:
                came += [partial for _, partial in sent]
            else:
                memories[tree.parent[site]].add(1, [partial for _, partial in sent])
    assert not any(map(len, memories.values()))
    return came


@pytest.mark.promise("placement")
@pytest.mark.parametrize("asked", ASKED)
@given(networks(), st.integers(1, 30), st.randoms(use_true_random=False))
def test_partials_of_any_tree_finish_to_aggregate(asked, network, room, rng):
    tree, contributing, readings = network
    kind = STATE.get(asked, asked)
    place, aggregate = KINDS.index(kind), create_aggregate(asked, "integer")
    came = [partial for partial in risen(tree, contributing, readings, room, rng) if not partial.bare]
    taken = [row for row in readings if row[2] is not None and row[2] != 3]
    groups = sorted({(tick // PERIOD + 1, key) for _, tick, _, key in taken}, key=repr)
    assert {(partial.slice, *partial.group) for partial in came} == set(groups)
    state = aggregate.init(len(groups))
    into = np.array([groups.index((p.slice, *p.group)) for p in came], np.int64)
    aggregate.merge(state, make_state(kind, [p.states[place] for p in came]), into)
    of_group = np.array([groups.index((row[1] // PERIOD + 1, row[3])) for row in taken], np.int64)
    site, tick, value = (np.array([row[i] for row in taken], np.int64) for i in range(3))
    expected = aggregate.evaluate(len(groups), of_group, value, None, (tick, site))
    for found, wanted in zip(aggregate.finalize(state), expected, strict=True):
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.promise("placement")
@given(networks(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_every_reading_is_in_one_partial(network, room, rng):
    tree, contributing, readings = network
    came = risen(tree, contributing, readings, room, rng)
    assert sum(partial.readings for partial in came) == len(readings)
    for number in {tick // PERIOD + 1 for _, tick, _, _ in readings}:
        who = 0
        for partial in came:
            who |= partial.contributors if partial.slice == number else 0
        assert who == sum(1 << contributing.index(s) for s in {r[0] for r in readings if r[1] // PERIOD + 1 == number})


@pytest.mark.promise("placement")
@given(networks(), st.randoms(use_true_random=False))
def test_result_is_independent_of_transfer(network, rng):
    """One group at a time or all at once, on this tree or with every mote next to the base station."""
    tree, contributing, readings = network
    flat = RoutingTree((0,), dict.fromkeys(tree.parent, 0))
    wholes = [
        sorted(merged(risen(shape, contributing, readings, room, rng), KINDS, True), key=repr)
        for shape, room in ((tree, 1), (tree, 200), (flat, 200))
    ]
    assert wholes[0] == wholes[1] == wholes[2]


def test_partial_above_128_sites_counts_contributors():
    few, many = (
        PartialShape(1, tuple(range(n)), 0, ("SUM",), SlicePattern(10, 0, 0)) for n in (MAX_SLOTS, MAX_SLOTS + 1)
    )
    assert few.has_bitmap and not many.has_bitmap
    a, b = Partial(1, 1, 1, (), ((1, 5),)), Partial(1, 1, 1, (), ((1, 6),))
    assert merged([a, b], ("SUM",), many.has_bitmap) == [Partial(1, 2, 2, (), ((2, 11),))]
    assert merged([a, b], ("SUM",), few.has_bitmap) == [Partial(1, 1, 2, (), ((2, 11),))]


def test_table_memory_is_known_beforehand():
    [(_, program)] = programs_for([3], (3, 4), 5)
    [table] = program.tables
    bits = sum(field.bits for kind in KINDS for field in create_aggregate(kind, "integer").layout())
    assert state_bytes(table) == 5 * (4 + 5 + 1 + 4 + -(-bits // 8))
