"""FileCheck: looks for damage in the whole file of a station while the station runs.

A start reads all tables but the results, and checks those before it. The results are nearly the whole file, and reading them
takes minutes on slow disks (docs/decisions/0191).
"""

import sqlite3
import threading
from pathlib import Path

from basestation.station.journal_file import RESTORE, find_damage


class FileCheck:
    """Reads a file once, in a thread of its own; commits go on meanwhile.

    `problem` says what is wrong with the file and how to mend it; it is None as long as nothing was found.
    """

    problem: str | None

    def __init__(self, path: Path) -> None:
        self._path, self.problem = path, None
        self._database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self._thread = threading.Thread(target=self._run, name="file check", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when the whole file was read."""
        self._thread.join()

    def close(self) -> None:
        """End the check, whether it has read the whole file or not."""
        while self._thread.is_alive():
            self._database.interrupt()  # it ends a statement that runs, and not one that is about to begin
            self._thread.join(timeout=0.05)
        self._database.close()

    def _run(self) -> None:
        try:
            found = find_damage(self._database)
        except sqlite3.OperationalError as why:
            found = None if str(why) == "interrupted" else f"it cannot be read: {why}"
        if found is not None:
            self.problem = f"{self._path} is damaged: {found}; {RESTORE}"
