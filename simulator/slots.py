"""Slots: when in each epoch a mote's radio is on, and to whom it sends; what an agenda says to one mote."""

from dataclasses import dataclass

Slot = tuple[int, int]
"""From and to, in microseconds after the epoch begins."""


@dataclass(frozen=True, slots=True)
class Slots:
    """`send` is the mote's own slot, in which its `parent` listens; `listen` are those of its children."""

    parent: int
    send: Slot
    listen: tuple[Slot, ...] = ()
