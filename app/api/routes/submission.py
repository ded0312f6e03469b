"""Submissions to any resource: one object, several of which all or none are stored, or a batch of independent ones."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from app.api.bodies import JSON, read_submission
from app.api.conditional import whole_tag
from app.api.dependencies import Caller, CallerDep
from app.api.errors import problem_of
from app.api.parameters import IdempotencyKeyHeader, Namespace
from app.api.rendering import list_bytes
from app.api.resources import Resource
from app.api.responses import NO_STORE
from app.cancellation import TaskGroup
from app.domain.errors import DomainError
from app.domain.plan import Manifest
from app.offload import offloaded_if_large
from app.services.access import Verb
from app.services.manifests import Sampler
from app.services.submitting import Created, CreatedTogether, RequestKey, fingerprint


def router_of(resource: Resource) -> APIRouter:
    router = APIRouter(tags=[resource.name])
    _add_submission(router, resource)
    _add_batch(router, resource)
    return router


def _add_submission(router: APIRouter, resource: Resource) -> None:
    models = resource.models

    @router.post(
        resource.collection_path,
        name=f"submit_{resource.operation_noun}",
        description=f"Submit the manifest of a {resource.noun}, or several manifests, of which all or none are stored.",
        status_code=201,
        response_model=None,
        responses={
            201: {
                "model": models.view | models.page,
                "description": "The new object, or a list of the new objects. They are stored durably.",
            },
            200: {
                "model": models.view | models.page | models.dry_run | models.dry_run_list,
                "description": "The first answer to a repeated request, or the result of a dry run.",
            },
        },
    )
    async def submit_one_or_several(
        namespace: Namespace,
        caller: CallerDep,
        idempotency_key: IdempotencyKeyHeader = None,
        dry_run: Annotated[
            Literal["All"] | None,
            Query(
                alias="dryRun",
                description="Validate the manifest and return the objects that it would create; store nothing.",
            ),
        ] = None,
    ) -> Response:
        if dry_run:  # its Idempotency-Key is ignored, because it has no effect to repeat
            return await _dry_run(resource, caller, namespace)
        return await submit(resource, caller, namespace, idempotency_key)


async def _dry_run(resource: Resource, caller: Caller, namespace: str) -> Response:
    """Answer with what the submission would store, and store nothing."""
    caller.require(Verb.SUBMIT, namespace)
    submitted = await read_submission(caller.request)
    submitter, sampler = resource.submitter(caller.services), Sampler()
    if isinstance(submitted, dict):
        prepared = await submitter.prepare(submitted, namespace, administers=caller.administers)
        body = await resource.dry_run_bytes(prepared, sampler)
    else:
        several = await submitter.prepare_together(submitted, namespace, administers=caller.administers)
        body = b'{"items":[' + b",".join([await resource.dry_run_bytes(one, sampler) for one in several]) + b"]}"
    return Response(body, media_type=JSON, headers=NO_STORE)


async def submit(resource: Resource, caller: Caller, namespace: str, idempotency_key: str | None) -> Response:
    """Store the objects of the request and answer once they are durable."""
    caller.require(Verb.SUBMIT, namespace)
    submitted = await read_submission(caller.request)
    key = await request_key(caller, idempotency_key, submitted)
    submitter, actor, administers = resource.submitter(caller.services), caller.name, caller.administers
    render = partial(resource.created_bytes, caller.services)
    if isinstance(submitted, dict):
        created = await submitter.submit(
            submitted,
            namespace,
            actor=actor,
            key=key,
            render=render,
            administers=administers,
        )
        return created_response(resource, created, namespace)
    together = await submitter.submit_together(
        submitted,
        namespace,
        actor=actor,
        key=key,
        render=render,
        join=list_bytes,
        administers=administers,
    )
    return _answer(together, {})


def _add_batch(router: APIRouter, resource: Resource) -> None:
    @router.post(
        f"{resource.collection_path}/batch",
        name=resource.batch_operation,
        response_model=None,
        responses={200: {"model": resource.models.batch, "description": "The results in the order of the request."}},
    )
    async def submit_batch(
        request: Request, namespace: Namespace, caller: CallerDep, idempotency_key: IdempotencyKeyHeader = None
    ) -> Response:
        """Submit several manifests independently: each one is stored or refused by itself.

        A repeated request with the same Idempotency-Key repeats the answer for each stored item and retries the others.
        """
        caller.require(Verb.SUBMIT, namespace)
        submitted = await read_submission(request)
        documents = [submitted] if isinstance(submitted, dict) else submitted
        tasks: list[asyncio.Task[bytes]] = []
        async with TaskGroup() as group:  # concurrent submissions share one commit
            for place, document in enumerate(documents):
                key = await _key_of_item(caller, idempotency_key, document, place)
                tasks.append(group.create_task(_one_of_batch(resource, caller, namespace, document, key)))
                await asyncio.sleep(0)  # plan one item in each iteration of the event loop, so that other requests run
        body = b'{"items":[' + b",".join(task.result() for task in tasks) + b"]}"
        return Response(body, media_type=JSON, headers=NO_STORE)


async def _key_of_item(caller: Caller, key: str | None, document: Manifest, place: int) -> RequestKey | None:
    """Return the key of one item of a batch, so that each item has its own first answer."""
    of_all = await request_key(caller, key, document)
    return of_all and replace(of_all, scope=f"{of_all.scope} {place}")


async def _one_of_batch(
    resource: Resource, caller: Caller, namespace: str, document: Manifest, key: RequestKey | None
) -> bytes:
    submitter = resource.submitter(caller.services)
    try:
        created = await submitter.submit(
            document,
            namespace,
            actor=caller.name,
            key=key,
            render=partial(resource.created_bytes, caller.services),
            administers=caller.administers,
        )
    except DomainError as error:
        refusal = problem_of(error)
        return b'{"status":%d,"object":null,"problem":%b}' % (refusal.status_code, bytes(refusal.body))
    return b'{"status":%d,"object":%b,"problem":null}' % (200 if created.replayed else 201, created.body)


async def request_key(caller: Caller, key: str | None, body: object) -> RequestKey | None:
    """Return the Idempotency-Key, if any, with its scope (token, method, path) and a fingerprint of the request."""
    if key is None:
        return None
    request = caller.request
    scope = f"{caller.principal.id} {request.method} {request.url.path}"
    digest = await offloaded_if_large(body, fingerprint, body, dict(request.query_params))
    return RequestKey(scope=scope, key=key, fingerprint=digest)


def created_response(resource: Resource, created: Created, namespace: str) -> Response:
    location = f"{resource.collection_path.format(namespace=namespace)}/{created.name}"
    return _answer(created, {"Location": location, "ETag": whole_tag(created.uid, created.version)})


def _answer(created: Created | CreatedTogether, headers: dict[str, str]) -> Response:
    headers = headers | NO_STORE | ({"Idempotency-Replayed": "true"} if created.replayed else {})
    return Response(created.body, status_code=200 if created.replayed else 201, headers=headers, media_type=JSON)
