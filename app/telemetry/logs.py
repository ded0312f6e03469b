"""Configures logging: one line per event on standard error, as JSON or as text.

Any field can contain text from a client, so no field may begin a new line or control a terminal. JSON escapes control
characters. In text they are escaped too, and the lines of a traceback are indented.
"""

import json
import logging
import sys
import threading
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, Final, TextIO

import structlog
from structlog.typing import Processor
from typing_extensions import override

from app.base.visible import visible_line
from app.telemetry import log_fields, uncaught

_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_TRACEBACK: Final = "exception"
_PACKAGE: Final = "app"


def configure_logging(log_format: str, level: str) -> None:
    """Configure structlog and the standard library to write lines in the same format, `json` or `text`.

    Lines below `level` are filtered before they are rendered. Libraries such as uvicorn log warnings and errors only.
    Warnings and uncaught exceptions become lines too.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        log_fields.add_surroundings,
    ]
    rendering: list[Processor] = [log_fields.in_order, _as_json]
    if log_format != "json":
        rendering = [_without_control_characters, structlog.dev.ConsoleRenderer(colors=False)]
    lines = _Lines(sys.stderr)
    structlog.configure(
        processors=[*shared, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lines.logger,
        cache_logger_on_first_use=True,
    )
    handler = _Handler(lines)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(level=max(_LEVELS[level], logging.WARNING), handlers=[handler], force=True)
    logging.getLogger(_PACKAGE).setLevel(_LEVELS[level])
    uncaught.log_uncaught()
    _Format.is_json = log_format == "json"


class _Format:
    """The format of this process. Before it is configured, messages are plain text."""

    is_json = False


def report_failure(message: str, cause: BaseException | None = None) -> None:
    """Report why a command cannot run or go on: as a line of the log if that is JSON, else as text for its user.

    The traceback of the cause is a line with the level DEBUG.
    """
    if _Format.is_json:
        structlog.get_logger(__name__).critical("process.failed", error=message)
    else:
        sys.stderr.write(f"jobgate: {visible_line(message)}\n")
    if cause is not None:
        # Before it is configured, structlog would print the traceback for the user to read; this logger is silent.
        logging.getLogger(__name__).debug("process.traceback", exc_info=cause)


class _Lines:
    """Writes each line with one call, so that lines of threads, and of processes that share the stream, do not mix."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        # A garbage collection during a write can log too, in the same thread.
        self._lock = threading.RLock()

    def write(self, line: str) -> None:
        # Work must go on without its log: the stream may be closed, or a pipe without a reader.
        with self._lock, suppress(OSError, ValueError):
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def logger(self, name: str = "", *_: object) -> "_Logger":
        return _Logger(name, self)


class _Logger:
    """The last step of a structlog logger."""

    def __init__(self, name: str, lines: _Lines) -> None:
        self.name = name
        self.msg = lines.write

    def __getattr__(self, _: str) -> Any:
        return self.msg  # every level


class _Handler(logging.Handler):
    """Writes the records of the standard library."""

    def __init__(self, lines: _Lines) -> None:
        super().__init__()
        self._lines = lines

    @override
    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001  the call of a library does not match its format, and must not fail
            structlog.get_logger(__name__).exception("log.malformed_record", source=record.name, message=record.msg)
        else:
            self._lines.write(line)


# One for all lines: `json.dumps` makes an encoder for each. Its text is ASCII, so that no character ends a line.
_JSON: Final = json.JSONEncoder(default=repr)


def _as_json(_: object, __: str, event: MutableMapping[str, Any]) -> str:
    return _JSON.encode(event)


def _without_control_characters(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape control characters in every field, and indent tracebacks so that no line looks like a log line."""
    for name, value in event.items():
        if name == _TRACEBACK:
            event[name] = "\n".join(f"    {visible_line(line)}" for line in str(value).split("\n"))
        elif not isinstance(value, bool | int | float | None):
            event[name] = visible_line(value if isinstance(value, str) else repr(value))
    return event
