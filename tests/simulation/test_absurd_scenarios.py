"""Absurd values in scenarios and deployments: an answer, or a message with the place in the TOML."""

import re

import pytest

from tests.simulation.scenario_judge import FOLDER
from tests.simulation.test_cli import moteloom_sim

SCENARIOS = [
    "calm", "clock_jumps_a_day", "loses_forty_percent_in_bursts", "queries_come_and_go", "mote_moves",
    "duplicates_and_reordering", "two_gateways", "sensor_fails",
]  # fmt: skip
VALUES = [
    "1e308", "-1e308", "nan", "inf", "-inf", "-1", "0", "1e-320", "9" * 18, "9" * 26, "''", '"x"', "[]", "{}", "true",
    "1.5", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "999999-01-01T00:00:00Z", "-9223372036854775808",
]  # fmt: skip
SPANS = [
    "1e308 sec", "-5 sec", "999999 days", "9" * 20 + " days", "0 sec", "nan sec", "1e-9 sec", "5 years", "", "1 ms",
    "2147483647 days",
]  # fmt: skip
NUMBER = re.compile(r"(?<![\w.\"'-])-?\d+(\.\d+)?(?![\w.\"'])")
SPAN = re.compile(r"\"\d+(\.\d+)? ?[a-z]+\"")


def with_absurd_value(text, rng):
    """The text with one of its numbers or spans of time replaced, and the line that has it."""
    numbers = [
        found
        for found in NUMBER.finditer(text)
        if "#" not in text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
    ]
    spans = list(SPAN.finditer(text))
    if spans and rng.random() < 0.6:
        at, value = rng.choice(spans), f'"{rng.choice(SPANS)}"'
    else:
        at, value = rng.choice(numbers), rng.choice(VALUES)
    if rng.random() < 0.1:
        value = rng.choice(VALUES)
    changed = text[: at.start()] + value + text[at.end() :]
    return changed, changed[changed.rfind("\n", 0, at.start()) + 1 :].partition("\n")[0]


def test_absurd_values_are_simulated_or_shown_with_their_place(tmp_path, capsys, rng, counts):
    for _ in range(counts(20, 400)):
        name = rng.choice(SCENARIOS)
        text = (FOLDER / f"{name}.toml").read_text()
        hall = (FOLDER / ("two_gateways_hall.toml" if name == "two_gateways" else "hall.toml")).read_text()
        if rng.random() < 0.35:
            hall, line = with_absurd_value(hall, rng)
        else:
            text, line = with_absurd_value(text, rng)
        (tmp_path / "hall.toml").write_text(hall)
        (tmp_path / "absurd.toml").write_text(text.replace("two_gateways_hall.toml", "hall.toml"))
        code = moteloom_sim(tmp_path / "absurd.toml", "--for", "1min", *rng.choice([[], ["--swept"]]))
        out, err = capsys.readouterr()
        case = f"{name}: {line}\n{err[:2000]}"
        assert code in (0, 2, 3) and len(err) < 20_000, case
        assert (code == 0) == bool(out) or code == 2, case
        assert code != 3 or ".toml:" in err, case


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('deployment = "hall.toml"', 'deployment = "hall.toml"\nbegin = "1e308 sec"'),
        ('deployment = "hall.toml"', 'deployment = "hall.toml"\nbegin = "-1 day"'),
        ('deployment = "hall.toml"', 'deployment = "hall.toml"\nbegin = "999999 years"'),
        ('deployment = "hall.toml"', 'deployment = "hall.toml"\nbegin = nan'),
        ('deployment = "hall.toml"', 'deployment = "hall.toml"\nbegin = 9' + "9" * 25),
        ("mean = 20.0", "mean = nan"),
        ('period = "1 hour"', 'period = "0 sec"'),
        ('period = "1 hour"', 'period = "-1 hour"'),
        ('period = "1 hour"', 'period = "1e308 hour"'),
    ],
)
def test_absurd_time_or_world_is_refused_with_its_place(tmp_path, capsys, right, wrong):
    text = (FOLDER / "calm.toml").read_text()
    assert text.count(right) == 1
    text = text.replace(right, wrong).replace('"hall.toml"', f'"{FOLDER / "hall.toml"}"')
    (tmp_path / "absurd.toml").write_text(text)
    assert moteloom_sim(tmp_path / "absurd.toml", "--for", "1min") == 3
    err = capsys.readouterr().err
    assert re.search(r"absurd\.toml:\d+:\d+\n", err) and "^" in err, err


def test_slide_beyond_every_number_is_refused(tmp_path, capsys):
    """The fraction of a unit would be infinitely many of the next smaller unit."""
    text = (FOLDER / "calm.toml").read_text().replace('"hall.toml"', f'"{FOLDER / "hall.toml"}"')
    more = '\n[queries.odd]\ntext = "SELECT COUNT(*) AS n FROM hall [FROM NOW-50 TO NOW SLIDE -1e308 SEC]"\n'
    (tmp_path / "absurd.toml").write_text(text + more)
    assert moteloom_sim(tmp_path / "absurd.toml", "--for", "1min") == 2
    assert "SN107: " in (err := capsys.readouterr().err) and "absurd.toml:" in err
