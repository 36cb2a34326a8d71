"""The energy that motes must have used, added up line by line from a trace and the hardware tables.

Slow and obvious, and nothing of `simulator.energy` or `innet.costs` is in it: a radio that is on listens, but while it sends a
frame or an acknowledgement; the processor is active then, and while a program runs; each sensor draws what it draws whenever
it is read.
"""

import tomllib
from pathlib import Path

from acquisition.schedule import sensor_code
from gateway.frame import HEADER_SIZE
from tests.simulation.scenario_judge import samplings_of

TABLES = Path(__file__).parents[2] / "innet" / "costs"


def table_of(kind):
    """Figures by section and name."""
    found = tomllib.loads((TABLES / f"{kind}.toml").read_text(encoding="utf-8"))
    return {section: {name: figure["is"] for name, figure in figures.items()} for section, figures in found.items()
            if section in ("radio", "processor")} | {"voltage": found["voltage"]["is"]}  # fmt: skip


def expected(bed, end_ms):
    """Joules by mote, from the beginning of a scenario until the last moment before `end_ms` after it."""
    scenario, samplings, trace = bed.scenario, samplings_of(bed), bed.trace
    return {
        number: _joules(number, site, trace, samplings, scenario.begin_ms, scenario.begin_ms + end_ms - 1)
        for number, site in scenario.deployment.motes.items()
    }


def _joules(number, site, trace, samplings, begin_ms, end_ms):
    table = table_of(site.hardware)
    radio, processor = table["radio"], table["processor"]
    byte_ms = 8_000 / radio["bit_rate"]
    ack_ms = radio["ack_bytes"] * byte_ms
    on_ms, awake_ms, computing_ms = _states(number, trace, begin_ms, end_ms, processor["instruction_us"])
    sending_ms = sum(ack_ms for event in trace.of("asked") if event.mote == number)
    for what, to, size in (("sent", "to", None), ("inquired", "of", HEADER_SIZE)):
        for event in trace.of(what):
            if event.mote == number:
                sending_ms += event["attempts"] * (radio["overhead_bytes"] + (size or event["bytes"])) * byte_ms
            if event[to] == number:
                sending_ms += event["came"] * ack_ms
    charge = radio["listen_ma"] * (awake_ms - sending_ms) + radio["send_ma"] * sending_ms
    charge += processor["active_ma"] * (awake_ms + computing_ms)
    charge += radio["sleep_ma"] * (on_ms - awake_ms) + processor["sleep_ma"] * (on_ms - awake_ms - computing_ms)
    specs = {sensor_code(name): spec for name, spec in site.sensors.items()}
    for what in ("produced", "wasted"):
        for event in trace.of(what):
            if event.mote == number:
                read = [specs[channel.sensor] for channel in samplings(event["sampling"], event.time).channels]
                charge += sum(spec.sample_ma * spec.sample_ms for spec in read)
    return table["voltage"] * charge / 1e6


def _states(number, trace, begin_ms, end_ms, instruction_us):
    """How long a mote was alive, its radio on, and its processor computing while its radio slept."""
    alive, on = begin_ms, begin_ms  # since when, where it is
    on_ms = awake_ms = computing_ms = 0.0
    for event in (event for event in trace.events if event.mote == number):
        now = event.time / 1_000
        match event.what:
            case "sleeps":
                awake_ms, on = awake_ms + now - on, None
            case "awake":
                awake_ms += event["us"] / 1_000
            case "produced" if on is None:
                computing_ms += event["steps"] * instruction_us / 1_000
            case "listens":
                on = now
            case "rebooted":
                on = now if on is None else on
            case "died":
                on_ms, alive = on_ms + now - alive, None
                awake_ms, on = awake_ms + (0 if on is None else now - on), None
    on_ms += 0 if alive is None else end_ms - alive
    return on_ms, awake_ms + (0 if on is None else end_ms - on), computing_ms
