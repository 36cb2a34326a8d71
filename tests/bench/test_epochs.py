"""Epoch benchmark: engine and ceiling give the same answers, data do not depend on the cut, each part gives figures."""

from dataclasses import replace

import numpy as np
import pytest

from bench import epoch_queries, epochs, epochs_table, record
from bench.answers import Digest
from bench.ceiling.epochs import CEILINGS, OwnWhere
from bench.ours import answers


def digests(form, kind, sites, cuts):
    """Yield the digests of engine and ceiling after each batch of so many epochs."""
    engine, _ = epochs.engine_of(form, sites, kind, [epochs.FORMS[form]])
    ceiling, first = CEILINGS[form](epochs.TYPES[kind][0]), 0
    ours, theirs = Digest(), Digest()
    for count in cuts:
        columns = epochs.epochs_of(form, sites, kind, first, count)
        first += count
        batches = [(name, epochs.batch_of(found)) for name, found in columns.items()]
        _, updates = epochs.deliver(engine, batches, (first - 1) * epochs.EVERY + epochs.DELAY)
        ours.add(answers(updates))
        theirs.add(ceiling.step(columns))
        yield str(ours), str(theirs)


@pytest.mark.parametrize("form", epochs.FORMS)
@pytest.mark.parametrize("kind", epochs.TYPES)
@pytest.mark.parametrize("cuts", [(60,), (1,) * 30, (7, 20, 1, 40)])
def test_engine_and_ceiling_agree_after_every_batch(form, kind, cuts):
    found = list(digests(form, kind, 5, cuts))
    assert all(ours == theirs for ours, theirs in found)
    assert int(found[-1][0].split(":")[0]) >= 15  # rows


@pytest.mark.parametrize("form", epochs.FORMS)
def test_data_are_the_same_however_they_are_cut(form):
    whole = epochs.epochs_of(form, 4, "scale 2", 0, 6)
    parts = [epochs.epochs_of(form, 4, "scale 2", first, 2) for first in (0, 2, 4)]
    for name, columns in whole.items():
        for column, values in columns.items():
            assert np.array_equal(values, np.concatenate([part[name][column] for part in parts]))


def test_sites_of_an_epoch_report_at_one_tick():
    columns = epochs.epochs_of("join", 10, "integer", 3, 2)
    assert sorted(set(columns["road"]["tick"].tolist())) == [90, 120]
    assert np.array_equal(columns["road"]["tick"], columns["traffic"]["tick"])


@pytest.mark.parametrize("part", epochs.PARTS)
def test_part_gives_figures_for_each_case(monkeypatch, part):
    for name, value in (
        ("READINGS", 600),
        ("SITES", (3,)),
        ("DAY", 25),
        ("LIVE", (21, 23, 25)),
        ("WARM", 4),
        ("MEASURED", 6),
    ):
        monkeypatch.setattr(epochs, name, value)
    few = {name: replace(kind, count=4, past=min(kind.past, 5)) for name, kind in epoch_queries.MANY.items()}
    monkeypatch.setattr(epochs, "MANY", few)
    monkeypatch.setattr(epochs, "child", lambda measure, *arguments: epochs.MEASURES[measure](*arguments))
    monkeypatch.setattr(epochs, "TIMES", 1)
    figures = list(epochs.PARTS[part]())
    assert {len(figure) for figure in figures} == {4}
    assert not [figure for figure in figures if figure[1] == "agrees" and figure[2] != 1]
    cases = {"bulk": len(epochs.FORMS) * 2, "live": len(epochs.LIVE_FORMS), "sharing": len(epochs.MANY)}
    assert len({figure[0] for figure in figures}) == cases[part]


def test_aggregates_with_own_where_agree_with_those_by_hand():
    """Queries whose conditions reject most readings, all, and none."""
    numbers = [0, 59, 61, 700, 4_000, 6_000]
    texts = epoch_queries.MANY["aggregates"].texts(max(numbers) + 1)
    engine, _ = epochs.engine_of("aggregate", 5, "integer", [texts[k] for k in numbers])
    ceiling = OwnWhere(0, [epoch_queries.bounds_of(k) for k in numbers])
    ours, theirs, rows = Digest(), Digest(), 0
    for epoch in range(30):
        columns = epochs.epochs_of("aggregate", 5, "integer", epoch, 1)
        batches = [(name, epochs.batch_of(found)) for name, found in columns.items()]
        _, updates = epochs.deliver(engine, batches, epoch * epochs.EVERY + epochs.DELAY)
        said = ceiling.step(columns)
        rows += sum(windows.rows for windows in said)
        ours.add(answers(updates))
        theirs.add(said)
        assert str(ours) == str(theirs), epoch
    assert rows > 100


@pytest.mark.parametrize("name", ["ranges", "whole ranges"])
def test_aggregates_with_own_range_agree_with_those_by_hand(name):
    kind, ours, theirs, count = epoch_queries.MANY[name], Digest(), Digest(), 7
    engine, _ = epochs.engine_of("aggregate", 5, "integer", kind.texts(count))
    ceiling = kind.by_hand(0, count)
    for epoch in range(40):
        columns = epochs.epochs_of("aggregate", 5, "integer", epoch, 1)
        batches = [(name, epochs.batch_of(found)) for name, found in columns.items()]
        _, updates = epochs.deliver(engine, batches, epoch * epochs.EVERY + epochs.DELAY)
        ours.add(answers(updates))
        theirs.add(ceiling.step(columns))
        assert str(ours) == str(theirs), epoch
    assert int(str(ours).split(":")[0]) >= 40 * count


def test_many_queries_of_a_kind_are_different_or_equal():
    for name, kind in epoch_queries.MANY.items():
        texts = kind.texts(kind.count)
        assert len(texts) == kind.count
        assert len(set(texts)) == (1 if kind.goal_ms is None else kind.count), name


def test_tables_show_every_figure_and_missed_goals(monkeypatch, tmp_path):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    case = "aggregate, integer, 54 sites"
    record.keep_figures("epochs_bulk", "default", [
        (f"{case}, batches of 65536 readings", name, value, "")
        for name, value in (("readings a second", 2e6), ("slowest", 1e6), ("fastest", 3e6), ("ceiling", 4e6),
                            ("share of the ceiling", 0.5), ("agrees", 1))
    ])  # fmt: skip
    record.keep_figures("epochs_live", "default", [
        (f"{case}, epoch by epoch", name, value, "")
        for name, value in (("epoch 100", 1), ("epoch 1000", 2), ("epoch 2880", 3), ("epoch 2880 to epoch 100", 3),
                            ("99th percentile", 5), ("state after a day", 2 << 20),
                            ("state after a day, horizon of 10 min", 1 << 20), ("held after a day", 7 << 20),
                            ("state of the query alone after a day", 9_000), ("state of the query alone after a day, horizon of 10 min", 4_000))
    ])  # fmt: skip
    record.keep_figures("epochs_sharing", "default", [
        (case, name, value, "")
        for case, count, last in (("50 joins that begin one tick apart, 54 sites", 50, 1.5),
                                  ("1000 aggregates with their own WHERE, 54 sites", 1000, 25))
        for name, value in (("epoch of 1", 1), (f"epoch of {count}", last), ("one with windows", 2 * last), ("99th percentile", 6), ("time ratio", last),
                            ("state ratio", 1.4), ("state of one query more", 2_500),
                            ("epoch, where Python alone decides", 10),
                            ("99th percentile, where Python alone decides", 35))
        if count == 1000 or "alone" not in name
    ])  # fmt: skip
    text = "\n".join(epochs_table.lines())
    assert "| aggregate | integer | 54 | 2.0 | 1.0 to 3.0 | 4.0 | 0.50 | 0.5 |" in text
    assert "| aggregate | 54 | 1.00 | 2.00 | 3.00 | 3.00 | 1.2, missed | 5.00 |" in text
    assert "| aggregate | 54 | 2.0 | 1.0 | 9 | 4 | 2.25 | 1.5, missed | 7 |" in text
    assert "| 1.00 | 1.50 | 3.00 | 2 times | 4.0 | 3, missed |  |  | 1.5 | 1.40 | 1.3, missed | 2.5 |" in text
    assert "| 1.00 | 25.00 | 50.00 | 20 ms, missed | 0.2 | 3 | 3.5 |  | 25.0 | 1.40 |  | 2.5 |" in text
    costs = "\n".join(epochs_table.costs())
    assert "| aggregate | 54 | 2.00 | 5.00 | 0.01 | 2 | 2.0 | 4.0 |" in costs
