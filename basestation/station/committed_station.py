"""CommittedStation: a station that commits every step to its journal before it sends or shows anything.

A step takes the bytes that came, computes, commits, and only then sends frames and acknowledgements and shows results.
Where the commit fails, nothing is sent, shown or taken from the wire until it succeeds: motes and gateways keep what is
not acknowledged. A start restores the newest readable snapshot and takes the entries behind it again, in silence.
"""

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict

from basestation.archive.memory import MemoryArchive
from basestation.execution.memory_failures import FailureRecorder, UnrepeatedFailureError
from basestation.execution.snapshot import SnapshotError
from basestation.results.line_text import encode_lines
from basestation.station.commands import apply
from basestation.station.declared_extents import list_declared
from basestation.station.failure_entry import MEMORY_FAILURES, NO_FAILURES, FailureEntry
from basestation.station.held_transport import DISCONNECTED, HeldTransport
from basestation.station.journal import Command, Entry, Journal, ResultChunk, Steps, Upload
from basestation.station.journal_file import BOOT, JournalError, copy_whole, next_boot
from basestation.station.query_rows import row_of
from basestation.station.recovery import FAILURES_KEPT, MakeStation, begin_station, keep_numbers, restore_newest
from basestation.station.station_snapshot import BackgroundSnapshot, save_station
from basestation.station.uncommitted import KEEP_PLANS, Uncommitted
from gateway.errors import TransportError
from gateway.log import get_log
from gateway.transports import Transport

log = get_log(__name__)
ROLL = "roll"
"""The kind of entry at which readings left the state for the archive."""


class CommittedStation:
    """Each input of the station is an entry of its journal. Times are ms since tick 0."""

    def __init__(self, journal: Journal, make: MakeStation, now_ms: int) -> None:
        """Restore the station of a journal, or begin one. JournalError where neither is possible."""
        self.journal, self._wire = journal, DISCONNECTED
        self._held = HeldTransport()
        self._outside: dict[str, object] = {"transport": self._held}
        self._pending = Uncommitted()
        self._background: BackgroundSnapshot | None = None
        self.failure: str | None = None  # why nothing can be committed now
        self.link_failure: str | None = None  # why the wire gives or takes nothing now; links send their frames again
        self.last_ms = now_ms  # of the last look or command; time never goes back
        restored = restore_newest(journal, self._outside)
        if restored is not None:
            self.last_ms = restored.at_ms
            if restored.older is not None and not journal.is_migrated:  # else there is a copy already
                suffix = "state-{}-{}".format(*restored.older)
                copy_whole(journal.path, suffix, "the state in it becomes that of this program")
        self.station = begin_station(journal, make, self._held, now_ms) if restored is None else restored.station
        self.station.feed.retain_all()  # each step takes its updates out, and one after a long absence has many
        self._queries_seen = self.station.world.queries
        self._is_replaying, self._kept_plans = True, frozenset[int]()
        self._recorder, self._repeated = FailureRecorder(), NO_FAILURES
        is_computed_anew = restored is None and journal.has_snapshots
        self.replayed = self._replay(0 if restored is None else restored.entry, is_computed_anew)
        self._is_replaying = False
        self.station.engine.failure_log = self._recorder
        self._held.outgoing.clear()
        self.snapshot_ms = now_ms
        if is_computed_anew:
            keep_numbers(self.station, self.journal)
            self._restart_links(now_ms)
            self._replace_snapshots(max(now_ms, self.last_ms), "the state was computed anew from the log")
        elif restored is not None and restored.older is not None:
            self._replace_snapshots(max(now_ms, self.last_ms), "the state of an older program was taken over")
        if self.journal.fact("links of epoch") != self.journal.epoch:
            self._restart_links(now_ms)
        if not self.replayed and (restored is None or not restored.entry):
            self.snapshot(now_ms)  # with the tables as they were loaded, so that a restart does not read files again

    def connect(self, wire: Transport) -> None:
        """From the next step on the motes are behind this wire."""
        self._wire = wire

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

    def _take(self, entry: Command | Upload) -> int | None:
        """Let the station act before the next commit; returns the number of the query that it is about."""
        self._pending.close_looks()
        at, is_refused = len(self._pending.entries), False
        self._pending.entries.append(entry)
        known = self.station.world.catalog.extents.keys()
        self._recorder.begin()
        try:
            changed = apply(entry, self.station)
            if declared := self.station.world.catalog.extents.keys() - known:
                self._pending.facts |= list_declared(self.journal, declared)
            return None if changed is None else changed.number
        except MemoryError:
            is_refused = True
            raise
        finally:
            if (failures := self._recorder.take()) or is_refused:  # a replay reads it before the entry
                self._pending.entries.insert(at, FailureEntry({0: failures}, is_refused).to_command(entry.now_ms))
            self._collect()

    def prune(self, now_ms: int) -> None:
        """Drop what the engine need not keep, as an entry: corrections no longer reach it after a restart, too."""
        self._take(Command("prune", now_ms, ""))

    def _look(self, now_ms: int, chunk: bytes) -> None:
        self._held.arrived, self.last_ms = chunk, now_ms
        self._recorder.begin()
        if self._step(now_ms):
            self._pending.kept_plans.append(len(self._pending.looks))
        if failures := self._recorder.take():
            self._pending.failures[len(self._pending.looks)] = failures
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

    def _step(self, now_ms: int, keeps_plans: bool = False) -> bool:
        """Let the station step, and retire queries; returns whether a review kept all plans (`Station.step`)."""
        has_kept = self.station.step(now_ms, keeps_plans)
        self._collect()  # a query may end and be over in one look, after a leap of the clock: first its last answers
        tick_ms = self.station.world.catalog.tick_ms
        for query in self.station.retire():
            self._pending.queries.append(row_of(query, tick_ms, asdict(self.station.accounts.of(query.number))))
            self.station.accounts.close(query.number)
        return has_kept

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
                texts = encode_lines(each, schema, tick_ms)
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
            self._pending = Uncommitted(looks=pending.looks, kept_plans=pending.kept_plans, failures=pending.failures)
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

    def _replace_snapshots(self, now_ms: int, event: str) -> None:
        """Keep the state in place of all snapshots of another program."""
        self.note(now_ms, event, entries=self.journal.last)
        try:
            self.journal.replace_snapshots(now_ms, save_station(self.station, self._outside))
        except sqlite3.Error as why:
            path = self.journal.path
            raise JournalError(f"{path} cannot take the new state: {why}", "free space on the disk") from why
        self.snapshot_ms = now_ms
        self._commit(closing=True)

    def _replay(self, after: int, keeps_queries: bool) -> int:
        """Replay the journal entries after a snapshot; return the number of steps and commands.

        With `keeps_queries` the table of queries is written again: that of an older file may lack some. JournalError: there is
        less memory than there was.
        """
        count, older = 0, int(self.journal.fact(FAILURES_KEPT) or 0)
        for number, entry in self.journal.entries(after):
            try:
                for _ in self._again(entry, number > older):
                    count += 1
            except (MemoryError, UnrepeatedFailureError) as why:
                raise JournalError(
                    f"the state cannot be computed again from entry {number} of {self.journal.path}, for which there was "
                    f"enough memory before: {why}",
                    "free memory or raise its limit (`ulimit -v`), then start again; nothing has changed",
                ) from why
            self._collect()
            self._pending = Uncommitted(
                queries=self._pending.queries if keeps_queries else []
            )  # the journal has the rest
            self._held.outgoing.clear()
        return count

    def _again(self, entry: Entry, has_failures: bool) -> Iterator[None]:
        """Take an entry again. With `has_failures` the log has each failure for lack of memory, and there is no other."""
        if entry.kind == MEMORY_FAILURES and isinstance(entry, Command):
            self._repeated = FailureEntry.from_command(entry)
            return
        if isinstance(entry, Steps):
            kept_plans, self._kept_plans = self._kept_plans, frozenset()
            repeated, self._repeated = self._repeated, NO_FAILURES
            for place, (now_ms, chunk) in enumerate(entry.looks):
                self._held.arrived, self.last_ms = chunk, now_ms
                with repeated.repeat(self.station.engine, place) if has_failures else nullcontext():
                    self._step(now_ms, place in kept_plans)
                yield
            return
        if entry.kind == KEEP_PLANS and isinstance(entry, Command):
            self._kept_plans = frozenset(json.loads(entry.argument))
            return
        self.last_ms = entry.now_ms
        if entry.kind == ROLL:
            if isinstance(self.station.archive, MemoryArchive):
                most = int(entry.argument) if isinstance(entry, Command) and entry.argument else sys.maxsize
                self.station.archive.take_oldest(most, self.station.world.catalog.tick_ms)
            return
        repeated, self._repeated = self._repeated, NO_FAILURES
        with repeated.repeat(self.station.engine, 0) if has_failures else nullcontext():
            try:
                if repeated.is_refused:
                    self.station.refuse(entry.now_ms)
                else:
                    apply(entry, self.station)
            except UnrepeatedFailureError:
                raise
            except Exception as why:  # it was refused then, or failed in the same way, and its user knows
                if isinstance(why, MemoryError) and has_failures:
                    raise
                log.info("command fails again", kind=entry.kind, at_ms=entry.now_ms, error=why)
        yield
