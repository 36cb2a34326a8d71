"""Metrics: figures of a running station for monitoring, under the names that Prometheus has for such."""

from collections import Counter

from basestation.controller.query_lifecycle import QueryState
from basestation.rest.control import Metric
from basestation.station.mote_status import MoteHealth
from basestation.station.runner import Runner


def measure_station(runner: Runner, now_ms: int) -> list[Metric]:
    """The figures now. Only the station's thread may call it; it changes nothing."""
    durable = runner.durable
    station, storage = durable.station, durable.journal.storage
    states = Counter(query.state for query in station.world.queries.values())
    healths = Counter(station.motes.health.get(mote, MoteHealth.UNKNOWN) for mote in station.reconcilers.by_mote)
    readings: Counter[tuple[str, ...]] = Counter()
    for extent, sites in station.account().items():
        for entries in sites.values():
            readings.update({(extent, fate): count for fate, count in entries.items()})
    return [
        Metric("moteloom_up", "1 while the station commits what it does.", (), {(): float(runner.is_committing)}),
        Metric("moteloom_link_up", "1 while the link to the motes works.", (), {(): float(runner.is_linked)}),
        Metric("moteloom_clock_seconds", "Time of the station at its last look.", (), {(): runner.looked_ms / 1_000}),
        Metric("moteloom_queries", "Queries that may still answer or be resumed.", ("state",),
               {(state.value,): states[state] for state in QueryState}),
        Metric("moteloom_motes", "Motes by the health that their data shows.", ("state",),
               {(health.value,): healths[health] for health in MoteHealth}),
        Metric("moteloom_readings", "Readings that were due, by what became of them.", ("extent", "fate"), readings),
        Metric("moteloom_frame_errors_total", "Frames that could not be used.", ("code",),
               {(code,): count for code, count in station.errors.items()}),
        Metric("moteloom_results_bytes", "Results in the file of the station, compressed.", (), {(): storage.result_bytes}),
        Metric("moteloom_log_bytes", "Log that no snapshot covers yet.", (), {(): storage.log_bytes}),
        Metric("moteloom_dropped_total", "Results, events and commands dropped by retention.", ("what",),
               {(what,): count for what, count in storage.dropped.items()}),
        Metric("moteloom_snapshot_age_seconds", "Time of the station since its last snapshot.", (),
               {(): max(0, now_ms - durable.snapshot_ms) / 1_000}),
    ]  # fmt: skip
