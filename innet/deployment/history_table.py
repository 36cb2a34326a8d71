"""History table: the Spark that a station keeps for historical queries of its users, from the table `[history]` of a deployment.

[history]
memory_mb = 1024
idle_s = 600
master = "spark://spark1:7077"
"""

from dataclasses import dataclass

from gateway.toml import TomlTable

LEAST_MB = 450
"""Of a heap: Spark refuses a smaller one."""


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """The heap of Spark, the seconds for which it is kept after a query, and the URL of its master."""

    memory_mb: int = 512
    idle_s: int = 300
    master: str = "local[2]"


def read_history_table(top: TomlTable) -> HistorySettings:
    """Read the table `history` of a deployment."""
    usual = HistorySettings()
    if (table := top.table("history")) is None:
        return usual
    memory = table.integer("memory_mb", LEAST_MB, 10**6, usual.memory_mb)
    idle = table.integer("idle_s", 0, 86_400, usual.idle_s)
    master = table.text("master", usual.master)
    table.close()
    return HistorySettings(memory or usual.memory_mb, usual.idle_s if idle is None else idle, master or usual.master)
