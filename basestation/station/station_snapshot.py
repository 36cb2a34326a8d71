"""Station snapshots: the whole state of a station as bytes, and the station from them.

Written like those of the engine (`basestation.execution.snapshot`): only classes of our packages are read back. The
transport and the listeners belong to the process: a snapshot leaves them out, a restore attaches them.
"""

import hashlib
import io
import os
import pickle
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from basestation.execution.snapshot import SnapshotError, StateReader
from basestation.station.query_accounts import TIMER
from basestation.station.service import Station, ignore_migration
from basestation.station.state_migration import (
    CURRENT,
    HEAD,
    OLDEST,
    ClassName,
    Renewal,
    find_format,
    find_renewals,
    read_head,
)

_OURS = HEAD % (*CURRENT, *sys.version_info[:2])

LONGEST_SECONDS = 600
"""A copy of the process that needs longer hangs: it was made while another thread held a lock."""
_ALWAYS: dict[str, object] = {"no listener": ignore_migration, "timer": TIMER}
"""Functions that a station refers to wherever it runs."""


_MISFITS = AttributeError, EOFError, ImportError, LookupError, TypeError, ValueError
"""Raised by classes that are not what they were when the state was written."""


class _Writer(pickle.Pickler):
    """Names what belongs to the process instead of writing it."""

    def __init__(self, file: io.BytesIO, outside: dict[int, str]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._outside = outside

    def persistent_id(self, value: object) -> str | None:
        return self._outside.get(id(value))


class _Reader(StateReader):
    """Attaches what belongs to the process, and renews the objects of an older format."""

    def __init__(self, file: io.BytesIO, outside: dict[str, object], renewals: Mapping[ClassName, Renewal]) -> None:
        super().__init__(file)
        self._outside, self._renewals, self._unfinished = outside, renewals, set[int]()

    def load(self) -> Any:
        """Read the state. UnpicklingError where an object of a changed class has no values to renew."""
        found = super().load()
        if self._unfinished:
            raise pickle.UnpicklingError(f"{len(self._unfinished)} objects of an older program have no values")
        return found

    def find_class(self, module: str, name: str) -> Any:
        renewal = self._renewals.get((module, name))
        if renewal is None:
            return super().find_class(module, name)
        return renewal.stand_in(super().find_class(*renewal.now), self._unfinished)

    def persistent_load(self, name: Any) -> object:
        if name not in self._outside:
            raise pickle.UnpicklingError(f"nothing outside is called {name}")
        return self._outside[name]


def save_station(station: Station, outside: dict[str, object]) -> bytes:
    """The state of a station between two steps, without what is `outside`, by name."""
    file = io.BytesIO()
    _Writer(file, {id(value): name for name, value in (outside | _ALWAYS).items()}).dump(station)
    body = file.getvalue()
    return _OURS + hashlib.sha256(body).digest() + body


def restore_station(data: bytes, outside: dict[str, object]) -> Station:
    """The station whose state it was. SnapshotError where the bytes are damaged, or of a version that cannot be read here."""
    renewals = find_renewals(find_format(data))
    head = data[: data.find(b"\n") + 1]
    if renewals is None:
        raise SnapshotError(
            f"another version wrote this state, as `{read_head(data)}`; `{_OURS.decode().strip()}`, and older ones from station "
            f"{OLDEST[0]} on engine {OLDEST[1]} on, can be read here"
        )
    begin = len(head) + hashlib.sha256().digest_size
    digest, body = data[len(head) : begin], data[begin:]
    if hashlib.sha256(body).digest() != digest:
        raise SnapshotError("the state of the station is damaged")
    try:
        station = _Reader(io.BytesIO(body), outside | _ALWAYS, renewals).load()
    except (pickle.UnpicklingError, *_MISFITS) as why:
        raise SnapshotError(f"this is not the state of a station: {why}") from why
    if not isinstance(station, Station):
        raise SnapshotError("this is not the state of a station")
    return station


class BackgroundSnapshot:
    """A snapshot that a copy of the process writes, so that the station goes on meanwhile.

    The copy shares the memory as it is now; it pickles the station into a file and ends without doing anything else.
    It closes the files that it inherited, so that the lock of the data directory and the port end with the process
    that owns them. OSError where there is no memory for it.
    """

    def __init__(self, station: Station, outside: dict[str, object], path: Path, entry: int, at_ms: int) -> None:
        self.entry, self.at_ms, self._path, self._begun = entry, at_ms, path, time.monotonic()
        self._process = os.fork()
        if self._process == 0:
            code = 1
            try:
                os.closerange(3, os.sysconf("SC_OPEN_MAX"))
                path.write_bytes(save_station(station, outside))
                code = 0
            finally:
                os._exit(code)

    def poll(self) -> bytes | None:
        """The snapshot once it is written, None before. SnapshotError where the copy could not write it."""
        process, status = os.waitpid(self._process, os.WNOHANG)
        if process == 0:
            if time.monotonic() - self._begun < LONGEST_SECONDS:
                return None
            self.discard()
            raise SnapshotError(f"the snapshot was not written in {LONGEST_SECONDS} s")
        if status:
            self._path.unlink(missing_ok=True)
            raise SnapshotError(f"the snapshot could not be written: status {status}")
        body = self._path.read_bytes()
        self._path.unlink()
        return body

    def discard(self) -> None:
        """End the copy, and drop what it wrote."""
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        self._path.unlink(missing_ok=True)
