"""The Python client over a station that is killed with -9 and started again: each update once, in order."""

import signal
import threading
import time

import pytest

from moteloom.client import connect
from tests.station.test_run_command import StationProcess


@pytest.mark.promise("resume", "durable")
@pytest.mark.timeout(600)
def test_updates_go_on_over_a_killed_station(tmp_path, counts, rng):
    station = StationProcess(tmp_path)
    station.start()
    lives = counts(1, 10, 100)

    def kill_and_start():
        for _ in range(lives):
            time.sleep(rng.uniform(0.5, 2))
            station.end(signal.SIGKILL)
            station.start()

    try:
        with connect(f"http://127.0.0.1:{station.port}", data=station.data) as client:
            query = client.submit("SELECT site, temp FROM road [NOW]")
            killer = threading.Thread(target=kill_and_start)
            numbers, after = [], 0
            for page in query.pages(wait=1, patience=3_600):  # it may look between two lives only, many times
                if not killer.ident:
                    killer.start()
                numbers += [update.number for update in page]
                after = after + bool(page) if killer.ident and not killer.is_alive() else 0
                if after >= 2:  # pages of the last life of the station
                    break
            killer.join()
            kept = client.get(f"/v1/queries/{query.number}/results", limit=10_000)["updates"]
        assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 2
        assert [update["number"] for update in kept][: len(numbers)] == numbers
    finally:
        station.process.kill()
        station.process.wait()
