"""Every line on standard error is an event, whatever wrote it. No text of a client can forge one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HOSTILE = "job\n2026-01-01T00:00:00Z [info     ] forged\r\x1b[2Kx\x85\u2028\u202e\u200f\u061cy\x00"
PROGRAM = """
import logging, sys
import structlog
from app.telemetry.logs import configure_logging

configure_logging(sys.argv[1], "info")
hostile = sys.argv[2].encode().decode("unicode_escape")
log = structlog.get_logger("program")
log.info("event", field=hostile, nested={"a": [hostile]}, error=ValueError(hostile), number=7)
log.info(hostile)
for name in ("app.api.layers.requests", "uvicorn.error", "uvicorn.access", "asyncio"):
    logging.getLogger(name).warning("%s - %s", hostile, 1)
try:
    raise RuntimeError(hostile)
except RuntimeError:
    logging.getLogger("app").exception("request %s failed", hostile)
    log.exception("failed", job=hostile)
logging.getLogger("app.services").info("written")
logging.getLogger("app.services").debug("not written")
logging.getLogger("aiohttp").info("not written")
"""
EVENTS = 9


# What Python and its libraries would print.
UNCAUGHT = """
import asyncio, logging, sys, threading, warnings
from app.telemetry import log_fields
from app.telemetry.logs import configure_logging

configure_logging(sys.argv[1], "info")
log_fields.name_process("worker-7")

class Broken:
    def __del__(self):
        raise RuntimeError("unraisable\\nforged")

async def main():
    async def fail():
        raise RuntimeError("in a task")
    task = asyncio.get_running_loop().create_task(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del task
    asyncio.get_running_loop().call_soon(int, "in a callback")
    await asyncio.sleep(0)

def in_thread():
    raise RuntimeError("in a thread")

warnings.warn("a\\nwarning")
thread = threading.Thread(target=in_thread, name="work")
thread.start()
thread.join()
Broken()
asyncio.run(main())
logging.getLogger("library").error("%d values", "no number")
raise RuntimeError("at the end")
"""


ERRORS = (
    "RuntimeError: in a thread",
    "RuntimeError: unraisable",
    "RuntimeError: in a task",
    "ValueError: invalid literal for int()",
    "TypeError: %d format",
    "RuntimeError: at the end",
)


def run(program: str, *arguments: str, status: int = 0) -> str:
    command = [sys.executable, "-c", program, *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=120)
    assert (ran.returncode, ran.stdout) == (status, b""), ran.stderr.decode()
    return ran.stderr.decode()


def logged(log_format: str) -> str:
    return run(PROGRAM, log_format, HOSTILE.encode("unicode_escape").decode())


def events_of(text: str) -> list[dict[str, Any]]:
    lines = text.split("\n")
    assert lines.pop() == ""
    return [json.loads(line) for line in lines]


def test_a_line_of_json_is_an_event() -> None:
    events = events_of(logged("json"))
    assert len(events) == EVENTS
    first = ["timestamp", "level", "event", "logger", "process"]
    assert [list(event)[:5] for event in events] == [first] * EVENTS
    assert events[0]["field"] == HOSTILE
    assert [event["logger"] for event in events] == [
        "program",
        "program",
        "app.api.layers.requests",
        "uvicorn.error",
        "uvicorn.access",
        "asyncio",
        "app",
        "program",
        "app.services",
    ]


def test_what_nothing_has_handled_is_an_event_too() -> None:
    events = events_of(run(UNCAUGHT, "json", status=1))
    assert {event["process"] for event in events} == {"worker-7"}
    found = [(event["logger"], event["event"].splitlines()[0]) for event in events]
    assert found[0][0] == "py.warnings"
    assert found[0][1].endswith("UserWarning: a")
    assert found[1:] == [
        ("app.telemetry.uncaught", "uncaught.thread"),
        ("app.telemetry.uncaught", "uncaught.unraisable"),
        ("asyncio", "Task exception was never retrieved"),
        ("asyncio", "Exception in callback int('in a callback')"),
        ("app.telemetry.logs", "log.malformed_record"),
        ("app.telemetry.uncaught", "uncaught.exception"),
    ]
    for event, error in zip(events[1:], ERRORS, strict=True):
        assert error in event["exception"], event
    assert events[1]["thread"] == "work"


def test_in_text_what_nothing_has_handled_forges_no_line() -> None:
    lines = run(UNCAUGHT, "text", status=1).splitlines()
    assert len([line for line in lines if not line.startswith("    ")]) == 1 + len(ERRORS)


def test_a_log_without_a_reader_does_not_fail_the_work() -> None:
    program = f"import os, sys\nos.close(2)\n{PROGRAM}\nsys.stderr = None"
    run(program, "json", "x")


def test_a_long_line_is_one_write() -> None:
    """Workers share the stream. A line in several writes could contain a line of another process."""
    program = """
import io, sys, structlog
class Raw(io.RawIOBase):
    writes = []
    def writable(self):
        return True
    def write(self, data):
        self.writes.append(bytes(data))
        return len(data)
raw = Raw()
sys.stderr, real = io.TextIOWrapper(io.BufferedWriter(raw), line_buffering=True), sys.stderr
from app.telemetry.logs import configure_logging
configure_logging("json", "info")
structlog.get_logger("program").info("long", text="x" * 100_000)
sys.stderr = real
sys.exit(len(raw.writes) - 1)
"""
    run(program)


def test_a_line_of_text_is_an_event_or_an_indented_line_of_a_traceback() -> None:
    text = logged("text")
    lines = text.split("\n")
    assert lines.pop() == ""
    events = [line for line in lines if not line.startswith("    ")]
    assert len(events) == EVENTS, text
    assert all(line[:4].isdigit() and "Z [" in line for line in events), text
    assert "number=7" in events[0]
    assert set(text) >= {"\n", "\\"}
    assert not set(text) & set("\r\x1b\x85\u2028\u202e\u200f\u061c\x00")
    assert "RuntimeError" in text
