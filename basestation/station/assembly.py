"""Assembly: a new station for a deployment, with its catalog, its stored tables and its archive."""

from dataclasses import dataclass
from pathlib import Path

from acquisition.errors import InputError
from acquisition.extent import Catalog
from acquisition.sources.batch_conversion import table_of
from acquisition.sources.python_values import read_file
from basestation.algebra.vector import Vector
from basestation.archive.memory import MemoryArchive
from basestation.archive.spark.master import parse_master
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.station.declared_extents import without_declared
from basestation.station.journal_file import JournalError
from basestation.station.service import Station
from gateway.broker_settings import is_loopback
from gateway.errors import TransportError
from gateway.source import did_you_mean
from gateway.transports import Transport
from innet.deployment import Deployment
from innet.deployment.archive_table import ArchiveSettings
from innet.deployment.history_table import HistorySettings
from innet.deployment.toml_reader import read_archive_settings, read_history_settings


@dataclass(frozen=True, slots=True)
class StationFactory:
    """Makes the first station of a data directory; a restart restores it instead."""

    deployment: Deployment
    catalog: Catalog
    is_duty_cycled: bool

    def __call__(self, transport: Transport, now_ms: int) -> Station:
        station = Station(
            self.catalog,
            transport,
            MemoryArchive(),
            boot=1,
            now_ms=now_ms,
            deployment=self.deployment,
            agenda=self.is_duty_cycled,
        )
        folder = Path(self.deployment.extents.name or ".").parent
        for extent in self.catalog:
            if extent.source is not None:
                columns, valid = table_of(read_file(folder / extent.source), extent, self.catalog.tick_ms)
                vectors = {name: Vector(values, valid.get(name)) for name, values in columns.items()}
                station.load(extent.name, vectors, now_ms)
        return station

    def check(self, station: Station, declared: frozenset[str] = frozenset()) -> None:
        """JournalError where a restored station is that of another deployment; users have `declared` some extents."""
        kept = station.world.deployment
        if (
            kept is None
            or (kept.name, kept.tick_ms, kept.motes, kept.gateways)
            != (self.deployment.name, self.deployment.tick_ms, self.deployment.motes, self.deployment.gateways)
            or without_declared(station.world.catalog, declared) != self.catalog.extents
            or station.world.catalog.tick_ms != self.catalog.tick_ms
        ):
            name = repr(kept.name) if kept is not None and kept.name != self.deployment.name else "one before a change"
            raise JournalError(
                f"the data directory belongs to another deployment than {self.deployment.name!r}: {name}",
                "choose another with --data",
            )
        if station.world.duty_cycled != self.is_duty_cycled:
            was = "with" if station.world.duty_cycled else "without"
            raise JournalError(f"the station of this data directory runs {was} --agenda", f"start it {was} --agenda")


def make_factory(deployment: Deployment, is_duty_cycled: bool) -> StationFactory:
    """The factory for a deployment; DiagnosticError where its schema does not fit."""
    return StationFactory(deployment, read_deployed_catalog(deployment), is_duty_cycled)


def read_archive_limits(config: str | None, catalog: Catalog) -> ArchiveSettings:
    """The limits of the archive in a deployment's file; none without a file. InputError where it names an unknown extent."""
    if config is None:
        return ArchiveSettings()
    settings = read_archive_settings(config)
    for name in settings.by_extent:
        if catalog.find(name) is None:
            names = [extent.name for extent in catalog]
            help = did_you_mean(name, names) or f"extents are {', '.join(f'`{each}`' for each in names)}"
            raise InputError("SN510", f"`[archive.{name}]`: there is no extent `{name}`", config, help=help)
    return settings


def read_spark_settings(config: str | None) -> HistorySettings:
    """Which Spark a deployment's file keeps for historical queries. InputError where it names no master."""
    settings = HistorySettings() if config is None else read_history_settings(config)
    try:
        if parse_master(settings.master).is_connect:
            raise ValueError("a station keeps a Spark of its own: expected `local[N]` or `spark://host:port`")
    except ValueError as why:
        raise InputError("SN510", f"`history.master`: {why}", config) from why
    return settings


def check_exposure(host: str, has_tokens: bool, has_tls: bool, is_plain: bool) -> None:
    """TransportError where an address admits other machines without a token, or unencrypted and not by a setting."""
    if is_loopback(host):
        return
    if not has_tokens:
        raise TransportError(f"without a token the interface may listen on this machine only, not on {host}")
    if not has_tls and not is_plain:
        raise TransportError(
            f"on {host} tokens and results would cross the network unencrypted: name --certificate FILE --key FILE, "
            "or say --no-tls where a proxy or a tunnel encrypts"
        )
