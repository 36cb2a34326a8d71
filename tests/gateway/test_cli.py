"""The command finds its verbs, reports errors, and imports no more than it needs."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint, version
from types import ModuleType

import pytest

from gateway.cli import dispatch, main

SAMPLE = "moteloom_sample_verb"


@pytest.fixture
def verbs(monkeypatch):
    verb = ModuleType(SAMPLE)
    verb.HELP = "double a number"
    verb.configure = lambda parser: parser.add_argument("number", type=int)
    verb.run = lambda args: print(2 * args.number) or 0
    monkeypatch.setitem(sys.modules, SAMPLE, verb)
    found = {"double": SAMPLE, "broken": "moteloom_there_is_no_such_module"}
    return {name: EntryPoint(name, module, "moteloom.verbs") for name, module in found.items()}


def test_verb_runs(verbs, capsys):
    assert dispatch(["double", "21"], verbs) == 0
    assert capsys.readouterr().out == "42\n"


def test_help_lists_all_verbs_and_survives_a_broken_one(verbs, capsys):
    assert dispatch(["--help"], verbs) == 0
    out = capsys.readouterr().out
    assert "double  double a number" in out
    assert "broken  (not available: No module named" in out


@pytest.mark.parametrize(("typed", "said"), [("duoble", "did you mean `moteloom double`?"), ("xyz", "--help")])
def test_unknown_verb_exits_with_2(verbs, capsys, typed, said):
    assert dispatch([typed], verbs) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_misused_arguments_exit_with_2(verbs, capsys):
    with pytest.raises(SystemExit) as caught:
        dispatch(["double", "many"], verbs)
    assert caught.value.code == 2
    assert "moteloom double" in capsys.readouterr().err


def test_missing_verb_exits_with_2(verbs, capsys):
    assert dispatch([], verbs) == 2
    assert "usage:" in capsys.readouterr().err


def test_version_is_that_of_the_distribution(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"moteloom {version('moteloom')}\n"


def test_interrupt_exits_with_130(verbs, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("gateway.cli.dispatch", interrupted)
    assert main(["double", "1"]) == 130


def test_error_of_the_system_names_its_file(tmp_path):
    script = "import sys; from gateway import cli; cli.dispatch = lambda *_: open('missing'); sys.exit(cli.main([]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "moteloom: missing: No such file or directory\n")


@pytest.mark.promise("checked")
def test_closed_pipe_exits_with_141_without_message():
    """`moteloom … | head -0`: nothing on standard error, and the exit code of a program that SIGPIPE ended."""
    script = "import sys; from gateway import cli; cli.dispatch = lambda *_: print('x' * 10**6); sys.exit(cli.main([]))"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", script], stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 141


def test_closed_standard_error_discards_messages(need):
    (sh,) = need("sh")
    script = "import gateway.cli; gateway.cli.main(['there-is-no-such-verb'])"
    done = subprocess.run([sh, "-c", '"$0" -c "$1" 2>&-', sys.executable, script], stdout=subprocess.PIPE, timeout=60)
    assert done.stdout == b""


@pytest.mark.promise("checked")
def test_help_imports_no_heavy_library():
    script = "import sys; from gateway.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    loaded = set(done.stderr.split())
    assert "gateway.cli" in loaded and done.stdout.startswith("usage: moteloom")
    assert not loaded & {
        "numpy",
        "paho",
        "serial",
        "fastapi",
        "pydantic",
        "pyspark",
        "pyarrow",
        "basestation.execution",
    }
