"""Reads and renders golden files (.test): a schema, its inputs, and cases with expected sections.

    # why this file exists
    schema
    road: sensed (site:integer, temp:integer) every 1 min at sites 1, 2

    input road
    _tick,site,temp
    0,1,20

    ledger
    ----
      until 0
      road: received 1, accepted 1

    query coldest
    SELECT MIN(temp) FROM road [NOW]
    ---- plan
      window query: MIN(temp):integer
      …
    ---- motes
      road: 12 measured, 4 sent, 8 filtered
    ---- answer
      tick=0 revision=0 coverage=road 1/2 +(20)

    error unknown_column
    SELECT tmep FROM road
    ----
      SN202: …

    error declared_twice in schema
    t: stored (a:integer, a:float)
    ----
      SN208: …

A block begins with its keyword at the start of a line and ends at the next block or comment (`#`). Expected sections are indented
by two spaces, so they never look like a block. Inputs are CSV as for `moteloom replay`; `input tempClass@600` is a later version
of a table. `tests.golden.answer_lines` defines the section `answer`, `tests.simulation.golden_on_motes` the section `motes`. A
query that this version cannot execute has `later: ` and the reason.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

_HEAD = re.compile(r"(schema|input|ledger|query|error)(?: +(\S+))?( +in schema)?\s*(?:#.*)?$")
_CASES = ("ledger", "query", "error")
_EXPECTED = re.compile(r"----(?: +(\w+))?\s*$")


@dataclass
class Case:
    """One query or error of a file, or its ledger; `expected` maps the name of a section to its text.

    The text of an error `in_schema` is a schema of its own; the other texts use the schema of the file.
    """

    word: str
    name: str
    text: str
    in_schema: bool = False
    expected: dict[str, str] = field(default_factory=dict)


@dataclass
class GoldenFile:
    path: Path
    schema: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def ledger(self):
        """The lines of the ledger, one for each extent."""
        return self._ledger()[1:]

    def until(self):
        """The last clock tick of the file."""
        return int(self._ledger()[0].removeprefix("until "))

    def _ledger(self):
        return next(c.expected[""] for c in self.cases if c.word == "ledger").splitlines()

    def render(self):
        """The text of the file with the current expected sections."""
        out, cases, skipping = [], iter(self.cases), False
        case = None
        for line in self.lines:
            head = _HEAD.match(line)
            if head or _is_comment(line):
                if case is not None:
                    _close(out, case)
                case = next(cases) if head and head[1] in _CASES else None
                skipping = False
            if case is not None and _EXPECTED.match(line):
                skipping = True
            if not skipping:
                out.append(line)
        if case is not None:
            _close(out, case)
        return "\n".join(out).rstrip() + "\n"


def _is_comment(line):
    return line.startswith("#")


def _close(out, case):
    """Append the expected sections of a case to its text, without blank lines between."""
    while out and not out[-1].strip():
        out.pop()
    out += _expected_lines(case)


def _expected_lines(case):
    lines = []
    for name, text in case.expected.items():
        lines.append(f"---- {name}".rstrip())
        lines += [f"  {line}".rstrip() for line in text.splitlines()]
    return [*lines, ""]


def read_golden(path):
    """A GoldenFile; ValueError with the line where it is not one."""
    golden = GoldenFile(Path(path), lines=Path(path).read_text(encoding="utf-8").splitlines())
    block, section, case = [], None, None

    def close():
        text = "\n".join(block).strip("\n")
        if case is None:
            return
        if section is None:
            case.text = text
        else:
            case.expected[section] = "\n".join(line.removeprefix("  ") for line in text.split("\n"))

    names = set()
    for number, line in enumerate(golden.lines, 1):
        head, expected = _HEAD.match(line), _EXPECTED.match(line)
        if head or _is_comment(line):
            close()
            block, section, case = [], None, None
            if not head:
                continue
            word, name = head[1], head[2]
            if word in _CASES:
                name = name or (word if word == "ledger" else None)
                if not name or name in names:
                    raise ValueError(f"{path}:{number}: a {word} needs a name of its own")
                names.add(name)
                case = Case(word, name, "", bool(head[3]))
                golden.cases.append(case)
            elif word == "input":
                block = golden.inputs[name] = []
            else:
                block = golden.schema = []
        elif expected and case is not None:
            close()
            block, section = [], expected[1] or ""
        else:
            block.append(line)
    close()
    golden.schema = "\n".join(golden.schema).strip() + "\n"
    golden.inputs = {name: "\n".join(lines).strip() + "\n" for name, lines in golden.inputs.items()}
    return golden


def golden_files(folder):
    return sorted(Path(folder).glob("*.test"))
