"""Frames for Hypothesis."""

from hypothesis import strategies as st

from gateway.frame import MAX_FRAME, MAX_ROUTE, SEAL_SIZE, Frame, FrameKind, payload_room

words = st.integers(0, 0xFFFF)
routes = st.lists(words, max_size=MAX_ROUTE).map(tuple)


def frames_of(mtu):
    """Return any frame of at most `mtu` bytes."""
    return routes.flatmap(lambda route: _frames(payload_room(mtu, len(route)), route)) | acks | repeats


def _frames(room, route):
    return st.builds(
        Frame,
        kind=st.sampled_from(FrameKind),
        mote=words,
        boot=words,
        seq=words,
        payload=st.binary(max_size=room),
        down=st.booleans(),
        want_ack=st.booleans(),
        seal=st.just(b"") | st.binary(min_size=SEAL_SIZE, max_size=SEAL_SIZE),
        sender=words,
        receiver=words,
        route=st.just(route),
    )


acks = st.builds(Frame, st.just(FrameKind.ACK), words, words, words, down=st.booleans(), pending=st.booleans())
repeats = st.builds(
    Frame, st.just(FrameKind.PARTIAL), words, words, words, st.binary(max_size=20), repeated=st.booleans()
)
frames = frames_of(MAX_FRAME)
