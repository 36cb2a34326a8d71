"""DOOR UP: LINKS frames -> what motes say about their neighbours; PARTIAL frames -> partials as columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gateway.frame import Frame
from innet.errors import PayloadError
from innet.partials import PartialShape
from innet.payload import PartialColumns, decode_links, decode_partial_frames
from innet.routing.topology import LinksReport


def receive(frames: Iterable[Frame]) -> tuple[list[LinksReport], list[PayloadError]]:
    """The reports in the frames, and what is wrong with those that hold none."""
    reports, errors = [], []
    for frame in frames:
        try:
            report = decode_links(frame.payload, frame.mote)
            reports.append(replace(report, number=(frame.boot, frame.seq)))
        except PayloadError as error:
            errors.append(error)
    return reports, errors


def receive_partials(
    frames: Sequence[Frame], shapes: Mapping[int, PartialShape]
) -> tuple[list[PartialColumns], list[PayloadError]]:
    """The partials in the frames, those of one aggregation together, and what is wrong with frames that hold none."""
    return decode_partial_frames(frames, shapes)
