"""docs/deployments.md: its deployment is valid, its keys are those of the reader, its figures those of the tables."""

from dataclasses import fields

import pytest

from gateway.toml import ConfigError
from innet.costs.hardware import list_hardware, load_hardware
from innet.deployment.propagation import PropagationModel
from innet.deployment.toml_reader import parse_deployment
from tests.docs.pages import DOCS, blocks, tables

PAGE = DOCS / "deployments.md"
KEYS, FIGURES, HARDWARE = tables(PAGE)
WHOLE, RADIO = blocks(PAGE, "toml")
[ERROR] = blocks(PAGE, "")


def read(text):
    return parse_deployment(text, "tank.toml", lambda name: "")


def test_deployment_of_the_page_is_valid():
    tank = read(WHOLE.text)
    assert set(tank.motes) == {1, 2} and len(tank.links) == 4
    assert tank.motes[2].battery == 2 * tank.motes[1].battery


def test_page_shows_the_real_error():
    with pytest.raises(ConfigError) as raised:
        read(WHOLE.text.replace("telosb", "telsob"))
    assert f"{raised.value}\n" == ERROR.text


def test_radio_model_of_the_page_is_valid():
    text = WHOLE.text[: WHOLE.text.index("table = [")] + RADIO.text + WHOLE.text[WHOLE.text.index("[extents]") :]
    assert read(text).links


@pytest.mark.promise("pages-are-true")
def test_reader_knows_every_key_of_the_page():
    """A key that is not read is unknown (SN702), so a deployment with all keys of the page has no SN702."""
    names = {row[0].strip("`").rpartition(".")[2] for row in KEYS[1:]}
    assert {"name", "tick_ms", "at", "board", "hardware", "raw", "file", "text", "table", "radio"} <= names
    everything = f"""
        name = "x"
        tick_ms = 1
        [gateways]
        0.at = [0, 0]
        [boards.b]
        [motes.1]
        at = [1, 1]
        board = "b"
        hardware = "telosb"
        battery_mah = 1
        battery_j = 1
        sensors.NAME = {{ {", ".join(f"{name} = 0" for name in sorted(names) if any(f"sensors.NAME.{name}" in row[0] for row in KEYS))} }}
        [links]
        table = []
        file = "x"
        radio = {{ {", ".join(f"{row[0].strip('`')} = 1" for row in FIGURES[1:])} }}
        [extents]
        file = "x"
        text = "x"
        [archive]
        keep_days = 1
        keep_mb = 1
        free_mb = 1
        [history]
        memory_mb = 512
        idle_s = 1
        master = "local[2]"
        [link]
        url = "mqtt://broker.example"
        user = "x"
        password = {{}}
        ca = "x"
        certificate = "x"
        key = "x"
        protocol = "5"
        keepalive_s = 60
        plain_password = false
        [rest]
        host = "127.0.0.1"
        port = 0
        certificate = "x"
        key = "x"
        no_tls = false
        [limits]
        requests_per_second = 1
        burst = 1
        open_requests = 1
        body_kb = 1
        upload_mb = 1
        queries = 1
        queries_of_user = 1
        results_of_user = 1
        state_mb = 1
        state_mb_of_user = 1
        cpu_share = 1
        cpu_share_of_user = 1
        """
    with pytest.raises(ConfigError) as raised:
        read(everything)
    codes = {fault.code for fault in raised.value.diagnostics}
    assert "SN705" in codes and "SN702" not in codes
    assert all(f"{name} =" in everything or name in ("at", "NAME") for name in names)


def test_page_has_the_defaults_of_the_radio_model():
    shown = {row[0].strip("`"): row[2] for row in FIGURES[1:]}
    assert shown.pop("seed") == ""
    assert {name: float(value) for name, value in shown.items()} == {
        field.name: field.default for field in fields(PropagationModel) if field.name != "seed"
    }


@pytest.mark.promise("pages-are-true")
def test_page_has_the_hardware_tables():
    shown = []
    for name in list_hardware():
        found = load_hardware(name)
        radio, processor = found.radio, found.processor
        figures = (found.voltage, radio.send_ma, radio.listen_ma, radio.startup_ms)
        shown.append(
            [f"`{name}`", found.title, *(f"{figure:g}" for figure in figures), f"{radio.airtime_ms(50):.3f}"]
            + [f"{figure:g}" for figure in (processor.active_ma, processor.sleep_ma)]
            + [str(processor.program_bytes), str(processor.ram_bytes)]
        )
    assert HARDWARE[1:] == shown
