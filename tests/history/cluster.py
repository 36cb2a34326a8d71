"""A standalone Spark cluster of this machine: a master and workers from the pip package, each a process group of its own."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from basestation.archive.spark.java import find_java

START_S = 60


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Cluster:
    """`url` is the master's; `workers` are the processes, which `kill` ends with all that they started."""

    def __init__(self, folder, workers):
        import pyspark

        self._folder, self._home = folder, Path(pyspark.__file__).parent
        port, page = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self.processes, self._logs = [], {}
        self._start("master", "master.Master", "--port", port, "--webui-port", page)
        self.workers = [
            self._start(f"worker-{at}", "worker.Worker", "--cores", 1, "--memory", "600m", "--work-dir", folder / "work",
                        "--webui-port", free_port(), self.url)
            for at in range(workers)
        ]  # fmt: skip
        self._wait("master", "Registering worker", workers)

    def _start(self, name, program, *arguments):
        environment = os.environ | {
            "JAVA_HOME": str(find_java()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(self._home),
            # As the Spark of a station: half of the time of short jobs would go to the second compiler. Executors inherit it.
            "JAVA_TOOL_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        }
        command = [
            self._home / "bin" / "spark-class",
            f"org.apache.spark.deploy.{program}",
            "--host",
            "127.0.0.1",
            *arguments,
        ]
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                list(map(str, command)),
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self._folder,
            )
        self.processes.append(process)
        self._logs[process.pid] = self._folder / f"{name}.log"
        return process

    def _wait(self, name, line, times):
        log, deadline = self._folder / f"{name}.log", time.monotonic() + START_S
        while log.read_text().count(line) < times:
            assert time.monotonic() < deadline, log.read_text()[-3_000:]
            time.sleep(0.1)

    def log(self, process):
        """Everything that a process has printed."""
        return self._logs[process.pid].read_text()

    def kill(self, process):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                self.kill(process)
