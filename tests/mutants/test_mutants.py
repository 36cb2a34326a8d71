"""The runner of mutants: what it calls caught, survived and stale, and that enough of them are recorded."""

from collections import Counter

import pytest

from tests.conftest import ROOT
from tools import mutants


@pytest.mark.promise("checked")
def test_there_are_as_many_as_promised():
    recorded = mutants.recorded()
    assert len(recorded) >= 60 and len({(m.file, m.before, m.after) for m in recorded}) == len(recorded)
    folders = Counter(folder for m in recorded for folder in mutants.NEAREST if m.file.startswith(folder))
    assert set(folders) == set(mutants.NEAREST) and folders.total() == len(recorded)
    assert all(m.before != m.after and "\n" not in m.before + m.after and m.breaks for m in recorded)
    assert [(m.file, m.before) for m in recorded if m.made_in((ROOT / m.file).read_text()) is None] == []


@pytest.mark.promise("checked")
def test_verdicts(tmp_path):
    (tmp_path / "innet").mkdir()
    (tmp_path / "innet" / "__init__.py").touch()  # else the installed package of that name is found before it
    code = tmp_path / "innet" / "doubling.py"
    code.write_text("def double(x):\n    return x + x\n")
    (tmp_path / "test_doubling.py").write_text(
        "import pytest\nfrom innet.doubling import double\n\n"
        "@pytest.mark.parametrize('x', [2], ids=['a - b'])\ndef test_doubling(x):\n    assert double(x) == 4\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")

    def verdict(before, after):
        return mutants.judged(mutants.Mutant("innet/doubling.py", before, after, ""), tmp_path, ("test_doubling.py",))

    assert verdict("x + x", "x + 1")[0] == "caught"
    assert verdict("x + x", "x * x")[0] == "survived"
    assert verdict("x", "y")[0] == "stale" and verdict("z", "y")[0] == "stale"
    assert verdict("x + x", "while True")[0] == "stale"  # the tests cannot be read
    assert verdict("x + x", "x + 1")[2] == "test_doubling.py::test_doubling[a - b]"
    (tmp_path / "test_doubling.py").write_text("def test_that_fails():\n    assert False\n")
    assert verdict("x + x", "x + 1")[0] == "stale"
    change = mutants.Mutant("innet/doubling.py", "x + x", "x + 1", "")
    assert mutants.judged(change, tmp_path, ("test_doubling.py",), seconds=0.01)[0] == "slow"
    assert code.read_text() == "def double(x):\n    return x + x\n"


@pytest.mark.promise("checked")
def test_test_that_caught_a_mutant_runs_first(tmp_path):
    (tmp_path / "innet").mkdir()
    (tmp_path / "innet" / "__init__.py").touch()
    (tmp_path / "innet" / "doubling.py").write_text("def double(x):\n    return x + x\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    test = "from innet.doubling import double\n\ndef test_%s():\n    assert double(%d) == %d\n"
    (tmp_path / "test_one.py").write_text(test % ("one", 1, 2))
    (tmp_path / "test_two.py").write_text(test % ("two", 2, 4))
    change = mutants.Mutant("innet/doubling.py", "x + x", "3 * x", "")

    def caught_by(last):
        verdict, _, test = mutants.judged(change, tmp_path, ("test_one.py", "test_two.py"), last=last)
        return verdict, test

    assert caught_by(None) == ("caught", "test_one.py::test_one")
    assert caught_by("test_two.py::test_two") == ("caught", "test_two.py::test_two")
    assert caught_by("test_two.py::test_gone") == ("caught", "test_one.py::test_one")
