"""SN7: errors in the description of a network."""

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
"""A valid deployment; each example changes one thing in it."""

DEPLOYMENT = {
    "SN701": ErrorEntry(
        "deployment", "not TOML", "The description of a deployment is a TOML file.", TANK.replace('"tank"', "tank")
    ),
    "SN702": ErrorEntry(
        "deployment",
        "unknown key",
        "There is no such key here; docs/deployments.md lists all keys.",
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
        "a wrong value",
        "The message names the values that the key takes; numbers must lie within their limits.",
        TANK.replace("0.95", "95"),
    ),
    "SN705": ErrorEntry(
        "deployment",
        "keys that exclude each other",
        "Give a battery in mAh or in J, links in one of the three ways, extents in a file or in the description.",
        TANK.replace("battery_mah", "battery_j = 31320\nbattery_mah"),
    ),
    "SN706": ErrorEntry(
        "deployment",
        "a name or number that does not exist",
        "Motes name boards, boards name hardware tables, units are UCUM codes, and links join motes and gateways.",
        TANK.replace("telosb", "telsob"),
    ),
    "SN707": ErrorEntry(
        "deployment",
        "appears twice",
        "A number is either a mote or a gateway, and a link from one to another appears once.",
        TANK.replace("[1, 0, 0.95]", "[0, 1, 0.95]"),
    ),
    "SN708": ErrorEntry(
        "deployment",
        "a file that cannot be read",
        "Files are in the folder of the description, and are UTF-8 texts.",
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
        "an attribute that does not match its sensor",
        "An attribute has the scale and unit of its sensor: motes compute with the numbers of the sensor.",
        TANK.replace("scale = 2", "scale = 3"),
    ),
}
