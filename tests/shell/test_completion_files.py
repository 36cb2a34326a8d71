"""The completion files of `moteloom completion`, read by the shells themselves."""

import os
import subprocess
import sys

import pytest

from basestation.cli.completion import SHELLS, list_commands
from tests.docs.commands import verbs
from tests.docs.pages import ROOT


def completion_file(shell, folder):
    done = subprocess.run(
        [sys.executable, "-m", "gateway.cli", "completion", shell], cwd=ROOT, capture_output=True, text=True, check=True
    )
    path = folder / ("_moteloom" if shell == "zsh" else f"moteloom.{shell}")
    path.write_text(done.stdout)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completions")
    return {shell: completion_file(shell, folder) for shell in SHELLS}


def bash(path, *words):
    quoted = " ".join(f'"{word}"' for word in ("moteloom", *words))
    script = (
        f'source {path}; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _moteloom; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


def zsh(path, *words):
    quoted = " ".join(f'"{word}"' for word in ("moteloom", *words))
    script = (
        "compdef() { :; }; _files() { :; }; compadd() { shift; print -l -- ${(M)@:#${words[CURRENT]}*}; };"
        f"source {path}; words=({quoted}); CURRENT={len(words) + 1}; _moteloom; print $PATH > /dev/null"
    )
    return subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, check=True).stdout.split()


def fish(path, *words):
    line = " ".join(("moteloom", *words))
    environment = {**os.environ, "HOME": str(path.parent)}
    script = f"source {path}; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    return [found.split("\t")[0] for found in done.stdout.splitlines()]


OTHER = pytest.mark.other_shell


@pytest.mark.parametrize("shell", [bash, pytest.param(zsh, marks=OTHER), pytest.param(fish, marks=OTHER)], ids=SHELLS)
def test_shell_completes_verbs_options_and_values(shell, files, need):
    name = shell.__name__
    need(name)
    path = files[name]
    assert set(shell(path, "")) >= set(verbs())
    assert shell(path, "rep") == ["replay"]
    assert set(shell(path, "query", "")) >= {"submit", "list", "watch"}
    assert "--dry-run" in shell(path, "query", "submit", "--d")
    assert {"table", "json"} <= set(shell(path, "query", "list", "-o", "")) and "submit" not in shell(
        path, "query", "list", "-o", ""
    )
    assert set(shell(path, "completion", "")) >= set(SHELLS)
    assert shell(path, "replay", "--sch") == ["--schema"]


def test_commands_are_those_of_the_parsers():
    commands = {command.path: command for command in list_commands()}
    assert set(commands["moteloom"].words) >= set(verbs()) and "moteloom query submit" in commands
    assert all(commands["moteloom"].words.values())
    assert {"--url", "--token", "--data"} <= set(commands["moteloom query watch"].options)
