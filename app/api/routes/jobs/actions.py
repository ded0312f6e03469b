"""Actions on jobs: pause, resume, scale and cancel are edits; retry creates a new job."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated

from fastapi import Request, Response
from pydantic import Field

from app.api.requests.bodies import read_options
from app.api.requests.dependencies import CallerDep
from app.api.requests.parameters import IdempotencyKeyHeader, Name, Namespace
from app.api.resources.jobs import JOBS_RESOURCE
from app.api.routers import new_router
from app.api.routes.objects.edits import EditCall, EditDep, changed_response, changed_responses
from app.api.routes.objects.submission import created_response, key_ids, request_key
from app.api.views.objects import JobView
from app.domain.errors import moved_pointers
from app.domain.kinds.posted_metadata import NAME
from app.domain.kinds.spec.model import SpecModel
from app.services.editing.scaling import SizesWanted

router = new_router("actions")

_JOB = JOBS_RESOURCE.object_path
_CHANGED = changed_responses(JOBS_RESOURCE, "The job is already in the requested state.")
_Reason = Annotated[str, Field(max_length=1024)]


class ActionOptions(SpecModel):
    """The body of an action. The body may be absent."""

    reason: _Reason = ""
    """A reason for the job's history."""


class RetryOptions(SpecModel):
    """The body of a retry. The body may be absent."""

    name: str | None = None
    """Name of the new job; by default the old name with a random suffix."""


class ScaleOptions(SpecModel):
    """The body of a scale request: `tasks`, or `replicas` of one task."""

    replicas: int | None = None
    """Number of replicas of `task`, or of the only scalable task."""
    task: str | None = None
    """The task that gets `replicas`; required if the job has several scalable tasks."""
    tasks: dict[str, int] | None = None
    """Numbers of replicas by task; other tasks keep their size."""
    reason: _Reason = ""
    """A reason for the job's history and scale records."""


@router.post(f"{_JOB}/pause", response_model=None, responses=_CHANGED)
async def pause_job(edit: EditDep) -> Response:
    """Pause a job: stop its pods gracefully and keep the job."""
    return await _set_paused(edit, paused=True)


@router.post(f"{_JOB}/resume", response_model=None, responses=_CHANGED)
async def resume_job(edit: EditDep) -> Response:
    """Resume a paused job. Replicas that have succeeded are not run again."""
    return await _set_paused(edit, paused=False)


async def _set_paused(edit: EditCall, *, paused: bool) -> Response:
    options = await read_options(edit.request, ActionOptions)
    changed = await edit.caller.services.editor.pause(
        edit.namespace,
        edit.name,
        paused=paused,
        actor=edit.caller.actor,
        message=options.reason,
        precondition=JOBS_RESOURCE.precondition(edit.if_match),
    )
    return await changed_response(JOBS_RESOURCE, edit.caller, changed)


@router.post(f"{_JOB}/scale", response_model=None, responses=_CHANGED)
async def scale_job(edit: EditDep) -> Response:
    """Change the number of replicas of a live job, within the bounds that its `scaling` shows.

    A scale down removes the replicas with the highest ranks. The remaining replicas are not restarted. The scale
    records show the outcome.
    """
    options = await read_options(edit.request, ScaleOptions)
    changed = await edit.caller.services.editor.scale(
        edit.namespace,
        edit.name,
        SizesWanted(replicas=options.replicas, task=options.task, tasks=options.tasks),
        actor=edit.caller.actor,
        reason=options.reason,
        precondition=JOBS_RESOURCE.precondition(edit.if_match),
    )
    return await changed_response(JOBS_RESOURCE, edit.caller, changed)


@router.post(f"{_JOB}/cancel", response_model=None, responses=_CHANGED)
async def cancel_job(edit: EditDep) -> Response:
    """Cancel a live job: stop its pods and end it in the phase Cancelled. Its record and its ended pods stay."""
    options = await read_options(edit.request, ActionOptions)
    changed = await edit.caller.services.editor.cancel(
        edit.namespace,
        edit.name,
        actor=edit.caller.actor,
        reason=options.reason,
        precondition=JOBS_RESOURCE.precondition(edit.if_match),
    )
    return await changed_response(JOBS_RESOURCE, edit.caller, changed)


@router.post(
    f"{_JOB}/retry",
    status_code=201,
    response_model=None,
    responses={
        201: {"model": JobView, "description": "The new job."},
        200: {"model": JobView, "description": "The first answer to a repeated request."},
    },
)
async def retry_job(
    request: Request,
    namespace: Namespace,
    name: Name,
    caller: CallerDep,
    idempotency_key: IdempotencyKeyHeader = None,
) -> Response:
    """Submit the manifest of an ended job again as a new job, whose `retryOf` is the uid of the ended job."""
    await caller.require_submit(namespace, key_ids(caller, idempotency_key))
    options = await read_options(request, RetryOptions)
    # The fingerprint covers what the client sends. The manifest comes from the job.
    key = await request_key(caller, idempotency_key, {"name": options.name})
    services = caller.services
    job = await services.editor.current(namespace, name)
    document, posted = await services.editor.retry_documents(job, options.name)
    # The body has the name at another place than a manifest.
    with moved_pointers(NAME, "/name") if options.name is not None else nullcontext():
        async with caller.turn_to_submit():
            created = await services.submitter.submit(
                document,
                replace(caller.submit_request(namespace), retry_of=job.uid, posted=posted),
                key=key,
                render=JOBS_RESOURCE.created_bytes,
            )
    return created_response(JOBS_RESOURCE, created, namespace)
