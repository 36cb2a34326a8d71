"""DOOR UP: LINKS frames -> what motes say about their neighbours."""

from collections.abc import Iterable

from gateway.frame import Frame
from innet.errors import PayloadError
from innet.payload import decode_links
from innet.routing.topology import LinksReport


def rise(frames: Iterable[Frame]) -> tuple[list[LinksReport], list[PayloadError]]:
    """The reports in the frames, and what is wrong with those that hold none."""
    reports, errors = [], []
    for frame in frames:
        try:
            reports.append(decode_links(frame.payload, frame.mote))
        except PayloadError as error:
            errors.append(error)
    return reports, errors
