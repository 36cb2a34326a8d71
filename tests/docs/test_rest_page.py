"""docs/rest.md is true: its commands are run against the station that its first one starts."""

import json
import re

import pytest

from acquisition.sources.pushed_tuples import MOST_REJECTED
from basestation.rest.upload_routes import FORMATS, LARGEST_BODY
from basestation.station.upload_control import SHOWN_ROWS
from tests.docs.pages import DOCS, blocks, tables
from tests.docs.running_station import running_station

PAGE = DOCS / "rest.md"
COMMANDS = [
    line.removeprefix("$ ") for block in blocks(PAGE, "sh") for line in block.text.splitlines() if line.startswith("$ ")
]


@pytest.mark.promise("pages-are-true")
@pytest.mark.timeout(300)
def test_commands_of_the_rest_page_work_in_their_order(tmp_path, need):
    need("bash", "curl")
    start, variables, *rest = COMMANDS
    answers = {}
    with running_station(start, tmp_path) as station:
        variables = variables.replace("http://127.0.0.1:8137", station.url)
        for command in rest:
            done = station.run("bash", "-c", f"{variables}\n{command}", seconds=100)
            assert done.returncode == 0, command + done.stderr
            if command.startswith("curl"):
                answers[command.split("$URL")[1].split('"')[0].split()[0]] = done.stdout
    assert [json.loads(line)["type"] for line in answers["/v1/jobs/2/results"].splitlines()] == [
        "schema",
        "window",
        "end",
    ]
    [wrong] = json.loads(answers["/v1/check"])["diagnostics"]
    assert (wrong["code"], wrong["column"], wrong["length"]) == ("SN202", 8, 4)
    assert [each["text"] for each in json.loads(answers["/v1/complete"])["completions"]] == ["road"]
    assert answers["/v1/explain"].startswith("query 1: window query")
    assert json.loads(answers["/v1/queries?dry_run=true"])["cost"]["now"]["messages"] == 0
    shown = json.loads(blocks(PAGE, "json")[0].text)
    receipt = json.loads(answers["/v1/extents/traffic/tuples"])
    assert {**receipt, "time": shown["time"]} == shown
    assert json.loads(answers["/v1/tables"])["tables"][0]["versions"][-1]["rows"] == 2
    assert json.loads(answers["/v1/statements"])["statements"] == [{"how": "delete", "extent": "traffic"}]
    page = json.loads(answers["/v1/queries/1/results?after=0&wait=20"])
    assert answers["/v1/queries/1/results.csv?limit=100"].startswith(
        "_time,_query,_number,_revision,_weight,_used,_due,mean\r\n"
    )
    assert json.loads(answers["/v1/queries/1/current?last=3"])["windows"]
    ranged = answers["/v1/queries/1/current.csv?from=2026-01-01T00:00:00Z&to=4102444800000"]
    assert ranged.startswith("_time,_query,_revision,_used,_due,mean\r\n") and ranged.count("\r\n") >= 2
    assert answers["/v1/queries/1/results"].startswith("id: ") and "data: {" in answers["/v1/queries/1/results"]
    assert 'moteloom_queries{state="running"}' in answers["/v1/metrics"]
    assert page["columns"] == [{"name": "mean", "type": "float"}] and page["updates"]


def test_rest_page_names_the_formats_and_limits_of_the_program():
    [formats] = [rows for rows in tables(PAGE) if rows[0][0] == "`Content-Type`"]
    named = {row[0].strip("`") for row in formats[1:]}
    assert named | {"application/jsonl"} == set(FORMATS)
    text = " ".join(PAGE.read_text().split())
    assert f"at most {LARGEST_BODY >> 20} MiB" in text and f"more than {MOST_REJECTED:,} none is taken" in text
    assert re.search(rf"lists the first {SHOWN_ROWS} of them", text)
