"""JobTable: the jobs of a station, those that wait, run, and have ended. A restart of the station forgets them all.

A kind of job is a module that calls `basestation.jobs.process.run_jobs`: a trial is one, a query of the archive another.
"""

import shutil
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any

from basestation.jobs.process import Order, describe_fault
from basestation.jobs.worker import JobWorker
from gateway.errors import MoteloomError
from gateway.log import get_log

log = get_log(__name__)
MOST_NOTES = 100


class JobState(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def has_ended(self) -> bool:
        return self not in (JobState.WAITING, JobState.RUNNING)


class JobError(MoteloomError):
    """A job that cannot be taken. `code` is stable, `help` says what to do."""

    def __init__(self, code: str, message: str, help: str) -> None:
        super().__init__(message)
        self.code, self.help = code, help


@dataclass(frozen=True, slots=True)
class JobLimits:
    """How many jobs run and wait at a time, of all users and of each; how many are kept after their end; the limits of each.

    Results of ended jobs have `kept_bytes` in all. A job begins where the disk has `free_bytes` left.
    """

    running: int = 1
    open: int = 16
    open_of_user: int = 4
    kept: int = 100
    kept_bytes: int = 256_000_000
    free_bytes: int = 128_000_000
    memory_bytes: int = 1 << 30
    result_bytes: int = 64_000_000
    cpu_seconds: int = 3_600


@dataclass(slots=True)
class Job:
    """One job.

    `request` is what the client asked for, `doing` what it does now, `problem` why it failed. `notes` say how its results came
    about: days without readings, damaged files that were left out, rows that came late. Times are ms since 1970.
    """

    number: int
    kind: str
    owner: str | None
    request: Mapping[str, Any]
    key: str | None
    order: object
    submitted_ms: int
    state: JobState = JobState.WAITING
    progress: float = 0.0
    doing: str | None = None
    notes: Sequence[str] = ()
    begun_ms: int | None = None
    ended_ms: int | None = None
    problem: Mapping[str, Any] | None = None
    worker: JobWorker | None = None


class JobTable:
    """Any thread may call. Jobs of one's own are those of `owner`; None sees all. KeyError: there is no such job."""

    def __init__(
        self,
        folder: Path,
        modules: Mapping[str, str],
        limits: JobLimits = JobLimits(),
        kept_s: Mapping[str, float] = {},
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`modules` has the module of each kind of job. Results lie in `folder`; those of before are deleted.

        `kept_s` are seconds for which the process of a kind is kept for another job; of other kinds each job has its own.
        """
        self._folder, self._modules, self._limits, self._wall_ms = folder, modules, limits, wall_ms
        self._kept_s, self._idle = kept_s, dict[str, tuple[JobWorker, threading.Timer]]()
        self._jobs: dict[int, Job] = {}
        self._lock, self._threads = threading.Lock(), set[threading.Thread]()
        self._last, self._is_closed = 0, False
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def start(
        self, kind: str, request: Mapping[str, Any], order: object, owner: str | None, key: str | None = None
    ) -> Job:
        """Take a job; it runs as soon as others have ended. One with the same `key` is not taken again. JobError."""
        if kind not in self._modules:
            raise JobError("no-such-job", f"this station runs no jobs of the kind `{kind}`", "ask one that does")
        with self._lock:
            before = next((job for job in self._jobs.values() if key is not None and job.key == key), None)
            if before is not None:
                if (before.kind, before.request) != (kind, request):
                    raise JobError("key-reused", "this key was used for another job", "choose a new Idempotency-Key")
                return before
            self._check_room(owner)
            self._last += 1
            job = Job(self._last, kind, owner, request, key, order, self._wall_ms())
            self._jobs[job.number] = job
            self._begin_next()
            return job

    def jobs(self, after: int, limit: int, owner: str | None = None) -> list[Job]:
        """The jobs with numbers above `after`, the oldest first."""
        with self._lock:
            found = (job for job in self._jobs.values() if job.number > after and owner in (None, job.owner))
            return list(islice(found, limit))

    def job(self, number: int, owner: str | None = None) -> Job:
        """One job."""
        with self._lock:
            return self._find(number, owner)

    def has_process(self, kind: str) -> bool:
        """Whether a process of a kind runs, at work or kept for another job."""
        with self._lock:
            return kind in self._idle or any(job.kind == kind and job.worker is not None for job in self._jobs.values())

    def results_file(self, number: int, suffix: str, owner: str | None = None) -> Path:
        """The file with the results of a job that is done in another format, such as `.csv`; it may be missing."""
        self.job(number, owner)
        return self._path(number).with_suffix(suffix)

    def results(self, number: int, after: int, limit: int, owner: str | None = None) -> list[str]:
        """Lines of the results behind the first `after`; of a job that runs, those that it has so far."""
        self.job(number, owner)
        try:
            with self._path(number).open(encoding="utf-8") as file:
                return [line for line in islice(file, after, after + limit) if line.endswith("\n")]
        except FileNotFoundError:  # it has not begun
            return []

    def cancel(self, number: int, owner: str | None = None) -> Job:
        """End a job that waits or runs. One that has ended stays as it is."""
        with self._lock:
            job = self._find(number, owner)
            if not job.state.has_ended:
                self._end(job, JobState.CANCELLED)
                if job.worker is not None:
                    job.worker.process.kill()
            return job

    def delete(self, number: int, owner: str | None = None) -> None:
        """Cancel a job, and forget it with its results."""
        self.cancel(number, owner)
        with self._lock:
            self._jobs.pop(number, None)
        self._delete_results(number)

    def close(self) -> None:
        """End all jobs and forget them."""
        with self._lock:
            self._is_closed = True
            numbers, threads = list(self._jobs), list(self._threads)
        for number in numbers:
            self.cancel(number)
        for thread in threads:
            thread.join()
        with self._lock:
            idle, self._idle = self._idle, {}
        for worker, timer in idle.values():
            timer.cancel()
            worker.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> "JobTable":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.jsonl"

    def _delete_results(self, number: int) -> None:
        for path in self._folder.glob(f"{number}.*"):
            path.unlink(missing_ok=True)

    def _find(self, number: int, owner: str | None) -> Job:
        job = self._jobs[number]
        if owner not in (None, job.owner):
            raise KeyError(number)
        return job

    def _check_room(self, owner: str | None) -> None:
        is_open = [job for job in self._jobs.values() if not job.state.has_ended]
        of_user = sum(job.owner == owner for job in is_open)
        remedy = "wait until one has ended, or cancel one"
        if self._is_closed:
            raise JobError("not-now", "the station stops", "repeat it when it runs again")
        if len(is_open) >= self._limits.open:
            raise JobError("too-many-jobs", f"the station has {len(is_open)} jobs, and takes no more", remedy)
        if of_user >= self._limits.open_of_user:
            raise JobError("too-many-jobs", f"you have {of_user} jobs that wait or run, and may have no more", remedy)

    def _begin_next(self) -> None:
        running = sum(job.worker is not None or job.state is JobState.RUNNING for job in self._jobs.values())
        for job in self._jobs.values():
            if running < self._limits.running and job.state is JobState.WAITING and not self._is_closed:
                job.state, job.begun_ms = JobState.RUNNING, self._wall_ms()
                thread = threading.Thread(target=self._run, args=(job,), name=f"job {job.number}", daemon=True)
                self._threads.add(thread)
                thread.start()
                running += 1

    def _run(self, job: Job) -> None:
        """Carry out a job in a process of its kind, on a thread of its own."""
        try:
            problem = self._carry_out(job)
        except OSError as why:
            problem = {"code": "not-now", "title": f"no process can be started: {why}", "detail": "repeat it later"}
        except Exception as error:  # such as an order that cannot be pickled: the next job runs all the same
            log.error("job failed", job=job.number, kind=job.kind, output=traceback.format_exc())
            problem = describe_fault(error)
        with self._lock:
            worker, job.worker, job.order, job.doing = job.worker, None, None, None
            is_kept = worker is not None and self._keep(job, worker)
            if not job.state.has_ended:
                job.problem = problem
                job.progress = 1.0 if problem is None else job.progress
                self._end(job, JobState.DONE if problem is None else JobState.FAILED)
            self._drop_old()
            self._threads.discard(threading.current_thread())
            self._begin_next()
            if job.number not in self._jobs:  # deleted while it ran
                self._delete_results(job.number)
        if worker is not None and not is_kept:
            worker.close()

    def _carry_out(self, job: Job) -> Mapping[str, Any] | None:
        """The problem that ended a job, or None where it is done."""
        free = shutil.disk_usage(self._folder).free
        if free < self._limits.free_bytes:
            return {"code": "disk-full", "title": f"the disk has {free:,} bytes left, and a job begins with {self._limits.free_bytes:,}",
                    "detail": "make room on the station's disk, or delete jobs, and start it again"}  # fmt: skip
        limits = {name: value for name, value in asdict(self._limits).items() if name in _PROCESS_LIMITS}
        order = Order(limits, job.order, self._path(job.number))
        with self._lock:
            if job.state.has_ended:  # cancelled before it began
                return None
            job.worker = worker = self._take_idle(job.kind) or JobWorker(self._modules[job.kind])

        def report(found: Mapping[str, Any]) -> None:
            if "note" in found:
                job.notes = [*job.notes, found["note"]][:MOST_NOTES]
            else:
                job.progress, job.doing = found["progress"], found["doing"]

        try:
            problem = worker.carry_out(order, report)
        except ProcessLookupError as ended:
            code = int(ended.args[0])
            problem = None if job.state.has_ended else _describe_exit(code, self._limits)
        if worker.output and problem is not None and not job.state.has_ended:
            log.error("job failed", job=job.number, kind=job.kind, output="\n".join(worker.output))
        return problem

    def _take_idle(self, kind: str) -> JobWorker | None:
        """A process that was kept for another job of a kind, if it still lives."""
        if kind not in self._idle:
            return None
        worker, timer = self._idle.pop(kind)
        timer.cancel()
        if worker.process.poll() is None:
            return worker
        worker.close()
        return None

    def _keep(self, job: Job, worker: JobWorker) -> bool:
        """Keep the process of a job for another one, for as long as its kind says; whether it is kept."""
        seconds = self._kept_s.get(job.kind, 0)
        if not seconds or not worker.is_usable or self._is_closed or job.state.has_ended:
            return False
        timer = threading.Timer(seconds, self._end_idle, (job.kind, worker))
        timer.daemon = True
        self._idle[job.kind] = worker, timer
        timer.start()
        return True

    def _end_idle(self, kind: str, worker: JobWorker) -> None:
        """End a process that no job has needed, unless one has taken it meanwhile."""
        with self._lock:
            if kind not in self._idle or self._idle[kind][0] is not worker:
                return
            del self._idle[kind]
        worker.close()

    def _end(self, job: Job, state: JobState) -> None:
        job.state, job.ended_ms = state, self._wall_ms()

    def _drop_old(self) -> None:
        """Forget the oldest jobs that have ended, until the others fit; the newest stays."""
        ended = [job.number for job in self._jobs.values() if job.state.has_ended]
        sizes = {n: sum(path.stat().st_size for path in self._folder.glob(f"{n}.*")) for n in ended}
        while len(ended) > 1 and (len(ended) > self._limits.kept or sum(sizes.values()) > self._limits.kept_bytes):
            number = ended.pop(0)
            del self._jobs[number], sizes[number]
            self._delete_results(number)


_PROCESS_LIMITS = "memory_bytes", "result_bytes", "cpu_seconds"


def _describe_exit(code: int, limits: JobLimits) -> dict[str, Any]:
    if code == -signal.SIGXCPU:
        return {"code": "job-too-long", "title": f"the job took more than {limits.cpu_seconds:,} s of a processor",
                "detail": "ask for a shorter time, or for fewer rows"}  # fmt: skip
    return {"code": "job-too-large", "title": f"the process of the job ended with {code}",
            "detail": "it may have needed more memory than it may have: ask for a shorter time, or for fewer rows"}  # fmt: skip
