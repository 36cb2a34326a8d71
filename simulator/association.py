"""Association: a mote announces itself (HELLO) and reports its neighbours (LINKS) until the station assigns it a parent.

It goes on with longer pauses while the mote sleeps and has sent nothing else (gateway/SPEC.md: HELLO, LINKS). A mote makes a
new one at each start.
"""

from collections.abc import Callable
from functools import partial

from gateway.frame import BROADCAST, FrameKind
from gateway.payload import HelloReason
from innet.payload import encode_links
from innet.routing.topology import LinksReport, NeighbourLink
from simulator.forwarder import Forwarder
from simulator.kernel import MS, Kernel
from simulator.outbox import Outbox
from simulator.radio_medium import RadioMedium

CALL_PAUSE_US, LONGEST_CALL_PAUSE_US = 10_000 * MS, 3_600_000 * MS
"""The pauses after which a mote without a parent announces itself again: the first, and the longest."""


class Association:
    """`hello` encodes a HELLO with a reason; `sleeps` returns whether the mote has an agenda."""

    def __init__(self, site: int, kernel: Kernel, medium: RadioMedium, forwarder: Forwarder, outbox: Outbox,
                 hello: Callable[[HelloReason], bytes], sleeps: Callable[[], bool]) -> None:  # fmt: skip
        self._site, self._kernel, self._medium, self._forwarder, self._outbox = site, kernel, medium, forwarder, outbox
        self._hello, self._sleeps = hello, sleeps
        self._announcement = 0  # the number of the present series of announcements
        self._reported: LinksReport | None = None  # the neighbours of the last report

    @property
    def has_reported_links(self) -> bool:
        """A mote that has reported no links keeps to its orders."""
        return self._reported is not None

    def begin(self, wait: int, reason: HelloReason, pause: int) -> None:
        """Announce the mote after `wait` microseconds, and then after pauses that double from `pause` on."""
        self._announcement += 1
        announce = partial(self._announce, self._announcement, self._kernel.now, reason, pause)
        self._kernel.after(wait, announce, priority=1)

    def end(self) -> None:
        """The mote is switched off: cancel the announcements."""
        self._announcement += 1

    def _announce(self, announcement: int, since: int, reason: HelloReason, pause: int) -> None:
        """Send HELLO and LINKS, and schedule the next ones.

        A mote without a parent always does. One that sleeps does so if its parent took nothing from it since `since`: frames
        for it can follow its own.
        """
        if self._announcement != announcement:
            return
        forwarder = self._forwarder
        lost = pause == CALL_PAUSE_US or forwarder.parent == BROADCAST or forwarder.orphaned
        if lost or (self._sleeps() and forwarder.taken_at <= since):
            self.send_hello(reason)
            self._send_links()
        if lost or self._sleeps():
            self.begin(pause, reason, min(2 * pause, LONGEST_CALL_PAUSE_US))

    def send_hello(self, reason: HelloReason) -> None:
        self._outbox.post(FrameKind.HELLO, self._hello(reason))

    def report_neighbours(self) -> None:
        """Send LINKS if the neighbours differ from those of the last report."""
        if self._reported is not None and self._neighbours().differs(self._reported):
            self._send_links()

    def _neighbours(self) -> LinksReport:
        return LinksReport(self._site, tuple(NeighbourLink(*each) for each in self._medium.neighbours(self._site)))

    def _send_links(self) -> None:
        self._reported = self._neighbours()
        self._outbox.post(FrameKind.LINKS, encode_links(self._reported))
