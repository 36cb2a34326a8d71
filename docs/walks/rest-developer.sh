# A developer who knows HTTP: check a query, submit it, follow its answers in any language.
moteloom run --simulate examples/roadbridge/night.scenario.toml --speed 60 --port 0 2> station.log &
until [ -s moteloom-data/url ]; do sleep 0.2; done
URL=$(cat moteloom-data/url)
export MOTELOOM_TOKEN=$(cat moteloom-data/token)
AUTH="Authorization: Bearer $MOTELOOM_TOKEN"

# What is there to ask, and what is wrong with my query?
curl -s -H "$AUTH" $URL/v1/extents
curl -s -H "$AUTH" $URL/v1/check --data 'SELECT tmep FROM road [NOW]'
curl -s -H "$AUTH" "$URL/v1/queries?dry_run=true" --data 'SELECT AVG(temp) AS mean FROM road [NOW]'

# Submit it, and read its answers: a page, a table, events.
curl -s -H "$AUTH" "$URL/v1/queries?name=warmth" --data 'SELECT AVG(temp) AS mean FROM road [NOW]'
curl -s -H "$AUTH" "$URL/v1/queries/warmth/results?after=0&wait=20"
curl -s -H "$AUTH" "$URL/v1/queries/warmth/results.jsonl?after=0&limit=2"
node examples/web/follow.mjs $URL warmth 3

# The same from Python, as a table.
python -c '
from moteloom.client import connect
print(connect().query("warmth").current().to_pandas().tail(3))'

curl -s -H "$AUTH" -X POST $URL/v1/queries/warmth/stop
kill -INT $!
wait $!
