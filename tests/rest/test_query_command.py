"""`moteloom query` beside other users: an operator sees whose a name is, and can type it as it is listed."""

import pytest

from basestation.rest.access import TokenScope
from basestation.station.rest_server import RestServer
from gateway.cli import dispatch
from tests.docs.commands import verbs
from tests.rest.running_station import RunningStation
from tests.station.small_network import QUERIES

VERBS = verbs()


@pytest.mark.promise("access")
def test_list_of_several_owners_has_names_as_they_are_typed(tmp_path, capsys):
    with RunningStation(tmp_path) as station, RestServer(station.control, station.tokens) as server:
        tokens = {
            name: station.tokens.create(name, [scope])
            for name, scope in (("anna", TokenScope.SUBMIT), ("ben", TokenScope.SUBMIT), ("olga", TokenScope.OPERATE))
        }

        def query(user, *arguments, code=0):
            at = ("--url", server.url, "--token", tokens[user])
            assert dispatch(["query", *arguments, *at], VERBS) == code
            return capsys.readouterr()

        for user in ("anna", "ben"):
            query(user, "submit", "--name", "mean", QUERIES[2])
        assert [line.split()[2:3] for line in query("ben", "list").out.splitlines()] == [["mean:"]]
        listed = [line.split()[2] for line in query("olga", "list").out.splitlines()]
        assert listed == ["anna.mean:", "ben.mean:"]
        for name, number in zip(listed, (1, 2), strict=True):
            assert query("olga", "show", name.rstrip(":")).out.startswith(f"query {number}, mean: ")
        refused = query("olga", "stop", "mean", code=2)
        assert "2 queries have the name `mean`" in refused.err and "anna.mean, ben.mean" in refused.err
        query("olga", "stop", "ben.mean")
        assert "stopped" in query("ben", "show", "mean").out and "stopped" not in query("anna", "show", "mean").out
