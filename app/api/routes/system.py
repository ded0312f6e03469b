"""What is not about one job: the kinds that are spoken, health, and metrics."""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import PlainTextResponse

from app.api.dependencies import api_of, caller
from app.api.metrics import HttpMetrics
from app.api.parameters import refuse_unknown_query
from app.api.polling import JSON
from app.api.views import KindList, KindView
from app.domain.kinds.registry import registered

router = APIRouter(tags=["system"])
# Without a token, and as strict about parameters as all others: `?verbos` is not to be taken for a short answer.
_OPEN: Final = [Depends(refuse_unknown_query)]


@router.get("/api/v1/kinds", response_model=None, responses={200: {"model": KindList}}, dependencies=[Depends(caller)])
async def list_kinds() -> Response:
    """The kinds that are spoken here, with the JSON schemas of their manifests."""
    items = [
        KindView(
            kind=kind.kind,
            api_versions=list(kind.api_versions),
            resource=kind.resource,
            mutable_fields=list(kind.mutable_fields),
            supports_pause=kind.supports_pause,
            json_schema=kind.json_schema(),
        )
        for kind in registered().values()
    ]
    return Response(
        KindList(items=items).model_dump_json(by_alias=True),
        media_type=JSON,
        headers={"Cache-Control": "private, no-cache"},
    )


@router.get("/livez", response_class=PlainTextResponse, dependencies=_OPEN)
async def livez() -> PlainTextResponse:
    """Whether the process answers at all."""
    return PlainTextResponse("ok\n")


@router.get(
    "/readyz",
    response_class=PlainTextResponse,
    responses={503: {"description": "Not ready; the body says why."}},
    dependencies=_OPEN,
)
async def readyz(
    request: Request, verbose: Annotated[str | None, Query(description="Show every check, not only failures.")] = None
) -> PlainTextResponse:
    """Whether Postgres accepts writes and the controller is in order. A silent cluster makes it stale, not unready."""
    checks = await api_of(request).services.readiness()
    ready = all(check.ok for check in checks)
    shown = checks if verbose is not None else [check for check in checks if not check.ok]
    lines = [f"[{'+' if check.ok else '-'}] {check.name} {check.detail}".rstrip() for check in shown]
    return PlainTextResponse("\n".join([*lines, "ok" if ready else "not ready", ""]), status_code=200 if ready else 503)


@router.get("/metrics", response_class=PlainTextResponse, dependencies=_OPEN)
async def metrics(request: Request) -> Response:
    """Prometheus' exposition format."""
    held: HttpMetrics = request.app.state.metrics
    return held.exposition()
