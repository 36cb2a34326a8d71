"""docs/walks: the scripts run in an empty folder as they stand, and the page quotes them."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.docs.pages import DOCS, ROOT

WALKS = DOCS / "walks"


def walk(name, folder):
    environment = {
        **os.environ,
        "PATH": f"{sys.executable.rpartition('/')[0]}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    for given in ("MOTELOOM_URL", "MOTELOOM_TOKEN"):
        environment.pop(given, None)
    done = subprocess.run(
        ["bash", "-eu", WALKS / name], cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )
    log = (folder / "station.log").read_text() if (folder / "station.log").exists() else ""
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr + log
    return done.stdout


@pytest.mark.promise("pages-are-true")
@pytest.mark.timeout(250)
def test_walk_of_a_technician(tmp_path, need):
    need("bash")
    said = walk("technician.sh", tmp_path)
    assert "temperature  float    Cel" in said and "query 1 runs" in said
    assert len(re.findall(r"Z.*\[readings \d of 6\]", said)) == 3 and (tmp_path / "greenhouse.backup").exists()


@pytest.mark.promise("pages-are-true")
@pytest.mark.timeout(250)
def test_walk_of_a_rest_developer(tmp_path, need):
    need("bash", "curl", "node")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    said = walk("rest-developer.sh", tmp_path)
    assert '"SN202"' in said and "internal-error" not in said and "_used  _due" in said
    events = [json.loads(line) for line in said.splitlines() if line.startswith('{"number"') and "coverage" in line]
    assert [event["number"] for event in events[-3:]] == [1, 2, 3]


def test_page_quotes_the_scripts_as_they_are():
    page = (WALKS / "five-minutes.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert quoted == [(WALKS / name).read_text(encoding="utf-8") for name in ("technician.sh", "rest-developer.sh")]
