"""Make a recorded day on the bridge: road.csv and traffic.csv in recording/, and temp_class.csv beside the schema.

    python examples/roadbridge/make_recording.py [folder]

It is a cold day in November, from midnight to midnight, with these events for queries to find: frost until the morning and
again at night, coldest in lane 2 (in the wind); rush hours at 8 and 17; lorries that shake the deck, a few of them
overloaded; mote 3 silent from 13:10 to 13:40; missing, late and duplicate readings, and readings without a temperature.

The same seed gives the same bytes everywhere: all randomness comes from `Random.random`, whose sequence Python keeps stable.
"""

import math
import sys
from pathlib import Path
from random import Random

SEED = 1811
SITES = (1, 2, 3, 4)
MINUTE, HOUR, DAY = 60, 3_600, 86_400

MISSING, LATE, TWICE, NO_TEMPERATURE = 0.006, 0.004, 0.003, 0.002
SILENT_SITE, SILENT_FROM, SILENT_TO = 3, 13 * HOUR + 10 * MINUTE, 13 * HOUR + 40 * MINUTE

COLDER = {1: 0.0, 2: 1.6, 3: 1.1, 4: 0.3}  # degrees below the air, by lane
BUSY = {1: 1.0, 2: 0.8, 3: 0.7, 4: 1.1}  # of the mean traffic, by lane

# vehicle -> (share of the traffic by day, share at night, lightest and heaviest in kg)
VEHICLES = {
    1: (0.02, 0.005, 190, 380),
    2: (0.73, 0.655, 850, 2_300),
    3: (0.13, 0.10, 1_700, 3_500),
    4: (0.02, 0.01, 10_500, 18_000),
    5: (0.10, 0.23, 7_500, 39_500),
}
OVERLOADED = 0.03  # of the lorries

CATEGORIES = ((-40, "black ice"), (-3, "ice"), (1, "frost risk"), (4, "cold"), (12, "mild"), (24, "warm"), (35, "hot"))
WARMEST = 60


def normal(chance):
    """A number from about a normal distribution: twelve dice less their mean."""
    return sum(chance.random() for _ in range(12)) - 6.0


def whole(chance, low, high):
    """A whole number from low to high, both inside."""
    return low + int(chance.random() * (high - low + 1))


def bump(tick, middle, width):
    return math.exp(-(((tick - middle) / width) ** 2))


# --- traffic -----------------------------------------------------------------------------------------------------------


def vehicles_an_hour(tick, lane):
    """How busy a lane is: quiet at night, steady by day, two rush hours."""
    day = bump(tick, 13 * HOUR, 5.5 * HOUR)
    rush = bump(tick, 8 * HOUR, 0.9 * HOUR) + 0.9 * bump(tick, 17.2 * HOUR, 1.1 * HOUR)
    return BUSY[lane] * (6 + 42 * day + 85 * rush)


def passages(chance, lane):
    """(tick, vehicle, weight) of one lane: a Poisson process, thinned to the rate of the hour."""
    busiest = 150.0
    moment, found = 0.0, []
    while True:
        moment -= math.log(1.0 - chance.random()) * HOUR / busiest
        if moment >= DAY:
            return found
        if chance.random() * busiest < vehicles_an_hour(moment, lane):
            found.append((int(moment), *a_vehicle(chance, moment)))


def a_vehicle(chance, tick):
    night = tick < 6 * HOUR or tick >= 21 * HOUR
    pick = chance.random()
    for vehicle, (by_day, at_night, _, _) in VEHICLES.items():
        share = at_night if night else by_day
        if pick < share or vehicle == max(VEHICLES):
            break
        pick -= share
    _, _, lightest, heaviest = VEHICLES[vehicle]
    weight = lightest + (heaviest - lightest) * chance.random() ** 1.4
    if vehicle == 5 and chance.random() < OVERLOADED:
        weight = 40_200 + 7_000 * chance.random()
    return vehicle, round(weight / 10) * 10


def traffic_rows(chance, by_lane):
    """Rows of traffic.csv: most come within two seconds, a few when their windows have been answered."""
    rows = []
    for lane, found in by_lane.items():
        for tick, vehicle, weight in found:
            delay = whole(chance, 20, 15 * MINUTE) if chance.random() < LATE else whole(chance, 0, 2)
            time = -(-tick // MINUTE) * MINUTE
            rows.append((tick + delay, tick, lane, time, weight, vehicle))
    return sorted(rows)


# --- road --------------------------------------------------------------------------------------------------------------


def temperature(tick, lane, drift):
    """Degrees: lowest before sunrise, highest after noon."""
    daily = 3.2 - 6.4 * math.cos(2 * math.pi * (tick - 2.5 * HOUR) / DAY)
    return daily - COLDER[lane] + drift


def vibration(tick, lane, by_minute):
    """The strongest shake since the last sample: what passed in this lane, and less of what passed beside it."""
    shaken = 0.0
    for other in SITES:
        tonnes = max(by_minute.get((other, tick), (0,))) / 1_000
        shaken = max(shaken, 1.9 * tonnes / (1 + 2 * abs(other - lane)))
    return 4.0 + shaken


def road_rows(chance, by_lane):
    """Rows of road.csv in the order in which they reached the base station."""
    by_minute = {}
    for lane, found in by_lane.items():
        for tick, _, weight in found:
            by_minute.setdefault((lane, -(-tick // MINUTE) * MINUTE), []).append(weight)
    rows = []
    drift = dict.fromkeys(SITES, 0.0)
    for tick in range(0, DAY, MINUTE):
        for site in SITES:
            drift[site] = 0.97 * drift[site] + 0.12 * normal(chance)
            temp = str(math.floor(temperature(tick, site, drift[site]) + 0.5))
            shake = max(0, math.floor(vibration(tick, site, by_minute) + 1.2 * normal(chance) + 0.5))
            delay = whole(chance, 35, 40 * MINUTE) if chance.random() < LATE else whole(chance, 1, 4)
            if chance.random() < NO_TEMPERATURE:
                temp = ""
            missing = chance.random() < MISSING
            again = chance.random() < TWICE
            if missing or (site == SILENT_SITE and SILENT_FROM <= tick < SILENT_TO):
                continue
            rows.append((tick + delay, tick, site, temp, shake))
            if again:
                rows.append((tick + delay + whole(chance, 1, 20), tick, site, temp, shake))
    return [(tick, site, arrival, temp, shake) for arrival, tick, site, temp, shake in sorted(rows)]


# --- files -------------------------------------------------------------------------------------------------------------


def temp_classes():
    """A row for every whole degree."""
    for (lowest, category), (above, _) in zip(CATEGORIES, (*CATEGORIES[1:], (WARMEST + 1, "")), strict=True):
        for temp in range(lowest, above):
            yield temp, category


def as_csv(head, rows):
    return "\n".join([head, *(",".join(map(str, row)) for row in rows), ""]).encode()


def recording(seed=SEED):
    """{file: bytes} of the whole day."""
    chance = Random(seed)
    by_lane = {lane: passages(chance, lane) for lane in SITES}
    return {
        "recording/road.csv": as_csv("_tick,_site,_arrival,temp,vibration", road_rows(chance, by_lane)),
        "recording/traffic.csv": as_csv("_arrival,_tick,site,time,weight,vehicle", traffic_rows(chance, by_lane)),
        "temp_class.csv": as_csv("temp,category", temp_classes()),
    }


def main(folder=None):
    folder = Path(folder or Path(__file__).parent)
    for name, content in recording().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"{name}: {len(content.splitlines()) - 1:,} rows, {len(content):,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:2])
