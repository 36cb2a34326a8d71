"""NextDue: when output may be due next, provided that everything comes in time. Until then, deliveries may wait."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from basestation.execution.columns.window_batch import NEVER


@dataclass(frozen=True, slots=True)
class NextDue:
    """Nothing is due before clock tick `before`, as long as each extent in `room` gets at most that many tuples."""

    before: int
    room: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether deliveries may wait at all."""
        return self.before > -NEVER


DUE_NOW = NextDue(-NEVER)
NEVER_DUE = NextDue(NEVER)


def find_earliest(all_due: Iterable[NextDue]) -> NextDue:
    """Return the time at which the first of several outputs may be due; NEVER_DUE for none."""
    found = list(all_due)
    if len(found) == 1:
        return found[0]
    room: dict[str, int] = {}
    for due in found:
        for extent, most in due.room.items():
            room[extent] = min(most, room.get(extent, most))
    return NextDue(min((due.before for due in found), default=NEVER), room)
