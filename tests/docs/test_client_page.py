"""docs/client.md is true: its Python runs, block after block, in the folder of the station that its first command starts."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "client.md").read_text(encoding="utf-8")
CODE = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.promise("pages-are-true")
@pytest.mark.timeout(300)
def test_code_of_the_page_runs_beside_its_station(tmp_path):
    [start] = re.findall(r"^\$ (moteloom run .*)$", PAGE, re.MULTILINE)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = {
        **os.environ,
        "PATH": f"{sys.executable.rpartition('/')[0]}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    with open(tmp_path / "log", "w") as log:
        station = subprocess.Popen([*shlex.split(start), "--port", "0"], cwd=tmp_path, env=environment, stderr=log)
    try:
        url = tmp_path / "moteloom-data/url"
        for _ in range(600):
            if url.exists() and url.read_text().endswith("\n"):
                break
            assert station.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.1)
        done = subprocess.run(
            [sys.executable, "-c", CODE], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[0] == "['road', 'traffic', 'tempClass']" and "Name: mean, dtype: float64" in lines
        assert "         ^^^^" in lines and lines[-1].startswith("[[")
    finally:
        station.send_signal(signal.SIGINT)
        assert station.wait(timeout=60) == 0, (tmp_path / "log").read_text()
