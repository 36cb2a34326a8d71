"""A running station behind a socket, and the client of it."""

from contextlib import contextmanager

import pytest

from basestation.station.rest_server import RestServer
from moteloom.client import connect
from tests.rest.running_station import TOKEN, RunningStation


@contextmanager
def served(folder, *catalog):
    with RunningStation(folder, *catalog) as running, RestServer(running.control, running.tokens) as server:
        running.url = server.url
        running.token = TOKEN
        yield running


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with served(tmp_path_factory.mktemp("station")) as running:
        yield running


@pytest.fixture
def station(running):
    with connect(running.url, running.token) as station:
        yield station
