"""Moteloom as a library.

`moteloom.client` talks to a running station; it needs no part of the engine.

`moteloom.replay` runs queries over recorded data: `docs/your-data.md` shows how.

`moteloom.history` asks the archives of stations with Spark: `docs/history.md` shows how.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acquisition.errors import InputError
    from basestation.replay.recorded_replay import replay
    from basestation.replay.result import Result
    from basestation.station.history_frame import history
    from gateway.diagnostics import DiagnosticError

__all__ = ["DiagnosticError", "InputError", "Result", "history", "replay"]

_PLACES = {
    "replay": "basestation.replay.recorded_replay",
    "history": "basestation.station.history_frame",
    "Result": "basestation.replay.result",
    "InputError": "acquisition.errors",
    "DiagnosticError": "gateway.diagnostics",
}


def __getattr__(name: str) -> Any:
    """Import a name at its first use: the client needs nothing of the engine."""
    if name not in _PLACES:
        raise AttributeError(f"module 'moteloom' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value
