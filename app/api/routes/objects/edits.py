"""Edits and deletions of objects of any resource."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Query, Request, Response

from app.api.answers.responses import polled_response
from app.api.requests.bodies import read_manifest, read_merge_patch
from app.api.requests.dependencies import Caller, CallerDep
from app.api.requests.parameters import NO_NUL, IfMatch, Name, Namespace
from app.api.requests.read_back import is_view, manifest_of
from app.api.resources.jobs import JOBS_RESOURCE
from app.api.resources.resource import Resource
from app.api.routers import new_router
from app.domain.errors import moved_pointers
from app.services.access import Verb
from app.services.editing.objects import Editor, EditResult
from app.telemetry.log_fields import note_job

# Reads the body of an edit, a manifest or a patch, and returns it with the pointer to its metadata.
_ReadBody: TypeAlias = Callable[[Request], Awaitable[tuple[dict[str, Any], str]]]
# Returns the method of the editor that applies the body.
_Apply: TypeAlias = Callable[[Editor[Any, Any]], Callable[..., Awaitable[EditResult[Any]]]]


@dataclass(frozen=True, slots=True)
class EditCall:
    """A request to change one object, by a caller who may change objects of its namespace."""

    request: Request
    caller: Caller
    namespace: str
    name: str
    if_match: str | None


async def _edit(
    request: Request, namespace: Namespace, name: Name, caller: CallerDep, if_match: IfMatch = None
) -> EditCall:
    caller.require(Verb.CONTROL, namespace)
    return EditCall(request, caller, namespace, name, if_match)


EditDep = Annotated[EditCall, Depends(_edit)]


def router_of(resource: Resource) -> APIRouter:
    router = new_router(resource.name)
    _add_edit(router, resource, "PUT", "replace", "Replace", _replacement(resource), lambda editor: editor.replace)
    merge = "Apply a JSON merge patch (RFC 7396) to"
    _add_edit(router, resource, "PATCH", "patch", merge, _read_patch, lambda editor: editor.merge)
    _add_deletion(router, resource)
    return router


def _replacement(resource: Resource) -> _ReadBody:
    """Return the function that reads the body of a PUT: a manifest, or what GET returned, with edits."""
    fields = [str(field.alias) for field in resource.models.view.model_fields.values()]

    async def read(request: Request) -> tuple[dict[str, Any], str]:
        document = await read_manifest(request)
        return (manifest_of(document, fields), "") if is_view(document) else (document, "/metadata")

    return read


async def _read_patch(request: Request) -> tuple[dict[str, Any], str]:
    return await read_merge_patch(request), "/metadata"


def _add_edit(
    router: APIRouter, resource: Resource, method: str, operation: str, effect: str, read: _ReadBody, apply: _Apply
) -> None:
    @router.api_route(
        resource.object_path,
        methods=[method],
        name=f"{operation}_{resource.operation_noun}",
        description=f"{effect} the manifest of a {resource.noun}. Only the mutable fields of its kind may change: "
        "see `GET /api/v1/kinds`.",
        response_model=None,
        responses=changed_responses(resource, "The edit is carried out, or it changes nothing."),
    )
    async def edit_manifest(edit: EditDep) -> Response:
        caller = edit.caller
        document, metadata = await read(edit.request)
        with moved_pointers("/metadata", metadata):
            changed = await apply(resource.editor(caller.services))(
                edit.namespace,
                edit.name,
                document,
                actor=caller.actor,
                precondition=resource.precondition(edit.if_match),
                administers=caller.administers,
            )
        return await changed_response(resource, caller, changed)


def _add_deletion(router: APIRouter, resource: Resource) -> None:
    @router.delete(
        resource.object_path,
        name=f"delete_{resource.operation_noun}",
        description=f"Delete a {resource.noun}: end it if it is live, and remove all its objects from the cluster. "
        "Its record and history stay readable, and `deletedAt` is set.",
        response_model=None,
        responses=changed_responses(resource, "The deletion is complete."),
    )
    async def delete(
        edit: EditDep,
        reason: Annotated[str, Query(max_length=1024, pattern=NO_NUL, description="A reason for the history.")] = "",
    ) -> Response:
        changed = await resource.editor(edit.caller.services).delete(
            edit.namespace,
            edit.name,
            actor=edit.caller.actor,
            reason=reason,
            precondition=resource.precondition(edit.if_match),
        )
        return await changed_response(resource, edit.caller, changed)


def changed_responses(resource: Resource, complete: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses of an edit. `complete` is the description of status 200."""
    return {
        200: {"model": resource.models.view, "description": complete},
        202: {"model": resource.models.view, "description": "The change is stored. The controller carries it out."},
    }


async def changed_response(resource: Resource, caller: Caller, changed: EditResult[Any]) -> Response:
    """Answer an edit with the object: 202 while the controller has not carried the change out, else 200."""
    if resource is JOBS_RESOURCE:
        note_job(str(changed.row.uid))
    rendered = await resource.render(caller.api, changed.row)
    response = polled_response(rendered.body, rendered.tag, await caller.services.freshness.read())
    response.status_code = 202 if changed.pending else 200
    return response
