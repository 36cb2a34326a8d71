"""LatestReadings: the newest value of each attribute that each site delivered, by extent."""

from collections.abc import Iterable

import numpy as np

from acquisition.batch import Batch

Value = int | float | str | None


class LatestReadings:
    """Readings that motes filter or merge on the way are not among them: the station has no values of these."""

    def __init__(self) -> None:
        self._by_extent: dict[str, dict[int, dict[str, tuple[int, Value]]]] = {}

    def record(self, batches: Iterable[tuple[str, Batch]]) -> None:
        """Take readings that arrived, each batch with the name of its extent."""
        for extent, batch in batches:
            sites = self._by_extent.setdefault(extent, {})
            order = np.lexsort((batch.tick, batch.site))
            newest = order[np.append(batch.site[order][1:] != batch.site[order][:-1], True)] if len(batch) else order
            for row in newest.tolist():
                tick, found = int(batch.tick[row]), sites.setdefault(int(batch.site[row]), {})
                for name, values in batch.columns.items():
                    if name not in found or found[name][0] <= tick:
                        valid = batch.valid.get(name)
                        is_known = valid is None or bool(valid[row])
                        found[name] = tick, values[row : row + 1].tolist()[0] if is_known else None

    def of(self, extent: str) -> dict[int, dict[str, tuple[int, Value]]]:
        """By site and attribute, (tick, value); whole multiples where the attribute has a scale."""
        return {site: dict(found) for site, found in sorted(self._by_extent.get(extent, {}).items())}
