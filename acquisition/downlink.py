"""DOOR DOWN: schedules and the time -> messages for motes."""

from collections.abc import Iterable

from acquisition.payload import encode_schedule, encode_time
from acquisition.schedule import Schedule
from gateway.frame import Kind, Message, MoteId


def schedules(changed: Iterable[Schedule]) -> list[Message]:
    """One SCHEDULE for each site whose schedule changed."""
    return [Message(Kind.SCHEDULE, MoteId(schedule.site), encode_schedule(schedule)) for schedule in changed]


def clock(sites: Iterable[int], now_ms: int, tick_ms: int) -> list[Message]:
    """Tell motes the time. Not acknowledged: sent again it would be wrong, so the next one repairs a lost one."""
    payload = encode_time(now_ms, tick_ms)
    return [Message(Kind.TIME, MoteId(site), payload, want_ack=False) for site in sites]
