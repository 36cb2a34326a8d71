"""Query accounts: what came in for each query, what it answered, and its share of time, state, messages and energy.

Several queries share samplings, frames and operators. Their cost is split so that the shares of all queries add up:

* time and state: of each operator of the station, evenly among the queries that use it now
* messages and joules: the forecast for all motes, by the readings that each query needs. A reading weighs as many hops as
  it travels, and is split evenly among the queries that need it
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import inf
from time import perf_counter_ns
from typing import Any

import numpy as np

from basestation.controller.network_plan import PlanCache
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.world import World
from basestation.execution.counters import OperatorShare
from basestation.execution.engine import Engine
from basestation.updates.update import (
    EpochMark,
    EpochMarks,
    Interleaved,
    TupleUpdates,
    Update,
    WindowUpdate,
    WindowUpdates,
)
from innet.operators.acquire import find_acquires
from innet.routing.tree import RoutingTree

TIMER = perf_counter_ns
"""The timer of a station's engine, in ns. Processor time of a thread would leave out the time of others, but costs ten times as much."""


@dataclass(slots=True)
class QueryAccount:
    """Counts since the query was submitted. `rows` are those of answers and of their revisions, added and removed."""

    tuples_in: int = 0
    partials_in: int = 0
    windows: int = 0
    revisions: int = 0
    rows: int = 0

    def record(self, update: Update) -> None:
        """Count one update, or several in one value."""
        match update:
            case WindowUpdate(revision=revision, added=added, removed=removed):
                self._add_windows(np.array([revision]), len(added) + len(removed))
            case WindowUpdates(revision=revision, added=added, removed=removed):
                self._add_windows(revision, len(added) + len(removed))
            case TupleUpdates():
                self.rows += len(update)
            case Interleaved(tuples=tuples):
                self.rows += len(tuples)
            case EpochMark() | EpochMarks():
                pass

    def _add_windows(self, revision: Any, rows: int) -> None:
        revised = int(np.count_nonzero(revision))
        self.windows += len(revision) - revised
        self.revisions += revised
        self.rows += rows


class QueryAccounts:
    """The accounts of the queries that a station remembers, by number."""

    def __init__(self) -> None:
        self._by_number: dict[int, QueryAccount] = {}

    def of(self, number: int) -> QueryAccount:
        """The account of a query; a new one has counted nothing."""
        return self._by_number.setdefault(number, QueryAccount())

    def record_arrivals(
        self, readings: Iterable[tuple[str, int]], partials: Iterable[tuple[int, int]], world: World
    ) -> None:
        """Count readings by extent and partial states by fold for each live query that reads them."""
        of_extent, of_fold = Counter[str](), Counter[int]()
        for extent, count in readings:
            of_extent[extent] += count
        for fold, count in partials:
            of_fold[fold] += count
        if not of_extent and not of_fold:
            return
        for number, query in world.live.items():
            account = self.of(number)
            account.tuples_in += sum(of_extent[extent] for extent in {each.extent for each in query.all_deliveries})
            account.partials_in += sum(of_fold[source.number] for source in query.all_partial_sources)

    def close(self, number: int) -> None:
        """Forget a query that answers nothing any more."""
        self._by_number.pop(number, None)


@dataclass(frozen=True, slots=True)
class NetworkShare:
    """The share of a query in the forecast of all motes in an hour."""

    messages: float
    joules: float


def share_network(world: World, now: int) -> dict[int, NetworkShare]:
    """By its number, the share of each live query in what motes do; empty where the motes are not declared, or have no plan."""
    if world.deployment is None or not any(query.needs for query in world.live.values()):
        return {}
    plan = PlanCache(now).plan(world)
    cost = plan.cost
    if cost.joules == inf:
        return {}
    weights = _weigh(world, plan.placement.tree)
    total = sum(weights.values())
    return {
        number: NetworkShare(cost.messages * weight / total, cost.joules * weight / total)
        for number, weight in weights.items()
        if total
    }


def _weigh(world: World, tree: RoutingTree) -> dict[int, float]:
    """By query: its readings in a tick, each times the hops that it travels, split evenly among the queries that need it."""
    needed: dict[tuple[str, int], dict[int, float]] = {}  # by extent and site: the rate that each query needs
    for number, query in world.live.items():
        for extent, every in _intervals(query).items():
            for site in world.catalog.extents[extent].sites or ():
                rates = needed.setdefault((extent, site), {})
                rates[number] = 1 / every
    weights: dict[int, float] = {}
    for (_, site), rates in needed.items():
        hops = tree.depth(site) if site in tree.parent else 0
        for number, rate in rates.items():
            weights[number] = weights.get(number, 0.0) + hops * max(rates.values()) * rate / sum(rates.values())
    return weights


def _intervals(query: QueryRecord) -> dict[str, int]:
    found: dict[str, int] = {}
    for operator in query.operators:
        for extent, acquire in find_acquires(operator).items():
            found[extent] = min(acquire.interval, found.get(extent, acquire.interval))
    return found


def describe_account(
    account: QueryAccount, share: OperatorShare | None, network: NetworkShare | None
) -> dict[str, Any]:
    """The account of a query as a JSON object; shares are None where it does not run, or no motes are declared."""
    return {
        **asdict(account),
        "engine_seconds": None if share is None else round(share.time / 1e9, 6),
        "state_bytes": None if share is None else round(share.bytes),
        "messages_per_hour": None if network is None else round(network.messages, 2),
        "joules_per_hour": None if network is None else round(network.joules, 4),
    }


def find_share(engine: Engine, number: int) -> OperatorShare | None:
    """The share of a query in the engine; None where it does not run."""
    try:
        return engine.share(number)
    except KeyError:
        return None
