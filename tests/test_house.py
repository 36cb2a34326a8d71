"""The house itself: strictness, seeds and counts do what conftest promises, and `make help` prints every target."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SKIPS = """
import random, pytest
from hypothesis import given, strategies as st

def test_missing_tool(need):
    need("there-is-no-such-tool")

@pytest.mark.shared_data
def test_needs_recordings():
    pytest.skip("not here")

def test_needs_recordings_by_fixture(shared_data):
    pass

@pytest.mark.xfail(strict=True)
def test_expected():
    assert False

def test_counts(counts, rng):
    print("COUNT", counts(1, 2), "CHANCE", rng.random())

@given(st.integers(0, 10**9))
def test_property(n):
    print("DRAWN", n)
"""


def inner(folder, **environment):
    """Run the sample tests above under the real conftest and the real settings."""
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    (folder / "test_sample.py").write_text(SKIPS)
    clean = {k: v for k, v in os.environ.items() if k not in ("STRICT", "MOTELOOM_COUNTS", "MOTELOOM_SEED")}
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "test_sample.py"]
    env = {**clean, "MOTELOOM_SHARED": str(folder / "nothing"), **environment}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=100).stdout


@pytest.mark.promise("checked")
def test_a_skip_is_a_skip_unless_strict(tmp_path):
    assert "2 passed, 3 skipped, 1 xfailed" in inner(tmp_path)
    strict = inner(tmp_path, STRICT="1")
    assert "1 failed, 2 passed, 2 skipped, 1 xfailed" in strict
    assert "STRICT=1 and this would have been skipped: " in strict
    assert "needs there-is-no-such-tool on PATH" in strict


def test_a_module_that_skips_itself_fails_under_strict(tmp_path):
    (tmp_path / "test_module.py").write_text("import pytest\npytest.importorskip('there_is_no_such_module')\n")
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), "."]
    for strict, code in (("0", 5), ("1", 2)):
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, "STRICT": strict}, capture_output=True, timeout=60
        )
        assert done.returncode == code, done.stdout


@pytest.mark.promise("checked")
def test_a_seed_replays_a_run(tmp_path):
    first = inner(tmp_path)
    seed = re.search(r"MOTELOOM_SEED=(\d+)", first).group(1)
    again, other = inner(tmp_path, MOTELOOM_SEED=seed), inner(tmp_path, MOTELOOM_SEED=str(int(seed) + 1))

    def chance(out):
        return re.findall(r"(?:CHANCE|DRAWN) \S+", out)

    assert len(chance(first)) > 10
    assert chance(first) == chance(again) != chance(other)


@pytest.mark.promise("checked")
def test_same_code_draws_the_same_cases_at_small_counts(tmp_path):
    def seed(**environment):
        return re.search(r"MOTELOOM_SEED=(\d+)", inner(tmp_path / "tests", **environment)).group(1)

    (tmp_path / "tests").mkdir()
    (tmp_path / ".venv").mkdir()
    small = seed()
    (tmp_path / ".venv" / "installed.py").write_text("elsewhere = 1\n")
    assert seed() == small
    assert seed(MOTELOOM_COUNTS="full") != seed(MOTELOOM_COUNTS="full")
    (tmp_path / "module.py").write_text("changed = 1\n")
    assert seed() != small


@pytest.mark.parametrize(("size", "count"), [("small", 1), ("full", 2)])
def test_counts_follow_the_size_of_the_run(tmp_path, size, count):
    out = inner(tmp_path, MOTELOOM_COUNTS=size)
    assert f"MOTELOOM_COUNTS={size}" in out
    assert f"COUNT {count} " in out


def test_help_prints_every_target(need):
    need("make")
    clean = {"PATH": os.environ["PATH"]}  # a make around this one would have its say in the output
    command = ["make", "--no-print-directory", "help"]
    said = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, timeout=60, check=True).stdout
    targets = re.search(r"\.PHONY: (.*)", (ROOT / "Makefile").read_text()).group(1).split()
    assert [line.split()[1] for line in said.splitlines()] == targets


def test_set_up_names_the_package_where_python_is_missing(tmp_path, need):
    (bash,) = need("bash")
    environment = {"PATH": os.environ["PATH"], "PYTHON": "there-is-no-such-python"}
    command = [bash, ROOT / "tools" / "setup.sh", tmp_path / "venv"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == (
        "setup: Python 3.11 or later was not found; on Debian: sudo apt install python3.11 python3.11-venv\n"
    )
