"""The files of a trial. Each has the suffix `.part` until all of them are complete."""

from pathlib import Path
from typing import TextIO

PART = ".part"
NAMES = ("answers.jsonl", "trace.txt", "motes.csv", "ledger.json")


class TrialFiles:
    """A folder for the files of one trial. Files of an earlier trial are removed, so a folder never mixes two of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: list[TextIO] = []
        folder.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            (folder / name).unlink(missing_ok=True)

    def open(self, name: str) -> TextIO:
        """Open the unfinished file of that name."""
        self._open.append((self._folder / f"{name}{PART}").open("w", encoding="utf-8", newline=""))
        return self._open[-1]

    def close(self) -> None:
        """Close all files; they stay unfinished. Raises OSError if one cannot be written, with all of them closed."""
        failed = None
        while self._open:
            try:
                self._open.pop().close()
            except OSError as error:
                failed = error
        if failed:
            raise failed

    def publish(self) -> None:
        """Close all files, and remove the suffix of each."""
        self.close()
        for name in NAMES:
            (self._folder / f"{name}{PART}").rename(self._folder / name)
