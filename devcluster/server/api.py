"""The API server: authenticate the caller, resolve the request, and answer it."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import msgspec
from aiohttp import web

from devcluster.errors import StatusError, success
from devcluster.formats import patches
from devcluster.formats.objects import Object, uid
from devcluster.registry import pod_actions
from devcluster.registry.deletion import DeleteOptions, parse_options
from devcluster.registry.operations import Registry, check_name
from devcluster.registry.store import Record
from devcluster.server import bodies, discovery, lists, queries, reviews, scale, tables, visibility, watches
from devcluster.server.addressing import RequestInfo, resolve
from devcluster.server.interception import ConnectionDroppedError, Extension, Interceptor
from devcluster.server.lists import Lister
from devcluster.server.openapi import V2_DOCUMENT, V2_MEDIA_TYPE, OpenApi
from devcluster.server.pod_logs import LogProxy
from devcluster.server.pod_proxy import PodPortProxy
from devcluster.server.tables import Tables
from devcluster.strategies import strategy_for

_logger = logging.getLogger(__name__)
_HEALTH = ("/healthz", "/readyz", "/livez")
# The limit of a real API server.
_MAX_BODY = 3 * 1024 * 1024
_INTERCEPTOR = web.RequestKey("interceptor", Interceptor)
_Handler = Callable[[web.Request, RequestInfo], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class ApiSettings:
    token: str
    bookmark_seconds: float


class ApiServer:
    """Serves the objects of a registry over HTTP, as an aiohttp application."""

    def __init__(
        self, registry: Registry, lister: Lister, settings: ApiSettings, extension: Extension | None = None
    ) -> None:
        self._registry = registry
        self._store = registry.store
        self._settings = settings
        self._lister = lister
        self._extension = extension
        self._openapi = OpenApi(registry.store.catalog)
        self._logs = LogProxy(registry)
        self._proxy = PodPortProxy(registry)
        self._verbs: dict[str, _Handler] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        app.on_cleanup.append(self._close)
        return app

    async def _close(self, _app: web.Application) -> None:
        await self._logs.close()
        await self._proxy.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._route(request)
        except StatusError as error:
            return _refuse(error)
        except web.HTTPRequestEntityTooLarge:
            return _refuse(StatusError(413, "RequestEntityTooLarge", f"limit is {_MAX_BODY}"))
        except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
            # A body of an unforeseen shape must not break the connection: the client gets an error.
            _logger.exception("%s %s", request.method, request.path)
            return _refuse(StatusError(500, "InternalError", f"Internal error occurred: {error!r}"))

    async def _route(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        # As on a real API server, health needs no token: a client that waits for the start may have none.
        if path in _HEALTH:
            return web.Response(text="ok")
        self._authenticate(request)
        if self._extension is not None and path.startswith(self._extension.prefix):
            code, body = self._extension.serve(request.method, path, await request.read())
            return _json(body, code)
        described = self._describe(request)
        if described is not None:
            return described
        review = reviews.find(request.method, path)
        if review is not None:
            given = bodies.decode(await request.read(), _content_type(request), review.kind)
            return _json(reviews.answer(review, given), 201)
        info = visibility.find(request.method, path)
        if info is None and not self._serves(path):
            return web.Response(status=404, text="404 page not found\n")
        if info is None:
            watch = queries.flag(request.query, "watch")
            info = resolve(self._store.catalog, request.method, request.rel_url.raw_path, watch=watch)
        interceptor = self._extension.intercept(info) if self._extension is not None else Interceptor()
        request[_INTERCEPTOR] = interceptor
        await interceptor.before()
        response = await self._answer(request, info, interceptor)
        # The write has happened, and the client cannot know it.
        if interceptor.drops_answer:
            _drop(request)
        return response

    def _describe(self, request: web.Request) -> web.Response | None:
        """Answer requests for discovery and OpenAPI documents."""
        if request.method != "GET":
            return None
        found = discovery.document(self._store.catalog, request.path)
        if found is not None:
            return _json(found)
        if request.path == "/openapi/v2":
            return web.Response(body=V2_DOCUMENT, content_type=V2_MEDIA_TYPE)
        document = self._openapi.document(request.path)
        return None if document is None else _raw(document)

    def _serves(self, path: str) -> bool:
        """Return whether the group and version exist. A real server answers with a plain 404 otherwise."""
        parts = path.strip("/").split("/")
        if parts[0] == "api":
            return len(parts) > 2 and parts[1] == "v1"
        return parts[0] == "apis" and len(parts) > 3 and f"{parts[1]}/{parts[2]}" in self._store.catalog.groups()

    def _authenticate(self, request: web.Request) -> None:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        # A comparison in constant time does not reveal the token.
        if not secrets.compare_digest(given.encode(), self._settings.token.encode()):
            raise StatusError(401, "Unauthorized", "Unauthorized")

    async def _answer(self, request: web.Request, info: RequestInfo, interceptor: Interceptor) -> web.StreamResponse:
        if info.verb == "watch":
            return await self._watch(request, info, interceptor)
        if info.address.subresource == visibility.SUBRESOURCE:
            return _json(visibility.summary(self._store, info.address))
        if info.address.subresource == "log":
            return await self._logs.serve(request, info.address)
        if info.target is not None:
            return await self._proxy.serve(request, info.address, info.target)
        if info.address.subresource in ("binding", "eviction"):
            return await self._act_on_pod(request, info)
        if info.address.subresource == "scale":
            return await self._scale(request, info)
        return await self._verbs[info.verb](request, info)

    async def _get(self, request: web.Request, info: RequestInfo) -> web.Response:
        record = self._registry.get(info.address)
        if not _wants_table(request):
            return _object(record)
        metadata = {"resourceVersion": record.object["metadata"]["resourceVersion"]}
        return _raw(Tables(info.address.resource, request.query).document(metadata, [record]))

    async def _list(self, request: web.Request, info: RequestInfo) -> web.Response:
        resource = info.address.resource
        page = self._lister.page(info.address, request.query)
        if _wants_table(request):
            return _raw(Tables(resource, request.query).document(page.metadata, page.items))
        return _raw(lists.document(resource, page))

    async def _create(self, request: web.Request, info: RequestInfo) -> web.Response:
        dry_run = queries.dry_run(request.query, "CreateOptions")
        body = await self._read(request, info)
        created = self._registry.create(info.address, body.object, dry_run=dry_run)
        warnings = [] if info.address.subresource else strategy_for(info.address.resource).warnings(created.object)
        return _object(created, 201, body.unknown, [*warnings, *request[_INTERCEPTOR].warnings])

    async def _update(self, request: web.Request, info: RequestInfo) -> web.Response:
        dry_run = queries.dry_run(request.query, "UpdateOptions")
        body = await self._read(request, info)
        address = info.address
        check_name(address, body.object)
        missing = self._store.get(address.resource, address.namespace, address.name) is None
        if missing and address.resource.create_on_update and not address.subresource:
            return _object(self._registry.create(address, body.object, dry_run=dry_run), 201, body.unknown)
        return _object(self._registry.update(address, lambda _: body.object, dry_run=dry_run), 200, body.unknown)

    async def _patch(self, request: web.Request, info: RequestInfo) -> web.Response:
        dry_run = queries.dry_run(request.query, "PatchOptions")
        resource = info.address.resource
        patches.check_type(request.content_type, resource.kind)
        # The media type of a patch names its format. The encoding is always JSON.
        patch = bodies.decode(await request.read(), "application/json", resource.kind)
        validation = request.query.get("fieldValidation", "Warn")
        unknown: list[str] = []

        def change(current: Object) -> Object:
            patched = patches.apply(request.content_type, current, patch, resource.kind)
            body = bodies.check_fields(patched, resource, validation)
            unknown.extend(body.unknown)
            return request[_INTERCEPTOR].admit(body.object)

        return _object(self._registry.update(info.address, change, dry_run=dry_run), 200, unknown)

    async def _delete(self, request: web.Request, info: RequestInfo) -> web.Response:
        options = await self._delete_options(request)
        record, gone = self._registry.delete(info.address, options)
        resource = info.address.resource
        # An object that a finalizer or a grace period keeps is answered as it is now.
        if not gone or resource.returns_deleted:
            return _object(record)
        details = {"name": record.name, "group": resource.group, "kind": resource.plural, "uid": uid(record.object)}
        return _json(success(details={key: value for key, value in details.items() if value}))

    async def _delete_collection(self, request: web.Request, info: RequestInfo) -> web.Response:
        options = await self._delete_options(request)
        selector = queries.selector(info.address, request.query)
        self._registry.delete_collection(info.address, selector, options)
        return await self._list(request, info)

    async def _delete_options(self, request: web.Request) -> DeleteOptions:
        raw = await request.read()
        body = bodies.decode(raw, _content_type(request), "DeleteOptions") if raw else None
        dry_run = queries.dry_run(request.query, "DeleteOptions")
        return parse_options(body, request.query, dry_run=dry_run)

    async def _read(self, request: web.Request, info: RequestInfo) -> bodies.Body:
        validation = request.query.get("fieldValidation", "Warn")
        body = bodies.decode_object(await request.read(), _content_type(request), info.address.resource, validation)
        return replace(body, object=request[_INTERCEPTOR].admit(body.object))

    async def _act_on_pod(self, request: web.Request, info: RequestInfo) -> web.Response:
        body = bodies.decode(await request.read(), _content_type(request), info.address.subresource.title())
        action = pod_actions.bind_from_body if info.address.subresource == "binding" else pod_actions.evict
        action(self._registry, info.address, body)
        return _json(success(201), 201)

    async def _scale(self, request: web.Request, info: RequestInfo) -> web.Response:
        record = self._registry.get(info.address)
        if info.verb != "get":
            dry_run = queries.dry_run(request.query, "UpdateOptions")
            media_type = "application/json" if info.verb == "patch" else _content_type(request)
            given = bodies.decode(await request.read(), media_type, "Scale")
            if info.verb == "patch":
                given = patches.apply(request.content_type, scale.render(record), given, "Scale")
            record = scale.write(self._registry, info.address, given, dry_run=dry_run)
        return _json(scale.render(record))

    async def _watch(self, request: web.Request, info: RequestInfo, interceptor: Interceptor) -> web.StreamResponse:
        wanted = watches.parse(info.address, request.query, tables=_wants_table(request))
        stream = watches.WatchStream(self._store, wanted, self._settings.bookmark_seconds)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            async for line in interceptor.watch_lines(stream.lines()):
                await response.write(line)
        except ConnectionDroppedError:
            _drop(request)
            return response
        await response.write_eof()
        return response


def _content_type(request: web.Request) -> str:
    """Return the media type of the request, or an empty string; aiohttp defaults to application/octet-stream."""
    return request.content_type if "Content-Type" in request.headers else ""


def _drop(request: web.Request) -> None:
    """Break the connection: what was written is flushed, and the answer stays incomplete."""
    if request.transport is not None:
        request.transport.close()


def _refuse(error: StatusError) -> web.Response:
    response = _json(error.body(), error.code)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def _wants_table(request: web.Request) -> bool:
    return tables.is_wanted(request.headers.get("Accept", ""))


def _raw(body: bytes, code: int = 200) -> web.Response:
    return web.Response(body=body, status=code, content_type="application/json")


def _json(body: object, code: int = 200) -> web.Response:
    return _raw(msgspec.json.encode(body), code)


def _object(
    record: Record, code: int = 200, unknown: list[str] | None = None, warnings: Sequence[str] = ()
) -> web.Response:
    response = _raw(record.full_body(), code)
    for text in [*(f'unknown field "{path}"' for path in unknown or ()), *warnings]:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        # 299 is HTTP's code of a warning that clients show to users.
        response.headers.add("Warning", f'299 - "{quoted}"')
    return response
