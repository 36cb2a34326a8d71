"""W7 by hand: the rows of three windows are looked up by minute and site; a window is four combinations of minutes."""

from itertools import product

import numpy as np

from bench.answers import Windows
from bench.ceiling.codes import Codes
from bench.data import MINUTE

REACH = {"road": 2, "wind": 2, "rain": 1}
COLUMN = {"road": "temp", "wind": "vibration", "rain": "temp"}
PORTION = 1 << 15  # readings of a stream at a time: what fits into the caches


class Ceiling:
    def __init__(self, case, streams):
        self._codes = Codes()
        self._answered = -1
        self._waiting = {name: [] for name in REACH}

    def prepare(self, parts, last):
        given = {n: (s.tick, s.columns["site"], s.columns[COLUMN[n]]) for n, s in parts.items()}
        return given, last

    def step(self, batch):
        given, last = batch
        for name, columns in given.items():
            self._waiting[name].append(columns)
        minute, said = last // MINUTE, []
        while self._answered < minute:
            # Where the portions end is a guess, from how many readings there are in all.
            waiting = sum(len(parts[0]) for parts in self._waiting["road"])
            portions = max(1, waiting // PORTION)
            said.append(self._answer(self._answered + -(-(minute - self._answered) // portions)))
        return said

    def _answer(self, minute):
        first, self._answered = self._answered, minute
        windows = minute - first
        streams = {name: self._taken(name, first, minute) for name in REACH}
        # Layers are more than one where a site reports more than once in a minute.
        layers = {name: self._layers(*streams[name], first - REACH[name], minute) for name in REACH}
        sites = len(self._codes)
        window, code, columns = [], [], {name: [] for name in REACH}
        for back in product(*(range(reach) for reach in REACH.values())):
            for chosen in product(*layers.values()):
                found = []
                for name, late, layer in zip(REACH, back, chosen, strict=True):
                    begin = (REACH[name] - late) * sites
                    found.append(layer[begin : begin + windows * sites])
                cell = np.flatnonzero((found[0] >= 0) & (found[1] >= 0) & (found[2] >= 0))
                window.append(cell // sites if sites else cell)
                code.append(cell % sites if sites else cell)
                for name, places in zip(REACH, found, strict=True):
                    columns[name].append(streams[name][2][places[cell]])
        window = np.concatenate(window)
        order = np.argsort(window, kind="stable")
        site = self._codes.values[np.concatenate(code)][order]
        values = [(np.concatenate(columns[name])[order], None) for name in REACH]
        bounds = np.concatenate([[0], np.bincount(window, minlength=windows).cumsum()])
        return Windows((np.arange(windows) + first + 1) * MINUTE, bounds, [(site, None), *values])

    def _taken(self, name, first, minute):
        """Tick, site and value of the tuples that the windows behind `first` up to `minute` hold; older ones are dropped."""
        if not self._waiting[name]:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        if len(self._waiting[name]) > 1:
            self._waiting[name] = [[np.concatenate(parts) for parts in zip(*self._waiting[name], strict=True)]]
        [(tick, site, value)] = self._waiting[name]
        keep, over = np.searchsorted(tick, [(minute + 1 - REACH[name]) * MINUTE, minute * MINUTE]).tolist()
        self._waiting[name] = [(tick[keep:], site[keep:], value[keep:])]
        return tick[:over], self._codes.of(site[:over]), value[:over]

    def _layers(self, tick, code, value, first, minute):
        """Tables by minute and site, from the minute `first` on: where in the stream the reading is, -1 for none."""
        sites = len(self._codes)
        left = np.arange(len(tick))
        cell = (tick // MINUTE - first) * sites + code
        layers = []
        while len(left) or not layers:
            table = np.full((minute - first) * sites, -1)
            inside = cell[left]
            table[inside[::-1]] = left[::-1]  # the first one of each
            layers.append(table)
            left = left[table[inside] != left]
        return layers
