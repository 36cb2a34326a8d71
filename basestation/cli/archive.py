"""moteloom archive: lists, checks, compacts, exports and fills the archive of a station."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from basestation.cli.station_arguments import DATA
from gateway.errors import MoteloomError

if TYPE_CHECKING:
    import pyarrow as pa

    from basestation.archive.compaction import ArchiveDay
    from basestation.archive.manifest import ArchiveFile

HELP = "list, verify, compact, export or import the readings that a station archived"
EXAMPLE = "moteloom archive ls lab"
FAILED, BAD_INPUT = 1, 3
FORMATS = ".parquet", ".csv"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""`ls`, `verify` and `export` work beside a running station; `compact` and `import` need it stopped.
exit codes: 0 done, 1 not possible, or `verify` found something, 3 a file or range that cannot be taken

example:
  {EXAMPLE}
  moteloom archive verify
  moteloom archive export lab --from 2026-11-19 --until 2026-11-20 --out lab.parquet
  moteloom archive import lab last-year.csv -c deployment.toml"""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    ls = verbs.add_parser("ls", help="the extents of the archive; with a name its days")
    ls.add_argument("extent", nargs="?", metavar="EXTENT")
    verbs.add_parser("verify", help="compare each file with what was written; names damaged, missing and foreign files")
    compact = verbs.add_parser("compact", help="merge the files of each day that is over into one")
    compact.add_argument("extent", nargs="?", metavar="EXTENT", help="default: every extent")
    export = verbs.add_parser("export", help="write readings into one file that `moteloom replay` takes")
    export.add_argument("extent", metavar="EXTENT")
    export.add_argument("--out", required=True, type=Path, metavar="FILE", help="its name ends in .parquet or .csv")
    export.add_argument(
        "--from", dest="first", metavar="T", help="a tick, a day or an RFC 3339 time; default: the first"
    )
    export.add_argument("--until", dest="last", metavar="T", help="the last tick; a day is meant as a whole")
    taking = verbs.add_parser("import", help="add recorded readings; those that the archive has are left out")
    taking.add_argument("extent", metavar="EXTENT")
    taking.add_argument("file", type=Path, metavar="FILE", help="CSV or Parquet, as `moteloom replay` takes it")
    taking.add_argument("-c", "--config", required=True, metavar="DEPLOYMENT", help="the deployment that declares it")
    for verb in verbs.choices.values():
        verb.add_argument(
            "--data", type=Path, default=Path(DATA), metavar="DIR", help="of the station; default: %(default)s"
        )
        verb.add_argument(
            "-o", "--output", choices=("table", "json"), default="table", help="json is one object a line"
        )


class _RangeError(MoteloomError):
    """The extent or range has no reading, or is none."""


def run(options: argparse.Namespace) -> int:
    from acquisition.errors import InputError
    from basestation.archive.layout import ArchiveSchemaError
    from basestation.cli.query_arguments import print_diagnostics, print_input_error
    from basestation.station.journal_file import JournalError
    from gateway.diagnostics import DiagnosticError
    from gateway.toml import ConfigError

    as_json = options.output == "json"
    try:
        return _VERBS[options.verb](options)
    except JournalError as error:
        return _refuse(f"{error}; {error.help}", as_json, FAILED)
    except ArchiveSchemaError as error:
        return _refuse(str(error), as_json, FAILED)
    except _RangeError as error:
        return _refuse(str(error), as_json, BAD_INPUT)
    except InputError as error:
        print_input_error(error, as_json)
    except (ConfigError, DiagnosticError) as error:
        print_diagnostics(error.diagnostics, as_json)
    return BAD_INPUT


def _refuse(message: str, as_json: bool, code: int) -> int:
    if as_json:
        print(json.dumps({"type": "error", "message": message}))
    else:
        print(f"moteloom: {message}", file=sys.stderr)
    return code


def _listed(options: argparse.Namespace) -> "list[ArchiveFile]":
    from basestation.station.archive_recovery import read_manifest

    return read_manifest(options.data)


def _days(options: argparse.Namespace) -> "list[ArchiveDay]":
    """The days of the extent that the arguments name, or of all."""
    from basestation.archive.compaction import days_of_files
    from gateway.source import did_you_mean

    days = list(days_of_files(_listed(options)))
    if options.extent is None:
        return days
    found = [day for day in days if day.extent == options.extent]
    if not found:
        names = sorted({day.extent for day in days})
        known = f"it has {', '.join(f'`{name}`' for name in names)}" if names else "it is empty"
        raise _RangeError(
            f"the archive has no extent `{options.extent}`; {did_you_mean(options.extent, names) or known}"
        )
    return found


def _ls(options: argparse.Namespace) -> int:
    from itertools import groupby

    from basestation.archive.layout import read_tick_ms
    from basestation.replay.tick_times import TickTimes

    days = _days(options)
    groups = [(day.extent, [day]) for day in days]
    if options.extent is None:
        groups = [(extent, list(of)) for extent, of in groupby(days, key=lambda day: day.extent)]
    rows: list[dict[str, Any]] = []
    for extent, of in groups:
        times = TickTimes(read_tick_ms(options.data, of[0].files[0]))
        first, last = (min(f.first for d in of for f in d.files), max(f.last for d in of for f in d.files))
        rows.append(
            {
                "extent": extent, **({"day": of[0].day} if options.extent else {"days": len(of)}),
                "first": times.text(first), "last": times.text(last), "rows": sum(d.rows for d in of),
                "files": sum(len(d.files) for d in of), "bytes": sum(d.bytes for d in of),
            }
        )  # fmt: skip
    if options.output == "json":
        for row in rows:
            print(json.dumps(row))
        return 0
    what = "day" if options.extent else "days"
    print(f"{'extent':<16}{what:>10}  {'first':<24}{'last':<24}{'rows':>12}{'files':>7}{'MB':>10}")
    for row in rows:
        print(
            f"{row['extent']:<16}{row[what]:>10}  {row['first']:<24}{row['last']:<24}{row['rows']:>12,}{row['files']:>7,}"
            f"{row['bytes'] / 1e6:>10,.2f}"
        )
    return 0


def _verify(options: argparse.Namespace) -> int:
    from basestation.archive.verification import verify_archive

    before = _listed(options)
    found = list(verify_archive(options.data, before))
    if found and (now := _listed(options)) != before:  # the station went on meanwhile
        found = list(verify_archive(options.data, before := now))
    kept = [file for file in before if not file.is_removed]
    for finding in found:
        if options.output == "json":
            of = finding.file
            extent, day = (None, None) if of is None else (of.extent, of.day)
            print(json.dumps({"kind": finding.kind, "path": str(finding.path), "extent": extent, "day": day,
                              "message": finding.message}))  # fmt: skip
        else:
            print(f"{finding.kind:<11}{finding.path} {finding.message}")
    print(
        f"{len(kept):,} files with {sum(f.rows for f in kept):,} readings compared, {len(found)} findings",
        file=sys.stderr,
    )
    return FAILED if found else 0


def _compact(options: argparse.Namespace) -> int:
    import time

    from acquisition.ticks import instant_of
    from basestation.archive.compaction import merge_day
    from basestation.archive.layout import ArchiveSchemaError
    from basestation.archive.manifest import FileChange
    from basestation.station.archive_recovery import open_archive
    from basestation.station.journal import Journal

    today = instant_of(time.time_ns() // 1_000_000, 1).date().isoformat()
    _listed(options)  # names a directory without a station before one is made there
    code, journal = 0, Journal(options.data)
    try:
        archive = open_archive(options.data, 1_000, journal)
        for day in _days(options):
            if len(day.files) < 2 or day.day >= today:
                continue
            try:
                merged = merge_day(options.data, day)
            except (ArchiveSchemaError, OSError) as why:  # other days can be merged
                code = _refuse(f"{day.extent} {day.day} stays as it is: {why}", options.output == "json", FAILED)
                continue
            journal.commit([], files=FileChange((merged,), tuple(file.name for file in day.files)))
            journal.forget_archive_files(archive.settle(journal.archive_files()))
            of = {"extent": day.extent, "day": day.day, "files": len(day.files), "rows": merged.rows,
                  "bytes_before": day.bytes, "bytes": merged.bytes}  # fmt: skip
            if options.output == "json":
                print(json.dumps(of))
            else:
                print(
                    f"{day.extent} {day.day}: {len(day.files)} files, {day.bytes:,} bytes, are one of {merged.bytes:,}"
                )
    finally:
        journal.close()
    return code


def _export(options: argparse.Namespace) -> int:
    from basestation.archive.layout import read_tick_ms
    from basestation.archive.transfer import export_readings, latest_version

    if options.out.suffix not in FORMATS:
        raise _RangeError(f"{options.out}: expected a name that ends in {' or '.join(FORMATS)}")
    days = _days(options)
    tick_ms = read_tick_ms(options.data, days[0].files[0])
    least, most = min(f.first for d in days for f in d.files), max(f.last for d in days for f in d.files)
    first = least if options.first is None else _parse_time(options.first, tick_ms, is_end=False)
    last = most if options.last is None else _parse_time(options.last, tick_ms, is_end=True)
    if not any(first <= f.last and f.first <= last for d in days for f in d.files):
        from basestation.replay.tick_times import TickTimes

        times = TickTimes(tick_ms)
        raise _RangeError(
            f"the archive has no reading of `{options.extent}` in this range; it has {times.text(least)} to {times.text(most)}"
        )
    table = export_readings(options.data, days, first, last)
    if (table.schema.metadata or {}).get(b"moteloom.kind") == b"stored":
        table = latest_version(table)
    _write(table, options.out)
    if options.output == "json":
        print(json.dumps({"file": str(options.out), "rows": table.num_rows}))
    else:
        print(f"{options.out}: {table.num_rows:,} rows", file=sys.stderr)
    return 0


def _write(table: "pa.Table", path: Path) -> None:
    """Write a file that takes the place of `path` when it is whole."""
    import os

    import pyarrow.csv
    import pyarrow.parquet

    staged = path.with_name(f".{path.name}.part")
    try:
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(table, staged)
        else:
            pyarrow.parquet.write_table(table, staged, compression="zstd")
        os.replace(staged, path)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise


def _parse_time(text: str, tick_ms: int, is_end: bool) -> int:
    """A tick, a UTC day or an RFC 3339 time as a tick; a day is its first tick, or its last."""
    from datetime import date

    from acquisition.ticks import tick_of_rfc3339

    try:
        if text.lstrip("-").isdecimal():
            return int(text)
        day = tick_of_rfc3339(f"{date.fromisoformat(text)}T00:00:00Z", tick_ms) if len(text) == 10 else None
        if day is not None:
            return day + 86_400_000 // tick_ms - 1 if is_end else day
        return tick_of_rfc3339(text, tick_ms)
    except ValueError as why:
        raise _RangeError(f"`{text}` is no tick, day or time: {why}") from why


def _import(options: argparse.Namespace) -> int:
    from acquisition.extent import ExtentKind
    from basestation.archive.manifest import FileChange
    from basestation.archive.parquet import digest_of
    from basestation.archive.transfer import stage_recording
    from basestation.planner.deployed_catalog import read_deployed_catalog
    from basestation.station.archive_recovery import open_archive
    from basestation.station.journal import Journal
    from gateway.source import did_you_mean
    from innet.deployment.toml_reader import read_deployment

    catalog = read_deployed_catalog(read_deployment(options.config))
    extent = catalog.find(options.extent)
    if extent is None:
        names = [each.name for each in catalog]
        raise _RangeError(
            f"{options.config} declares no extent `{options.extent}`; {did_you_mean(options.extent, names) or ', '.join(names)}"
        )
    if extent.kind is ExtentKind.STORED:
        raise _RangeError(
            f"`{extent.name}` is a stored extent, and a recording has none of its versions: "
            f"give a running station its rows with PUT /v1/extents/{extent.name}/rows"
        )
    if not options.file.is_file():
        raise _RangeError(f"there is no file {options.file}")
    _listed(options)
    journal = Journal(options.data)
    try:
        archive = open_archive(options.data, catalog.tick_ms, journal)
        source = f"imported {digest_of(options.file)} into {extent.name}"
        if (before := journal.fact(source)) is not None:
            raise _RangeError(f"{options.file} is in the archive already: {before}")
        from basestation.archive.compaction import days_of_files

        present = {day.day: day for day in days_of_files(journal.archive_files()) if day.extent == extent.name}
        files, known = stage_recording(archive, extent, options.file, catalog.tick_ms, present)
        count = sum(file.rows for file in files)
        try:
            journal.commit([], files=FileChange(tuple(files)), facts={source: f"{count:,} readings"})
        except BaseException:
            archive.discard(files)
            raise
        journal.forget_archive_files(archive.settle(journal.archive_files()))
    finally:
        journal.close()
    if options.output == "json":
        print(json.dumps({"extent": extent.name, "rows": count, "days": len(files), "already": known}))
    else:
        print(
            f"{extent.name}: {count:,} readings of {len(files)} days added, {known:,} were there already",
            file=sys.stderr,
        )
    return 0


_VERBS = {"ls": _ls, "verify": _verify, "compact": _compact, "export": _export, "import": _import}
