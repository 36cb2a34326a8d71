"""`moteloom history ls`: the extents of an archive, and how complete the readings of one are."""

import argparse
import json
from datetime import date
from typing import TYPE_CHECKING

from basestation.cli.history_arguments import refuse
from basestation.cli.picture_file import open_picture_file, write_picture

if TYPE_CHECKING:
    from basestation.history.archive_views import ExtentFiles


def list_extents(args: argparse.Namespace) -> int:
    from basestation.history.archive_views import describe_extent
    from basestation.history.stations import data_folders

    folders = [folder / "archive" for folder in data_folders(args.data)]
    names = sorted({path.name.removeprefix("extent=") for folder in folders for path in folder.glob("extent=*")})
    found = [each for name in names if (each := describe_extent(args.data, name)) is not None]
    if not found:
        return refuse(f"there is no archive in {args.data}; `--data` names the data of a station")
    for each in found:
        _print_extent(each, args.output)
    return 0


def list_sites(args: argparse.Namespace) -> int:
    """How complete the readings of each site are."""
    from acquisition.extent import ExtentKind
    from basestation.history.archive_views import describe_extent
    from basestation.history.completeness import measure_completeness, table_of_records
    from basestation.history.heat_map import draw_completeness
    from basestation.history.output import write_answer
    from basestation.station.declarations import read_declarations
    from basestation.station.history_question import choose_range

    catalog, _ = read_declarations(args.data, args.config, args.schema)
    extent = catalog.find(args.extent)
    if extent is None or extent.kind is not ExtentKind.SENSED:
        sensed = ", ".join(f"`{e.name}`" for e in catalog if e.kind is ExtentKind.SENSED)
        return refuse(f"expected a sensed extent, found `{args.extent}`; there are {sensed or 'none'}")
    found = describe_extent(args.data, extent.name, ahead=extent.ahead)
    if found is None:
        return refuse(f"the archive in {args.data} holds no reading of `{extent.name}`")
    begin, until = choose_range(args.begin, args.until, (found.first, found.last), catalog.tick_ms)
    if until < begin:
        return refuse(f"--from is tick {begin}, after --to at tick {until}")
    open_picture_file(args.plot)
    records = measure_completeness(args.data, extent, catalog.tick_ms, begin, until)
    if args.plot is not None:
        write_picture(args.plot, draw_completeness(f"{extent.name}: due readings in the archive", records))
    write_answer(table_of_records(records, catalog.tick_ms), args.output, args.out, True, catalog.tick_ms)
    return 0


def _print_extent(found: "ExtentFiles", output: str) -> None:
    if output == "json":
        fields = {
            "extent": found.extent, "files": found.files, "rows": found.rows, "bytes": found.bytes,
            "days": len(found.days), "missing_days": _missing_days(found), "first_day": found.days[0], "last_day": found.days[-1],
            "first_tick": found.first, "last_tick": found.last,
        }  # fmt: skip
        print(json.dumps(fields, ensure_ascii=False))
        return
    days, missing = f"{found.days[0]} to {found.days[-1]}", _missing_days(found)
    days += f", {missing} missing" if missing else ""
    print(
        f"{found.extent:<16} {found.rows:>12,} readings  {len(found.days):>4} days  {days}  {found.files:>6} files  {found.bytes / 1e6:>9.1f} MB"
    )


def _missing_days(found: "ExtentFiles") -> int:
    """How many days between the first and the last have no reading."""
    first, last = date.fromisoformat(found.days[0]), date.fromisoformat(found.days[-1])
    return (last - first).days + 1 - len(found.days)
