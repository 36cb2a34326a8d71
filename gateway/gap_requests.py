"""Gap requests: when to ask a mote for sequence numbers that are missing.

A gap may be a frame on a slower path, so the station waits before it asks. Then it asks a few times, with growing
pauses. A mote that no longer has a frame answers that it is lost. A gap without any answer stays a gap.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gateway.frame import MAX_PAYLOAD, Frame, FrameKind, MoteId
from gateway.payload import MAX_GAPS, Gaps, SelectiveAck, encode_selective_ack, gap_capacity


@dataclass(slots=True)
class GapRequest:
    """The gaps of one boot since they last changed, and how often they were requested."""

    gaps: Gaps
    next_at: int
    times: int = 0


@dataclass(slots=True)
class GapRequests:
    """The open requests to one mote, one for each boot. `patience_ms` is the first pause, `times` the most requests."""

    patience_ms: int = 30_000
    times: int = 5
    _open: dict[int, GapRequest] = field(default_factory=dict)

    def due(self, missing: Mapping[int, Gaps], now: int) -> Iterator[tuple[int, Gaps]]:
        """Yield (boot, gaps) to request at `now` (ms); each counts as requested when it is taken."""
        for boot in [boot for boot in self._open if boot not in missing]:
            del self._open[boot]
        for boot, gaps in missing.items():
            request = self._open.get(boot)
            if request is None or request.gaps != gaps:
                self._open[boot] = GapRequest(gaps, now + self.patience_ms)
            elif request.times < self.times and now >= request.next_at:
                request.times += 1
                request.next_at = now + (self.patience_ms << request.times)
                yield boot, gaps


def make_selective_ack(mote: MoteId, boot: int, seq: int, gaps: Gaps, room: int = MAX_PAYLOAD) -> Frame:
    """Return the ACK that says: all frames of this boot up to `seq` arrived, but for the gaps.

    If `room` (bytes) is too small for all gaps, the ACK covers only the numbers before the first gap left out.
    """
    most = min(MAX_GAPS, gap_capacity(room))
    if len(gaps) > most:
        seq, gaps = gaps[most][0] - 1, gaps[:most]
    return Frame(FrameKind.ACK, mote, boot, seq, encode_selective_ack(SelectiveAck(gaps)), down=True, want_ack=False)
