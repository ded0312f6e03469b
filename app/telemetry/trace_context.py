"""The trace context of W3C: which trace the current work belongs to.

    headers of a request ─▶ parse ─▶ current() ─▶ log lines, requests to the cluster, the row of a submitted job

https://www.w3.org/TR/trace-context/ defines the headers. An invalid traceparent is ignored together with its
tracestate; an invalid tracestate is ignored alone.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, TypedDict

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
SAMPLED: Final = 0x01
_RANDOM: Final = 0x02  # a flag of level 2 of the specification: the trace id is random
_UNUSABLE_VERSION: Final = "ff"
_PARENT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
_MEMBER: Final = re.compile(
    r"(?P<key>[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_MAX_MEMBERS: Final = 32
# Characters. W3C requires that at least these are passed on. It also bounds what is stored with a job.
_MAX_STATE: Final = 512
_LARGE_MEMBER: Final = 128  # characters; larger members are dropped first


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A span of a trace. `state` is the value of tracestate. `is_remote`: another process created the span."""

    trace_id: str
    span_id: str
    flags: int = 0
    state: str = ""
    is_remote: bool = field(default=True, compare=False)

    @property
    def is_sampled(self) -> bool:
        return bool(self.flags & SAMPLED)

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"

    def headers(self) -> dict[str, str]:
        """Return the header fields that continue the trace in another process."""
        return {TRACEPARENT: self.traceparent} | ({TRACESTATE: self.state} if self.state else {})


def parse(traceparent: str, tracestate: str = "") -> TraceContext | None:
    """Return the context that the values of the two headers describe, or None if traceparent is not valid."""
    match = _PARENT.fullmatch(traceparent.strip(" \t"))
    if match is None or match["version"] == _UNUSABLE_VERSION:
        return None
    # A later version may append fields, and must keep the meaning of the first four.
    if match["version"] == "00" and match["more"] is not None:
        return None
    if not int(match["trace"], 16) or not int(match["span"], 16):
        return None
    flags = int(match["flags"], 16) & (SAMPLED | _RANDOM)
    return TraceContext(match["trace"], match["span"], flags, _parse_state(tracestate))


def from_headers(headers: Iterable[tuple[bytes, bytes]]) -> TraceContext | None:
    """Return the trace context of a request with these header fields, whose names are in lower case."""
    parents: list[bytes] = []
    states: list[bytes] = []
    for name, value in headers:
        if name == b"traceparent":
            parents.append(value)
        elif name == b"tracestate":
            states.append(value)
    # Of several fields of traceparent, none is known to be right. Several fields of tracestate are one list.
    if len(parents) != 1:
        return None
    return parse(parents[0].decode("latin-1"), b",".join(states).decode("latin-1"))


def _parse_state(text: str) -> str:
    """Return the members of a tracestate, or an empty text if one of them is not valid."""
    members: dict[str, str] = {}
    for member in (part.strip(" \t") for part in text.split(",")):
        if not member:
            continue
        match = _MEMBER.fullmatch(member)
        if match is None or len(members) == _MAX_MEMBERS:
            return ""
        members.setdefault(match["key"], member)
    return _join_bounded(list(members.values()))


def _join_bounded(members: list[str]) -> str:
    """Join the members. If the text is too long, drop large members first, then the last ones: the oldest."""
    while len(",".join(members)) > _MAX_STATE:
        large = [index for index, member in enumerate(members) if len(member) > _LARGE_MEMBER]
        del members[large[-1] if large else -1]
    return ",".join(members)


class TraceColumns(TypedDict):
    """A trace context as a row stores it: the headers that continue it. Null stands for none."""

    traceparent: str | None
    tracestate: str | None


def columns_of(trace: TraceContext | None) -> TraceColumns:
    """Return the columns of a context, or of none."""
    if trace is None:
        return {"traceparent": None, "tracestate": None}
    return {"traceparent": trace.traceparent, "tracestate": trace.state or None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A record with the columns of the trace context of a submission."""

    traceparent: str | None = None
    tracestate: str | None = None

    @property
    def trace(self) -> TraceContext | None:
        """The trace context of the request that submitted the object."""
        return None if self.traceparent is None else parse(self.traceparent, self.tracestate or "")


_current: ContextVar[TraceContext | None] = ContextVar("trace_context", default=None)


def current() -> TraceContext | None:
    """Return the trace context of the current work, or None if it belongs to no trace."""
    return _current.get()


def set_current(trace: TraceContext | None) -> None:
    """Make this the trace context for the rest of the current task."""
    _current.set(trace)


@contextmanager
def continue_trace(trace: TraceContext | None) -> Iterator[None]:
    """Make this the trace context during the block."""
    token = _current.set(trace)
    try:
        yield
    finally:
        _current.reset(token)
