"""An image is installed as a whole, for any order, size and duplicates of its chunks, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import FrameError, LinkError
from gateway.frame import MAX_PAYLOAD, Frame, FrameKind
from gateway.image import (
    BLOCK,
    CHUNK,
    MAX_IMAGE,
    NO_IMAGE,
    Chunk,
    Image,
    Stamp,
    decode_chunk,
    encode_chunk,
    split_into_chunks,
)
from gateway.installer import Installer
from gateway.payload import MissingBlocks

contents = st.builds(
    lambda size, seed: bytes((seed + at * at) % 251 for at in range(size)), st.integers(1, 600), st.integers(0, 250)
)
images = st.builds(Image, st.integers(1, 0xFFFF), contents)
rooms = st.integers(CHUNK.size + BLOCK, MAX_PAYLOAD)


def frame(chunk, seq=0, boot=1, kind=FrameKind.PROGRAM):
    return Frame(kind, 3, boot, seq, encode_chunk(chunk), down=True)


@pytest.mark.promise("delivery")
@given(images, st.lists(rooms, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_chunks_of_any_size_in_any_order_make_the_image(image, sizes, random):
    """Some chunks come twice, and in several sizes, because the room changes with the path."""
    sent = [decode_chunk(encode_chunk(chunk)) for room in sizes for chunk in split_into_chunks(image, room)]
    random.shuffle(sent)
    installer, whole = Installer(), []
    for seq, chunk in enumerate(sent):
        assert len(encode_chunk(chunk)) <= max(sizes)
        if found := installer.take(frame(chunk, seq)):
            whole.append(found)
    assert whole
    assert set(whole) == {image}


@given(images, rooms, st.data())
def test_only_the_requested_blocks_are_sent(image, room, data):
    wanted = data.draw(st.frozensets(st.sampled_from(sorted(image.blocks))))
    sent = split_into_chunks(image, room, wanted)
    assert sorted(block for chunk in sent for block in chunk.blocks) == sorted(wanted)
    for chunk in sent:
        assert chunk.content == image.content[chunk.first * BLOCK :][: len(chunk.content)]


@pytest.mark.promise("frames")
@given(st.binary(max_size=120))
def test_random_chunk_round_trips_or_is_refused(payload):
    """The invariant: a chunk that lies in its image and encodes to the very bytes, or FrameError."""
    try:
        chunk = decode_chunk(payload)
    except FrameError as error:
        assert error.code == "chunk"
        return
    assert encode_chunk(chunk) == payload
    assert 0 < chunk.first * BLOCK + len(chunk.content) <= chunk.size <= MAX_IMAGE


@pytest.mark.parametrize(
    ("size", "first", "length"), [(100, 0, 17), (100, 6, 5), (100, 7, 1), (30, 1, 15), (MAX_IMAGE + 1, 0, 16)]
)
def test_invalid_chunk_is_refused(size, first, length):
    with pytest.raises(FrameError):
        decode_chunk(encode_chunk(Chunk(Stamp(1, 2), size, first, bytes(length))))


def test_chunks_of_two_images_are_not_mixed():
    """They have the same version: a base station without memory has made one of them."""
    (a, b), (c, d) = (split_into_chunks(Image(1, fill * 100), MAX_PAYLOAD) for fill in (b"a", b"c"))
    installer = Installer()
    for seq, chunk in enumerate((a, d, b, c, a, c)):
        assert installer.take(frame(chunk, seq)) is None
    assert installer.take(frame(d, seq=6)) == Image(1, b"c" * 100)


@pytest.mark.promise("delivery")
@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=6))
def test_random_chunks_never_install_half_an_image(payloads):
    """The invariant: whatever chunks strangers send, nothing comes out but what has the digest that was announced."""
    installer = Installer()
    for seq, payload in enumerate(payloads):
        try:
            image = installer.take(Frame(FrameKind.PROGRAM, 3, 1, seq, b"\1\0" + payload, down=True))
        except FrameError:
            continue
        assert image is None or image.stamp == decode_chunk(b"\1\0" + payload).stamp


def test_image_with_wrong_digest_is_refused():
    [chunk] = split_into_chunks(Image(3, b"some code"), MAX_PAYLOAD)
    damaged = Chunk(chunk.stamp, chunk.size, 0, b"some c0de")
    installer = Installer()
    with pytest.raises(FrameError, match="does not match its digest"):
        installer.take(frame(damaged))
    assert list(installer.missing_blocks()) == []  # it begins afresh
    assert installer.take(frame(chunk, seq=1)) == Image(3, b"some code")


def test_installer_reports_missing_and_keeps_installed():
    image, installer = Image(2, bytes(200)), Installer()
    first, second, third, fourth = split_into_chunks(image, CHUNK.size + 4 * BLOCK)
    assert installer.take(frame(second)) is None
    assert list(installer.missing_blocks()) == [
        MissingBlocks(FrameKind.PROGRAM, image.stamp, frozenset({0, 1, 2, 3, 8, 9, 10, 11, 12}))
    ]
    for seq, chunk in enumerate((first, fourth), start=1):
        assert installer.take(frame(chunk, seq)) is None
    assert installer.installed[FrameKind.PROGRAM] == NO_IMAGE
    assert installer.take(frame(third, seq=3)) == image
    installer.install(FrameKind.PROGRAM, image)
    assert installer.has(FrameKind.PROGRAM, first)
    assert installer.take(frame(first, seq=4)) is None
    assert list(installer.missing_blocks()) == []


def test_chunk_of_an_earlier_image_is_ignored():
    old, new, installer = Image(1, b"a" * 100), Image(2, b"b" * 100), Installer()
    [left, _], [head, tail] = split_into_chunks(old, MAX_PAYLOAD), split_into_chunks(new, MAX_PAYLOAD)
    assert installer.take(frame(head, seq=7)) is None
    assert installer.take(frame(left, seq=6)) is None
    assert installer.take(frame(left, seq=9, boot=0)) is None  # of an earlier start of the base station
    assert installer.take(frame(tail, seq=8)) == new
    assert installer.take(frame(left, seq=9)) is None  # and one that is meant now begins anew
    assert [wants.stamp for wants in installer.missing_blocks()] == [old.stamp]


def test_images_of_one_version_differ_by_digest():
    assert Image(1, b"a").stamp != Image(1, b"b").stamp


@pytest.mark.parametrize(("version", "content"), [(0, b"a"), (0x10000, b"a"), (1, b""), (1, bytes(MAX_IMAGE + 1))])
def test_invalid_image_is_refused(version, content):
    with pytest.raises(LinkError):
        Image(version, content)


def test_payload_too_small_for_a_block_is_refused():
    with pytest.raises(LinkError, match="no room"):
        split_into_chunks(Image(1, b"a"), CHUNK.size + BLOCK - 1)


def test_digest_of_an_image_is_the_crc():
    assert Image(1, b"123456789").stamp == Stamp(1, 0x31C3)
