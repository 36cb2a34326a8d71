"""Frames for Hypothesis."""

from hypothesis import strategies as st

from gateway.frame import MAX_PAYLOAD, SEAL_SIZE, Frame, Kind

words = st.integers(0, 0xFFFF)
frames = st.builds(
    Frame,
    kind=st.sampled_from(Kind),
    mote=words,
    boot=words,
    seq=words,
    payload=st.binary(max_size=MAX_PAYLOAD),
    down=st.booleans(),
    want_ack=st.booleans(),
    seal=st.just(b"") | st.binary(min_size=SEAL_SIZE, max_size=SEAL_SIZE),
)
