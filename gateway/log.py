"""Structured logging: one line of key=value pairs, or of JSON, on standard error for each event, with the standard library.

    log = get_log(__name__)
    log.info("transport opened", kind="memory")

prints `time=2026-11-18T08:00:00.000Z level=info log=gateway.transports event="transport opened" kind=memory`. Only
modules at the edges log: the command, transports, the station service. Pure modules return values instead.
"""

import json
import logging
import sys
from datetime import UTC, datetime

ROOT = "moteloom"
LEVELS = ("debug", "info", "warning", "error")
DEFAULT_LEVEL = "warning"
FORMATS = ("text", "json")


class EventLog:
    """Logs events of one module; the keyword arguments become the pairs of the line."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"{ROOT}.{name}")

    def debug(self, event: str, **fields: object) -> None:
        """Log a detail for developers."""
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log normal operation."""
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log a condition that an operator should know."""
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Log a failure."""
        self._log(logging.ERROR, event, fields)

    def _log(self, level: int, event: str, fields: dict[str, object]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={"fields": fields})


class KeyValueFormatter(logging.Formatter):
    """Formats a record as key=value pairs; a value with blanks, quotes or control characters is quoted."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        return " ".join(f"{key}={_quoted(value)}" for key, value in _fields(record, self).items())


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        return json.dumps(_fields(record, self), ensure_ascii=False, default=str)


def _fields(record: logging.LogRecord, formatter: logging.Formatter) -> dict[str, object]:
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields: dict[str, object] = {
        "time": time,
        "level": record.levelname.lower(),
        "log": record.name.removeprefix(f"{ROOT}."),
        "event": record.getMessage(),
        **getattr(record, "fields", {}),
    }
    if record.exc_info:
        fields["exception"] = formatter.formatException(record.exc_info)
    return fields


def get_log(name: str) -> EventLog:
    """Return the log of a module."""
    return EventLog(name)


def configure_logging(level: str = DEFAULT_LEVEL, form: str = "text") -> None:
    """Write events of at least this level (one of `LEVELS`) to standard error, once however often this is called.

    `form` is one of `FORMATS`.
    """
    root = logging.getLogger(ROOT)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else KeyValueFormatter())
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False


def _quoted(value: object) -> str:
    text = str(value)
    if text and text.isprintable() and not any(c in text for c in ' "='):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
