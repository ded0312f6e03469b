"""What `jobgate top` shows: which jobs run, which wait, and why. Pure."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from jobgate.cli.rendering.tables import age, queue_name, shorten, table, total, why
from jobgate.client.types import Aggregate, JobSummary

# Live phases in the order of the page. A phase that this client does not know comes last.
LIVE: Final = ("Running", "Scaling", "Restarting", "Pending", "Creating", "Queued", "Resuming", "Paused", "Unknown")
ENDED: Final = ("Succeeded", "Failed", "TimedOut", "Cancelled")


def overview_text(jobs: Sequence[JobSummary], now: datetime, *, all_namespaces: bool, width: int | None = None) -> str:
    """Return the counts of replicas, the reasons why replicas wait, and a row for each live job."""
    if not jobs:
        return "no job is live"
    sections = [_sums(jobs)]
    if reasons := reasons_of(jobs):
        rows = [[code, str(one["replicas"]), str(one["jobs"])] for code, one in reasons.items()]
        sections.append(table(["WAITING FOR", "REPLICAS", "JOBS"], rows))
    queued = any(map(queue_name, jobs))
    header = [
        *(["NAMESPACE"] if all_namespaces else []),
        *("NAME", "KIND", "PHASE"),
        *(["QUEUE"] if queued else []),
        *("RUNNING", "WAITING", "STOPPED", "DONE", "AGE", "WHY"),
    ]
    rows = [
        [
            *([job.namespace] if all_namespaces else []),
            *(job.name, job.kind, job.status.phase),
            *([queue_name(job) or "-"] if queued else []),
            *_cells(job, now),
        ]
        for job in sort_jobs(jobs)
    ]
    return "\n\n".join([*sections, table(header, rows, width=width)])


def sort_jobs(jobs: Sequence[JobSummary]) -> list[JobSummary]:
    """Return the jobs by phase, the oldest first in each."""
    order = {phase: index for index, phase in enumerate(LIVE)}
    return sorted(jobs, key=lambda job: (order.get(job.status.phase, len(LIVE)), job.created_at))


def reasons_of(jobs: Sequence[JobSummary]) -> dict[str, dict[str, int]]:
    """Return for each reason how many replicas of how many jobs wait for it, the most frequent first.

    Replicas that run with a fault do not wait.
    """
    replicas: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    for job in jobs:
        reasons = [reason for reason in job.status.pending_reasons if not reason.started]
        for reason in reasons:
            replicas[reason.code] += reason.count
        waiting.update({reason.code for reason in reasons})
    return {code: {"replicas": count, "jobs": waiting[code]} for code, count in replicas.most_common()}


def overview(jobs: Sequence[JobSummary]) -> dict[str, Any]:
    """Return the same for programs."""
    sums = [_parts(job.status.aggregate) for job in jobs]
    running, waiting, stopped, done = (sum(part) for part in zip(*sums, strict=True)) if sums else (0, 0, 0, 0)
    return {
        "replicas": {"running": running, "waiting": waiting, "stopped": stopped, "done": done},
        "reasons": reasons_of(jobs),
        "jobs": [
            {
                "namespace": job.namespace,
                "name": job.name,
                "kind": job.kind,
                "phase": job.status.phase,
                "queue": job.status.queue,
                "aggregate": job.status.aggregate,
                "why": _cause(job),
            }
            for job in sort_jobs(jobs)
        ],
    }


def _sums(jobs: Sequence[JobSummary]) -> str:
    phases = Counter(job.status.phase for job in jobs if job.status.phase not in ENDED)
    left = sum(job.status.phase in ENDED for job in jobs)
    shown = ", ".join(f"{phases[phase]} {phase}" for phase in sorted(phases, key=[*LIVE, *phases].index))
    parts = [_parts(job.status.aggregate) for job in jobs]
    running, waiting, stopped, _ = (sum(part) for part in zip(*parts, strict=True))
    by_pause = f", {stopped} stopped" if stopped else ""
    lines = [f"live jobs: {shown or 'none'}", f"replicas: {running} running, {waiting} waiting{by_pause}"]
    return "\n".join([*lines, *([f"ended jobs with replicas that still run: {left}"] if left else [])])


def _parts(sizes: Aggregate) -> tuple[int, int, int, int]:
    """Return how many replicas run, wait, were stopped before they ended, as by a pause, and have ended."""
    done = sizes.succeeded + sizes.failed
    return sizes.running, total(sizes) - sizes.running - sizes.deleted - done, sizes.deleted, done


def _cells(job: JobSummary, now: datetime) -> list[str]:
    """Return the numbers of replicas, the age and the reason."""
    running, waiting, stopped, done = _parts(job.status.aggregate)
    is_clear = job.status.phase == "Running" and not waiting and not job.status.pending_reasons
    reason = "" if is_clear else shorten(_cause(job))
    return [*map(str, (running, waiting, stopped, done)), age(job.created_at, now), reason]


def _cause(job: JobSummary) -> str:
    """Return why the job is in its phase, or that it has ended and replicas of it still run."""
    count = job.status.still_running
    if not count:
        return why(job)
    return "1 replica of this job still runs" if count == 1 else f"{count} replicas of this job still run"
