"""The autoscaler's recent decisions, and a dry run of its next ones."""

from typing import Annotated, Any, Final

from fastapi import Request, Response
from pydantic import Field

from app.api.answers.responses import JSON, PRIVATE, json_bytes
from app.api.requests.bodies import read_options
from app.api.requests.dependencies import CallerDep
from app.api.requests.paging import SequencePage
from app.api.requests.parameters import PageSize, PageToken
from app.api.routers import new_router
from app.api.views.autoscaler import AutoscalerPage, RehearsalView, page_view, rehearsal_view
from app.domain.errors import Forbidden
from app.domain.kinds.spec.model import SpecModel

router = new_router("autoscaler")

_PAGE: Final = 10  # runs; each has a decision for every elastic job


class RehearsalOptions(SpecModel):
    """The body of a dry run. The body may be absent."""

    max_load: Annotated[float, Field(ge=0.01, le=1)] | None = None
    """Share of the cluster's resources that jobs may request. By default the controller's setting."""


def _response(view: AutoscalerPage | RehearsalView) -> Response:
    return Response(json_bytes(view), media_type=JSON, headers=PRIVATE)


@router.get("/api/v1/autoscaler", response_model=None, responses={200: {"model": AutoscalerPage}})
async def get_autoscaler(caller: CallerDep, page_size: PageSize = None, page_token: PageToken = None) -> Response:
    """List the autoscaler's last runs, newest first: its observations and its decisions about jobs that you may see."""
    page = SequencePage.of(["autoscaler"], page_size, page_token, default=_PAGE)
    # Newest first: a page begins below the number of its token, and ids start from 1.
    runs = await caller.services.autoscaling.runs(before=page.start or None, limit=page.limit)
    shown, token = page.cut(runs, lambda run: run.id)
    return _response(page_view(shown, caller.visible, token, administers=caller.administers))


_REHEARSED: Final[dict[int | str, dict[str, Any]]] = {200: {"model": RehearsalView}}
_BODY: Final = {"required": False, "content": {JSON: {"schema": RehearsalOptions.model_json_schema()}}}


@router.post(
    "/api/v1/autoscaler/dry-run",
    response_model=None,
    responses=_REHEARSED,
    openapi_extra={"requestBody": _BODY},
)
async def rehearse_autoscaler(request: Request, caller: CallerDep) -> Response:
    """Return the decisions that the autoscaler would make for the last observed cluster and jobs.

    This needs a token with the role admin and access to all namespaces.
    """
    if not caller.administers:
        raise Forbidden("a dry run of the autoscaler needs a token of the role admin with access to all namespaces")
    options = await read_options(request, RehearsalOptions)
    return _response(rehearsal_view(await caller.services.autoscaling.dry_run(options.max_load), caller.visible))
