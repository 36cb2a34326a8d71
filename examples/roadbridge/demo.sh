#!/usr/bin/env bash
# The road bridge in a minute: what is asked of it, and what Moteloom makes of each question. `make demo` runs this.
# usage: demo.sh [QUERY …]        names of files in queries/, without .sneeql; all of them if none is named
set -euo pipefail
cd "$(dirname "$0")"

# What is printed fits the terminal; in a pipe or a file it is whole and without colours.
if [ -t 1 ]; then
    width=$(tput cols 2>/dev/null || echo 80)
else
    width=100000
fi
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$'\e[1m' dim=$'\e[2m' accent=$'\e[36m' plain=$'\e[0m'
else
    bold='' dim='' accent='' plain=''
fi

stop() { echo "demo: $*" >&2; exit 1; }
title() { printf '\n%s%s%s\n' "$bold$accent" "$1" "$plain"; }
say() { printf '%s\n' "$*"; }

# Lines of standard input, moved in by $1 and cut off where the terminal ends.
indented() {
    local line
    while IFS= read -r line; do
        line="$1$line"
        if [ "${#line}" -gt "$width" ]; then line="${line:0:width-1}…"; fi
        printf '%s\n' "$line"
    done
}

explain() { moteloom explain --schema schema.sneeql "$@"; }

# Of a whole explanation: the algebra, the names of the rewrites, and the memory.
digest() {
    awk '
        /^$/                  { part = "" }
        part == "algebra"     { print substr($0, 3) }
        part == "memory"      { memory = substr($0, 3) }
        /^algebra$|^memory$/  { part = $0 }
        /^rewrite [0-9]+: /   { names = names (names == "" ? "" : ", ") $3 }
        END                   { print "rewritten by: " (names == "" ? "nothing" : names); print "keeps: " memory }'
}

show() {
    local file=queries/$1.sneeql explained
    [ -f "$file" ] || stop "there is no query $1 in queries/"
    title "$1"
    sed -n '1s/^-- //p' "$file"
    sed 1d "$file" | sed '/^[[:space:]]*$/d' | indented "    " | sed "s/^/$dim/; s/\$/$plain/"
    explained=$(explain -f "$file") || stop "$file is not accepted"
    digest <<<"$explained" | indented "  "
}

# The answers of one query over the recorded day, up to the tick $2, and what became of the readings.
replayed() {
    local code=0
    title "$1, over the recorded day$3"
    moteloom replay --schema schema.sneeql --input road=recording/road.csv --input traffic=recording/traffic.csv \
        --input tempClass=temp_class.csv --until "$2" -f "queries/$1.sneeql" >"$answers" 2>"$answers.told" || code=$?
    case $code in
        0) ;;
        4) say "  not yet: $(sed -n '1s/^[A-Z0-9]*: //p' "$answers.told")"; return ;;
        *) cat "$answers.told" >&2; stop "$1 could not be replayed" ;;
    esac
    sed -n '1,8p' "$answers" | indented "  "
    say "  $dim… $(sed -n '$=' "$answers") lines in all$plain"
    indented "  $dim" <"$answers.told"
    printf '%s' "$plain"
}

command -v moteloom >/dev/null || stop "the command moteloom is not on PATH; \`make demo\` sees to that"
verbs=$(moteloom --help)

names=("$@")
if [ $# -eq 0 ]; then
    names=(Q1 Q2 Q3)
    for file in queries/[a-z]*.sneeql; do
        name=${file#queries/}
        names+=("${name%.sneeql}")
    done
fi

title "The bridge"
say "Four lanes. A mote in each says every minute how cold and how shaken it is; strips in the road weigh what drives by."
say "The paper's three queries, and what a bridge's keepers would ask. The schema:"
say
sed '/^--/d; /^$/d' schema.sneeql | indented "    "

for name in "${names[@]}"; do
    show "$name"
done

if [ $# -eq 0 ]; then
    title "Q2, explained in full"
    explain -f queries/Q2.sneeql | sed '/./s/^/  /'

    title "A slip of the pen"
    slip="SELECT site, temp FROM road [NOW] WHERE vibratoin > 20"
    say "    $slip"
    code=0
    said=$(explain "$slip" 2>&1) || code=$?
    [ "$code" -eq 2 ] || stop "a column that does not exist was not refused"
    indented "  " <<<"$said"
fi

if grep -q '^  replay ' <<<"$verbs"; then
    answers=$(mktemp)
    trap 'rm -f "$answers" "$answers.told"' EXIT
    if [ $# -gt 0 ]; then
        for name in "${names[@]}"; do replayed "$name" 86400 ""; done
    else
        for name in Q1 overload ice_risk heavy_on_ice; do replayed "$name" 21600 ", until six in the morning"; done
    fi
fi

title "Your turn"
say "  moteloom explain --schema examples/roadbridge/schema.sneeql 'SELECT site, AVG(temp) FROM road [NOW] GROUP BY site'"
if grep -q '^  replay ' <<<"$verbs"; then say "  examples/roadbridge/demo.sh silent_sensor"; fi
say "  $dim# the language: docs/language.md        its errors: moteloom errors$plain"
