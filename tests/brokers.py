"""Real MQTT brokers for tests: amqtt in a thread, mosquitto where it is installed, both behind a wire that can be cut."""

import asyncio
import contextlib
import logging
import select
import shutil
import socket
import subprocess
import threading
import time

from gateway.broker_settings import BrokerSettings


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Amqtt:
    """amqtt in a thread of this process; what it holds ends with it."""

    def __init__(self, folder):
        from amqtt.broker import Broker

        logging.getLogger("amqtt").setLevel(logging.CRITICAL)
        logging.getLogger("transitions").setLevel(logging.CRITICAL)
        self.port, begun = free_port(), threading.Event()
        config = {
            "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{self.port}"}},
            "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
        }
        self._loop = asyncio.new_event_loop()

        def live():
            asyncio.set_event_loop(self._loop)
            self._loop.run_until_complete(Broker(config, loop=self._loop).start())
            self._loop.call_soon(begun.set)
            self._loop.run_forever()

        self._thread = threading.Thread(target=live, name="broker", daemon=True)
        self._thread.start()
        assert begun.wait(20)

    def kill(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        with contextlib.suppress(RuntimeError):
            self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()


class Mosquitto:
    """mosquitto as a process, ended by SIGKILL; it keeps sessions in a file, as in the field."""

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self.port = free_port()
        config = folder / "mosquitto.conf"
        config.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence true\n"
            f"persistence_location {folder}/\nautosave_interval 1\nautosave_on_changes true\n"
        )
        command = [shutil.which("mosquitto"), "-c", str(config)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("mosquitto does not listen")

    def kill(self):
        self._process.kill()
        self._process.wait()


class BrokerWire:
    """A broker behind a wire of its own port: the wire can be cut, slowed down, and led to a broker that starts anew."""

    def __init__(self, kind, folder):
        self._kind, self._folder = kind, folder
        self.delay = 0.0  # of each piece in each direction, in seconds
        self.broker = kind(folder)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._open, self._lock = [], threading.Lock()
        threading.Thread(target=self._accept, name="wire", daemon=True).start()

    def settings(self, **more):
        return BrokerSettings("127.0.0.1", self.port, "lab", **more)

    def cut(self):
        """End every connection without a word."""
        with self._lock:
            ends, self._open = self._open, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def kill(self):
        """End the broker; connections are refused until `revive`."""
        broker, self.broker = self.broker, None
        self.cut()
        broker.kill()

    def revive(self):
        self.broker = self._kind(self._folder)

    def close(self):
        self._server.close()
        self.cut()
        if self.broker:
            self.broker.kill()

    def _accept(self):
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.broker.port), timeout=5)
            except (OSError, AttributeError):
                near.close()
                continue
            with self._lock:
                self._open += [near, far]
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near, far):
        with near, far, contextlib.suppress(OSError):
            while True:
                for end in select.select([near, far], [], [])[0]:
                    piece = end.recv(65_536)
                    if not piece:
                        return
                    time.sleep(self.delay)
                    (far if end is near else near).sendall(piece)


KINDS = [Amqtt, *([Mosquitto] if shutil.which("mosquitto") else [])]


def wait_until(is_true, seconds=60):
    """Wait for something that another thread brings about."""
    for _ in range(int(seconds * 200)):
        if is_true():
            return
        time.sleep(0.005)
    raise AssertionError("it did not happen")
