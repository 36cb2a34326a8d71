"""Frames as annotated hex, one field a line, for explain, logs and golden files.

The gateway cannot read all payloads. Callers that can pass the fields as (size in bytes, meaning), in order. A size of 0
adds a line of explanation to the field before it.
"""

from collections.abc import Iterable, Iterator

from gateway.codec import encode
from gateway.frame import BROADCAST, COORDINATOR, HEADER_SIZE, LARGEST_FRAME, VERSION, Frame, MoteId, route_size


def annotate_frame(frame: Frame, payload: Iterable[tuple[int, str]] = ()) -> str:
    """Return one line for each field: `from-to  x bytes  meaning`. Unexplained payload bytes appear as `payload`."""
    message = encode(frame, LARGEST_FRAME)
    flags = [word for word, on in (("down", frame.down), ("up", not frame.down), ("ack wanted", frame.want_ack),
                                   ("routed", frame.route), ("more is pending", frame.pending),
                                   ("repeated", frame.repeated), ("sealed", frame.seal)) if on]  # fmt: skip
    fields = [
        (1, f"version {VERSION}, kind {frame.kind.name}"),
        (1, ", ".join(flags)),
        (2, f"{'to' if frame.down else 'from'} mote {frame.mote}"),
        (2, f"boot {frame.boot}"),
        (2, f"seq {frame.seq}"),
        (2, f"sender: {_end(frame.sender)}"),
        (2, f"receiver: {_end(frame.receiver)}"),
        *_route(frame),
        *payload,
    ]
    if rest := HEADER_SIZE + route_size(len(frame.route)) + len(frame.payload) - sum(size for size, _ in fields):
        fields.append((rest, "payload"))
    if frame.seal:
        fields.append((len(frame.seal), "seal"))
    lines, at = [], 0
    for size, meaning in fields:
        if not size:
            lines.append(f"{'':26}{meaning}")
            continue
        digits = message[at : at + size].hex()
        lines.append(f"{at:02}-{at + size:02}  x {digits:<16}  {meaning}")
        at += size
    return "\n".join(lines)


def _end(number: MoteId) -> str:
    return {COORDINATOR: "the base station", BROADCAST: "all neighbours"}.get(number, f"mote {number}")


def _route(frame: Frame) -> Iterator[tuple[int, str]]:
    if frame.route:
        yield 1, f"{len(frame.route)} more hops"
    for hop in frame.route:
        yield 2, f"then mote {hop}"
