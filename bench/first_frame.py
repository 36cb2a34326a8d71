"""From the submission of a query over REST to the first frame that tells a mote about it, in real time, with the 54 motes of examples/lab54.

`python -m bench.first_frame`. A client submits a query, and stops it once the motes are configured; then the next one. Each reads another
attribute or over another range, so that each needs a new schedule or program. The frame is noted where the station hands it to the radio's wire.
`--beside` lets so many other queries run.
"""

import argparse
import http.client
import json
import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from basestation.station.live_control import LiveControl
from basestation.station.rest_server import RestServer
from basestation.station.runner import Runner, ScaledClock
from bench.rest import UNLIMITED
from bench.station import WARM_MS, Office
from gateway import framing
from gateway.codec import decode
from gateway.frame import FrameKind

TEXTS = (
    "SELECT site, temp FROM lab [NOW]",
    "SELECT AVG(humidity) AS mean FROM lab [NOW]",
    "SELECT site, light FROM lab WHERE light > 400",
    "SELECT MAX(temp) AS high FROM lab [FROM NOW-5 MIN TO NOW SLIDE 1 MIN]",
)
CONFIGURING = FrameKind.SCHEDULE, FrameKind.PROGRAM
LONGEST_SECONDS = 120.0
SETTLED_SECONDS = 5.0
"""Without a frame of these kinds, after which motes have all that they need."""


class NotedWire:
    """Notes when frames go out that give a mote a schedule or a program."""

    def __init__(self, wire):
        self._wire = wire
        self.sent = []

    def receive(self):
        return self._wire.receive()

    def send(self, data):
        now = time.perf_counter()
        frames = (decode(framing.unstuff(stuffed)) for stuffed in data.split(framing.DELIMITER) if stuffed)
        self.sent += [now for frame in frames if frame.kind in CONFIGURING]
        self._wire.send(data)

    def first_after(self, begin):
        """When the first such frame went out after a time."""
        end = begin + LONGEST_SECONDS
        while time.perf_counter() < end:
            found = next((at for at in self.sent if at >= begin), None)
            if found is not None:
                return found
            time.sleep(0.001)
        raise AssertionError(f"no frame within {LONGEST_SECONDS} s")

    def settle(self):
        """Until no such frame goes out any more."""
        while self.sent and time.perf_counter() - self.sent[-1] < SETTLED_SECONDS:
            time.sleep(0.1)


def post(port, path, body=""):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, body)
    answer = connection.getresponse()
    found = json.loads(answer.read())
    assert answer.status < 300, found
    connection.close()
    return found


def describe(name, seconds):
    median, late = np.percentile(seconds, (50, 99))
    return (
        f"{name}: {1_000 * median:.0f} ms (median), {1_000 * late:.0f} ms (99 %), {1_000 * max(seconds):.0f} ms (most)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20, help="submissions")
    parser.add_argument("--beside", type=int, default=0, help="queries that run meanwhile")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        office = Office(Path(name))
        if options.beside:
            office.submit(options.beside)
        office.live(WARM_MS // 3)
        wire = NotedWire(office.wire)
        office.durable.connect(wire)
        runner = Runner(office.durable, ScaledClock(time.monotonic, office.now), office.motes)
        thread = threading.Thread(target=runner.run)
        answers, frames = [], []
        with RestServer(LiveControl(runner), None, limits=UNLIMITED) as rest:
            thread.start()
            try:
                port = int(rest.url.rsplit(":", 1)[1])
                for number in range(options.count):
                    wire.settle()
                    begin = time.perf_counter()
                    query = post(port, "/v1/queries", TEXTS[number % len(TEXTS)])["number"]
                    answers.append(time.perf_counter() - begin)
                    frames.append(wire.first_after(begin) - begin)
                    wire.settle()
                    post(port, f"/v1/queries/{query}/stop")
                    time.sleep(1)
            finally:
                runner.stop()
                thread.join()
        print(f"{options.count} submissions beside {options.beside} queries, load average {os.getloadavg()[0]:.1f}")
        print(describe("answer of the request", answers))
        print(describe("first frame to a mote", frames))


if __name__ == "__main__":
    main()
