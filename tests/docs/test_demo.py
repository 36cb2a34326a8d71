"""`make demo`: a station with simulated motes, three queries, a mote that comes back; it checks itself and leaves nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT


@pytest.mark.promise("paper-queries", "durable")
@pytest.mark.timeout(400)
def test_demo_shows_live_answers_and_a_revision(tmp_path, need):
    need("bash", "awk")
    search = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": search, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        ["bash", ROOT / "examples/lab54/demo.sh"], env=environment, capture_output=True, text=True, timeout=380
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) < 60
    assert "revision 1" in done.stdout and "[108 of 108]" in done.stdout and done.stdout.endswith("demo: done\n")
    assert list(tmp_path.iterdir()) == []
