"""Numbers on the air after a restore: motes may still have readings under those that the backup does not know."""

import json

from basestation.station import journal_file
from basestation.station.held_transport import DISCONNECTED
from tests.station.small_network import QUERIES, SmallNetwork


def test_readings_of_a_lost_sampling_are_not_read_as_another(tmp_path):
    """
    backup │ sampling of volt: readings wait on motes │ restore │ sampling of temp │ the waiting readings arrive
    """
    network = SmallNetwork(tmp_path / "data")
    first = network.submit(QUERIES[0])
    network.live(30)
    network.change("stop", first)
    network.live(10)
    journal_file.backup(network.folder, tmp_path / "copy.db")
    network.submit("SELECT volt FROM field [NOW]")
    network.live(30)
    lost = set(network.durable.station.world.scheduled.running)
    network.durable.connect(DISCONNECTED)
    network.live(30)  # readings wait
    network.end()
    journal_file.restore(tmp_path / "copy.db", network.folder)
    network.start()
    number = network.submit("SELECT site, temp FROM field [NOW]")
    network.live(120)
    assert lost.isdisjoint(network.durable.station.world.scheduled.samplings) and lost
    lines = [json.loads(line) for line in network.answers(number).splitlines()]
    values = [row[1] for line in lines if line["type"] == "window" for row in line.get("rows", line.get("added", ()))]
    assert len(values) > 8 and all(10 < value < 30 for value in values)  # 2987 mV would be 29.87 degrees at the least


def test_gap_is_left_out_once(tmp_path):
    network = SmallNetwork(tmp_path)
    gap = network.durable.station.world.scheduled.gap
    assert 64 <= gap < 128 and network.durable.station.world.last_fold == gap
    network.submit(QUERIES[0])
    network.submit(QUERIES[1])
    world = network.durable.station.world
    assert list(world.scheduled.samplings) == [gap, gap + 1] and world.scheduled.gap == 0
    assert world.with_number_gap(200).last_fold == 200
