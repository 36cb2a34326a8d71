"""LINKS: whom a mote hears.

neighbours u8; each: mote u16, quality u8
"""

import struct
from collections.abc import Iterator

from innet.errors import PayloadError
from innet.routing.topology import MAX_NEIGHBOURS, LinksReport, NeighbourLink

NEIGHBOUR = struct.Struct("<HB")


def encode_links(report: LinksReport) -> bytes:
    """The best neighbours, as many as one frame holds."""
    best = sorted(report.heard, key=lambda heard: (-heard.quality, heard.neighbour))[:MAX_NEIGHBOURS]
    return bytes((len(best),)) + b"".join(NEIGHBOUR.pack(heard.neighbour, heard.quality) for heard in best)


def decode_links(payload: bytes, mote: int) -> LinksReport:
    if not payload or len(payload) != 1 + payload[0] * NEIGHBOUR.size:
        raise PayloadError("size", mote, f"a LINKS of {len(payload)} bytes does not hold its neighbours")
    heard = tuple(NeighbourLink(*NEIGHBOUR.unpack_from(payload, at)) for at in range(1, len(payload), NEIGHBOUR.size))
    if mote in (h.neighbour for h in heard) or len({h.neighbour for h in heard}) < len(heard):
        raise PayloadError("neighbour", mote, "LINKS that name the mote itself, or one neighbour twice")
    return LinksReport(mote, heard)


def annotate_links(report: LinksReport) -> Iterator[tuple[int, str]]:
    """What the bytes of a LINKS mean, for `gateway.frame_annotation`."""
    yield 1, f"{len(report.heard)} neighbours"
    for heard in report.heard:
        yield 2, f"hears mote {heard.neighbour}"
        yield 1, f"with quality {heard.quality} of 255"
