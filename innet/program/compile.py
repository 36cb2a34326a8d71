"""Operators + schedules -> one program per site and sampling. A pure function."""

from collections.abc import Iterable

from acquisition.schedule import Sampling, Schedule
from innet.errors import ProgramError
from innet.operators.deliver import Deliver
from innet.program.opcodes import BY_NAME
from innet.program.program import MoteProgram


def compile_programs(delivered: Iterable[Deliver], schedules: Iterable[Schedule]) -> list[MoteProgram]:
    """What each site runs so that every one of the operators gets its tuples; each value is sent once for all."""
    wanted: dict[str, set[str]] = {}
    for operator in delivered:
        wanted.setdefault(operator.child.extent, set()).update(operator.sent)
    return [
        MoteProgram(schedule.site, sampling.number, schedule.version, len(sampling.channels), code)
        for schedule in schedules
        for sampling in schedule.samplings
        if (code := _code(sampling, wanted.get(sampling.extent, set())))
    ]


def _code(sampling: Sampling, wanted: set[str]) -> bytes:
    sampled = [channel.attribute for channel in sampling.channels]
    if missing := sorted(wanted.difference(sampled)):
        raise ProgramError(f"`{missing[0]}` of {sampling.extent} is to be sent and is not sampled")
    code = bytearray()
    for channel, attribute in enumerate(sampled):
        if attribute in wanted:
            code += bytes((BY_NAME["LOAD"].number, channel, BY_NAME["OUT"].number, channel))
    return bytes(code) + bytes((BY_NAME["HALT"].number,))
