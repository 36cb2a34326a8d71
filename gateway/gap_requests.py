"""Asking: which numbers of a mote have not come, and when to ask for them.

A gap may be a frame that is still on its way by a slower one, so it is given a moment. Then it is asked for a few
times, ever more slowly; a mote that has it no more says so. A gap that nobody answers for stays one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gateway.frame import MAX_PAYLOAD, Frame, FrameKind, MoteId
from gateway.payload import MAX_GAPS, Gaps, SelectiveAck, encode_selective_ack, gap_capacity


@dataclass(slots=True)
class GapRequest:
    """The gaps of one boot as they were when they last changed, and how often they were asked for since."""

    gaps: Gaps
    next_at: int
    times: int = 0


@dataclass(slots=True)
class GapRequests:
    """The questions to one mote, by its boot."""

    patience_ms: int = 30_000
    times: int = 5
    _open: dict[int, GapRequest] = field(default_factory=dict)

    def due(self, missing: Mapping[int, Gaps], now: int) -> Iterator[tuple[int, Gaps]]:
        """(boot, gaps) to be asked for now; each counts as asked when it is taken."""
        for boot in [boot for boot in self._open if boot not in missing]:
            del self._open[boot]
        for boot, gaps in missing.items():
            question = self._open.get(boot)
            if question is None or question.gaps != gaps:
                self._open[boot] = GapRequest(gaps, now + self.patience_ms)
            elif question.times < self.times and now >= question.next_at:
                question.times += 1
                question.next_at = now + (self.patience_ms << question.times)
                yield boot, gaps


def make_selective_ack(mote: MoteId, boot: int, seq: int, gaps: Gaps, room: int = MAX_PAYLOAD) -> Frame:
    """The ACK that says: all of this boot up to `seq` came, but for these. It is as true as the gaps that it has room
    for, so with more of them it ends where they do."""
    most = min(MAX_GAPS, gap_capacity(room))
    if len(gaps) > most:
        seq, gaps = gaps[most][0] - 1, gaps[:most]
    return Frame(FrameKind.ACK, mote, boot, seq, encode_selective_ack(SelectiveAck(gaps)), down=True, want_ack=False)
