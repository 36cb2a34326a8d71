"""Arguments that say how recordings are written."""

import argparse
import re
import tomllib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acquisition.sources.time_bounds import Time, read_time
from acquisition.units import milliseconds_of

if TYPE_CHECKING:
    from acquisition.sources.input_format import InputFormat

NEAREST = -1
"""The value of `--snap` without a span."""
_EPOCH_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def add_recording(parser: argparse.ArgumentParser) -> None:
    """The arguments that describe recordings."""
    group = parser.add_argument_group("how recordings are written")
    group.add_argument(
        "--time-column",
        metavar="NAME",
        help="the column with the times of tuples: RFC 3339, or numbers since 1970; default: `_tick` has ticks",
    )
    group.add_argument("--site-column", metavar="NAME", help="the column with the sites of readings; default: `_site`")
    group.add_argument(
        "--zone",
        type=_zone,
        metavar="ZONE",
        help="the zone of times without one, such as Europe/Zurich or +01:00; default: UTC",
    )
    group.add_argument(
        "--time-unit",
        type=_unit,
        metavar="UNIT",
        help="what numbers of the time column count: s, ms, us, or a span such as 30s; default: their size decides",
    )
    group.add_argument("--time-format", metavar="PATTERN", help="how times are written, such as '%%d.%%m.%%Y %%H:%%M'")
    group.add_argument(
        "--snap",
        nargs="?",
        const=NEAREST,
        type=_span,
        metavar="SPAN",
        help="move readings to the nearest tick of their schedule, from a distance of up to SPAN; default: half an interval",
    )
    group.add_argument(
        "--site-prefix",
        metavar="TEXT",
        help="each site has a column, TEXT and its number; an empty field is no reading",
    )
    group.add_argument(
        "--delimiter", type=_delimiter, metavar="SIGN", help="between fields; a blank is any run of blanks"
    )
    group.add_argument(
        "--decimal", choices=(".", ","), help="the sign before decimals; with a comma, a point separates thousands"
    )
    group.add_argument(
        "--encoding", type=_encoding, metavar="NAME", help="of the text, such as latin-1; default: utf-8"
    )
    group.add_argument(
        "--null", action="append", metavar="TEXT", help="a text that stands for null, such as NA; may be repeated"
    )
    group.add_argument(
        "--columns",
        type=_names,
        metavar="NAMES",
        help="the columns of a file without a header: a,b,-,c; `-` is not read",
    )
    group.add_argument("--skip-lines", type=_count, metavar="N", help="leave out N lines before the header")
    group.add_argument("--skip-bad", type=_count, metavar="N", help="leave out up to N wrong rows, and report them")
    group.add_argument(
        "--format", metavar="FILE", help='a TOML file with these options: `time_column = "when"`; options go before it'
    )
    group.add_argument(
        "--allow-rejected",
        action="store_true",
        help="run even if more than a tenth of the readings do not fit the schedule",
    )


def read_format(args: argparse.Namespace, tick_ms: int) -> "InputFormat":
    """The format of recordings that the arguments describe."""
    from acquisition.sources.csv_dialect import CsvDialect
    from acquisition.sources.input_format import PLAIN, InputFormat, TimeFormat

    dialect = CsvDialect(
        args.delimiter or ",",
        args.decimal or ".",
        args.encoding or "utf-8",
        tuple(args.null or ()),
        args.columns or (),
        args.skip_lines or 0,
    )
    snap = 0 if args.snap is None else None if args.snap == NEAREST else args.snap // tick_ms
    time = TimeFormat(args.zone, args.time_unit, args.time_format)
    given = InputFormat(args.time_column, args.site_column, args.site_prefix, time, dialect, snap, args.skip_bad or 0)
    return PLAIN if given == PLAIN else given


def apply_format_file(args: argparse.Namespace) -> None:
    """Set the options that a format file gives and the command line does not. Raises InputError."""
    if args.format is None:
        return
    from acquisition.errors import InputError
    from gateway.source import did_you_mean

    try:
        with open(args.format, "rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise InputError("SN501", f"cannot be read: {error.strerror}", args.format) from None
    except ValueError as error:
        raise InputError("SN502", f"is not a TOML file: {error}", args.format) from None
    for key, value in found.items():
        if key not in _KEYS:
            help = did_you_mean(key, _KEYS) or f"keys are {', '.join(f'`{name}`' for name in _KEYS)}"
            raise InputError("SN504", f"unknown key `{key}`", args.format, help=help)
        try:
            value = _KEYS[key](value)
        except (argparse.ArgumentTypeError, TypeError, AttributeError):
            raise InputError("SN506", f"{value!r} does not fit the key `{key}`", args.format, help=_HELP[key]) from None
        if getattr(args, key) is None:
            setattr(args, key, value)


def parse_time(text: str) -> Time:
    """The time of an argument."""
    try:
        return read_time(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _zone(text: str) -> str:
    from acquisition.sources.times import check_zone

    try:
        check_zone(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"there is no zone `{text}`; expected a name such as Europe/Zurich, or an offset such as +01:00"
        ) from None
    return text


def _unit(text: str) -> int:
    us = _EPOCH_UNITS.get(text) or 1_000 * (milliseconds_of(text) or 0)
    if not us:
        raise argparse.ArgumentTypeError(f"`{text}` is no unit of times: expected s, ms, us, or a span such as 30s")
    return us


def _span(text: str) -> int:
    ms = milliseconds_of(text)
    if ms is None:
        raise argparse.ArgumentTypeError(
            f"`{text}` is no span of time: expected one such as 5s or 500ms; without a span, write the option after the query"
        )
    return ms


def parse_tick(text: str) -> int:
    """The milliseconds of a tick, such as `1ms` or `1s`, up to a day."""
    ms = milliseconds_of(text)
    if not ms or ms > 86_400_000:
        raise argparse.ArgumentTypeError(f"`{text}` is no length of a tick: expected a span from 1ms to 1 day")
    return ms


def _delimiter(text: str) -> str:
    text = "\t" if text in ("\\t", "tab") else text
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in '"\n\r':
        raise argparse.ArgumentTypeError(f"`{text}` is no delimiter: expected one sign such as ; or '\\t' or ' '")
    return text


def _encoding(text: str) -> str:
    from acquisition.sources.csv_dialect import check_encoding

    try:
        return check_encoding(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"there is no encoding `{text}`; expected one such as latin-1") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _count(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"`{text}` is no whole number from 0")
    return int(text)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(value: object) -> list[str]:
    return [_text(value)] if isinstance(value, str) else [_text(each) for each in _list(value)]


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _decimal(value: str) -> str:
    if value not in (".", ","):
        raise TypeError
    return value


_KEYS: dict[str, Callable[[Any], object]] = {
    "time_column": _text,
    "site_column": _text,
    "site_prefix": _text,
    "zone": _zone,
    "time_unit": _unit,
    "time_format": _text,
    "snap": lambda value: NEAREST if value is True else _span(value),
    "delimiter": _delimiter,
    "decimal": _decimal,
    "encoding": _encoding,
    "null": _texts,
    "columns": lambda value: _names(value) if isinstance(value, str) else tuple(_texts(value)),
    "skip_lines": lambda value: _count(str(value)),
    "skip_bad": lambda value: _count(str(value)),
    "tick": parse_tick,
}
"""The keys of a format file, each with what makes an option of its value."""
_HELP = {key: "expected a text" for key in _KEYS} | {
    "snap": 'expected `true` or a span such as "5s"',
    "decimal": 'expected "." or ","',
    "null": "expected a text or a list of texts",
    "columns": "expected a list of names",
    "skip_lines": "expected a whole number",
    "skip_bad": "expected a whole number",
    "time_unit": 'expected "s", "ms", "us" or a span such as "30s"',
    "tick": 'expected a span such as "1ms"',
}
