"""Predicted costs against slow and obvious computations; and the hardware tables."""

import random
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from innet.costs.energy_model import (
    HopTraffic,
    LevelTraffic,
    MoteWorkload,
    NetworkModel,
    attempt_ms,
    predict,
    propagate_losses,
)
from innet.costs.hardware import Hardware, list_hardware, load_hardware, read_hardware
from innet.costs.hop_delivery import expect_delivery
from innet.routing.topology import Topology
from innet.routing.tree import RoutingTree

SHARES = st.floats(0, 1)


# --- hardware ---


@pytest.mark.promise("predicted-energy")
@pytest.mark.parametrize("name", list_hardware())
def test_every_figure_has_a_source(name):
    found = load_hardware(name)
    assert len(found.sources) == 1 + 9 + 5 + 2
    assert all(len(source) > 10 for source in found.sources.values())


def test_promised_hardware_tables_exist():
    assert list_hardware() == ("esp32", "mica2", "nrf52840", "telosb")
    with pytest.raises(KeyError):
        load_hardware("telos")


@pytest.mark.parametrize("name", list_hardware())
def test_figures_are_plausible(name):
    """Sleep draws least, longer frames take longer, and an acknowledgement is shorter than a frame."""
    found = load_hardware(name)
    radio, processor = found.radio, found.processor
    assert radio.sleep_ma < radio.listen_ma and radio.sleep_ma < radio.send_ma
    assert processor.sleep_ma < processor.active_ma
    assert radio.ack_ms < radio.airtime_ms(1) < radio.airtime_ms(radio.largest_frame)
    assert 1.8 <= found.voltage <= 3.6


def test_figure_without_source_raises_key_error():
    text = 'title = "x"\nvoltage = { is = 3.0 }\n'
    with pytest.raises(KeyError, match="from"):
        read_hardware("x", text)


def test_times_and_energies_by_hand():
    """50 bytes with 17 bytes of overhead at 250 kbit/s; a second of listening at 19.7 mA and 3 V."""
    telosb = load_hardware("telosb")
    assert telosb.radio.airtime_ms(50) == pytest.approx((50 + 17) * 8 / 250)
    assert telosb.joules(telosb.radio.listen_ma, 1_000) == pytest.approx(19.7e-3 * 3)


# --- one hop ---


@pytest.mark.promise("predicted-energy")
@given(there=SHARES, back=SHARES, limit=st.integers(1, 12))
def test_hop_equals_sum_over_attempts(there, back, limit):
    """The oracle goes through the attempts one by one."""
    trying, attempts, copies, never_came = 1.0, 0.0, 0.0, 1.0
    for _ in range(limit):
        attempts += trying
        copies += trying * there
        never_came *= 1 - there
        trying *= 1 - there * back
    found = expect_delivery(there, back, limit)
    assert found.attempts == pytest.approx(attempts, rel=1e-6)
    assert found.copies == pytest.approx(copies, rel=1e-6)
    assert found.delivered == pytest.approx(1 - never_came, abs=1e-9)
    assert found.acknowledged == pytest.approx(1 - trying, abs=1e-9)


def test_hop_agrees_with_random_trials(rng, counts):
    there, back, limit, frames = 0.6, 0.8, 4, counts(20_000, 200_000)
    attempts = copies = delivered = 0
    for _ in range(frames):
        made, arrived = one_frame(rng, there, back, limit)
        attempts, copies, delivered = attempts + made, copies + arrived, delivered + (arrived > 0)
    found = expect_delivery(there, back, limit)
    assert attempts / frames == pytest.approx(found.attempts, rel=0.03)
    assert copies / frames == pytest.approx(found.copies, rel=0.03)
    assert delivered / frames == pytest.approx(found.delivered, rel=0.03)


def one_frame(rng, there, back, limit):
    made = arrived = 0
    for _ in range(limit):
        made += 1
        if rng.random() < there:
            arrived += 1
            if rng.random() < back:
                break
    return made, arrived


# --- a network ---


def line(length, ratio=1.0, attempts=8, battery=31_320.0) -> NetworkModel:
    """Motes 1 to `length` in a line, each hearing its neighbours only; 0 is the gateway."""
    pairs = [(n, n - 1) for n in range(1, length + 1)]
    ratios = {ends: ratio for pair in pairs for ends in (pair, pair[::-1])}
    hardware_of = {n: load_hardware("telosb") for n in range(1, length + 1)}
    batteries = dict.fromkeys(hardware_of, battery)
    return NetworkModel(RoutingTree((0,), dict(pairs)), Topology.of_ratios(ratios), hardware_of, batteries, attempts)


def collecting(length, size=30):
    """Every mote sends one frame of its own and forwards those of all motes behind it."""
    traffic = []
    for n in range(1, length + 1):
        traffic.append(HopTraffic(n, n - 1, 1, size))
        if n < length:
            traffic.append(HopTraffic(n, n - 1, length - n, size, forwarded=True))
    return traffic


def slots(network, traffic):
    """Workloads whose slots just hold the due frames."""
    listen = dict.fromkeys(network.hardware, 0.0)
    for each in traffic:
        if each.receiver in listen:
            listen[each.receiver] += each.frames * attempt_ms(network.hardware[each.receiver], each.size)
    return {mote: MoteWorkload(176.0, 50.0, ms, 2.0 if ms else 1.0) for mote, ms in listen.items()}


@pytest.mark.promise("predicted-energy")
def test_energy_of_one_mote_by_hand():
    """One sample of 320 ms at 0.55 mA, 100 instructions, one frame of 30 bytes to a gateway over a perfect link."""
    network = line(1)
    duty = MoteWorkload(sampled_ma_ms=320 * 0.55, instructions=100, listen_ms=0.0, starts=1.0)
    [(mote, use)] = predict(network, {1: duty}, [HopTraffic(1, 0, 1, 30)], 60_000).motes.items()
    airtime, computing = (17 + 30) * 8 / 250, 100 * 0.015
    awake = 0.58 + airtime + 2 * 0.192 + 11 * 8 / 250
    assert mote == 1
    assert use.sensing == pytest.approx(3 * 0.55 * 320 / 1e6)
    assert use.computing == pytest.approx(3 * 1.8 * computing / 1e6)
    assert use.sending == pytest.approx(3 * (17.4 + 1.8) * airtime / 1e6)
    assert use.listening == pytest.approx(3 * (19.7 + 1.8) * (awake - airtime) / 1e6)
    assert use.sleeping == pytest.approx(3 * 0.0051 * (60_000 - awake - computing) / 1e6)


def test_energy_of_acknowledgements_by_hand():
    """Half of the frames and half of the acknowledgements arrive: 1.5 frames, 1 + 3/4 attempts each, half of which arrive."""
    network = line(2, ratio=0.5, attempts=2)
    ratio = network.topology.ratio(2, 1)
    duties = {1: MoteWorkload(listen_ms=50.0, starts=1.0), 2: MoteWorkload(starts=1.0)}
    found = predict(network, duties, [HopTraffic(2, 1, 1.5, 30)], 60_000)
    sent = 1.5 * (1 + (1 - ratio**2)) * ratio * 11 * 8 / 250
    assert found.motes[1].sending == pytest.approx(3 * (17.4 + 1.8) * sent / 1e6)
    assert found.motes[1].listening == pytest.approx(3 * (19.7 + 1.8) * (50 + 0.58 - sent) / 1e6)


def test_lifetime_is_battery_over_usage():
    network = line(3)
    traffic = collecting(3)
    prediction = predict(network, slots(network, traffic), traffic, 30_000)
    assert prediction.worst == 1
    for mote, use in prediction.motes.items():
        assert prediction.lifetimes[mote] == pytest.approx(31_320 / use.total * 30)


def test_network_without_batteries_has_no_worst_mote():
    network = line(3, battery=inf)
    prediction = predict(network, slots(network, []), [], 30_000)
    assert prediction.worst is None
    assert set(prediction.lifetimes.values()) == {inf}


def test_level_counts_frames_that_pass_it():
    """Five motes in a line: one frame on the last hop, five on the first."""
    network = line(5)
    prediction = predict(network, slots(network, collecting(5)), collecting(5), 30_000)
    assert {level: sent.frames for level, sent in prediction.levels.items()} == {1: 5, 2: 4, 3: 3, 4: 2, 5: 1}
    assert prediction.total == LevelTraffic(15, 15, 15 * 30)


def test_downward_frame_counts_at_its_target_level():
    network = line(2)
    traffic = [HopTraffic(0, 1, 2, 20), HopTraffic(1, 2, 1, 20, forwarded=True)]
    prediction = predict(network, slots(network, traffic), traffic, 30_000)
    assert {level: sent.frames for level, sent in prediction.levels.items()} == {1: 2, 2: 1}


def test_traffic_from_unknown_mote_is_refused():
    network = line(2)
    with pytest.raises(ValueError, match="found 9"):
        predict(network, slots(network, []), [HopTraffic(9, 1, 1, 20)], 30_000)


@given(st.floats(0.3, 1.0), st.integers(1, 6))
def test_losses_reduce_forwarded_frames(ratio, length):
    """The delivery ratio of a mote is the product over the hops of its route."""
    network = line(length, ratio, attempts=2)
    rising, reached = propagate_losses(network, collecting(length), {})
    through = expect_delivery(network.topology.ratio(1, 0), network.topology.ratio(0, 1), 2).delivered
    assert [reached[mote] for mote in range(1, length + 1)] == pytest.approx(
        [through**hops for hops in range(1, length + 1)]
    )
    for each, share, link in rising:
        assert link.delivered == pytest.approx(through)
        expected = 1.0
        if each.forwarded:
            behind = length - each.sender
            expected = sum(through**hops for hops in range(1, behind + 1)) / behind
        assert share == pytest.approx(expected)


@pytest.mark.promise("predicted-energy")
def test_prediction_agrees_with_simulated_hops(rng, counts):
    """Random trials: motes on a tree send frames attempt by attempt, and count the milliseconds in each state."""
    for ratio, allowed in ((1.0, 1e-9), (0.8, 0.03), (0.5, 0.03)):
        network = NetworkModel(
            RoutingTree((0,), {1: 0, 2: 0, 3: 1, 4: 1, 5: 3}),
            Topology.of_ratios(
                {(a, b): ratio for a, b in [(1, 0), (2, 0), (3, 1), (4, 1), (5, 3)] for a, b in ((a, b), (b, a))}
            ),
            {
                1: load_hardware("telosb"),
                2: load_hardware("mica2"),
                3: load_hardware("telosb"),
                4: load_hardware("nrf52840"),
                5: load_hardware("mica2"),
            },
            {},
            attempts=3,
        )
        behind = {1: 3, 2: 0, 3: 1, 4: 0, 5: 0}
        parent = network.tree.parent
        traffic = [HopTraffic(mote, parent[mote], 1, 40) for mote in behind]
        traffic += [HopTraffic(mote, parent[mote], n, 40, forwarded=True) for mote, n in behind.items() if n]
        duties = {mote: MoteWorkload(10.0 * mote, 30.0, 400.0 * n, 1.0 + n) for mote, n in behind.items()}
        predicted = predict(network, duties, traffic, 60_000)
        epochs = counts(4_000, 40_000) if ratio < 1 else 1
        measured = integrated(rng, network, duties, epochs, 40)
        for mote, joules in measured.items():
            assert predicted.motes[mote].total == pytest.approx(joules / epochs, rel=allowed), (ratio, mote)


def integrated(rng: random.Random, network: NetworkModel, duties, epochs, size):
    """Joules of each mote: times in states, summed over attempts, then multiplied."""
    parent, topology = network.tree.parent, network.topology
    sending, waking = dict.fromkeys(duties, 0.0), dict.fromkeys(duties, 0.0)
    for _ in range(epochs):
        waiting = dict.fromkeys([*duties, 0], 1)
        for mote in sorted(duties, reverse=True):  # children have the higher numbers
            radio = network.hardware[mote].radio
            up = parent[mote]
            waking[mote] += duties[mote].starts * radio.startup_ms + duties[mote].listen_ms
            for _ in range(waiting[mote]):
                made, arrived = one_frame(rng, topology.ratio(mote, up), topology.ratio(up, mote), network.attempts)
                sending[mote] += made * radio.airtime_ms(size)
                waking[mote] += made * (radio.airtime_ms(size) + 2 * radio.turnaround_ms + radio.ack_ms)
                waiting[up] += arrived > 0
                if up in duties:
                    sending[up] += arrived * network.hardware[up].radio.ack_ms
    return {mote: energy(network.hardware[mote], duties[mote], sending[mote], waking[mote], epochs) for mote in duties}


def energy(kind: Hardware, duty, sending, waking, epochs):
    computing = epochs * duty.instructions * kind.processor.instruction_us / 1_000
    charge = kind.radio.send_ma * sending + kind.radio.listen_ma * (waking - sending)
    charge += kind.radio.sleep_ma * (60_000 * epochs - waking)
    charge += kind.processor.active_ma * (waking + computing)
    charge += kind.processor.sleep_ma * (60_000 * epochs - waking - computing)
    charge += duty.sampled_ma_ms * epochs
    return kind.voltage * charge / 1e6
