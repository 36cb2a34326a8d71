"""docs/naming.md is true: retired names are gone, the names that replace them exist, and the ratchet holds."""

import re
from functools import cache

from tests.docs.pages import ROOT
from tools import ratchet

CLASS = re.compile(r"^\s*class (\w+)", re.MULTILINE)


@cache
def defined() -> set[str]:
    """The names of all classes of the product."""
    paths = [path for folder in ratchet.PACKAGES for path in (ROOT / folder).rglob("*.py")]
    return {name for path in paths for name in CLASS.findall(path.read_text(encoding="utf-8"))}


def test_tables_have_names_before_and_now():
    assert len(ratchet.sections()) >= 8
    assert sum(len(table.before) for table in ratchet.sections()) >= 200


def test_names_now_exist():
    assert {name for table in ratchet.sections() for name in table.now} - defined() == set()


def test_newer_names_exist():
    [part] = [
        part for part in ratchet.NAMING.read_text(encoding="utf-8").split("\n## ") if part.startswith("Names since")
    ]
    named = ratchet.classes(" ".join(line.split("|")[1] for line in part.splitlines() if line.startswith("| ")))
    assert len(named) >= 30 and named - defined() == set()


def test_no_count_of_the_ratchet_is_above_its_limit():
    counts = ratchet.counts(ratchet.places())
    assert {rule: count for rule, count in counts.items() if count > ratchet.limits().get(rule, 0)} == {}


def test_ratchet_finds_each_kind_of_private_language(tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text("What comes late is revised. Nobody was told of it. Who is there?\n")
    monkeypatch.setattr(ratchet, "ROOT", tmp_path)
    rules = [place.rule for place in ratchet.words("page.md")]
    assert rules == ["people", "speech", "relative"]


def test_lowered_limits_never_rise(tmp_path, monkeypatch):
    limits = tmp_path / "ratchet.toml"
    limits.write_text('[limits]\n"people" = 3\n"speech" = 1\n')
    monkeypatch.setattr(ratchet, "LIMITS", limits)
    monkeypatch.setattr(ratchet, "places", list)
    monkeypatch.setattr(ratchet, "counts", lambda found: {"people": 2, "speech": 4, "relative": 5})
    assert ratchet.main(["--lower"]) == 0
    assert ratchet.limits() == {"people": 2, "speech": 1}
