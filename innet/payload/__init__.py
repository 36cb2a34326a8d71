"""The payloads of PROGRAM, PARTIAL and LINKS frames. gateway/SPEC.md defines the bits."""

from innet.payload.assignment import (
    MoteAssignment,
    RadioSchedule,
    annotate_assignment,
    decode_assignment,
    decode_program,
    encode_assignment,
    encode_program,
    group_by_site,
)
from innet.payload.links import annotate_links, decode_links, encode_links
from innet.payload.partial import annotate_partials, decode_partials, encode_partials, first_slice
from innet.payload.partial_columns import PartialColumns, decode_partial_frames

__all__ = [
    "MoteAssignment",
    "PartialColumns",
    "RadioSchedule",
    "annotate_assignment",
    "annotate_links",
    "annotate_partials",
    "decode_assignment",
    "decode_links",
    "decode_partial_frames",
    "decode_partials",
    "decode_program",
    "encode_assignment",
    "encode_links",
    "encode_partials",
    "encode_program",
    "first_slice",
    "group_by_site",
]
