"""Configures logging: one line per event on standard error, as JSON or as text.

Any field can contain text from a client, so no field may begin a new line or control a terminal. Control characters are
escaped, and the lines of a traceback are indented.
"""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Final

import structlog
from structlog.typing import Processor

_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# Control characters of ASCII and Latin-1, line and paragraph separators, and characters that change text direction.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_TRACEBACK: Final = "exception"


def configure_logging(log_format: str, level: str) -> None:
    """Configure structlog and the standard library to write lines in the same format, `json` or `text`.

    Lines below `level` are filtered before they are rendered. Libraries such as uvicorn log warnings and errors only.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    rendering: list[Processor] = [structlog.processors.JSONRenderer()]
    if log_format != "json":
        rendering = [_without_control_characters, structlog.dev.ConsoleRenderer(colors=False)]
    structlog.configure(
        processors=[*shared, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(level=max(_LEVELS[level], logging.WARNING), handlers=[handler], force=True)


def _on_one_line(text: str) -> str:
    return _UNSAFE.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def _without_control_characters(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape control characters in every field, and indent tracebacks so that no line looks like a log line."""
    for name, value in event.items():
        if name == _TRACEBACK:
            event[name] = "\n".join(f"    {_on_one_line(line)}" for line in str(value).split("\n"))
        elif not isinstance(value, bool | int | float | None):
            event[name] = _on_one_line(value if isinstance(value, str) else repr(value))
    return event
