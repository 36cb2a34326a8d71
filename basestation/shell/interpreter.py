"""Interpreter: carries out statements and commands of a shell, on any source and any pair of streams."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from acquisition.errors import InputError
from basestation.language.lexer import NUMBER, STRING, tokenize
from basestation.language.parser import parse
from basestation.language.syntax import Explain
from basestation.shell.answer_source import AnswerSource, Line
from basestation.shell.answer_table import AnswerTable
from basestation.shell.chart import Chart
from gateway.cli.terminal import write_control
from gateway.diagnostics import DiagnosticError
from gateway.errors import MoteloomError
from gateway.source import Source, did_you_mean
from moteloom.client import StationError

HELP = """\
  QUERY;              run a statement and show its answers; Ctrl-C ends it
  \\d [EXTENT]         list extents, or the columns of one with types and units
  \\x                  show one column a line, or rows again
  \\timing             show how long each statement takes, or no more
  \\explain QUERY      what a query means and how it runs
  \\plot QUERY|NUMBER  draw the numbers of the answers over time
  \\i FILE             run the statements and commands of a file
  \\l                  list the queries of the station
  \\submit QUERY       start a query that goes on without the shell
  \\try [SPAN] QUERY   try a query on simulated motes for a time such as 10min, 1h without one; Ctrl-C ends it
  \\watch NUMBER|NAME  show the answers of a query that runs; Ctrl-C ends the watching only
  \\stop, \\pause, \\resume NUMBER|NAME
  \\?                  this help
  \\q                  end the shell, as Ctrl-D does"""
_OPENING, _CLOSING = "([{", ")]}"


def is_complete(text: str) -> bool:
    """Whether a text is a command, or ends with a `;` outside of brackets and strings, or with an empty line."""
    if not text.strip() or text.lstrip().startswith("\\"):
        return True
    if text.endswith("\n"):
        return True
    words = [token.word for token in tokenize(Source(text))[0] if token.kind not in (STRING, NUMBER)]
    depth = sum((word in _OPENING) - (word in _CLOSING) for word in words if len(word) == 1)
    return len(words) > 1 and words[-2] == ";" and depth <= 0


class Interpreter:
    """`out` gets answers, `err` everything else. `has_failed` tells whether a statement or command was refused."""

    def __init__(self, source: AnswerSource, out: TextIO, err: TextIO, width: int | None = None) -> None:
        self._source, self._out, self._err = source, out, err
        self._width = width or shutil.get_terminal_size().columns
        self._is_expanded = self._is_timed = False
        self.has_failed = self.is_over = False

    def run(self, text: str) -> None:
        """Carry out a text: one command, or statements. Ctrl-C ends what runs and not the shell."""
        text = text.strip()
        if not text:
            return
        begin, is_timed = time.monotonic(), self._is_timed
        try:
            self._run(text)
            if is_timed and self._is_timed:
                self._say(f"Time: {(time.monotonic() - begin) * 1000:.1f} ms")
        except KeyboardInterrupt:
            self._say("")
        except DiagnosticError as error:
            self._fail(str(error))
        except InputError as error:
            self._fail(f"{error.code}: {error}{f'; {error.help}' if error.help else ''}")
        except StationError as error:
            found = error.problem.get("diagnostics")
            detail = error.problem.get("detail")
            rendered = [each["rendered"] for each in found or ()]
            self._fail("\n\n".join(rendered) or f"{error}{f'; {detail}' if detail else ''}")
        except MoteloomError as error:
            self._fail(str(error))

    def _run(self, text: str) -> None:
        if text.startswith("\\"):
            name, _, argument = text[1:].partition(" ")
            self._command(name.strip(), argument.strip())
            return
        for statement in _split(text):
            parsed = parse(Source(statement)).statements
            if len(parsed) == 1 and isinstance(parsed[0], Explain) and not parsed[0].analyze:
                span = parsed[0].ask.span
                self._print(self._source.explain(statement[span.start : span.end]))
            else:
                self._show(self._source.answers(statement))

    # --- commands ---

    def _command(self, name: str, argument: str) -> None:
        action = _COMMANDS.get(name)
        if action is None:
            hint = did_you_mean(name, list(_COMMANDS)) or "`\\?` lists the commands"
            self._fail(f"there is no command `\\{name[:40]}`; {hint}")
        elif name in _NEEDING and not argument:
            self._fail(f"`\\{name}` needs {_NEEDING[name]}")
        else:
            action(self, name, argument.rstrip(";").rstrip())

    def _help(self, name: str, argument: str) -> None:
        self._say(HELP)

    def _quit(self, name: str, argument: str) -> None:
        self.is_over = True

    def _describe(self, name: str, argument: str) -> None:
        catalog = self._source.catalog()
        if not argument:
            rows = [(each.name, str(each.kind), ", ".join(each.schema.names)) for each in catalog]
            self._table(("extent", "kind", "columns"), rows)
            return
        extent = catalog.find(argument)
        if extent is None:
            names = [each.name for each in catalog]
            hint = did_you_mean(argument, names) or f"extents are {', '.join(names)}"
            self._fail(f"there is no extent `{argument[:40]}`; {hint}")
            return
        self._table(
            ("column", "type", "unit"), [(each.name, str(each.type), each.unit or "") for each in extent.schema]
        )

    def _expand(self, name: str, argument: str) -> None:
        self._is_expanded = not self._is_expanded
        self._say(f"one column a line is {'on' if self._is_expanded else 'off'}")

    def _time(self, name: str, argument: str) -> None:
        self._is_timed = not self._is_timed
        self._say(f"timing is {'on' if self._is_timed else 'off'}")

    def _explain(self, name: str, argument: str) -> None:
        self._print(self._source.explain(argument))

    def _plot(self, name: str, argument: str) -> None:
        lines = self._source.watch(argument) if _is_query_name(argument) else self._source.answers(argument)
        chart, shown, is_live = Chart(), 0, self._out.isatty()
        drawn = time.monotonic()
        try:
            for line in lines:
                chart.add(line)
                if is_live and time.monotonic() - drawn > 0.2:
                    shown, drawn = self._draw(chart, shown), time.monotonic()
        finally:
            self._draw(chart, shown)

    def _draw(self, chart: Chart, shown: int) -> int:
        """Draw a chart over the lines that were shown before; return how many there are now."""
        lines = chart.lines(self._width)
        if shown:
            write_control(self._out, f"\x1b[{shown}A\x1b[J")
        self._print("\n".join(lines))
        return len(lines)

    def _include(self, name: str, argument: str) -> None:
        try:
            text = Path(argument).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as why:
            self._fail(f"{argument}: {getattr(why, 'strerror', None) or why}")
            return
        for each in split_script(text):
            self.run(each)

    def _watch(self, name: str, argument: str) -> None:
        self._show(self._source.watch(argument))

    def _try(self, name: str, argument: str) -> None:
        self._show(self._source.try_out(argument))

    def _manage(self, name: str, argument: str) -> None:
        for line in self._source.manage(name, argument):
            self._print(line)

    # --- output ---

    def _show(self, lines: Iterator[Line]) -> None:
        table = AnswerTable(self._is_expanded)
        for line in lines:
            if line["type"] == "note":
                self._say(line["message"])
            for text in table.lines(line):
                self._print(text)

    def _table(self, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
        widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
        for row in (head, *rows):
            self._print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def _print(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def _say(self, text: str) -> None:
        print(text, file=self._err, flush=True)

    def _fail(self, text: str) -> None:
        self.has_failed = True
        self._say(text)


def _split(text: str) -> list[str]:
    """The statements of a text, each behind blanks for the text before it, so that places of errors are those of the text."""
    parsed = parse(Source(text))
    if parsed.diagnostics or len(parsed.statements) < 2:
        return [text]
    blank = "".join(letter if letter == "\n" else " " for letter in text)
    return [blank[: each.span.start] + text[each.span.start : each.span.end] for each in parsed.statements]


def split_script(text: str) -> Iterator[str]:
    """The statements and commands of a text with several lines."""
    part = ""
    for line in text.splitlines():
        part = f"{part}\n{line}" if part.strip() else line
        if part.strip() and (is_complete(part) or not line.strip()):
            yield part
            part = ""
    if part.strip():
        yield part


def _is_query_name(argument: str) -> bool:
    return len(argument.split()) == 1 and "(" not in argument


_QUERY, _OF_STATION = "a query, such as `SELECT * FROM road`", "the number or name of a query; `\\l` lists them"
_NEEDING = {
    "explain": _QUERY, "plot": _QUERY, "submit": _QUERY, "try": _QUERY, "i": "the name of a file",
    "watch": _OF_STATION, "stop": _OF_STATION, "pause": _OF_STATION, "resume": _OF_STATION,
}  # fmt: skip
_COMMANDS: dict[str, Callable[[Interpreter, str, str], None]] = {
    "?": Interpreter._help, "q": Interpreter._quit, "d": Interpreter._describe, "x": Interpreter._expand,
    "timing": Interpreter._time, "explain": Interpreter._explain, "plot": Interpreter._plot, "i": Interpreter._include,
    "watch": Interpreter._watch, "try": Interpreter._try,
    **dict.fromkeys(("l", "submit", "stop", "pause", "resume"), Interpreter._manage),
}  # fmt: skip
COMMANDS = tuple(_COMMANDS)
