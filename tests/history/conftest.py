"""One Spark for all tests of this folder."""

import pytest


@pytest.fixture(scope="session")
def spark(need, tmp_path_factory):
    """A local session with settings that suit many small queries; skipped without Java or PySpark."""
    need("java")
    pytest.importorskip("pyspark")
    from basestation.archive.spark.session import start_session

    session = start_session(tmp_path_factory.mktemp("spark"), heap="1g")  # for hundreds of statements
    for name, value in {"shuffle.partitions": "1", "adaptive.enabled": "false", "codegen.wholeStage": "false"}.items():
        session.conf.set(f"spark.sql.{name}", value)
    yield session
    session.stop()
