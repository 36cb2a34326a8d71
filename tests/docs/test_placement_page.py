"""The page that says what runs where and why is true: its reasons are those there are, its example is what comes out."""

import re
from pathlib import Path

import pytest

from acquisition.schedule import Sampling, Schedule, channel_of
from acquisition.ticks import EpochGrid
from basestation.explain import explain_statement, render_statement
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.planner.pushdown import plan_pushdown
from basestation.planner.rewriter import rewrite
from innet.deployment.toml_reader import read_deployment
from innet.placement.placement import PlacedOperator, select_sites
from innet.program.compiler import compile_programs

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/placement.md").read_text()
SCHEMA, *QUERIES = re.search(r"```sneeql\n(.*?)```", PAGE, re.DOTALL)[1].strip().split("\n\n")
SITES = (1, 2, 3)


def block(name):
    """The fenced block of the page with that name."""
    return re.search(rf"```text {name}\n(.*?)```", PAGE, re.DOTALL)[1]


def splits_of(*queries):
    catalog = read_schema(SCHEMA)
    plans = [bind_text(text, catalog)[0] for text in queries]
    return catalog, [plan_pushdown(plan, rewrite(plan)[0].root) for plan in plans]


def decisions_of(*queries):
    lines = []
    for number, found in enumerate(splits_of(*queries)[1], 1):
        for d in found.decisions:
            verdict = "may run on motes" if d.is_pushed_down else f"stays ({d.code})"
            lines += [f"query {number}: {d.operator}", f"  {verdict}: {d.reason}"]
    return "\n".join(lines) + "\n"


def program_of(*queries):
    """Return what site 2 runs for all of them when every movable operator is pushed down."""
    catalog, found = splits_of(*queries)
    operators = list(
        dict.fromkeys(
            operator for each in found for operator in (*each.readings, *(fold.fold for fold in each.fold_candidates))
        )
    )
    extent = catalog.find("hall")
    channels = tuple(channel_of(extent.schema.find(name)) for name in ("temp", "volt"))
    sampling = Sampling(0, "hall", EpochGrid(0, extent.interval), channels)
    placed = [
        PlacedOperator(o, select_sites(o, SITES), number * (not hasattr(o, "sent")), (), 3)
        for number, o in enumerate(operators, 1)
    ]
    programs = compile_programs(placed, [Schedule(site, 1, (sampling,)) for site in SITES])
    return next(program for program in programs if program.site == 2).disassemble() + "\n"


@pytest.mark.promise("pages-are-true")
def test_every_reason_to_stay_is_on_the_page_and_no_other():
    said = "".join((ROOT / f"basestation/planner/{name}.py").read_text() for name in ("pushdown", "lowering"))
    codes = set(re.findall(r'NotPushableError\(\s*"(\w+)"', said))
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == codes


def test_the_example_is_decided_as_the_page_says():
    assert decisions_of(*QUERIES) == block("decisions")


@pytest.mark.promise("pages-are-true")
def test_the_example_is_compiled_as_the_page_says():
    assert program_of(*QUERIES[:2]) == block("program")


@pytest.mark.promise("explain")
def test_what_the_bridge_will_use_is_explained_as_the_page_says():
    deployment = read_deployment(ROOT / "examples/roadbridge/deployment.toml")
    catalog = read_deployed_catalog(deployment)
    [plan] = bind_text(re.search(r"```sneeql of roadbridge\n(.*?)```", PAGE, re.DOTALL)[1], catalog)
    text = render_statement(explain_statement(plan, 1, deployment, catalog))
    assert re.search(r"^on the motes of .*?\n(?=\n)", text, re.DOTALL | re.MULTILINE)[0] == block("motes")
