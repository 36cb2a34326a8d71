"""Limits of queries: one more than there may be is refused, before anything has changed."""

import pytest

from basestation.station.query_limits import QueryLimitError, QueryLimits
from tests.rest.running_station import RunningStation
from tests.station.small_network import QUERIES, SmallNetwork


def test_one_query_too_many_is_refused(tmp_path):
    network = SmallNetwork(tmp_path)
    network.durable.limits = QueryLimits(queries=2)
    first, second = network.submit(QUERIES[0], key="k"), network.submit(QUERIES[1])
    entries = network.journal.last
    with pytest.raises(QueryLimitError, match="the station has 2 queries") as found:
        network.submit(QUERIES[2])
    assert "limits.queries" in found.value.help and network.journal.last == entries
    assert network.submit(QUERIES[0], key="k") == first  # a repeated request is no new query
    network.change("pause", first)
    with pytest.raises(QueryLimitError):
        network.submit(QUERIES[2])
    assert network.durable.replace(second, QUERIES[2], network.now_ms) == 3
    network.change("stop", first)
    network.live(80)
    assert network.submit(QUERIES[0]) == 4


def test_each_user_has_a_limit_of_their_own(tmp_path):
    network = SmallNetwork(tmp_path)
    network.durable.limits = QueryLimits(queries=10, of_user=1)
    submit = network.durable.submit
    submit(QUERIES[0], network.now_ms, owner="anna")
    submit(QUERIES[1], network.now_ms, owner="ben")
    with pytest.raises(QueryLimitError, match="anna has 1 queries"):
        submit(QUERIES[2], network.now_ms, owner="anna")
    submit(QUERIES[2], network.now_ms)


def test_refusal_is_a_problem_with_its_remedy(tmp_path):
    with RunningStation(tmp_path) as station:
        station.network.durable.limits = QueryLimits(queries=1)
        assert station.submit(QUERIES[0]).status_code == 201
        refused = station.submit(QUERIES[1])
        assert (refused.status_code, refused.json()["code"]) == (409, "too-many-queries")
        assert "limits.queries" in refused.json()["detail"]
