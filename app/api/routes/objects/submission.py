"""Submissions to any resource, and dry runs of them.

POST …/jobs                     one object; as in earlier versions, also several, of which all or none are stored
POST …/jobs/batch               several independent objects
POST …/jobs/batch?atomic=true   several objects, of which all or none are stored
POST …/jobs/dry-run             one or several objects; nothing is stored
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import APIRouter, Query, Request, Response
from pydantic import TypeAdapter

from app.api.answers.conditional import whole_tag
from app.api.answers.errors import problem_of
from app.api.answers.rendering import list_bytes
from app.api.answers.responses import JSON, NO_STORE
from app.api.requests.bodies import ManifestBody, Submission, receive_manifests
from app.api.requests.dependencies import Caller, CallerDep, caller
from app.api.requests.parameters import IdempotencyKeyHeader, Namespace
from app.api.resources.jobs import JOBS_RESOURCE
from app.api.resources.resource import DryRunChecks, Resource
from app.api.routers import Parameter, add_resolved_route, arguments_of, new_router
from app.base.cancellation import TaskGroup
from app.base.offload import offload_if_large
from app.db.objects.idempotency import KeyId
from app.domain.cluster_check import ClusterCheck
from app.domain.errors import DomainError
from app.domain.plan import Manifest
from app.services.access import Verb
from app.services.reading.manifests import Sampler
from app.services.submitting.objects import Created, CreatedTogether
from app.services.submitting.request_keys import RequestKey, fingerprint
from app.telemetry.log_fields import note_job

DryRunMode: TypeAlias = Literal["All", "Local"]
DryRun = Annotated[DryRunMode | None, Query(alias="dryRun", include_in_schema=False)]

# Those of a submission.
_PARAMETERS: Final = {
    "namespace": Parameter("path", "namespace", TypeAdapter(Namespace)),
    "idempotency_key": Parameter("header", "Idempotency-Key", TypeAdapter(IdempotencyKeyHeader)),
    "dry_run": Parameter("query", "dryRun", TypeAdapter(DryRun)),
}


def router_of(resource: Resource) -> APIRouter:
    router = new_router(resource.name)
    _add_submission(router, resource)
    _add_batch(router, resource)
    _add_dry_run(router, resource)
    return router


def _add_submission(router: APIRouter, resource: Resource) -> None:
    models = resource.models

    async def resolve(request: Request) -> Mapping[str, Any]:
        return {"caller": await caller(request), **arguments_of(request, _PARAMETERS)}

    async def submit_one_or_several(
        namespace: Namespace,
        caller: CallerDep,
        idempotency_key: IdempotencyKeyHeader = None,
        dry_run: DryRun = None,
    ) -> Response:
        if dry_run:  # its Idempotency-Key is ignored, because it has no effect to repeat
            return await _dry_run(resource, caller, namespace, dry_run, as_list=False)
        return await submit(resource, caller, namespace, idempotency_key)

    add_resolved_route(
        router,
        resource.collection_path,
        submit_one_or_several,
        resolve,
        method="POST",
        name=f"submit_{resource.operation_noun}",
        # The schemas of body and answer are those of one object, so that a client has one type for each. Several
        # objects and `dryRun` remain for clients of earlier versions. The other routes have the types of these.
        description=f"Submit the manifest of a {resource.noun}. As in earlier versions, the body may contain several "
        "manifests, of which all or none are stored, and `?dryRun=All` stores nothing; new clients use `…/batch` and "
        "`…/dry-run`, which have the types of these answers.",
        status_code=201,
        response_model=None,
        responses={
            201: {
                "model": models.view,
                "description": "The new object. It is stored durably.",
            },
            200: {
                "model": models.view,
                "description": "The first answer to a repeated request.",
            },
        },
    )


async def _dry_run(resource: Resource, caller: Caller, namespace: str, mode: DryRunMode, *, as_list: bool) -> Response:
    """Answer with what the submission would store and how the cluster would answer, and store nothing.

    `as_list` makes one result a list, too.
    """
    await caller.require_dry_run(namespace)
    received = await receive_manifests(caller.request)
    async with caller.turn_to_submit():
        return await _answer_dry_run(resource, caller, namespace, mode, await received.submission(), as_list=as_list)


async def _answer_dry_run(
    resource: Resource, caller: Caller, namespace: str, mode: DryRunMode, submitted: Submission, *, as_list: bool
) -> Response:
    submitter, services = resource.submitter(caller.services), caller.services
    request = caller.submit_request(namespace)
    prepared: Sequence[Any]
    if isinstance(submitted, dict):
        prepared = [await submitter.prepare(submitted, request)]
    else:
        prepared = await submitter.prepare_together(submitted, request)
    checks: Sequence[ClusterCheck | None] = [None] * len(prepared)
    if mode == "All":
        checks = await resource.cluster_checks(services, prepared, caller.principal.id)
    gang_apis = await services.gang_apis()
    rooms = await resource.queue_checks(services, namespace, prepared, gang_apis)
    sampler = Sampler(gang_apis)
    items = [
        await resource.dry_run_bytes(job, DryRunChecks(check, room), sampler)
        for job, check, room in zip(prepared, checks, rooms, strict=True)
    ]
    body = items[0] if isinstance(submitted, dict) and not as_list else _items(items)
    return Response(body, media_type=JSON, headers=NO_STORE)


async def submit(resource: Resource, caller: Caller, namespace: str, idempotency_key: str | None) -> Response:
    """Store the objects of the request and answer once they are durable."""
    await caller.require_submit(namespace, key_ids(caller, idempotency_key))
    received = await receive_manifests(caller.request)
    async with caller.turn_to_submit():
        return await _store(resource, caller, namespace, await received.submission(), idempotency_key)


async def _store(
    resource: Resource, caller: Caller, namespace: str, submitted: Submission, idempotency_key: str | None
) -> Response:
    key = await request_key(caller, idempotency_key, submitted)
    submitter, request = resource.submitter(caller.services), caller.submit_request(namespace)
    render = resource.created_bytes
    if isinstance(submitted, dict):
        created = await submitter.submit(submitted, request, key=key, render=render)
        return created_response(resource, created, namespace)
    together = await submitter.submit_together(submitted, request, key=key, render=render, join=list_bytes)
    return _answer(together, {})


def _add_dry_run(router: APIRouter, resource: Resource) -> None:
    @router.post(
        f"{resource.collection_path}/dry-run",
        name=f"dry_run_{resource.operation_noun}",
        description=f"Validate the manifests of one or several {resource.noun}s as a submission does, and return what "
        "it would store and create. A dry run stores nothing.",
        response_model=None,
        responses={
            200: {"model": resource.models.dry_run_list, "description": "The results in the order of the request."}
        },
    )
    async def dry_run(
        namespace: Namespace,
        caller: CallerDep,
        mode: Annotated[
            DryRunMode,
            Query(
                alias="dryRun",
                description="`All`: the cluster checks the objects, too. `Local`: only jobgate checks the manifests.",
            ),
        ] = "All",
    ) -> Response:
        return await _dry_run(resource, caller, namespace, mode, as_list=True)


def _add_batch(router: APIRouter, resource: Resource) -> None:
    @router.post(
        f"{resource.collection_path}/batch",
        name=resource.batch_operation,
        response_model=None,
        responses={200: {"model": resource.models.batch, "description": "The results in the order of the request."}},
    )
    async def submit_batch(
        request: Request,
        namespace: Namespace,
        caller: CallerDep,
        idempotency_key: IdempotencyKeyHeader = None,
        *,
        atomic: Annotated[bool, Query(description="Store all manifests or none.")] = False,
    ) -> Response:
        """Submit several manifests independently: each one is stored or refused by itself.

        A repeated request with the same Idempotency-Key repeats the answer for each stored item and retries the others.

        With `atomic=true` all manifests are stored or none. If one is refused, the answer is a problem whose pointers
        begin with `/items/<index>`. A repeated request with the same Idempotency-Key repeats the whole answer.
        """
        caller.require(Verb.SUBMIT, namespace)
        received = await receive_manifests(request)
        if atomic:
            return await _submit_atomically(resource, caller, namespace, received, idempotency_key)
        documents = await _documents(received)
        keys = await _keys_of_items(caller, idempotency_key, documents)
        await caller.require_submit(namespace, [key.id for key in keys if key is not None])
        tasks: list[asyncio.Task[bytes]] = []
        async with TaskGroup() as group:  # concurrent submissions share one commit
            for key, document in zip(keys, documents, strict=True):
                tasks.append(group.create_task(_one_of_batch(resource, caller, namespace, document, key)))
                await asyncio.sleep(0)  # plan one item in each iteration of the event loop, so that other requests run
        return Response(_items(task.result() for task in tasks), media_type=JSON, headers=NO_STORE)


async def _submit_atomically(
    resource: Resource, caller: Caller, namespace: str, received: ManifestBody, idempotency_key: str | None
) -> Response:
    """Store all documents or none, and answer with a batch."""
    await caller.require_submit(namespace, key_ids(caller, idempotency_key))
    async with caller.turn_to_submit():
        documents = await _documents(received)
        created = await resource.submitter(caller.services).submit_together(
            documents,
            caller.submit_request(namespace),
            key=await request_key(caller, idempotency_key, documents),
            render=resource.created_bytes,
            join=lambda views: _items(_stored_item(201, view) for view in views),
        )
    return Response(created.body, media_type=JSON, headers=_headers(created))


async def _documents(received: ManifestBody) -> Sequence[Manifest]:
    submitted = await received.submission()
    return [submitted] if isinstance(submitted, dict) else submitted


async def _keys_of_items(caller: Caller, key: str | None, documents: Sequence[Manifest]) -> list[RequestKey | None]:
    """Return the key of each item of a batch, so that each item has its own first answer."""
    keys = []
    for index, document in enumerate(documents):
        of_all = await request_key(caller, key, document)
        keys.append(of_all and replace(of_all, scope=f"{of_all.scope} {index}"))
        await asyncio.sleep(0)  # the fingerprints of a hundred manifests take so long that other requests must run
    return keys


async def _one_of_batch(
    resource: Resource, caller: Caller, namespace: str, document: Manifest, key: RequestKey | None
) -> bytes:
    submitter = resource.submitter(caller.services)
    try:
        # If the namespace is missing, a batch is accepted because of one stored answer. The other items have none.
        await caller.require_submit(namespace, [] if key is None else [key.id])
        async with caller.turn_to_submit():
            created = await submitter.submit(
                document,
                caller.submit_request(namespace),
                key=key,
                render=resource.created_bytes,
            )
    except DomainError as error:
        refusal = problem_of(error)
        return b'{"status":%d,"object":null,"problem":%b}' % (refusal.status_code, bytes(refusal.body))
    return _stored_item(200 if created.replayed else 201, created.body)


def _stored_item(status: int, view: bytes) -> bytes:
    """Return the JSON of a BatchItemView for an object that is stored."""
    return b'{"status":%d,"object":%b,"problem":null}' % (status, view)


def _items(items: Iterable[bytes]) -> bytes:
    """Return the JSON of a list without pages."""
    return b'{"items":[' + b",".join(items) + b"]}"


async def request_key(caller: Caller, key: str | None, body: object) -> RequestKey | None:
    """Return the Idempotency-Key, if any, with its scope (token, method, path) and a fingerprint of the request."""
    if key is None:
        return None
    digest = await offload_if_large(body, fingerprint, body, dict(caller.request.query_params))
    return RequestKey(scope=_scope(caller), key=key, fingerprint=digest)


def key_ids(caller: Caller, key: str | None) -> list[KeyId]:
    """Return where the answer to a request with this Idempotency-Key is stored; nowhere without a key."""
    return [] if key is None else [(_scope(caller), key)]


def _scope(caller: Caller) -> str:
    return f"{caller.principal.id} {caller.request.method} {caller.request.url.path}"


def created_response(resource: Resource, created: Created, namespace: str) -> Response:
    if resource is JOBS_RESOURCE:
        note_job(str(created.uid))
    location = f"{resource.collection_path.format(namespace=namespace)}/{created.name}"
    return _answer(created, {"Location": location, "ETag": whole_tag(created.uid, created.version)})


def _answer(created: Created | CreatedTogether, headers: dict[str, str]) -> Response:
    status = 200 if created.replayed else 201
    return Response(created.body, status_code=status, headers=headers | _headers(created), media_type=JSON)


def _headers(created: Created | CreatedTogether) -> dict[str, str]:
    return NO_STORE | ({"Idempotency-Replayed": "true"} if created.replayed else {})
