"""DOOR DOWN: mote programs -> what motes are sent."""

from collections.abc import Iterable

from gateway.frame import BROADCAST
from gateway.image import Image
from innet.payload import Orders, encode_orders, programs_of
from innet.program.program import MoteProgram
from innet.routing.tree import RoutingTree


def images(compiled: Iterable[MoteProgram], tree: RoutingTree) -> dict[int, Image]:
    """What each site is to run, and to whom it sends, under the version of the schedule that it was made with.

    A site that is not in the tree yet sends to whoever hears it.
    """
    return {
        site: encode_orders(programs[0].version, Orders(programs, tree.parent.get(site, BROADCAST)))
        for site, programs in programs_of(compiled).items()
    }
