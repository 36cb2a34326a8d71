"""Notebooks of the examples: a run without Jupyter shows what they hold."""

import json
import re
import subprocess
import sys

import pytest

from tests.docs.pages import DOCS, ROOT

NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))


def run_notebook(path):
    """The end of a run of the cells in a process of its own, which compares what they show."""
    command = [sys.executable, str(ROOT / "tools" / "notebook.py"), str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


@pytest.mark.promise("pages-are-true")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_cells_show_what_the_notebook_holds(path):
    done = run_notebook(path)
    assert done.returncode == 0, done.stderr + "\n`python tools/notebook.py NOTEBOOK --write` renews it"


def test_changed_output_is_found(tmp_path):
    path = tmp_path / "examples" / "notebooks" / "greenhouse.ipynb"
    path.parent.mkdir(parents=True)
    (tmp_path / "examples" / "recordings").symlink_to(ROOT / "examples" / "recordings")
    text = (ROOT / "examples" / "notebooks" / "greenhouse.ipynb").read_text()
    assert "12.27 °C" in text
    path.write_text(text.replace("12.27 °C", "12.28 °C"))
    done = run_notebook(path)
    assert done.returncode == 1 and "12.28 °C" in done.stderr


@pytest.mark.promise("pages-are-true")
def test_windowed_answer_equals_the_computation_by_hand():
    text = (ROOT / "examples" / "notebooks" / "greenhouse.ipynb").read_text()
    found = re.search(r"'([\d.]+) from (\d+) readings by hand, ([\d.]+) from (\d+) by Moteloom'", text)
    assert found and (found[1], found[2]) == (found[3], found[4])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_is_clean_and_linked(path):
    text = path.read_text(encoding="utf-8")
    notebook = json.loads(text)
    assert notebook["nbformat"] == 4 and set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert str(ROOT) not in text and "/home/" not in text
    name = str(path.relative_to(ROOT))
    assert name in (ROOT / "README.md").read_text() and name in (DOCS / "your-data.md").read_text()
