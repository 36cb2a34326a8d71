#!/usr/bin/env bash
# A station with 54 simulated motes, 30 times as fast as real time: three queries, live answers, a mote that is away for three
# minutes. `make demo` runs this. With a terminal the station goes on until Ctrl-C; without one the demo checks itself and ends.
set -euo pipefail
cd "$(dirname "$0")"
data=$(mktemp -d "${TMPDIR:-/tmp}/moteloom-demo.XXXXXX")
title() { printf '\n== %s\n' "$*"; }
fail() { echo "demo: $*" >&2; cat "$data/log" >&2; exit 1; }
finish() { kill -INT "$station" 2>/dev/null && { wait "$station" || true; }; rm -rf "$data"; }

title "a station with 54 simulated motes, 30 times as fast as real time"
moteloom run --simulate demo.scenario.toml --speed 30 --port 0 --data "$data" 2>"$data/log" &
station=$!
trap finish EXIT
for _ in $(seq 300); do [ -s "$data/url" ] && break; kill -0 "$station" 2>/dev/null || fail "the station ended"; sleep 0.1; done
sed -n 's/^  \(link\|interface\)/  \1/p' "$data/log"

submit() { printf '\n  $ moteloom query submit "%s"\n  query %s\n' "$1" "$(moteloom query submit --data "$data" "$1")"; }
title "three queries: a filter, an aggregate that motes make on the way, a join with a stored table"
submit "SELECT site, temp FROM lab WHERE temp > 24.5"
submit "SELECT AVG(temp) AS mean, COUNT(*) AS motes FROM lab [FROM NOW-59 SEC TO NOW SLIDE 1 MIN]"
submit "SELECT r.room, MAX(l.light) AS brightest FROM lab [NOW] AS l, rooms [SCAN 30 SEC] AS r WHERE l.site = r.site GROUP BY r.room"

show() { timeout 120 moteloom query watch "$1" --data "$data" --count "$2" | tail -n "$3" | cut -c1-118 | sed 's/^/  /'; }
title "warm desks: site, temperature"
show 1 12 4
title "each room's brightest desk, as of the newest epoch"
show 3 3 1
title "mean and readings by the minute; mote 17 is away from minute 6 to 9, what it kept revises the answers"
timeout 120 moteloom query watch 2 --data "$data" -o json --count 22 >"$data/answers" || fail "the answers stopped"
tail -n 16 "$data/answers" | python3 -c '
import json, sys
for line in map(json.loads, sys.stdin):
    used, due = line["coverage"]["lab"]
    rows = "; ".join(f"{mean:.3f}, {count}" for mean, count in line.get("rows", line.get("added")))
    again = f"revision {line['\''revision'\'']}" if line["revision"] else ""
    print(f"  {line['\''time'\''][11:16]}  {again:<10}  [{used} of {due}]  {rows}")'
title "what the station knows of its motes"
moteloom motes --data "$data" | sed -n '1p;17,19p' | sed 's/^/  /'
[ -s "$data/answers" ] || fail "no answers came"
grep -q '"revision": [1-9]' "$data/answers" || fail "no answer was revised"

if [ -t 1 ]; then
    title "try it yourself"
    cat <<EOF
  export PATH=$(dirname "$(command -v moteloom)"):\$PATH
  moteloom query list --data $data
  moteloom query submit --data $data --watch "SELECT site, humidity FROM lab WHERE humidity > 41.4"
  moteloom motes --data $data
EOF
    echo; echo "The station goes on for the commands above, in another terminal. Ctrl-C stops it and removes its data."
    trap 'finish; exit 0' INT TERM HUP
    wait "$station"
fi
echo; echo "demo: done"
