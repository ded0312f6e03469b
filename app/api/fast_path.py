"""A short way for the three requests that come by the thousand: reading a job, its status, and submitting.

    GET  …/jobs/{name}          ┐
    GET  …/jobs/{name}/status   ├─▶ the same functions that the documented routes call, without the framework's way
    POST …/jobs                 ┘   to them, which costs several times what they do

Whatever is unusual (a query, a name that is none) takes the long way, so there is one place for each refusal.
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
from app.api.jobs import JOBS_RESOURCE
from app.api.polling import Shown
from app.api.routes.reading import Located, poll
from app.api.routes.submission import submit
from app.domain.errors import DomainError
from app.services.access import Verb
from app.services.reading import Address

_PATH: Final = re.compile(
    r"/api/v1/namespaces/(?P<namespace>[a-z0-9][-a-z0-9]{0,62})/jobs(?:/(?P<name>[a-z0-9][-.a-z0-9]{0,252})(?P<status>/status)?)?"
)
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")

_Answer: TypeAlias = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class _Template:
    """What metrics call the route."""

    path: str


_JOB: Final = _Template(JOBS_RESOURCE.one)
_STATUS: Final = _Template(f"{JOBS_RESOURCE.one}/status")
_JOBS: Final = _Template(JOBS_RESOURCE.collection)


class HotPaths:
    """Answers those three; hands everything else on."""

    def __init__(self, app: ASGIApp, api: Api) -> None:
        self._app = app
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._way(scope) if scope["type"] == "http" else None
        if answer is None:
            await self._app(scope, receive, send)
            return
        try:
            response = await answer(Request(scope, receive))
        except DomainError as error:
            response = problem_of(error)
        await response(scope, receive, send)

    def _way(self, scope: Scope) -> _Answer | None:
        if scope["query_string"] or scope["method"] not in ("GET", "POST"):
            return None
        match = _PATH.fullmatch(scope["path"])
        if match is None or (match["name"] is None) == (scope["method"] == "GET"):
            return None
        namespace, name = match["namespace"], match["name"]
        if name is None:
            return self._submission(scope, namespace)
        scope["route"] = _STATUS if match["status"] else _JOB
        shown = Shown.STATUS if match["status"] else Shown.WHOLE

        async def read(request: Request) -> Response:
            caller = await self._caller(request)
            caller.require(Verb.READ, namespace)
            headers = request.headers
            wait = wait_seconds(headers.getlist("prefer"))
            where = Located(caller, JOBS_RESOURCE, Address(namespace=namespace, name=name))
            return await poll(where, shown, headers.get("if-none-match"), wait)

        return read

    def _submission(self, scope: Scope, namespace: str) -> _Answer | None:
        key = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"idempotency-key"), None)
        if key is not None and not _KEY.fullmatch(key):
            return None
        scope["route"] = _JOBS

        async def create(request: Request) -> Response:
            return await submit(JOBS_RESOURCE, await self._caller(request), namespace, key)

        return create

    async def _caller(self, request: Request) -> Caller:
        principal = await self._api.services.access.authenticate(request.headers.get("authorization"))
        return Caller(request, self._api, principal)
