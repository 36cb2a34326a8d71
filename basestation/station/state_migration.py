"""State migration: how the state that an older program saved becomes one of this program, one format at a time.

A snapshot is the objects of a station. A step from one format to the next names each class that keeps something else there, or lies
elsewhere, with the values that its objects keep then. While a snapshot of an older format is read, the steps since then are taken
together: each object is made of the class as it is now, from its older values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Format: TypeAlias = tuple[int, int]
"""The numbers of the station's classes and of the engine's, in the head of a snapshot."""
ClassName: TypeAlias = tuple[str, str]
"""A module and the name of a class in it."""
Renew: TypeAlias = Callable[[Any], Any]
"""The values that an object keeps after a step, of those before; both as pickle has them: a list for a frozen class with slots."""


@dataclass(frozen=True, slots=True)
class ClassChange:
    """The change of a class in a step."""

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
    steps: tuple[Renew, ...]

    def stand_in(self, now: type) -> type:
        """A class whose objects become such of `now` when they get the values that an older program saved."""

        def take(self_: object, values: Any) -> None:
            for renew in self.steps:
                values = renew(values)
            object.__setattr__(self_, "__class__", now)
            _give(self_, values)

        return type(now)(now.__name__, (now,), {"__slots__": (), "__setstate__": take})


def _give(target: Any, values: Any) -> None:
    """Let an object keep values, as pickle does."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(values)
        return
    attributes, slots = values if isinstance(values, tuple) else (values, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        object.__setattr__(target, name, value)


def find_renewals(format_: Format, current: Format) -> Mapping[ClassName, Renewal] | None:
    """By its older name, what became of each class since a format; None where no steps lead from there."""
    begin = [step.before for step in STEPS].index(format_) if format_ in {step.before for step in STEPS} else len(STEPS)
    if format_ != current and begin == len(STEPS):
        return None
    found: dict[ClassName, Renewal] = {}
    for step in STEPS[begin:]:
        older = {renewal.now: name for name, renewal in found.items()}
        for change in step.changes:
            name = older.get(change.before, change.before)
            steps = found[name].steps if name in found else ()
            found[name] = Renewal(change.now, (*steps, change.renew))
    return found


_WORLD = ("basestation.controller.world", "World")


def _note_no_filter_reports(values: list[Any]) -> list[Any]:
    """The world of station 10 did not note how far motes had reported filtered readings; frames after the snapshot say it."""
    return [*values[:14], {}, *values[14:]]


STEPS = (FormatStep((10, 37), (11, 37), (ClassChange(_WORLD, _WORLD, _note_no_filter_reports),)),)
"""In their order. A change that raises a number adds the step from before, and a file of the program of before to the tests."""
OLDEST = STEPS[0].before
