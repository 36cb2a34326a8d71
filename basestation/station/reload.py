"""Reload: what has changed in a deployment file since the station began, by name.

A running station keeps the deployment that it began with: its schedules, programs and links are made for it. So changes are
found and named, and not taken (docs/decisions/0172).
"""

from collections.abc import Iterator, Mapping

from acquisition.extent import Catalog
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.station.declared_extents import without_declared
from innet.deployment import Deployment


def describe_changes(
    running: Deployment, catalog: Catalog, fresh: Deployment, declared: frozenset[str] = frozenset()
) -> list[str]:
    """Each change from the running deployment to a fresh one. DiagnosticError where the fresh schema does not fit.

    Users have `declared` some extents of the catalog.
    """
    found = [
        f"`{name}` is {getattr(fresh, name)!r}, the station runs with {getattr(running, name)!r}"
        for name in ("name", "tick_ms")
        if getattr(fresh, name) != getattr(running, name)
    ]
    found += _compare("gateway", running.gateways, fresh.gateways)
    found += _compare("mote", running.motes, fresh.motes)
    if running.links != fresh.links:
        found.append("`links` changed: they are where planning begins, motes measure their links themselves")
    found += _compare("extent", without_declared(catalog, declared), read_deployed_catalog(fresh).extents)
    return found


def _compare(what: str, running: Mapping[int, object] | Mapping[str, object], fresh: Mapping[int, object] | Mapping[str, object]) -> Iterator[str]:  # fmt: skip
    before, after = dict(running.items()), dict(fresh.items())
    for key in sorted({*before, *after}, key=str):
        if key not in after:
            yield f"{what} {key} is missing"
        elif key not in before:
            yield f"{what} {key} is new"
        elif before[key] != after[key]:
            yield f"{what} {key} changed"
