"""The JSON output of EXPLAIN for a deployment matches explained.jsonl.

After an intended change run `moteloom explain …ARGUMENTS > tests/planner/explained.jsonl` and review the diff.
"""

import json
from pathlib import Path

import pytest

from basestation.cli import explain as verb
from gateway.cli import parser_of
from tests.docs.pages import ROOT

GOLDEN = Path(__file__).with_name("explained.jsonl")
ARGUMENTS = [
    "-c", str(ROOT / "examples/roadbridge/deployment.toml"), "-o", "json", "--analyze", "--for", "1h", "--seed", "7",
    "SELECT AVG(temp) FROM road [FROM NOW-9 MIN TO NOW SLIDE 10 MIN]; SELECT site, temp FROM road WHERE vibration > 20",
]  # fmt: skip


def near(value):
    """The same, with a tolerance for floats."""
    if isinstance(value, dict):
        return {key: near(each) for key, each in value.items()}
    if isinstance(value, list):
        return [near(each) for each in value]
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value


@pytest.mark.promise("predicted-energy")
def test_explain_json_matches_golden_file(capsys):
    assert verb.run(parser_of("explain", verb).parse_args(ARGUMENTS)) == 0
    printed = capsys.readouterr().out.splitlines()
    expected = GOLDEN.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["type"] for line in printed] == ["plan", "plan", "together", "analysis"]
    for printed_line, line in zip(printed, expected, strict=True):
        assert json.loads(printed_line) == near(json.loads(line))
