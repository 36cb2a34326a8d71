"""Frames on a byte stream: a checksum behind each, zero bytes stuffed away (COBS), and a zero between two frames.

COBS and not escaping, because its overhead is one byte for a frame of this size whatever the bytes are. The checksum
is CRC-16/XMODEM (polynomial 0x1021, start 0), which the standard library computes in C.
"""

from binascii import crc_hqx

from cobs import cobs

from gateway.errors import FrameError

DELIMITER = b"\x00"
CRC_SIZE = 2


def stuff(frame: bytes) -> bytes:
    """One frame as it goes onto a stream, delimiter included."""
    return cobs.encode(frame + checksum(frame)) + DELIMITER


def unstuff(stuffed: bytes) -> bytes:
    """What was between two delimiters -> the frame. Raises FrameError `stuffing`, `short` or `checksum`."""
    try:
        content = cobs.decode(stuffed)
    except cobs.DecodeError as error:
        raise FrameError("stuffing", f"not COBS: {error}", stuffed) from error
    if len(content) <= CRC_SIZE:
        raise FrameError("short", f"{len(content)} bytes hold no frame and its checksum", stuffed)
    frame, sum_ = content[:-CRC_SIZE], content[-CRC_SIZE:]
    if checksum(frame) != sum_:
        raise FrameError("checksum", f"checksum is {sum_.hex()}, the bytes say {checksum(frame).hex()}", stuffed)
    return frame


def stuffed_size(frame_size: int) -> int:
    """The most bytes a frame of this size takes on the stream, without the delimiter."""
    content = frame_size + CRC_SIZE
    return content + content // 254 + 1


def checksum(frame: bytes) -> bytes:
    return crc_hqx(frame, 0).to_bytes(CRC_SIZE, "little")
