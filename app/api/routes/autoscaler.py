"""The autoscaler's last decisions, and a rehearsal of the next ones."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request, Response
from pydantic import Field

from app.api import paging
from app.api.autoscaler_views import AutoscalerPage, RehearsalView, page_view, rehearsal_view
from app.api.bodies import read_options
from app.api.dependencies import Caller, CallerDep
from app.api.parameters import PageSize, PageToken
from app.api.polling import JSON
from app.domain.dialects.spec_model import SpecModel
from app.domain.errors import Forbidden

router = APIRouter(tags=["autoscaler"])

_PAGE: Final = 10  # runs, each with a decision for every elastic job
_HEADERS: Final = {"Cache-Control": "private, no-cache"}
_QUESTION: Final = paging.question(["autoscaler"])


class RehearsalOptions(SpecModel):
    """The body of a dry run, which may be absent."""

    max_load: Annotated[float, Field(gt=0, le=1)] | None = None
    """In place of the controller's."""


def _answer(view: AutoscalerPage | RehearsalView) -> Response:
    return Response(view.model_dump_json(by_alias=True), media_type=JSON, headers=_HEADERS)


@router.get("/api/v1/autoscaler", response_model=None, responses={200: {"model": AutoscalerPage}})
async def get_autoscaler(caller: CallerDep, page_size: PageSize = None, page_token: PageToken = None) -> Response:
    """Its last runs, the newest first: what it saw and decided about the jobs that you may see."""
    place = paging.decode(page_token, paging.SequencePlace, _QUESTION) if page_token else None
    size = paging.page_size(page_size) if page_size else _PAGE
    runs = await caller.services.autoscaling.runs(before=place.seq if place else None, limit=size + 1)
    token = None
    if len(runs) > size:
        runs = runs[:size]
        token = paging.encode(paging.SequencePlace(question=_QUESTION, seq=runs[-1].id))
    return _answer(page_view(runs, caller.visible, token, with_capacity=_administers_all(caller)))


_REHEARSED: Final[dict[int | str, dict[str, Any]]] = {200: {"model": RehearsalView}}
_BODY: Final = {"required": False, "content": {JSON: {"schema": RehearsalOptions.model_json_schema()}}}


@router.post(
    "/api/v1/autoscaler/dry-run",
    response_model=None,
    responses=_REHEARSED,
    openapi_extra={"requestBody": _BODY},
)
async def rehearse_autoscaler(request: Request, caller: CallerDep) -> Response:
    """What it would do with the cluster and the jobs as it last saw them. Only an admin of all namespaces may ask."""
    if not _administers_all(caller):
        raise Forbidden("a dry run of the autoscaler needs a token of the role admin with access to all namespaces")
    options = await read_options(request, RehearsalOptions)
    return _answer(rehearsal_view(await caller.services.autoscaling.dry_run(options.max_load), caller.visible))


def _administers_all(caller: Caller) -> bool:
    """Whether the caller may see the capacity of the cluster, which the jobs of all namespaces share."""
    return caller.administers and caller.principal.namespaces is None
