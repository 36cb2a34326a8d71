"""A frame as annotated hex, one field a line: what explain, logs and golden files show.

The gateway cannot read payloads, so whoever can hands in what their bytes mean, as (size in bytes, meaning) in order.
"""

from collections.abc import Iterable

from gateway.codec import encode
from gateway.frame import HEADER_SIZE, VERSION, Frame


def describe(frame: Frame, payload: Iterable[tuple[int, str]] = ()) -> str:
    """One line per field: `from-to  x bytes  meaning`. Payload bytes nobody explained are shown as `payload`."""
    message = encode(frame)
    flags = [word for word, on in (("down", frame.down), ("up", not frame.down), ("ack wanted", frame.want_ack),
                                   ("sealed", frame.seal)) if on]  # fmt: skip
    fields = [
        (1, f"version {VERSION}, kind {frame.kind.name}"),
        (1, ", ".join(flags)),
        (2, f"{'to' if frame.down else 'from'} mote {frame.mote}"),
        (2, f"boot {frame.boot}"),
        (2, f"seq {frame.seq}"),
        *payload,
    ]
    if rest := HEADER_SIZE + len(frame.payload) - sum(size for size, _ in fields):
        fields.append((rest, "payload"))
    if frame.seal:
        fields.append((len(frame.seal), "seal"))
    lines, at = [], 0
    for size, meaning in fields:
        digits = message[at : at + size].hex()
        lines.append(f"{at:02}-{at + size:02}  x {digits:<16}  {meaning}")
        at += size
    return "\n".join(lines)
