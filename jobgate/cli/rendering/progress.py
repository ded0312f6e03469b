"""What a terminal shows while a command follows an object: a line about it, and a row for each task. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from jobgate.cli.rendering.tables import State, age, cache_text, counts, shorten, total, why
from jobgate.cli.rendering.visible import visible_line
from jobgate.client.types import Aggregate, JobStatus, PendingReason, Replica, SampleSetStatus

_ENDED: Final = frozenset({"Succeeded", "Failed", "Deleted"})
_NARROW: Final = 60  # columns that leave no room for a reason beside the other columns
_STYLES: Final = {
    "Succeeded": "green",
    "Ready": "green",
    "Running": "cyan",
    "Failed": "bold red",
    "TimedOut": "bold red",
    "SyncFailed": "bold red",
    "Cancelled": "yellow",
    "Restarting": "yellow",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """One row: the replicas of a task. `restarts` includes those in place. `why` is the reason why some do not run."""

    task: str
    done: int
    wanted: int
    counts: str
    restarts: int
    why: str


def tasks_of(state: JobStatus, replicas: Sequence[Replica]) -> list[TaskProgress]:
    """Return a row for each task, in the order of the gateway. Replicas that leave after a resize do not count."""
    members: dict[str, list[Replica]] = {}
    for replica in replicas:
        if not replica.leaving:
            members.setdefault(replica.task, []).append(replica)
    return [_row(task, ours, state.status.pending_reasons) for task, ours in members.items()]


def _row(task: str, replicas: Sequence[Replica], reasons: Sequence[PendingReason]) -> TaskProgress:
    phases = [replica.phase.lower() for replica in replicas]
    sizes = Aggregate(**{name: phases.count(name) for name in Aggregate.__struct_fields__})
    return TaskProgress(
        task=task,
        done=sizes.running + sizes.succeeded,
        wanted=len(replicas),
        counts=counts(sizes),
        restarts=sum(replica.restart_count + replica.restarts_in_place for replica in replicas),
        why=_why(task, replicas, reasons),
    )


def _why(task: str, replicas: Sequence[Replica], reasons: Sequence[PendingReason]) -> str:
    """Return why replicas of the task wait, otherwise what the first failed one says."""
    is_over = all(replica.phase in _ENDED for replica in replicas)  # the reasons are those of the last status
    ours = (
        []
        if is_over
        else [reason for reason in reasons if any(name.startswith(f"{task}[") for name in reason.replicas)]
    )
    if ours:
        return "; ".join(f"{reason.code}: {reason.message}" if reason.message else reason.code for reason in ours)
    failed = next((replica for replica in replicas if replica.phase == "Failed"), None)
    if failed is None:
        return ""
    return f"[{failed.rank}] {failed.message or failed.reason or ''}".rstrip()


def headline(state: State, now: datetime) -> Text:
    """Return the line about the whole object."""
    phase = state.status.phase or "New"
    line = Text(f"{visible_line(state.name)}  ")
    line.append(visible_line(phase), style=_STYLES.get(phase, "bold"))
    if isinstance(state, SampleSetStatus):
        line.append(f"  {cache_text(state)}")
    since = age(state.status.started_at, state.status.finished_at or now)
    line.append(f"  {since}" if state.status.started_at else "")
    if cause := why(state):
        line.append(f"\n  {visible_line(shorten(cause))}")
    return line


def picture(state: State, replicas: Sequence[Replica], now: datetime) -> RenderableType:
    """Return what the terminal shows. Without replicas, the counts of the job stand in for the tasks."""
    if not isinstance(state, JobStatus):
        return headline(state, now)
    rows = tasks_of(state, replicas)
    if not rows:
        return Group(headline(state, now), Text(f"  {total(state.status.aggregate)} replicas: {_all(state)}"))
    return Group(headline(state, now), _Tasks(rows))


@dataclass(frozen=True, slots=True)
class _Tasks:
    """The rows of tasks: a table, or on a narrow terminal a paragraph for each, so that nothing is left out."""

    rows: Sequence[TaskProgress]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width < _NARROW:
            yield from map(_paragraph, self.rows)
            return
        table = Table(box=None, pad_edge=True, header_style="dim")
        for title in ("TASK", "REPLICAS", "STATE", "RESTARTS", "WHY"):
            table.add_column(title, overflow="fold", no_wrap=title != "WHY")
        for row in self.rows:
            cells = (row.task, f"{row.done}/{row.wanted}", row.counts, str(row.restarts), shorten(row.why))
            table.add_row(*(Text(visible_line(cell)) for cell in cells))
        yield table


def _paragraph(row: TaskProgress) -> Text:
    restarts = f", {row.restarts} restarted" if row.restarts else ""
    why = f": {shorten(row.why)}" if row.why else ""
    return Text(visible_line(f"{row.task} {row.done}/{row.wanted} {row.counts}{restarts}{why}"))


def _all(state: JobStatus) -> str:
    return counts(state.status.aggregate)
