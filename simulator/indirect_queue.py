"""Frames for neighbours that may be asleep: kept until the neighbour was heard and asks for them.

As in IEEE 802.15.4 (indirect transmission): the acknowledgement of a frame says that there is something for its sender,
who then stays awake and asks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gateway.frame import Frame
from simulator.mac import MacLayer, keep_unchanged

CAPACITY = 16
"""So many for each neighbour; of more, the oldest are forgotten: whoever wants them delivered says them again."""


@dataclass(frozen=True, slots=True)
class _Offer:
    frame: Frame
    refresh: Callable[[Frame, int], Frame]
    done: Callable[[], None]


class IndirectQueue:
    """`carrier` sends what is released."""

    def __init__(self, carrier: MacLayer) -> None:
        self._carrier = carrier
        self._waiting: dict[int, dict[tuple, _Offer]] = {}  # by receiver and what makes a frame that frame

    def send(self, frame: Frame, at_once: bool, done: Callable[[], None] = lambda: None,
             refresh: Callable[[Frame, int], Frame] = keep_unchanged) -> None:  # fmt: skip
        """To a neighbour; `is_on_time` is for one that may be awake. `done` hears when it has taken it."""
        offer = _Offer(frame, refresh, done)
        if at_once:
            self._hand_over(offer)
        else:
            self._keep(offer)

    def has_frames_for(self, number: int) -> bool:
        return bool(self._waiting.get(number))

    def release(self, number: int) -> None:
        """It listens now."""
        for offer in self._waiting.pop(number, {}).values():
            self._hand_over(offer)

    def forget(self) -> None:
        self._waiting.clear()

    def _hand_over(self, offer: _Offer) -> None:
        self._carrier.hand_over(offer.frame, partial(self._handed_over, offer), offer.refresh)

    def _handed_over(self, offer: _Offer, taken: bool) -> None:
        if taken:
            offer.done()
        else:
            self._keep(offer)

    def _keep(self, offer: _Offer) -> None:
        frame = offer.frame
        waiting = self._waiting.setdefault(frame.receiver, {})
        waiting[frame.kind, *frame.identity] = offer
        if len(waiting) > CAPACITY:
            del waiting[next(iter(waiting))]
