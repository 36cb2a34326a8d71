"""Certificate: TLS for the REST interface from two files, which are read again when they change."""

import os
import ssl
from pathlib import Path

from gateway.errors import TransportError
from gateway.log import get_log

log = get_log(__name__)


class Certificate:
    """A certificate with its chain, and its key, as PEM files. TransportError where they cannot be used.

    Each new connection looks whether the files have changed. Files that do not fit together, as while they are being replaced,
    leave the last good ones in use.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate, self.key = certificate, key
        self._stamp = self._read_stamp()
        try:
            self._current = self._load()
        except (OSError, ssl.SSLError) as why:
            raise TransportError(
                f"the certificate in {certificate} and the key in {key} cannot be used: {_reason(why)}"
            ) from why
        self.context = self._load()
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        if (stamp := self._read_stamp()) != self._stamp:
            self._stamp = stamp
            try:
                self._current = self._load()
                log.info("certificate was read again", certificate=self.certificate)
            except (OSError, ssl.SSLError) as why:
                log.warning(
                    "certificate fails, the last one stays",
                    certificate=self.certificate,
                    key=self.key,
                    why=_reason(why),
                )
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key, password=_refuse_password)
        return context

    def _read_stamp(self) -> tuple[tuple[int, int, int], ...] | None:
        """Something that changes with the files; None where one cannot be read."""
        try:
            found = [os.stat(path) for path in (self.certificate, self.key)]
        except OSError:
            return None
        return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in found)


def _refuse_password() -> str:
    """A key with a password would ask for it at the terminal, of a service too."""
    raise ssl.SSLError("the key has a password: a station needs one without")


def _reason(why: OSError) -> str:
    return getattr(why, "reason", None) or why.strerror or str(why)
