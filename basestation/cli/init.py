"""moteloom init: write a deployment to begin with, and a scenario of simulated motes for it."""

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HELP = "write a deployment to begin with, from five answers or from flags"
EXAMPLE = "moteloom init --name greenhouse --motes 6 --hardware telosb --quantity temperature --every 30"
EXISTS, MISUSED = 1, 2
QUANTITIES = {
    "temperature": ("Cel", 2, (-4000, 12500), 21.0, 4.0),
    "humidity": ("%", 2, (0, 10000), 45.0, 10.0),
    "light": ("lx", 0, (0, 4095), 300.0, 250.0),
}
"""By name: unit, scale, raw range, and the mean and daily swing of the simulated values."""
NEIGHBOURS = 8.0
"""Metres between the motes of the grid: near enough for every mote to have neighbours."""


@dataclass(frozen=True, slots=True)
class Question:
    """One of the five; `read` raises ValueError with what is expected."""

    flag: str
    text: str
    default: str
    read: Callable[[str], Any]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""It writes deployment.toml and simulated.scenario.toml, and overwrites nothing. In a terminal it asks
for what no flag gives; else it takes the defaults.
exit codes: 0 written, 1 a file is there already, 2 misused

example:
  {EXAMPLE}"""
    parser.add_argument("folder", nargs="?", type=Path, default=Path("."), metavar="FOLDER", help="default: this one")
    for question in _questions():
        parser.add_argument(f"--{question.flag}", metavar="X", help=f"{question.text}; default: {question.default}")


def _questions() -> list[Question]:
    from innet.costs.hardware import list_hardware

    hardware = ", ".join(list_hardware())
    return [
        Question("name", "name of the network", "station", _name),
        Question("motes", "number of motes, 1 to 200", "4", lambda text: _number(text, 200)),
        Question("hardware", f"hardware of the motes: {hardware}", "telosb", lambda text: _one_of(text, list_hardware())),
        Question("quantity", f"quantity that they measure: {', '.join(QUANTITIES)}", "temperature",
                 lambda text: _one_of(text, QUANTITIES)),
        Question("every", "seconds between two readings, 1 to 86400", "30", lambda text: _number(text, 86_400)),
    ]  # fmt: skip


def _name(text: str) -> str:
    if not (0 < len(text) <= 64 and text.isprintable() and '"' not in text and "\\" not in text):
        raise ValueError("expected up to 64 characters, without quotes and `\\`")
    return text


def _number(text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= most):
        raise ValueError(f"expected a whole number from 1 to {most:,}")
    return int(text)


def _one_of(text: str, known: Any) -> str:
    from gateway.source import did_you_mean

    if text not in known:
        raise ValueError(f"expected one of {', '.join(known)}; {did_you_mean(text, known) or f'found {text!r}'}")
    return text


def run(options: argparse.Namespace) -> int:
    answers: dict[str, Any] = {}
    for question in _questions():
        given = getattr(options, question.flag)
        try:
            answers[question.flag] = _ask(question) if given is None else question.read(given)
        except ValueError as wrong:
            print(f"moteloom: --{question.flag}: {wrong}", file=sys.stderr)
            return MISUSED
    folder: Path = options.folder
    deployment, scenario = folder / "deployment.toml", folder / "simulated.scenario.toml"
    found = next((path for path in (deployment, scenario) if path.exists()), None)
    if found is not None:
        print(f"moteloom: {found} is there already; name another folder: moteloom init FOLDER", file=sys.stderr)
        return EXISTS
    folder.mkdir(parents=True, exist_ok=True)
    deployment.write_text(_deployment(**answers), encoding="utf-8")
    scenario.write_text(_scenario(answers["quantity"]), encoding="utf-8")
    quantity = answers["quantity"]
    print(
        f"{deployment} and {scenario} are written. Start a station with simulated motes, then ask it:\n"
        f"  moteloom run --simulate {scenario}\n"
        f"  moteloom query submit --watch 'SELECT site, {quantity} FROM readings [NOW]'"
    )
    return 0


def _ask(question: Question) -> Any:
    """The answer of the terminal, asked again while it is wrong; the default without a terminal."""
    while sys.stdin.isatty():
        text = input(f"{question.text} [{question.default}]: ").strip()
        try:
            return question.read(text or question.default)
        except ValueError as wrong:
            print(f"  {wrong}", file=sys.stderr)
    return question.read(question.default)


def _deployment(name: str, motes: int, hardware: str, quantity: str, every: int) -> str:
    unit, scale, (low, high), _, _ = QUANTITIES[quantity]
    width = math.ceil(math.sqrt(motes))
    places = [(NEIGHBOURS * (n % width + 1), NEIGHBOURS * (n // width)) for n in range(motes)]
    rows = "\n".join(f'{n} = {{ at = [{x:g}, {y:g}], board = "node" }}' for n, (x, y) in enumerate(places, 1))
    return f"""# Written by `moteloom init`. docs/deployments.md says what may stand here; `moteloom config check` finds its errors.
name = "{name}"
tick_ms = 1000                      # a tick is a second: the unit of all intervals

# Where the radio of the station is, in metres east and north.
[gateways]
0 = {{ at = [0, 0] }}

# The properties that all motes share. Two AA cells; leave the battery out for mains power.
[boards.node]
hardware = "{hardware}"
battery_mah = 2900

# The sensor delivers whole numbers in `raw`; they count multiples of 10^-{scale} {unit}.
[boards.node.sensors]
{quantity} = {{ raw = [{low}, {high}], scale = {scale}, unit = "{unit}" }}

# Where the motes are. Their numbers are the sites in queries.
[motes]
{rows}

# The links that planning begins with, from a model of the radio; motes measure them while they run.
[links]
radio = {{ seed = 1 }}

# What queries can read.
[extents]
text = '''
readings: sensed (site:integer, time:integer, {quantity}:float {{unit '{unit}', scale {scale}}}) every {every} sec at sites all
'''
"""


def _scenario(quantity: str) -> str:
    _, _, _, mean, swing = QUANTITIES[quantity]
    return f"""# Simulated motes for deployment.toml: moteloom run --simulate. docs/simulator.md says what may stand here.
deployment = "deployment.toml"

[world.{quantity}]
mean = {mean}
noise = {mean / 100:g}
cycles.day = {{ swing = {swing}, period = "1 day", phase = "9 hours" }}
"""
