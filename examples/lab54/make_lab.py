"""Make the office: deployment.toml with its desks, links.csv with how well they hear each other, rooms.csv.

    python examples/lab54/make_lab.py [folder]

54 motes stand on desks in six rows, somewhat off a grid; the gateway is at a window. Links are drawn from a model of
propagation whose figures were chosen so that the qualities of directed links spread as they did in an office of that size
that was measured: most pairs hardly hear each other, no link is perfect, and the directions of a pair differ.

The same seed gives the same bytes everywhere: chance comes from `Random.random` and a hash.
"""

import sys
from pathlib import Path
from random import Random

from innet.deployment.propagation import PropagationModel, predict_link_ratios

SEED = 7
ROWS, COLUMNS = 6, 9
APART = (4.6, 5.2)  # metres between desks, east and north
OFF = (1.6, 1.8)  # how far a desk is off the grid at most
GATEWAY = (20.7, 0.5)
RADIO = PropagationModel(SEED, exponent=3.3, shadowing=6.6, asymmetry=4.0, half=-66.5, steepness=5.15, best=0.85)
ROOMS = (
    ("library", "kitchen", "workshop"),
    ("north-west", "hall", "north-east"),
)  # by thirds of the width; south, north


def desks():
    """Where the motes stand, by number, from the south-west on."""
    random = Random(SEED)
    return {
        row * COLUMNS + column + 1: (
            round(2.3 + column * APART[0] + (2 * random.random() - 1) * OFF[0], 1),
            round(2.7 + row * APART[1] + (2 * random.random() - 1) * OFF[1], 1),
        )
        for row in range(ROWS)
        for column in range(COLUMNS)
    }


def room(at):
    """The room that a place lies in."""
    return ROOMS[at[1] >= 15.5][min(2, int(at[0] // 13.8))]


DEPLOYMENT = """\
# An office with 54 motes. Made by make_lab.py, which also made links.csv and rooms.csv; docs/deployments.md says what may
# stand in such a file.
name = "lab54"
tick_ms = 1000

[extents]
file = "schema.sneeql"

[links]
file = "links.csv"

[gateways]
0 = {{ at = [{gateway}] }}

[boards.desk]
hardware = "telosb"
battery_mah = 2900                  # two AA cells

# The humidity and temperature chip measures both with one converter; what it takes for the temperature is in the table of
# the hardware. Light and supply voltage go through the converter of the processor.
[boards.desk.sensors]
temperature = {{ raw = [-4000, 12380], scale = 2, unit = "Cel" }}
humidity = {{ raw = [0, 10000], scale = 2, unit = "%", sample_ms = 80, sample_ma = 0.55 }}
light = {{ raw = [0, 4095], unit = "lx", sample_ms = 10, sample_ma = 0.1 }}
supply = {{ raw = [0, 4095], unit = "mV", sample_ms = 17, sample_ma = 0.5 }}

[motes]
{motes}
"""


def lab():
    """The files by name, with their content in bytes."""
    places = desks()
    links = predict_link_ratios({0: GATEWAY, **places}, RADIO)
    motes = "\n".join(f'{number} = {{ at = [{x}, {y}], board = "desk" }}' for number, (x, y) in places.items())
    gateway = ", ".join(map(str, GATEWAY))
    texts = {
        "deployment.toml": DEPLOYMENT.format(gateway=gateway, motes=motes),
        "links.csv": "sender,receiver,ratio\n" + "".join(f"{a},{b},{ratio}\n" for (a, b), ratio in links.items()),
        "rooms.csv": "site,room\n" + "".join(f"{number},{room(at)}\n" for number, at in places.items()),
    }
    return {name: text.encode() for name, text in texts.items()}


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, content in lab().items():
        (folder / name).write_bytes(content)
