"""Scenarios named by what goes wrong, judged on answers, coverage, ledger and energy."""


from tests.simulation.judging import delivered, judge, run


def test_on_a_calm_day_nearly_everything_arrives():
    bed = run("calm", 600)
    assert judge(bed, "now") >= 58
    assert judge(bed, "minute") >= 9
    produced = {(e.mote, e["tick"]) for e in bed.built.trace.of("produced")}
    assert len(delivered(bed)) >= 0.99 * len(produced)
    print(len(produced), len(delivered(bed)), bed.station.engine.ledger(), bed.station.errors)
