"""Fixtures and settings of every test: counts by the size of the run, one printed seed, tools that are needed, strictness.

MOTELOOM_COUNTS=small|full|long  how much of a repeated test is done: `make test` is small, `make check` full, `make long` long
MOTELOOM_SHARE=0.1           of the counts of `long`
MOTELOOM_SEED=n              replays a run; the seed in use is printed in the header. Small counts have one that follows from
                             the code, so that the same commit draws the same cases everywhere; others draw a new one
STRICT=1                     a test that would be skipped fails, unless it needs recordings from outside the repository, zsh, fish, or mounts
MOTELOOM_SHRINK=0            an example of Hypothesis that fails is shown as it was found, which takes less time
MOTELOOM_SHARED=folder       where those recordings are
"""

import gc
import os
import random
import shutil
import zlib
from collections import Counter
from pathlib import Path

import hypothesis
import hypothesis.core
import pytest
from hypothesis import is_hypothesis_test

ROOT = Path(__file__).resolve().parents[1]
LONG = os.environ.get("MOTELOOM_COUNTS", "small") == "long"
FULL = LONG or os.environ.get("MOTELOOM_COUNTS", "small") == "full"
SHARE = float(os.environ.get("MOTELOOM_SHARE", "1"))
STRICT = os.environ.get("STRICT", "") not in ("", "0")
SHRINK = os.environ.get("MOTELOOM_SHRINK", "") != "0"


def seed_of_code(root):
    """A number that any change of a module makes another (decision 0250)."""
    seed = 0
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for path in (Path(folder, name) for name in sorted(names) if name.endswith(".py")):
            seed = zlib.crc32(path.read_bytes(), zlib.crc32(path.relative_to(root).as_posix().encode(), seed))
    return seed


def choose_seed():
    return random.SystemRandom().randrange(2**32) if FULL else seed_of_code(ROOT)


# Workers of pytest-xdist inherit the environment, so all of them share the seed that the first process chose.
os.environ["MOTELOOM_SEED"] = os.environ.get("MOTELOOM_SEED") or str(choose_seed())

PHASES = [phase for phase in hypothesis.Phase if SHRINK or phase.name not in ("shrink", "explain")]
# No test is timed, as the machine may have other work.
SHARED = {
    "deadline": None,
    "derandomize": False,
    "phases": PHASES,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
}
hypothesis.settings.register_profile("small", max_examples=20, **SHARED)
hypothesis.settings.register_profile("full", max_examples=300, **SHARED)
hypothesis.settings.load_profile("full" if FULL else "small")


def current_seed():
    """The seed of the run; `tools/seeds.py` changes it between two rounds."""
    return int(os.environ["MOTELOOM_SEED"])


def use_seed(seed):
    """Let everything that is drawn from now on come from a seed."""
    os.environ["MOTELOOM_SEED"] = str(seed)
    # This is where `--hypothesis-seed` ends as well; that option is not set from here, because Hypothesis' own plugin
    # may have read it already.
    hypothesis.core.global_force_seed = seed


def draws_from_seed(item):
    """Whether a test may do something else under another seed."""
    return (
        not {"rng", "run_seed"}.isdisjoint(getattr(item, "fixturenames", ()))
        or item.get_closest_marker("sample") is not None
        or is_hypothesis_test(getattr(item, "obj", None))
    )


def drawn(items, seed):
    """The tests that a seed chooses: all but those whose mark `sample` leaves their value out at small counts."""
    values = {}
    for item in items:
        if mark := item.get_closest_marker("sample"):
            values.setdefault((item.path, *mark.args), set()).add(item.callspec.params[mark.args[0]])
    chosen = {
        key: found if FULL else set(random.Random(seed).sample(sorted(found), min(len(found), key[2])))
        for key, found in values.items()
    }

    def is_chosen(item):
        mark = item.get_closest_marker("sample")
        return mark is None or item.callspec.params[mark.args[0]] in chosen[item.path, *mark.args]

    return [item for item in items if is_chosen(item)]


def pytest_configure(config):
    if config.getoption("--hypothesis-seed", default=None) is None:
        use_seed(current_seed())


def pytest_collection_modifyitems(config, items):
    """At full counts a test may take a quarter of an hour, unless it says itself how long it may take.

    A run of many seeds (tools/seeds.py) keeps all tests, and draws those of each seed itself.
    """
    for item in items if LONG else ():
        item.add_marker(pytest.mark.timeout(12 * 3_600), append=False)
    for item in items if FULL else ():
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(900))
    if not config.pluginmanager.has_plugin("seeds"):
        items[:] = drawn(items, current_seed())


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Nothing of what is collected is let go, so the garbage collector need not go through it, neither now nor while tests run.

    While tests run it looks for cycles every 50,000 objects; at every 700, as is the default, it takes a tenth of their time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


def pytest_report_header():
    size = f"long, {SHARE:g} of it" if LONG else "full" if FULL else "small"
    return f"moteloom: MOTELOOM_SEED={current_seed()} MOTELOOM_COUNTS={size} STRICT={int(STRICT)}"


def count_of(small, full, long=None):
    """The smaller number in `make test`, the larger one in `make check`; the largest in `make long`, where there is one."""
    if LONG and long is not None:
        return max(1, round(long * SHARE))
    return full if FULL else small


def need_tool(*tools):
    """Skip where one of the programs is missing (under STRICT=1 the skip becomes a failure). Returns their paths."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)} on PATH")
    return [shutil.which(tool) for tool in tools]


@pytest.fixture(scope="session")
def counts():
    return count_of


@pytest.fixture(scope="session")
def need():
    return need_tool


@pytest.fixture
def rng(request):
    """A random.Random of this test alone, made from the seed of the run."""
    return random.Random(f"{current_seed()}:{request.node.nodeid}")


@pytest.fixture
def run_seed():
    """The seed of the run."""
    return current_seed()


@pytest.fixture
def tally(record_property):
    """tally(title, counts): what the summary of the run adds up under a title, from whatever process it comes.

    Shares are of the sum of the counts, or of the sum of what is given as `of`.
    """
    return lambda title, counts, of=None: record_property("tally", (title, dict(counts), of))


def pytest_terminal_summary(terminalreporter):
    sums, totals = {}, Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, told in getattr(report, "user_properties", ()):
                if name == "tally" and report.when == "call":
                    title, counts, of = told
                    sums.setdefault(title, Counter()).update(counts)
                    totals[title] += sum(counts.values()) if of is None else of
    for title, counts in sums.items():
        terminalreporter.section(f"{title}: {totals[title]}, MOTELOOM_SEED={current_seed()}")
        for what, count in counts.most_common():
            terminalreporter.line(f"{count:>8} {count / totals[title]:7.2%}  {what}")


@pytest.fixture
def shared_data(request):
    """The folder with recordings from outside the repository; a test without it is skipped, also under STRICT=1."""
    request.node.add_marker("shared_data")
    folder = Path(os.environ.get("MOTELOOM_SHARED", ROOT.parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip("the shared recordings are not here")
    return folder


def _strictly(report, excused):
    """Under STRICT=1 a skip is a failure. An expected failure also counts as skipped, and stays what it is."""
    if STRICT and report.skipped and not excused and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"STRICT=1 and this would have been skipped: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    _strictly(report, any(item.get_closest_marker(name) for name in ("shared_data", "other_shell", "mounts")))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    _strictly(report, excused=False)
    return report
