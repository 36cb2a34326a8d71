"""The command `moteloom`: finds a verb by its name and runs it.

A verb is a module registered in the entry-point group `moteloom.verbs`. It has

    HELP: str            one line for `moteloom --help`
    configure(parser)    adds its arguments to an argparse parser; the parser's epilog shows an example
    run(args) -> int     does the work and returns the exit code
    LOG_LEVEL: str       where it has one, the level from which on it logs if no option says another
    LEAST_MEMORY: int    where it has one, the bytes of address space (`ulimit -v`) that its libraries need

It imports heavy libraries inside `run`, because `moteloom --help` imports every verb. Every verb also has the options
`-v` and `--log-level`. Exit codes: 0 done, 1 failed, 2 misused, 130 interrupted, 141 the reader of the output closed the pipe.
"""

import argparse
import difflib
import io
import os
import re
import resource
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any, NoReturn, Protocol

from gateway.cli.terminal import PrintableStream
from gateway.errors import MoteloomError
from gateway.log import DEFAULT_LEVEL, FORMATS, LEVELS, configure_logging, get_log

VERBS = "moteloom.verbs"
FAILED, MISUSED, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141
OUT_OF_MEMORY = "moteloom: out of memory; free some, raise the limit (`ulimit -v`), or give less input"
NO_THREAD = "moteloom: a thread could not be started; there are too many (`ulimit -u`) or too little memory (`ulimit -v`): raise the limit"
USAGE = "usage: moteloom [--help] [--version] VERB ..."

_SIGNS_OF_NO_MEMORY = "failed to map segment", "cannot allocate memory"
"""Words in the messages of other errors when memory ran out: of shared libraries and of the system."""
_SIGNS_OF_NO_THREAD = "failed to launch worker thread", "can't start new thread"
"""Words in the messages of Arrow and Python."""

log = get_log(__name__)


class Verb(Protocol):
    """A module registered as a verb, as described above."""

    HELP: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the verb."""

    def run(self, args: argparse.Namespace) -> int:
        """Do the work; return the exit code."""


def main(arguments: list[str] | None = None) -> int:
    """Run one verb, by default that of the command line; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    _prepare_streams()
    try:
        code = dispatch(arguments, {entry.name: entry for entry in entry_points(group=VERBS)})
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except MoteloomError as error:
        print(f"moteloom: {error}", file=sys.stderr)
        return FAILED
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        print(f"moteloom: {place}{error.strerror or error}", file=sys.stderr)
        _discard_output()
        return FAILED
    except Exception as error:
        message = _message_of(error)
        if message is None:
            raise
        print(message, file=sys.stderr)
        sys.stderr.flush()
        os._exit(FAILED)  # a library that is loaded by half may crash when the interpreter ends


def _expect_memory(verb: str, least: int) -> None:
    """Raise MoteloomError under a limit that libraries do not survive: some crash while they are loaded.

    Under a higher limit, Arrow takes memory as it needs it. By default it reserves 1 GB of address space.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    if limit < least:
        needed = f"`{verb}` needs {least // 1_000_000} MB of address space, the limit is {limit // 1_000_000} MB"
        raise MoteloomError(f"{needed}; raise it: `ulimit -v {-(-least // 1024)}`, or unlimited")
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def _message_of(error: Exception) -> str | None:
    """The message for an error because of a limit of the system, perhaps while a library was loaded; None if it is another error."""
    words = str(error).lower()
    if any(sign in words for sign in _SIGNS_OF_NO_THREAD):
        return NO_THREAD
    return (
        OUT_OF_MEMORY if isinstance(error, MemoryError) or any(sign in words for sign in _SIGNS_OF_NO_MEMORY) else None
    )


def _discard_output() -> None:
    """Redirect standard output to nowhere: the interpreter flushes it once more at exit, and would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _prepare_streams() -> None:
    """Replace a closed stream by one to nowhere; print characters as escapes that a stream cannot encode.

    Neither messages nor a terminal get control characters; files and pipes get the data as it is.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        elif hasattr(stream, "reconfigure"):
            if isinstance(stream.buffer, io.RawIOBase):  # PYTHONUNBUFFERED: text after a partial write would be lost
                stream = open(stream.fileno(), "w", buffering=1, encoding=stream.encoding, closefd=False)
                setattr(sys, name, stream)
            stream.reconfigure(errors="backslashreplace")
            if not isinstance(stream, PrintableStream) and (name == "stderr" or stream.isatty()):
                setattr(sys, name, PrintableStream(stream))


def dispatch(arguments: list[str], verbs: Mapping[str, EntryPoint]) -> int:
    """Run the verb that the first argument names with the other arguments; return the exit code.

    Without arguments, a terminal gets the shell, everything else the overview.
    """
    if not arguments and "shell" in verbs and sys.stdin.isatty() and sys.stdout.isatty():
        arguments = ["shell"]
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
    verb: Verb = verbs[first].load()
    args = parser_of(first, verb).parse_args(rest)
    _expect_memory(first, getattr(verb, "LEAST_MEMORY", 0))
    configure_logging("debug" if args.verbose > 1 else "info" if args.verbose else args.log_level, args.log)
    log.info("verb started", verb=first)
    code = verb.run(args)
    log.info("verb finished", verb=first, code=code)
    return code


def parser_of(name: str, verb: Verb) -> argparse.ArgumentParser:
    """Return the parser of one verb, with its own arguments and the common ones."""
    parser = VerbParser(
        prog=f"moteloom {name}", description=verb.HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verb.configure(parser)
    logging = parser.add_argument_group("logging, a line for each event on standard error")
    logging.add_argument("-v", "--verbose", action="count", default=0, help="log normal operation; twice: details")
    level = getattr(verb, "LOG_LEVEL", DEFAULT_LEVEL)
    logging.add_argument("--log-level", choices=LEVELS, default=level, help=f"log events from this level on ({level})")
    logging.add_argument("--log", choices=FORMATS, default="text", help="key=value pairs, or JSON (text)")
    return parser


class VerbParser(argparse.ArgumentParser):
    """A parser that names the option that was meant."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = _join_negative(sys.argv[1:] if args is None else list(args))
        return super().parse_known_args(self._given, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and leave with exit code 2."""
        options = [option for action in self._actions for option in action.option_strings if option.startswith("--")]
        for given in self._given:
            name = given.partition("=")[0]
            known = any(option.startswith(name) for option in options)  # an abbreviation is allowed
            close = difflib.get_close_matches(name, options, n=1) if name.startswith("--") and not known else []
            if close:
                message = f"unknown option {name}; did you mean {close[0]}?"
                break
        super().error(message)


def _join_negative(given: Sequence[str]) -> list[str]:
    """Return arguments in which `--from -2h` is `--from=-2h`: argparse takes a text that begins with `-` for an option."""
    joined: list[str] = []
    for text in given:
        last = joined[-1] if joined else ""
        if last.startswith("--") and "=" not in last and "--" not in joined and re.match(r"-\d", text):
            joined[-1] = f"{last}={text}"
        else:
            joined.append(text)
    return joined


def overview(verbs: Mapping[str, EntryPoint]) -> str:
    """Return the text of `moteloom --help`."""
    width = max((len(name) for name in verbs), default=0)
    lines = [USAGE, "", "Query a network of sensor motes; every answer says how complete it is.", "", "verbs:"]
    lines += [f"  {name:<{width}}  {help_line(verbs[name])}" for name in sorted(verbs)]
    lines += ["", "`moteloom VERB --help` explains one verb."]
    return "\n".join(lines)


def help_line(entry: EntryPoint) -> str:
    """Return the help line of a verb; a verb that cannot be imported must not break the help of the others."""
    try:
        verb: Verb = entry.load()
        return verb.HELP
    except ImportError as error:
        return f"(not available: {error})"


def unknown_verb_message(name: str, verbs: Mapping[str, EntryPoint]) -> str:
    """Return the message for a verb or option that does not exist, with the nearest verb."""
    what = "option" if name.startswith("-") else "verb"
    close = difflib.get_close_matches(name, verbs, n=1)
    hint = f"did you mean `moteloom {close[0]}`?" if close else "`moteloom --help` lists the verbs"
    return f"moteloom: unknown {what} `{name}`; {hint}"


def own_version() -> str:
    """Return the version of the installed distribution."""
    try:
        return version("moteloom")
    except PackageNotFoundError:
        return "(not installed)"
