"""SN7: what a description of a network can have wrong."""

from basestation.errors.entry import ErrorEntry

TANK = """name = "tank"
[gateways]
0 = { at = [0, 0] }
[boards.probe]
hardware = "telosb"
battery_mah = 2900
sensors.level = { raw = [0, 4095], scale = 2, unit = "m" }
[motes]
1 = { at = [8, 3], board = "probe" }
[links]
table = [[0, 1, 0.98], [1, 0, 0.95]]
[extents]
text = "tank: sensed (level:float {scale 2}) every 1 min at sites 1"
"""
"""A whole deployment, which the examples about deployments spoil."""

DEPLOYMENT = {
    "SN701": ErrorEntry("deployment", "not TOML", "A deployment is described in TOML.", TANK.replace('"tank"', "tank")),
    "SN702": ErrorEntry(
        "deployment",
        "unknown key",
        "Nothing is read under this key here; docs/deployments.md has all of them.",
        TANK.replace("battery_mah", "batery_mah"),
    ),
    "SN703": ErrorEntry(
        "deployment",
        "something is missing",
        "A deployment has a name, gateways, motes, links and extents; a mote has a place and hardware.",
        TANK.replace("at = [8, 3], ", ""),
    ),
    "SN704": ErrorEntry(
        "deployment",
        "a value of another kind was expected",
        "What a key takes is said in the message; numbers must lie within their limits.",
        TANK.replace("0.95", "95"),
    ),
    "SN705": ErrorEntry(
        "deployment",
        "two things that exclude each other",
        "A battery is said in mAh or in J, links by one of the three ways, extents by a file or here.",
        TANK.replace("battery_mah", "battery_j = 31320\nbattery_mah"),
    ),
    "SN706": ErrorEntry(
        "deployment",
        "a name or number that does not exist",
        "Boards are named by motes, hardware has a table, units are UCUM codes, and links join motes and gateways.",
        TANK.replace("telosb", "telsob"),
    ),
    "SN707": ErrorEntry(
        "deployment",
        "said twice",
        "A number is a mote or a gateway, and a link from one to another stands once.",
        TANK.replace("[1, 0, 0.95]", "[0, 1, 0.95]"),
    ),
    "SN708": ErrorEntry(
        "deployment",
        "a file that cannot be read",
        "Files are found beside the one that names them, and are texts in UTF-8.",
        TANK.replace("table = [[0, 1, 0.98], [1, 0, 0.95]]", 'file = "links.csv"'),
    ),
    "SN709": ErrorEntry(
        "deployment",
        "a site without a mote",
        "The sites of a sensed extent are numbers of motes.",
        TANK.replace("at sites 1", "at sites 1, 2"),
    ),
    "SN710": ErrorEntry(
        "deployment",
        "a mote without the sensor",
        "Every site of an extent has a sensor for each attribute but `site` and `time`; `sensor 'name'` says which.",
        TANK.replace("sensors.level", "sensors.depth"),
    ),
    "SN711": ErrorEntry(
        "deployment",
        "an attribute that is not what the sensor gives",
        "Scale and unit of an attribute are those of its sensor: motes compute with its numbers as they are.",
        TANK.replace("scale = 2", "scale = 3"),
    ),
}
