"""What goes wrong, at its time."""

from collections.abc import Callable
from functools import partial

from simulator.kernel import MS
from simulator.scenario import InjectedFault, Scenario
from simulator.world_builder import SimulatedWorld


def schedule_faults(scenario: Scenario, built: SimulatedWorld, base: Callable[[bool], None]) -> None:
    """Put all faults of a scenario on its kernel. `base` is told when the base station goes away, and comes back."""
    for fault in scenario.faults:
        begin, end = _ACTIONS[fault.what]
        at = (scenario.begin_ms + fault.at_ms) * MS
        built.kernel.at(at, partial(_happen, begin, fault, built, base), priority=-2)
        if fault.until_ms is not None and end:
            until = (scenario.begin_ms + fault.until_ms) * MS
            built.kernel.at(until, partial(end, fault, built, base), priority=-2)


def _happen(begin: Callable, fault: InjectedFault, built: SimulatedWorld, base: Callable[[bool], None]) -> None:
    for mote in fault.motes or (0,):
        built.trace.record(built.kernel.now, mote, "fault", name=fault.name)
    begin(fault, built, base)


def _die(fault: InjectedFault, built: SimulatedWorld, _: object) -> None:
    for mote in fault.motes:
        built.motes[mote].die("fault")


def _hang(fault: InjectedFault, built: SimulatedWorld, _: object) -> None:
    for mote in fault.motes:
        built.motes[mote].hang()


def _reboot(fault: InjectedFault, built: SimulatedWorld, _: object) -> None:
    for mote in fault.motes:
        built.motes[mote].reboot()


def _cut(fault: InjectedFault, built: SimulatedWorld, _: object) -> None:
    for mote in fault.motes:
        built.medium.cut(mote)


def _mend(fault: InjectedFault, built: SimulatedWorld, _: object) -> None:
    for mote in fault.motes:
        built.medium.mend(mote)


def _jump(fault: InjectedFault, built: SimulatedWorld, _: object) -> None:
    for mote in fault.motes:
        built.motes[mote].jump(fault.by_ms)


def _move(fault: InjectedFault, built: SimulatedWorld, _: object) -> None:
    """Whoever moves hears and is heard by those of `links`, and nobody else."""
    ratios = built.channel.ratios
    for link in [link for link in ratios if set(link) & set(fault.motes)]:
        del ratios[link]
    _relink(fault, built, _)


def _relink(fault: InjectedFault, built: SimulatedWorld, _: object) -> None:
    for sender, receiver, ratio in fault.links:
        built.channel.ratios[sender, receiver] = ratio
    built.medium.changed()


def _as_before(fault: InjectedFault, built: SimulatedWorld, _: object) -> None:
    for sender, receiver, _ratio in fault.links:
        built.channel.ratios[sender, receiver] = built.declared.get((sender, receiver), 0.0)
    built.medium.changed()


def _away(_fault: InjectedFault, _built: SimulatedWorld, base: Callable[[bool], None]) -> None:
    base(False)


def _back(_fault: InjectedFault, _built: SimulatedWorld, base: Callable[[bool], None]) -> None:
    base(True)


def _nothing(*_: object) -> None:
    """The sensors know by themselves (`simulator.world_builder`)."""


_ACTIONS = {
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
