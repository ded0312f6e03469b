"""Verbs: shorthands of edits, and a retry, which makes a new job."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field

from app.api.bodies import read_options
from app.api.dependencies import CallerDep
from app.api.jobs import JOBS_RESOURCE
from app.api.parameters import IdempotencyKeyHeader, IfMatch, Name, Namespace
from app.api.rendering import job_bytes
from app.api.routes.edits import changed_response, changed_responses
from app.api.routes.submission import created_response, request_key
from app.api.views import JobView
from app.domain.dialects.spec_model import SpecModel
from app.services.access import Verb
from app.services.scaling import SizesWanted

router = APIRouter(tags=["actions"])

_JOB = JOBS_RESOURCE.one
_CHANGED = changed_responses(JOBS_RESOURCE, "It is so already.")
_Reason = Annotated[str, Field(max_length=1024)]


class ActionOptions(SpecModel):
    """The body of an action, which may be absent."""

    reason: _Reason = ""
    """For the job's history."""


class RetryOptions(SpecModel):
    """The body of a retry, which may be absent."""

    name: str | None = None
    """The new job's name; by default the old one with a random suffix."""


class ScaleOptions(SpecModel):
    """The body of a scale: `tasks`, or `replicas` of one task."""

    replicas: int | None = None
    """The size of the one task that can be scaled, or of `task`."""
    task: str | None = None
    """Which task gets `replicas`; needed where more than one can be scaled."""
    tasks: dict[str, int] | None = None
    """Sizes by task; what is left out keeps its size."""
    reason: _Reason = ""
    """For the job's history and its scale records."""


@router.post(f"{_JOB}/pause", response_model=None, responses=_CHANGED)
async def pause_job(
    request: Request, namespace: Namespace, name: Name, caller: CallerDep, if_match: IfMatch = None
) -> Response:
    """Stop the pods gracefully and keep the job."""
    caller.require(Verb.CONTROL, namespace)
    options = await read_options(request, ActionOptions)
    changed = await caller.services.control.pause(
        namespace,
        name,
        paused=True,
        actor=caller.name,
        message=options.reason,
        precondition=JOBS_RESOURCE.precondition(if_match),
    )
    return await changed_response(JOBS_RESOURCE, caller, changed)


@router.post(f"{_JOB}/resume", response_model=None, responses=_CHANGED)
async def resume_job(
    request: Request, namespace: Namespace, name: Name, caller: CallerDep, if_match: IfMatch = None
) -> Response:
    """Run a paused job again; ranks that have succeeded stay as they are."""
    caller.require(Verb.CONTROL, namespace)
    options = await read_options(request, ActionOptions)
    changed = await caller.services.control.pause(
        namespace,
        name,
        paused=False,
        actor=caller.name,
        message=options.reason,
        precondition=JOBS_RESOURCE.precondition(if_match),
    )
    return await changed_response(JOBS_RESOURCE, caller, changed)


@router.post(f"{_JOB}/scale", response_model=None, responses=_CHANGED)
async def scale_job(
    request: Request, namespace: Namespace, name: Name, caller: CallerDep, if_match: IfMatch = None
) -> Response:
    """Change how many replicas a living job has, within the bounds that the job's `scaling` shows.

    The replicas that stay go on undisturbed; the highest ranks leave. What became of it is told in the scale records.
    """
    caller.require(Verb.CONTROL, namespace)
    options = await read_options(request, ScaleOptions)
    changed = await caller.services.control.scale(
        namespace,
        name,
        SizesWanted(replicas=options.replicas, task=options.task, tasks=options.tasks),
        actor=caller.name,
        reason=options.reason,
        precondition=JOBS_RESOURCE.precondition(if_match),
    )
    return await changed_response(JOBS_RESOURCE, caller, changed)


@router.post(f"{_JOB}/cancel", response_model=None, responses=_CHANGED)
async def cancel_job(
    request: Request, namespace: Namespace, name: Name, caller: CallerDep, if_match: IfMatch = None
) -> Response:
    """End the job as Cancelled."""
    caller.require(Verb.CONTROL, namespace)
    options = await read_options(request, ActionOptions)
    changed = await caller.services.control.cancel(
        namespace, name, actor=caller.name, reason=options.reason, precondition=JOBS_RESOURCE.precondition(if_match)
    )
    return await changed_response(JOBS_RESOURCE, caller, changed)


@router.post(
    f"{_JOB}/retry",
    status_code=201,
    response_model=None,
    responses={
        201: {"model": JobView, "description": "The new job."},
        200: {"model": JobView, "description": "A repeated request with its first answer."},
    },
)
async def retry_job(
    request: Request,
    namespace: Namespace,
    name: Name,
    caller: CallerDep,
    idempotency_key: IdempotencyKeyHeader = None,
) -> Response:
    """Submit the manifest of a job that has ended again, as a new job with retryOf."""
    caller.require(Verb.SUBMIT, namespace)
    options = await read_options(request, RetryOptions)
    key = await request_key(caller, idempotency_key, {"name": options.name})
    services = caller.services
    job = await services.control.current(namespace, name)
    created = await services.submitter.submit(
        services.control.retry_document(job, options.name),
        namespace,
        actor=caller.name,
        key=key,
        render=partial(job_bytes, services.planner),
        retry_of=job.uid,
        administers=caller.administers,
    )
    return created_response(JOBS_RESOURCE, created, namespace)
