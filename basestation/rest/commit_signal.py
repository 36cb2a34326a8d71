"""CommitSignal: wakes the requests that wait for results as soon as the station's thread has committed some."""

import asyncio
from contextlib import suppress


class CommitSignal:
    """Belongs to one event loop: that of the first task that asks for the next commit."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._committed = asyncio.Event()

    @property
    def next_commit(self) -> asyncio.Event:
        """The event that the next commit of results sets. Take it before you read, so that no commit is missed between."""
        self._loop = asyncio.get_running_loop()
        return self._committed

    def wake(self) -> None:
        """Say that results were committed; from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the station ends, and no request waits any more
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        before, self._committed = self._committed, asyncio.Event()
        before.set()


async def wait_until(event: asyncio.Event, seconds: float) -> None:
    """Until an event, so many seconds at most."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
