"""DOOR DOWN: schedules and the time -> messages for motes."""

from collections.abc import Iterable

from acquisition.payload import encode_schedule, encode_time
from acquisition.schedule import Schedule
from gateway.frame import Kind, Message, MoteId
from gateway.image import messages


def schedules(changed: Iterable[Schedule]) -> list[Message]:
    """The SCHEDULEs for each site whose schedule changed."""
    return [m for s in changed for m in messages(Kind.SCHEDULE, MoteId(s.site), encode_schedule(s))]


def clock(sites: Iterable[int], now_ms: int, tick_ms: int) -> list[Message]:
    """Tell motes the time. Not acknowledged: sent again it would be wrong, so the next one repairs a lost one."""
    payload = encode_time(now_ms, tick_ms)
    return [Message(Kind.TIME, MoteId(site), payload, want_ack=False) for site in sites]
