"""The log of one container of a replica, of the current attempt or an earlier one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Response

from app.api.answers.errors import InvalidParameter, parameter_error
from app.api.long_requests.logs import LogResponse
from app.api.long_requests.merged_logs import LEFT_OUT, MergedLogResponse
from app.api.long_requests.streams import line_type
from app.api.requests.log_query import LogQuery, LogQueryDependency
from app.api.resources.jobs import JOBS_RESOURCE
from app.api.routers import new_router
from app.api.routes.objects.reading import Target, TargetDependency, object_paths
from app.db.jobs.replicas import ReplicaFilter
from app.db.jobs.rows import JobRow
from app.domain.errors import NotFound
from app.domain.status.log_choice import default_attempt
from app.services.logs.containers import LogRequest, attempt_of, container_of, no_log
from app.services.logs.merged import MergedRequest
from app.services.reading.jobs import JobReader, ReplicaHistory

_DOCUMENTED: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The output of the container, unchanged.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
        "headers": {
            "Jobgate-Log-Source": {
                "description": "Where a log comes from, not a merged one: `live`, from the cluster; `kept`, the whole "
                "log in the log store; `stored`, the last part, stored when the attempt ended; or `kept` and the rest.",
                "schema": {"type": "string", "enum": ["live", "stored", "kept", "kept, live", "kept, stored"]},
            },
            "Jobgate-Log-Truncated": {
                "description": "`true` if the log had earlier lines that were not stored.",
                "schema": {"type": "string", "enum": ["true", "false"]},
            },
            "Jobgate-Log-Offset": {
                "description": "The first byte of the answer, from the beginning of the log.",
                "schema": {"type": "integer"},
            },
            "Jobgate-Log-Size": {
                "description": "How many bytes of the log are kept, if it is kept.",
                "schema": {"type": "integer"},
            },
            "Jobgate-Log-Missing": {
                "description": "What is missing of a kept log: gaps, or the rest of a log that is cut.",
                "schema": {"type": "string"},
            },
            "Jobgate-Log-Run": {
                "description": "Number of the run of the container, if the log is kept.",
                "schema": {"type": "integer"},
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


def _add_logs(router: APIRouter, path: str, target_of: TargetDependency, suffix: str) -> None:
    @router.get(
        f"{path}/logs",
        name=f"read_job_log{suffix}",
        status_code=200,
        response_class=LogResponse,
        response_model=None,
        responses=_DOCUMENTED,
    )
    async def read_job_log(target: Annotated[Target, Depends(target_of)], query: LogQueryDependency) -> Response:
        """Return the log of a container: what is kept of it, and the rest from the cluster while its pod exists.

        Without a log store, it is that of the cluster, or else its stored last part. With `Accept: application/jsonl`,
        each line is a JSON object with `offset`, `number`, `at` and `line`, and with `missing` where lines are missing.

        With `merged=true`, return the logs of the newest attempts of the first 64 replicas, each line with its
        replica. A JSON object then has `task`, `rank`, `attempt`, `at` and `line`. With `follow=true`, new replicas
        and attempts join, until the job ends.
        """
        row: JobRow = await target.row()
        return await (_merged_log if query.log.merged else _one_log)(target, row, query)


async def _one_log(target: Target, row: JobRow, query: LogQuery) -> Response:
    log, part = query
    services = target.caller.services
    story = await _replica(services.reading, row, log.task, log.rank)
    number = _attempt(story, log.attempt, log.container)
    is_json = line_type(target.caller.request.headers.get("accept", "")) is not None
    now = services.clock.now()
    selection = part.selection(now)
    has_text_only = not (is_json or part.timestamps or part.pattern or selection.has_times)
    request = LogRequest(
        namespace=row.namespace,
        pod=story.stored.pod_name or "",
        container=_container(story, number, log.container),
        follow=part.follow,
        tail_lines=part.tail_lines,
        since=part.since(now),
        timestamps=part.timestamps,
        previous=log.previous,
        run=log.run,
        selection=replace(selection, is_exact=has_text_only),
        as_lines=is_json,
        is_raw=has_text_only and part.has_range,
    )
    # The log is opened after the limits are checked, because it holds a connection to the API server.
    return LogResponse(target.caller, row.uid, story, number, request)


async def _merged_log(target: Target, row: JobRow, query: LogQuery) -> Response:
    """Return the response with the logs of all replicas, or of those of one task.

    Raises:
        InvalidParameter: there is no such task.
    """
    log, part = query
    services = target.caller.services
    tasks = list(await services.reading.task_sizes(row.uid))
    if tasks and log.task is not None and log.task not in tasks:
        raise _unknown_task(tasks)
    now = services.clock.now()
    request = MergedRequest(
        uid=row.uid,
        namespace=row.namespace,
        task=log.task,
        container=log.container,
        follow=part.follow,
        tail_lines=part.tail_lines,
        since=part.since(now),
        all_attempts=log.all_attempts,
        selection=part.selection(now),
    )
    return MergedLogResponse(target.caller, request, with_times=part.timestamps)


async def _replica(reading: JobReader, row: JobRow, task: str | None, rank: int) -> ReplicaHistory:
    """Return the replica of this rank.

    Raises:
        NotFound: no replica of the job has started.
        InvalidParameter: `task` is missing or unknown, or the task has no such rank.
    """
    sizes = await reading.task_sizes(row.uid)
    tasks = list(sizes)
    if not tasks:
        raise NotFound(f"the job is {row.status.phase}: none of its replicas has started", code="NoLog")
    if task is None and len(tasks) > 1:
        raise parameter_error("query", "task", "Required", "the job has several tasks", "one of " + ", ".join(tasks))
    wanted = ReplicaFilter(task=task or tasks[0], rank=rank)
    for story in await reading.replicas(row.uid, wanted, start=0, limit=1):
        return story
    if wanted.task not in tasks:
        raise _unknown_task(tasks)
    accepted = f"0 to {sizes[wanted.task] - 1}"
    raise parameter_error("query", "rank", "UnknownRank", "the task has no replica of this rank", accepted)


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
