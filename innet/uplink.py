"""DOOR UP: decode LINKS frames into link reports, and PARTIAL frames into columns of partials."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from acquisition.errors import PayloadError
from gateway.frame import Frame
from innet.partials import PartialShape
from innet.payload import PartialColumns, decode_links, decode_partial_frames
from innet.routing.topology import LinksReport


def receive(frames: Iterable[Frame]) -> tuple[list[LinksReport], list[PayloadError]]:
    """Decode LINKS frames; return the reports, and an error for each malformed frame."""
    reports: list[LinksReport] = []
    errors: list[PayloadError] = []
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
    """Decode PARTIAL frames; return one set of columns per aggregation, and an error for each malformed frame.

    `shapes` has the layout of each aggregation, by its number in frames.
    """
    return decode_partial_frames(frames, shapes)
