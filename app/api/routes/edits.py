"""Editing and deleting objects of any resource."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.api.bodies import read_manifest, read_merge_patch
from app.api.dependencies import Caller, CallerDep
from app.api.parameters import IfMatch, Name, Namespace
from app.api.polling import answer
from app.api.resources import Resource
from app.services.access import Verb
from app.services.editing import Changed


def router_of(resource: Resource) -> APIRouter:
    router = APIRouter(tags=[resource.name])
    _add_edits(router, resource)
    _add_deletion(router, resource)
    return router


def _add_edits(router: APIRouter, resource: Resource) -> None:
    what, responses = f"the manifest of a {resource.what}", changed_responses(resource, "Nothing is left to do.")

    @router.put(
        resource.one,
        name=f"replace_{resource.word}",
        description=f"Replace {what}, within what its kind lets be changed.",
        response_model=None,
        responses=responses,
    )
    async def replace(
        request: Request, namespace: Namespace, name: Name, caller: CallerDep, if_match: IfMatch = None
    ) -> Response:
        caller.require(Verb.CONTROL, namespace)
        document = await read_manifest(request)
        changed = await resource.editor(caller.services).replace(
            namespace,
            name,
            document,
            actor=caller.name,
            precondition=resource.precondition(if_match),
            administers=caller.administers,
        )
        return await changed_response(resource, caller, changed)

    @router.patch(
        resource.one,
        name=f"patch_{resource.word}",
        description=f"Merge into {what} (RFC 7396), within what its kind lets be changed.",
        response_model=None,
        responses=responses,
    )
    async def patch(
        request: Request, namespace: Namespace, name: Name, caller: CallerDep, if_match: IfMatch = None
    ) -> Response:
        caller.require(Verb.CONTROL, namespace)
        merged = await read_merge_patch(request)
        changed = await resource.editor(caller.services).merge(
            namespace,
            name,
            merged,
            actor=caller.name,
            precondition=resource.precondition(if_match),
            administers=caller.administers,
        )
        return await changed_response(resource, caller, changed)


def _add_deletion(router: APIRouter, resource: Resource) -> None:
    @router.delete(
        resource.one,
        name=f"delete_{resource.word}",
        response_model=None,
        responses=changed_responses(resource, "Nothing is left to do."),
    )
    async def delete(
        namespace: Namespace,
        name: Name,
        caller: CallerDep,
        if_match: IfMatch = None,
        reason: Annotated[str, Query(max_length=1024, pattern=r"^[^\x00]*$", description="For the history.")] = "",
    ) -> Response:
        """End it if it lives and remove all its objects; its record and history stay, and deletedAt is set."""
        caller.require(Verb.CONTROL, namespace)
        changed = await resource.editor(caller.services).delete(
            namespace, name, actor=caller.name, reason=reason, precondition=resource.precondition(if_match)
        )
        return await changed_response(resource, caller, changed)


def changed_responses(resource: Resource, unchanged: str) -> dict[int | str, dict[str, Any]]:
    """The documentation of the answers to an edit; `unchanged` describes 200."""
    return {
        200: {"model": resource.models.view, "description": unchanged},
        202: {"model": resource.models.view, "description": "Stored; the cluster has yet to carry it out."},
    }


async def changed_response(resource: Resource, caller: Caller, changed: Changed[Any]) -> Response:
    rendered = await resource.render(caller.api, changed.row)
    response = answer(rendered.body, rendered.tag, await caller.services.freshness.read())
    response.status_code = 202 if changed.pending else 200
    return response
