"""The log of one container of a replica, of the current attempt or an earlier one."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Response
from typing_extensions import override

from app.api.answers.errors import InvalidParameter, parameter_error
from app.api.long_requests.merged_logs import LEFT_OUT, MergedLogResponse
from app.api.long_requests.responses import LongResponse
from app.api.requests.dependencies import Caller
from app.api.requests.parameters import NO_NUL
from app.api.resources.jobs import JOBS_RESOURCE
from app.api.routers import new_router
from app.api.routes.reading import Target, TargetDependency, object_paths
from app.db.jobs.replicas import ReplicaFilter
from app.db.jobs.rows import JobRow
from app.domain.errors import DomainError, NotFound
from app.domain.status.log_choice import default_attempt
from app.services.limits.long_requests import EndReason, LongRequestKind
from app.services.logs.containers import LogRequest, LogStream, attempt_of, container_of, no_log
from app.services.logs.merged import MergedRequest
from app.services.reading.jobs import JobReader, ReplicaHistory

_MAX_INT32: Final = 2**31 - 1
_CONTAINER: Final = (
    "By default the container of the pod's annotation `kubectl.kubernetes.io/default-container`, or else the first "
    "container of its spec; but if an init container failed and kept these from starting, that one."
)
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
            "Jobgate-Log-Attempt": {
                "description": "Number of the attempt, not in a merged log. Without the parameter `attempt`, it is the "
                "newest attempt that has a log. While a replica waits for its next attempt, that is the ended one.",
                "schema": {"type": "integer"},
            },
            "Jobgate-Newest-Attempt": {
                "description": "Number of the newest attempt of the replica, not in a merged log. A higher number than "
                "that of `Jobgate-Log-Attempt` means that there are later attempts.",
                "schema": {"type": "integer"},
            },
            "Jobgate-Log-Container": {
                "description": "Name of the container, not in a merged log.",
                "schema": {"type": "string"},
            },
            LEFT_OUT: {
                "description": "The replicas whose logs are not in a merged log, for example `worker[64-99]`.",
                "schema": {"type": "string"},
            },
        },
    }
}


def router() -> APIRouter:
    router = new_router("logs")
    for path, target_of, suffix in object_paths(JOBS_RESOURCE):
        _add_logs(router, path, target_of, suffix)
    return router


@dataclass(frozen=True, slots=True, kw_only=True)
class _LogQuery:
    """The query parameters of a log."""

    task: str | None
    rank: int
    container: str | None
    attempt: int | None
    follow: bool
    tail_lines: int | None
    since_seconds: int | None
    timestamps: bool
    previous: bool
    merged: bool

    def since(self, now: datetime) -> datetime | None:
        return None if self.since_seconds is None else now - timedelta(seconds=self.since_seconds)


async def _log_query(  # noqa: PLR0913 - one argument for each query parameter
    *,
    task: Annotated[
        str | None,
        Query(max_length=253, pattern=NO_NUL, description="Required if the job has several tasks, unless merged."),
    ] = None,
    rank: Annotated[int, Query(ge=0, le=_MAX_INT32, description="Rank of the replica.")] = 0,
    container: Annotated[
        str | None,
        Query(max_length=253, pattern=NO_NUL, description=_CONTAINER),
    ] = None,
    attempt: Annotated[
        int | None, Query(ge=1, le=_MAX_INT32, description="Number of an attempt. By default the newest with a log.")
    ] = None,
    follow: Annotated[bool, Query(description="Follow the log: send new lines as the container writes them.")] = False,
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
    previous: Annotated[
        bool,
        Query(
            description="Return the log of the container before the kubelet last restarted it in place. It exists only "
            "while the pod does."
        ),
    ] = False,
    merged: Annotated[
        bool, Query(description="Return the logs of all replicas, or of those of one task, in one response.")
    ] = False,
) -> _LogQuery:
    return _LogQuery(
        task=task,
        rank=rank,
        container=container,
        attempt=attempt,
        follow=follow,
        tail_lines=tail_lines,
        since_seconds=since_seconds,
        timestamps=timestamps,
        previous=previous,
        merged=merged,
    )


def _add_logs(router: APIRouter, path: str, target_of: TargetDependency, suffix: str) -> None:
    @router.get(
        f"{path}/logs",
        name=f"read_job_log{suffix}",
        status_code=200,
        response_class=_LogResponse,
        response_model=None,
        responses=_DOCUMENTED,
    )
    async def read_job_log(
        target: Annotated[Target, Depends(target_of)], query: Annotated[_LogQuery, Depends(_log_query)]
    ) -> Response:
        """Return the log of a container: from the cluster while its pod exists, else its stored last part.

        With `merged=true`, return the logs of the newest attempts of the first 64 replicas, each line with its
        replica. With `Accept: application/jsonl`, each line is then a JSON object with `task`, `rank`, `attempt`, `at`
        and `line`. With `follow=true`, new replicas and attempts join, until the job ends.
        """
        row: JobRow = await target.row()
        return await (_merged_log if query.merged else _one_log)(target, row, query)


async def _one_log(target: Target, row: JobRow, query: _LogQuery) -> Response:
    services = target.caller.services
    story = await _replica(services.reading, row, query.task, query.rank)
    number = _attempt(story, query.attempt, query.container)
    request = LogRequest(
        namespace=row.namespace,
        pod=story.stored.pod_name or "",
        container=_container(story, number, query.container),
        follow=query.follow,
        tail_lines=query.tail_lines,
        since=query.since(services.clock.now()),
        timestamps=query.timestamps,
        previous=query.previous,
    )
    # The log is opened after the limits are checked, because it holds a connection to the API server.
    source = {
        "Jobgate-Log-Attempt": str(number),
        "Jobgate-Newest-Attempt": str(story.stored.replica.attempt.number),
        "Jobgate-Log-Container": request.container,
    }
    return _LogResponse(target.caller, lambda: services.logs.open(row.uid, story, number, request), source)


async def _merged_log(target: Target, row: JobRow, query: _LogQuery) -> Response:
    """Return the response with the logs of all replicas, or of those of one task.

    Raises:
        InvalidParameter: there is no such task, or a parameter selects one replica or attempt.
    """
    for name in ("rank", "attempt", "previous"):
        if name in target.caller.request.query_params:
            detail = "selects one log, and merged=true the logs of all replicas"
            raise parameter_error("query", name, "InvalidParameter", detail, "task, or merged=false")
    services = target.caller.services
    tasks = list(await services.reading.task_sizes(row.uid))
    if tasks and query.task is not None and query.task not in tasks:
        raise _unknown_task(tasks)
    request = MergedRequest(
        uid=row.uid,
        namespace=row.namespace,
        task=query.task,
        container=query.container,
        follow=query.follow,
        tail_lines=query.tail_lines,
        since=query.since(services.clock.now()),
    )
    return MergedLogResponse(target.caller, request, with_times=query.timestamps)


class _LogResponse(LongResponse):
    """A log. If it ends early, its last line gives the reason, and the response has no last chunk."""

    media_type = "text/plain"
    is_cut_short = True

    def __init__(self, caller: Caller, open_log: Callable[[], Awaitable[LogStream]], source: Mapping[str, str]) -> None:
        super().__init__(caller, LongRequestKind.LOG)
        self._open_log = open_log
        self._source = source

    @override
    async def open(self) -> AsyncGenerator[bytes, None]:
        log = await self._open_log()
        self.headers.update(
            {
                **self._source,
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
    tasks = list(await reading.task_sizes(row.uid))
    if not tasks:
        raise NotFound(f"the job is {row.status.phase}: none of its replicas has started", code="NoLog")
    if task is None and len(tasks) > 1:
        raise parameter_error("query", "task", "Required", "the job has several tasks", "one of " + ", ".join(tasks))
    wanted = ReplicaFilter(task=task or tasks[0], rank=rank)
    for story in await reading.replicas(row.uid, wanted, start=0, limit=1):
        return story
    if wanted.task not in tasks:
        raise _unknown_task(tasks)
    raise parameter_error(
        "query", "rank", "UnknownRank", "the task has no replica of this rank", "the rank of one of its replicas"
    )


def _attempt(story: ReplicaHistory, requested: int | None, container: str | None) -> int:
    """Return the number of the requested attempt, by default of the newest one with a log. Raises InvalidParameter."""
    if requested is None:
        return default_attempt(story.attempts, container).number
    known = [attempt.number for attempt in story.attempts]
    if requested not in known:
        accepted = "one of " + ", ".join(map(str, known))
        raise parameter_error("query", "attempt", "UnknownAttempt", "the replica has no such attempt", accepted)
    return requested


def _container(story: ReplicaHistory, number: int, requested: str | None) -> str:
    """Return the name of the requested container of an attempt, or of its default one.

    Raises:
        NotFound: the attempt has no container that has started.
        InvalidParameter: the pod has no such container.
    """
    attempt = attempt_of(story, number)
    if attempt is None or not attempt.containers:
        raise no_log(story, number, requested)
    found = container_of(story, number, requested)
    if found is None:
        accepted = "one of " + ", ".join(container.name for container in attempt.containers)
        raise parameter_error("query", "container", "UnknownContainer", "the pod has no such container", accepted)
    return found


def _unknown_task(tasks: Sequence[str]) -> InvalidParameter:
    return parameter_error("query", "task", "UnknownTask", "the job has no such task", "one of " + ", ".join(tasks))
