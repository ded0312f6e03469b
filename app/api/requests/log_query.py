"""The query parameters of the requests for logs."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final, NamedTuple
from urllib.parse import parse_qsl

from fastapi import Depends, Query, Request

from app.api.answers.errors import InvalidParameter, parameter_error
from app.api.requests.parameters import MAX_INT32, MAX_INT64, NO_NUL, Timestamp, require_utc
from app.services.logs.search import LONGEST, LinePattern, PatternError
from app.services.logs.selecting import LineSelection
from app.services.logs.times import nanoseconds

_CONTAINER: Final = (
    "By default the container of the pod's annotation `kubectl.kubernetes.io/default-container`, or else the first "
    "container of its spec; but if an init container failed and kept these from starting, that one."
)
_OFFSET: Final = (
    "Return the log from this byte on. Plain text then has exactly the bytes of the log, and no line that says what is "
    "missing. With `timestamps`, `search`, `sinceTime` or `untilTime`, and as JSON lines, the answer has the lines "
    "that begin at this byte or later."
)
# By parameter: those that cannot be given with it, and why.
_CONFLICTS: Final = (
    ("merged", ("rank", "attempt", "previous", "run", "offset", "limit"), "selects one log, and merged=true several"),
    ("follow", ("limit", "untilTime"), "ends the log, and follow=true waits for new lines"),
    ("tailLines", ("offset", "limit"), "counts from the beginning of the log, and tailLines from its end"),
    ("sinceTime", ("sinceSeconds",), "says the same as sinceTime"),
    ("previous", ("run",), "names a run, and previous=true the one before the newest"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenLog:
    """The query parameters that name one log: the replica, its attempt, and the container with its run.

    With `merged`, the response has the logs of all replicas, or of those of `task`.
    """

    task: str | None
    rank: int
    container: str | None
    attempt: int | None
    run: int | None
    previous: bool
    merged: bool
    all_attempts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPart:
    """The query parameters that select lines or bytes of a log, and whether each line has its time."""

    follow: bool
    tail_lines: int | None
    since_seconds: int | None
    since_time: datetime | None
    until_time: datetime | None
    offset: int | None
    limit: int | None
    pattern: LinePattern | None
    timestamps: bool

    @property
    def has_range(self) -> bool:
        return self.offset is not None or self.limit is not None

    def since(self, now: datetime) -> datetime | None:
        return self.since_time if self.since_seconds is None else now - timedelta(seconds=self.since_seconds)

    def selection(self, now: datetime) -> LineSelection:
        """Return which lines are selected, apart from `tail_lines`."""
        since = self.since(now)
        begin = self.offset or 0
        return LineSelection(
            begin=begin,
            end=None if self.limit is None else begin + self.limit,
            since=None if since is None else nanoseconds(since),
            until=None if self.until_time is None else nanoseconds(self.until_time),
            pattern=self.pattern,
        )


async def _chosen_log(
    *,
    task: Annotated[
        str | None,
        Query(max_length=253, pattern=NO_NUL, description="Required if the job has several tasks, unless merged."),
    ] = None,
    rank: Annotated[int, Query(ge=0, le=MAX_INT32, description="Rank of the replica.")] = 0,
    container: Annotated[str | None, Query(max_length=253, pattern=NO_NUL, description=_CONTAINER)] = None,
    attempt: Annotated[
        int | None, Query(ge=1, le=MAX_INT32, description="Number of an attempt. By default the newest with a log.")
    ] = None,
    run: Annotated[
        int | None,
        Query(
            ge=0,
            le=MAX_INT32,
            description="Run of the container: how often the kubelet had restarted it in place. By default the newest.",
        ),
    ] = None,
    previous: Annotated[
        bool, Query(description="Return the log of the container before the kubelet last restarted it in place.")
    ] = False,
    merged: Annotated[
        bool, Query(description="Return the logs of all replicas, or of those of one task, in one response.")
    ] = False,
    all_attempts: Annotated[
        bool, Query(alias="allAttempts", description="With `merged`: also the logs of earlier attempts.")
    ] = False,
) -> ChosenLog:
    if all_attempts and not merged:
        raise _conflict("allAttempts", "selects the logs of several attempts", "merged=true")
    return ChosenLog(
        task=task,
        rank=rank,
        container=container,
        attempt=attempt,
        run=run,
        previous=previous,
        merged=merged,
        all_attempts=all_attempts,
    )


async def _chosen_part(  # noqa: PLR0913 - as above
    request: Request,
    *,
    follow: Annotated[bool, Query(description="Follow the log: send new lines as the container writes them.")] = False,
    tail_lines: Annotated[
        int | None,
        Query(alias="tailLines", ge=0, le=1_000_000, description="Return only the last lines, before any search."),
    ] = None,
    since_seconds: Annotated[
        int | None,
        Query(alias="sinceSeconds", ge=1, le=10_000_000, description="Return only lines that are not older."),
    ] = None,
    since_time: Annotated[
        Timestamp, Query(alias="sinceTime", description="Return only lines of this time (RFC 3339) and later ones.")
    ] = None,
    until_time: Annotated[
        Timestamp, Query(alias="untilTime", description="Return only lines before this time (RFC 3339).")
    ] = None,
    offset: Annotated[int | None, Query(ge=0, le=MAX_INT64, description=_OFFSET)] = None,
    limit: Annotated[
        int | None, Query(ge=1, le=MAX_INT64, description="Return only this number of bytes of the log.")
    ] = None,
    search: Annotated[
        str | None,
        Query(
            max_length=LONGEST,
            pattern=NO_NUL,
            description="Return only lines that match this regular expression of RE2, of which `(?i)` ignores case.",
        ),
    ] = None,
    timestamps: Annotated[
        bool, Query(description="Prefix each line with its time. Stored logs have no times.")
    ] = False,
) -> ChosenPart:
    return ChosenPart(
        follow=follow,
        tail_lines=tail_lines,
        since_seconds=since_seconds,
        since_time=require_utc("sinceTime", since_time),
        until_time=require_utc("untilTime", until_time),
        offset=offset,
        limit=limit,
        pattern=None if search is None else _pattern(_as_sent(request, "search")),
        timestamps=timestamps,
    )


class LogQuery(NamedTuple):
    """The query parameters of a log."""

    log: ChosenLog
    part: ChosenPart


async def _log_query(
    request: Request,
    log: Annotated[ChosenLog, Depends(_chosen_log)],
    part: Annotated[ChosenPart, Depends(_chosen_part)],
) -> LogQuery:
    flags = {"merged": log.merged, "follow": part.follow, "previous": log.previous}
    _refuse_conflicts({name for name in request.query_params if flags.get(name, True)})
    return LogQuery(log, part)


LogQueryDependency = Annotated[LogQuery, Depends(_log_query)]


def _refuse_conflicts(given: AbstractSet[str]) -> None:
    """Raise InvalidParameter if a parameter that is given contradicts another one."""
    for name, others, reason in _CONFLICTS:
        for other in others:
            if name in given and other in given:
                raise _conflict(other, reason, f"{name} or {other}")


def _as_sent(request: Request, name: str) -> str:
    """Return a query parameter. Bytes that are not UTF-8 are surrogates in it: U+FFFD would be another text."""
    query = request.scope["query_string"].decode("latin-1")
    sent: dict[str, str] = dict(parse_qsl(query, keep_blank_values=True, errors="surrogateescape"))
    return sent[name]


def _pattern(search: str) -> LinePattern:
    try:
        return LinePattern(search)
    except PatternError as error:
        accepted = "a regular expression of RE2, such as `(?i)error|failed`"
        raise parameter_error("query", "search", "InvalidPattern", str(error), accepted) from None


def _conflict(name: str, reason: str, accepted: str) -> InvalidParameter:
    return parameter_error("query", name, "InvalidParameter", reason, accepted)
