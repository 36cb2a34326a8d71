#!/usr/bin/env bash
# Writes golden files and generated pages anew. An answer that the oracle does not confirm is refused, not written.
# usage: tools/rewrite.sh VENV [golden query file …]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1/bin/python
shift
"$python" -m tests.golden.expectations --rewrite "$@"
[ $# -eq 0 ] || exit 0
"$python" -m tests.golden.errors_runner --rewrite
"$python" -m innet.program.opcodes
MOTELOOM_REWRITE=1 "$python" -m pytest -q -n 2 tests/golden/frames tests/docs/test_frames_page.py
git diff --stat
