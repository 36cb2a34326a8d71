"""Find the sites that drift most against their neighbours: the change of a site's daily mean less that of its room, in a month.

    python examples/history/drift.py --data moteloom-data --rooms examples/lab54/rooms.csv temp

Prints a line for each of the sites with the largest drift: site, drift in 30 days, days that it was seen.
"""

import argparse

import moteloom

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("attribute", help="the attribute to compare, such as temp")
parser.add_argument("--extent", default="lab")
parser.add_argument("--data", default="moteloom-data", help="the data directory of a station")
parser.add_argument("--schema", help="the declarations of the extents; default: those of the station")
parser.add_argument("--rooms", required=True, help="a CSV file with the columns site and room: neighbours share a room")
parser.add_argument("--days", type=int, default=30)
parser.add_argument("--most", type=int, default=5, help="how many sites to print")
args = parser.parse_args()

# A mean for each site and day: SNEEql over the archive, answered by Spark.
means = moteloom.history(
    f"SELECT site, AVG({args.attribute}) AS mean FROM {args.extent} [FROM NOW-23 HOUR TO NOW SLIDE 1 DAY] GROUP BY site",
    args.data, schema=args.schema, begin=f"-{args.days}d",
)  # fmt: skip
means.createOrReplaceTempView("means")
spark = means.sparkSession
spark.read.csv(args.rooms, header=True, inferSchema=True).createOrReplaceTempView("rooms")

# Against the mean of the other sites of the room, and the slope of the difference over the days.
drifts = spark.sql("""
    WITH rooms_of_days AS (
      SELECT m.*, sum(mean) OVER (PARTITION BY _tick, room) AS total, count(mean) OVER (PARTITION BY _tick, room) AS sites
      FROM means m JOIN rooms r ON r.site = m.site
    ),
    others AS (SELECT site, _time, mean, (total - mean) / (sites - 1) AS neighbours FROM rooms_of_days)
    SELECT site, 30 * regr_slope(mean - neighbours, unix_timestamp(_time) / 86400) AS drift, count(neighbours) AS days
    FROM others GROUP BY site HAVING drift IS NOT NULL ORDER BY abs(drift) DESC, site
""")
for site, drift, days in drifts.limit(args.most).collect():
    print(f"site {site}: {drift:+.2f} in 30 days, seen on {days} days")
