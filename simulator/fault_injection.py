"""Fault injection: schedules the faults of a scenario on its kernel."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from simulator.kernel import MS
from simulator.scenario import InjectedFault, Scenario
from simulator.world_builder import SimulatedWorld

SetBase: TypeAlias = Callable[[bool], None]
"""Called with False when the base station goes away, and with True when it comes back."""
Action: TypeAlias = Callable[[InjectedFault, SimulatedWorld, SetBase], None]


def schedule_faults(scenario: Scenario, built: SimulatedWorld, base: SetBase) -> None:
    """Schedule all faults of a scenario, and the ends of those that end."""
    for fault in scenario.faults:
        begin, end = _ACTIONS[fault.what]
        at = (scenario.begin_ms + fault.at_ms) * MS
        built.kernel.at(at, partial(_begin, begin, fault, built, base), priority=-2)
        if fault.until_ms is not None and end:
            until = (scenario.begin_ms + fault.until_ms) * MS
            built.kernel.at(until, partial(end, fault, built, base), priority=-2)


def _begin(action: Action, fault: InjectedFault, built: SimulatedWorld, base: SetBase) -> None:
    for mote in fault.motes or (0,):
        built.trace.record(built.kernel.now, mote, "fault", name=fault.name)
    action(fault, built, base)


def _die(fault: InjectedFault, built: SimulatedWorld, _: SetBase) -> None:
    for mote in fault.motes:
        built.motes[mote].die("fault")


def _hang(fault: InjectedFault, built: SimulatedWorld, _: SetBase) -> None:
    for mote in fault.motes:
        built.motes[mote].hang()


def _reboot(fault: InjectedFault, built: SimulatedWorld, _: SetBase) -> None:
    for mote in fault.motes:
        built.motes[mote].reboot()


def _cut(fault: InjectedFault, built: SimulatedWorld, _: SetBase) -> None:
    for mote in fault.motes:
        built.medium.cut(mote)


def _mend(fault: InjectedFault, built: SimulatedWorld, _: SetBase) -> None:
    for mote in fault.motes:
        built.medium.mend(mote)


def _jump(fault: InjectedFault, built: SimulatedWorld, _: SetBase) -> None:
    for mote in fault.motes:
        built.motes[mote].jump(fault.by_ms)


def _move(fault: InjectedFault, built: SimulatedWorld, base: SetBase) -> None:
    """Replace all links of the motes by the `links` of the fault."""
    ratios = built.channel.ratios
    for link in [link for link in ratios if set(link) & set(fault.motes)]:
        del ratios[link]
    _relink(fault, built, base)


def _relink(fault: InjectedFault, built: SimulatedWorld, _: SetBase) -> None:
    for sender, receiver, ratio in fault.links:
        built.channel.ratios[sender, receiver] = ratio
    built.medium.changed()


def _restore_links(fault: InjectedFault, built: SimulatedWorld, _: SetBase) -> None:
    for sender, receiver, _ratio in fault.links:
        built.channel.ratios[sender, receiver] = built.declared.get((sender, receiver), 0.0)
    built.medium.changed()


def _away(_fault: InjectedFault, _built: SimulatedWorld, base: SetBase) -> None:
    base(False)


def _back(_fault: InjectedFault, _built: SimulatedWorld, base: SetBase) -> None:
    base(True)


def _nothing(_fault: InjectedFault, _built: SimulatedWorld, _base: SetBase) -> None:
    """The fields of the sensors contain their failures (`simulator.world_builder`)."""


_ACTIONS: dict[str, tuple[Action, Action | None]] = {
    "dies": (_die, None),
    "hangs": (_hang, None),
    "reboots": (_reboot, None),
    "cut": (_cut, _mend),
    "sensor_fails": (_nothing, None),
    "clock_jumps": (_jump, None),
    "moves": (_move, None),
    "links_change": (_relink, _restore_links),
    "base_away": (_away, _back),
}
