"""The command `moteloom`: finds a verb by its name and runs it.

A verb is a module registered in the entry-point group `moteloom.verbs`. It has

    HELP: str            one line, shown in `moteloom --help`
    configure(parser)    adds its arguments to an argparse parser; the parser's epilog shows an example
    run(args) -> int     does the work and returns the exit code

and imports nothing heavy outside `run`, because `moteloom --help` imports every verb.
Exit codes: 0 done, 1 failed, 2 misused, 130 interrupted, 141 the reader of our output went away.
"""

import argparse
import difflib
import os
import sys
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from types import ModuleType

VERBS = "moteloom.verbs"
FAILED, MISUSED, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141
USAGE = "usage: moteloom [--help] [--version] VERB ..."


def main(arguments: list[str] | None = None) -> int:
    """Run one verb. Called by the console script; its return value is the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    _prepare_streams()
    try:
        code = dispatch(arguments, {entry.name: entry for entry in entry_points(group=VERBS)})
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes standard output once more at exit and would complain; let it flush into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as why:
        print(f"moteloom: {why.strerror or why}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _prepare_streams() -> None:
    """A stream that was closed swallows what it is told; one that cannot say a letter says its code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def dispatch(arguments: list[str], verbs: dict[str, EntryPoint]) -> int:
    """Hand the arguments to the verb that they name first."""
    if not arguments:
        print(overview(verbs), file=sys.stderr)
        return MISUSED
    first, rest = arguments[0], arguments[1:]
    if first in ("-h", "--help", "help"):
        print(overview(verbs))
        return 0
    if first in ("-V", "--version"):
        print(f"moteloom {own_version()}")
        return 0
    if first not in verbs:
        print(unknown_verb_message(first, verbs), file=sys.stderr)
        return MISUSED
    verb = verbs[first].load()
    return verb.run(parser_of(first, verb).parse_args(rest))


def parser_of(name: str, verb: ModuleType) -> argparse.ArgumentParser:
    """The parser of one verb, with its arguments."""
    parser = argparse.ArgumentParser(
        prog=f"moteloom {name}", description=verb.HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verb.configure(parser)
    return parser


def overview(verbs: dict[str, EntryPoint]) -> str:
    """The text of `moteloom --help`."""
    width = max((len(name) for name in verbs), default=0)
    lines = [USAGE, "", "Query a network of sensor motes; every answer says how complete it is.", "", "verbs:"]
    lines += [f"  {name:<{width}}  {help_line(verbs[name])}" for name in sorted(verbs)]
    lines += ["", "`moteloom VERB --help` explains one verb."]
    return "\n".join(lines)


def help_line(entry: EntryPoint) -> str:
    """What a verb says about itself; one that cannot be imported must not take the others' help away."""
    try:
        return entry.load().HELP
    except ImportError as error:
        return f"(not available: {error})"


def unknown_verb_message(name: str, verbs: dict[str, EntryPoint]) -> str:
    """What is said about a verb that does not exist."""
    what = "option" if name.startswith("-") else "verb"
    close = difflib.get_close_matches(name, verbs, n=1)
    hint = f"did you mean `moteloom {close[0]}`?" if close else "`moteloom --help` lists what there is."
    return f"moteloom: there is no {what} `{name}`; {hint}"


def own_version() -> str:
    try:
        return version("moteloom")
    except PackageNotFoundError:
        return "(not installed)"
