"""Logs of one container of one replica: of the present attempt or an earlier one."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from typing_extensions import override

from app.api.dependencies import Caller
from app.api.errors import refuse_parameter
from app.api.jobs import JOBS_RESOURCE
from app.api.long_requests import LongResponse
from app.api.routes.reading import Locate, Located, places
from app.db.jobs.replicas import ReplicaFilter
from app.db.jobs.rows import JobRow
from app.domain.errors import DomainError, NotFound
from app.services.logs import LogRequest, LogStream
from app.services.long_requests import EndReason, LongRequestKind
from app.services.reading import JobReader, ReplicaHistory

_DOCUMENTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The log as the container wrote it.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
        "headers": {
            "Jobgate-Log-Source": {
                "description": "live (from the cluster) or stored (what was kept of an ended attempt)",
                "schema": {"type": "string", "enum": ["live", "stored"]},
            },
            "Jobgate-Log-Truncated": {
                "description": "true when there was more before it",
                "schema": {"type": "string", "enum": ["true", "false"]},
            },
        },
    }
}


def router() -> APIRouter:
    found = APIRouter(tags=["logs"])
    for prefix, locate, suffix in places(JOBS_RESOURCE):
        _add_logs(found, prefix, locate, suffix)
    return found


def _add_logs(router: APIRouter, prefix: str, locate: Locate, suffix: str) -> None:
    @router.get(f"{prefix}/logs", name=f"read_job_log{suffix}", response_model=None, responses=_DOCUMENTED)
    async def read_job_log(  # noqa: PLR0913 - one argument a query parameter
        where: Annotated[Located, Depends(locate)],
        *,
        task: Annotated[str | None, Query(max_length=253, description="May be left out where there is one.")] = None,
        rank: Annotated[int, Query(ge=0)] = 0,
        container: Annotated[str | None, Query(max_length=253, description="By default the first of the pod.")] = None,
        attempt: Annotated[int | None, Query(ge=1, description="By default the present one.")] = None,
        follow: Annotated[bool, Query(description="Go on as the container writes.")] = False,
        tail_lines: Annotated[int | None, Query(alias="tailLines", ge=0, le=1_000_000)] = None,
        since_seconds: Annotated[int | None, Query(alias="sinceSeconds", ge=1, le=10_000_000)] = None,
        timestamps: Annotated[bool, Query(description="Begin each line with its time; live logs only.")] = False,
    ) -> Response:
        """Read a container's log: live while its pod is there, the kept end of it afterwards."""
        row: JobRow = await where.row()
        services = where.caller.services
        story = await _replica(services.reading, row, task, rank)
        number = _attempt(story, attempt)
        since = None if since_seconds is None else services.clock.now() - timedelta(seconds=since_seconds)
        request = LogRequest(
            namespace=row.namespace,
            pod=story.stored.pod_name or "",
            container=_container(story, number, container),
            follow=follow,
            tail_lines=tail_lines,
            since=since,
            timestamps=timestamps,
        )
        return _LogResponse(where.caller, lambda: services.logs.open(row.uid, story, number, request))


class _LogResponse(LongResponse):
    """A log that ends early says so in a last line of its own, and is cut short."""

    media_type = "text/plain"
    is_cut_short = True

    def __init__(self, caller: Caller, open_log: Callable[[], Awaitable[LogStream]]) -> None:
        super().__init__(caller, LongRequestKind.LOG)
        self._open_log = open_log

    @override
    async def open(self) -> AsyncGenerator[bytes, None]:
        log = await self._open_log()
        self.headers.update(
            {
                "Jobgate-Log-Source": "live" if log.live else "stored",
                "Jobgate-Log-Truncated": "true" if log.truncated else "false",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
            }
        )
        return log.pieces

    @override
    def last_words(self, ending: EndReason | None, error: DomainError) -> bytes:
        return f"\n[jobgate] the log is cut off here: {error.message}\n".encode()


async def _replica(reading: JobReader, row: JobRow, task: str | None, rank: int) -> ReplicaHistory:
    tasks = await reading.tasks(row.uid)
    if not tasks:
        raise NotFound(f"the job is {row.status.phase}: none of its replicas has started", code="NoLog")
    if task is None and len(tasks) > 1:
        raise refuse_parameter("query", "task", "Required", "the job has several tasks", "one of " + ", ".join(tasks))
    wanted = ReplicaFilter(task=task or tasks[0], rank=rank)
    for story in await reading.replicas(row.uid, wanted, start=0, limit=1):
        return story
    if wanted.task not in tasks:
        raise refuse_parameter("query", "task", "UnknownTask", "the job has no such task", "one of " + ", ".join(tasks))
    raise refuse_parameter("query", "rank", "UnknownRank", "the task has no such rank", "a rank of its replicas")


def _attempt(story: ReplicaHistory, asked: int | None) -> int:
    current = story.stored.replica.attempt.number
    if asked is None:
        return current
    known = [attempt.number for attempt in story.ended if attempt.number != current] + [current]
    if asked not in known:
        accepted = "one of " + ", ".join(map(str, known))
        raise refuse_parameter("query", "attempt", "UnknownAttempt", "there was no such attempt", accepted)
    return asked


def _container(story: ReplicaHistory, number: int, asked: str | None) -> str:
    """By default the pod's first container; a wrong name is refused with the right ones."""
    attempts = (*story.ended, story.stored.replica.attempt)
    reported = next((attempt.containers for attempt in reversed(attempts) if attempt.number == number), ())
    if not reported:
        raise NotFound(f"{story.stored.replica.key} has not started: there is no log yet", code="NoLog")
    names = [container.name for container in reported]
    if asked is None:
        return next((container.name for container in reported if not container.init), names[0])
    if asked not in names:
        accepted = "one of " + ", ".join(names)
        raise refuse_parameter("query", "container", "UnknownContainer", "the pod has no such container", accepted)
    return asked
