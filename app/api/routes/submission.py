"""Submitting objects of any resource: one, several together, or a batch in which each stands for itself."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from app.api.bodies import read_submission
from app.api.conditional import whole_tag
from app.api.dependencies import Caller, CallerDep
from app.api.errors import problem_of
from app.api.parameters import IdempotencyKeyHeader, Namespace
from app.api.polling import JSON
from app.api.rendering import joined_bytes
from app.api.resources import Resource
from app.cancellation import TaskGroup
from app.domain.errors import DomainError
from app.domain.plan import Manifest
from app.offload import offloaded_if_large
from app.services.access import Verb
from app.services.manifests import Sampler
from app.services.submitting import Created, CreatedTogether, RequestKey, fingerprint

_NOT_STORED = {"Cache-Control": "no-store"}


def router_of(resource: Resource) -> APIRouter:
    router = APIRouter(tags=[resource.name])
    _add_submission(router, resource)
    _add_batch(router, resource)
    return router


def _add_submission(router: APIRouter, resource: Resource) -> None:
    models = resource.models

    @router.post(
        resource.collection,
        name=f"submit_{resource.word}",
        description=f"Submit a {resource.what}: its manifest, as its own system takes it; or several, all or none.",
        status_code=201,
        response_model=None,
        responses={
            201: {"model": models.view | models.page, "description": "It is stored durably, or all of several are."},
            200: {
                "model": models.view | models.page | models.dry_run | models.dry_run_list,
                "description": "A repeated request with its first answer, or a dry run.",
            },
        },
    )
    async def submit_one_or_several(
        namespace: Namespace,
        caller: CallerDep,
        idempotency_key: IdempotencyKeyHeader = None,
        dry_run: Annotated[
            Literal["All"] | None,
            Query(alias="dryRun", description="Validate and show what would be made; store nothing."),
        ] = None,
    ) -> Response:
        if dry_run:
            return await _try(resource, caller, namespace)
        return await submit(resource, caller, namespace, idempotency_key)


async def _try(resource: Resource, caller: Caller, namespace: str) -> Response:
    """What a submission would store; nothing is stored."""
    caller.require(Verb.SUBMIT, namespace)
    asked = await read_submission(caller.request)
    submitter, sampler = resource.submitter(caller.services), Sampler()
    if isinstance(asked, dict):
        prepared = await submitter.prepare(asked, namespace, administers=caller.administers)
        body = await resource.dry_run_bytes(prepared, sampler)
    else:
        several = await submitter.prepare_together(asked, namespace, administers=caller.administers)
        body = b'{"items":[' + b",".join([await resource.dry_run_bytes(one, sampler) for one in several]) + b"]}"
    return Response(body, media_type=JSON, headers=_NOT_STORED)


async def submit(resource: Resource, caller: Caller, namespace: str, idempotency_key: str | None) -> Response:
    """Answers once the object is durable, or all of several are."""
    caller.require(Verb.SUBMIT, namespace)
    asked = await read_submission(caller.request)
    key = await request_key(caller, idempotency_key, asked)
    submitter, actor, administers = resource.submitter(caller.services), caller.name, caller.administers
    render = partial(resource.new_bytes, caller.services)
    if isinstance(asked, dict):
        created = await submitter.submit(
            asked,
            namespace,
            actor=actor,
            key=key,
            render=render,
            administers=administers,
        )
        return created_response(resource, created, namespace)
    together = await submitter.submit_together(
        asked,
        namespace,
        actor=actor,
        key=key,
        render=render,
        join=joined_bytes,
        administers=administers,
    )
    return _answer(together, {})


def _add_batch(router: APIRouter, resource: Resource) -> None:
    @router.post(
        f"{resource.collection}/batch",
        name=resource.batch_operation,
        response_model=None,
        responses={200: {"model": resource.models.batch, "description": "What became of each, in their order."}},
    )
    async def submit_batch(
        request: Request, namespace: Namespace, caller: CallerDep, idempotency_key: IdempotencyKeyHeader = None
    ) -> Response:
        """Submit several, each stored or refused by itself; a repetition with the same key repeats each answer."""
        caller.require(Verb.SUBMIT, namespace)
        asked = await read_submission(request)
        documents = [asked] if isinstance(asked, dict) else asked
        tasks: list[asyncio.Task[bytes]] = []
        async with TaskGroup() as group:  # together they share a commit
            for place, document in enumerate(documents):
                key = await _key_of_item(caller, idempotency_key, document, place)
                tasks.append(group.create_task(_one_of_batch(resource, caller, namespace, document, key)))
                await asyncio.sleep(0)  # each item is planned in a turn of the event loop of its own
        body = b'{"items":[' + b",".join(task.result() for task in tasks) + b"]}"
        return Response(body, media_type=JSON, headers=_NOT_STORED)


async def _key_of_item(caller: Caller, key: str | None, document: Manifest, place: int) -> RequestKey | None:
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
            render=partial(resource.new_bytes, caller.services),
            administers=caller.administers,
        )
    except DomainError as error:
        refusal = problem_of(error)
        return b'{"status":%d,"object":null,"problem":%b}' % (refusal.status_code, bytes(refusal.body))
    return b'{"status":%d,"object":%b,"problem":null}' % (200 if created.replayed else 201, created.body)


async def request_key(caller: Caller, key: str | None, body: object) -> RequestKey | None:
    """Whose key it is, for which request."""
    if key is None:
        return None
    request = caller.request
    scope = f"{caller.principal.id} {request.method} {request.url.path}"
    print_of_body = await offloaded_if_large(body, fingerprint, body, dict(request.query_params))
    return RequestKey(scope=scope, key=key, fingerprint=print_of_body)


def created_response(resource: Resource, created: Created, namespace: str) -> Response:
    location = f"{resource.collection.format(namespace=namespace)}/{created.name}"
    return _answer(created, {"Location": location, "ETag": whole_tag(created.uid, created.version)})


def _answer(created: Created | CreatedTogether, headers: dict[str, str]) -> Response:
    headers = headers | _NOT_STORED | ({"Idempotency-Replayed": "true"} if created.replayed else {})
    return Response(created.body, status_code=200 if created.replayed else 201, headers=headers, media_type=JSON)
