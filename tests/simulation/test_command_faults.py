"""Commands whose streams are closed, whose disk is full, whose memory ends, or that are interrupted: no traceback."""

import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from gateway.cli import NO_THREAD, OUT_OF_MEMORY, main
from tests.docs.pages import ROOT
from tests.simulation.scenario_judge import FOLDER

START = [sys.executable, "-c", "import sys; from gateway.cli import NO_THREAD, OUT_OF_MEMORY, main; sys.exit(main())"]
VERBS = {
    "explain": ["explain", "-c", str(ROOT / "examples/lab54/deployment.toml"), "SELECT AVG(temp) FROM lab [NOW]"],
    "sim": ["sim", "run", str(FOLDER / "calm.toml"), "--for", "30s"],
    "replay": [
        *("replay", "--schema", str(ROOT / "examples/recordings/greenhouse.sneeql")),
        *("--input", f"house={ROOT}/examples/recordings/greenhouse.csv"),
        *("--format", str(ROOT / "examples/recordings/greenhouse.toml"), "SELECT site, air FROM house"),
    ],
    "config": ["config", "check", str(ROOT / "examples/lab54/deployment.toml")],
}


def in_shell(line, verb):
    """The outcome of a command in the line of a shell, where it is "$@"."""
    return subprocess.run(
        ["bash", "-c", line, "bash", *START, *VERBS[verb]], capture_output=True, text=True, timeout=100
    )


@pytest.mark.parametrize("verb", VERBS)
def test_full_disk_behind_the_output_is_reported(verb):
    done = in_shell('"$@" >/dev/full', verb)
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == "moteloom: No space left on device"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_file_of_answers_that_may_not_grow_is_reported(tmp_path, output, rng):
    unbuffered = rng.choice(["", "1"])
    done = in_shell(
        f'ulimit -f 1; export PYTHONUNBUFFERED={unbuffered}; "$@" -o {output} >"{tmp_path}/answers"', "replay"
    )
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == "moteloom: File too large"


@pytest.mark.parametrize(
    ("verb", "option", "kept"),
    [("sim", "--plot", "drawn.svg.part"), ("sim", "--out", "drawn.svg"), ("explain", "--map", "drawn.svg.part")],
)
def test_file_that_may_not_grow_is_marked_as_unfinished(tmp_path, verb, option, kept):
    done = in_shell(f'ulimit -f 1; "$@" {option} "{tmp_path}/drawn.svg"', verb)
    assert done.returncode == 3 and "drawn.svg: cannot be written: File too large; " in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == [kept]
    assert all(each.suffix == ".part" for each in tmp_path.rglob("*") if each.is_file())


@pytest.mark.parametrize("verb", VERBS)
def test_reader_that_leaves_ends_the_command(verb):
    done = in_shell('"$@" | true; exit ${PIPESTATUS[0]}', verb)
    assert done.returncode in (0, 141) and "Traceback" not in done.stderr  # 0: all was written before the reader left
    assert done.stderr == "" or (verb == "replay" and done.returncode == 0)  # what became of the readings


@pytest.mark.parametrize("verb", ["sim", "replay"])
def test_closed_streams_do_not_matter(verb):
    done = in_shell('"$@" <&- >&- 2>&-', verb)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_closed_standard_input_is_no_text():
    for verb in ("replay", "explain"):
        done = in_shell('"${@:1:$#-1}" -f - <&-', verb)
        assert (done.returncode, done.stderr) == (3, "SN501: standard input: cannot be read: it is closed\n")


def test_text_that_never_ends_is_refused():
    done = in_shell('"${@:1:$#-1}" -f - </dev/zero', "explain")
    assert done.returncode == 3
    assert done.stderr == "SN501: standard input: cannot be read: it is longer than 10,000,000 bytes\n"


def test_little_memory_is_reported(rng, counts):
    """Most commands need a little more than the least, so some of them end well.

    With less than 50 MB, the interpreter does not start.
    """
    for _ in range(counts(5, 60)):
        verb = rng.choice(["explain", "sim", "replay"])
        kilobytes = rng.randrange(50_000, 680_000) if rng.random() < 0.3 else rng.randrange(684_000, 1_200_000)
        done = in_shell(f'ulimit -v {kilobytes}; export OPENBLAS_NUM_THREADS=1; "$@" >/dev/null', verb)
        assert done.returncode in (0, 1) and "Traceback" not in done.stderr, (verb, kilobytes, done.stderr)
        told = any(each in done.stderr for each in ("moteloom: out of memory; ", " MB of address space, ", NO_THREAD))
        assert done.returncode == 0 or told, (verb, kilobytes, done.stderr)


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_answer_without_memory_ends_its_query_alone(tmp_path, output):
    """Four million pairs in a window find room as columns, and none as text."""
    (tmp_path / "schema").write_text("hits: pushed (k:integer, v:integer) late drop\n")
    lines = [*(f"10,1,{n}" for n in range(2_000)), *(f"{tick},{tick},0" for tick in range(11, 30))]
    (tmp_path / "hits.csv").write_text("\n".join(["_tick,k,v", *lines, ""]))
    window = "[FROM NOW-9 TO NOW SLIDE 10 SEC]"
    pairs = f"SELECT a.v, b.v AS w FROM hits {window} AS a, hits {window} AS b WHERE a.k = b.k"
    limit = 'ulimit -v 1600000; export OPENBLAS_NUM_THREADS=1; "$@"'
    command = [*START, "replay", "--schema", "schema", "--input", "hits=hits.csv", "-o", output]
    done = subprocess.run(
        ["bash", "-c", limit, "bash", *command, f"SELECT COUNT(*) AS n FROM hits {window}; {pairs}"],
        capture_output=True, text=True, timeout=100, cwd=tmp_path,
    )  # fmt: skip
    failures = done.stdout if output == "json" else done.stderr
    assert done.returncode == 3 and failures.count("its answer: no memory for 1,600,000,000 bytes of text") == 1
    assert "2000" in done.stdout and "10" in done.stdout.rpartition("2000")[2]
    assert "Traceback" not in done.stderr


def test_limit_below_the_least_is_named_with_the_remedy():
    done = in_shell('ulimit -v 600000; export OPENBLAS_NUM_THREADS=1; "$@"', "replay")
    needed = "`replay` needs 700 MB of address space, the limit is 614 MB"
    assert done.stderr == f"moteloom: {needed}; raise it: `ulimit -v 683594`, or unlimited\n" and done.returncode == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ImportError("libarrow.so.2500: failed to map segment from shared object"), OUT_OF_MEMORY),
        (RuntimeError("can't start new thread"), NO_THREAD),
        (
            pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
            NO_THREAD,
        ),
    ],
)
def test_libraries_that_meet_a_limit_are_reported(monkeypatch, capsys, error, message):
    def fail(*_):
        raise error

    def leave(code):
        raise SystemExit(code)

    monkeypatch.setattr("gateway.cli.dispatch", fail)
    monkeypatch.setattr("gateway.cli.os._exit", leave)
    with pytest.raises(SystemExit) as left:
        main(["explain"])
    assert left.value.code == 1
    assert capsys.readouterr().err == f"{message}\n"


def test_memory_that_ends_anywhere_is_reported(monkeypatch, capsys):
    def fail(*_):
        raise MemoryError

    def leave(code):
        raise SystemExit(code)

    monkeypatch.setattr("gateway.cli.dispatch", fail)
    monkeypatch.setattr("gateway.cli.os._exit", leave)
    with pytest.raises(SystemExit) as left:
        main(["explain"])
    assert left.value.code == 1
    assert capsys.readouterr().err.startswith("moteloom: out of memory; ")


def test_library_that_is_missing_is_not_called_memory(monkeypatch):
    def fail(*_):
        raise ImportError("No module named 'numpy'")

    monkeypatch.setattr("gateway.cli.dispatch", fail)
    with pytest.raises(ImportError):
        main(["explain"])


def test_interrupt_while_processes_start_leaves_no_traceback(tmp_path, rng):
    """The folder is made by the first process that runs; others are just starting."""
    command = [
        *START,
        *VERBS["sim"][:3],
        "--for",
        "30d",
        "--seeds",
        "1..3",
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        while not (tmp_path / "out").exists():
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(rng.random() / 5)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=100)
    assert (process.returncode, out) == (130, b"")
    assert err.decode().startswith("moteloom sim: interrupted; ") and b"Traceback" not in err, err.decode()
