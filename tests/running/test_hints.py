"""The commands that `jobgate dev` and the demo print exist, with these arguments, and so do the routes for curl."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from app.cli import _print_dev_ready
from app.running import hints
from app.running.application import create_app
from jobgate.cli.command import app

URL = "http://127.0.0.1:8080"
TEXTS = {"dev": hints.of_dev(URL), "demo": hints.of_demo(URL, "/tmp/kube config")}


def commands(text: str) -> list[list[str]]:
    lines = [shlex.split(line) for line in text.splitlines() if line.startswith("  ")]
    return [words[1:] for words in lines if Path(words[0]).name == "jobgate"]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_command_is_one_of_the_client(text: str) -> None:
    group: Any = get_command(app)
    found = commands(text)
    assert len(found) >= 5
    for name, *arguments in found:
        parsed = group.commands[name].make_context(name, arguments)
        for file in parsed.params.get("filename") or ():
            assert Path(file).is_file()


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_address_is_a_route(text: str) -> None:
    paths = create_app().openapi()["paths"]
    asked = re.findall(rf"curl {URL}(\S+)", text)
    assert asked
    assert [path for path in asked if path not in paths] == []


def test_another_port_is_told_to_the_client() -> None:
    assert "export JOBGATE_SERVER" not in TEXTS["dev"]
    assert "  export JOBGATE_SERVER=http://127.0.0.1:9999\n" in hints.of_dev("http://127.0.0.1:9999")


def test_the_first_hint_is_the_address_of_the_dashboard(capsys: pytest.CaptureFixture[str]) -> None:
    _print_dev_ready(URL, "/tmp/kubeconfig")
    ready, exported, _, first, *_ = capsys.readouterr().out.splitlines()
    assert ready == f"jobgate is ready at {URL}"
    assert exported.startswith("export KUBECONFIG=")
    assert first == hints.dashboard_line(URL)
    assert f"{URL}/" in first.split()


def test_the_kubeconfig_is_quoted() -> None:
    assert "export KUBECONFIG='/tmp/kube config'\n" in TEXTS["demo"]
