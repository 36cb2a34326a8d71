"""A TCP proxy that cuts each connection after a random number of bytes of the answers, or answers 502 itself."""

import random
import socket
import threading


class CuttingProxy:
    """Listens at `url` between `with` and its end; `cuts` counts the connections that it cut with bytes missing.

    The connections with the numbers `bad_gateways`, from 0, find no station.
    """

    def __init__(self, target, seed, most=2_500, least=0, bad_gateways=()):
        self._bad_gateways, self.connections = bad_gateways, 0
        self._target, self._random, self._bytes = target, random.Random(seed), (least, most)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts, self.is_cutting = 0, True
        self._threads = []

    def __enter__(self):
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(timeout=10)

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            if self.connections - 1 in self._bad_gateways:
                client.recv(65_536)
                client.sendall(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                client.close()
                continue
            station = socket.create_connection(self._target)
            budget = self._random.randrange(*self._bytes) if self.is_cutting else None
            threading.Thread(target=self._forward, args=(client, station, None), daemon=True).start()
            threading.Thread(target=self._forward, args=(station, client, budget), daemon=True).start()

    def _forward(self, source, sink, budget):
        try:
            while data := source.recv(4_096):
                if budget is not None and len(data) > budget:
                    sink.sendall(data[:budget])
                    self.cuts += 1
                    break
                sink.sendall(data)
                budget = None if budget is None else budget - len(data)
        except OSError:  # the other direction has been cut
            pass
        finally:
            for side in (source, sink):
                try:
                    side.shutdown(socket.SHUT_RDWR)
                except OSError:  # it is closed already
                    pass
