"""Builds the ASGI application: routes, layers and error handlers around given services."""

from collections.abc import Awaitable, Iterator
from functools import cache
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override

from app.api.answers import errors
from app.api.answers.responses import JSON
from app.api.document.openapi import DocumentedApp, tags
from app.api.http_settings import HttpSettings
from app.api.layers.browsers import BrowserGuard
from app.api.layers.compression import Compressor
from app.api.layers.protection import ProtectionLayer
from app.api.layers.representation import RepresentationLayer
from app.api.layers.requests import RequestLayer
from app.api.metrics import HttpMetrics
from app.api.pages.start import add_start_page
from app.api.requests.dependencies import Api
from app.api.resources.jobs import JOBS_RESOURCE
from app.api.resources.resource import Resource
from app.api.resources.samples import SampleResource
from app.api.routers import FirstRoutes, ResolvedRoute
from app.api.routes import autoscaler, dependents, di_server, oidc, queues, system, usage
from app.api.routes.jobs import actions, details, logs
from app.api.routes.objects import counting, edits, listing, reading, redaction, submission, watch
from app.api.shared.broadcast import Broadcast
from app.api.shared.job_views import JobViewCache
from app.api.shared.polls import SharedPolls
from app.base.offload import offload
from app.base.version import VERSION
from app.domain.kinds.registry import SAMPLE_KINDS
from app.domain.kinds.sample_kind import SampleKind
from app.services.gateway import Services

OPENAPI_PATH: Final = "/openapi.json"


def resources() -> list[Resource]:
    """Every resource of the API."""
    return [JOBS_RESOURCE, *(_sample_resource(kind) for kind in SAMPLE_KINDS.values())]


@cache
def _sample_resource(kind: SampleKind) -> SampleResource:
    return SampleResource(kind)


def _routers() -> Iterator[APIRouter]:
    for resource in resources():
        yield from _routers_of(resource)
    yield from _other_routers()


# Applications share the routes: they hold no state of an application, and FastAPI needs longer to build them than for
# the rest of an application. `include_router` would build each of them again for each application. `serve --workers`
# builds them before it forks.
@cache
def _routers_of(resource: Resource) -> tuple[APIRouter, ...]:
    return (
        listing.router_of(resource),
        counting.router_of(resource),
        submission.router_of(resource),
        edits.router_of(resource),
        watch.router_of(resource),
        reading.router_of(resource),
        redaction.router_of(resource),
    )


@cache
def _other_routers() -> tuple[APIRouter, ...]:
    return (
        actions.router,
        details.router(),
        logs.router(),
        dependents.router(),
        autoscaler.router,
        queues.router,
        usage.router,
        oidc.router,
        di_server.router,
    )


class Application(DocumentedApp):
    """The application without the layers that Starlette and FastAPI add, because `RequestLayer` answers errors.

    It is called without the coroutines of theirs, too: their root path, lifespan and telemetry are not used.
    """

    @override
    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:  # type: ignore[override]
        scope["app"] = self
        if self.middleware_stack is None:
            self.middleware_stack = self.build_middleware_stack()
        return self.middleware_stack(scope, receive, send)

    @override
    def build_middleware_stack(self) -> ASGIApp:
        layer: Any = super().build_middleware_stack()
        while not isinstance(layer, RequestLayer):
            layer = layer.app
        return layer


def create_app(
    services: Services | None = None,
    settings: HttpSettings | None = None,
    *,
    serves_jobs: bool = True,
    metrics: HttpMetrics | None = None,
) -> Application:
    """Return the application. Without services, it serves only its OpenAPI document.

    The caller runs `services.run()` in its TaskGroup, beside the server. A process with the role controller passes
    `serves_jobs=False` and serves only health and metrics.
    """
    settings = settings or HttpSettings()
    app = Application(
        resources(),
        title="jobgate",
        version=VERSION,
        openapi_url=None,  # served below
        docs_url=None,
        redoc_url=None,
        openapi_tags=tags(resources()),
        redirect_slashes=False,
    )
    app.state.metrics = metrics or HttpMetrics()
    errors.install(app)
    if serves_jobs:
        for router in _routers():
            app.router.routes.extend(router.routes)
        app.add_middleware(FirstRoutes, routes=[each for each in app.routes if isinstance(each, ResolvedRoute)])
    app.router.routes.extend(
        route for route in system.router.routes if settings.serves_metrics or route is not system.METRICS_ROUTE
    )
    app.add_route(OPENAPI_PATH, _openapi_document, methods=["GET"], include_in_schema=False)
    add_start_page(app, OPENAPI_PATH, {resource.name: resource.all_path for resource in resources()})
    if services is not None:
        app.state.api = Api(
            services=services,
            job_views=JobViewCache(services),
            broadcast=Broadcast(services),
            polls=SharedPolls(services.watcher, services.clock),
        )
    _wrap(app, settings)
    return app


async def _openapi_document(request: Request) -> Response:
    app: Application = request.app
    body = await offload(app.document_bytes)
    return Response(body, media_type=JSON, headers={"Vary": "Accept-Encoding"})


def _wrap(app: FastAPI, settings: HttpSettings) -> None:
    """Add the layers from the inside out: the last one added is the first to see a request."""
    app.add_middleware(
        ProtectionLayer,
        guard=BrowserGuard(settings.hosts, settings.cors_origins) if settings.hosts else None,
        max_bytes=settings.max_body_bytes,
        max_bytes_at_once=settings.max_bodies_bytes,
    )
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=[
                "Authorization",
                "Content-Type",
                "Idempotency-Key",
                "If-Match",
                "If-None-Match",
                "Prefer",
                "Last-Event-ID",
                "X-Request-Id",
            ],
            expose_headers=[
                "ETag",
                "Location",
                "Idempotency-Replayed",
                "Jobgate-Observed-At",
                "Jobgate-Stale",
                "Jobgate-Feed-Position",
                "Jobgate-Log-Attempt",
                "Jobgate-Log-Container",
                "Jobgate-Log-Left-Out",
                "Jobgate-Log-Source",
                "Jobgate-Log-Truncated",
                "Jobgate-Log-Offset",
                "Jobgate-Log-Size",
                "Jobgate-Log-Run",
                "Jobgate-Log-Missing",
                "Jobgate-Newest-Attempt",
                "Retry-After",
                "X-Request-Id",
            ],
        )
    compressor = Compressor(settings.gzip_min_bytes) if settings.gzip_min_bytes else None
    app.add_middleware(RepresentationLayer, compressor=compressor)
    app.add_middleware(
        RequestLayer,
        metrics=app.state.metrics,
        access_log=settings.access_log,
        proxies=settings.proxies,
        enveloped=di_server.BASE,
    )
