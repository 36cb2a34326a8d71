"""Twenty things that a developer looks for, each with the modules that answer it. A stranger who sees only the names of modules
and their first lines must find them: fresh readers are asked now and then, and docs/architecture.md says how often they did.
"""

import ast

import pytest

from tests.docs.pages import DOCS, ROOT

TASKS = {
    "where is a late reading classified as late, on time or too old": ("basestation/execution/ingest/lateness.py",),
    "where is a mote's program compiled": ("innet/program/compiler.py",),
    "add a unit of measurement": ("acquisition/units.py",),
    "why does a window of a silent mote close": ("basestation/progress/watermark.py",),
    "where are the bits of a frame's header decoded": ("gateway/codec.py",),
    "where is it decided whether a frame is a duplicate": ("gateway/link.py",),
    "add an aggregate function that motes can merge": ("innet/aggregates/protocol.py", "innet/aggregates/state.py"),
    "where does the parser decide between two meanings of a word after FROM": ("basestation/language/from_parser.py",),
    "change how much memory the engine gives sliding windows that overlap": (
        "basestation/execution/slices/two_stacks.py", "basestation/execution/slices/sparse_table.py",
        "basestation/execution/slices/slice_store.py", "basestation/execution/slices/window_merger.py"),
    "the join of two streams is slow: where are its hash indexes": (
        "basestation/execution/joins/state_module.py", "basestation/execution/joins/index_run.py",
        "basestation/execution/joins/key_codes.py"),
    "where is a predicate pushed below a window": ("basestation/planner/rules/push_select_below_window.py",),
    "where is it decided what runs on motes and what stays": (
        "basestation/planner/pushdown.py", "basestation/planner/lowering.py"),
    "how is the lifetime of a battery predicted": ("innet/costs/energy_model.py",),
    "who replaces a parent that died": ("innet/routing/failure_detector.py", "innet/routing/parent_selection.py"),
    "where is a query of the user checked before anything is deployed": (
        "basestation/controller/admission.py", "basestation/planner/binder.py"),
    "where is an acknowledged reading made durable": (
        "basestation/station/journal.py", "basestation/station/committed_station.py"),
    "add a route to the REST interface": (
        "basestation/rest/api.py", "basestation/rest/query_routes.py", "basestation/rest/station_routes.py"),
    "add a kind of fault to the simulator": ("simulator/fault_injection.py", "simulator/scenario.py"),
    "when do motes sleep": (
        "innet/placement/agenda.py", "innet/placement/agenda_scheduler.py", "simulator/radio_slots.py"),
    "a revision is missing from an answer: where are window updates made": (
        "basestation/execution/output/window_output.py", "basestation/updates/update.py"),
}  # fmt: skip


def test_there_are_twenty_tasks():
    assert len(TASKS) == 20


@pytest.mark.promise("pages-are-true")
@pytest.mark.parametrize("task", TASKS)
def test_module_that_answers_a_task_says_so_in_its_first_line(task):
    for path in TASKS[task]:
        first = (ast.get_docstring(ast.parse((ROOT / path).read_text(encoding="utf-8"))) or "").partition("\n")[0]
        assert 20 <= len(first) <= 160, path


def test_result_of_the_last_readers_is_on_the_architecture_page():
    assert "of 20 tasks" in (DOCS / "architecture.md").read_text(encoding="utf-8")
