#!/usr/bin/env bash
# A station with 54 simulated motes, 30 times as fast as real time: its network, three queries, live answers, a mote that is away
# for three minutes. `make demo` runs this. With a terminal the station goes on in the background for half an hour, so that the
# commands at the end work in the same shell; without one it ends with the demo. DEMO_SPEED sets another speed.
set -euo pipefail
start=$PWD
cd "$(dirname "$0")"
data=$(mktemp -d "${TMPDIR:-/tmp}/moteloom-demo.XXXXXX")
title() { printf '\n== %s\n' "$*"; }
fail() { echo "demo: $*" >&2; cat "$data/log" >&2; exit 1; }
finish() { kill "$station" 2>/dev/null && { wait "$station" || true; }; rm -rf "$data"; }

speed=${DEMO_SPEED:-30}
title "a station with 54 simulated motes, $speed times as fast as real time"
timeout -s INT 30m moteloom run --simulate demo.scenario.toml --speed "$speed" --port 0 --data "$data" \
    </dev/null >"$data/log" 2>&1 &
station=$!
trap finish EXIT
for _ in $(seq 300); do [ -s "$data/url" ] && break; kill -0 "$station" 2>/dev/null || fail "the station ended"; sleep 0.1; done
sed -n 's/^  \(link\|interface\)/  \1/p' "$data/log"

title "its network: who sends to whom, and the share of frames that arrive"
for _ in $(seq 300); do
    moteloom topology --data "$data" >"$data/network"
    [ "$(wc -l <"$data/network")" -ge 55 ] && break
    sleep 0.1
done
head -n 9 "$data/network" | sed 's/^/  /'
echo "  … and $(($(wc -l <"$data/network") - 9)) motes more: moteloom topology"

submit() { printf '  $ moteloom query submit "%s"\n' "$1"; moteloom query submit --data "$data" "$1" >>"$data/numbers"; }
title "three queries: a filter, an aggregate that motes make on the way, a join with a stored table"
submit "SELECT site, temp FROM lab WHERE temp > 24.5"
submit "SELECT AVG(temp) AS mean, COUNT(*) AS motes FROM lab [FROM NOW-59 SEC TO NOW SLIDE 1 MIN]"
submit "SELECT r.room, MAX(l.light) AS brightest FROM lab [NOW] AS l, rooms [SCAN 30 SEC] AS r WHERE l.site = r.site GROUP BY r.room"

show() { timeout 120 moteloom query watch "$1" --data "$data" --count "$2" | tail -n "$3" | sed -E 's/^(.{117}).+/\1…/' | sed 's/^/  /'; }
title "warm desks: site, temperature"
show 1 12 3
title "each room's brightest desk, as of the newest epoch"
show 3 1 1
title "mean and readings by the minute; mote 17 is away from minute 6 to 9, what it kept revises the answers"
timeout 120 moteloom query watch 2 --data "$data" -o json --count 22 >"$data/answers" || fail "the answers stopped"
tail -n 14 "$data/answers" | python3 -c '
import json, sys
for line in map(json.loads, sys.stdin):
    used, due = line["coverage"]["lab"]
    rows = "; ".join(f"{mean:.3f}, {count}" for mean, count in line.get("rows", line.get("added")))
    again = f"revision {line['\''revision'\'']}" if line["revision"] else ""
    print(f"  {line['\''time'\''][11:16]}  {again:<10}  [{used} of {due}]  {rows}")'
title "what the station knows of its motes"
moteloom motes --data "$data" | sed -n '1p;18,19p' | sed 's/^/  /'
[ -s "$data/answers" ] || fail "no answers came"
grep -q '"revision": [1-9]' "$data/answers" || fail "no answer was revised"

if [ -t 1 ]; then
    trap - EXIT
    trap '' HUP INT
    { while kill -0 "$station" 2>/dev/null; do sleep 0.2; done; rm -rf "$data"; } </dev/null >/dev/null 2>&1 &
    moteloom=$(realpath --relative-to="$start" "$(command -v moteloom)")
    title "try it yourself, in this shell; the station ends with the last command, or after half an hour"
    cat <<EOF
  $moteloom query list --data $data
  $moteloom query submit --data $data --watch "SELECT site, humidity FROM lab WHERE humidity > 41.4"
  $moteloom motes --data $data
  kill $station
EOF
fi
echo; echo "demo: done"
