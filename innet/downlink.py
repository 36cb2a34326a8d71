"""DOOR DOWN: mote programs -> what motes are sent."""

from collections.abc import Iterable, Mapping

from acquisition.schedule import Schedule
from gateway.frame import BROADCAST
from gateway.image import Image
from innet.payload import Orders, encode_orders, programs_of
from innet.program.program import MoteProgram
from innet.routing.tree import RoutingTree


def images(compiled: Iterable[MoteProgram], tree: RoutingTree, schedules: Mapping[int, Schedule]) -> dict[int, Image]:
    """What each site that samples is to run, and to whom it sends, under the version of its schedule.

    A site that is not in the tree yet sends to whoever hears it; one that runs nothing still passes on what others send.
    """
    programs = programs_of(compiled)
    return {
        site: encode_orders(schedule.version, Orders(programs.get(site, ()), tree.parent.get(site, BROADCAST)))
        for site, schedule in schedules.items()
        if schedule.samplings
    }
