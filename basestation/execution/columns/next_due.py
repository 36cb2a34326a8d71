"""Silence: for how long nothing is due, whatever comes in time: until when, and until how many tuples have come."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from basestation.execution.columns.window_batch import NEVER


@dataclass(frozen=True, slots=True)
class NextDue:
    """Nothing is due before a clock tick, as long as of no extent under `room` more tuples come than that."""

    before: int
    room: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self):
        """Whether anything may wait at all."""
        return self.before > -NEVER


DUE_NOW = NextDue(-NEVER)
NEVER_DUE = NextDue(NEVER)


def find_earliest(silences):
    """The Silence of all of them together; that of nobody lasts."""
    found = list(silences)
    if len(found) == 1:
        return found[0]
    room = {}
    for each in found:
        for extent, most in each.room.items():
            room[extent] = min(most, room.get(extent, most))
    return NextDue(min((each.before for each in found), default=NEVER), room)
