"""A durable station and two simulated motes in virtual time, whose process can be ended at any point."""

import json
from pathlib import Path
from typing import Any

from acquisition.extent import Catalog
from basestation.archive.memory import MemoryArchive
from basestation.planner.catalog import read_schema
from basestation.station.durable import DurableStation
from basestation.station.journal import Journal
from basestation.station.service import Station
from gateway.frame import COORDINATOR
from simulator.kernel import Kernel
from simulator.mote import Mote
from simulator.network import Gateway, MoteNetwork
from simulator.physical_fields import Wave
from simulator.radio_medium import NullChannel, RadioMedium
from simulator.sensor import Sensor
from simulator.trace import Trace
from simulator.transport import connect

SCHEMA = """
field: sensed (site:integer, time:integer, temp:float {unit 'Cel', sensor 'temperature', scale 2, range -40 .. 125},
               volt:integer) every 10 sec at sites 3, 4 wait 5 sec late revise by 1 hour
"""
QUERIES = ("SELECT temp FROM field [NOW]", "SELECT site, volt FROM field WHERE temp > 20",
           "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM field [FROM NOW-20 TO NOW SLIDE 20 SEC]")  # fmt: skip
BEGIN_MS = 1_763_452_795_000
CATALOG = read_schema(SCHEMA)
LOOK_MS = 250


class Crash(BaseException):
    """The process ends here."""


class CrashingJournal(Journal):
    """Ends the process at a commit, before or after it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.commits_left: int | None = None
        self.crashes_before = True

    def commit(self, *given, **named) -> None:
        if self.commits_left is not None:
            self.commits_left -= 1
            if self.commits_left < 0 and self.crashes_before:
                raise Crash
        super().commit(*given, **named)
        if self.commits_left is not None and self.commits_left < 0:
            raise Crash


class SmallNetwork:
    """Two motes that live on while the station's process ends and starts again. `boot` counts the starts of the motes."""

    def __init__(self, folder: Path, catalog: Catalog = CATALOG, begin_ms: int = BEGIN_MS, boot: int = 1) -> None:
        self.catalog = catalog
        trace, kernel = Trace(), Kernel(begin_ms * 1_000)
        air = RadioMedium(kernel, trace, NullChannel())
        sensors = (
            Sensor("temperature", Wave(mean=20.0, swing=3.0, period_ms=600_000, per_site=0.1), scale=2),
            Sensor("volt", Wave(2987.0)),
        )
        motes = [Mote(site, boot, kernel, air, trace, sensors) for site in (3, 4)]
        gateway = Gateway(COORDINATOR, motes[0].forwarder.timing, kernel, air, trace)
        self.wire, self.network = connect(lambda end: MoteNetwork(kernel, trace, motes, [gateway], end))
        self.wire.open()
        self.folder, self.now_ms = folder, begin_ms
        self.start()

    def start(self) -> None:
        """Start the station's process."""
        self.journal = CrashingJournal(self.folder)
        self.durable = DurableStation(self.journal, self._begin, self.now_ms)
        self.durable.connect(self.wire)

    def end(self) -> None:
        """End it without a word: what is not committed is gone."""
        self.journal.close()

    def restart(self) -> None:
        self.end()
        self.start()

    def live(self, seconds: float) -> None:
        """Let motes and station live."""
        for _ in range(int(seconds * 1_000 / LOOK_MS)):
            self.now_ms += LOOK_MS
            self.network.run_until(self.now_ms)
            self.durable.step(self.now_ms)

    def advance(self, now_ms: int) -> None:
        """Let the motes live, as what lives beside a runner."""
        self.network.run_until(now_ms)

    def submit(self, text: str, key: str | None = None, name: str | None = None) -> int:
        return self.durable.submit(text, self.now_ms, key, name)

    def change(self, kind: str, number: int) -> None:
        self.durable.change(kind, number, self.now_ms)

    def query(self, number: int) -> dict[str, Any]:
        """A query as clients see it."""
        return json.loads(self.journal.query(number) or "null")

    def events(self, query: int | None = None) -> list[str]:
        """The kinds of all events, or of those about a query."""
        found = [(kind, json.loads(body)) for _, _, kind, body in self.journal.events(0, 10_000)]
        return [kind for kind, body in found if query in (None, body.get("query"))]

    def answers(self, query: int) -> str:
        """All lines of a query's feed."""
        return "".join(chunk.lines for chunk in self.journal.results(query, 0, 10**9))

    def _begin(self, transport, now_ms):
        return Station(self.catalog, transport, MemoryArchive(), boot=1, now_ms=now_ms)
