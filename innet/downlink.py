"""DOOR DOWN: mote programs -> what motes are sent."""

from collections.abc import Iterable

from gateway.image import Image
from innet.payload import Orders, encode_orders, programs_of
from innet.program.program import MoteProgram


def images(compiled: Iterable[MoteProgram]) -> dict[int, Image]:
    """What each site is to run, under the version of the schedule that it was made with."""
    found = programs_of(compiled)
    return {site: encode_orders(programs[0].version, Orders(programs)) for site, programs in found.items()}
