"""EncodedPages: pages of updates as bytes, encoded once for each format, however many clients ask for them."""

import asyncio
from collections.abc import Callable, Hashable

from starlette.concurrency import run_in_threadpool

from basestation.rest.control import ResultPage
from basestation.rest.prepared_answers import PreparedAnswers

Encode = Callable[[ResultPage], bytes]


class EncodedPages:
    """The newest pages that clients asked for. An update never changes, so a page with the same numbers has the same bytes."""

    def __init__(self) -> None:
        self._prepared = PreparedAnswers()
        self._pending: dict[Hashable, asyncio.Task[bytes]] = {}

    async def encode(self, form: str, page: ResultPage, encode: Encode) -> bytes:
        """The bytes of a page in a format. Clients that ask while another one waits for them get the same bytes."""
        key = form, page.query, page.next, len(page.lines)
        found = self._prepared.find(key, page.epoch)
        if found is not None:
            return found
        task = self._pending.get(key)
        if task is None:
            task = self._pending[key] = asyncio.create_task(run_in_threadpool(encode, page))
            task.add_done_callback(lambda _: self._pending.pop(key, None))
        return self._prepared.keep(key, page.epoch, await asyncio.shield(task))
