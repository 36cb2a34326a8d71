"""The comparison of replays with DuckDB runs, and its answers are compared."""

import pytest

from bench import replay


def test_both_systems_give_the_same_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(replay, "TURNS", 1)
    found = {name: value for _, name, value, _ in replay.figures(tmp_path, [("parquet", 2_000)])}
    assert found["CPU of Moteloom"] > 0 < found["memory of DuckDB"]
    rows, total = replay.answered(tmp_path / "ours.csv")
    assert 50 < rows < 150 and total < 50 * rows


def test_other_answers_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(replay, "TURNS", 1)
    monkeypatch.setattr(replay, "DUCKDB", replay.DUCKDB.replace("temp < 50", "temp < 40"))
    with pytest.raises(AssertionError):
        list(replay.figures(tmp_path, [("csv", 2_000)]))
