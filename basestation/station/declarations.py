"""Declarations: the extents of an archive and the versions of its tables, from its station or from files that declare them."""

from pathlib import Path

from acquisition.errors import InputError
from acquisition.extent import Catalog
from basestation.history.archive_views import Version, read_tables
from basestation.history.stations import add_station, find_stations, merge_catalogs
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.replay.statements import read_catalog
from basestation.station.saved_state import read_saved_state
from innet.deployment.toml_reader import read_deployment


def read_declarations(data: Path, config: str | None, schema: str | None) -> tuple[Catalog, dict[str, list[Version]]]:
    """The catalog of a data directory, or of a folder of many, and the versions of its tables.

    `config` is the file of a deployment, `schema` one of declarations; without either they come from the newest snapshot of each station.
    Raises InputError, JournalError, or DiagnosticError.
    """
    stations = find_stations(data)
    if schema is None and config is None:
        if stations:
            states = [(name, read_saved_state(folder).catalog) for name, folder in stations.items()]
            return add_station(merge_catalogs(states)), {}
        state = read_saved_state(data)
        return state.catalog, {n: [(v.tick, v.columns) for v in found] for n, found in state.tables.items()}
    if schema is not None:
        catalog, folder = read_catalog(_read(schema), schema), Path(schema).parent
    else:
        deployment = read_deployment(str(config))
        catalog, folder = read_deployed_catalog(deployment), Path(deployment.extents.name or ".").parent
    return add_station(catalog) if stations else catalog, read_tables(catalog, folder)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as why:
        raise InputError("SN501", f"cannot be read: {getattr(why, 'strerror', None) or why}", path) from why
