"""The one reader of documentation pages: their fenced blocks with what stands behind the fence, and the lines around."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_CODE = re.compile(r"\s+-- (SN\d{3}(?: SN\d{3})*)\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its first word, the rest of that line, the text, and the line on which the text begins."""

    language: str
    about: str
    text: str
    line: int

    @property
    def id(self):
        return f"line-{self.line}"


def blocks(page, *languages):
    """The fenced blocks of a page in order, of these languages (of all if none is named)."""
    found, fence, lines = [], None, []
    for number, line in enumerate(Path(page).read_text(encoding="utf-8").splitlines(), 1):
        if fence is None and line.startswith("```"):
            language, _, about = line[3:].partition(" ")
            fence, lines = (language, about.strip(), number + 1), []
        elif fence is not None and line == "```":
            found.append(Block(fence[0], fence[1], "\n".join(lines) + "\n", fence[2]))
            fence = None
        elif fence is not None:
            lines.append(line)
    assert fence is None, f"{page}: the block at line {fence[2]} has no end"
    return [block for block in found if not languages or block.language in languages]


def refusals(page, language):
    """(text, expected codes, line) of each line of the blocks that hold what is refused: `text -- CODE`."""
    for block in blocks(page, language):
        for number, line in enumerate(block.text.splitlines(), block.line):
            found = _CODE.search(line)
            assert found, f"{page}:{number} does not say its code"
            yield line[: found.start()], found[1].split(), number


def tables(page):
    """Every table of a page, as rows of cells without the rule below the head."""
    found, rows = [], []
    for line in [*Path(page).read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                rows.append(cells)
        elif rows:
            found.append(rows)
            rows = []
    return found


def rows_of(text, strings=()):
    """CSV in the format of a replay as the oracle takes it: whole numbers but in the columns named, empty is null."""
    return [
        {name: _value(value, name in strings) for name, value in row.items()}
        for row in csv.DictReader(text.splitlines())
    ]


def _value(text, string):
    return None if text == "" else text if string else int(text)
