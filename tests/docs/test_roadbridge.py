"""examples/roadbridge is what it says: the paper's queries to the letter, queries that are accepted, a day from its seed."""

import csv
import os
import runpy
import shutil
import subprocess
import sys

import pytest

from acquisition.extent import ExtentKind
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.rewriter import rewrite
from tests.algebra.invariants import find_violations
from tests.conftest import count_of
from tests.docs.pages import ROOT, rows_of
from tests.oracles.recompute import run

BRIDGE = ROOT / "examples/roadbridge"
QUERIES = sorted((BRIDGE / "queries").glob("*.sneeql"))
PAPER = ("Q1", "Q2", "Q3")


@pytest.fixture(scope="module")
def schema():
    return (BRIDGE / "schema.sneeql").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def catalog(schema):
    return read_schema(schema)


@pytest.mark.promise("paper-queries")
@pytest.mark.parametrize("path", QUERIES, ids=lambda p: p.stem)
def test_a_query_is_accepted_and_stays_a_plan(path, catalog):
    for plan in bind_text(path.read_text(encoding="utf-8"), catalog):
        better, _ = rewrite(plan)
        assert find_violations(plan.root) == find_violations(better.root) == []


@pytest.mark.parametrize("path", QUERIES, ids=lambda p: p.stem)
def test_a_query_says_in_its_first_line_what_it_is_for(path):
    first, second = path.read_text(encoding="utf-8").splitlines()[:2]
    assert first.startswith("-- ") and not second.startswith("--")


@pytest.mark.promise("paper-queries")
def test_the_paper_s_queries_are_there_to_the_letter():
    corpus = (ROOT / "tests/language/queries.txt").read_text(encoding="utf-8").split("----\n")
    for name, printed in zip(PAPER, corpus, strict=False):
        printed = "".join(line for line in printed.splitlines(True) if not line.startswith("--"))
        assert (BRIDGE / "queries" / f"{name}.sneeql").read_text(encoding="utf-8").split("\n", 1)[1] == printed


def test_there_are_ten_more():
    assert len(QUERIES) == len(PAPER) + 10


# --- the recorded day --------------------------------------------------------------------------------------------------


@pytest.mark.promise("paper-queries")
def test_the_day_is_made_from_its_seed_to_the_byte():
    made = runpy.run_path(str(BRIDGE / "make_recording.py"))["recording"]()
    assert set(made) == {"recording/road.csv", "recording/traffic.csv", "temp_class.csv"}
    for name, content in made.items():
        assert content == (BRIDGE / name).read_bytes(), name
    assert sum(map(len, made.values())) < 500_000


@pytest.mark.promise("paper-queries")
def test_the_day_has_in_it_what_the_readme_says(catalog):
    road = rows_of((BRIDGE / "recording/road.csv").read_text())
    traffic = rows_of((BRIDGE / "recording/traffic.csv").read_text())
    extent = catalog.find("road")
    due = len(extent.sites) * 86_400 // extent.interval
    keys = {(row["_site"], row["_tick"]) for row in road}
    assert 0.985 < len(keys) / due < 0.995
    assert len(road) - len(keys) > 5, "some come twice"
    assert sum(row["_arrival"] - row["_tick"] > extent.wait for row in road) > 10, "some are late"
    assert any(row["temp"] is None for row in road), "a sensor fails now and then"
    assert not any(site == 3 and 13 * 3600 + 600 <= tick < 13 * 3600 + 2400 for site, tick in keys), "mote 3 is silent"
    assert any(row["weight"] > 40_000 for row in traffic)
    assert min(row["temp"] for row in road if row["temp"] is not None) < 0
    assert [row["_arrival"] for row in road] == sorted(row["_arrival"] for row in road), "in the order of arrival"
    assert [row["_arrival"] for row in traffic] == sorted(row["_arrival"] for row in traffic)


def test_every_temperature_has_its_class():
    with open(BRIDGE / "temp_class.csv", newline="", encoding="utf-8") as file:
        classes = {int(row["temp"]): row["category"] for row in csv.DictReader(file)}
    measured = {row["temp"] for row in rows_of((BRIDGE / "recording/road.csv").read_text())} - {None}
    assert list(classes) == sorted(classes) and all(classes.values())
    assert measured <= set(classes)


@pytest.mark.promise("paper-queries")
@pytest.mark.parametrize(
    ("name", "seconds"),
    [("Q1", count_of(300, 600)), ("Q3", count_of(150, 600)), ("heavy_on_ice", count_of(360, 600)), ("silent_sensor", 1800),
     ("ice_risk", count_of(300, 600)), ("vibration_per_class", 3600), ("since_midnight", count_of(1800, 3600))],
)  # fmt: skip
def test_a_query_finds_something_in_the_night(name, seconds, schema, catalog):
    """By the oracle, which is slow and obvious, so over a short time only."""
    inputs = {
        extent.name: [row for row in _recorded(extent.name) if row["_arrival"] <= seconds]
        for extent in catalog
        if extent.kind is not ExtentKind.STORED
    }
    inputs["tempClass"] = [(0, rows_of((BRIDGE / "temp_class.csv").read_text(), strings=["category"]))]
    query = (BRIDGE / "queries" / f"{name}.sneeql").read_text(encoding="utf-8")
    [answer] = run(schema, inputs, [query], until=seconds).answers
    assert answer.error is None
    found = answer.current()
    assert any(found.values()) if isinstance(found, dict) else found


def _recorded(name):
    return rows_of((BRIDGE / f"recording/{name}.csv").read_text())


# --- the demo ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def environment(tmp_path):
    """PATH with a `moteloom` of this very checkout, whether or not it is installed, and nothing else of ours."""
    command = tmp_path / "moteloom"
    command.write_text(f"#!{sys.executable}\n{_COMMAND}")
    command.chmod(0o755)
    return os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}


_COMMAND = f"""
import sys, tomllib
from importlib.metadata import EntryPoint
from gateway import cli
with open({str(ROOT / "pyproject.toml")!r}, "rb") as file:
    declared = tomllib.load(file)["project"]["entry-points"][cli.VERBS]
cli.entry_points = lambda group: [EntryPoint(name, module, group) for name, module in declared.items()]
sys.exit(cli.main())
"""


def demo(environment, *arguments):
    return subprocess.run(
        ["bash", str(BRIDGE / "demo.sh"), *arguments], env=environment, capture_output=True, text=True, timeout=110
    )


@pytest.mark.promise("paper-queries")
def test_the_demo_shows_every_query_and_succeeds(environment, need):
    need("bash", "awk", "sed")
    done = demo(environment)
    assert (done.returncode, done.stderr) == (0, "")
    for path in QUERIES:
        purpose = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("-- ")
        assert f"\n{path.stem}\n{purpose}\n" in done.stdout
    assert done.stdout.count("rewritten by: ") == len(QUERIES)
    assert "did you mean `vibration`?" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.promise("paper-queries")
def test_the_demo_fails_where_a_query_is_refused(environment, tmp_path, need):
    need("bash", "awk", "sed")
    copy = shutil.copytree(BRIDGE, tmp_path / "bridge")
    (copy / "queries/Q1.sneeql").write_text("-- wrong\nSELECT nothing FROM road\n")
    done = subprocess.run(
        ["bash", str(copy / "demo.sh"), "Q1"], env=environment, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 1
    assert "SN202" in done.stderr and "demo: queries/Q1.sneeql is not accepted" in done.stderr


@pytest.mark.promise("checked")
def test_the_demo_does_not_mind_a_reader_that_leaves(environment, need):
    need("bash", "awk", "sed", "head")
    done = subprocess.run(
        ["bash", "-c", f"bash '{BRIDGE / 'demo.sh'}' Q1 Q2 | head -n 3"],
        env=environment, capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 3
