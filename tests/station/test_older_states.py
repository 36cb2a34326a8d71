"""Snapshots of older programs: a start makes this program's state of them, and goes on.

`older/state-10-37.sql` was dumped from a station of the program at commit eff08bc3: the three queries of `SmallNetwork`, submitted at
its begin; the first is stopped after 45 s, and the station after 90 s. The begin of its log is gone.
"""

import hashlib
import io
import json
import re
import shutil
import sqlite3
import zlib
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from basestation.controller.world import World
from basestation.execution.snapshot import SnapshotError
from basestation.station import committed_station, recovery, state_migration, station_snapshot
from basestation.station.durable import DurableStation
from basestation.station.journal import Journal
from basestation.station.journal_file import NAME, PROGRAM, VERSION, JournalError
from basestation.station.saved_state import read_saved_state
from basestation.station.state_migration import CURRENT, STEPS, ClassChange, FormatStep, find_format, find_renewals
from basestation.station.station_snapshot import _ALWAYS, _Reader, restore_station, save_station
from tests.execution.test_snapshot_classes import kept
from tests.station.small_network import QUERIES, Crash, SmallNetwork

OLDER = Path(__file__).parent / "older"
TAKEN_OVER = "the state of an older program was taken over"


def write_older(folder):
    """Make the data directory of the older station; returns the lines of each query's feed."""
    folder.mkdir(exist_ok=True)
    with closing(sqlite3.connect(folder / NAME)) as database:
        database.executescript((OLDER / "state-10-37.sql").read_text(encoding="utf-8"))
        rows = database.execute("SELECT query, body FROM results ORDER BY query, first").fetchall()
    lines = {}
    for query, body in rows:
        lines[query] = lines.get(query, "") + zlib.decompress(body).decode()
    return lines


def formats(path):
    """The formats of the snapshots in a file."""
    with closing(sqlite3.connect(path)) as database:
        return [find_format(body) for (body,) in database.execute("SELECT body FROM snapshots ORDER BY entry")]


@pytest.mark.promise("durable")
def test_state_of_an_older_program_goes_on(tmp_path):
    before = write_older(tmp_path)
    assert formats(tmp_path / NAME) == [(10, 37)] * 2
    network = SmallNetwork(tmp_path, boot=2)
    assert formats(tmp_path / NAME) == [CURRENT] and formats(tmp_path / f"{NAME}.v3") == [(10, 37)] * 2
    assert list(tmp_path.glob("*.state-*")) == []  # one copy is enough
    assert {query: network.answers(query) for query in before} == before and set(before) == {1, 2, 3}
    network.now_ms = network.durable.last_ms
    network.live(180)
    assert [network.query(number)["state"] for number in (1, 2, 3)] == ["stopped", "running", "running"]
    found = [json.loads(line) for line in network.answers(3).splitlines()]
    assert network.answers(3).startswith(before[3])
    assert [line["tick"] for line in found] == list(range(found[0]["tick"], found[-1]["tick"] + 1, 20)) and len(
        found
    ) >= 11
    assert found[-1]["coverage"]["field"] == [6, 6]
    network.restart()
    network.live(1)
    assert network.events().count(TAKEN_OVER) == 1


def as_older(monkeypatch):
    """Let snapshots be those of the program before, which kept no `unreported_from`, and be its own."""
    place = World.__slots__.index("unreported_from")

    def values(world):
        kept = [getattr(world, name) for name in World.__slots__]
        return kept[:place] + kept[place + 1 :]

    monkeypatch.setattr(World, "__getstate__", values)
    monkeypatch.setattr(recovery, "CURRENT", (10, 37))
    monkeypatch.setattr(station_snapshot, "_OURS", re.sub(rb"station \d+", b"station 10", station_snapshot._OURS))


@pytest.mark.promise("durable")
def test_station_is_where_it_was_with_a_state_of_before(tmp_path, monkeypatch):
    """The motes live on, and get what they would get after an ordinary start, event by event."""
    networks = []
    for name in ("undisturbed", "older"):
        (tmp_path / name).mkdir()
        network = SmallNetwork(tmp_path / name)
        for text in QUERIES:
            network.submit(text)
        with monkeypatch.context() as older:
            if name == "older":
                as_older(older)
            for _ in range(2):
                network.live(25)
                network.durable.snapshot(network.now_ms)
            network.durable.close(network.now_ms)
            network.end()
        assert formats(tmp_path / name / NAME)[-1] == ((10, 37) if name == "older" else CURRENT)
        network.start()
        networks.append(network)
        network.live(120)
    undisturbed, older = networks
    assert older.events().count(TAKEN_OVER) == 1 and TAKEN_OVER not in undisturbed.events()
    assert formats(tmp_path / "older" / f"{NAME}.state-10-37") == [(10, 37)] * 2
    for number in (1, 2, 3):
        assert older.answers(number) == undisturbed.answers(number) and older.answers(number).count("\n") > 4
    assert older.network.trace.events == undisturbed.network.trace.events
    assert older.durable.station.links.boot == undisturbed.durable.station.links.boot


@pytest.mark.promise("durable")
@pytest.mark.parametrize("version", [3, VERSION])
def test_killed_older_station_is_refused(tmp_path, monkeypatch, version):
    """This program may compute the log behind its last state otherwise; the older one starts and stops, then this one starts."""
    network = SmallNetwork(tmp_path)
    for text in QUERIES:
        network.submit(text)
    with monkeypatch.context() as older:
        as_older(older)
        for _ in range(3):
            network.live(20)
            network.durable.snapshot(network.now_ms)
        network.live(20)
        network.journal.state_fact(PROGRAM, "0.0.9")
        network.end()
    with closing(sqlite3.connect(tmp_path / NAME)) as database:
        database.execute(f"PRAGMA user_version = {version}")
        before = list(database.iterdump())
    with pytest.raises(JournalError, match="goes on behind") as error, closing(Journal(tmp_path)) as journal:
        DurableStation(journal, network._begin, network.now_ms)
    assert "start with moteloom 0.0.9, and stop that with SIGTERM" in error.value.help
    with closing(sqlite3.connect(tmp_path / NAME)) as database:
        assert list(database.iterdump()) == before
        database.execute(f"PRAGMA user_version = {VERSION}")
    assert list(tmp_path.glob(f"{NAME}.*[0-9]")) == []
    with monkeypatch.context() as older:
        as_older(older)
        network.start()
        network.durable.close(network.now_ms)
        network.end()
    network.start()
    network.live(60)
    assert network.events().count(TAKEN_OVER) == 1
    assert [json.loads(line)["coverage"]["field"] for line in network.answers(3).splitlines()][-1] == [6, 6]


@pytest.mark.promise("durable")
def test_format_without_steps_is_refused_before_tables_change(tmp_path):
    write_older(tmp_path)
    with closing(sqlite3.connect(tmp_path / NAME)) as database, database:
        for entry, body in database.execute("SELECT entry, body FROM snapshots").fetchall():
            older = body.replace(b"station 10", b"station 9", 1)
            database.execute("UPDATE snapshots SET body = ? WHERE entry = ?", (older, entry))
        before = list(database.iterdump())
    with pytest.raises(JournalError, match="`moteloom station 9 on engine 37"):
        Journal(tmp_path)
    with closing(sqlite3.connect(tmp_path / NAME)) as database:
        assert list(database.iterdump()) == before and database.execute("PRAGMA user_version").fetchone() == (3,)


@pytest.mark.promise("durable")
def test_start_that_ends_early_is_repeated(tmp_path, monkeypatch):
    """It ends before the copy, in the replay, and before and after the new state is kept."""

    def crash(*_, **__):
        raise Crash

    write_older(tmp_path / "whole")
    Journal(tmp_path / "whole").close()  # else the copy of the older tables is enough
    places = {
        "none": (),
        "copy": (committed_station, "copy_whole"),
        "replay": (DurableStation, "_replay"),
        "new state": (committed_station, "save_station"),
        "event": (DurableStation, "_commit"),
    }
    answers = {}
    for name, place in places.items():
        folder = shutil.copytree(tmp_path / "whole", tmp_path / name)
        if place:
            with monkeypatch.context() as killed, closing(Journal(folder)) as journal:
                killed.setattr(*place, crash)
                with pytest.raises(Crash):
                    DurableStation(journal, crash, 0)
            assert set(formats(folder / NAME)) == {CURRENT if name == "event" else (10, 37)}
        network = SmallNetwork(folder, boot=2)
        network.now_ms = network.durable.last_ms
        network.live(60)
        answers[name] = [network.answers(number) for number in (1, 2, 3)]
        assert formats(folder / NAME) == [CURRENT]
        network.end()
    assert all(found == answers["none"] for found in answers.values())


@pytest.mark.promise("durable")
@pytest.mark.parametrize("what", ["no room for the tables", "no room for the copy", "no room for the new state"])
def test_state_of_before_stays_where_a_start_has_no_room(tmp_path, monkeypatch, what):
    write_older(tmp_path)
    if what != "no room for the tables":
        Journal(tmp_path).close()
    before = formats(tmp_path / NAME)

    def fail(*_):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as full:
        if what != "no room for the new state":
            full.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100_000))
        else:
            full.setattr(Journal, "replace_snapshots", fail)
        with pytest.raises(JournalError) as error, closing(Journal(tmp_path)) as journal:
            DurableStation(journal, fail, 0)
    assert "free space on the disk" in error.value.help and formats(tmp_path / NAME) == before
    assert SmallNetwork(tmp_path).query(3)["state"] == "running"


def test_other_programs_read_an_older_state(tmp_path):
    write_older(tmp_path)
    assert set(read_saved_state(tmp_path).catalog.extents) == {"field"}
    assert formats(tmp_path / NAME) == [(10, 37)] * 2


@pytest.mark.promise("durable")
def test_damaged_older_states_are_refused(tmp_path, rng, counts):
    """A byte is another, or the end is missing."""
    write_older(tmp_path)
    with closing(sqlite3.connect(tmp_path / NAME)) as database:
        (body,) = database.execute("SELECT body FROM snapshots ORDER BY entry DESC LIMIT 1").fetchone()
    restore_station(body, {"transport": None})
    for _ in range(counts(50, 1_000)):
        at = rng.randrange(len(body))
        damaged = (
            body[:at] if rng.random() < 0.2 else body[:at] + bytes([body[at] ^ rng.randrange(1, 256)]) + body[at + 1 :]
        )
        with pytest.raises(SnapshotError):
            restore_station(damaged, {"transport": None})


@pytest.mark.promise("durable")
def test_steps_lead_to_the_current_format():
    """A change that raises a number adds a step from before, with a file that the program of before wrote."""
    assert [step.after for step in STEPS[:-1]] == [step.before for step in STEPS[1:]] and STEPS[-1].after == CURRENT
    assert {path.stem for path in OLDER.glob("state-*")} == {"state-{}-{}".format(*step.before) for step in STEPS}
    assert find_renewals(CURRENT) == {} and find_renewals((9, 36)) is None and find_renewals(None) is None
    assert find_renewals((CURRENT[0] + 1, CURRENT[1])) is None


OURS = "acquisition.", "basestation.", "gateway.", "innet."
NUMBERS, DIGEST = (11, 37), "42070f8e6180283f"


def test_changed_class_of_a_station_needs_a_new_number(tmp_path):
    """A class of the state that keeps something else raises a number, with a step from before; both are written here.

    Values with a default of their class need no number, as older objects have the default; but those of a frozen class with slots do.
    """
    network, found = SmallNetwork(tmp_path), set()
    for text in QUERIES:
        network.submit(text)
    network.live(45)

    class Noting(_Reader):
        def find_class(self, module, name):
            named = super().find_class(module, name)
            if isinstance(named, type) and module.startswith(OURS):
                found.add(named)
            return named

    outside = network.durable._outside
    body = save_station(network.durable.station, outside).partition(b"\n")[2][32:]
    Noting(io.BytesIO(body), {**outside, **_ALWAYS}, {}).load()
    digest = hashlib.sha256(repr(sorted(map(kept, found))).encode()).hexdigest()[:16]
    assert len(found) > 30 and (NUMBERS, DIGEST) == (CURRENT, digest)


class Open:
    """Keeps its attributes in a dict."""


class Narrow:
    """Keeps them in slots."""

    __slots__ = ("first", "second")


@dataclass(frozen=True, slots=True)
class Fixed:
    """Keeps them in slots that nothing changes."""

    first: int
    second: int


@pytest.mark.parametrize(
    ("now", "kept"),
    [(Open, {"first": 1}), (Narrow, (None, {"first": 1})), (Fixed, [1])],
    ids=["dict", "slots", "frozen"],
)
def test_steps_are_taken_together(monkeypatch, now, kept):
    """A class is renamed in one step and gets a value in it, and another value in the next; a third step is about another class."""

    def add(value):
        """A step that appends a value to a list, or puts it into a dict under the name that comes next."""

        def renew(values):
            if isinstance(values, list):
                return [*values, value]
            if isinstance(values, tuple):
                return None, renew(values[1])
            return values | {"second": value}

        return renew

    def drop(values):
        """A step that takes away what `add` added."""
        if isinstance(values, list):
            return values[:1]
        return (None, {"first": 1}) if isinstance(values, tuple) else {"first": 1}

    older, renamed, other = ("here", "Older"), ("here", "Renamed"), ("there", "Other")
    steps = (
        FormatStep((1, 1), (2, 1), (ClassChange(older, renamed, add(7)),)),
        FormatStep((2, 1), (2, 2), (ClassChange(renamed, renamed, drop), ClassChange(other, other, drop))),
        FormatStep((2, 2), (3, 2), (ClassChange(renamed, renamed, add(8)), ClassChange(older, older, drop))),
    )
    monkeypatch.setattr(state_migration, "STEPS", steps)
    monkeypatch.setattr(state_migration, "CURRENT", (3, 2))
    renewals = find_renewals((1, 1))
    assert (
        renewals.keys() == {older, renamed, other}
        and renewals[older].now == renamed
        and len(renewals[other].steps) == 1
    )
    assert find_renewals((2, 2)).keys() == {renamed, older} and find_renewals((3, 2)) == {}
    unfinished = set()
    kind = renewals[older].stand_in(now, unfinished)
    found = kind.__new__(kind)
    assert unfinished == {id(found)}
    found.__setstate__(kept)
    assert type(found) is now and (found.first, found.second) == (1, 8) and not unfinished


def test_classes_that_become_one_take_its_later_steps(monkeypatch):
    one, two, both, last = (("here", name) for name in ("One", "Two", "Both", "Last"))
    steps = (
        FormatStep((1, 1), (2, 1), (ClassChange(one, both, id), ClassChange(two, both, str))),
        FormatStep((2, 1), (3, 1), (ClassChange(both, last, abs),)),
    )
    monkeypatch.setattr(state_migration, "STEPS", steps)
    monkeypatch.setattr(state_migration, "CURRENT", (3, 1))
    found = find_renewals((1, 1))
    assert {name: (each.now, each.steps) for name, each in found.items()} == {
        one: (last, (id, abs)), two: (last, (str, abs)), both: (last, (abs,))
    }  # fmt: skip


def test_each_class_of_a_state_can_change_or_says_that_it_cannot(tmp_path, monkeypatch):
    """Objects of an enum and of a tuple, and functions, have no values of their own: a step about them would change none."""
    write_older(tmp_path)
    with closing(sqlite3.connect(tmp_path / NAME)) as database:
        (body,) = database.execute("SELECT body FROM snapshots ORDER BY entry DESC LIMIT 1").fetchone()
    found, changed = set(), Counter()

    class Noting(_Reader):
        def find_class(self, module, name):
            if module.startswith(OURS):
                found.add((module, name))
            return super().find_class(module, name)

    Noting(io.BytesIO(body.partition(b"\n")[2][32:]), {"transport": None, **_ALWAYS}, find_renewals((10, 37))).load()
    for name in sorted(found - {change.before for change in STEPS[0].changes}):
        renewed = []

        def renew(values, renewed=renewed):
            renewed.append(values)
            return values

        step = FormatStep((10, 37), CURRENT, (*STEPS[0].changes, ClassChange(name, name, renew)))
        with monkeypatch.context() as patched:
            patched.setattr(state_migration, "STEPS", (step,))
            try:
                restore_station(body, {"transport": None})
            except SnapshotError:
                changed["refused"] += 1
                continue
            assert renewed, name
            changed["renewed"] += 1
    assert changed["renewed"] > 100 and changed["refused"] < 30
