"""Redaction: admins remove secrets from what is stored of an object."""

from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from app.api.answers.responses import JSON, NO_STORE, json_bytes
from app.api.requests import paging
from app.api.requests.bodies import read_options
from app.api.requests.dependencies import Caller, CallerDep
from app.api.requests.paging import MAX_TOKEN, RecordStart
from app.api.requests.parameters import NO_NUL
from app.api.resources.resource import Resource
from app.api.routers import new_router
from app.api.routes.objects.reading import Target, target_by_uid
from app.api.views.base import View
from app.db.redaction import START
from app.domain.errors import FieldError, Forbidden, InvalidManifest
from app.domain.kinds.base import JOBS
from app.domain.kinds.spec.model import SpecModel
from app.domain.redaction import EVERY_VARIABLE, SHORTEST, SecretSelection, is_needed
from app.telemetry.log_fields import note_job

_POINTER: Final = r"^(/[^\x00]*)$"


class RedactionOptions(SpecModel):
    """What to remove from everything that is stored of an object."""

    env: list[Annotated[str, Field(min_length=1, max_length=1024, pattern=NO_NUL)]] = Field(
        default_factory=list, max_length=100
    )
    """Names of environment variables whose values are removed; `*` stands for all. The value of a named variable is
    also removed wherever else it occurs, if it has at least 6 characters."""
    fields: list[Annotated[str, Field(max_length=2048, pattern=_POINTER)]] = Field(default_factory=list, max_length=100)
    """JSON pointers into the manifest, such as `/spec/replicaSpecs/0/template/spec/containers/0/args/1`. Every text at
    or below them is removed, as the value of a named variable."""
    texts: list[Annotated[str, Field(min_length=SHORTEST, max_length=16 * 1024, pattern=NO_NUL)]] = Field(
        default_factory=list, max_length=16
    )
    """Literal texts, which are removed wherever they occur: in the manifest, messages, logs and events."""
    page_token: str | None = Field(default=None, max_length=MAX_TOKEN)
    """The nextPageToken of the previous answer to the same request."""


class RedactionView(View):
    """What a redaction changed."""

    uid: UUID
    namespace: str
    name: str
    changed: int
    """The number of stored rows that changed. 0: there was nothing to remove."""
    in_cluster: bool
    """Whether objects of it may still be in the cluster, which have what was removed: delete it."""
    next_page_token: str | None
    """Null on the last page. Otherwise the same request continues with this token."""


def router_of(resource: Resource) -> APIRouter:
    router = new_router(resource.name)
    noun = resource.noun

    @router.post(
        f"{resource.uid_path}/redact",
        name=f"redact_{resource.operation_noun}",
        description=f"Remove secrets from what is stored of a {noun}: its manifest, also as it was posted, answers to "
        "repeated requests, its history, the messages, logs and events of its attempts. This needs a token with the "
        "role admin and access to all namespaces.",
        response_model=None,
        responses={200: {"model": RedactionView, "description": "Everything selected was removed, up to the token."}},
    )
    async def redact(
        request: Request, caller: CallerDep, target: Annotated[Target, Depends(target_by_uid(resource))]
    ) -> Response:
        _require_admin(caller)
        options = await read_options(request, RedactionOptions)
        selection = _selection(options)
        row = await target.row()
        query = paging.query_digest([row.uid, sorted(selection.env), selection.fields, selection.texts])
        start = START
        if options.page_token:
            begin = paging.decode(options.page_token, RecordStart, query)
            start = (begin.table, begin.key)
        if resource.name == JOBS:
            note_job(str(row.uid))
        done = await resource.redactor(caller.services).redact(row, selection, caller.actor, start)
        view = RedactionView(
            uid=row.uid,
            namespace=row.namespace,
            name=row.name,
            changed=done.changed,
            in_cluster=done.in_cluster,
            next_page_token=done.rest and paging.encode(RecordStart(query=query, table=done.rest[0], key=done.rest[1])),
        )
        return Response(json_bytes(view), media_type=JSON, headers=NO_STORE)

    return router


def _require_admin(caller: Caller) -> None:
    if not caller.administers:
        raise Forbidden("a redaction needs a token of the role admin with access to all namespaces")


def _selection(options: RedactionOptions) -> SecretSelection:
    """Return what the options select.

    Raises:
        InvalidManifest: they select nothing, or a text that jobgate needs.
    """
    chosen = SecretSelection(env=frozenset(options.env), fields=tuple(options.fields), texts=tuple(options.texts))
    errors = [
        FieldError(
            pointer=f"/texts/{index}",
            code="ReservedWord",
            detail="the text is part of a word of jobgate itself",
            accepted="a longer text, or the pointer to a field in `fields`",
        )
        for index, text in enumerate(chosen.texts)
        if is_needed(text)
    ]
    if chosen == SecretSelection():
        accepted = f"names in `env`, such as PASSWORD or {EVERY_VARIABLE}, pointers in `fields`, or `texts`"
        errors = [FieldError(pointer="", code="Required", detail="nothing is selected", accepted=accepted)]
    if errors:
        raise InvalidManifest("the redaction is not valid", errors=errors)
    return chosen
