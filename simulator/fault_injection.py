"""What goes wrong, at its time."""

from collections.abc import Callable
from functools import partial

from simulator.kernel import MS
from simulator.scenario import Fault, Scenario
from simulator.world_builder import Built


def plan_faults(scenario: Scenario, built: Built, base: Callable[[bool], None]) -> None:
    """Put all faults of a scenario on its kernel. `base` is told when the base station goes away, and comes back."""
    for fault in scenario.faults:
        begin, end = _DONE[fault.what]
        at = (scenario.begin_ms + fault.at_ms) * MS
        built.kernel.at(at, partial(_happen, begin, fault, built, base), priority=-2)
        if fault.until_ms is not None and end:
            until = (scenario.begin_ms + fault.until_ms) * MS
            built.kernel.at(until, partial(end, fault, built, base), priority=-2)


def _happen(begin: Callable, fault: Fault, built: Built, base: Callable[[bool], None]) -> None:
    for mote in fault.motes or (0,):
        built.trace.record(built.kernel.now, mote, "fault", name=fault.name)
    begin(fault, built, base)


def _die(fault: Fault, built: Built, _: object) -> None:
    for mote in fault.motes:
        built.motes[mote].die("fault")


def _hang(fault: Fault, built: Built, _: object) -> None:
    for mote in fault.motes:
        built.motes[mote].hang()


def _reboot(fault: Fault, built: Built, _: object) -> None:
    for mote in fault.motes:
        built.motes[mote].reboot()


def _cut(fault: Fault, built: Built, _: object) -> None:
    for mote in fault.motes:
        built.air.cut(mote)


def _mend(fault: Fault, built: Built, _: object) -> None:
    for mote in fault.motes:
        built.air.mend(mote)


def _jump(fault: Fault, built: Built, _: object) -> None:
    for mote in fault.motes:
        built.motes[mote].jump(fault.by_ms)


def _move(fault: Fault, built: Built, _: object) -> None:
    """Whoever moves hears and is heard by those of `links`, and nobody else."""
    ratios = built.channel.ratios
    for link in [link for link in ratios if set(link) & set(fault.motes)]:
        del ratios[link]
    _relink(fault, built, _)


def _relink(fault: Fault, built: Built, _: object) -> None:
    for sender, receiver, ratio in fault.links:
        built.channel.ratios[sender, receiver] = ratio
    built.air.changed()


def _as_before(fault: Fault, built: Built, _: object) -> None:
    for sender, receiver, _ratio in fault.links:
        built.channel.ratios[sender, receiver] = built.declared.get((sender, receiver), 0.0)
    built.air.changed()


def _away(_fault: Fault, _built: Built, base: Callable[[bool], None]) -> None:
    base(False)


def _back(_fault: Fault, _built: Built, base: Callable[[bool], None]) -> None:
    base(True)


def _nothing(*_: object) -> None:
    """The sensors know by themselves (`simulator.world_builder`)."""


_DONE = {
    "dies": (_die, None),
    "hangs": (_hang, None),
    "reboots": (_reboot, None),
    "cut": (_cut, _mend),
    "sensor_fails": (_nothing, None),
    "clock_jumps": (_jump, None),
    "moves": (_move, None),
    "links_change": (_relink, _as_before),
    "base_away": (_away, _back),
}
