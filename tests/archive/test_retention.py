"""Which days leave an archive: by the number of days, by size and by the room on the disk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.archive.compaction import ArchiveDay
from basestation.archive.manifest import ArchiveFile
from basestation.archive.retention import find_surplus
from gateway.source import Source
from gateway.toml import ConfigError, read_toml
from innet.deployment.archive_table import ArchiveSettings, KeepLimits, read_archive_table

TODAY = "2026-11-19"


def day(number, extent="lab", size=10):
    name = f"2026-11-{number:02}"
    return ArchiveDay(extent, name, (ArchiveFile(f"{extent}-{name}", extent, name, 1, size, 0, 0, ""),))


def gone(days, settings, today=TODAY, free=0):
    return [(found.extent, int(found.day[-2:])) for found in find_surplus(days, settings, today, free)]


def test_without_limits_every_day_stays():
    assert gone([day(n) for n in range(1, 20)], ArchiveSettings()) == []


def test_newest_days_with_readings_stay():
    """Days without readings do not count: a clock that leaps to a far day drops one day, not all."""
    days = [day(n) for n in (1, 2, 3, 10, 19)]
    settings = ArchiveSettings(KeepLimits(days=3))
    assert gone(days, settings) == [("lab", 1), ("lab", 2)]
    leapt = ArchiveDay("lab", "2031-01-01", days[0].files)
    assert gone([*days, leapt], settings, today="2031-01-01") == [("lab", 1), ("lab", 2), ("lab", 3)]


def test_size_keeps_the_newest_days():
    settings = ArchiveSettings(KeepLimits(bytes=25))
    assert gone([day(n) for n in (16, 17, 18, 19)], settings) == [("lab", 16), ("lab", 17)]
    assert gone([day(18, size=99), day(19, size=99)], settings) == [("lab", 18)]


def test_each_extent_has_its_own_limits():
    settings = ArchiveSettings(KeepLimits(days=1), {"hall": KeepLimits(days=2)})
    days = [day(n, extent) for n in (17, 18, 19) for extent in ("hall", "lab")]
    assert gone(days, settings) == [("hall", 17), ("lab", 17), ("lab", 18)]


def test_full_disk_drops_the_oldest_days_of_all():
    settings = ArchiveSettings(free_bytes=25)
    days = [day(n, extent) for n in (17, 18, 19) for extent in ("hall", "lab")]
    assert gone(days, settings, free=25) == []
    assert gone(days, settings, free=24) == [("hall", 17)]
    assert gone(days, settings, free=0) == [("hall", 17), ("lab", 17), ("hall", 18)]
    by_both = ArchiveSettings(KeepLimits(days=2), free_bytes=25)
    assert gone(days, by_both, free=0) == [("hall", 17), ("lab", 17), ("hall", 18)]


@given(
    st.lists(st.tuples(st.integers(1, 28), st.sampled_from(["a", "b"]), st.integers(1, 50)), unique_by=lambda d: d[:2]),
    st.none() | st.integers(1, 9), st.none() | st.integers(1, 200), st.none() | st.integers(1, 300), st.integers(0, 300),
)  # fmt: skip
def test_today_and_the_newest_day_always_stay(days, most, size, free_target, free):
    settings = ArchiveSettings(KeepLimits(most, size), free_bytes=free_target)
    found = gone([day(n, extent, size) for n, extent, size in days], settings, free=free)
    newest = {extent: max(n for n, other, _ in days if other == extent) for _, extent, _ in days}
    assert all(n < 19 and n < newest[extent] for extent, n in found) and len(set(found)) == len(found)


def read(text):
    top = read_toml(Source(text, "deployment.toml"))
    found = read_archive_table(top)
    if top.faults:
        raise ConfigError(top.faults)
    return found


def test_table_of_a_deployment():
    text = "[archive]\nkeep_days = 400\nkeep_mb = 9\nfree_mb = 500\n[archive.lab]\nkeep_days = 30\n"
    settings = read(text)
    assert settings.free_bytes == 500_000_000 and settings.limits("hall") == KeepLimits(400, 9_000_000)
    assert settings.limits("lab") == KeepLimits(30, 9_000_000)
    assert read("") == ArchiveSettings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[archive]\nkeep_day = 4\n", "unknown key `keep_day`"),
        ("[archive]\nkeep_days = 0\n", "expected a whole number from 1"),
        ("[archive]\nfree_mb = 'all'\n", "expected a whole number from 1"),
        ("[archive.lab]\nfree_mb = 4\n", "unknown key `free_mb`"),
        ("archive = 4\n", "expected a table"),
    ],
)
def test_mistake_in_the_table_is_named(text, message):
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert message in caught.value.diagnostics[0].message
