"""Every verb's process ends cleanly: with the code that it states, all of its output, and no word of a runtime.

A thread of a library that outlives the interpreter aborts a process at its exit after complete output, in a few of a thousand runs. So
each verb runs 80 times and more at full counts, 2,000 runs in all.
"""

import re
import subprocess
import sys
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import count_of
from tests.docs.pages import ROOT
from tests.simulation.scenario_judge import FOLDER

START = [sys.executable, "-c", "import sys; from gateway.cli import main; sys.exit(main())"]
NOWHERE = ("--url", "http://127.0.0.1:9", "--token", "none")
LAB = str(ROOT / "examples/lab54/deployment.toml")
HOUSE = (
    *("--schema", str(ROOT / "examples/recordings/greenhouse.sneeql")),
    *("--input", f"house={ROOT}/examples/recordings/greenhouse.csv"),
)
AVERAGE = "SELECT AVG(v) AS a, COUNT(*) AS n FROM hits [FROM NOW-9 TO NOW SLIDE 10 SEC]"
PARQUET = ("replay", "--schema", "hits.sneeql", "--input", "hits=hits.parquet", AVERAGE)
VERBS = {
    "archive": [(("archive", "ls", "--data", "absent"), 1)],
    "audit": [(("audit", "--data", "absent"), 1)],
    "backup": [(("backup", "--data", "absent", "copy"), 1)],
    "completion": [(("completion", "bash"), 0)],
    "config": [(("config", "check", LAB), 0), (("config", "show", LAB), 0)],
    "doctor": [(("doctor", "--data", "."), 0)],
    "errors": [(("errors",), 0), (("errors", "SN516"), 0)],
    "events": [(("events", *NOWHERE), 4)],
    "explain": [(("explain", "-c", LAB, "SELECT AVG(temp) FROM lab [NOW]"), 0)],
    "gateway": [(("gateway", "--help"), 0)],
    "history": [(("history", "--help"), 0)],
    "init": [(("init", "--help"), 0)],
    "job": [(("job", "list", *NOWHERE), 4)],
    "login": [(("login", *NOWHERE), 4)],
    "motes": [(("motes", *NOWHERE), 4)],
    "pipeline": [(("pipeline", "--help"), 0)],
    "push": [(("push", "hits", "hits.csv", *NOWHERE), 4)],
    "query": [(("query", "list", *NOWHERE), 4)],
    "replay": [
        (
            (
                "replay",
                *HOUSE,
                "--format",
                str(ROOT / "examples/recordings/greenhouse.toml"),
                "SELECT site, air FROM house",
            ),
            0,
        ),
        (("replay", "--schema", "hits.sneeql", "--input", "hits=hits.csv", AVERAGE), 0),
        (PARQUET, 0),
        ((*PARQUET, "-o", "csv"), 0),
        ((*PARQUET[:-1], "SELECT"), 2),
    ],
    "restore": [(("restore", "absent", "--data", "new"), 1)],
    "run": [(("run", "-c", "absent.toml", "--data", "new"), 1)],
    "shell": [(("shell", "--schema", "hits.sneeql", "--input", "hits=hits.parquet"), 0)],
    "sim": [(("sim", "run", str(FOLDER / "calm.toml"), "--for", "30s"), 0)],
    "token": [(("token", "list", "--data", "absent"), 1)],
    "topology": [(("topology", *NOWHERE), 4)],
}
"""By verb: commands in a folder with `hits` as CSV and Parquet, each with the code with which it ends."""
RUNS = count_of(1, 2_000 // len(VERBS))
SIGNS = re.compile(
    r"terminate called|Fatal Python|Traceback|Exception ignored|ResourceWarning|core dumped|never awaited"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a recording in two forms, large enough for the threads of readers."""
    made = tmp_path_factory.mktemp("exits")
    (made / "hits.sneeql").write_text("hits: pushed (v:integer)\n")
    (made / "hits.csv").write_text("_arrival,v\n" + "".join(f"{i // 10},{i}\n" for i in range(5_000)))
    table = pa.table({"_arrival": [i // 10 for i in range(5_000)], "v": list(range(5_000))})
    pq.write_table(table, made / "hits.parquet", row_group_size=1_000)
    return made


def test_table_has_every_verb():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["entry-points"]["moteloom.verbs"]) == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_exit_is_clean_each_time(verb, folder):
    commands, outputs = VERBS[verb], {}
    for at in range(max(RUNS, len(commands) if RUNS > 1 else 1)):
        arguments, code = commands[at % len(commands)]
        done = subprocess.run([*START, *arguments], capture_output=True, text=True, cwd=folder, input="", timeout=100)
        assert (done.returncode, SIGNS.findall(done.stdout + done.stderr)) == (code, []), done.stderr[-500:]
        first = outputs.setdefault(arguments, done.stdout)
        assert verb in ("doctor", "sim") or done.stdout == first  # all of it, each time
