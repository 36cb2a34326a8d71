"""Walk through a page of docs/how-to in a copy of the project: make its files, run its commands."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT

COPIED = (
    "gateway",
    "acquisition",
    "innet",
    "basestation",
    "simulator",
    "moteloom",
    "tests",
    "docs",
    "examples",
    "firmware_stubs",
)
FILES = ("pyproject.toml", "importlinter.ini", "README.md", "Makefile")
STEP = re.compile(
    r"<!-- (?P<verb>new|in): (?P<path>[\w./-]+)(?:, (?P<where>after|replace): (?P<text>.+?))? -->\n```\w*\n(?P<code>.*?)^```$"
    r"|^```console\n(?P<console>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def copy_project(folder: Path) -> Path:
    """A copy of the project without its history and its environment."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    return folder


def walk(page: Path, folder: Path) -> int:
    """Take the steps of a page in `folder`; how many there were. AssertionError where one does not go as the page says."""
    steps = list(STEP.finditer(page.read_text(encoding="utf-8")))
    for step in steps:
        if step["console"] is not None:
            run_console(step["console"], folder)
        elif step["verb"] == "new":
            path = folder / step["path"]
            assert not path.exists(), f"{path} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step["code"], encoding="utf-8")
        else:
            change(folder / step["path"], step["where"], step["text"], step["code"])
    return len(steps)


def change(path: Path, where: str, text: str, code: str) -> None:
    """Put a block below the line that contains a text, or in its place."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    [at] = [number for number, line in enumerate(lines) if text in line]
    lines[at : at + 1] = [code] if where == "replace" else [lines[at], code]
    path.write_text("".join(lines), encoding="utf-8")


def run_console(console: str, folder: Path) -> None:
    """Run the commands of a block; what they print has the lines below them, in this order."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = command[:-1] + more
        search = f"{folder}:{os.environ.get('PYTHONPATH', '')}"
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PYTHONPATH": search, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
        printed = done.stdout + done.stderr
        assert done.returncode == 0, f"$ {command}\n{printed}"
        rest = iter(printed.splitlines())
        for line in expected.splitlines():
            assert not line.strip() or any(line.rstrip() == found.rstrip() for found in rest), (
                f"$ {command}\ndoes not print: {line}\n{printed}"
            )
