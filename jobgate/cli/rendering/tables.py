"""Text of lists and statuses. Pure: from values and the present time to lines."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from jobgate.cli.rendering.visible import visible_line
from jobgate.client.types import (
    Aggregate,
    Attempt,
    Event,
    History,
    Job,
    JobStatus,
    JobSummary,
    PendingReason,
    Replica,
    SampleJob,
    SampleJobStatus,
    SampleJobSummary,
    SampleSet,
    SampleSetStatus,
    SampleSetSummary,
)

Whole = Job | SampleSet | SampleJob
State = JobStatus | SampleSetStatus | SampleJobStatus
# What a row of a list is made from.
Listed = JobSummary | SampleSetSummary | SampleJobSummary | Whole
_LEAST: Final = 20  # characters of a last column whose cells go on in further lines
_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_GAP: Final = "   "
# Characters of a message. Those of the scheduler about many nodes have some 500.
_MESSAGE: Final = 1000


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Return aligned columns. The last one is not padded. Without a width, each row is one line.

    With the width of a terminal, a long last cell goes on in further lines of its column, and loses nothing: the cause
    may be anywhere in it. A terminal that leaves less room than a message needs breaks the lines itself.
    """
    cells = [list(header), *([visible_line(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
    room = None if width is None else width - sum(each + len(_GAP) for each in widths[:-1])
    lines = [part for line in cells for part in _fold(line, room)]
    return "\n".join(
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _fold(line: Sequence[str], room: int | None) -> list[list[str]]:
    """Return the line, and those in which its last cell goes on."""
    *others, last = line
    if room is None or room < _LEAST or len(last) <= room:
        return [list(line)]
    begin, *rest = textwrap.wrap(last, room, break_on_hyphens=False) or [""]
    return [[*others, begin], *([*([""] * len(others)), part] for part in rest)]


def age(since: datetime | None, now: datetime) -> str:
    """Return a duration as kubectl shows it: two units at most."""
    if since is None:
        return "-"
    seconds = max(0, int((now - since).total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 10:
        return f"{minutes}m{seconds}s" if seconds else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h{minutes}m" if minutes and hours < 8 else f"{hours}h"
    return f"{hours // 24}d"


def shorten(text: str, limit: int = _MESSAGE) -> str:
    """Return the text as one line of at most this length. The cause is often at the end, so the middle is left out."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    begin = limit // 3
    return f"{line[:begin]}…{line[begin + 1 - limit :]}"


def counts(aggregate: Aggregate) -> str:
    """Return the number of replicas in each bucket that has one."""
    shown = ((name, getattr(aggregate, name)) for name in aggregate.__struct_fields__)
    return ", ".join(f"{count} {name}" for name, count in shown if count) or "no replicas"


def total(aggregate: Aggregate) -> int:
    return sum(getattr(aggregate, name) for name in aggregate.__struct_fields__)


def why(state: State | Listed) -> str:
    """Return why an object is in its phase, on one line."""
    return "; ".join(causes(state))


def causes(state: State | Listed) -> list[str]:
    """Return why an object is in its phase: what its replicas wait for, otherwise the message or the reason."""
    reasons: Sequence[PendingReason] = getattr(state.status, "pending_reasons", ())
    if reasons and state.status.phase not in {"Succeeded", "Failed", "TimedOut", "Cancelled"}:
        found = [f"{reason.code}: {reason.message}" if reason.message else reason.code for reason in reasons]
        if len(found) == 1:
            return found
        return [f"{text} ({_replicas(reason.count)})" for text, reason in zip(found, reasons, strict=True)]
    text = state.status.message or state.status.reason
    return [text] if text else []


def _replicas(count: int) -> str:
    return "1 replica" if count == 1 else f"{count} replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of `jobgate list` beside those that it always has. `labels` are the keys of labels."""

    all_namespaces: bool = False
    queue: bool = False
    wide: bool = False
    labels: Sequence[str] = ()


class Order(StrEnum):
    """The orders of `jobgate list`. Only the shown objects are sorted."""

    CREATED = "created"
    NAME = "name"
    PHASE = "phase"
    DURATION = "duration"
    OWNER = "owner"


def sort_items(order: Order, items: Sequence[Listed], now: datetime) -> list[Listed]:
    """Return the objects in an order: the longest first, or by text. Those that are equal stay as they were."""
    match order:
        case Order.CREATED:
            return list(items)
        case Order.DURATION:
            return sorted(items, key=lambda item: _duration(item, now), reverse=True)
        case Order.NAME:
            return sorted(items, key=lambda item: (item.namespace, item.name))
        case Order.PHASE:
            return sorted(items, key=lambda item: item.status.phase)
        case Order.OWNER:
            return sorted(items, key=lambda item: (item.created_by, item.created_by_id or ""))


def _duration(item: Listed, now: datetime) -> timedelta:
    """Return how long an object has run; less than none if it has not started."""
    started, finished = getattr(item.status, "started_at", None), getattr(item.status, "finished_at", None)
    return timedelta(seconds=-1) if started is None else (finished or now) - started


def list_text(items: Sequence[Listed], now: datetime, columns: Columns) -> str:
    """Return the table of `jobgate list`."""
    return table(_list_header(columns), [_list_row(item, now, columns) for item in items])


def _list_header(columns: Columns) -> list[str]:
    return [
        *(["NAMESPACE"] if columns.all_namespaces else []),
        *("NAME", "KIND", "PHASE"),
        *(["QUEUE"] if columns.queue else []),
        *("REPLICAS", "DURATION", "AGE"),
        *(key.rpartition("/")[2].upper() for key in columns.labels),
        *(("CREATED BY", "UID", "MESSAGE") if columns.wide else ()),
    ]


def _list_row(item: Listed, now: datetime, columns: Columns) -> list[str]:
    started, finished = getattr(item.status, "started_at", None), getattr(item.status, "finished_at", None)
    return [
        *([item.namespace] if columns.all_namespaces else []),
        *(item.name, item.kind, (item.status.phase or "New") + (" (imported)" if imported_at(item) else "")),
        *([queue_name(item) or "-"] if columns.queue else []),
        *(_size(item), age(started, finished or now), age(item.created_at, now)),
        *(item.labels.get(key, "-") for key in columns.labels),
        *((actor_text(item.created_by, item.created_by_id), item.uid, shorten(why(item))) if columns.wide else ()),
    ]


def imported_at(item: Listed) -> datetime | None:
    """Return when a job was imported from an export; None for one of this installation."""
    return item.imported_at if isinstance(item, Job | JobSummary) else None


def queue_name(item: Listed) -> str:
    """Return the name of the queue of a job; empty without one."""
    queue = item.status.queue if isinstance(item, Job | JobSummary) else None
    return "" if queue is None else queue.name


def _size(item: Listed) -> str:
    """Return how many replicas, or servers of a SampleSet, run or have succeeded, and how many are wanted."""
    if isinstance(item, Job | JobSummary):
        sizes = item.status.aggregate
        # A job that has reached its goal does not need the replicas that it stops then, such as parameter servers.
        wanted = total(sizes) - (sizes.deleted if item.status.phase == "Succeeded" else 0)
        return f"{sizes.running + sizes.succeeded}/{wanted}"
    if isinstance(item, SampleSet | SampleSetSummary):
        return f"{item.status.runtime.ready}/{item.status.runtime.wanted}"
    return "-"


def status_line(state: State) -> str:
    """Return one line with the phase, the replicas and the reason."""
    replicas = f"  {counts(state.status.aggregate)}" if isinstance(state, JobStatus) else ""
    if isinstance(state, SampleSetStatus):
        replicas = f"  {cache_text(state)}"
    reason = shorten(why(state))
    return f"{state.name}  {state.status.phase or 'New'}{replicas}" + (f"  {reason}" if reason else "")


def replicas_text(replicas: Sequence[Replica], now: datetime) -> str:
    """Return a row for each replica with its current attempt, followed by its earlier attempts."""
    header = ["REPLICA", "PHASE", "ATTEMPT", "RESTARTS", "NODE", "EXIT", "RAN", "MESSAGE"]
    rows = []
    for replica in replicas:
        name = f"{replica.task}[{replica.rank}]" + (" (leaving)" if replica.leaving else "")
        rows.append([name, replica.phase, str(replica.attempt), _restarts(replica), *_run(replica, now)])
        ended = (past for past in replica.attempts if past.number < replica.attempt)
        earlier = sorted(ended, key=lambda past: past.number)
        rows += [["", past.phase, str(past.number), "", *_run(past, now)] for past in earlier]
    return table(header, rows)


def _restarts(replica: Replica) -> str:
    """Return the number of restarts, and of those by which the kubelet restarted a container in place."""
    in_place = f" (+{replica.restarts_in_place} in place)" if replica.restarts_in_place else ""
    return f"{replica.restart_count}{in_place}"


def _run(pod: Replica | Attempt, now: datetime) -> list[str]:
    """Return the cells about one attempt."""
    return [
        pod.node or "-",
        "-" if pod.exit_code is None else str(pod.exit_code),
        age(pod.started_at, pod.finished_at or now),
        shorten(pod.message or pod.reason or ""),
    ]


def actor_text(name: str, identity: str | None, *, whole: bool = False) -> str:
    """Return the name with the kind of a token or a user, which may have the name of any other actor.

    With `whole`, the text has the identity in place of the kind.
    """
    kind = (identity or "").partition(":")[0]
    return f"{name} ({identity if whole else kind})" if kind in {"token", "user"} else name


def history_text(rows: Sequence[History]) -> str:
    return table(
        ["TIME", "PHASE", "REASON", "REPLICA", "ACTOR", "MESSAGE"],
        [
            [
                clock(row.at),
                row.phase,
                row.reason,
                _place(row),
                actor_text(row.actor, row.actor_id),
                shorten(row.message),
            ]
            for row in rows
        ],
    )


def sort_events(events: Sequence[Event]) -> list[Event]:
    """Return events from the oldest to the newest. What is true now, such as a pending reason, comes last."""
    found = list(reversed(events))  # the gateway returns the newest first, also among those of the same second
    found.sort(key=lambda event: (event.last_seen_at is None, event.last_seen_at or event.first_seen_at or _NEVER))
    return found


def events_text(events: Sequence[Event]) -> str:
    return table(
        ["LAST SEEN", "TYPE", "REASON", "REPLICA", "COUNT", "MESSAGE"],
        [
            [
                clock(event.last_seen_at),
                event.type,
                event.reason,
                _place(event),
                str(event.count),
                shorten(event.message),
            ]
            for event in events
        ],
    )


def _place(row: History | Event) -> str:
    if row.task is None:
        return "-"
    attempt = f" #{row.attempt}" if row.attempt else ""
    return f"{row.task}[{row.rank}]{attempt}" if row.rank is not None else row.task


def clock(at: datetime | None) -> str:
    return "-" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def warnings_of(item: Whole) -> list[str]:
    """Return the warnings about a manifest, each with its field, or with the task that the cluster names."""
    return [f"{each.pointer or each.task or each.source}: {each.message}" for each in item.status.warnings]


def failure_text(state: State | Whole) -> str:
    """Return what is known about the first failed attempt of a job, with the end of its log, or nothing."""
    failure = state.status.first_failure if isinstance(state, Job | JobStatus) else None
    if failure is None:
        return ""
    where = f"{failure.replica} in attempt {failure.attempt}" + (f" on {failure.node}" if failure.node else "")
    parts = [
        f"container {failure.container}" if failure.container else "",
        f"exit code {failure.exit_code}" if failure.exit_code is not None else "",
        f"signal {failure.signal}" if failure.signal is not None else "",
        failure.reason or "",
    ]
    lines = [f"First failure: {where}: {', '.join(filter(None, parts))}"]
    if failure.message:
        lines.append(f"  {shorten(failure.message)}")
    lines += [f"  | {line}" for line in failure.last_lines or ()]
    return "\n".join(lines)


def cache_text(state: SampleSet | SampleSetStatus) -> str:
    """Return how much of the data of a SampleSet is cached, and how many of its servers are ready."""
    runtime = state.status.runtime
    servers = f"{runtime.ready}/{runtime.wanted} servers ready"
    if (cache := state.status.cache) is None:
        return servers
    share = "all" if cache.whole else f"{cache.cached_bytes * 100 // max(1, cache.total_bytes)} %"
    return f"{share} of {cache.total_bytes / 1e6:,.1f} MB cached, {servers}"
