"""Which log a request reads, and which part of it. Pure."""

from datetime import datetime
from typing import TypedDict

from jobgate.client.wire import query_of


class LogOptions(TypedDict, total=False):
    """Which log is read, and which part of it (docs/api.md#logs). `since` is an age in seconds."""

    task: str | None
    rank: int | None
    container: str | None
    attempt: int | None
    follow: bool
    tail: int | None
    since: float | None
    since_time: datetime | None
    until_time: datetime | None
    offset: int | None
    limit: int | None
    search: str | None
    timestamps: bool
    previous: bool
    run: int | None


def log_query(options: LogOptions) -> tuple[tuple[str, str], ...]:
    """Return the query parameters of a log."""
    since = options.get("since")
    return query_of(
        task=options.get("task"),
        rank=options.get("rank"),
        container=options.get("container"),
        attempt=options.get("attempt"),
        follow=options.get("follow") or None,
        tail_lines=options.get("tail"),
        since_seconds=None if since is None else max(1, int(since)),
        since_time=options.get("since_time"),
        until_time=options.get("until_time"),
        offset=options.get("offset"),
        limit=options.get("limit"),
        search=options.get("search"),
        timestamps=options.get("timestamps") or None,
        previous=options.get("previous") or None,
        run=options.get("run"),
    )
