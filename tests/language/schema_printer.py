"""Schemas as text: the inverse of the schema parser, for tests of the round trip."""

from basestation.language.printer import print_duration, print_expression


def print_schema(extents):
    """The declarations, one on each line."""
    return "".join(f"{_extent(extent)}\n" for extent in extents)


def _extent(node):
    pieces = [f"{node.name.text}: {node.kind} ({', '.join(map(_attribute, node.attributes))})"]
    if node.every:
        pieces.append(f"every {_low(node.every)}")
    if node.sites:
        pieces.append(f"at sites {_sites(node.sites)}")
    if node.wait:
        pieces.append(f"wait {_low(node.wait)}")
    if node.late:
        by = f" by {_low(node.late.horizon)}" if node.late.horizon else ""
        pieces.append(f"late {node.late.policy}{by}")
    if node.ahead:
        pieces.append(f"ahead {_low(node.ahead)}")
    if node.source:
        pieces.append(f"from {print_expression(node.source)}")
    return " ".join(pieces)


def _attribute(node):
    properties = []
    if node.unit:
        properties.append(f"unit {print_expression(node.unit)}")
    if node.sensor:
        properties.append(f"sensor {print_expression(node.sensor)}")
    if node.scale:
        properties.append(f"scale {node.scale.value}")
    if node.range:
        low, high = node.range
        properties.append(f"range {print_expression(low)} .. {print_expression(high)}")
    return f"{node.name.text}:{node.type.text}" + (f" {{{', '.join(properties)}}}" if properties else "")


def _sites(node):
    if node.all:
        return "all"
    return ", ".join(str(first) if first == last else f"{first} .. {last}" for first, last in node.ranges)


def _low(node):
    return print_duration(node).lower()
