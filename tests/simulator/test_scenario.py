"""From a scenario's file to a world: quantities by place and time, recordings, faults, and what chance makes of crystals."""

import pytest

from simulator.fault_injection import schedule_faults
from simulator.scenario import parse_scenario
from simulator.world_builder import build_world, make_sensors
from tests.simulation.scenario_judge import FOLDER

MINUTE_US = 60_000_000


def scenario(text):
    return parse_scenario(f'deployment = "{FOLDER / "hall.toml"}"\n{text}', FOLDER / "made.toml")


def sensor(told, mote, name):
    return next(each for each in make_sensors(told, 1)[mote] if each.name == name)


def test_a_quantity_is_a_mean_a_place_and_cycles():
    told = scenario("""
        [world.temperature]
        mean = 20.0
        east = 0.1
        north = -0.2
        cycles.day = { swing = 3.0, period = "1 day", phase = "6 hours" }
    """)
    # Mote 3 is at [20, 5], mote 4 at [20, -5]; at noon the wave is at its highest.
    assert sensor(told, 3, "temperature").read(3, 6 * 3_600_000) == 2_000 + 200 - 100
    assert sensor(told, 4, "temperature").read(4, 12 * 3_600_000) == 2_000 + 200 + 100 + 300


def test_a_recording_is_measured_as_it_was_recorded(tmp_path):
    recorded = tmp_path / "recorded.csv"
    recorded.write_text("_tick,_site,heat\n0,3,20.25\n60,3,21.5\n0,4,-3.004\n120,3,\n")
    told = scenario(f"""
        [world.temperature]
        file = "{recorded}"
        column = "heat"
        hold = "10 min"
    """)
    at = [sensor(told, 3, "temperature").read(3, tick * 1_000) for tick in (0, 59, 60, 119, 120, 600)]
    assert at == [2_025, 2_025, 2_150, 2_150, None, None]
    assert sensor(told, 4, "temperature").read(4, 599_000) == -300
    assert sensor(told, 4, "temperature").read(4, 600_000) is None


def test_a_sensor_gives_no_more_than_it_can():
    told = scenario("[world.supply]\nmean = 9000.0\n")
    assert sensor(told, 1, "supply").read(1, 0) == 4_095


def test_each_crystal_has_its_own_error_within_the_limit():
    told = scenario("[clocks]\nppm = 50\n")
    ppm = [mote.clock._ppm for mote in build_world(told, 1).motes.values()]
    assert all(abs(each) <= 50 for each in ppm)
    assert len(set(ppm)) > 4
    assert ppm == [mote.clock._ppm for mote in build_world(told, 1).motes.values()]


def ratios_at(told, minutes):
    built = build_world(told, 1)
    schedule_faults(told, built, lambda here: None)
    built.kernel.run_until(minutes * MINUTE_US)
    return built


def test_links_change_and_become_as_before():
    told = scenario("""
        [faults.wall]
        what = "links_change"
        at = "1 min"
        until = "3 min"
        links = [[1, 3, 0.1], [7, 1, 0.5]]
    """)
    found = [ratios_at(told, minutes).channel for minutes in (0, 2, 4)]
    assert [channel.ratio(1, 3) for channel in found] == [0.95, 0.1, 0.95]
    assert [channel.ratio(7, 1) for channel in found] == [0.0, 0.5, 0.0]  # there was no such link


def test_whoever_moves_has_its_new_links_and_no_other():
    told = scenario("""
        [faults.carried]
        what = "moves"
        at = "1 min"
        mote = 6
        links = [[6, 7, 0.9], [7, 6, 0.8]]
    """)
    built = ratios_at(told, 2)
    built.motes[7].start()
    assert built.medium.neighbours(6) == [(7, round(0.8 * 255))]
    assert not [link for link in built.channel.ratios if 6 in link and 7 not in link]
    assert built.channel.ratio(3, 5) == 0.8


def test_delivery_makes_every_link_worse():
    assert build_world(scenario("[radio]\ndelivery = 0.5\n"), 1).channel.ratio(0, 1) == pytest.approx(0.49)
