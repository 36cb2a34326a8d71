"""DurableStation: a station that commits every step to its journal before it sends or shows anything.

A step takes the bytes that came, computes, commits, and only then sends frames and acknowledgements and shows results.
Where the commit fails, nothing is sent, shown or taken from the wire until it succeeds: motes and gateways keep what is
not acknowledged. A start restores the newest readable snapshot and takes the entries behind it again, in silence.
"""

import json
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from basestation.archive.manifest import FileChange
from basestation.archive.memory import MemoryArchive
from basestation.archive.reports import archived_extent
from basestation.controller.query_lifecycle import QueryStateError
from basestation.execution.snapshot import SnapshotError
from basestation.results.wire import numbered_lines
from basestation.station.commands import apply, encode_target
from basestation.station.declared_extents import list_declared
from basestation.station.held_transport import DISCONNECTED, HeldTransport
from basestation.station.journal import Command, CommandRecord, Entry, Journal, ResultChunk, Steps, Upload
from basestation.station.journal_file import BOOT, JournalError, KeyReusedError, next_boot
from basestation.station.query_changes import defer_resume, find_hours_change
from basestation.station.query_limits import QueryLimits
from basestation.station.query_rows import row_of
from basestation.station.recovery import MakeStation, begin_station, keep_numbers, restore_newest
from basestation.station.retention import Budget
from basestation.station.station_snapshot import BackgroundSnapshot, save_station
from basestation.station.uncommitted import Uncommitted
from basestation.station.uploads import ReadPast, no_past
from gateway.errors import TransportError
from gateway.log import get_log
from gateway.transports import Transport

if TYPE_CHECKING:
    from basestation.archive.parquet import ParquetArchive

log = get_log(__name__)
DAYS_OF_ROLL = 32
"""Files that one roll writes, at about 15 ms each: nothing else happens meanwhile. The next roll goes on."""
ROLL = "roll"
"""The kind of entry at which readings left the state for the archive."""


class DurableStation:
    """All methods belong to one thread. Times are ms since tick 0."""

    def __init__(self, journal: Journal, make: MakeStation, now_ms: int) -> None:
        """Restore the station of a journal, or begin one. JournalError where neither is possible."""
        self.journal, self._wire = journal, DISCONNECTED
        self._held = HeldTransport()
        self._outside: dict[str, object] = {"transport": self._held}
        self._pending, self.limits = Uncommitted(), QueryLimits()
        self.read_past: ReadPast = no_past
        self._background: BackgroundSnapshot | None = None
        self.failure: str | None = None  # why nothing can be committed now
        self.link_failure: str | None = None  # why the wire gives or takes nothing now; links send their frames again
        self.last_ms = now_ms  # of the last look or command; time never goes back
        restored = restore_newest(journal, self._outside)
        if restored is not None:
            self.last_ms = restored.at_ms
        self.station = begin_station(journal, make, self._held, now_ms) if restored is None else restored.station
        self.station.feed.retain_all()  # each step takes its updates out, and one after a long absence has many
        self._queries_seen = self.station.world.queries
        self._hours_checked = 0, 0  # the minute, and the queries
        self._is_replaying = True
        is_computed_anew = restored is None and journal.has_snapshots
        self.replayed = self._replay(0 if restored is None else restored.entry, is_computed_anew)
        self._is_replaying = False
        self._held.outgoing.clear()
        self.snapshot_ms = now_ms
        if is_computed_anew:
            self._replace_snapshots(max(now_ms, self.last_ms))
        if self.journal.fact("links of epoch") != self.journal.epoch:
            self._restart_links(now_ms)
        if not self.replayed and (restored is None or not restored.entry):
            self.snapshot(now_ms)  # with the tables as they were loaded, so that a restart does not read files again

    def connect(self, wire: Transport) -> None:
        """From the next step on the motes are behind this wire."""
        self._wire = wire

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
        return self._commit() if chunk or self._has_news() else True

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
        command = Command("submit", now_ms, encode_target(text, None, name, active))
        return self._carry_out_once(command, key, owner, keep)

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
        command = Command("replace", now_ms, encode_target(text, number, name, active))
        return self._carry_out_once(command, key, self.journal.owner(number), keep)

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
        self._carry_out(command, CommandRecord(command if key is None else asked, key, None))

    def _keep_hours(self, now_ms: int) -> None:
        """Pause the queries whose active hours end, and resume those whose hours begin. Hours change at whole minutes."""
        queries = self.station.world.queries
        if self._hours_checked != (minute := now_ms // 60_000, id(queries)):
            for number, query in queries.items():
                if (kind := find_hours_change(query, now_ms)) is not None:
                    self._take(Command(kind, now_ms, str(number)))
            self._hours_checked = minute, id(self.station.world.queries)

    def _carry_out_once(self, command: Command, key: str | None, owner: str | None, keep: int | None) -> int:
        self.commit_or_refuse()  # first, so that the journal knows the key of a command that waited for room
        before = self._find_repeated(command, key)
        if before is not None and before[2] is not None:
            return before[2]
        if command.kind == "submit":
            command.encode()  # raises here, before anything is taken for it
            self.limits.check(command, self.station, self.journal, owner)
            for upload in self.read_past(json.loads(command.argument)["text"], command.now_ms):
                self._take(upload)  # kept in the commit of the submission, so that no other query finds it
        number = self._carry_out(command, CommandRecord(command, key, None, owner, keep))
        assert number is not None, "the command is about a query"
        self._keep_hours(command.now_ms)
        self._commit()
        return number

    def snapshot(self, now_ms: int) -> int:
        """Keep the whole state before anything else happens; how many bytes it has, 0 where nothing can be committed."""
        self._drop_background()
        if not self._commit(closing=True):
            return 0
        body = save_station(self.station, self._outside)
        try:
            self.journal.save_snapshot(self.journal.last, now_ms, body)
        except sqlite3.Error as why:  # the entries are kept, so a start takes more of them again
            self.failure = str(why)
            return 0
        self.snapshot_ms = now_ms
        return len(body)

    def begin_snapshot(self, now_ms: int) -> bool:
        """Keep the whole state as it is now while the station goes on; a later step puts it into the journal.

        Returns whether it has begun: not while another one is being written, nor where nothing can be committed.
        """
        if self._background is not None or not self._commit(closing=True):
            return False
        self.snapshot_ms = now_ms
        path = self.journal.path.with_name("snapshot.part")
        try:
            self._background = BackgroundSnapshot(self.station, self._outside, path, self.journal.last, now_ms)
        except OSError as why:  # no memory for a copy of the process
            self.note(now_ms, "snapshot fails", why=str(why))
            return False
        return True

    def roll(self, now_ms: int, archive: "ParquetArchive") -> int:
        """Move readings that the state holds into files of an archive, those of the oldest days; returns how many.

        The roll is an entry of the journal, so a restart takes the readings out of the state at the same point again.
        Files are staged before the commit and published after it. Where either fails, the state keeps its readings.
        """
        held = self.station.archive
        if not isinstance(held, MemoryArchive) or not held.rows or not self._commit(closing=True):
            return 0
        entry, staged, tick_ms = self.journal.last + 1, [], self.station.world.catalog.tick_ms
        readings = held.take_oldest(DAYS_OF_ROLL, tick_ms)
        count = sum(map(len, readings.values()))
        try:
            self._settle(archive)
            for name, batch in readings.items():
                staged += archive.stage(entry, archived_extent(self.station.world.catalog, name), batch)
            self.journal.commit([Command(ROLL, now_ms, str(DAYS_OF_ROLL))], files=FileChange(tuple(staged)))
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

    def _keep_background(self, now_ms: int) -> None:
        if self._background is None:
            return
        try:
            body = self._background.poll()
            if body is None:
                return
            self.journal.save_snapshot(self._background.entry, self._background.at_ms, body)
        except (SnapshotError, OSError, sqlite3.Error) as why:
            self.note(now_ms, "snapshot fails", why=str(why))
        self._background = None

    def _drop_background(self) -> None:
        if self._background is not None:
            self._background.discard()
            self._background = None

    def note(self, now_ms: int, kind: str, **details: object) -> None:
        """Record an event; it is committed with the next step."""
        self._pending.events.append((now_ms, kind, json.dumps(details)))
        if not self._is_replaying:
            write = log.warning if "fail" in kind or "no longer" in kind else log.info
            write(kind, **{key: value for key, value in details.items() if value is not None})

    def close(self, now_ms: int) -> None:
        """Commit and keep a snapshot, as the last act."""
        self.snapshot(now_ms)

    def commit_or_refuse(self) -> None:
        """Keep for good what is not yet; JournalError where that cannot be."""
        if not self._commit():
            raise JournalError(f"nothing can be kept now: {self.failure}", "free space on the disk, then submit again")

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

    def _take(self, entry: Command | Upload) -> int | None:
        """Let the station act before the next commit; returns the number of the query that it is about."""
        self._pending.close_looks()
        self._pending.entries.append(entry)
        known = self.station.world.catalog.extents.keys()
        try:
            changed = apply(entry, self.station)
            if declared := self.station.world.catalog.extents.keys() - known:
                self._pending.facts |= list_declared(self.journal, declared)
            return None if changed is None else changed.number
        finally:
            self._collect()

    def _look(self, now_ms: int, chunk: bytes) -> None:
        self._held.arrived, self.last_ms = chunk, now_ms
        self._step(now_ms)
        self._pending.looks.append((now_ms, chunk))

    def _restart_links(self, now_ms: int) -> None:
        """Let frames to motes have greater numbers than those of any station of this network before."""
        now, known = max(now_ms, self.last_ms), int(self.journal.fact(BOOT) or 0)
        command = Command("restart links", now, str(next_boot(known, now)))
        apply(command, self.station)
        self._pending.entries.append(command)
        if self._commit(closing=True):
            self.journal.state_fact(BOOT, command.argument)
            self.journal.state_fact("links of epoch", self.journal.epoch)

    def _step(self, now_ms: int) -> None:
        self.station.step(now_ms)
        self._collect()  # a query may end and be over in one look, after a leap of the clock: first its last answers
        tick_ms = self.station.world.catalog.tick_ms
        for query in self.station.retire():
            self._pending.queries.append(row_of(query, tick_ms, asdict(self.station.accounts.of(query.number))))
            self.station.accounts.close(query.number)

    def _has_news(self) -> bool:
        pending = self._pending
        return bool(self._held.outgoing or pending.results or pending.events or pending.queries)

    def _collect(self) -> None:
        """Take new results out of the feed, new events out of their log, and the queries that have changed."""
        latest = self.station.events.latest
        while latest:
            event = latest.popleft()
            self.note(event.at_ms, event.what, why=event.why or None, **event.about)
        feed, tick_ms = self.station.feed, self.station.world.catalog.tick_ms
        if (queries := self.station.world.queries) is not self._queries_seen:
            changed = (each for number, each in queries.items() if self._queries_seen.get(number) is not each)
            self._pending.queries.extend(row_of(each, tick_ms) for each in changed)
            self._queries_seen = queries
        for query, numbered in feed.drain():
            schema = feed.schema(query)
            account = self.station.accounts.of(query)
            for each in numbered:
                account.record(each.update)
                texts = [json.dumps(line) for line in numbered_lines(each, schema, tick_ms)]
                self._pending.results.append(
                    ResultChunk(query, each.number, each.number + len(texts), "\n".join(texts) + "\n", self.last_ms)
                )

    def _commit(self, closing: bool = False) -> bool:
        """Keep what is pending, then send what waits for that. Looks without news may wait for the next commit."""
        pending = self._pending
        if closing or self._has_news() or any(chunk for _, chunk in pending.looks):
            pending.close_looks()
        if pending.entries or pending.results or pending.events or pending.queries:
            try:
                self.journal.commit(
                    pending.entries,
                    pending.results,
                    pending.events,
                    pending.commands,
                    pending.queries,
                    facts=pending.facts,
                )
            except sqlite3.Error as why:
                self.failure = str(why)
                return False
            self._pending = Uncommitted(looks=pending.looks)
        self.failure = None
        self._send()
        return True

    def _send(self) -> None:
        if self._held.outgoing:
            data = bytes(self._held.outgoing)
            self._held.outgoing.clear()
            try:
                self._wire.send(data)
            except TransportError as why:
                self.link_failure = str(why)

    def _replace_snapshots(self, now_ms: int) -> None:
        """Keep the state that was computed from the whole log, in place of snapshots that cannot be read.

        Another program may have configured motes otherwise, so their links restart; results go on above the numbers that are kept.
        """
        keep_numbers(self.station, self.journal)
        self._restart_links(now_ms)
        self.journal.forget_snapshots()
        self.note(now_ms, "the state was computed anew from the log", entries=self.journal.last)
        self.snapshot(now_ms)

    def _replay(self, after: int, keeps_queries: bool) -> int:
        """Replay the journal entries after a snapshot; return the number of steps and commands.

        With `keeps_queries` the table of queries is written again: that of an older file may lack some.
        """
        count = 0
        for _, entry in self.journal.entries(after):
            for _ in self._again(entry):
                count += 1
            self._collect()
            self._pending = Uncommitted(
                queries=self._pending.queries if keeps_queries else []
            )  # the journal has the rest
            self._held.outgoing.clear()
        return count

    def _again(self, entry: Entry) -> Iterator[None]:
        if isinstance(entry, Steps):
            for now_ms, chunk in entry.looks:
                self._held.arrived, self.last_ms = chunk, now_ms
                self._step(now_ms)
                yield
            return
        self.last_ms = entry.now_ms
        if entry.kind == ROLL:
            if isinstance(self.station.archive, MemoryArchive):
                most = int(entry.argument) if isinstance(entry, Command) and entry.argument else sys.maxsize
                self.station.archive.take_oldest(most, self.station.world.catalog.tick_ms)
            return
        try:
            apply(entry, self.station)
        except Exception as why:  # it was refused then, or failed in the same way, and its user knows
            log.info("command fails again", kind=entry.kind, at_ms=entry.now_ms, error=why)
        yield


def _describe(record: CommandRecord) -> str:
    return "the data was taken" if record.query is None else f"query {record.query} changed"
