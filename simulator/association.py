"""Calling: a mote introduces itself, says whom it hears, and goes on as long as nobody has told it a parent, or it would
otherwise not be heard (gateway/SPEC.md: HELLO, LINKS). One for each start of a mote."""

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
"""The pauses after which a mote without a parent introduces itself again: the first, and the longest."""


class Association:
    """`hello` makes a HELLO for a reason; `sleeps` says whether there is an agenda."""

    def __init__(self, site: int, kernel: Kernel, air: RadioMedium, forwarder: Forwarder, out: Outbox, hello: Callable[[HelloReason], bytes],
                 sleeps: Callable[[], bool]) -> None:  # fmt: skip
        self._site, self._kernel, self._air, self._relay, self._out = site, kernel, air, forwarder, out
        self._hello, self._sleeps = hello, sleeps
        self._calls = 0  # the last time that we have begun to introduce ourselves
        self._told: LinksReport | None = None  # whom we hear, as we said it last

    @property
    def has_reported_links(self) -> bool:
        """Who has said nothing keeps to its orders."""
        return self._told is not None

    def begin(self, wait: int, reason: HelloReason, pause: int) -> None:
        """Introduce ourselves after a while, and then after pauses."""
        self._calls += 1
        call = partial(self._introduce, self._calls, self._kernel.now, reason, pause)
        self._kernel.after(wait, call, priority=1)

    def end(self) -> None:
        """The mote is switched off."""
        self._calls += 1

    def _introduce(self, call: int, since: int, reason: HelloReason, pause: int) -> None:
        """Say hello, and whom we hear; again and again as long as nobody has told us a parent, and while we sleep and have
        nothing else to say, so that we can be told something."""
        if self._calls != call:
            return
        forwarder = self._relay
        lost = pause == CALL_PAUSE_US or forwarder.parent == BROADCAST or forwarder.orphaned
        if lost or (self._sleeps() and forwarder.taken_at <= since):
            self.send_hello(reason)
            self._tell_links()
        if lost or self._sleeps():
            self.begin(pause, reason, min(2 * pause, LONGEST_CALL_PAUSE_US))

    def send_hello(self, reason: HelloReason) -> None:
        self._out.post(FrameKind.HELLO, self._hello(reason))

    def report_neighbours(self) -> None:
        """Tell whom we hear, where that is something else than what we have told."""
        if self._told is not None and self._heard().differs(self._told):
            self._tell_links()

    def _heard(self) -> LinksReport:
        return LinksReport(self._site, tuple(NeighbourLink(*each) for each in self._air.neighbours(self._site)))

    def _tell_links(self) -> None:
        self._told = self._heard()
        self._out.post(FrameKind.LINKS, encode_links(self._told))
