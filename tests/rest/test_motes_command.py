"""`moteloom motes --latest`: values where readings come on their own, and why there are none where they do not."""

import time

from basestation.station.rest_server import RestServer
from gateway.cli import dispatch
from tests.docs.commands import verbs
from tests.rest.running_station import RunningStation
from tests.station.small_network import QUERIES

VERBS = verbs()


def test_extent_without_values_says_what_brings_them(tmp_path, capsys):
    with RunningStation(tmp_path) as station, RestServer(station.control, None) as server:

        def latest():
            assert dispatch(["motes", "--latest", "field", "--url", server.url], VERBS) == 0
            return capsys.readouterr()

        hint = "no reading of field has come on its own; a query such as SELECT * FROM field brings them\n"
        assert latest() == ("", hint)
        station.submit(QUERIES[0])
        station.wait_for(1, 4)
        end = time.monotonic() + 60
        while (found := latest()).err and time.monotonic() < end:
            time.sleep(0.1)
        assert found.err == "" and "temp" in found.out
