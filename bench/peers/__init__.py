"""Peers: systems that a user would pick instead, each in an environment of its own made by `make bench-peers`.

The measurement is generous to them: the time to start is taken out by running two sizes and dividing the difference;
their answers go nowhere, or are only counted; they drop what is late, owe no revisions, no indexes and no exact sums,
and hand out a window when they like. Of W3 and W4 they cannot say all that is asked.
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
ENVIRONMENTS = FOLDER / ".venv"
TASKS = ("W1", "W2")


@dataclass(frozen=True)
class Peer:
    """`form` is what it reads: csv, csv without a header, or parquet files. `sizes` are readings in a short and a long run."""

    name: str
    package: str
    form: str
    sizes: dict[str, tuple[int, int]]  # by task

    @property
    def python(self):
        return ENVIRONMENTS / self.name / "bin" / "python"

    @property
    def script(self):
        return FOLDER / f"{self.name}_peer.py"


PEERS = (
    Peer("pyflink", "apache-flink==2.3.0", "bare", {"W1": (200_000, 1_200_000), "W2": (100_000, 600_000)}),
    Peer("spark", "pyspark==4.3.0", "parquet", {"W1": (131_072, 786_432), "W2": (131_072, 524_288)}),
    Peer("bytewax", "bytewax==0.21.1", "csv", {"W1": (200_000, 1_200_000), "W2": (30_000, 130_000)}),
    Peer("pathway", "pathway==0.33.0", "csv", {"W1": (200_000, 1_200_000), "W2": (30_000, 130_000)}),
)
