"""Mutants: one-line changes of operators that a test must notice.

    python tools/mutants.py                # all that are recorded in tests/mutants/*.toml
    python tools/mutants.py windowing 5.1  # those whose file or breach has one of the words in it
    python tools/mutants.py --jobs 4
    python tools/mutants.py --new          # those that no test is remembered for
    python tools/mutants.py --since v1.2   # those that a change after this commit may have freed

Each is made in a private copy of the tree. The test that caught it last, as tests/mutants/caught_by.json remembers it,
runs first, in a fork of a process that has collected it, or else in a process of its own; if that one passes or is gone, the tests that are nearest to it run until the first that fails. A mutant is
caught if a test fails that passes without it, also by a time limit of its own; if all of them together take too long, it
is called slow, and stale if it cannot be made or no test can run. Exits with 1 if not every one is caught.

`--since` judges the mutants that no test is remembered for, and those of which the file, the module of the remembered
test or its golden file differs between the commit and the working tree. It does not see that a helper of tests or a
file beside the mutated one changed; the whole run does.
"""

import argparse
import compileall
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
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests" / "mutants"
CAUGHT_BY = RECORDED / "caught_by.json"
NOT_COPIED = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "build", "dist")
SECONDS = 1200
PLUGINS = ("-p", "no:cacheprovider", "-p", "pytest_timeout")
"""Of pytest; it starts in a fifth of the time without those that tests of one process can do without."""
FAILED = re.compile(r"^(?:FAILED|ERROR) (?P<test>\S+\.py::[^\s\[]+(?:\[.*?\])?)(?= - |$).*", re.MULTILINE)
"""The line of a failed test; the values in its brackets may have any signs, also ` - `."""
ANSWERS = "tests/golden/test_queries.py::test_query_answer_matches_golden_file"
CHOICES = "tests/golden/test_choices.py::test_query_answers_equally_under_random_choice"
NEAREST = {
    "basestation/execution": (
        ANSWERS,
        CHOICES,
        "tests/agreement",
        "tests/execution",
        "tests/station/test_archived_corrections.py",
        "tests/station/test_query_accounts.py",
    ),
    "basestation/replay": ("tests/replay",),
    "basestation/results": ("tests/results",),
    "basestation/progress": (ANSWERS, "tests/progress", CHOICES),
    "basestation/algebra": (ANSWERS, "tests/algebra"),
    "basestation/language": ("tests/language",),
    "basestation/shell": ("tests/shell",),
    "moteloom": ("tests/client",),
    "basestation/planner": (
        "tests/planner/test_rules.py",
        "tests/planner/test_helpful_messages.py",
        ANSWERS,
        "tests/planner/test_multiple_search.py",
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
    "basestation/history": (
        "tests/history/test_history_command.py",
        "tests/history/test_sums_in_spark.py",
        "tests/history/test_golden_in_spark.py",
    ),
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
    "acquisition/bit_reader.py": ("tests/acquisition/test_payload.py", "tests/innet/test_payload.py"),
    "acquisition/payload.py": ("tests/acquisition/test_payload.py", "tests/innet/test_payload.py"),
    "acquisition/ticks.py": ("tests/acquisition/test_ticks.py",),
    "acquisition/sources": (
        "tests/acquisition/test_pushed_tuples.py",
        "tests/replay/test_recording_times.py",
        "tests/replay/test_dirty_files.py",
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
    """A private copy of the tree, compiled."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED), dirs_exist_ok=True, symlinks=True)
    compile_checked(folder)
    return folder


def compile_checked(folder):
    """Compile the modules of all packages so that Python compares each with the contents of its source.

    By time and length alone, two changes of one second and one length would be the same to it.
    """
    for package in sorted({mutant.file.partition("/")[0] for mutant in recorded()}):
        compileall.compile_dir(folder / package, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)


class Forks:
    """A pytest process in a tree, which has collected the remembered tests and runs each in a fork (mutant_forks.py)."""

    def __init__(self, tree, tests):
        self._passes = {}
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        modules = {test.partition("::")[0] for test in tests}
        command = [str(ROOT / "tools" / "mutant_forks.py"), str(requests), str(answers), *PLUGINS, "-q"]
        self._process = subprocess.Popen(
            [sys.executable, *command, f"--basetemp={tree}.tests", *sorted(m for m in modules if (tree / m).exists())],
            cwd=tree,
            env=_environment(tree),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(requests, answers),
        )
        for each in (requests, answers):
            os.close(each)
        self._reader = os.fdopen(self._answers)
        self._is_ready = self._reader.readline() == "ready\n"

    def run(self, test, seconds, **change):
        """`passed`, `failed` or `unknown`; `change` is the `file` that is changed now, and its `text` of before."""
        if not self._is_ready:
            return "unknown"
        os.write(self._requests, (json.dumps({"test": test, "seconds": seconds, **change}) + "\n").encode())
        return self._reader.readline().strip() or "unknown"

    def passes(self, test, seconds):
        """Whether a test passes without any change."""
        if test not in self._passes:
            self._passes[test] = self.run(test, seconds) == "passed"
        return self._passes[test]

    def close(self):
        os.close(self._requests)
        self._reader.close()
        self._process.wait()


def judged(mutant, tree, tests=None, seconds=SECONDS, last=None, forks=None):
    """(verdict, what the tests said, the test that failed): caught, survived, slow, or stale where it cannot be made.

    `last` is the test that caught it before, tried first: in one of the forks, then in a process of its own.
    """
    path = tree / mutant.file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    changed = mutant.made_in(text)
    if changed is None:
        return "stale", f"it stands {text.count(mutant.before)} times in the file", None

    def with_change(run, *arguments, **options):
        path.write_text(changed, encoding="utf-8")
        try:
            return run(*arguments, **options)
        finally:
            path.write_text(text, encoding="utf-8")

    if last is not None and forks is not None:
        found = with_change(forks.run, last, seconds, file=mutant.file, text=text)
        if found == "failed" and forks.passes(last, seconds):
            return "caught", last, last
    for chosen in ((last,), tests or mutant.tests) if last is not None else (tests or mutant.tests,):
        verdict, said, test = found = with_change(_tested, tree, chosen, seconds)
        if verdict == "caught":
            if _tested(tree, (test,), seconds)[0] == "survived":
                return found
            found = "stale", f"this test fails without any change, too: {said}", None
    return found


def _tested(tree, tests, seconds):
    try:
        ran = _run_tests(tree, ("-x", *tests), seconds)
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


def _run_tests(tree, arguments, seconds=None):
    command = [sys.executable, "-m", "pytest", "-q", *PLUGINS, "--no-header", *arguments]
    return subprocess.run(command, cwd=tree, env=_environment(tree), capture_output=True, text=True, timeout=seconds)


def _environment(tree):
    return {
        **os.environ,
        "MOTELOOM_SEED": os.environ.get("MOTELOOM_SEED", "1"),
        "MOTELOOM_COUNTS": "small",
        "MOTELOOM_SHRINK": "0",
        "PYTHONPATH": str(tree),  # processes of tests run the changed code, not the installed one
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def may_be_freed(mutant, test, changed):
    """Whether one of the changed files may keep the remembered test from catching the mutant."""
    if test is None:
        return True
    module, _, name = test.partition("::")
    golden = re.compile(r".*\[(?P<file>\w+):").match(name)
    return any(
        path in (mutant.file, module)
        or (golden is not None and path.startswith("tests/golden/") and Path(path).stem == golden["file"])
        for path in changed
    )


def changed_since(revision, root=ROOT):
    """The files of the working tree that differ from the commit."""
    commands = (("diff", "--name-only", revision), ("ls-files", "--others", "--exclude-standard"))
    return {
        path
        for command in commands
        for path in subprocess.run(
            ("git", *command), cwd=root, check=True, capture_output=True, text=True
        ).stdout.splitlines()
    }


def _read_remembered():
    return json.loads(CAUGHT_BY.read_text()) if CAUGHT_BY.exists() else {}


def _remember(mutant, test):
    """Write down which test caught a mutant; mutants that are no longer recorded are forgotten."""
    known = {mutant.name for mutant in recorded()}
    tests = {**_read_remembered(), mutant.name: test}  # another run may have written since
    CAUGHT_BY.write_text(
        json.dumps({name: test for name, test in sorted(tests.items()) if name in known}, indent=1) + "\n"
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--since", metavar="REVISION")
    args = parser.parse_args(arguments)
    remembered = _read_remembered()
    chosen = [m for m in recorded() if not args.words or any(w in m.file or w in m.breaks for w in args.words)]
    chosen = [m for m in chosen if not (args.new and m.name in remembered)]
    if args.since is not None:
        changed = changed_since(args.since)
        chosen = [m for m in chosen if may_be_freed(m, remembered.get(m.name), changed)]
    began, verdicts, writing = time.monotonic(), [], threading.Lock()
    with tempfile.TemporaryDirectory() as folder:
        trees = queue.Queue()
        for number in range(args.jobs):
            (place := Path(folder) / str(number)).mkdir()
            trees.put((copied(place), Forks(place, {remembered[m.name] for m in chosen if m.name in remembered})))

        def judge(mutant):
            (tree, forks), start = trees.get(), time.monotonic()
            try:
                verdict, said, test = judged(mutant, tree, last=remembered.get(mutant.name), forks=forks)
            finally:
                trees.put((tree, forks))
            if test is not None:
                with writing:
                    _remember(mutant, test)
            print(f"{verdict:<9} {time.monotonic() - start:4.0f} s  {mutant.file}: {mutant.breaks}", flush=True)
            if verdict != "caught":
                print(f"          {mutant.before}\n       -> {mutant.after}\n          {said}", flush=True)
            return verdict

        with ThreadPoolExecutor(args.jobs) as pool:
            verdicts = list(pool.map(judge, chosen))
        while not trees.empty():
            trees.get()[1].close()
    counts = Counter(verdicts)
    others = "".join(f", {counts[verdict]} {verdict}" for verdict in ("survived", "stale", "slow") if counts[verdict])
    print(f"{counts['caught']} of {len(verdicts)} mutants caught{others} in {time.monotonic() - began:.0f} s")
    return 0 if counts["caught"] == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
