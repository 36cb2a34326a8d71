"""Key codes against a dictionary, and how many rounds they take on keys that were chosen to collide."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.execution import thresholds
from basestation.execution.joins import key_codes
from basestation.execution.joins.key_codes import KeyCodes
from basestation.execution.joins.state_module import hash_keys
from tests.algebra.vectors import vector_of


def crowded(n):
    """Hashes for small numbers that want the first slot, in round 1 as well."""
    addend, factor = int(key_codes._ADDENDS[0]), int(key_codes._MULTIPLIERS[0])
    return (n - addend) * pow(factor, -1, 2**64) % 2**64


SAME = [hash_ for hash_ in map(crowded, range(40_000)) if hash_ % 2**10 == 0]
"""Of these all want the same slot in round 0, too."""
HASHES = st.integers(0, 40).map(crowded) | st.sampled_from(SAME) | st.integers(0, 2**64 - 1) | st.integers(0, 9)
NEAR = st.integers(-30, 30).map(lambda n: n % 2**64)
FARTHER = st.integers(-3_000, 3_000).map(lambda n: n % 2**64)
LISTS = st.lists(HASHES, max_size=60) | st.lists(NEAR, max_size=60) | st.lists(FARTHER, max_size=9)
CALLS = st.lists(st.tuples(st.booleans(), LISTS), max_size=8)


@pytest.mark.promise("joins")
@given(CALLS)
def test_key_codes_agree_with_a_dictionary(calls):
    codes, known = KeyCodes(), {}
    for adds, hashes in calls:
        probed = np.array(hashes, np.uint64)
        if adds:
            for hash_, code in zip(hashes, codes.add(probed).tolist(), strict=True):
                assert known.setdefault(hash_, code) == code
        assert codes.of(probed).tolist() == [known.get(hash_, -1) for hash_ in hashes]
        assert sorted(known.values()) == list(range(len(codes)))


def test_keys_beyond_the_last_round_are_found(monkeypatch):
    monkeypatch.setattr(key_codes, "_ROUNDS", 1)
    monkeypatch.setattr(thresholds, "DENSE_SLACK", 0)
    hashes = np.array([crowded(n) for n in range(200)], np.uint64)  # all in one slot of round 1
    codes = KeyCodes()
    assert codes.of(hashes).tolist() == [-1] * 200
    assert sorted(codes.add(hashes).tolist()) == list(range(200))
    assert (codes.of(hashes) == codes.add(hashes)).all()
    assert codes.of(hashes + np.uint64(1)).tolist() == [-1] * 200


def test_codes_stay_while_the_table_grows():
    codes = KeyCodes()
    first = codes.add(np.arange(100, dtype=np.uint64))
    codes.add(np.array([crowded(n) for n in range(5_000)], np.uint64))
    assert codes.of(np.arange(100, dtype=np.uint64)).tolist() == first.tolist()


def test_equal_new_keys_do_not_copy_the_table():
    codes = KeyCodes()
    codes.add(np.arange(1000, dtype=np.uint64) << np.uint64(40))
    before = codes._hashes.values
    for key in range(5):
        codes.add(np.full(2, key + 1, np.uint64))
    assert np.shares_memory(codes._hashes.values, before)


# --- bounded probe lengths -------------------------------------------------------------------------------------------


def whole(values):
    return vector_of(np.asarray(values).tolist(), Type.INTEGER)


def epochs(sites, period):
    """(site, tick) of all sites in many epochs: they report at the same ticks."""
    site, tick = np.meshgrid(np.arange(1, sites + 1), np.arange(0, 400 * period, period))
    return hash_keys([whole(site.ravel()), whole(tick.ravel())])


def small_integers(parts, upto):
    """Every combination of small integers as the parts of a key."""
    return hash_keys([whole(part) for part in np.array(list(product(range(upto), repeat=parts))).T])


def defeats_constant(count):
    """Keys (a, b) that had one hash under the multiplier that once was written here."""
    a = np.arange(count)
    b = (-(a.astype(np.uint64) * np.uint64(0x9E3779B900000001))).view(np.int64)
    return hash_keys([whole(a), whole(b)])


def multiples(shift, count):
    return np.arange(count, dtype=np.uint64) << np.uint64(shift)


CHOSEN = {
    "54 sites every 10 s": lambda: epochs(54, 10),
    "54 sites every 30 s": lambda: epochs(54, 30),
    "1000 sites every tick": lambda: epochs(1000, 1)[:30_000],
    "two small integers": lambda: small_integers(2, 150),
    "three small integers": lambda: small_integers(3, 28),
    "five small integers": lambda: small_integers(5, 7),
    "one hash under a constant": lambda: defeats_constant(20_000),
    "high bits of both parts": lambda: hash_keys(
        [whole(v) for v in ((np.mgrid[:128, :128].reshape(2, -1).astype(np.uint64)) << np.uint64(56)).view(np.int64)]
    ),
    **{f"multiples of 2**{shift}": lambda shift=shift: multiples(shift, 2**14) for shift in (16, 32, 40, 50)},
    "doubles": lambda: hash_keys([vector_of((np.arange(20_000) / 8 + 0.0625).tolist(), Type.FLOAT)]),
    "strings": lambda: hash_keys([vector_of([f"mote-{n}" for n in range(20_000)], Type.STRING)]),
}


@pytest.mark.parametrize("chosen", CHOSEN)
def test_chosen_keys_take_few_rounds(chosen, monkeypatch):
    """Three on average at most, in all but one of a thousand processes: each process hashes by numbers of its own."""
    hashes = CHOSEN[chosen]()
    assert len(np.unique(hashes)) >= 0.99 * len(hashes)
    waiting, slot = [], KeyCodes._slot

    def counting(self, number, of):
        waiting.append((number, len(of)))
        return slot(self, number, of)

    monkeypatch.setattr(KeyCodes, "_slot", counting)
    codes = KeyCodes()
    for at in range(0, len(hashes), 5_000):
        codes.add(hashes[at : at + 5_000])
    codes._near = None
    waiting.clear()
    codes.of(hashes)
    assert sum(count for _, count in waiting) <= 6 * len(hashes)
    assert max(number for number, _ in waiting) <= 40
