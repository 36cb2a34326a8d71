"""Stations: the archives of several stations side by side, as one history whose tuples say in `_station` where they come from."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from acquisition.errors import InputError
from acquisition.extent import Catalog, Extent, ExtentKind
from acquisition.schema import Attribute, Schema, Type

STATION = "_station"
"""The attribute that names the station of a tuple."""
PREFIX = "station="
_NAME = re.compile(r"[\w.-]+")


def find_stations(root: Path) -> dict[str, Path]:
    """The data of each station in a folder of `station=<name>`, by name; none where the folder is that of one station."""
    found = {path.name.removeprefix(PREFIX): path for path in sorted(root.glob(f"{PREFIX}*")) if path.is_dir()}
    for name, path in found.items():
        if not _NAME.fullmatch(name):
            raise InputError(
                "SN501",
                f"expected letters, digits, `.`, `_` and `-` in the name of a station, found `{name}`",
                str(path),
            )
    return found


def data_folders(root: Path) -> list[Path]:
    """The data directories of a history: that of one station, or those of many."""
    return list(find_stations(root).values()) or [root]


def is_of_stations(extent: Extent) -> bool:
    """Whether the tuples of an extent come from many stations."""
    return extent.schema.find(STATION) is not None


def add_station(catalog: Catalog) -> Catalog:
    """The catalog in which each tuple of a stream has the name of its station."""
    column = Attribute(STATION, Type.STRING)
    extents = {
        e.name: e if e.kind is ExtentKind.STORED else replace(e, schema=Schema((*e.schema.attributes, column)))
        for e in catalog
    }
    return replace(catalog, extents=extents)


def merge_catalogs(catalogs: Iterable[tuple[str, Catalog]]) -> Catalog:
    """The extents of all stations, by (name, catalog). The sites of an extent are those of any station.

    InputError where two stations declare an extent otherwise, or count time in other ticks. Tables are left out: each station has its own.
    """
    merged: dict[str, tuple[str, Extent]] = {}
    lengths: dict[int, str] = {}
    for station, catalog in catalogs:
        lengths.setdefault(catalog.tick_ms, station)
        for extent in catalog:
            if extent.kind is ExtentKind.STORED:
                continue
            first, found = merged.setdefault(extent.name, (station, extent))
            sites = None
            if found.sites is not None and extent.sites is not None:
                sites = tuple(dict.fromkeys((*found.sites, *extent.sites)))
            if replace(found, sites=None) != replace(extent, sites=None):
                raise InputError(
                    "SN501",
                    f"the stations `{first}` and `{station}` declare it otherwise; name the declarations that hold with `--schema`",
                    f"extent {extent.name}",
                )
            merged[extent.name] = first, replace(found, sites=sites)
    if len(lengths) > 1:
        each = ", ".join(f"{ms} ms in `{station}`" for ms, station in lengths.items())
        raise InputError("SN501", f"the stations count time in ticks of different lengths: {each}", "archives")
    return Catalog({name: extent for name, (_, extent) in merged.items()}, next(iter(lengths), 1_000))
