"""Fields of log lines that come from where a line is written: the process, the request, its caller, the trace.

The field `job` of the controller's lines is bound with `structlog.contextvars`.
"""

from collections.abc import MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from app.telemetry import trace_context

_FIRST: Final = ("timestamp", "level", "event", "logger", "process")


@dataclass(slots=True)
class RequestFields:
    """The fields of a request that its log lines have. A field is empty until it is known."""

    request_id: str = ""
    actor: str = ""
    actor_id: str = ""
    job: str = ""


class _Process:
    """The name of this process in log lines."""

    name = "main"


_request: ContextVar[RequestFields | None] = ContextVar("request_fields", default=None)


def name_process(name: str) -> None:
    """Name this process in all further lines. Not a context variable, because threads have no context."""
    _Process.name = name


def process_name() -> str:
    return _Process.name


def set_request(fields: RequestFields) -> None:
    """Add these fields to the lines of the rest of the current task."""
    _request.set(fields)


def note_actor(name: str, identity: str | None) -> None:
    """Note who sent the current request."""
    fields = _request.get()
    if fields is not None:
        fields.actor, fields.actor_id = name, identity or ""


def note_job(uid: str) -> None:
    """Note the job that the current request is about."""
    fields = _request.get()
    if fields is not None:
        fields.job = uid


def add_surroundings(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the fields to an event (a processor of structlog). Fields that the event has already stay."""
    event.setdefault("process", _Process.name)
    request = _request.get()
    if request is not None:
        for name in ("request_id", "actor", "actor_id", "job"):
            value = getattr(request, name)
            if value:
                event.setdefault(name, value)
    trace = trace_context.current()
    if trace is not None:
        event.setdefault("trace_id", trace.trace_id)
        event.setdefault("span_id", trace.span_id)
    return event


def in_order(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Put the fields that every line has first (a processor of structlog)."""
    return {name: event[name] for name in _FIRST if name in event} | dict(event)
