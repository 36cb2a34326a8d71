"""Placement, agenda and programs together: whatever motes sample, all due frames fit into their slots.

No radio and no clock: motes run their programs at the ticks of a round, then send in the order of the agenda.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.payload import encode_readings, epochs_per_frame
from gateway.frame import HEADER_SIZE
from innet.costs.energy_model import attempt_ms
from innet.operators.mote_expression import MoteConstant, SiteNumber, make_instruction
from innet.operators.mote_select import MoteSelect
from innet.operators.slices import SlicePattern
from innet.payload import decode_partials, encode_partials
from innet.placement.agenda import Activity
from innet.placement.agenda_scheduler import schedule_placement
from innet.placement.placement_search import FoldOption, build_placement
from innet.program.compiler import compile_programs
from innet.program.interpreter import TickSample, run
from innet.program.table_memory import TableMemory
from tests.innet.placement_fixtures import ACQUIRE, BY_SITE, BY_VOLT, HARDWARE, WARM, deliver, mean, world_of

BOTH = MoteSelect(ACQUIRE, make_instruction("NE", SiteNumber(), MoteConstant(2)))
FOLDS = [
    mean(*keys, child=child, slices=slices)
    for keys in ((), (BY_SITE,), (BY_VOLT,), (BY_SITE, BY_VOLT))
    for child in (ACQUIRE, WARM, BOTH)
    for slices in (
        SlicePattern.cut(20, (0,), 10),
        SlicePattern.cut(60, (0, 10), 10),
        SlicePattern.cut(60, (20, 40), 10, gap=True),
        SlicePattern.cut(10, (0,), 10),
    )
]


class Motes:
    """The state of all motes from round to round; `spent` is the used part of each slot."""

    def __init__(self, problem, placement):
        self.problem, self.tree = problem, placement.tree
        self.shapes = placement.shapes
        self.programs = {p.site: p for p in compile_programs(placement.placed, problem.schedules.values())}
        self.memories = {site: TableMemory() for site in self.tree.parent}
        for site, program in self.programs.items():
            if site in self.memories:
                self.memories[site].install([program])
        self.rows = {site: [] for site in self.memories}
        self.inbox = {site: [] for site in self.memories}
        self.arrived = []

    def sample(self, tick, values):
        for site, memory in self.memories.items():
            if site in self.problem.schedules and site in self.programs:
                outcome = run(self.programs[site], TickSample(tick, values[site]), memory)
                if outcome.is_due:
                    self.rows[site].append(outcome.reading)

    def hand_over(self, site, next_tick):
        """Return the payloads that a mote sends in its slot; it forwards readings unchanged."""
        sampling = (
            next((s for s in self.problem.schedules[site].samplings), None) if site in self.problem.schedules else None
        )
        rows, self.rows[site] = self.rows[site], []
        room = epochs_per_frame(sampling) if sampling else 1
        payloads = [encode_readings(sampling, 0, rows[at : at + room]) for at in range(0, len(rows), room)]
        payloads += self.inbox.pop(site)
        self.inbox[site] = []
        by_table = {}
        for number, partial in self.memories[site].take(next_tick):
            by_table.setdefault(number, []).append(partial)
        partials = {number: encode_partials(self.shapes[number], found) for number, found in by_table.items()}
        parent = self.tree.parent[site]
        if parent == 0:
            self.arrived += [(n, p) for n, found in partials.items() for p in found]
        else:
            self.inbox[parent] += payloads
            for number, found in partials.items():
                for payload in found:
                    self.memories[parent].add(number, decode_partials(payload, self.shapes[number], site))
        return [*payloads, *(payload for found in partials.values() for payload in found)]


@st.composite
def networks(draw):
    count = draw(st.integers(1, 7))
    parent = {site: draw(st.integers(0, site - 1)) for site in range(1, count + 1)}
    ratios = {pair: 1.0 for site, up in parent.items() for pair in ((site, up), (up, site))}
    sites = draw(st.sets(st.sampled_from(sorted(parent)), min_size=1))
    return world_of(ratios, draw(st.integers(1, 5)), sorted(sites), ("temp", "volt"))


@pytest.mark.promise("sampled-once")
@given(networks(), st.lists(st.sampled_from(FOLDS), max_size=3), st.booleans(), st.data())
def test_all_due_frames_fit_into_slots(problem, folds, collected, data):
    delivered = [deliver(WARM, "temp", "volt")] if collected else []
    placement = build_placement(delivered, [FoldOption(fold, ()) for fold in folds], range(len(folds)), problem)
    agenda = schedule_placement(placement, problem)
    motes = Motes(problem, placement)
    value = st.one_of(st.none(), st.sampled_from([0, 3000]), st.integers(-(2**31), 2**31 - 1))
    order = sorted(agenda.sites.values(), key=lambda own: own.of(Activity.SEND)[0].start_ms)
    end = 0
    for begin in (0, agenda.period, 2 * agenda.period):
        for tick in range(begin, begin + agenda.period, 10):
            motes.sample(tick, {site: (data.draw(value), data.draw(value)) for site in motes.memories})
        end = begin + agenda.period
        for own in order:
            payloads = motes.hand_over(own.site, end)
            spent = sum(attempt_ms(HARDWARE, HEADER_SIZE + len(payload)) for payload in payloads)
            spare = attempt_ms(HARDWARE, problem.sizes.room)  # for reports of the motes
            assert spent <= own.of(Activity.SEND)[0].length_ms - spare + 1
    reached = set(motes.memories)
    for number, shape in motes.shapes.items():
        came = [p for n, payload in motes.arrived if n == number for p in decode_partials(payload, shape, 0)]
        slices = [shape.slices.number(tick) for tick in range(0, end, 10)]
        over = sum(1 for slice in slices if shape.slices.is_in_windows(slice) and shape.slices.end(slice) <= end)
        held = sum(partial.readings for partial in came)
        assert held >= over * len(reached & set(shape.slots))  # partials of open slices may have gone early


@pytest.mark.promise("sampled-once")
@pytest.mark.parametrize("epochs", [1, 4])
def test_mean_costs_one_frame_per_mote_and_slice(epochs):
    ratios = {pair: 1.0 for n in range(5) for pair in ((n, n + 1), (n + 1, n))}
    problem = world_of(ratios, epochs)
    placement = build_placement((), [FoldOption(mean(slices=SlicePattern.cut(40, (0,), 10)), ())], (0,), problem)
    agenda, motes, sent = schedule_placement(placement, problem), Motes(problem, placement), 0
    for begin in range(0, 80, agenda.period):
        for tick in range(begin, begin + agenda.period, 10):
            motes.sample(tick, {site: (site, 1) for site in motes.memories})
        for site in placement.tree.leaves_first:
            sent += len(motes.hand_over(site, begin + agenda.period))
    assert sent == 5 * 2
    [shape] = motes.shapes.values()
    came = [p for _, payload in motes.arrived for p in decode_partials(payload, shape, 0)]
    assert [(p.readings, p.contributors, p.states) for p in came] == [(20, 0b11111, ((20, 60),))] * 2
