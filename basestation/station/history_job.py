"""The process of historical queries that clients of a station order; it keeps its Spark for the next one.

python -m basestation.station.history_job < orders        # `basestation.jobs.process`
"""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

from acquisition.errors import InputError
from basestation.archive.spark.job_watch import JobWatch
from basestation.archive.spark.master import parse_master
from basestation.archive.spark.session import SparkFailedError, branch_session, start_session
from basestation.history.answer import answer, prepare
from basestation.history.answer_lines import write_differences, write_lines
from basestation.history.archive_views import DamagedFileError
from basestation.history.differences import compare_answers, no_differences
from basestation.history.file_checks import list_days
from basestation.history.output import add_time, write_stream, write_text
from basestation.jobs.process import TOO_LONG, JobReport, Order, run_jobs, without_limits
from basestation.jobs.table import JobError
from basestation.station.history_question import HistoryQuestion, read_question
from basestation.station.recomputation import Recomputation, plan_recomputation

if TYPE_CHECKING:
    from basestation.archive.spark.session import SparkSession

STARTING = "starting Spark, which takes some 7 s"


class HistoryJobs:
    """Carries out orders of `basestation.station.job_control`, one after the other, in one Spark."""

    def __init__(self) -> None:
        self._spark: SparkSession | None = None

    def carry_out(self, order: Order, lines: TextIO, report: JobReport) -> None:
        """Answer a query, or say what changed in its answer, in three formats: clients can read `lines` before the others."""
        report(0.0, "reading the query and the files of its range")
        with _name_files(order.body["data"]):
            question, since = _read(order.body, report), order.body["since"]
            plan = question.plan
            if since is None:
                table = self._ask(order, report, partial(_answer, question=question))
            else:
                table = self._recompute(order, report, question)
        report(0.99, f"writing {table.num_rows:,} rows")
        (write_lines if since is None else write_differences)(table, plan, lines)
        table = add_time(table, plan.is_one_off, plan.catalog.tick_ms)
        with order.results.with_suffix(".csv").open("w", encoding="utf-8") as file:
            write_text(table, "csv", file)
        write_stream(table, order.results.with_suffix(".arrow"))

    def _recompute(self, order: Order, report: JobReport, question: HistoryQuestion) -> pa.Table:
        """The differences of an answer, with notes of what came late. Without late arrivals no Spark starts."""
        recomputation = plan_recomputation(question, order.body["since"])
        for line in recomputation.describe():
            report.note(line)
        if recomputation.is_empty:
            table = no_differences(question.plan, prepare(question.plan, question.tables, question.span))
        else:
            table = self._ask(order, report, partial(_compare, recomputation=recomputation))
        report.note(recomputation.describe_differences(table.num_rows))
        return table

    def _ask(self, order: Order, report: JobReport, work: "Callable[[SparkSession], pa.Table]") -> pa.Table:
        """The table that work in Spark gives, within the limits of a job."""
        spark = self._open(order, report)
        with JobWatch(spark, order.limits["cpu_seconds"], report) as watch:
            try:
                return work(spark)
            except SparkFailedError as error:
                raise _explain(error, watch.is_cancelled, order.limits["cpu_seconds"]) from error

    def _open(self, order: Order, report: JobReport) -> "SparkSession":
        """A session of its own for a query, in the Spark of this process."""
        settings = order.body["settings"]
        if self._spark is None:
            report(0.0, STARTING)
            state = order.results.parent / "spark"
            shutil.rmtree(state, ignore_errors=True)  # of a process that was killed
            with without_limits():
                self._spark = start_session(
                    state,
                    parse_master(settings.master),
                    f"{settings.memory_mb}m",
                    result_bytes=order.limits["result_bytes"],
                )
        return branch_session(self._spark)


def _answer(session: "SparkSession", question: HistoryQuestion) -> pa.Table:
    return answer(session, question.root, question.plan, question.tables, question.span, question.skipped)


def _compare(session: "SparkSession", recomputation: Recomputation) -> pa.Table:
    of = recomputation.question
    return compare_answers(session, of.root, of.plan, of.tables, of.span, recomputation.since, of.skipped)


def _read(body: Mapping[str, Any], report: JobReport) -> HistoryQuestion:
    """The query of an order. A note says what its answer leaves out."""
    question = read_question(
        body["data"], body["catalog"], body["tables"], body["text"], None, body["begin"], body["until"], body["skip_damaged"]
    )  # fmt: skip
    for path, damage in question.skipped.items():
        report.note(f"left out {_shorten(str(path), body['data'])}: {_shorten(damage, body['data'])}")
    for extent, days in question.missing.items():
        if days:
            report.note(f"no reading of `{extent}` on {len(days)} days of the range: {list_days(days)}")
    return question


@contextmanager
def _name_files(data: Path) -> Iterator[None]:
    """Errors inside name files below the data directory: clients learn nothing of the folders of the station."""
    try:
        yield
    except DamagedFileError as error:
        title = _shorten(str(error), data)
        raise JobError(error.code, title, "`skip_damaged=true` leaves damaged files out, and notes them") from error
    except InputError as error:
        file = None if error.file is None else _shorten(error.file, data)
        message = _shorten(error.message, data)
        raise InputError(error.code, message, file, error.row, error.column, error.help) from error
    except SparkFailedError as error:
        raise SparkFailedError(_shorten(str(error), data)) from error


def _shorten(text: str, data: Path) -> str:
    """A text with the paths of an archive, also in URLs of Spark, from the data directory on."""
    return re.sub(rf"(?:file:(?://)?)?{re.escape(str(data))}/", "", text)


def _explain(error: SparkFailedError, is_cancelled: bool, cpu_seconds: int) -> Exception:
    """Why Spark failed, where a limit of the job is the cause."""
    if is_cancelled:
        return JobError(
            "job-too-long", f"the job took more than {cpu_seconds:,} s of a processor", "ask for a shorter range"
        )
    if "maxResultSize" in str(error):
        return JobError(TOO_LONG["code"], TOO_LONG["title"], TOO_LONG["detail"])
    return error


if __name__ == "__main__":
    run_jobs(HistoryJobs().carry_out)
