"""Makes the class archive of Spark: `python -m basestation.archive.spark.class_archive_maker`, once for each Java and PySpark.

`make setup` runs it. Spark starts, runs statements of all kinds, and ends; Java writes the classes that it loaded.
"""

import sys
import tempfile
from pathlib import Path

from basestation.archive.spark.class_archive import find_class_archive
from basestation.archive.spark.java import SparkUnavailableError, find_java
from basestation.archive.spark.session import start_session

_STATEMENTS = (
    "SELECT count(*) AS n, sum(id), min(id), max(CAST(id AS DECIMAL(38, 2))) FROM range(100) GROUP BY id % 3 HAVING count(*) > 1",
    "SELECT id, avg(id) OVER (PARTITION BY id % 3 ORDER BY id RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) FROM range(100)",
    "SELECT a.id, b.id FROM range(100) a LEFT JOIN range(9) b ON a.id = b.id WHERE a.id > 3 OR b.id IS NULL ORDER BY a.id",
    "SELECT x, count(*) FROM (SELECT explode(sequence(id, id + 3)) AS x FROM range(9)) GROUP BY x UNION ALL SELECT 1, 2",
    "SELECT EXISTS (SELECT 1 FROM range(3) WHERE id > 1), transform(array(1, 2), x -> x + 1), date_format(now(), 'yyyy'), 'a' || id FROM range(2)",
)
"""Of the kinds into which queries of history are compiled, so that their classes are loaded."""


def make_class_archive(java: Path) -> Path | None:
    """Make it, in a process that does nothing else; None where this Java makes none."""
    from pyspark import SparkContext

    path = find_class_archive(java)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / "made.jsa"
        session = start_session(Path(folder), java_options=f'"-XX:ArchiveClassesAtExit={made}" -Xlog:disable')
        table = f"{folder}/table"
        session.sql(_STATEMENTS[0]).write.parquet(table)
        session.read.parquet(table).where("n > 2").toArrow()
        for statement in _STATEMENTS:
            session.sql(statement).toArrow()
        gateway = SparkContext._gateway
        assert gateway is not None, "a session has started it"
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # Java ends, and writes the archive
        gateway.proc.wait()
        if not made.is_file():
            return None
        made.replace(path)
    return path


def main() -> int:
    try:
        java = find_java()
        path = find_class_archive(java)
        made = path if path.is_file() else make_class_archive(java)
    except (SparkUnavailableError, OSError) as why:
        print(f"setup: Spark starts without a class archive, more slowly: {why}", file=sys.stderr)
        return 0
    if made is None:
        print("setup: this Java makes no class archive; Spark starts without, more slowly", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
