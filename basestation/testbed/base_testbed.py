"""The part that both testbeds share: a station with the tables of a scenario, and its queries by name."""

from pathlib import Path

from acquisition.sources.batch_conversion import table_of
from acquisition.sources.python_values import read_file
from basestation.algebra.vector import Vector
from basestation.archive.interface import Archive
from basestation.archive.memory import MemoryArchive
from basestation.controller.migration import MigrationEvent
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.results.feed import Feed
from basestation.station.service import Station
from gateway.diagnostics import DiagnosticError
from gateway.transports import Transport
from simulator.scenario import Scenario, ScenarioQuery


class BaseTestbed:
    """A station, the numbers of queries by name, the queries that were refused, and the decisions of the re-optimizer."""

    def __init__(self, scenario: Scenario, wire: Transport, archive: Archive | None, pushdown: str, agenda: bool,
                 feed: Feed | None) -> None:  # fmt: skip
        self.scenario = scenario
        self.numbers: dict[str, int] = {}
        self.refused: dict[str, DiagnosticError] = {}
        self.catalog = read_deployed_catalog(scenario.deployment)
        self.archive = MemoryArchive() if archive is None else archive
        self.decided: list[MigrationEvent] = []
        self.station = Station(self.catalog, wire, self.archive, boot=1, now_ms=scenario.begin_ms,
                               deployment=scenario.deployment, pushdown=PushdownPolicy(pushdown), agenda=agenda,
                               on_migration=self._note_decision)  # fmt: skip
        if feed is not None:
            self.station.feed = feed
        self._now_ms = scenario.begin_ms
        self._load_tables()

    @property
    def elapsed_ms(self) -> int:
        """The simulated time since the scenario began. It differs a little from the time that was asked for: steps are whole."""
        return self._now_ms - self.scenario.begin_ms

    @property
    def configured_ms(self) -> int:
        """When some mote last changed, or will change, what it runs: milliseconds after the scenario begins."""
        return 0

    def spent(self) -> dict[int, float]:
        """Joules of each mote so far."""
        raise NotImplementedError

    def _note_decision(self, decided: MigrationEvent) -> None:
        self.decided.append(decided)

    def _load_tables(self) -> None:
        """Load the files of stored extents. They lie beside the schema that names them."""
        folder = Path(self.scenario.deployment.extents.name or ".").parent
        for extent in self.catalog:
            if extent.source is not None:
                columns, valid = table_of(read_file(folder / extent.source), extent, self.catalog.tick_ms)
                vectors = {name: Vector(values, valid.get(name)) for name, values in columns.items()}
                self.station.load(extent.name, vectors, self._now_ms)

    def _submit(self, query: ScenarioQuery) -> None:
        try:
            self.numbers[query.name] = self.station.submit(query.text, self._now_ms).number
        except DiagnosticError as error:
            self.refused[query.name] = error
