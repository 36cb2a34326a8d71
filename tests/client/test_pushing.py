"""The client pushes tuples: mappings or a body; the receipt says which are durable and why the others are not."""

import asyncio

import pytest

from moteloom.client import StationError, connect, connect_async
from tests.client.conftest import served
from tests.station.test_uploads import CATALOG


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with served(tmp_path_factory.mktemp("pushing"), CATALOG) as running:
        yield running


def test_receipt_counts_rows_and_names_the_wrong_ones(running):
    with connect(running.url, running.token) as station:
        receipt = station.push("traffic", [{"lane": 1, "kind": "car"}, {"lane": "one"}, {"lane": 2}])
        assert (receipt["accepted"], receipt["rejected"], receipt["errors"][0]["row"]) == (2, 1, 2)
        assert station.push("traffic", b"lane,kind\n3,bus\n", "text/csv")["accepted"] == 1
        assert station.push("traffic", [])["accepted"] == 0


def test_pushed_tuples_are_answered(running):
    async def use():
        async with connect_async(running.url, running.token) as station:
            query = await station.submit("SELECT lane FROM traffic WHERE lane > 70")
            await station.push("traffic", [{"lane": 71}, {"lane": 7}, {"lane": 72}])
            rows = []
            async for update in query.updates():
                rows += update.rows
                if len(rows) == 2:
                    await query.stop()
                    return rows

    assert sorted(asyncio.run(use())) == [[71], [72]]


@pytest.mark.parametrize(("extent", "rows", "media", "status"), [
    ("nowhere", [{"lane": 1}], "", 404),
    ("traffic", b"lane", "image/png", 415),
    ("traffic", b"\xff\xfe", "application/json", 422),
])  # fmt: skip
def test_wrong_pushes_are_refused(running, extent, rows, media, status):
    with connect(running.url, running.token) as station, pytest.raises(StationError) as refused:
        station.push(extent, rows, media)
    assert refused.value.status == status


def test_values_that_json_cannot_hold_are_refused_here(running):
    with connect(running.url, running.token) as station, pytest.raises(ValueError, match="JSON"):
        station.push("traffic", [{"lane": float("nan")}])
