"""State migration: how the state that an older program saved becomes one of this program, one format at a time.

A snapshot is the objects of a station. A step from one format to the next names each class that keeps something else there, or has moved,
with the values that its objects keep then. While a snapshot of an older format is read, the steps since then are taken together:
each object is made of the class as it is now, from its older values.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from basestation.execution.snapshot import FORMAT

Format: TypeAlias = tuple[int, int]
"""The numbers of the station's classes and of the engine's, in the head of a snapshot."""
ClassName: TypeAlias = tuple[str, str]
"""A module and the name of a class in it."""
Renew: TypeAlias = Callable[[Any], Any]
"""The values that an object keeps after a step, of those before; both as pickle has them: a list for a frozen class with slots.

It may look at these values only: objects among them are those of this program already.
"""
STATION = 11
"""One more wherever a class of the station keeps something else; `STEPS` then has a step from before."""
CURRENT: Format = STATION, FORMAT
HEAD = b"moteloom station %d on engine %d, python %d.%d\n"
"""The first line of a snapshot."""
LONGEST_HEAD = 80
"""Bytes."""
_ANY_HEAD = re.compile(HEAD.replace(b"%d", rb"(\d{1,6})"))


@dataclass(frozen=True, slots=True)
class ClassChange:
    """The change of a class in a step. Its objects have values of their own: it is no enum, no tuple, and no function."""

    before: ClassName
    now: ClassName
    renew: Renew


@dataclass(frozen=True, slots=True)
class FormatStep:
    """From a format to the next one."""

    before: Format
    after: Format
    changes: tuple[ClassChange, ...]


@dataclass(frozen=True, slots=True)
class Renewal:
    """The changes of a class in all steps together."""

    now: ClassName
    steps: tuple[Renew, ...] = ()

    def stand_in(self, now: type, unfinished: set[int]) -> type:
        """A class whose objects become such of `now` when they get the values that an older program saved.

        `unfinished` has the identities of those that have not got them yet.
        """

        def begin(cls: type, *given: Any, **named: Any) -> Any:
            made = now.__new__(cls, *given, **named)
            unfinished.add(id(made))
            return made

        def take(made: object, values: Any) -> None:
            for renew in self.steps:
                values = renew(values)
            object.__setattr__(made, "__class__", now)
            _give(made, values)
            unfinished.discard(id(made))

        return type(now)(now.__name__, (now,), {"__slots__": (), "__new__": begin, "__setstate__": take})


def _give(target: Any, values: Any) -> None:
    """Let an object keep values, as pickle does."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(values)
        return
    attributes, slots = values if isinstance(values, tuple) else (values, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        object.__setattr__(target, name, value)


def find_format(head: bytes) -> Format | None:
    """The format of a snapshot that begins with these bytes; None where this Python cannot read it, or it is none."""
    found = _ANY_HEAD.match(head)
    station, engine, *python = map(int, found.groups()) if found else (0, 0)
    return (station, engine) if python == list(sys.version_info[:2]) else None


def read_head(data: bytes) -> str:
    """Return the first line of a snapshot, as messages show it."""
    return data[:LONGEST_HEAD].partition(b"\n")[0].decode("ascii", "replace")


def find_renewals(format_: Format | None) -> Mapping[ClassName, Renewal] | None:
    """By its older name, what became of each class since a format; None where no steps lead from there."""
    formats = [*(step.before for step in STEPS), CURRENT]
    if format_ not in formats:
        return None
    found: dict[ClassName, Renewal] = {}
    for step in STEPS[formats.index(format_) :]:
        changed: dict[ClassName, Renewal] = {}
        for change in step.changes:
            older = {name: renewal for name, renewal in found.items() if renewal.now == change.before}
            if change.before not in found:  # else the class of that name has another one now, and this one is newer
                older[change.before] = Renewal(change.before)
            for name, renewal in older.items():
                changed[name] = Renewal(change.now, (*renewal.steps, change.renew))
        found |= changed
    return found


_WORLD = ("basestation.controller.world", "World")


def _note_no_filter_reports(values: list[Any]) -> list[Any]:
    """The world of station 10 did not note how far motes had reported filtered readings, which counts in the tick of the upgrade only."""
    return [*values[:14], {}, *values[14:]]


STEPS = (FormatStep((10, 37), (11, 37), (ClassChange(_WORLD, _WORLD, _note_no_filter_reports),)),)
"""In their order. A change that raises a number adds the step from before, and a file of the program of before to the tests."""
OLDEST = STEPS[0].before
