"""docs/client.md is true: its Python runs, block after block, in the folder of the station that its first command starts."""

import re
import sys

import pytest

from tests.docs.pages import DOCS
from tests.docs.running_station import running_station

PAGE = (DOCS / "client.md").read_text(encoding="utf-8")
CODE = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.promise("pages-are-true")
@pytest.mark.timeout(300)
def test_code_of_the_page_runs_beside_its_station(tmp_path):
    [start] = re.findall(r"^\$ (moteloom run .*)$", PAGE, re.MULTILINE)
    with running_station(start, tmp_path) as station:
        done = station.run(sys.executable, "-c", CODE)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[0] == "['road', 'traffic', 'tempClass']" and "Name: mean, dtype: float64" in lines
        assert "         ^^^^" in lines and lines[-1].startswith("[[")
