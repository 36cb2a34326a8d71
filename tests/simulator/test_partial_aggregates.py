"""Partials that arrive equal the aggregates of the readings in them, whatever was lost on the way."""

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import assume, given

from acquisition.schedule import Sampling, Schedule, SensorChannel, sensor_code
from acquisition.ticks import EpochGrid
from gateway.codec import FrameDecoder, encode
from gateway.frame import LARGEST_FRAME, Frame, FrameKind
from innet.partials import Partial
from innet.payload import MoteAssignment, decode_partials, encode_partials
from innet.program.mote_program import MoteProgram
from innet.program.opcodes import assemble
from simulator.duplicate_filter import CAPACITY, REMEMBERED_US, DuplicateFilter
from simulator.energy import Timing
from simulator.kernel import MS, Kernel
from simulator.mote import Mote
from simulator.mote_config import MoteConfig
from simulator.network import Gateway
from simulator.partial_aggregates import Provenance
from simulator.radio_medium import LossyChannel as Links
from simulator.radio_medium import RadioMedium
from simulator.trace import Trace
from tests.simulator.networks import GATEWAY, KIND, SENSORS, TICK_MS, Table, networks


class Listening:
    """The end of a wire that keeps the frames and answers none."""

    def __init__(self):
        self.decoder, self.frames = FrameDecoder(LARGEST_FRAME), {}

    def send(self, data):
        self.decoder.receive_bytes(data)
        for frame in self.decoder.events():
            self.frames[frame.identity] = frame  # repeated, since no answer comes


@given(made=networks())
def test_arrived_partial_equals_aggregate_of_its_readings(made):
    tables = {t.number: t for each in made.configs.values() for p in each.orders.programs for t in p.tables}
    assume(tables)
    kernel, trace, provenance, wire = Kernel(made.begin_us), Trace(), Provenance(), Listening()
    medium = RadioMedium(kernel, trace, made.channel())
    Gateway(GATEWAY, Timing.of(KIND), kernel, medium, trace, provenance).wire = wire
    for site in made.configs:
        Mote(site, 1, kernel, medium, trace, SENSORS, kind=KIND, provenance=provenance).install(made.configs[site])
    kernel.run_until(made.end_us - 1)

    measured = {(e.mote, e["tick"]): e["values"][0] for e in trace.of("produced")}
    said, told = defaultdict(list), defaultdict(list)
    for frame in wire.frames.values():
        if frame.kind is FrameKind.PARTIAL:
            table = tables[frame.payload[0]]
            for partial in decode_partials(frame.payload, table.shape, frame.mote):
                said[partial.slice, partial.bare, partial.group].append(partial)
    seen = set()
    for e in trace.of("merged"):
        readings = [tuple(map(int, reading.split(":"))) for reading in e["readings"].split(",")]
        assert not seen & set(readings)  # nothing counts twice
        seen.update(readings)
        told[e["slice"], bool(e["bare"]), e["group"]].append(readings)
    assert {place: len(found) for place, found in said.items()} == {place: len(found) for place, found in told.items()}
    for place, partials in said.items():
        expected = sorted(_states(readings, measured, place[1]) for readings in told[place])
        assert sorted((p.readings, p.contributors.bit_count(), p.states or ()) for p in partials) == expected


def _states(readings, measured, bare):
    """(readings, contributors, SUM and MAX) of some readings."""
    values = [measured[reading] for reading in readings]
    sites = len({site for site, _ in readings})
    return len(readings), sites, () if bare else ((len(values), sum(values)), (1, max(values)))


TABLE = Table((1, 2), 10, (0, 0), False, None)
SAMPLING = Sampling(3, "", EpochGrid(0, 10), (SensorChannel("", sensor_code("temperature"), 16),))
FOLDS = MoteAssignment((MoteProgram(1, 3, 1, 1, TABLE.code(1) + TABLE.folding() + assemble("HALT")),))
SCHEDULE, NOTHING = Schedule(1, 1, (SAMPLING,)), Schedule(1, 0, ())
CASES = {
    "it begins to fold": [(NOTHING, MoteAssignment()), (SCHEDULE, FOLDS)],
    "it measures no more for a while": [(SCHEDULE, FOLDS), (NOTHING, FOLDS), (SCHEDULE, FOLDS)],
}


def test_partials_are_numbered_downwards_until_numbers_meet():
    kernel, trace = Kernel(0), Trace()
    out = Mote(1, 5, kernel, RadioMedium(kernel, trace, Links({}, 1)), trace, SENSORS, kind=KIND)._memory.outbox

    def numbers(*kinds):
        return [(frame.boot, frame.seq) for frame in (out.post(kind, b"") for kind in kinds)]

    assert numbers(FrameKind.EVENT, FrameKind.PARTIAL, FrameKind.PARTIAL, FrameKind.READING) == [
        (5, 0),
        (5, 0xFFFF),
        (5, 0xFFFE),
        (5, 1),
    ]
    out._others = 0xFFFD
    assert numbers(FrameKind.EVENT, FrameKind.PARTIAL, FrameKind.EVENT) == [(5, 0xFFFD), (6, 0xFFFF), (6, 0)]


@pytest.mark.promise("no-double-count")
@pytest.mark.parametrize("case", CASES)
def test_copy_of_partial_counts_once_after_new_orders(case):
    """The child has not heard that its frame was taken, and sends it again when its parent has other orders."""
    kernel, trace, parent, frame = parent_and_partial()
    for schedule, orders in CASES[case]:
        parent.install(MoteConfig(schedule, orders, TICK_MS))
        assert parent.forwarder.accept(encode(frame))
    kernel.run_until(30_000 * MS)
    assert home(trace).count("2:0") == 1 < len(home(trace))


@pytest.mark.promise("no-double-count")
def test_possible_copy_after_reboot_is_dropped_and_reported():
    """The child's partial has come home in its parent's; then the parent starts anew, and is offered the copy."""
    kernel, trace, parent, frame = parent_and_partial()
    parent.install(MoteConfig(SCHEDULE, FOLDS, TICK_MS))
    assert parent.forwarder.accept(encode(frame))
    kernel.run_until(15_000 * MS)
    assert home(trace).count("2:0") == 1
    parent.reboot()
    parent.install(MoteConfig(SCHEDULE, FOLDS, TICK_MS))
    assert parent.forwarder.accept(encode(replace(frame, repeated=True)))
    kernel.run_until(60_000 * MS)
    assert home(trace).count("2:0") == 1
    assert [(e.mote, e["origin"], e["seq"]) for e in trace.of("dropped")] == [(1, 2, 0)]
    assert "EVENT" in {e["kind"] for e in trace.of("delivered")}


@pytest.mark.promise("no-double-count")
def test_first_copy_after_reboot_is_taken():
    kernel, trace, parent, frame = parent_and_partial()
    parent.reboot()
    assert not parent.forwarder.accept(encode(frame))  # it has no parent yet; the child offers it again
    parent.install(MoteConfig(SCHEDULE, FOLDS, TICK_MS))
    assert parent.forwarder.accept(encode(replace(frame, repeated=True)))
    kernel.run_until(30_000 * MS)
    assert home(trace).count("2:0") == 1


@pytest.mark.promise("no-double-count")
def test_full_duplicate_filter_doubts_repeats_for_a_while():
    copies = DuplicateFilter(None)
    assert not copies.may_be_forgotten((1, 1, 500), 0)
    for number in range(CAPACITY + 1):
        copies.remember((1, 1, number), number)
    assert not copies.is_known((1, 1, 0)) and copies.is_known((1, 1, 1))
    assert copies.may_be_forgotten((1, 1, 0), REMEMBERED_US - 1)
    assert not copies.may_be_forgotten((1, 1, 0), REMEMBERED_US)


def parent_and_partial():
    """A kernel, its trace, a mote without orders, and a partial of its child with the reading of tick 0."""
    kernel, trace, provenance, wire = Kernel(0), Trace(), Provenance(), Listening()
    medium = RadioMedium(kernel, trace, Links({(1, GATEWAY): 1.0, (GATEWAY, 1): 1.0}, 1))
    Gateway(GATEWAY, Timing.of(KIND), kernel, medium, trace, provenance).wire = wire
    parent = Mote(1, 1, kernel, medium, trace, SENSORS, kind=KIND, provenance=provenance)
    [table] = FOLDS.programs[0].tables
    [payload] = encode_partials(table.shape, [Partial(0, 0b10, 1, (), ((1, 7), (1, 7)))])
    frame = Frame(FrameKind.PARTIAL, 2, 1, 0, payload, sender=2, receiver=1)
    provenance.carry(frame, [((5, 0, False, ()), frozenset({(2, 0)}))])
    return kernel, trace, parent, frame


def home(trace):
    return [reading for e in trace.of("merged") for reading in e["readings"].split(",")]
