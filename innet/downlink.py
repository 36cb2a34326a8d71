"""DOOR DOWN: mote programs -> messages for motes."""

from collections.abc import Iterable, Mapping

from gateway.frame import Kind, Message, MoteId
from gateway.image import Image, messages
from innet.payload import Orders, encode_orders, programs_of
from innet.program.program import MoteProgram


def images(compiled: Iterable[MoteProgram]) -> dict[int, Image]:
    """What each site is to run, under the version of the schedule that it was made with."""
    found = programs_of(compiled)
    return {site: encode_orders(programs[0].version, Orders(programs)) for site, programs in found.items()}


def programs(changed: Mapping[int, Image]) -> list[Message]:
    """Each image in PROGRAM messages; a mote starts with it at its next epoch."""
    return [m for site, image in changed.items() for m in messages(Kind.PROGRAM, MoteId(site), image)]
