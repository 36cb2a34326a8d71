"""Declared extents: the pushed and stored extents that users add to those of the deployment."""

import json
from collections.abc import Iterable

from acquisition.extent import Catalog, Extent, ExtentKind
from basestation.planner.catalog import read_schema
from basestation.station.journal import Journal
from gateway.errors import MoteloomError

FACT = "declared extents"
"""The name under which the journal lists them."""
MOST_EXTENTS = 1_000


class ExtentError(MoteloomError):
    """An extent that cannot be declared. `code` is stable, `help` says what to do."""

    def __init__(self, code: str, message: str, help: str) -> None:
        super().__init__(message)
        self.code, self.help = code, help


def read_declaration(text: str, catalog: Catalog) -> Extent:
    """The extent that a text declares beside those of a catalog. DiagnosticError, ExtentError."""
    found = list(read_schema(text, None, catalog.tick_ms))
    if len(found) != 1:
        raise ExtentError("not-one-extent", f"expected one declaration, found {len(found)}", _EXAMPLE)
    [extent] = found
    if extent.kind is ExtentKind.SENSED:
        raise ExtentError(
            "not-declarable", f"`{extent.name}` is sensed: motes of the deployment deliver it",
            f"add it to the schema of the deployment, or declare a pushed or stored extent; {_EXAMPLE}",
        )  # fmt: skip
    if extent.source is not None:
        raise ExtentError(
            "not-declarable", f"`{extent.name}` names a file, and a station reads no file for a client",
            f"leave the file out, then PUT its rows to /v1/extents/{extent.name}/rows",
        )  # fmt: skip
    if extent.name in catalog.extents:
        raise ExtentError(
            "already-declared",
            f"there is an extent `{extent.name}` already",
            "choose another name: tuples of the old one stay",
        )
    if len(catalog.extents) >= MOST_EXTENTS:
        raise ExtentError("too-many-extents", f"the station has {MOST_EXTENTS:,} extents", "use one that it has")
    return extent


def find_declared(journal: Journal) -> frozenset[str]:
    """The names of the extents that users have declared."""
    return frozenset(json.loads(journal.fact(FACT) or "[]"))


def list_declared(journal: Journal, names: Iterable[str]) -> dict[str, str]:
    """The fact that lists these extents beside those that are declared; it is committed with their declaration."""
    return {FACT: json.dumps(sorted(find_declared(journal).union(names)))}


def without_declared(catalog: Catalog, names: frozenset[str]) -> dict[str, Extent]:
    """The extents of the deployment."""
    return {name: extent for name, extent in catalog.extents.items() if name not in names}


_EXAMPLE = "such as `lorries: pushed (lane:integer, weight:integer)`"
