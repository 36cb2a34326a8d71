"""What motes must have used, added up line by line from a trace and the tables of hardware.

Slow and obvious, and nothing of `simulator.energy` or `innet.costs` is in it: a radio that is on listens, but while it sends a
frame or an acknowledgement; the processor is active then; each sensor draws what it draws whenever it is read.
"""

import tomllib
from pathlib import Path

from acquisition.schedule import sensor_code
from tests.simulation.judging import samplings_of

TABLES = Path(__file__).parents[2] / "innet" / "costs"


def table_of(kind):
    """Figures by section and name."""
    found = tomllib.loads((TABLES / f"{kind}.toml").read_text(encoding="utf-8"))
    return {section: {name: figure["is"] for name, figure in figures.items()} for section, figures in found.items()
            if section in ("radio", "processor")} | {"voltage": found["voltage"]["is"]}  # fmt: skip


def expected(bed, end_ms, asleep=False):
    """Joules by mote, from the beginning of a scenario until the last moment before `end_ms` after it.

    Of a mote that is `asleep` but for its own frames, and what it answers.
    """
    scenario, samplings, trace = bed.scenario, samplings_of(bed), bed.trace
    found = {}
    for number, site in scenario.deployment.motes.items():
        died = [event.time / 1_000 for event in trace.of("died") if event.mote == number]
        on_ms = (died[0] if died else scenario.begin_ms + end_ms - 1) - scenario.begin_ms
        found[number] = _joules(number, site, trace, samplings, on_ms, asleep)
    return found


def _joules(number, site, trace, samplings, on_ms, asleep):
    table = table_of(site.hardware)
    radio, processor = table["radio"], table["processor"]
    byte_ms = 8_000 / radio["bit_rate"]
    ack_ms = radio["ack_bytes"] * byte_ms
    sending_ms = sum(ack_ms for event in trace.of("asked") if event.mote == number)
    awake_ms = sending_ms if asleep else on_ms
    for event in trace.of("sent"):
        if event.mote == number:
            airtime = (radio["overhead_bytes"] + event["bytes"]) * byte_ms
            sending_ms += event["attempts"] * airtime
            awake_ms += asleep * event["attempts"] * (airtime + 2 * radio["turnaround_ms"] + ack_ms)
        if event["to"] == number:
            sending_ms += event["came"] * ack_ms
            awake_ms += asleep * event["came"] * ack_ms
    charge = radio["listen_ma"] * (awake_ms - sending_ms) + radio["send_ma"] * sending_ms
    charge += processor["active_ma"] * awake_ms + (radio["sleep_ma"] + processor["sleep_ma"]) * (on_ms - awake_ms)
    specs = {sensor_code(name): spec for name, spec in site.sensors.items()}
    for what in ("produced", "wasted"):
        for event in trace.of(what):
            if event.mote == number:
                read = [specs[channel.sensor] for channel in samplings(event["sampling"], event.time).channels]
                charge += sum(spec.sample_ma * spec.sample_ms for spec in read)
    return table["voltage"] * charge / 1e6
