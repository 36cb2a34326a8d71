"""Indirect transmission: frames for neighbours that may be asleep wait until the neighbour polls.

As in IEEE 802.15.4: the acknowledgement of a frame says that a frame is pending for its sender. The sender then stays awake
and polls.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gateway.frame import Frame, FrameKind
from simulator.mac import MacLayer, Refresh, keep_unchanged, receiver_of

CAPACITY = 16
"""The frames that wait for one neighbour. The oldest is dropped first: the station sends it again if it is still needed."""


@dataclass(frozen=True, slots=True)
class _Pending:
    frame: Frame
    refresh: Refresh
    done: Callable[[], None]


class IndirectQueue:
    """Frames by receiver; `mac` sends those that are released."""

    def __init__(self, mac: MacLayer) -> None:
        self._mac = mac
        self._waiting: dict[int, dict[tuple[FrameKind, int, int, int], _Pending]] = {}  # by receiver, kind and identity

    def send(self, frame: Frame, at_once: bool, done: Callable[[], None] = lambda: None,
             refresh: Refresh = keep_unchanged) -> None:  # fmt: skip
        """Queue a frame for its receiver, or send it `at_once` if that one may be awake.

        `done` is called when the receiver has taken it. `refresh` is that of `MacLayer.hand_over`.
        """
        pending = _Pending(frame, refresh, done)
        if at_once:
            self._hand_over(pending)
        else:
            self._keep(pending)

    def has_frames_for(self, number: int) -> bool:
        return bool(self._waiting.get(number))

    def release(self, number: int) -> None:
        """Send every frame that waits for a neighbour, which polls."""
        for pending in self._waiting.pop(number, {}).values():
            self._hand_over(pending)

    def forget(self) -> None:
        self._waiting.clear()

    def _hand_over(self, pending: _Pending) -> None:
        self._mac.hand_over(pending.frame, partial(self._end, pending), pending.refresh)

    def _end(self, pending: _Pending, taken: bool) -> None:
        if taken:
            pending.done()
        else:
            self._keep(pending)

    def _keep(self, pending: _Pending) -> None:
        frame = pending.frame
        waiting = self._waiting.setdefault(receiver_of(frame), {})
        waiting[frame.kind, *frame.identity] = pending
        if len(waiting) > CAPACITY:
            del waiting[next(iter(waiting))]
