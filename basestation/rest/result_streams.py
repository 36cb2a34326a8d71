"""ResultStreams: server-sent events of queries, read and encoded once for all clients that follow the same query.

A client has a place and nothing else. One that is up to date waits at the tail of its query, the newest events as bytes. Another one
reads pages of the results until it is there: after a cut connection, or because it reads more slowly than updates come. A connection
that takes nothing for a while is cut by the server (`basestation.station.timed_protocol`); its client has the id to go on with.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from basestation.rest.commit_signal import CommitSignal, wait_until
from basestation.rest.control import ResultPage, StationControl
from basestation.rest.encoded_pages import EncodedPages
from basestation.rest.wire import HEARTBEAT_SECONDS, LOOK_SECONDS

PIECE_BYTES = 65_536
"""Of events that are sent at once, unless one alone has more; a connection buffers about as much."""
TAIL_BYTES = 262_144
"""Of the newest events of a query that some client follows."""
PAGE = 1_000
"""Updates that are read at once."""
READERS = 4
"""Clients that read a page of results at a time; the others wait, so that the pages of many do not fill the memory."""
WAKE_SECONDS = 1.0
"""How often a client without updates is looked after: whether its token is valid, and whether the station ends."""
Read = Callable[[int, int], Awaitable[ResultPage]]
"""Reads so many updates of the query of a client behind a number, with its rights."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Events with numbers behind `after` and up to `last`, as bytes."""

    after: int
    last: int
    body: bytes


def encode_events(page: ResultPage) -> list[Piece]:
    """The updates of a page as events, cut into pieces."""
    pieces, begin = list[Piece](), page.next - len(page.lines)
    parts, size, after = list[bytes](), 0, begin
    for number, line in enumerate(page.lines, begin + 1):
        event = f"id: {page.epoch}-{page.query}-{number}\ndata: {line}\n\n".encode()
        if parts and size + len(event) > PIECE_BYTES:
            pieces.append(Piece(after, number - 1, b"".join(parts)))
            parts, size, after = [], 0, number - 1
        parts.append(event)
        size += len(event)
    if parts:
        pieces.append(Piece(after, page.next, b"".join(parts)))
    return pieces


@dataclass(slots=True, eq=False)
class Tail:
    """The newest events of a query, and how many clients wait for the next. `is_lost`: they cannot be read any more."""

    last: int
    pieces: deque[Piece] = field(default_factory=deque)
    size: int = 0
    clients: int = 0
    is_lost: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def begin(self) -> int:
        """The number behind which its events begin."""
        return self.pieces[0].after if self.pieces else self.last

    def find(self, after: int) -> Piece | None:
        """The piece that begins behind a number."""
        return next((piece for piece in self.pieces if piece.after == after), None)

    def append(self, pieces: list[Piece]) -> None:
        """Add new pieces, and drop the oldest above TAIL_BYTES."""
        for piece in pieces:
            self.pieces.append(piece)
            self.size += len(piece.body)
            self.last = piece.last
        while len(self.pieces) > 1 and self.size > TAIL_BYTES:
            self.size -= len(self.pieces.popleft().body)
        self.wake()

    def wake(self) -> None:
        """Let all clients look."""
        before, self.changed = self.changed, asyncio.Event()
        before.set()


class ResultStreams:
    """The streams of all clients. `control` is the station without the rights of a client, who reads the tails for all."""

    def __init__(self, control: StationControl, is_ending: Callable[[], bool]) -> None:
        self._control, self._is_ending = control, is_ending
        self._tails: dict[int, Tail] = {}
        self._looking: asyncio.Task[None] | None = None
        self._pages, self._reading = EncodedPages(), asyncio.Semaphore(READERS)
        self._signal: CommitSignal | None = None

    @property
    def next_commit(self) -> asyncio.Event:
        """The event that the next commit of results sets, taken before results are read."""
        if self._signal is None:
            self._signal = CommitSignal()
            self._control.on_results(self._signal.wake)
        return self._signal.next_commit

    async def follow(self, query: int, after: int, read: Read, check: Callable[[], None]) -> AsyncIterator[bytes]:
        """The events of all updates of a query behind a number. `check` raises where the client may read no more."""
        checked, silent_since = 0.0, time.monotonic()
        tail: Tail | None = None
        try:
            while not self._is_ending():
                if time.monotonic() - checked >= WAKE_SECONDS:
                    await run_in_threadpool(check)
                    checked = time.monotonic()
                if tail is None or tail.is_lost or after < tail.begin:
                    self._leave(query, tail)
                    tail = None
                    found, is_newest = await self._catch_up(read, after, PAGE)
                    if is_newest:
                        tail = await self._join(query, found[-1].last if found else after)
                else:
                    found = list(_pieces_behind(tail, after))
                    if not found and after < tail.last:  # within a piece
                        found, _ = await self._catch_up(read, after, _next_edge(tail, after) - after)
                for piece in found:
                    for part in _parts(piece):
                        yield part
                    after, silent_since = piece.last, time.monotonic()
                if found:
                    continue
                if time.monotonic() - silent_since > HEARTBEAT_SECONDS:
                    silent_since = time.monotonic()
                    yield b": nothing new\n\n"
                if tail is not None and after >= tail.last:
                    await wait_until(tail.changed, WAKE_SECONDS)
        finally:
            self._leave(query, tail)

    async def _catch_up(self, read: Read, after: int, limit: int) -> tuple[list[Piece], bool]:
        """Events behind a number that come from the results, and whether there are no more now."""
        async with self._reading:
            page = await read(after, limit)
            if not page.lines:
                return [], True
            body = await self._pages.encode("events", page, _encode_whole)
        return [Piece(after, page.next, body)], len(page.lines) < limit

    async def _join(self, query: int, last: int) -> Tail | None:
        """The tail of a query, a new one behind `last` but not beyond its updates; None where the query is there no more."""
        if query not in self._tails:
            try:
                newest = await run_in_threadpool(self._control.number_before, str(query), None)
            except KeyError:  # the next reading of the client says so
                return None
            self._tails.setdefault(query, Tail(min(last, newest)))
        tail = self._tails[query]
        tail.clients += 1
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        return tail

    def _leave(self, query: int, tail: Tail | None) -> None:
        if tail is None:
            return
        tail.clients -= 1
        if tail.clients == 0 and self._tails.get(query) is tail:
            del self._tails[query]

    async def _look(self) -> None:
        """Read and encode what is new, of all queries that clients follow, until there is none."""
        committed, is_full = self.next_commit, True
        while self._tails:
            if not is_full:
                await wait_until(committed, LOOK_SECONDS)
            committed = self.next_commit
            followed = list(self._tails.items())
            found = await run_in_threadpool(self._read_all, [(query, tail.last) for query, tail in followed])
            is_full = False
            for (query, tail), pieces in zip(followed, found, strict=True):
                if pieces is None:
                    tail.is_lost = True
                    if self._tails.get(query) is tail:
                        del self._tails[query]
                    tail.wake()
                elif pieces:
                    is_full = is_full or pieces[-1].last - pieces[0].after >= PAGE
                    tail.append(pieces)

    def _read_all(self, followed: list[tuple[int, int]]) -> list[list[Piece] | None]:
        """The new pieces of each query; None where they cannot be read."""
        found: list[list[Piece] | None] = []
        for query, last in followed:
            try:
                found.append(encode_events(self._control.results(str(query), last, PAGE)))
            except Exception:  # each client reads on its own then, and meets the reason
                found.append(None)
        return found


def _encode_whole(page: ResultPage) -> bytes:
    return b"".join(piece.body for piece in encode_events(page))


def _parts(piece: Piece) -> Iterator[bytes]:
    return (piece.body[at : at + PIECE_BYTES] for at in range(0, len(piece.body), PIECE_BYTES))


def _pieces_behind(tail: Tail, after: int) -> Iterator[Piece]:
    while (piece := tail.find(after)) is not None:
        yield piece
        after = piece.last


def _next_edge(tail: Tail, after: int) -> int:
    """The end of the piece in which a number is."""
    return next(piece.last for piece in tail.pieces if piece.after < after < piece.last)
