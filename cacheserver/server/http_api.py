"""The HTTP API of the runtime server: uploads of options, files to read, and authentication by a token."""

import hmac
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.domain.cache.vocabulary import JobType
from cacheserver.options import decode
from cacheserver.server.job_queue import JobQueue
from cacheserver.server.store import NAME, FileStore, JobKey, SaveResult, options_folder, result_folder

FILENAME: Final = "filename"
# Not Authorization: the pod proxy of the API server removes that header when it forwards a request.
TOKEN_HEADER: Final = b"x-jobgate-token"
TERMINATE: Final = "terminate"
_STATUS_FILE: Final = ("cacheStatus", "cacheInfo.json")
_BODY_LIMIT: Final = 8 * 1024 * 1024  # bytes; options with very many paths have less
# Results change under the same URL, and options may contain keys.
_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

log = logging.getLogger(__name__)


class TokenMiddleware:
    """Answers 401 to requests without the token in the file.

    The file is read at every request, because Kubernetes replaces the content of a mounted Secret in place.
    """

    def __init__(self, app: ASGIApp, token_file: Path | None) -> None:
        self._app = app
        self._token_file = token_file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._token_file is None or self._is_authenticated(scope, self._token_file):
            await self._app(scope, receive, send)
            return
        await _text(401, "the set's token is needed")(scope, receive, send)

    @staticmethod
    def _is_authenticated(scope: Scope, token_file: Path) -> bool:
        given = [value for name, value in scope["headers"] if name == TOKEN_HEADER]
        try:
            wanted = token_file.read_bytes().strip()
        except OSError as error:
            log.error("the token file cannot be read: %s", error.strerror)  # noqa: TRY400 - a traceback adds nothing
            return False
        return bool(wanted) and len(given) == 1 and hmac.compare_digest(given[0].strip(), wanted)


def application(store: FileStore, queue: JobQueue, token_file: Path | None) -> ASGIApp:
    """Return the ASGI application. Without a token file, it accepts every client."""
    routes = [Route("/" + "/".join(_STATUS_FILE), _serve(lambda _: store.read(*_STATUS_FILE)), methods=["GET"])]
    for kind in JobType:
        routes.append(Route(f"/upload/{options_folder(kind)}", _upload(kind, store, queue), methods=["POST"]))
        routes += [
            Route(
                f"/{options_folder(kind)}/{{name}}", _serve(partial(store.read, options_folder(kind))), methods=["GET"]
            ),
            Route(f"/{result_folder(kind)}/{{name}}", _serve(partial(_result, kind, queue)), methods=["GET"]),
        ]
    return TokenMiddleware(Starlette(routes=routes), token_file)


Handler = Callable[[Request], Awaitable[Response]]


def _result(kind: JobType, queue: JobQueue, name: str) -> bytes | None:
    result = queue.result(JobKey(kind, name))
    return None if result is None else msgspec.json.encode(result)


def _serve(read: Callable[[str], bytes | None]) -> Handler:
    """Return a handler that answers with what `read` returns for the name in the path, if that is a valid one."""

    async def serve(request: Request) -> Response:
        name = request.path_params.get("name", "")
        body = read(name) if not name or NAME.fullmatch(name) else None
        if body is None:
            return _text(404, "there is no such file")
        return Response(body, media_type="application/json", headers=_HEADERS)

    return serve


def _upload(kind: JobType, store: FileStore, queue: JobQueue) -> Handler:
    async def upload(request: Request) -> Response:
        name = request.headers.get(FILENAME, "")
        if not NAME.fullmatch(name):
            return _text(
                400, f"the header {FILENAME} is needed: at most 128 letters, digits, dots, dashes and underscores"
            )
        body = await _body(request)
        if request.query_params.get(TERMINATE):
            try:
                await queue.terminate()
            except OSError as error:
                return _text(500, f"the end of queued jobs cannot be written: {error.strerror}")
        if name == TERMINATE:
            return Response(headers=_HEADERS)
        if body is None:
            return _text(400, f"the body cannot be read, or has more than {_BODY_LIMIT} bytes")
        try:
            decode(kind, body)
        except msgspec.DecodeError as error:
            return _text(400, f"the body is not what {options_folder(kind)} takes: {error}")
        return _accept(JobKey(kind, name), body, store, queue)

    return upload


def _accept(key: JobKey, body: bytes, store: FileStore, queue: JobQueue) -> Response:
    """Save the options, then queue the job, then answer: an accepted job survives a crash."""
    try:
        saved = store.save_options(key, body)
    except OSError as error:
        log.exception("%s %s cannot be saved", key.kind, key.name)
        return _text(500, f"the options cannot be saved: {error.strerror}")
    if saved is SaveResult.CONFLICT:
        return _text(409, "the name is taken by other options")
    if saved is SaveResult.NEW:
        queue.add(key)
    return Response(headers=_HEADERS)


async def _body(request: Request) -> bytes | None:
    """Return the body, or None if it is too long or the client disconnected."""
    chunks, size = [], 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > _BODY_LIMIT:
                return None
            chunks.append(chunk)
    except ClientDisconnect:
        return None
    return b"".join(chunks)


def _text(code: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", code, headers=_HEADERS)
