"""moteloom topology: the routing tree of a running station's network, and the links that motes report."""

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from basestation.cli.station_arguments import add_station, client_of, print_station_error

HELP = "show the routing tree of a running station, and the links that its motes report"
EXAMPLE = "moteloom topology"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""Each mote stands below the one that forwards its frames. `up` is the share of its frames that arrive there,
`down` the share that arrives in the other direction; `?` where no mote has reported the link.
exit codes: 0 done, 2 refused, 4 no station answers

example:
  {EXAMPLE}
  {EXAMPLE} --links"""
    parser.add_argument("--links", action="store_true", help="instead: every link, also those that carry no frames now")
    add_station(parser)


def run(options: argparse.Namespace) -> int:
    from moteloom.client import StationError

    try:
        found = client_of(options).get("/v1/topology")
    except StationError as error:
        return print_station_error(error, options.output == "json")
    if options.output == "json":
        for each in found["links"] if options.links else (found,):
            print(json.dumps(each))
    elif options.links:
        print("sender  receiver  ratio")
        for link in found["links"]:
            print(f"{link['sender']:>6}  {link['receiver']:>8}  {link['ratio']:>5.2f}")
    else:
        for line in draw_tree(found):
            print(line)
    return 0


def draw_tree(topology: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a drawing of /v1/topology: each gateway with the motes that it reaches, and then those without a path."""
    ratios = {(link["sender"], link["receiver"]): link["ratio"] for link in topology["links"]}
    children: dict[int, list[int]] = {}
    for each in topology["parents"]:
        children.setdefault(each["parent"], []).append(each["mote"])
    drawn = set()
    for gateway in topology["gateways"]:
        yield f"gateway {gateway}"
        waiting = [
            (mote, gateway, "", at == 0) for at, mote in enumerate(sorted(children.get(gateway, ()), reverse=True))
        ]
        while waiting:  # a stack: trees may be deep
            mote, parent, margin, is_last = waiting.pop()
            drawn.add(mote)
            up, down = _share(ratios.get((mote, parent))), _share(ratios.get((parent, mote)))
            yield f"{margin}{'└─' if is_last else '├─'} {mote}  up {up}  down {down}"
            below = sorted(children.get(mote, ()), reverse=True)
            margin += "   " if is_last else "│  "
            waiting += [(child, mote, margin, at == 0) for at, child in enumerate(below)]
    unreached = sorted({*(each["mote"] for each in topology["parents"]), *topology["motes"]} - drawn)
    if unreached:
        yield f"without a path: {', '.join(map(str, unreached))}"


def _share(ratio: float | None) -> str:
    return "?" if ratio is None else f"{ratio:.2f}"
