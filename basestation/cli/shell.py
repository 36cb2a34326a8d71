"""`moteloom shell`, and `moteloom` alone in a terminal: statements and commands at a prompt."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from basestation.cli.query_arguments import BAD_INPUT, REFUSED, print_diagnostics, print_input_error, read
from basestation.cli.recording_arguments import add_recording, apply_format_file, parse_tick, read_format
from basestation.cli.replay import _input, _inputs
from basestation.cli.station_arguments import UNREACHABLE, add_station, client_of, print_station_error

HELP = "ask a running station or recordings, statement by statement; `moteloom` alone in a terminal does the same"
EXAMPLE = """moteloom shell
  moteloom shell --url http://127.0.0.1:8137
  moteloom shell --schema examples/roadbridge/schema.sneeql --input road=examples/roadbridge/recording/road.csv
  moteloom shell --schema lab.sneeql --input lab=log.csv --time-column when --zone Europe/Zurich --snap"""
_OF_RECORDINGS = (
    "input", "tick", "time_column", "site_column", "zone", "time_unit", "time_format", "snap", "site_prefix", "delimiter", "decimal",
    "encoding", "null", "columns", "skip_lines", "skip_bad", "format", "allow_rejected",
)  # fmt: skip
if TYPE_CHECKING:
    from basestation.shell.answer_source import AnswerSource


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = f"""In the shell, `\\?` lists the commands and Tab completes. A statement ends with `;`, also over several lines.
Where standard input is no terminal, the shell runs the statements in it.
exit codes: 0 done, 2 a statement was refused, 3 wrong input, 4 no station answers

examples:
  {EXAMPLE}"""
    source = parser.add_argument_group("recordings, instead of a station")
    source.add_argument("--schema", metavar="FILE", help="the declarations of the extents")
    source.add_argument(
        "--input",
        action="append",
        default=[],
        type=_input,
        metavar="EXTENT[@TICK]=FILE",
        help="the recorded data of an extent, as for replay",
    )
    source.add_argument(
        "--tick",
        type=parse_tick,
        metavar="SPAN",
        help="the length of a tick of the recordings, such as 1ms; default: 1s",
    )
    add_recording(parser)
    add_station(parser)


def run(args: argparse.Namespace) -> int:
    """Run the shell; the exit code."""
    from acquisition.errors import InputError
    from gateway.diagnostics import DiagnosticError
    from moteloom.client import StationError

    if args.schema is None and (given := [name for name in _OF_RECORDINGS if getattr(args, name)]):
        print(f"moteloom shell: --{given[0].replace('_', '-')} is about recordings and needs --schema", file=sys.stderr)
        return REFUSED
    try:
        source = _open_recordings(args) if args.schema is not None else _open_station(args)
    except InputError as error:
        print_input_error(error, as_json=False)
        return BAD_INPUT
    except DiagnosticError as error:
        print_diagnostics(error.diagnostics, as_json=False)
        return REFUSED
    except StationError as error:
        code = print_station_error(error, as_json=False)
        if code == UNREACHABLE:
            print("start one with `moteloom run`, or ask recordings: moteloom shell --schema FILE --input EXTENT=FILE",
                  file=sys.stderr)  # fmt: skip
        return code
    return _converse(source)


def _converse(source: "AnswerSource") -> int:
    from basestation.shell.interpreter import Interpreter, split_script

    interpreter = Interpreter(source, sys.stdout, sys.stderr)
    if sys.stdin.isatty() and sys.stdout.isatty():
        from basestation.shell.terminal import run_terminal

        print(f"Moteloom, {source.name}. `\\?` helps, Tab completes, Ctrl-D ends.", file=sys.stderr)
        run_terminal(interpreter, source.catalog)
        return 0
    for text in split_script(sys.stdin.read()):
        interpreter.run(text)
        if interpreter.is_over:
            break
    return REFUSED if interpreter.has_failed else 0


def _open_recordings(args: argparse.Namespace) -> "AnswerSource":
    from basestation.replay.statements import read_catalog
    from basestation.shell.recordings import RecordingSource

    apply_format_file(args)
    catalog = read_catalog(read(args.schema), args.schema, args.tick or 1_000)
    form = read_format(args, catalog.tick_ms)
    source = RecordingSource(catalog, _inputs(args.input, catalog), Path(args.schema).parent, form)
    if not args.allow_rejected:
        source.check()
    return source


def _open_station(args: argparse.Namespace) -> "AnswerSource":
    from basestation.shell.station import StationSource

    client = client_of(args)
    return StationSource(client, f"station at {client.url}", lambda text: print(text, file=sys.stderr, flush=True))
