"""Print how large the product is: lines of each package, and the longest modules."""

import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("gateway", "acquisition", "innet", "basestation", "simulator", "moteloom", "tests", "bench", "tools")
LONGEST = 10


def lines_of_modules() -> Counter[str]:
    """By path, the lines of each Python module that git tracks."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return Counter({name: len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in listed.splitlines()})


def main() -> None:
    """Print the two tables."""
    lines = lines_of_modules()
    product = 0
    for package in PACKAGES:
        mine = [count for name, count in lines.items() if name.startswith(f"{package}/")]
        product += sum(mine) if package not in ("tests", "bench", "tools") else 0
        print(f"{package:<14}{len(mine):>5} modules {sum(mine):>7} lines")
    print(f"{'product':<14}{'':>13} {product:>7} lines\n")
    shipped = Counter({name: count for name, count in lines.items() if not name.startswith(("tests/", "bench/"))})
    for name, count in shipped.most_common(LONGEST):
        print(f"{count:>5}  {name}")


if __name__ == "__main__":
    main()
