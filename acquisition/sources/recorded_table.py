"""Recorded: the columns of one input as they were found, before anybody has looked at what they should be."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from acquisition.errors import InputError


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """Named columns of one length: Arrow arrays, or lists of Python values.

    `name` is what errors call the input. `text` says that values stand as the text of a CSV file, so that `12` may become
    an integer; elsewhere a string is a string. `partial` says that a row may leave attributes out (dictionaries may).
    """

    name: str
    columns: Mapping[str, object]
    length: int
    text: bool = False
    partial: bool = False

    def __len__(self):
        return self.length

    def expect(self, known, ignored=()):
        """Refuse columns that nobody knows; a misspelt name is worse than a missing one."""
        for column in self.columns:
            if column not in known and column not in ignored:
                raise InputError(
                    "SN504",
                    f"there is no column `{column}` here",
                    self.name,
                    help=suggest_column(column, known) or list_columns(known),
                )

    def missing(self, column, why):
        return InputError("SN505", f"the column `{column}` is missing: {why}", self.name)


def suggest_column(word, candidates):
    """The help that names the nearest candidate, or None if nothing is near."""
    folded = {candidate.lower(): candidate for candidate in reversed(list(candidates))}
    found = get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return f"did you mean `{folded[found[0]]}`?" if found else None


def list_columns(candidates):
    return "columns are " + ", ".join(f"`{c}`" for c in candidates)


def unique_names(names, file):
    """Refuse a header that has a name twice: one of the columns would be lost."""
    seen = set()
    for name in names:
        if name in seen:
            raise InputError("SN503", f"the column `{name}` stands twice in the header", file)
        seen.add(name)
    return names
