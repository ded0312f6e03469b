"""Submitting SampleSets and SampleJobs, editing and deleting them."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from app.api.bodies import read_manifest, read_merge_patch
from app.api.conditional import check_if_match, job_tag
from app.api.dependencies import Caller, CallerDep
from app.api.parameters import IdempotencyKeyHeader, IfMatch, Namespace, SampleName
from app.api.polling import JSON, answer
from app.api.routes.jobs import request_key
from app.api.routes.samples_reading import company_of, shown_tag
from app.api.sample_kinds import SAMPLE_KINDS, SampleKind
from app.api.sample_rendering import sample_bytes, sample_view
from app.api.sample_views import SampleDryRunView
from app.db.samples import SampleRow
from app.domain.kinds import refuse_wrong_route
from app.services.access import Verb
from app.services.samples import SampleChanged, SamplePrecondition
from app.services.submitting import Created


def routers() -> list[APIRouter]:
    return [_router(kind) for kind in SAMPLE_KINDS]


def _router(kind: SampleKind) -> APIRouter:
    router = APIRouter(tags=[kind.resource])
    _add_submission(router, kind)
    _add_edits(router, kind)
    _add_deletion(router, kind)
    return router


def _add_submission(router: APIRouter, kind: SampleKind) -> None:
    repeated = "A repeated request with its first answer, or a dry run."

    @router.post(
        kind.collection,
        name=f"submit_{kind.word}",
        description=f"Submit a {kind.kind.kind}: its manifest, as its own system takes it.",
        status_code=201,
        response_model=None,
        responses={
            201: {"model": kind.view, "description": "It is stored durably."},
            200: {"model": kind.view | SampleDryRunView, "description": repeated},
        },
    )
    async def submit_sample(
        request: Request,
        namespace: Namespace,
        caller: CallerDep,
        idempotency_key: IdempotencyKeyHeader = None,
        dry_run: Annotated[
            Literal["All"] | None,
            Query(alias="dryRun", description="Validate and show what would be stored; store nothing."),
        ] = None,
    ) -> Response:
        caller.require(Verb.SUBMIT, namespace)
        document = await read_manifest(request)
        refuse_wrong_route(document, kind.resource, namespace)
        if dry_run:
            draft = await caller.services.samples.prepare(kind.kind, document, namespace)
            view = SampleDryRunView(dry_run=True, manifest=draft.manifest)
            return Response(view.model_dump_json(by_alias=True), media_type=JSON, headers={"Cache-Control": "no-store"})
        key = await request_key(caller, idempotency_key, document)
        created = await caller.services.samples.submit(
            kind.kind, document, namespace, actor=caller.name, key=key, render=sample_bytes
        )
        return _created_response(created, kind.collection.format(namespace=namespace))


def _add_edits(router: APIRouter, kind: SampleKind) -> None:
    what = f"{kind.kind.kind}'s manifest"

    @router.put(
        kind.one,
        name=f"replace_{kind.word}",
        description=f"Replace the {what}, within what can be changed of it.",
        response_model=None,
        responses=_changed(kind),
    )
    async def replace_sample(
        request: Request, namespace: Namespace, name: SampleName, caller: CallerDep, if_match: IfMatch = None
    ) -> Response:
        caller.require(Verb.CONTROL, namespace)
        document = await read_manifest(request)
        changed = await caller.services.samples.replace(
            kind.kind, namespace, name, document, actor=caller.name, precondition=_precondition(if_match)
        )
        return await _changed_response(caller, changed)

    @router.patch(
        kind.one,
        name=f"patch_{kind.word}",
        description=f"Merge into the {what} (RFC 7396), within what can be changed of it.",
        response_model=None,
        responses=_changed(kind),
    )
    async def patch_sample(
        request: Request, namespace: Namespace, name: SampleName, caller: CallerDep, if_match: IfMatch = None
    ) -> Response:
        caller.require(Verb.CONTROL, namespace)
        patch = await read_merge_patch(request)
        changed = await caller.services.samples.merge(
            kind.kind, namespace, name, patch, actor=caller.name, precondition=_precondition(if_match)
        )
        return await _changed_response(caller, changed)


def _add_deletion(router: APIRouter, kind: SampleKind) -> None:
    removed = "Remove all its objects; its data stays in the storage" if kind.kind.has_objects else "Forget it"

    @router.delete(
        kind.one,
        name=f"delete_{kind.word}",
        description=f"{removed}, and its history here.",
        response_model=None,
        responses=_changed(kind),
    )
    async def delete_sample(
        namespace: Namespace,
        name: SampleName,
        caller: CallerDep,
        if_match: IfMatch = None,
        reason: Annotated[str, Query(max_length=1024, pattern=r"^[^\x00]*$", description="For the history.")] = "",
    ) -> Response:
        caller.require(Verb.CONTROL, namespace)
        changed = await caller.services.samples.delete(
            kind.kind, namespace, name, actor=caller.name, reason=reason, precondition=_precondition(if_match)
        )
        return await _changed_response(caller, changed)


def _changed(kind: SampleKind) -> dict[int | str, dict[str, Any]]:
    return {
        200: {"model": kind.view, "description": "Nothing is left to do."},
        202: {"model": kind.view, "description": "Stored; the cluster has yet to carry it out."},
    }


def _precondition(if_match: str | None) -> SamplePrecondition:
    def check(row: SampleRow) -> None:
        check_if_match(if_match, job_tag(row.uid, row.version), row.kind)

    return check


def _created_response(created: Created, collection: str) -> Response:
    headers = {
        "Location": f"{collection}/{created.name}",
        "ETag": job_tag(created.uid, created.version),
        "Cache-Control": "no-store",
    }
    if created.replayed:
        headers["Idempotency-Replayed"] = "true"
    return Response(created.body, status_code=200 if created.replayed else 201, headers=headers, media_type=JSON)


async def _changed_response(caller: Caller, changed: SampleChanged) -> Response:
    row = changed.row
    company = await company_of(caller, row)
    body = sample_view(row, company).model_dump_json(by_alias=True).encode()
    response = answer(body, shown_tag(row, company), await caller.services.freshness.read())
    response.status_code = 202 if changed.pending else 200
    return response
