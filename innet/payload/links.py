"""LINKS: the links from the neighbours of a mote.

neighbours u8; each: mote u16, quality u8
"""

import struct
from collections.abc import Iterator

from acquisition.errors import PayloadError
from innet.routing.topology import MAX_NEIGHBOURS, LinksReport, NeighbourLink

NEIGHBOUR = struct.Struct("<HB")


def encode_links(report: LinksReport) -> bytes:
    """Encode the best neighbours, at most MAX_NEIGHBOURS."""
    best = sorted(report.links, key=lambda link: (-link.quality, link.neighbour))[:MAX_NEIGHBOURS]
    return bytes((len(best),)) + b"".join(NEIGHBOUR.pack(link.neighbour, link.quality) for link in best)


def decode_links(payload: bytes, mote: int) -> LinksReport:
    """Decode the report of `mote`. PayloadError if it is malformed."""
    if not payload or len(payload) != 1 + payload[0] * NEIGHBOUR.size:
        raise PayloadError("size", mote, f"a LINKS of {len(payload)} bytes does not hold its neighbours")
    links = tuple(NeighbourLink(*NEIGHBOUR.unpack_from(payload, at)) for at in range(1, len(payload), NEIGHBOUR.size))
    neighbours = {link.neighbour for link in links}
    if mote in neighbours or len(neighbours) < len(links):
        raise PayloadError("neighbour", mote, "LINKS that name the mote itself, or one neighbour twice")
    return LinksReport(mote, links)


def annotate_links(report: LinksReport) -> Iterator[tuple[int, str]]:
    """Yield (number of bytes, meaning) for a LINKS payload, for `gateway.frame_annotation`."""
    yield 1, f"{len(report.links)} neighbours"
    for link in report.links:
        yield 2, f"hears mote {link.neighbour}"
        yield 1, f"with quality {link.quality} of 255"
