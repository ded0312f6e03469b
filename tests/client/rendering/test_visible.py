"""What a terminal would interpret is shown as text, wherever it comes from."""

import inspect
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from jobgate.cli import printing
from jobgate.cli.rendering.progress import picture
from jobgate.cli.rendering.visible import dump_yaml, visible, visible_in_json, visible_line, visible_log_line
from jobgate.client.types import JobStatus, Replica
from tests.client.scripted import EVENT, HISTORY, RunCommand, job, ok, page, problem, replica

# What a terminal may interpret: controls of ASCII and Latin-1, directions of text, separators of lines.
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Sets the title of the window, clears the screen, asks for an answer, turns text around, moves up, and ends a line.
HOSTILE = "a\x1b]0;title\x07\x1b[2J\x1b[6n\x9b31m\u202eb\u2066c\x7f\x08\r\x1b[1A\u2028d"
TEXTS = st.text(st.one_of(st.sampled_from(HOSTILE), st.characters(exclude_categories=["Cs"])))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain é 模型 …", "plain é 模型 …"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b31m", r"\x9b31m"),
        ("50 %\r100 %", r"50 %\r100 %"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\ud800", r"\ud800"),
    ],
)
def test_characters_that_a_terminal_interprets_become_escapes(text: str, expected: str) -> None:
    assert visible(text) == expected


def test_a_cell_stays_within_its_line() -> None:
    assert visible_line("a\nPhase:\tSucceeded") == r"a\nPhase:\tSucceeded"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("\x1b[1;31merror\x1b[0m", "\x1b[1;31merror\x1b[0m"),
        ("\x1b[31merror\x1b[m", "\x1b[31merror\x1b[m"),
        ("\x1b[38;5;208mloss\x1b[0m", "\x1b[38;5;208mloss\x1b[0m"),
        ("\x1b[38;2;1;2;3;4mloss", "\x1b[38;2;1;2;3;4mloss\x1b[0m"),
        ("\x1b[91;40mopen", "\x1b[91;40mopen\x1b[0m"),
        ("\x1b[8mhidden", r"\x1b[8mhidden"),
        ("\x1b[38;5;999mx", r"\x1b[38;5;999mx"),
        ("\x1b[38;5mx", r"\x1b[38;5mx"),
        ("\x1b[38mx", r"\x1b[38mx"),
        ("\x1b[31;8mx", r"\x1b[31;8mx"),
        ("\x1b[2Jx\x1b[31my", "\\x1b[2Jx\x1b[31my\x1b[0m"),
        ("\x1b]8;;https://example.com\x1b\\link", r"\x1b]8;;https://example.com\x1b\link"),
    ],
)
def test_colours_of_a_log_pass_and_end_with_the_line(line: str, expected: str) -> None:
    assert visible_log_line(line) == expected


@given(text=TEXTS)
def test_nothing_that_a_terminal_interprets_remains(text: str) -> None:
    assert not FORBIDDEN.search(visible(text))
    assert not FORBIDDEN.search(visible_line(text))
    assert not FORBIDDEN.search(re.sub(r"\x1b\[[0-9;]*m", "", visible_log_line(text)))


@given(value=st.recursive(TEXTS | st.integers() | st.none(), lambda inner: st.dictionaries(TEXTS, inner, max_size=3)))
def test_structured_output_has_the_same_value(value: Any) -> None:
    document = visible_in_json(json.dumps(value, ensure_ascii=False))
    assert not FORBIDDEN.search(document)
    assert json.loads(document) == value
    written = dump_yaml({"value": value})
    assert not FORBIDDEN.search(written)
    assert yaml.safe_load(written) == {"value": value}


ADDRESSED = {"uid", "namespace", "name"}


def hostile(value: Any) -> Any:
    """The same answer with an attack in each text, except in times and in what the command puts into an address."""
    match value:
        case dict():
            return {name: inner if name in ADDRESSED else hostile(inner) for name, inner in value.items()}
        case list():
            return [hostile(inner) for inner in value]
        case str() if not re.match(r"\d{4}-\d\d-\d\dT", value):
            return f"{value}{HOSTILE}"
        case _:
            return value


FAILURE = {
    "replica": "worker-0",
    "attempt": 1,
    "node": "node-1",
    "exitCode": 1,
    "signal": None,
    "reason": "Error",
    "message": "no",
    "lastLines": ["last"],
    "at": "2026-01-31T12:00:03Z",
}
REASONS = [
    {"code": "Unschedulable", "message": "0/3", "since": None, "replicas": ["worker[0]"], "count": 1, "started": False}
]
CONDITION = {
    "type": "Ready",
    "status": "False",
    "reason": "Waiting",
    "message": "for room",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-01-31T12:00:02Z",
}


def attacked_job() -> dict[str, Any]:
    told = job("Failed", message="no", reason="Error", firstFailure=FAILURE, pendingReasons=REASONS)
    return hostile(told | {"conditions": [CONDITION], "labels": {"a": "b"}})  # type: ignore[no-any-return]


def ended_job() -> dict[str, Any]:
    told = attacked_job()
    return told | {"status": told["status"] | {"phase": "Failed"}}


def attacked_replica(phase: str = "Failed") -> dict[str, Any]:
    return replica(0, phase, task=HOSTILE, message=HOSTILE, attempt=2) | {"node": HOSTILE, "reason": HOSTILE}


def attacked_page(*items: dict[str, Any]) -> httpx2.Response:
    return page([hostile(item) for item in items])


COMMANDS: dict[str, tuple[list[str], list[httpx2.Response]]] = {
    "describe": (
        ["describe", "tour"],
        [ok(attacked_job()), page([attacked_replica()]), attacked_page(EVENT), attacked_page(HISTORY)],
    ),
    "describe -o yaml": (
        ["describe", "tour", "-o", "yaml"],
        [ok(attacked_job()), page([attacked_replica()]), attacked_page(EVENT), attacked_page(HISTORY)],
    ),
    "history": (["history", "tour"], [attacked_page(HISTORY)]),
    "history -o json": (["history", "tour", "-o", "json"], [attacked_page(HISTORY)]),
    "events": (["events", "tour"], [attacked_page(EVENT)]),
    "status": (["status", "tour"], [ok(attacked_job())]),
    "get": (["get", "tour", "-o", "yaml"], [ok(attacked_job())]),
    "list": (["list", "-o", "wide"], [page([attacked_job()])]),
    "top": (["top"], [page([attacked_job()]), page([])]),
    "wait": (
        ["wait", "tour"],
        [ok(ended_job())],
    ),
    "logs": (["logs", "tour"], [httpx2.Response(200, content=f"{HOSTILE}\n".encode())]),
    "logs --all": (
        ["logs", "tour", "--all"],
        [page([attacked_replica()]), httpx2.Response(200, content=f"{HOSTILE}\n".encode())],
    ),
    "a refused request": (
        ["status", "tour"],
        [problem(422, "InvalidManifest", {"pointer": HOSTILE, "code": "X", "detail": HOSTILE, "accepted": HOSTILE})],
    ),
}


@pytest.mark.parametrize(("arguments", "answers"), COMMANDS.values(), ids=COMMANDS)
def test_no_command_prints_what_a_terminal_interprets(
    run: RunCommand, arguments: list[str], answers: list[httpx2.Response]
) -> None:
    result, script = run(arguments, *answers)
    assert script.is_over, result.output
    assert not FORBIDDEN.search(result.output), repr(result.output)
    assert "x1b" in result.output or "u001b" in result.output or r"\e" in result.output, result.output


def test_raw_logs_go_to_a_pipe_only(run: RunCommand) -> None:
    result, _ = run(["logs", "tour", "--raw"], httpx2.Response(200, content=b"\x1b[2J50 %\n"))
    assert result.stdout == "\x1b[2J50 %\n"


def test_the_picture_of_a_followed_job_has_no_text_that_a_terminal_interprets() -> None:
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, color_system=None, width=500)
    now = datetime(2026, 1, 31, 12, 5, tzinfo=UTC)
    told = msgspec.convert(attacked_job(), JobStatus)
    for phase in ("Failed", "Pending"):
        console.print(picture(told, [msgspec.convert(attacked_replica(phase), Replica)], now))
        console.print(picture(told, [], now))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())  # the styles of the picture itself
    assert not FORBIDDEN.search(shown), repr(shown)
    assert r"\x1b]0;title" in shown


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_an_encoding_that_lacks_a_character_is_no_error(encoding: str, tmp_path: Path) -> None:
    """The streams of a real process, because the test runner replaces them."""
    ended = subprocess.run(
        [sys.executable, "-m", "jobgate", "status", "tour", "--server", "模型"],
        env={"PYTHONIOENCODING": encoding, "HOME": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"jobgate: "), ended.stderr
    assert rb"\u6a21" in ended.stderr


def test_only_one_module_writes_to_the_streams() -> None:
    """Any other would have to make text visible too."""
    writes = re.compile(r"typer\.(echo|secho)\(|\bprint\(|\bstd(out|err)\.write")
    folder = Path(inspect.getfile(printing)).parent
    found = {path.name for path in folder.rglob("*.py") if writes.search(path.read_text("utf-8"))}
    assert found == {"following.py"}  # its picture, which the test above covers
