"""Check the subjects of commits: imperative mood, at most 72 characters, no full stop, no prefix.

python tools/commits.py          # commits since the check was added
python tools/commits.py REV..    # a range of commits
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LENGTH = 72
NOT_IMPERATIVE = re.compile(r"^(?:\w+(?:ed|ing)|The|A|An|What|Who|It|This|Now|Some|No|All|Docs|Tests|Fixes|Adds)\b")
IMPERATIVE = {"Bring", "Embed", "Need", "Feed", "Seed", "Shed", "Speed", "Exceed", "Proceed", "Ring", "String"}


def faults(subject: str) -> list[str]:
    """The rules that one subject breaks, as sentences."""
    found = []
    if len(subject) > LENGTH:
        found.append(f"it has {len(subject)} characters; {LENGTH} is the limit")
    first = subject.split(" ")[0]
    if NOT_IMPERATIVE.match(subject) and first not in IMPERATIVE:
        found.append(f"`{first}` is no verb in the imperative, such as `Add`, `Move`, `Explain`")
    if not first[:1].isupper():
        found.append("it begins with a capital letter")
    if subject.endswith("."):
        found.append("it ends without a full stop")
    return found


def subjects(revisions: str) -> list[tuple[str, str]]:
    """(short hash, subject) of the commits of a range, without merges."""
    command = ["git", "log", "--no-merges", "--format=%h %s", revisions]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in done.stdout.splitlines()]


def since_added() -> str:
    """The range from the commit that added this file; the whole history where git does not know it."""
    command = ["git", "log", "--diff-filter=A", "--format=%h", "-1", "--", "tools/commits.py"]
    added = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return f"{added}..HEAD" if added else "HEAD"


def main(arguments: Iterable[str] | None = None) -> int:
    """Print each fault with its commit; 1 where there is one."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not (ROOT / ".git").exists():
        print("commits: no git history here, nothing to check")
        return 0
    found = [
        (hash_, subject, fault)
        for hash_, subject in subjects(given[0] if given else since_added())
        for fault in faults(subject)
    ]
    for hash_, subject, fault in found:
        print(f"{hash_} {subject}\n        {fault}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
