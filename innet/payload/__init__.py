"""The payloads of what happens inside the network: PROGRAM, PARTIAL and LINKS. gateway/SPEC.md has the bits."""

from innet.payload.assignment import (
    Duty,
    Orders,
    annotate_orders,
    decode_orders,
    decode_program,
    encode_orders,
    encode_program,
    programs_of,
)
from innet.payload.links import MAX_NEIGHBOURS, annotate_links, decode_links, encode_links
from innet.payload.partial import annotate_partials, decode_partials, encode_partials, first_slice
from innet.payload.partial_columns import Partials, decode_all

__all__ = [
    "MAX_NEIGHBOURS",
    "Duty",
    "Orders",
    "Partials",
    "annotate_links",
    "annotate_orders",
    "annotate_partials",
    "decode_all",
    "decode_links",
    "decode_orders",
    "decode_partials",
    "decode_program",
    "encode_links",
    "encode_orders",
    "encode_partials",
    "encode_program",
    "first_slice",
    "programs_of",
]
