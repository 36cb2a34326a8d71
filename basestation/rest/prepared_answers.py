"""PreparedAnswers: the bytes of answers that many clients ask for, as long as nothing changes what they say."""

from collections.abc import Hashable

MOST_ANSWERS, LARGEST_ANSWER = 64, 500_000


class PreparedAnswers:
    """Answers by what was asked, each with the version of the data in it. The one that was kept first goes first."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Hashable, bytes]] = {}

    def find(self, asked: Hashable, version: Hashable) -> bytes | None:
        """The answer of this version, or None."""
        kept = self._kept.get(asked)
        return None if kept is None or kept[0] != version else kept[1]

    def keep(self, asked: Hashable, version: Hashable, answer: bytes) -> bytes:
        """Keep an answer whose data is of this version or a newer one; returns the answer."""
        self._kept.pop(asked, None)
        if len(answer) <= LARGEST_ANSWER:
            self._kept[asked] = version, answer
            if len(self._kept) > MOST_ANSWERS:
                del self._kept[next(iter(self._kept))]
        return answer
