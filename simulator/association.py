"""Calling: a mote introduces itself, says whom it hears, and goes on as long as nobody has told it a parent, or it would
otherwise not be heard (gateway/SPEC.md: HELLO, LINKS). One for each start of a mote."""

from collections.abc import Callable
from functools import partial

from gateway.frame import BROADCAST, Kind
from gateway.payload import Reason
from innet.payload import encode_links
from innet.routing.topology import Heard, LinksReport
from simulator.forwarder import Relay
from simulator.kernel import MS, Kernel
from simulator.outbox import Outgoing
from simulator.radio_medium import Air

ALONE, ALONE_LONGEST = 10_000 * MS, 3_600_000 * MS
"""The pauses after which a mote without a parent introduces itself again: the first, and the longest."""


class Calling:
    """`hello` makes a HELLO for a reason; `sleeps` says whether there is an agenda."""

    def __init__(self, site: int, kernel: Kernel, air: Air, relay: Relay, out: Outgoing, hello: Callable[[Reason], bytes],
                 sleeps: Callable[[], bool]) -> None:  # fmt: skip
        self._site, self._kernel, self._air, self._relay, self._out = site, kernel, air, relay, out
        self._hello, self._sleeps = hello, sleeps
        self._calls = 0  # the last time that we have begun to introduce ourselves
        self._told: LinksReport | None = None  # whom we hear, as we said it last

    @property
    def has_told(self) -> bool:
        """Who has said nothing keeps to its orders."""
        return self._told is not None

    def begin(self, wait: int, reason: Reason, pause: int) -> None:
        """Introduce ourselves after a while, and then after pauses."""
        self._calls += 1
        call = partial(self._introduce, self._calls, self._kernel.now, reason, pause)
        self._kernel.after(wait, call, priority=1)

    def end(self) -> None:
        """The mote is switched off."""
        self._calls += 1

    def _introduce(self, call: int, since: int, reason: Reason, pause: int) -> None:
        """Say hello, and whom we hear; again and again as long as nobody has told us a parent, and while we sleep and have
        nothing else to say, so that we can be told something."""
        if self._calls != call:
            return
        relay = self._relay
        lost = pause == ALONE or relay.parent == BROADCAST or relay.forsaken
        if lost or (self._sleeps() and relay.taken_at <= since):
            self.say_hello(reason)
            self._tell_links()
        if lost or self._sleeps():
            self.begin(pause, reason, min(2 * pause, ALONE_LONGEST))

    def say_hello(self, reason: Reason) -> None:
        self._out.post(Kind.HELLO, self._hello(reason))

    def notice(self) -> None:
        """Tell whom we hear, where that is something else than what we have told."""
        if self._told is not None and self._heard().differs(self._told):
            self._tell_links()

    def _heard(self) -> LinksReport:
        return LinksReport(self._site, tuple(Heard(*each) for each in self._air.neighbours(self._site)))

    def _tell_links(self) -> None:
        self._told = self._heard()
        self._out.post(Kind.LINKS, encode_links(self._told))
