"""Serves the three most frequent requests without FastAPI's routing, which costs several times what they cost.

    GET  …/jobs/{name}          ┐
    GET  …/jobs/{name}/status   ├─▶ the functions that the documented routes call
    POST …/jobs                 ┘

`app.api.plain_polls` answers most polls before they come here: all but long polls, and those of a gateway that checks
origins or exports spans. Requests with a query, an unusual name or an invalid key take the documented route, which is
the only place for their errors.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from fastapi import Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.conditional import wait_seconds
from app.api.dependencies import Api, Caller
from app.api.errors import problem_of
from app.api.job_views import Representation
from app.api.jobs import JOBS_RESOURCE
from app.api.parameters import PollOptions
from app.api.routes.reading import Target, poll
from app.api.routes.submission import submit
from app.domain.errors import DomainError
from app.fairness.share import identify
from app.services.access import Verb
from app.services.reading import Address
from app.telemetry.log_fields import note_actor

# Only paths whose names are surely valid match. All other paths take the documented route.
JOB_PATH: Final = re.compile(
    r"/api/v1/namespaces/(?P<namespace>[a-z0-9][-a-z0-9]{0,62})/jobs(?:/(?P<name>[a-z0-9][-.a-z0-9]{0,252})(?P<status>/status)?)?"
)
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")

_Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class _RouteTemplate:
    """The route template that request metrics use as a label, in place of FastAPI's route."""

    path: str


JOB_ROUTE: Final = _RouteTemplate(JOBS_RESOURCE.object_path)
STATUS_ROUTE: Final = _RouteTemplate(f"{JOBS_RESOURCE.object_path}/status")
_JOBS: Final = _RouteTemplate(JOBS_RESOURCE.collection_path)


class FastPath:
    """Middleware that answers these three requests and passes all others to the application."""

    def __init__(self, app: ASGIApp, api: Api) -> None:
        self._app = app
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handler = self._handler(scope) if scope["type"] == "http" else None
        if handler is None:
            await self._app(scope, receive, send)
            return
        try:
            response = await handler(Request(scope, receive))
        except DomainError as error:
            response = problem_of(error)
        await response(scope, receive, send)

    def _handler(self, scope: Scope) -> _Handler | None:
        if scope["query_string"] or scope["method"] not in ("GET", "POST"):
            return None
        match = JOB_PATH.fullmatch(scope["path"])
        if match is None or (match["name"] is None) == (scope["method"] == "GET"):
            return None
        namespace, name = match["namespace"], match["name"]
        if name is None:
            return self._submission(scope, namespace)
        # Request metrics read the route from the scope.
        scope["route"] = STATUS_ROUTE if match["status"] else JOB_ROUTE
        representation = Representation.STATUS if match["status"] else Representation.WHOLE

        async def read(request: Request) -> Response:
            caller = await self._caller(request)
            caller.require(Verb.READ, namespace)
            headers = request.headers
            options = PollOptions(headers.get("if-none-match"), wait_seconds(headers.getlist("prefer")))
            target = Target(caller, JOBS_RESOURCE, Address(namespace=namespace, name=name))
            return await poll(target, representation, options)

        return read

    def _submission(self, scope: Scope, namespace: str) -> _Handler | None:
        key = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"idempotency-key"), None)
        if key is not None and not _KEY.fullmatch(key):
            return None
        scope["route"] = _JOBS

        async def create(request: Request) -> Response:
            return await submit(JOBS_RESOURCE, await self._caller(request), namespace, key)

        return create

    async def _caller(self, request: Request) -> Caller:
        principal = await self._api.services.access.authenticate(request.headers.get("authorization"))
        note_actor(principal.actor.name, principal.actor.id)
        identify(principal.id)
        return Caller(request, self._api, principal)
