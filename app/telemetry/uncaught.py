"""Logs what Python would print: warnings, and exceptions that nothing has handled, of the interpreter and of threads.

asyncio reports those of tasks to the logger `asyncio`.
"""

import logging
import sys
import threading
from types import TracebackType
from typing import Any

import structlog

log = structlog.get_logger(__name__)


def log_uncaught() -> None:
    """Log from now on what would be printed to standard error."""
    logging.captureWarnings(capture=True)
    sys.excepthook = _on_interpreter
    threading.excepthook = _on_thread
    sys.unraisablehook = _on_unraisable


def _on_interpreter(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.critical("uncaught.exception", exc_info=(kind, error, trace))


def _on_thread(found: threading.ExceptHookArgs) -> None:
    if found.exc_type is SystemExit:
        return  # ends the thread, as Python does
    thread = found.thread.name if found.thread is not None else None
    # Without the exception object, the interpreter is running out of memory.
    error = found.exc_value or found.exc_type()
    log.error("uncaught.thread", thread=thread, exc_info=(found.exc_type, error, found.exc_traceback))


def _on_unraisable(found: Any) -> None:
    """Log an exception that cannot be raised, such as that of a finalizer."""
    error = found.exc_value or found.exc_type()
    log.error(
        "uncaught.unraisable",
        message=found.err_msg,
        object=repr(found.object),
        exc_info=(found.exc_type, error, found.exc_traceback),
    )
