"""Frames on a byte stream: COBS encoding with a checksum, and a zero byte between two frames.

COBS removes all zero bytes and costs one byte for a frame of our size, whatever its content. Escaping (SLIP, HDLC) can
double a frame. The checksum is CRC-16/XMODEM (polynomial 0x1021, initial value 0), which the standard library computes
in C.
"""

from binascii import crc_hqx

from cobs import cobs

from gateway.errors import FrameError

DELIMITER = b"\x00"
CRC_SIZE = 2
"""Bytes of the checksum."""


def stuff(frame: bytes) -> bytes:
    """Encode one frame for a byte stream: COBS of the frame and its checksum, then the delimiter."""
    stuffed: bytes = cobs.encode(frame + checksum(frame))
    return stuffed + DELIMITER


def unstuff(stuffed: bytes) -> bytes:
    """Decode the bytes between two delimiters into a frame.

    Raises FrameError with code `stuffing`, `short` or `checksum`.
    """
    try:
        content: bytes = cobs.decode(stuffed)
    except cobs.DecodeError as error:
        raise FrameError("stuffing", f"not COBS: {error}", stuffed) from error
    if len(content) <= CRC_SIZE:
        raise FrameError("short", f"{len(content)} bytes are too few for a frame and its checksum", stuffed)
    frame, received = content[:-CRC_SIZE], content[-CRC_SIZE:]
    if checksum(frame) != received:
        raise FrameError("checksum", f"expected checksum {checksum(frame).hex()}, found {received.hex()}", stuffed)
    return frame


def stuffed_size(frame_size: int) -> int:
    """Return the most bytes that a frame of `frame_size` bytes takes on the stream, without the delimiter."""
    content = frame_size + CRC_SIZE
    return content + content // 254 + 1


def checksum(frame: bytes) -> bytes:
    """Return the two bytes of the CRC, little-endian."""
    return crc_hqx(frame, 0).to_bytes(CRC_SIZE, "little")
