"""Moves: how much of what may run on motes does run there. No answer depends on it; what motes send and use does."""

from enum import StrEnum


class PushdownPolicy(StrEnum):
    """What whoever starts a station says: `planned` leaves it to the costs, the others are for comparing with that."""

    EVERYTHING = "everything"
    NOTHING = "nothing"
    PLANNED = "planned"
