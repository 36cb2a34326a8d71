"""ResultPublisher: answers of all queries on an MQTT broker, as flat JSON, on a thread of its own.

    PREFIX/v1/query/N/schema     {"query": 1, "name": null, "owner": "anna", "text": "…", "kind": "window", "columns": […]};
                                 retained while N lives
    PREFIX/v1/query/N/result     one object for each row (basestation.results.flat); repeated names of columns get numbers

Names are those of users, and N is the only one of its station; so topics have N, and the schema says whose the name is.

It reads committed results from the journal. A result counts as published once the broker has acknowledged it. The numbers
behind that are kept in a file, so a restart or an outage leaves no gap; results since the last write may come twice. After a
restore numbers begin anew, so all results that the file has are published again. A query that has finished or failed has its
place until its answers can change no more: late readings revise them, and a failed query may be resumed.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from basestation.controller.query_lifecycle import QueryState
from basestation.results.flat import flat_objects
from basestation.results.schema import make_unique
from basestation.results.wire import Json
from basestation.station.home_assistant import describe_sensors, forget_older_sensors, forget_sensors
from basestation.station.journal import Journal
from gateway.broker_settings import BrokerSettings
from gateway.errors import TransportError
from gateway.log import get_log
from gateway.transports.mqtt import BrokerConnection

FILE = "published.json"
PAUSE_SECONDS = 0.25
LINES_AT_ONCE = 200
"""Numbers of a feed that are sent before the broker has acknowledged the first."""
ACKNOWLEDGED_WITHIN_SECONDS = 30.0
ENDED = (QueryState.FINISHED.value, QueryState.STOPPED.value, QueryState.FAILED.value)
LOOKS_PER_STATE = 20
"""Looks between two reads of the state of a query without new results, and between two looks for new results of one that has ended."""

log = get_log(__name__)


@dataclass(slots=True)
class Position:
    """How far a query is published: up to the number `after`. `schema` is what the broker retains of it, if that is known.

    `sensors` of its columns, the first ones, are known to Home Assistant, as far as the file says. It may know them by the ids of an
    older program, too.
    """

    after: int = 0
    schema: Json | None = None
    may_be_retained: bool = False  # by an earlier process
    sensors: int = 0
    may_have_older_ids: bool = False
    has_ended: bool = False
    idle: int = 0


class ResultPublisher:
    """Publishes between `with` and its end."""

    def __init__(self, journal: Journal, settings: BrokerSettings, folder: Path, is_discovered: bool = False) -> None:
        """Home Assistant finds the columns of all queries as sensors where they are to be `is_discovered`."""
        self._is_discovered = is_discovered
        self._journal, self._path = journal, folder / FILE
        self._base = f"{settings.prefix}/v1/query/"
        self.connection = BrokerConnection(settings, "results", None, ())
        self._last, self.positions = self._read()
        self.lost = 0  # numbers that were dropped from the journal before the broker came back
        self._stopping = threading.Event()
        self._failure: str | None = None
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def __enter__(self) -> "ResultPublisher":
        self.connection.open()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(timeout=5)
        self.connection.close()

    def _run(self) -> None:
        while True:
            is_last = self._stopping.wait(PAUSE_SECONDS)
            self._attempt()
            if is_last:
                return

    def _attempt(self) -> None:
        try:
            if self.look():
                self._write()
            failure = None
        except (TransportError, OSError, sqlite3.Error) as error:
            failure = str(error)
        if failure != self._failure:
            (log.info if failure is None else log.warning)("publishing", state=failure or "works again")
        self._failure = failure

    def look(self) -> bool:
        """Publish what is new; whether a position changed. TransportError where the broker does not take it."""
        self._find_queries()
        has_news = False
        for query, position in list(self.positions.items()):
            position.idle += 1
            is_due = position.idle % LOOKS_PER_STATE == 0
            if position.has_ended and not is_due:
                continue
            first, behind = self._journal.bounds(query)
            if position.after + 1 < first:
                self.lost += first - 1 - position.after
                log.warning("results dropped before they were published", query=query, count=first - 1 - position.after)
                position.after = first - 1
            if position.after + 1 < behind:
                self._publish_next(query, position)
                position.idle = LOOKS_PER_STATE - 1 if position.has_ended else 0  # the next look may have more
                has_news = True
            elif is_due or (position.schema is None and not position.has_ended):
                has_news = self._follow_state(query, position) or has_news
        return has_news

    def _find_queries(self) -> None:
        bounds = self._journal.query_numbers()
        if bounds is not None:
            for query in range(max(self._last + 1, bounds[0]), bounds[1] + 1):
                self.positions.setdefault(query, Position())
            self._last = max(self._last, bounds[1])

    def _follow_state(self, query: int, position: Position) -> bool:
        """Retain the schema of a query that lives; forget it at its end. Whether what the file says has changed."""
        before, found = (position.sensors, position.may_have_older_ids), self._describe(query)
        position.has_ended = found is None or found["state"] in ENDED
        if found is not None and not position.has_ended:
            self._retain_schema(query, position, found)
            return (position.sensors, position.may_have_older_ids) != before
        if position.schema is not None or position.may_be_retained:
            self._forget(query, position, found)
        # The description has its account once its answers can change no more; the last of them may have come with it.
        is_final = found is None or found["state"] == QueryState.STOPPED.value or "account" in found
        is_over = is_final and position.after + 1 >= self._journal.bounds(query)[1]
        if is_over:
            del self.positions[query]
        return is_over or (position.sensors, position.may_have_older_ids) != before

    def _describe(self, query: int) -> Json | None:
        """A query as clients see it."""
        body = self._journal.query(query)
        return None if body is None else json.loads(body) | {"owner": self._journal.owner(query)}

    def _retain_schema(self, query: int, position: Position, described: Json) -> None:
        schema = {"query": query} | {key: described[key] for key in ("name", "owner", "text", "kind")}
        names = _names_of(described)
        schema["columns"] = [column | {"name": name} for column, name in zip(described["columns"], names, strict=True)]
        if schema == position.schema:
            return
        self._retain([(f"{self._base}{query}/schema", json.dumps(schema).encode())])
        self._forget_older(query, position, len(names))
        count = len(names) if self._is_discovered and not position.has_ended else 0
        if count:
            self._retain(describe_sensors(self._base, described, names))
        self._retain(forget_sensors(self._base, query, range(count, position.sensors)))
        position.schema, position.sensors = schema, count

    def _forget(self, query: int, position: Position, described: Json | None) -> None:
        """Let the broker retain nothing of a query."""
        self._retain([(f"{self._base}{query}/schema", b"")])
        count = position.sensors
        if self._is_discovered and described is not None:  # the file of an older program has no sensors
            count = max(count, len(described["columns"]))
        self._retain(forget_sensors(self._base, query, range(count)))
        self._forget_older(query, position, count)
        position.schema, position.sensors, position.may_be_retained = None, 0, False

    def _forget_older(self, query: int, position: Position, count: int) -> None:
        """Let the broker retain none of the sensors that an older program described under other ids."""
        if position.may_have_older_ids and self._is_discovered:
            self._retain(forget_older_sensors(self._base, query, count))
            position.may_have_older_ids = False

    def _retain(self, messages: Iterable[tuple[str, bytes]]) -> None:
        self._send([(topic, payload, True) for topic, payload in messages])

    def _publish_next(self, query: int, position: Position) -> None:
        described = self._describe(query)
        if described is None:
            return
        position.has_ended = described["state"] in ENDED
        if not position.has_ended or position.after == 0:  # a query may end before its first row is published
            self._retain_schema(query, position, described)
        columns = _names_of(described)
        lines: list[Json] = []
        for chunk in self._journal.results(query, position.after, LINES_AT_ONCE):
            skipped = max(0, position.after + 1 - chunk.first)
            lines += map(json.loads, chunk.lines.splitlines()[skipped:])
        lines = lines[:LINES_AT_ONCE]
        topic = f"{self._base}{query}/result"
        self._send(
            [(topic, json.dumps(each).encode(), False) for line in lines for each in flat_objects(line, columns)]
        )
        if lines:
            position.after = lines[-1]["number"]

    def _send(self, messages: list[tuple[str, bytes, bool]]) -> None:
        """Publish messages, and wait until the broker has acknowledged all of them. Raises TransportError."""
        for at in range(0, len(messages), LINES_AT_ONCE):
            part = messages[at : at + LINES_AT_ONCE]
            numbers = {self.connection.publish(topic, payload, retain=retain) for topic, payload, retain in part}
            self.connection.wait_until_taken(numbers, ACKNOWLEDGED_WITHIN_SECONDS)

    def _read(self) -> tuple[int, dict[int, Position]]:
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            sensors, older = kept.get("sensors", {}), kept.get("older_ids")  # an older program wrote none
            found = {
                int(query): Position(
                    int(after), None, True, int(sensors.get(query, 0)), older is None or int(query) in older
                )
                for query, after in kept["after"].items()
            }
            if kept["epoch"] == self._journal.epoch:
                return int(kept["last"]), found
            log.warning("a backup was restored: all results are published again", path=self._path)
            return 0, {query: replace(position, after=0) for query, position in found.items()}
        except FileNotFoundError:
            return 0, {}
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            log.warning("positions are unknown: all results are published again", path=self._path, error=error)
            return 0, {}

    def _write(self) -> None:
        after = {query: position.after for query, position in self.positions.items()}
        sensors = {query: position.sensors for query, position in self.positions.items() if position.sensors}
        older = [query for query, position in self.positions.items() if position.may_have_older_ids]
        kept = {
            "epoch": self._journal.epoch,
            "last": self._last,
            "after": after,
            "sensors": sensors,
            "older_ids": older,
        }
        staged = self._path.with_name(f"{FILE}.part")
        staged.write_text(json.dumps(kept) + "\n", encoding="utf-8")
        os.replace(staged, self._path)


def _names_of(described: Json) -> list[str]:
    """The names of a query's columns as the keys of an object."""
    return make_unique(column["name"] for column in described["columns"])
