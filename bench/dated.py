"""A dated recording beside the same one at tick 0: CPU time and peak memory of `moteloom replay`. `python -m bench.dated`.

The rounds alternate, each in a process of its own. CPU time counts, so other work on the machine changes the ratios little. The last line
reads times instead of ticks, which takes longer because text becomes time.
"""

import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench import record

ROUNDS = 5
EPOCHS, SITES = 10_000, 20
GOAL = 1.2
FIRST = int(datetime(2026, 11, 18, 8, tzinfo=UTC).timestamp())
SCHEMA = "lab: sensed (site:integer, temp:float {scale 2}) every 1 min at sites all\n"
QUERY = "SELECT site, AVG(temp) AS mean FROM lab [FROM NOW-59 MIN TO NOW SLIDE 1 HOUR] GROUP BY site"
COMMAND = "import sys; from gateway.cli import main; sys.exit(main(sys.argv[1:]))"
ZERO = "tick 0"


def write_recording(path, first, as_times):
    """A reading of each site each minute from a tick on."""
    with path.open("w") as file:
        file.write(("when" if as_times else "_tick") + ",_site,temp\n")
        for epoch in range(EPOCHS):
            tick = first + 60 * epoch
            when = datetime.fromtimestamp(tick, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if as_times else tick
            file.writelines(f"{when},{site},{(epoch * site) % 977 / 100}\n" for site in range(1, SITES + 1))


def measure(arguments, output):
    """(CPU seconds, peak bytes) of the command."""
    with output.open("wb") as file:
        child = os.posix_spawn(
            sys.executable,
            [sys.executable, "-c", COMMAND, "replay", *map(str, arguments)],
            os.environ | {"PYTHONPATH": str(record.ROOT)},
            file_actions=[(os.POSIX_SPAWN_DUP2, file.fileno(), 1), (os.POSIX_SPAWN_DUP2, file.fileno(), 2)],
        )
        _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(output.read_text())
    return used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss


def main():
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "schema").write_text(SCHEMA)
        cases = {
            ZERO: (0, False),
            "tick 1,794,988,800 (2026-11-18T08:00:00Z)": (FIRST, False),
            "the same as RFC 3339 text": (FIRST, True),
        }
        found = {name: [] for name in cases}
        for number, (first, as_times) in enumerate(cases.values()):
            write_recording(place / f"{number}.csv", first, as_times)
        for _ in range(ROUNDS):
            for number, (name, (_, as_times)) in enumerate(cases.items()):
                arguments = ["--schema", place / "schema", "--input", f"lab={place / f'{number}.csv'}", "-o", "csv"]
                arguments += ["--time-column", "when"] if as_times else []
                found[name].append(measure([*arguments, QUERY], place / f"{number}.out"))
        lines = {len((place / f"{number}.out").read_text().splitlines()) for number in range(len(cases))}
        assert len(lines) == 1, lines
    least = [median(each[at] for each in found[ZERO]) for at in (0, 1)]
    print(f"{EPOCHS * SITES:,} readings, {ROUNDS} rounds, medians; goal: at most {GOAL} times")
    for name, each in found.items():
        cpu, peak = (median(one[at] for one in each) for at in (0, 1))
        print(f"  {name:42} {cpu:6.2f} s  {cpu / least[0]:5.2f}  {peak / 1e6:6.0f} MB  {peak / least[1]:5.2f}")


if __name__ == "__main__":
    main()
