"""DurableStation: the commands of users, the archive, and the looks of a station whose every step is committed first."""

import json
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING

from basestation.archive.manifest import FileChange
from basestation.archive.memory import MemoryArchive
from basestation.archive.reports import archived_extent
from basestation.controller.query_lifecycle import QueryStateError
from basestation.station.commands import encode_target
from basestation.station.committed_station import ROLL, CommittedStation
from basestation.station.journal import Command, CommandRecord, Journal, Upload
from basestation.station.journal_file import JournalError, KeyReusedError
from basestation.station.query_changes import defer_resume, find_hours_change
from basestation.station.query_limits import QueryLimitError, QueryLimits
from basestation.station.query_names import check_name, plain_name, qualify
from basestation.station.recovery import MakeStation
from basestation.station.retention import Budget
from basestation.station.uploads import ReadPast, no_past
from gateway.diagnostics import DiagnosticError
from gateway.errors import TransportError

if TYPE_CHECKING:
    from basestation.archive.parquet import ParquetArchive

DAYS_OF_ROLL = 32
"""Files that one roll writes at most: nothing else happens meanwhile. The next roll goes on."""


class DurableStation(CommittedStation):
    """All methods belong to one thread. Times are ms since tick 0."""

    def __init__(self, journal: Journal, make: MakeStation, now_ms: int) -> None:
        """Restore the station of a journal, or begin one. JournalError where neither is possible."""
        self.limits = QueryLimits()
        self.read_past: ReadPast = no_past
        self._hours_checked = 0, 0  # the minute, and the queries
        self._keeps_hours = False
        super().__init__(journal, make, now_ms)

    def step(self, now_ms: int, is_receiving: bool = True) -> bool:
        """Look once; whether everything is committed. Without a commit nothing more is taken from the wire.

        Without `is_receiving` it only ends the clock ticks before a time.
        """
        self._keep_background(now_ms)
        if not self._commit():
            return False
        self._keep_hours(now_ms)
        try:
            chunk = self._wire.receive() if is_receiving else b""
            self.link_failure = None
        except TransportError as why:
            chunk, self.link_failure = b"", str(why)
        self._look(now_ms, chunk)
        is_committed = self._commit() if chunk or self._has_news() else True
        self.station.search_on()
        return is_committed

    def submit(
        self,
        text: str,
        now_ms: int,
        key: str | None = None,
        name: str | None = None,
        owner: str | None = None,
        active: str | None = None,
        keep: int | None = None,
    ) -> int:
        """Accept a query of a user for good; returns its number. DiagnosticError, QueryStateError say why it cannot be.

        A command with a `key` that was used before is not carried out again: the number of the first one is returned.
        The query runs in its `active` hours, if there are some; ActiveHoursError where the text is none. Its newest `keep`
        updates are kept, if that is less than of every query.
        """
        asked, command = (
            Command("submit", now_ms, encode_target(text, None, each, active)) for each in (name, qualify(name, owner))
        )
        return self._carry_out_once(asked, command, name, key, owner, keep)

    def replace(
        self,
        number: int,
        text: str,
        now_ms: int,
        key: str | None = None,
        name: str | None = None,
        active: str | None = None,
        keep: int | None = None,
    ) -> int:
        """Start a query in the place of another, of the same owner, at one tick; returns the new number.

        `key`, `active` and `keep` are as for `submit`.
        """
        self.commit_or_refuse()  # first, so that the journal knows the owner of a query that waited for room
        owner = self.journal.owner(number)
        asked, command = (
            Command("replace", now_ms, encode_target(text, number, each, active))
            for each in (name, qualify(name, owner))
        )
        before = self.station.world.queries.get(number)
        is_same = before is not None and plain_name(before.name) == name
        return self._carry_out_once(asked, command, None if is_same else name, key, owner, keep)

    def take_data(self, entry: Command | Upload, argument: str, key: str | None = None) -> bool:
        """Take an upload or a correction for good; False where one with this key and argument was taken before."""
        self.commit_or_refuse()
        command = Command(entry.kind, entry.now_ms, argument)
        if self._find_repeated(command, key) is not None:
            return False
        self._carry_out(entry, CommandRecord(command, key, None))
        return True

    def _find_repeated(self, command: Command, key: str | None) -> tuple[str, str, int | None] | None:
        """The record of a command that was carried out under its key before. KeyReusedError: another one was."""
        before = None if key is None else self.journal.command_of(key)
        if before is not None and before[:2] != (command.kind, command.argument):
            raise KeyReusedError("this key was used for another command", "choose a new Idempotency-Key")
        return before

    def change(self, kind: str, number: int, now_ms: int, reason: str | None = None, key: str | None = None) -> None:
        """Stop, pause, resume or drain a query for good, with a `key` once; or, with a reason, let it fail because it `exceed`s a limit.

        A stop or drain of a query that has ended does nothing. KeyError: there is no such query; QueryStateError: its state
        does not allow that; DiagnosticError: it cannot run any more.
        """
        self.commit_or_refuse()  # first, so that the journal knows the key of a command that waited for room
        asked = Command(kind, now_ms, str(number))
        if self._find_repeated(asked, key) is not None:
            return
        record = self.station.world.queries.get(number)
        if record is None and self.journal.query(number) is None:
            raise KeyError(number)
        if record is None or record.has_ended:
            if kind in ("stop", "drain"):
                return
            raise QueryStateError(f"query {number} has ended", "submit its text again")
        argument = str(number) if reason is None else json.dumps({"number": number, "reason": reason})
        command = Command(defer_resume(kind, record, now_ms), now_ms, argument)
        if command.kind == "resume":
            self._recall(number, now_ms)
        self._carry_out(command, CommandRecord(command if key is None else asked, key, None))

    def _keep_hours(self, now_ms: int) -> None:
        """Pause the queries whose active hours end, and resume those whose hours begin. Hours change at whole minutes."""
        queries = self.station.world.queries
        if self._keeps_hours or self._hours_checked == (now_ms // 60_000, id(queries)):
            return
        self._keeps_hours = True  # since reading the archive for one of them takes a step
        try:
            for number in queries:
                query = self.station.world.queries.get(number)
                if query is not None and (kind := find_hours_change(query, now_ms)) is not None:
                    self._change_for_hours(kind, number, now_ms)
        finally:
            self._keeps_hours = False
        self._hours_checked = now_ms // 60_000, id(self.station.world.queries)

    def _change_for_hours(self, kind: str, number: int, now_ms: int) -> None:
        """A query whose past cannot be read fails; where the archive takes no readings now, the next minute tries again."""
        command = Command(kind, now_ms, str(number))
        try:
            if kind == "enter hours":
                self._recall(number, now_ms)
        except JournalError:
            return
        except (DiagnosticError, QueryLimitError) as why:
            command = Command("exceed", now_ms, json.dumps({"number": number, "reason": str(why)}))
        self._take(command)

    def _recall(self, query: str | int, now_ms: int) -> None:
        """Take what the archive has for a query that begins; it is kept in the commit of its command, so that no other query finds it."""
        for upload in self.read_past(query, now_ms):
            self._take(upload)

    def _carry_out_once(
        self, asked: Command, command: Command, name: str | None, key: str | None, owner: str | None, keep: int | None
    ) -> int:
        """Carry a command out that was asked for with the name as users see it; `name` is new to its owner."""
        self.commit_or_refuse()  # first, so that the journal knows the key of a command that waited for room
        before = self._find_repeated(asked, key)
        if before is not None and before[2] is not None:
            if self.journal.owner(before[2]) != owner:
                raise KeyReusedError("this key was used for a query of another user", "choose a new Idempotency-Key")
            return before[2]
        check_name(name, owner, self.station.world, self.journal)
        command.encode()  # raises here, before anything is taken for it
        if command.kind == "submit":
            self.limits.check(command, self.station, self.journal, owner)
        self._recall(json.loads(command.argument)["text"], command.now_ms)
        number = self._carry_out(command, CommandRecord(asked, key, None, owner, keep))
        assert number is not None, "the command is about a query"
        self._keep_hours(command.now_ms)
        self._commit()
        return number

    def roll(self, now_ms: int, archive: "ParquetArchive", days: int | None = None) -> int:
        """Move readings that the state holds into files of an archive, those of so many of the oldest days; returns how many.

        The roll is an entry of the journal, so a restart takes the readings out of the state at the same point again.
        Files are staged before the commit and published after it. Where either fails, the state keeps its readings.
        """
        held = self.station.archive
        if not isinstance(held, MemoryArchive) or not held.rows or not self._commit(closing=True):
            return 0
        entry, staged, tick_ms = self.journal.last + 1, [], self.station.world.catalog.tick_ms
        days = DAYS_OF_ROLL if days is None else min(days, DAYS_OF_ROLL)
        readings = held.take_oldest(days, tick_ms)
        count = sum(map(len, readings.values()))
        try:
            self._settle(archive)
            for name, batch in readings.items():
                staged += archive.stage(entry, archived_extent(self.station.world.catalog, name), batch)
            self.journal.commit([Command(ROLL, now_ms, str(days))], files=FileChange(tuple(staged)))
        except (OSError, ValueError, sqlite3.Error) as why:
            held.give_back(readings)
            archive.discard(staged)
            self.note(now_ms, "archiving fails", why=str(why))
            return 0
        self.settle(now_ms, archive)
        return count

    def change_archive(self, now_ms: int, archive: "ParquetArchive", change: FileChange) -> bool:
        """Let staged files enter an archive and others leave it, in one step; whether that was kept."""
        try:
            self.journal.commit([], files=change)
        except sqlite3.Error as why:
            archive.discard(change.added)
            self.note(now_ms, "changing the archive fails", why=str(why))
            return False
        return self.settle(now_ms, archive)

    def settle(self, now_ms: int, archive: "ParquetArchive") -> bool:
        """Bring the tree of the archive to what the journal lists; whether that succeeded. Later calls try again."""
        try:
            self._settle(archive)
        except (OSError, sqlite3.Error) as why:
            self.note(now_ms, "publishing files of the archive fails", why=str(why))
            return False
        return True

    def _settle(self, archive: "ParquetArchive") -> None:
        if left := archive.settle(self.journal.archive_files()):
            self.journal.forget_archive_files(left)

    def trim(self, now_ms: int, budget: Budget) -> None:
        """Drop the results, events and commands above a budget."""
        try:
            self.journal.trim(budget, now_ms)
        except sqlite3.Error as why:
            self.note(now_ms, "old results stay", why=str(why))

    def _carry_out(self, entry: Command | Upload, record: CommandRecord) -> int | None:
        entry.encode()  # raises here, before anything has changed, where the text is not Unicode
        try:
            record = replace(record, query=self._take(entry))
        except BaseException:
            record = replace(record, key=None)
            raise
        finally:  # a refused text has ended clock ticks too, so it is an entry like any other
            if record.key is not None or isinstance(entry, Command):  # uploads without a key would push out keys
                self._pending.commands.append(record)
            is_kept = self._commit(closing=True)
        if not is_kept:
            raise JournalError(
                f"{_describe(record)} but cannot be kept now: {self.failure}",
                "free space on the disk: the change is kept then; repeat it only with the same Idempotency-Key",
            )
        return record.query


def _describe(record: CommandRecord) -> str:
    return "the data was taken" if record.query is None else f"query {record.query} changed"
