"""Count private language in code and pages, and fail where a count rises above its limit.

    python tools/ratchet.py                  # one line per rule: count and limit
    python tools/ratchet.py --list innet     # every place below a path, to mend it
    python tools/ratchet.py --lower          # write today's counts as the new limits

The rules are those of docs/naming.md: words that describe people used for data, sentences that begin with a relative
"What" or "Who", and names from the left column of its tables. Limits stand in tools/ratchet.toml and only fall.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIMITS = ROOT / "tools" / "ratchet.toml"
NAMING = ROOT / "docs" / "naming.md"
PACKAGES = ("gateway", "acquisition", "innet", "basestation", "simulator", "moteloom")
LEFT_OUT = ("docs/naming.md", "docs/decisions/", "tools/ratchet", "tests/docs/test_naming_page.py", "bench/results/")
"""The naming page lists the old words, decision pages quote them."""

PEOPLE = re.compile(r"\b(nobody|somebody|whoever|whom|everybody|anybody)\b", re.IGNORECASE)
SPEECH = re.compile(
    r"\b(told|(is|are|was|were|be|been|being) said|heard of|(lets?|letting) go of|wants? it|who(m)? (has|have) been asked)\b",
    re.IGNORECASE,
)
RELATIVE_WORD = re.compile(r"\b(What|Who)\b")
RELATIVE = re.compile(r"(?:^|(?<=[.:!?] )|(?<=\n\n))(What|Who)\b(?![^.!?\n]*\?)", re.MULTILINE)

CLASS = re.compile(r"(?<![\w.])_?[A-Z]\w*[a-z]\w*\b(?![.(])")
QUOTED = re.compile(r"`([^`]+)`")


class Place(NamedTuple):
    """One line that breaks a rule."""

    rule: str
    path: str
    line: int
    text: str


def tracked(*patterns: str) -> list[str]:
    """The files that git tracks, without those that quote old words on purpose."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted({name for name in names if not name.startswith(LEFT_OUT) and (ROOT / name).is_file()})


def prose_of_python(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each comment, docstring and other string of a module."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
        elif token.type == tokenize.STRING:
            yield token.start[0], token.string.strip("rbfu\"'")


def prose_of_page(text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each line of a page."""
    yield from enumerate(text.splitlines(), 1)


def words(path: str) -> Iterator[Place]:
    """The places of one file where its prose breaks a rule."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if not any(pattern.search(text) for pattern in (PEOPLE, SPEECH, RELATIVE_WORD)):
        return
    for first, prose in prose_of_python(text) if path.endswith(".py") else prose_of_page(text):
        for rule, pattern in (("people", PEOPLE), ("speech", SPEECH), ("relative", RELATIVE)):
            for found in pattern.finditer(prose):
                line = first + prose.count("\n", 0, found.start())
                yield Place(rule, path, line, text.splitlines()[line - 1].strip())


class Section(NamedTuple):
    """One table of the naming page: its folders, the names before and the names now."""

    folders: tuple[str, ...]
    before: frozenset[str]
    now: frozenset[str]


def classes(cells: str) -> frozenset[str]:
    """The names of classes in backticks. `Class.member` names the member."""
    return frozenset(name for quoted in QUOTED.findall(cells) for name in CLASS.findall(quoted))


def sections() -> list[Section]:
    """The tables of docs/naming.md."""
    found = []
    for part in re.split(r"^## ", NAMING.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        opening = re.search(r"^In ((?:`[\w/]+`(?:, )?)+)\.$", part, re.MULTILINE)
        if opening is None:
            continue
        rows = [line.split("|")[1:3] for line in part.splitlines() if line.startswith("| ")]
        before, now = (classes(" ".join(row[column] for row in rows)) for column in (0, 1))
        found.append(Section(tuple(re.findall(r"`([\w/]+)`", opening[1])), before - now, now))
    return found


def names(path: str, tables: list[Section]) -> Iterator[Place]:
    """Classes of one module that have a name which the naming page retired in its folder."""
    forbidden = {name for table in tables if path.startswith(table.folders) for name in table.before}
    if not forbidden:
        return
    text = (ROOT / path).read_text(encoding="utf-8")
    may_define = not forbidden.isdisjoint(re.findall(r"\bclass\s+(\w+)", text))
    for node in ast.walk(ast.parse(text)) if may_define else ():
        if isinstance(node, ast.ClassDef) and node.name in forbidden:
            yield Place("old names", path, node.lineno, text.splitlines()[node.lineno - 1].strip())


def shared_classes() -> Iterator[Place]:
    """Classes whose name another package has too, unless the naming page states the cause under "Shared names"."""
    shared = NAMING.read_text(encoding="utf-8").partition("## Shared names")[2]
    excused = classes(" ".join(line.split("|")[1] for line in shared.splitlines() if line.startswith("| ")))
    found: dict[str, list[tuple[str, int]]] = {}
    for path in tracked(*(f"{package}/*.py" for package in PACKAGES)):
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append((path, node.lineno))
    for name, places in sorted(found.items()):
        if len({path for path, _ in places}) > 1 and name not in excused:
            others = ", ".join(path for path, _ in places)
            yield Place("shared classes", places[0][0], places[0][1], f"class {name}: {others}")


def long_test_names() -> Iterator[Place]:
    """Tests whose name has more than 60 characters."""
    for path in tracked("tests/*.py"):
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and len(node.name) > 60:
                yield Place("long test names", path, node.lineno, node.name)


def places() -> list[Place]:
    """Every place of the tree that breaks a rule."""
    tables = sections()
    python, pages = tracked("*.py"), tracked("*.md")
    found = [place for path in (*python, *pages) for place in words(path)]
    found += [place for path in python if path.startswith(PACKAGES) for place in names(path, tables)]
    return [*found, *shared_classes(), *long_test_names()]


def counts(found: list[Place]) -> dict[str, int]:
    """How many places each rule has; prose of tests is counted apart from that of the product."""
    result: dict[str, int] = {}
    for place in found:
        is_test = place.path.startswith(("tests/", "bench/", "tools/")) and place.rule in (
            "people",
            "speech",
            "relative",
        )
        rule = f"{place.rule} in tests" if is_test else place.rule
        result[rule] = result.get(rule, 0) + 1
    return result


def limits() -> dict[str, int]:
    """The greatest count that each rule may have; a rule without a limit may have none."""
    found: dict[str, int] = tomllib.loads(LIMITS.read_text(encoding="utf-8")).get("limits", {})
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print counts, places or new limits; 1 where a count is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", metavar="PATH", help="print every place below PATH")
    parser.add_argument("--lower", action="store_true", help="write the counts as new limits")
    options = parser.parse_args(arguments)
    found = places()
    if options.list is not None:
        for place in found:
            if options.list == "." or place.path.startswith(options.list):
                print(f"{place.path}:{place.line}: {place.rule}: {place.text[:110]}")
        return 0
    now, allowed = counts(found), limits()
    if options.lower:
        lowered = {rule: min(count, allowed.get(rule, 0)) for rule, count in sorted(now.items())}
        lines = [f'"{rule}" = {limit}' for rule, limit in lowered.items() if limit]  # a rule without a limit stays at 0
        LIMITS.write_text(
            "# Written by `python tools/ratchet.py --lower`. Limits only fall.\n[limits]\n" + "\n".join(lines) + "\n"
        )
        return 0
    above = False
    for rule in sorted({*now, *allowed}):
        count, limit = now.get(rule, 0), allowed.get(rule, 0)
        above |= count > limit
        advice = (
            "  too many: mend the new ones (--list .)"
            if count > limit
            else "  fell: run --lower"
            if count < limit
            else ""
        )
        print(f"{rule:<20} {count:>5}, limit {limit}{advice}")
    return int(above)


if __name__ == "__main__":
    sys.exit(main())
