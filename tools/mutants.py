"""Mutants: one-line changes of operators that a test must notice.

    python tools/mutants.py                # all that are recorded in tests/mutants/*.toml
    python tools/mutants.py windowing 5.1  # those whose file or breach has one of the words in it
    python tools/mutants.py --jobs 4
    python tools/mutants.py --new          # those that no test is remembered for

Each is made in a private copy of the tree. The test that caught it last, as tests/mutants/caught_by.json remembers it,
runs first; if that one passes or is gone, the tests that are nearest to it run until the first that fails. A mutant is
caught if a test fails that passes without it, also by a time limit of its own; if all of them together take too long, it
is called slow, and stale if it cannot be made or no test can run. Exits with 1 if not every one is caught.
"""

import argparse
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests" / "mutants"
CAUGHT_BY = RECORDED / "caught_by.json"
COPIED = (
    "acquisition",
    "basestation",
    "gateway",
    "innet",
    "simulator",
    "moteloom",
    "tests",
    "tools",
    "examples",
    "docs",
    "firmware_stubs",
    "pyproject.toml",
)
SECONDS = 1200
FAILED = re.compile(r"^(?:FAILED|ERROR) (?P<test>\S+\.py::[^\s\[]+(?:\[.*?\])?)(?= - |$).*", re.MULTILINE)
"""The line of a failed test; the values in its brackets may have any signs, also ` - `."""
ANSWERS = "tests/golden/test_queries.py::test_query_answer_matches_golden_file"
CHOICES = "tests/golden/test_choices.py::test_query_answers_equally_under_random_choice"
NEAREST = {
    "basestation/execution": (ANSWERS, CHOICES, "tests/agreement", "tests/execution"),
    "basestation/replay": ("tests/replay",),
    "basestation/progress": (ANSWERS, "tests/progress", CHOICES),
    "basestation/algebra": (ANSWERS, "tests/algebra"),
    "basestation/language": ("tests/language",),
    "basestation/shell": ("tests/shell",),
    "moteloom": ("tests/client",),
    "basestation/planner": (
        ANSWERS,
        "tests/planner/test_multiple_search.py",
        "tests/planner/test_rules.py",
        "tests/planner/test_acquire_only_windowed_ticks.py",
        "tests/planner/test_pushdown.py",
        "tests/planner/test_pushdown_equivalence.py",
        "tests/planner/test_explain_json.py",
        CHOICES,
        "tests/agreement",
    ),
    "innet/aggregates": (
        "tests/innet/test_partials.py",
        "tests/innet/test_group_ranges.py",
        ANSWERS,
        "tests/innet/test_aggregates.py",
    ),
    "basestation/controller/active_hours.py": ("tests/station/test_active_hours.py",),
    "basestation/controller/lifetime.py": ("tests/simulation/test_lifetime.py",),
    "basestation/controller/world.py": ("tests/station/test_query_life.py",),
    "basestation/downlink.py": ("tests/station/test_query_life.py",),
    "basestation/history": ("tests/history/test_history_command.py",),
    "basestation/archive": (
        "tests/archive",
        "tests/station/test_archiving.py",
        "tests/station/test_archive_maintenance.py",
        "tests/station/test_uploads.py",
    ),
    "basestation/uplink.py": ("tests/archive/test_reports.py",),
    "basestation/station": ("tests/station", "tests/rest"),
    "basestation/rest": ("tests/rest", "tests/station/test_run_command.py"),
    "gateway/transports": ("tests/gateway/test_mqtt.py",),
    "gateway/daemon.py": ("tests/gateway/test_daemon.py",),
    "basestation/testbed": ("tests/simulation/test_steady_state.py", "tests/simulation/test_scenario_checks.py"),
    "basestation/explain": ("tests/planner/test_routing_map.py", "tests/planner/test_marginal_cost.py"),
    "innet/program": (
        "tests/planner/test_marginal_cost.py",
        "tests/innet/test_program.py",
        "tests/innet/test_compiler.py",
        "tests/innet/test_interpreter.py",
    ),
    "innet/operators": (
        "tests/innet/test_value_ranges.py",
        "tests/innet/test_interpreter.py",
        "tests/innet/test_partials.py",
    ),
    "innet/partials.py": ("tests/innet/test_partials.py",),
    "innet/placement": (
        "tests/innet/test_slot_rounds.py",
        "tests/innet/test_statistics.py",
        "tests/innet/test_placement.py",
        "tests/innet/test_agenda.py",
        "tests/innet/test_round_by_round.py",
    ),
    "innet/routing": ("tests/innet/test_routing.py",),
    "innet/costs": ("tests/innet/test_costs.py",),
    "innet/deployment": ("tests/innet/test_deployment.py", "tests/golden/test_errors.py"),
    "gateway/toml.py": ("tests/innet/test_deployment.py", "tests/golden/test_errors.py"),
    "gateway/codec.py": ("tests/gateway/test_codec.py",),
    "gateway/frame.py": ("tests/gateway/test_codec.py", "tests/gateway/test_uplink_downlink.py"),
    "gateway/link.py": ("tests/gateway/test_link.py", "tests/golden/frames"),
    "gateway/resend_buffer.py": ("tests/gateway/test_resend_buffer.py", "tests/gateway/test_link.py"),
    "gateway/image.py": ("tests/gateway/test_image.py",),
    "gateway/installer.py": ("tests/gateway/test_image.py",),
    "gateway/payload.py": ("tests/gateway/test_payload.py",),
    "gateway/gap_requests.py": ("tests/gateway/test_payload.py",),
    "gateway/desired_state.py": ("tests/gateway/test_reconciler.py",),
    "gateway/reconciler.py": ("tests/gateway/test_reconciler.py",),
    "gateway/mote_lifecycle.py": ("tests/gateway/test_reconciler.py",),
    "acquisition": (
        "tests/acquisition/test_payload.py",
        "tests/acquisition/test_ticks.py",
        "tests/innet/test_payload.py",
        "tests/replay/test_values.py",
        "tests/replay/test_blocks.py",
    ),
    "simulator": ("tests/simulator/test_measurement.py", "tests/simulation/test_vector_testbed.py"),
    "innet/payload": ("tests/innet/test_payload.py", "tests/golden/frames"),
}
"""The tests of each folder; the first are those that catch most in little time."""


@dataclass(frozen=True)
class Mutant:
    file: str
    before: str
    after: str
    breaks: str

    def made_in(self, text):
        """The text with the change; None where it does not apply, or in more than one place."""
        return text.replace(self.before, self.after) if text.count(self.before) == 1 else None

    @property
    def name(self):
        return f"{self.file}: {self.before} -> {self.after}"

    @property
    def tests(self):
        """The test module of the same name, the tests of the folder, the nearest tests."""
        path = Path(self.file)
        folder = Path("tests", *path.parts[path.parts[0] == "basestation" : -1])
        while not (ROOT / folder).is_dir():
            folder = folder.parent
        own = [str(found.relative_to(ROOT)) for found in sorted((ROOT / "tests").rglob(f"test_{path.stem}.py"))]
        nearest = next(tests for beginning, tests in NEAREST.items() if self.file.startswith(beginning))
        beside = [str(folder)] if len(folder.parts) > 2 else []
        return (*own, *beside, *nearest)


def recorded(folder=RECORDED):
    return [
        Mutant(**entry) for path in sorted(folder.glob("*.toml")) for entry in tomllib.loads(path.read_text())["mutant"]
    ]


def copied(folder):
    """A private copy of the tree."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


def judged(mutant, tree, tests=None, seconds=SECONDS, last=None):
    """(verdict, what the tests said, the test that failed): caught, survived, slow, or stale where it cannot be made.

    `last` is the test that caught it before, tried first.
    """
    path = tree / mutant.file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    changed = mutant.made_in(text)
    if changed is None:
        return "stale", f"it stands {text.count(mutant.before)} times in the file", None
    _write(path, changed)
    try:
        if last is not None and (found := _tested(tree, (last,), seconds))[0] == "caught":
            return found
        found = _tested(tree, tests or mutant.tests, seconds)
    finally:
        _write(path, text)
    verdict, said, test = found
    if verdict == "caught" and _tested(tree, (test,), seconds)[0] != "survived":
        return "stale", f"this test fails without any change, too: {said}", None
    return found


def _write(path, text):
    path.write_text(text, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()  # two changes of one second and one length look the same to Python


def _tested(tree, tests, seconds):
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests]
    environment = {**os.environ, "MOTELOOM_SEED": os.environ.get("MOTELOOM_SEED", "1"), "MOTELOOM_COUNTS": "small"}
    # A change of equal length in the same second looks like none to a .pyc.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    try:
        ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "slow", f"the tests were not done after {seconds} s", None
    if ran.returncode == 0:
        return "survived", "", None
    failed = FAILED.search(ran.stdout)
    if ran.returncode == 1 and failed is not None:
        return "caught", failed[0], failed["test"]
    # No test ran: a module of tests cannot be read, or pytest itself failed.
    words = re.findall(r"^ERROR \S+\.py.*", ran.stdout, re.MULTILINE) or (ran.stdout + ran.stderr).splitlines()[-1:]
    return "stale", words[0] if words else "no word", None


def _remember(tests):
    """Write down which test caught which mutant; mutants that are no longer recorded are forgotten."""
    known = {mutant.name for mutant in recorded()}
    CAUGHT_BY.write_text(
        json.dumps({name: test for name, test in sorted(tests.items()) if name in known}, indent=1) + "\n"
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--new", action="store_true")
    args = parser.parse_args(arguments)
    remembered = json.loads(CAUGHT_BY.read_text()) if CAUGHT_BY.exists() else {}
    chosen = [m for m in recorded() if not args.words or any(w in m.file or w in m.breaks for w in args.words)]
    chosen = [m for m in chosen if not (args.new and m.name in remembered)]
    began, verdicts, writing = time.monotonic(), [], threading.Lock()
    with tempfile.TemporaryDirectory() as folder:
        trees = queue.Queue()
        for number in range(args.jobs):
            (place := Path(folder) / str(number)).mkdir()
            trees.put(copied(place))
        known = sorted({remembered[m.name] for m in chosen if m.name in remembered})
        verdict, said, _ = _tested(Path(folder) / "0", (ANSWERS, *known), SECONDS)
        if verdict != "survived":
            print(f"the tests fail without any change: {said}")
            return 1

        def judge(mutant):
            tree, start = trees.get(), time.monotonic()
            try:
                verdict, said, test = judged(mutant, tree, last=remembered.get(mutant.name))
            finally:
                trees.put(tree)
            if test is not None:
                with writing:
                    remembered[mutant.name] = test
                    _remember(remembered)
            print(f"{verdict:<9} {time.monotonic() - start:4.0f} s  {mutant.file}: {mutant.breaks}", flush=True)
            if verdict != "caught":
                print(f"          {mutant.before}\n       -> {mutant.after}\n          {said}", flush=True)
            return verdict

        with ThreadPoolExecutor(args.jobs) as pool:
            verdicts = list(pool.map(judge, chosen))
    caught = verdicts.count("caught")
    print(f"{caught} of {len(verdicts)} mutants caught in {time.monotonic() - began:.0f} s")
    return 0 if caught == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
