"""Routes of the gateway itself: accepted kinds, the caller, the state of the installation, health and metrics."""

from functools import cache
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request, Response
from fastapi.responses import PlainTextResponse

from app.api.answers.responses import JSON, PRIVATE, json_bytes
from app.api.metrics import HttpMetrics
from app.api.requests.dependencies import CallerDep, api_of, caller
from app.api.requests.parameters import refuse_unknown_query
from app.api.routers import new_router
from app.api.views.base import View
from app.api.views.system import CallerView, SystemView, caller_view, system_view
from app.domain.kinds.base import Kind
from app.domain.kinds.registry import all_kinds

router = new_router("system")
# These routes need no token, but refuse unknown parameters like all others, for example a misspelt `verbose`.
_WITHOUT_TOKEN: Final = [Depends(refuse_unknown_query)]


class KindView(View):
    """An accepted kind of manifest."""

    kind: str
    api_versions: list[str]
    """The accepted values of apiVersion, the canonical one first."""
    resource: str
    """The resource to which its manifests are posted, for example `jobs`."""
    mutable_fields: list[str]
    """JSON pointers to the fields of a manifest that PUT and PATCH may change."""
    supports_pause: bool
    json_schema: dict[str, Any]
    """JSON schema (draft 2020-12) of the manifest."""


class KindList(View):
    """The accepted kinds."""

    items: list[KindView]


@router.get("/api/v1/kinds", response_model=None, responses={200: {"model": KindList}}, dependencies=[Depends(caller)])
async def list_kinds() -> Response:
    """List the accepted kinds with the JSON schemas of their manifests."""
    return Response(_kinds(tuple(all_kinds().values())), media_type=JSON, headers=PRIVATE)


@cache
def _kinds(kinds: tuple[Kind, ...]) -> bytes:
    """Return the answer to all requests for the kinds, so that answers in progress share their bytes."""
    items = [
        KindView(
            kind=kind.name,
            api_versions=list(kind.api_versions),
            resource=kind.resource,
            mutable_fields=list(kind.mutable_fields),
            supports_pause=kind.supports_pause,
            json_schema=kind.json_schema(),
        )
        for kind in kinds
    ]
    return json_bytes(KindList(items=items))


@router.get("/api/v1/system", response_model=None, responses={200: {"model": SystemView}})
async def get_system(caller: CallerDep) -> Response:
    """Return the state of the installation. The status is 200 also if something is wrong."""
    services = caller.services
    view = system_view(await services.system.read(), services, with_messages=caller.administers)
    return Response(json_bytes(view), media_type=JSON, headers=PRIVATE)


@router.get("/api/v1/whoami", response_model=None, responses={200: {"model": CallerView}})
async def get_caller(caller: CallerDep) -> Response:
    """Return the caller of this request: the name, role and namespaces of its token."""
    view = caller_view(caller.principal, caller.services.namespaces)
    return Response(json_bytes(view), media_type=JSON, headers=PRIVATE)


@router.get("/livez", response_class=PlainTextResponse, dependencies=_WITHOUT_TOKEN)
async def livez() -> PlainTextResponse:
    """Report that the process answers requests (liveness probe)."""
    return PlainTextResponse("ok\n")


@router.get(
    "/readyz",
    response_class=PlainTextResponse,
    responses={503: {"description": "The process is not ready. The body lists the failed checks."}},
    dependencies=_WITHOUT_TOKEN,
)
async def readyz(
    request: Request, verbose: Annotated[str | None, Query(description="List all checks, not only failed ones.")] = None
) -> PlainTextResponse:
    """Report whether PostgreSQL accepts writes and the controller works (readiness probe).

    Lost contact with the cluster does not make the process unready: answers then have `Jobgate-Stale: true`.
    """
    checks = await api_of(request).services.readiness()
    ready = all(check.ok for check in checks)
    shown = checks if verbose is not None else [check for check in checks if not check.ok]
    lines = [f"[{'+' if check.ok else '-'}] {check.name} {check.detail}".rstrip() for check in shown]
    return PlainTextResponse("\n".join([*lines, "ok" if ready else "not ready", ""]), status_code=200 if ready else 503)


@router.get("/metrics", response_class=PlainTextResponse, dependencies=_WITHOUT_TOKEN)
async def metrics(request: Request) -> Response:
    """Return metrics in the exposition format of Prometheus."""
    http_metrics: HttpMetrics = request.app.state.metrics
    return await http_metrics.answer()


METRICS_ROUTE: Final = router.routes[-1]
"""The route that a gateway with a port for metrics does not have."""
