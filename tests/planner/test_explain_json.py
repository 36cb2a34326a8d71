"""What explain says of a deployment as JSON, line by line, against explained.jsonl.

After a change that is meant: `moteloom explain …ARGUMENTS > tests/planner/explained.jsonl`, and read the difference.
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
    """The same, but for the last bits of a float."""
    if isinstance(value, dict):
        return {key: near(each) for key, each in value.items()}
    if isinstance(value, list):
        return [near(each) for each in value]
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value


@pytest.mark.promise("predicted-energy")
def test_explain_json_matches_golden_file(capsys):
    assert verb.run(parser_of("explain", verb).parse_args(ARGUMENTS)) == 0
    told = capsys.readouterr().out.splitlines()
    expected = GOLDEN.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["type"] for line in told] == ["plan", "plan", "together", "analysis"]
    for said, line in zip(told, expected, strict=True):
        assert json.loads(said) == near(json.loads(line))
