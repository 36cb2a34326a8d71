"""Epoch benchmark: engine and ceiling give the same answers, data do not depend on the cut, each part gives figures."""

import numpy as np
import pytest

from bench import epochs
from bench.answers import Digest
from bench.ceiling.epochs import CEILINGS
from bench.ours import answers


def digests(form, kind, sites, cuts):
    """Yield the digests of engine and ceiling after each batch of so many epochs."""
    engine, _ = epochs.engine_of(form, sites, kind, [epochs.TEXTS[form]])
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


@pytest.mark.parametrize("form", epochs.TEXTS)
@pytest.mark.parametrize("kind", epochs.TYPES)
@pytest.mark.parametrize("cuts", [(60,), (1,) * 30, (7, 20, 1, 40)])
def test_engine_and_ceiling_agree_after_every_batch(form, kind, cuts):
    found = list(digests(form, kind, 5, cuts))
    assert all(ours == theirs for ours, theirs in found)
    assert int(found[-1][0].split(":")[0]) >= 15  # rows


@pytest.mark.parametrize("form", epochs.TEXTS)
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
        ("FEW", 3),
        ("MANY", 3),
    ):
        monkeypatch.setattr(epochs, name, value)
    monkeypatch.setattr(epochs, "child", lambda measure, *arguments: epochs.MEASURES[measure](*arguments))
    monkeypatch.setattr(epochs, "TIMES", 1)
    figures = list(epochs.PARTS[part]())
    assert {len(figure) for figure in figures} == {4}
    assert not [figure for figure in figures if figure[1] == "agrees" and figure[2] != 1]
