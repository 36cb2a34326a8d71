"""moteloom job: try queries in processes beside a running station, watch them, fetch their results, cancel and delete them."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from basestation.cli.station_arguments import add_station, client_of, print_station_error, run_verb

if TYPE_CHECKING:
    from moteloom.client import StationJob

HELP = "try a query on simulated motes or over rows beside a running station; list, watch, cancel or delete such jobs"
EXAMPLE = "moteloom job trial --for 10min --watch 'SELECT AVG(temp) AS mean FROM lab [NOW]'"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = f"""exit codes: 0 done, 1 the job failed or was cancelled, 2 refused, 3 a file that cannot be taken,
  4 no station answers

example:
  {EXAMPLE}
  moteloom job trial --rows road=rows.jsonl 'SELECT MIN(temp) AS coldest FROM road [NOW]'
  moteloom job list
  moteloom job results 1 -o json > trial.jsonl"""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    trial = verbs.add_parser("trial", help="try a query; prints the number of the job")
    group = trial.add_mutually_exclusive_group(required=True)
    group.add_argument("query", nargs="?", metavar="QUERY", help="SNEEql text")
    group.add_argument("-f", "--file", metavar="FILE", help="read the text from a file; `-` is standard input")
    trial.add_argument(
        "--for", dest="span", default="1h", metavar="SPAN", help="simulate so long; default: %(default)s"
    )
    trial.add_argument("--seed", type=int, default=1, metavar="N", help="of chance in the simulation; default: 1")
    trial.add_argument(
        "--rows", action="append", type=_parse_rows, metavar="EXTENT=FILE",
        help="no motes: answer over the rows of a file, JSON lines or an array of objects with `_tick`",
    )  # fmt: skip
    trial.add_argument("--watch", action="store_true", help="go on as `watch` does")
    verbs.add_parser("list", help="your jobs and their states")
    for name, help in (
        ("show", "one job: its state, its progress, and why it failed"),
        ("watch", "print results as they come, to the end of the job"),
        ("results", "print the results that a job has so far"),
        ("cancel", "end a job; the results that it has stay"),
        ("delete", "end a job, and forget it with its results"),
    ):
        verb = verbs.add_parser(name, help=help)
        verb.add_argument("number", type=int, metavar="NUMBER")
        if name in ("watch", "results"):
            verb.add_argument("--after", type=int, default=0, metavar="N", help="leave the first N lines out")
    for verb in verbs.choices.values():
        add_station(verb)


def _parse_rows(text: str) -> tuple[str, str]:
    extent, _, path = text.partition("=")
    if not extent or not path:
        raise argparse.ArgumentTypeError(f"expected EXTENT=FILE, found `{text[:40]}`")
    return extent, path


def run(options: argparse.Namespace) -> int:
    """Run the command; the exit code."""
    return run_verb(_VERBS, options)


def _trial(options: argparse.Namespace) -> int:
    from basestation.cli.query_arguments import query_text

    text, _ = query_text(options)
    rows = None if options.rows is None else {extent: _read_rows(path) for extent, path in options.rows}
    job = client_of(options).start_trial(text, options.span, options.seed, rows)
    if options.watch:
        return _follow(job, 0, options)
    print(json.dumps(job.description) if options.output == "json" else job.number)
    return 0


def _read_rows(path: str) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines, or of an array. InputError where it has anything else."""
    from acquisition.errors import InputError
    from basestation.cli.query_arguments import read

    text = read(path)
    try:
        is_array = text.lstrip().startswith("[")
        rows = json.loads(text) if is_array else [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError) as why:
        raise InputError("SN502", f"expected JSON lines or an array of objects: {why}", path) from None
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise InputError("SN502", "expected an object", path, number)
    return list(rows)


def _list(options: argparse.Namespace) -> int:
    for job in client_of(options).jobs():
        print(json.dumps(job.description) if options.output == "json" else _line(job.description))
    return 0


def _show(options: argparse.Namespace) -> int:
    _print_job(client_of(options).job(options.number), options)
    return 0


def _watch(options: argparse.Namespace) -> int:
    return _follow(client_of(options).job(options.number), options.after, options)


def _results(options: argparse.Namespace) -> int:
    job, after, show = client_of(options).job(options.number), options.after, _make_printer(options)
    while (page := job.page(after)).lines:
        show(page.lines)
        after = page.next
    return 0


def _cancel(options: argparse.Namespace) -> int:
    job = client_of(options).job(options.number)
    job.cancel()
    _print_job(job, options)
    return 0


def _delete(options: argparse.Namespace) -> int:
    client_of(options).job(options.number).delete()
    return 0


def _follow(job: "StationJob", after: int, options: argparse.Namespace) -> int:
    """Print the lines of a job to its end, with its progress on a terminal; the exit code says how it ended."""
    from gateway.cli import FAILED
    from gateway.cli.terminal import write_control
    from moteloom.client import StationError

    show, has_progress = _make_printer(options), sys.stderr.isatty()
    try:
        for lines in job.pages(after):
            if has_progress:
                write_control(sys.stderr, "\r\x1b[K")
            show(lines)
            if has_progress:
                print(_describe(job.description), end="", file=sys.stderr, flush=True)
    except StationError as error:
        if has_progress:
            write_control(sys.stderr, "\r\x1b[K")
        code = print_station_error(error, options.output == "json")
        return FAILED if job.description["state"] in ("failed", "cancelled") else code
    if has_progress:
        write_control(sys.stderr, "\r\x1b[K")
    return 0


def _make_printer(options: argparse.Namespace) -> Callable[[Iterable[Mapping[str, Any]]], None]:
    """A function that prints lines: a table that grows, with the figures of the run on standard error, or JSON."""
    from basestation.shell.answer_table import AnswerTable

    table = AnswerTable()

    def show(lines: Iterable[Mapping[str, Any]]) -> None:
        for line in lines:
            if options.output == "json":
                print(json.dumps(line, ensure_ascii=False))
                continue
            for text in table.lines(line):
                print(text)
            for text in _figures(line):
                print(text, file=sys.stderr)
        sys.stdout.flush()

    return show


def _figures(line: Mapping[str, Any]) -> list[str]:
    """The figures of a simulation, one a line."""
    if line["type"] != "run":
        return []
    found = {name: value for name, value in line["figures"].items() if value is not None}
    return [f"{name:<34}{value:>16,.4g}" for name, value in found.items()]


def _print_job(job: "StationJob", options: argparse.Namespace) -> None:
    if options.output == "json":
        print(json.dumps(job.description))
        return
    print(_line(job.description))
    if job.description["problem"]:
        problem = job.description["problem"]
        print(f"  {problem['title']}{f'; {detail}' if (detail := problem.get('detail')) else ''}")


def _line(job: Mapping[str, Any]) -> str:
    """A job as one line: number, state, progress, the text of its query."""
    return f"{_describe(job)}  {' '.join(job['request']['text'].split())}"


def _describe(job: Mapping[str, Any]) -> str:
    return f"{job['number']:>4}  {job['kind']}  {job['state']:<10}{job['progress']:>5.0%}"


_VERBS = {
    "trial": _trial, "list": _list, "show": _show, "watch": _watch, "results": _results, "cancel": _cancel, "delete": _delete,
}  # fmt: skip
