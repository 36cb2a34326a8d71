"""The runner of mutants: what it calls caught, survived and stale, and that enough of them are recorded."""

import subprocess
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
    mutants.compile_checked(tmp_path)

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
    mutants.compile_checked(tmp_path)
    change = mutants.Mutant("innet/doubling.py", "x + x", "3 * x", "")

    def caught_by(last):
        verdict, _, test = mutants.judged(change, tmp_path, ("test_one.py", "test_two.py"), last=last)
        return verdict, test

    assert caught_by(None) == ("caught", "test_one.py::test_one")
    assert caught_by("test_two.py::test_two") == ("caught", "test_two.py::test_two")
    assert caught_by("test_two.py::test_gone") == ("caught", "test_one.py::test_one")


@pytest.mark.promise("checked")
def test_fork_runs_changed_functions_only(tmp_path):
    """A body that ran on import needs a new process, and a test that fails without a change proves nothing."""
    (tmp_path / "innet").mkdir()
    (tmp_path / "innet" / "__init__.py").touch()
    code = tmp_path / "innet" / "doubling.py"
    code.write_text(
        "from functools import cache\n\nTWO = 2\nTIMES = [lambda x, y: x * y]\n\nclass Doubling:\n    @cache\n"
        "    def double(self, x):\n        return sum(TIMES[0](TWO, each) for each in (x,))\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (tmp_path / "test_doubling.py").write_text(
        "from innet.doubling import Doubling\n\ndef test_three():\n    assert Doubling().double(3) == 6\n\n"
        "def test_two():\n    assert Doubling().double(2) == 4\n\ndef test_bad():\n    assert Doubling().double(1) == 3\n"
    )
    mutants.compile_checked(tmp_path)
    three, two, bad = (f"test_doubling.py::test_{name}" for name in ("three", "two", "bad"))
    forks = mutants.Forks(tmp_path, (three, "test_gone.py::test_gone"))

    def found(test, before, after):
        text = code.read_text()
        assert text.count(before) == 1
        code.write_text(text.replace(before, after))
        try:
            return forks.run(test, 60, file="innet/doubling.py", text=text)
        finally:
            code.write_text(text)

    assert found(three, "x * y", "x + y") == "failed"
    assert found(two, "x * y", "x + y") == "passed"
    assert found(three, "(x,)", "(x, x)") == "failed"
    assert found(three, "TWO = 2", "TWO = 3") == "unknown"
    assert found(three, "    def double", "    y = 1; def double") == "unknown"
    assert found("test_doubling.py::test_gone", "x * y", "x + y") == "unknown"
    assert forks.run(three, 0.0, file="innet/doubling.py", text=code.read_text()) == "unknown", "it takes too long"
    assert (forks.passes(three, 60), forks.passes(bad, 60)) == (True, False)

    def verdict(before, after, last):
        change = mutants.Mutant("innet/doubling.py", before, after, "")
        return mutants.judged(change, tmp_path, (two,), last=last, forks=forks)[::2]

    assert verdict("x * y", "x + y", three) == ("caught", three)
    assert verdict("TWO = 2", "TWO = 3", three) == ("caught", three), "in a process of its own"
    assert verdict("(x,)", "(x, x)", bad) == ("caught", two)
    assert verdict("x * y", "x + y", bad) == ("survived", None)
    forks.close()


@pytest.mark.promise("checked")
@pytest.mark.parametrize(
    ("changed", "freed"),
    [
        ("innet/doubling.py", "abcd"),
        ("innet/halving.py", "d"),
        ("tests/innet/test_doubling.py", "ad"),
        ("tests/golden/queries/paper.test", "bd"),
        ("docs/paper.md", "d"),
    ],
)
def test_since_judges_what_a_change_may_have_freed(changed, freed):
    remembered = {
        "a": "tests/innet/test_doubling.py::test_doubling",
        "b": "tests/golden/test_queries.py::test_query[paper:q1]",
        "c": "tests/golden/test_queries.py::test_query[x:q1]",
        "d": None,
    }
    mutant = mutants.Mutant("innet/doubling.py", "x + x", "3 * x", "")
    assert [each for each, test in remembered.items() if mutants.may_be_freed(mutant, test, {changed})] == list(freed)


@pytest.mark.promise("checked")
def test_changed_files_are_those_of_the_working_tree(tmp_path):
    def git(*words):
        subprocess.run(("git", "-c", "user.name=a", "-c", "user.email=a@b", *words), cwd=tmp_path, check=True)

    git("init", "-q")
    for name in ("one", "two", "three"):
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-qm", name)
    (tmp_path / "one").write_text("1")
    (tmp_path / "four").touch()
    assert mutants.changed_since("HEAD~1", tmp_path) == {"one", "three", "four"}
