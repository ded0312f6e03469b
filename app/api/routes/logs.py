"""The log of one container of a replica, of the current attempt or an earlier one."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Response
from typing_extensions import override

from app.api.dependencies import Caller
from app.api.errors import parameter_error
from app.api.jobs import JOBS_RESOURCE
from app.api.long_requests import LongResponse
from app.api.parameters import NO_NUL
from app.api.routes.reading import Target, TargetDependency, object_paths
from app.db.jobs.replicas import ReplicaFilter
from app.db.jobs.rows import JobRow
from app.domain.errors import DomainError, NotFound
from app.services.logs import LogRequest, LogStream
from app.services.long_requests import EndReason, LongRequestKind
from app.services.reading import JobReader, ReplicaHistory

_MAX_INT32: Final = 2**31 - 1
_DOCUMENTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The output of the container, unchanged.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
        "headers": {
            "Jobgate-Log-Source": {
                "description": "`live`: read from the cluster. `stored`: the last part, stored when the attempt ended.",
                "schema": {"type": "string", "enum": ["live", "stored"]},
            },
            "Jobgate-Log-Truncated": {
                "description": "`true` if the log had earlier lines that were not stored.",
                "schema": {"type": "string", "enum": ["true", "false"]},
            },
        },
    }
}


def router() -> APIRouter:
    router = APIRouter(tags=["logs"])
    for path, target_of, suffix in object_paths(JOBS_RESOURCE):
        _add_logs(router, path, target_of, suffix)
    return router


def _add_logs(router: APIRouter, path: str, target_of: TargetDependency, suffix: str) -> None:
    @router.get(
        f"{path}/logs",
        name=f"read_job_log{suffix}",
        status_code=200,
        response_class=_LogResponse,
        response_model=None,
        responses=_DOCUMENTED,
    )
    async def read_job_log(  # noqa: PLR0913 - one argument for each query parameter
        target: Annotated[Target, Depends(target_of)],
        *,
        task: Annotated[
            str | None, Query(max_length=253, pattern=NO_NUL, description="Required if the job has several tasks.")
        ] = None,
        rank: Annotated[int, Query(ge=0, le=_MAX_INT32, description="Rank of the replica.")] = 0,
        container: Annotated[
            str | None,
            Query(max_length=253, pattern=NO_NUL, description="By default the first container of the pod."),
        ] = None,
        attempt: Annotated[
            int | None, Query(ge=1, le=_MAX_INT32, description="Number of an attempt. By default the current one.")
        ] = None,
        follow: Annotated[
            bool, Query(description="Follow the log: send new lines as the container writes them.")
        ] = False,
        tail_lines: Annotated[
            int | None, Query(alias="tailLines", ge=0, le=1_000_000, description="Return only the last lines.")
        ] = None,
        since_seconds: Annotated[
            int | None,
            Query(alias="sinceSeconds", ge=1, le=10_000_000, description="Return only lines that are not older."),
        ] = None,
        timestamps: Annotated[
            bool, Query(description="Prefix each line with its time. Only live logs have times.")
        ] = False,
    ) -> Response:
        """Return the log of a container: from the cluster while its pod exists, else its stored last part."""
        row: JobRow = await target.row()
        services = target.caller.services
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
        # The log is opened after the limits are checked, because it holds a connection to the API server.
        return _LogResponse(target.caller, lambda: services.logs.open(row.uid, story, number, request))


class _LogResponse(LongResponse):
    """A log. If it ends early, its last line gives the reason, and the response has no last chunk."""

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
    def final_piece(self, ending: EndReason | None, error: DomainError) -> bytes:
        return f"\n[jobgate] the log is cut off here: {error.message}\n".encode()


async def _replica(reading: JobReader, row: JobRow, task: str | None, rank: int) -> ReplicaHistory:
    """Return the replica of this rank.

    Raises:
        NotFound: no replica of the job has started.
        InvalidParameter: `task` is missing or unknown, or the task has no such rank.
    """
    tasks = await reading.tasks(row.uid)
    if not tasks:
        raise NotFound(f"the job is {row.status.phase}: none of its replicas has started", code="NoLog")
    if task is None and len(tasks) > 1:
        raise parameter_error("query", "task", "Required", "the job has several tasks", "one of " + ", ".join(tasks))
    wanted = ReplicaFilter(task=task or tasks[0], rank=rank)
    for story in await reading.replicas(row.uid, wanted, start=0, limit=1):
        return story
    if wanted.task not in tasks:
        raise parameter_error("query", "task", "UnknownTask", "the job has no such task", "one of " + ", ".join(tasks))
    raise parameter_error(
        "query", "rank", "UnknownRank", "the task has no replica of this rank", "the rank of one of its replicas"
    )


def _attempt(story: ReplicaHistory, requested: int | None) -> int:
    """Return the number of the requested attempt, by default the current one. Raises InvalidParameter."""
    current = story.stored.replica.attempt.number
    if requested is None:
        return current
    known = [attempt.number for attempt in story.ended if attempt.number != current] + [current]
    if requested not in known:
        accepted = "one of " + ", ".join(map(str, known))
        raise parameter_error("query", "attempt", "UnknownAttempt", "the replica has no such attempt", accepted)
    return requested


def _container(story: ReplicaHistory, number: int, requested: str | None) -> str:
    """Return the name of the requested container of an attempt, by default of its first one that is no init container.

    Raises:
        NotFound: the attempt has no container that has started.
        InvalidParameter: the pod has no such container.
    """
    attempts = (*story.ended, story.stored.replica.attempt)
    reported = next((attempt.containers for attempt in reversed(attempts) if attempt.number == number), ())
    if not reported:
        raise NotFound(f"{story.stored.replica.key} has not started: there is no log yet", code="NoLog")
    names = [container.name for container in reported]
    if requested is None:
        return next((container.name for container in reported if not container.init), names[0])
    if requested not in names:
        accepted = "one of " + ", ".join(names)
        raise parameter_error("query", "container", "UnknownContainer", "the pod has no such container", accepted)
    return requested
