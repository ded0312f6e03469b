"""Submitting jobs and editing them."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from app.api.bodies import read_manifest, read_merge_patch, read_submission
from app.api.conditional import check_if_match, job_tag
from app.api.dependencies import Caller, CallerDep
from app.api.errors import problem_of
from app.api.parameters import IdempotencyKeyHeader, IfMatch, Name, Namespace
from app.api.polling import JSON, answer
from app.api.rendering import dry_run_bytes, job_bytes, jobs_bytes
from app.api.views import BatchView, DryRunList, DryRunView, JobPage, JobView
from app.cancellation import TaskGroup
from app.db.job_rows import JobRow
from app.domain.errors import DomainError
from app.domain.plan import Manifest
from app.offload import offloaded_if_large
from app.services.access import Verb
from app.services.control import Changed, Precondition
from app.services.manifests import Sampler
from app.services.submitting import Created, Prepared, RequestKey, fingerprint
from app.services.submitting_together import CreatedTogether

router = APIRouter(tags=["jobs"])

COLLECTION = "/api/v1/namespaces/{namespace}/jobs"
_JOB = "/api/v1/namespaces/{namespace}/jobs/{name}"
_CHANGED: dict[int | str, dict[str, Any]] = {
    200: {"model": JobView, "description": "Nothing is left to do."},
    202: {"model": JobView, "description": "Stored; the cluster has yet to carry it out."},
}


@router.post(
    COLLECTION,
    status_code=201,
    response_model=None,
    responses={
        201: {"model": JobView | JobPage, "description": "The job is stored durably, or all of several are."},
        200: {
            "model": JobView | JobPage | DryRunView | DryRunList,
            "description": "A repeated request with its first answer, or a dry run.",
        },
    },
)
async def submit_job(
    request: Request,
    namespace: Namespace,
    caller: CallerDep,
    idempotency_key: IdempotencyKeyHeader = None,
    dry_run: Annotated[
        Literal["All"] | None, Query(alias="dryRun", description="Validate and show what would be made; store nothing.")
    ] = None,
) -> Response:
    """Submit a job: the manifest of one of the kinds, as its own system takes it; or several jobs, all or none."""
    if not dry_run:
        return await submit(caller, namespace, idempotency_key)
    caller.require(Verb.SUBMIT, namespace)
    asked = await read_submission(request)
    sampler = Sampler()
    if isinstance(asked, dict):
        body = await _dry_run(
            await caller.services.submitter.prepare(asked, namespace, administers=caller.administers), sampler
        )
    else:
        prepared = await caller.services.together.prepare(asked, namespace, administers=caller.administers)
        body = b'{"items":[' + b",".join([await _dry_run(one, sampler) for one in prepared]) + b"]}"
    return Response(body, media_type=JSON, headers={"Cache-Control": "no-store"})


async def _dry_run(run: Prepared, sampler: Sampler) -> bytes:
    manifests, left_out = await sampler.sample(run.plan)
    return dry_run_bytes(run, manifests, left_out)


async def submit(caller: Caller, namespace: str, idempotency_key: str | None) -> Response:
    """Answers once the job is durable, or all of several are."""
    caller.require(Verb.SUBMIT, namespace)
    asked = await read_submission(caller.request)
    key = await request_key(caller, idempotency_key, asked)
    services, actor, administers = caller.services, caller.name, caller.administers
    render = partial(job_bytes, services.planner)
    if isinstance(asked, dict):
        created = await services.submitter.submit(
            asked, namespace, actor=actor, key=key, render=render, administers=administers
        )
        return created_response(created, namespace)
    together = await services.together.submit(
        asked, namespace, actor=actor, key=key, render=render, join=jobs_bytes, administers=administers
    )
    return together_response(together)


@router.post(
    f"{COLLECTION}/batch",
    response_model=None,
    responses={200: {"model": BatchView, "description": "What became of each, in their order."}},
)
async def submit_batch(
    request: Request, namespace: Namespace, caller: CallerDep, idempotency_key: IdempotencyKeyHeader = None
) -> Response:
    """Submit several jobs, each stored or refused by itself; a repetition with the same key repeats each answer."""
    caller.require(Verb.SUBMIT, namespace)
    asked = await read_submission(request)
    documents = [asked] if isinstance(asked, dict) else asked
    tasks: list[asyncio.Task[bytes]] = []
    async with TaskGroup() as group:  # together they share a commit
        for place, document in enumerate(documents):
            key = await _key_of_item(caller, idempotency_key, document, place)
            tasks.append(group.create_task(_one_of_batch(caller, namespace, document, key)))
            await asyncio.sleep(0)  # each item is planned in a turn of the event loop of its own
    body = b'{"items":[' + b",".join(task.result() for task in tasks) + b"]}"
    return Response(body, media_type=JSON, headers={"Cache-Control": "no-store"})


async def _key_of_item(caller: Caller, key: str | None, document: Manifest, place: int) -> RequestKey | None:
    of_all = await request_key(caller, key, document)
    return of_all and replace(of_all, scope=f"{of_all.scope} {place}")


async def _one_of_batch(caller: Caller, namespace: str, document: Manifest, key: RequestKey | None) -> bytes:
    submitter = caller.services.submitter
    try:
        created = await submitter.submit(
            document,
            namespace,
            actor=caller.name,
            key=key,
            render=partial(job_bytes, caller.services.planner),
            administers=caller.administers,
        )
    except DomainError as error:
        refusal = problem_of(error)
        return b'{"status":%d,"job":null,"problem":%b}' % (refusal.status_code, bytes(refusal.body))
    return b'{"status":%d,"job":%b,"problem":null}' % (200 if created.replayed else 201, created.body)


@router.put(_JOB, response_model=None, responses=_CHANGED)
async def replace_job(
    request: Request, namespace: Namespace, name: Name, caller: CallerDep, if_match: IfMatch = None
) -> Response:
    """Replace the manifest, within what the kind lets be changed."""
    caller.require(Verb.CONTROL, namespace)
    document = await read_manifest(request)
    changed = await caller.services.control.replace(
        namespace,
        name,
        document,
        actor=caller.name,
        precondition=precondition(if_match),
        administers=caller.administers,
    )
    return await changed_response(caller, changed)


@router.patch(_JOB, response_model=None, responses=_CHANGED)
async def patch_job(
    request: Request, namespace: Namespace, name: Name, caller: CallerDep, if_match: IfMatch = None
) -> Response:
    """Merge into the manifest (RFC 7396), within what the kind lets be changed."""
    caller.require(Verb.CONTROL, namespace)
    patch = await read_merge_patch(request)
    changed = await caller.services.control.merge(
        namespace,
        name,
        patch,
        actor=caller.name,
        precondition=precondition(if_match),
        administers=caller.administers,
    )
    return await changed_response(caller, changed)


@router.delete(_JOB, response_model=None, responses=_CHANGED)
async def delete_job(
    namespace: Namespace,
    name: Name,
    caller: CallerDep,
    if_match: IfMatch = None,
    reason: Annotated[str, Query(max_length=1024, pattern=r"^[^\x00]*$", description="For the job's history.")] = "",
) -> Response:
    """Cancel the job if it lives and remove all its objects; its record and history stay, and deletedAt is set."""
    caller.require(Verb.CONTROL, namespace)
    changed = await caller.services.control.delete(
        namespace, name, actor=caller.name, reason=reason, precondition=precondition(if_match)
    )
    return await changed_response(caller, changed)


async def request_key(caller: Caller, key: str | None, body: object) -> RequestKey | None:
    """Whose key it is, for which request."""
    if key is None:
        return None
    request = caller.request
    scope = f"{caller.principal.id} {request.method} {request.url.path}"
    print_of_body = await offloaded_if_large(body, fingerprint, body, dict(request.query_params))
    return RequestKey(scope=scope, key=key, fingerprint=print_of_body)


def precondition(if_match: str | None) -> Precondition:
    def check(job: JobRow) -> None:
        check_if_match(if_match, job_tag(job.uid, job.version))

    return check


def created_response(created: Created, namespace: str) -> Response:
    headers = {
        "Location": f"/api/v1/namespaces/{namespace}/jobs/{created.name}",
        "ETag": job_tag(created.uid, created.version),
        "Cache-Control": "no-store",
    }
    if created.replayed:
        headers["Idempotency-Replayed"] = "true"
    return Response(created.body, status_code=200 if created.replayed else 201, headers=headers, media_type=JSON)


def together_response(created: CreatedTogether) -> Response:
    headers = {"Cache-Control": "no-store"} | ({"Idempotency-Replayed": "true"} if created.replayed else {})
    return Response(created.body, status_code=200 if created.replayed else 201, headers=headers, media_type=JSON)


async def changed_response(caller: Caller, changed: Changed) -> Response:
    rendered = await caller.api.poller.of_job(changed.job)
    response = answer(rendered.body, rendered.tag, await caller.services.freshness.read())
    response.status_code = 202 if changed.pending else 200
    return response
