"""A station in a process of its own, which ends itself by SIGKILL at a named point. The motes live on in the process of the test.

`python -m tests.station.killed_station FOLDER POINT COUNT`: at the so manieth time, POINT kills the process; `none` never does.
It reads one JSON object a line, and answers with `done`. Bytes to the motes are printed as the station sends them.
"""

import json
import os
import signal
import sys
from pathlib import Path

from basestation.archive.memory import MemoryArchive
from basestation.station.durable import DurableStation
from basestation.station.journal import Journal
from basestation.station.service import Station
from tests.station.small_network import BEGIN_MS, CATALOG

POINTS = ("commit", "acknowledgement", "snapshot", "cut")
NAMED = tuple(f"{when} {point}" for point in POINTS for when in ("before", "after"))


class Killer:
    """Counts how often a point is passed, and ends the process there."""

    def __init__(self, point: str, count: int) -> None:
        self._point, self._left = point, count

    def passes(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class KilledJournal(Journal):
    """Passes the points of a commit, of a snapshot, and of the cut of the log that is part of its transaction."""

    def __init__(self, folder: Path, killer: Killer) -> None:
        super().__init__(folder)
        self._killer, self._is_cutting = killer, False
        self._db.set_trace_callback(self._trace)

    def commit(self, *given, **named) -> None:
        self._killer.passes("before commit")
        super().commit(*given, **named)
        self._killer.passes("after commit")

    def save_snapshot(self, *given) -> None:
        self._killer.passes("before snapshot")
        super().save_snapshot(*given)
        self._killer.passes("after snapshot")

    def _trace(self, statement: str) -> None:
        if statement.startswith("DELETE FROM entries"):
            self._is_cutting = True
            self._killer.passes("before cut")
        elif self._is_cutting:  # the commit that follows
            self._is_cutting = False
            self._killer.passes("after cut")


class PipeWire:
    """Gives the bytes of one look, and prints those that the station sends."""

    def __init__(self, killer: Killer) -> None:
        self.arrived, self._killer = b"", killer

    def receive(self) -> bytes:
        found, self.arrived = self.arrived, b""
        return found

    def send(self, data: bytes) -> None:
        self._killer.passes("before acknowledgement")
        print(json.dumps({"sent": data.hex()}), flush=True)
        self._killer.passes("after acknowledgement")


def main() -> None:
    killer = Killer(sys.argv[2], int(sys.argv[3]))
    journal, wire = KilledJournal(Path(sys.argv[1]), killer), PipeWire(killer)

    def make(transport, now_ms):
        return Station(CATALOG, transport, MemoryArchive(), boot=1, now_ms=now_ms)

    durable = DurableStation(journal, make, BEGIN_MS)
    durable.connect(wire)
    print(json.dumps({"done": durable.last_ms}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        now_ms, found = request["now_ms"], None
        if "chunk" in request:
            wire.arrived = bytes.fromhex(request["chunk"])
            durable.step(now_ms)
        elif "text" in request:
            found = durable.submit(request["text"], now_ms, request["key"])
        else:
            durable.snapshot(now_ms)
        print(json.dumps({"done": found}), flush=True)


if __name__ == "__main__":
    main()
