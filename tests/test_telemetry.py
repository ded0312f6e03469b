"""No text of a client can forge a line of the log, in either format and with any logger."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOSTILE = "job\n2026-01-01T00:00:00Z [info     ] forged\r\x1b[2Kx\x85\u2028\u202ey\x00"
PROGRAM = """
import logging, sys
import structlog
from app.telemetry import configure_logging

configure_logging(sys.argv[1], "info")
hostile = sys.argv[2].encode().decode("unicode_escape")
log = structlog.get_logger()
log.info("event", field=hostile, nested={"a": [hostile]}, error=ValueError(hostile), number=7)
log.info(hostile)
for name in ("app.api.middleware", "uvicorn.error", "uvicorn.access", "asyncio"):
    logging.getLogger(name).warning("%s - %s", hostile, 1)
try:
    raise RuntimeError(hostile)
except RuntimeError:
    logging.getLogger("app").exception("request %s failed", hostile)
    log.exception("failed", job=hostile)
logging.getLogger("app").info("not written")
"""
EVENTS = 8


def logged(log_format: str) -> str:
    escaped = HOSTILE.encode("unicode_escape").decode()
    command = [sys.executable, "-c", PROGRAM, log_format, escaped]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=120)
    return ran.stderr.decode()


def test_a_line_of_json_is_an_event() -> None:
    lines = logged("json").split("\n")
    assert lines.pop() == ""
    events = [json.loads(line) for line in lines]
    assert len(events) == EVENTS
    assert all(event["timestamp"] and event["level"] for event in events)
    assert events[0]["field"] == HOSTILE
    assert [event["logger"] for event in events if "logger" in event] == [
        "app.api.middleware",
        "uvicorn.error",
        "uvicorn.access",
        "asyncio",
        "app",
    ]


def test_a_line_of_text_is_an_event_or_an_indented_line_of_a_traceback() -> None:
    text = logged("text")
    lines = text.split("\n")
    assert lines.pop() == ""
    events = [line for line in lines if not line.startswith("    ")]
    assert len(events) == EVENTS, text
    assert all(line[:4].isdigit() and "Z [" in line for line in events), text
    assert "number=7" in events[0]
    assert set(text) >= {"\n", "\\"}
    assert not set(text) & set("\r\x1b\x85\u2028\u202e\x00")
    assert "RuntimeError" in text
