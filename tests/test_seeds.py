"""tools/seeds.py runs the tests that draw from the seed, each as a run of that seed alone draws."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.seeds import choose

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = """
import pytest
from hypothesis import given, settings, strategies as st

NAMES = [f"n{number}" for number in range(40)]

def test_fixed():
    print("FIXED")

def test_rng(rng):
    print("RNG", rng.random())

def test_run_seed(run_seed):
    print("SEED", run_seed)
    assert run_seed != 13

@settings(max_examples=3)
@given(st.integers(0, 10**9))
def test_property(n):
    print("DRAWN", n)

@pytest.mark.sample("name", 3)
@pytest.mark.parametrize("name", NAMES)
def test_one_of_the_sample(name):
    print("ONE", name)

@pytest.mark.sample("name", 3)
@pytest.mark.parametrize("name", NAMES)
def test_another_of_the_sample(name):
    print("OTHER", name)
"""


@pytest.fixture
def house(tmp_path):
    """A folder with the sample above, the real conftest, settings and tool."""
    for name in ("tests/conftest.py", "tools/seeds.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "tests" / "test_sample.py").write_text(SAMPLE)
    return tmp_path


def run(house, *command, **environment):
    clean = {k: v for k, v in os.environ.items() if k not in ("STRICT", "MOTELOOM_COUNTS", "MOTELOOM_SEED")}
    return subprocess.run(
        [sys.executable, *command], cwd=house, env=clean | environment, capture_output=True, text=True, timeout=100
    )


def drawn(out):
    return re.findall(r"(?:RNG|SEED|DRAWN|ONE|OTHER) \S+", out)


@pytest.mark.promise("checked")
def test_each_round_draws_what_its_seed_alone_draws(house):
    rounds = run(house, "tools/seeds.py", "--seeds", "5,6,5", "-s")
    assert rounds.returncode == 0, rounds.stdout + rounds.stderr
    *parts, rest = re.split(r"seed (?:5|6): 9 ran in \d+ s\n", rounds.stdout)
    assert "FIXED" not in rounds.stdout
    assert "27 passed" in rest, rest
    alone = [
        drawn(run(house, "-m", "pytest", "-s", "-p", "no:cacheprovider", MOTELOOM_SEED=seed).stdout) for seed in "56"
    ]
    assert [drawn(part) for part in parts] == [alone[0], alone[1], alone[0]]
    names = [re.findall(r"(?:ONE|OTHER) (\S+)", part) for part in parts]
    assert names[0] == names[2] != names[1]
    assert names[0][:3] == names[0][3:]


@pytest.mark.promise("checked")
def test_a_seed_that_fails_is_named(house):
    done = run(house, "tools/seeds.py", "--seeds", "12,13,14", "--jobs", "2", "-k", "rng or run_seed")
    assert done.returncode == 1, done.stdout
    lines = [line.split(" in ")[0] for line in done.stdout.splitlines()]
    assert {"seed 12: 2 ran", "seed 13: 1 failed, 2 ran", "seed 14: 2 ran"} <= set(lines)
    assert "  MOTELOOM_SEED=13 tests/test_sample.py::test_run_seed" in lines


@pytest.mark.promise("checked")
def test_seeds_fail_where_one_did_not_run(house):
    """A process that is killed, and seeds for which there was no time."""
    (house / "tests" / "test_killed.py").write_text(
        "import os, signal\n\ndef test_killed(run_seed):\n    if run_seed == 13:\n        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = run(house, "tools/seeds.py", "--seeds", "12,13", "--jobs", "2", "tests/test_killed.py")
    assert done.returncode == 1 and "seeds: a process was ended by SIGKILL" in done.stdout, done.stdout
    assert "seed 12: 1 ran" in done.stdout
    done = run(house, "tools/seeds.py", "--seeds", "12,14", "--minutes", "0", "tests/test_killed.py")
    assert done.returncode == 1 and "seeds: 2 were not begun, as the time was over" in done.stdout, done.stdout


def test_known_seeds_run_first_and_others_are_drawn_from_one(monkeypatch, capsys):
    monkeypatch.setenv("MOTELOOM_SEED", "1")
    seeds = choose(10)
    assert seeds == choose(10) and len(set(seeds)) == 10
    assert seeds[0] == 1589667340
    assert capsys.readouterr().out == 2 * "seeds: 10 of MOTELOOM_SEED=1\n"
