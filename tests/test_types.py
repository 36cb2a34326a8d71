"""All packages are typed strictly: mypy finds nothing, and what it is silenced about is counted and may only fall."""

import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT

PACKAGES = ("gateway", "acquisition", "innet", "basestation", "simulator", "moteloom")
SILENCED = 8
"""Comments `# type: ignore` in the product. Each states its code and its cause."""


@pytest.mark.promise("checked")
@pytest.mark.timeout(600)
def test_strict_typecheck_finds_no_error():
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True, timeout=590)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr


def test_silenced_type_errors_do_not_grow():
    lines = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if "type: ignore" in line
    ]
    assert all(re.search(r"# type: ignore\[[\w-]+\]  # \w", line) for line in lines), lines
    assert len(lines) <= SILENCED, "lower the number of silenced errors, or type it"
