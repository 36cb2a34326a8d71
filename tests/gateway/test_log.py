"""Log lines: key=value pairs on standard error, from the configured level on."""

import logging
from argparse import ArgumentParser
from types import SimpleNamespace

import pytest

from gateway.cli import dispatch
from gateway.log import KeyValueFormatter, configure_logging, get_log


@pytest.fixture(autouse=True)
def restored():
    yield
    logging.getLogger("moteloom").handlers.clear()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(7, "7"), ("plain", "plain"), ("two words", '"two words"'), ('a"b', '"a\\"b"'), ("a\nb", '"a\\nb"'), ("", '""')],
)
def test_value_with_blank_or_quote_is_quoted(value, shown):
    record = logging.makeLogRecord({"name": "moteloom.gateway", "msg": "event", "fields": {"key": value}})
    assert KeyValueFormatter().format(record).endswith(f"log=gateway event=event key={shown}")


def test_event_below_level_is_not_written(capsys):
    configure_logging("warning")
    log = get_log("gateway")
    log.info("normal")
    log.warning("frame refused", code="checksum", size=17)
    captured = capsys.readouterr()
    assert captured.out == ""
    [line] = captured.err.splitlines()
    assert line.endswith('level=warning log=gateway event="frame refused" code=checksum size=17')


def test_configuring_twice_writes_each_event_once(capsys):
    configure_logging("debug")
    configure_logging("debug")
    get_log("gateway").debug("once")
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(("options", "lines"), [([], 0), (["-v"], 2), (["--log-level", "info"], 2)])
def test_verb_option_sets_the_level(monkeypatch, capsys, options, lines):
    def configure(parser: ArgumentParser) -> None:
        parser.add_argument("--number", type=int)

    verb = SimpleNamespace(HELP="do nothing", configure=configure, run=lambda args: 0)
    entry = SimpleNamespace(load=lambda: verb)
    assert dispatch(["nothing", *options], {"nothing": entry}) == 0
    err = capsys.readouterr().err
    assert len(err.splitlines()) == lines and err.count("verb=nothing") == lines
