"""The import contract holds, and every package on the two flows has both of its doors."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("gateway", "acquisition", "innet", "basestation")


@pytest.mark.promise("predicted-energy", "checked")
def test_the_import_contract_holds():
    lint = [Path(sys.executable).with_name("lint-imports"), "--config", "importlinter.ini", "--no-cache"]
    done = subprocess.run(lint, cwd=ROOT, capture_output=True, text=True)  # in here it would disable the logs of a run
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.promise("checked")
@pytest.mark.parametrize("door", ["uplink", "downlink"])
@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_both_doors(package, door):
    tree = ast.parse((ROOT / package / f"{door}.py").read_text())
    assert ast.get_docstring(tree).startswith("DOOR UP: " if door == "uplink" else "DOOR DOWN: ")
    assert any(isinstance(node, ast.FunctionDef) for node in tree.body), "a door is functions"


@pytest.mark.promise("checked")
def test_doors_stay_short():
    """A door reads like a table of contents; one that needs scrolling has taken in rules that belong elsewhere."""
    for package in PACKAGES:
        for door in ("uplink", "downlink"):
            lines = (ROOT / package / f"{door}.py").read_text().splitlines()
            assert len(lines) <= 110, f"{package}/{door}.py has {len(lines)} lines"


def test_every_module_says_what_it_owns():
    for package in (*PACKAGES, "simulator", "moteloom"):
        for module in (ROOT / package).rglob("*.py"):
            assert ast.get_docstring(ast.parse(module.read_text())), f"{module.relative_to(ROOT)} has no docstring"
