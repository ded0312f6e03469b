"""What pods of a DIJob ask of DI-orchestrator's server, under its own path and in its own envelope.

A caller is a job: the token in its pods' environment opens this job and nothing else, and nobody else's token,
an admin's included, opens anything here.
"""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import Field

from app.api.bodies import JSON, fields_of, read_json
from app.api.dependencies import api_of
from app.api.envelope import succeeded
from app.api.errors import refuse_parameter
from app.api.parameters import check_namespace, refuse_unknown_query
from app.api.views import View
from app.db.jobs.rows import JobRow
from app.domain.dialects.spec_model import SpecModel
from app.domain.errors import InvalidManifest, NotFound, TooLarge
from app.domain.kubernetes import names
from app.services.di_server import DiServer

TAG: Final = "di-server"
BASE: Final = "/v2alpha1/"
MAX_BODY_BYTES: Final = 64 * 1024
_MAX_INT32: Final = 2**31 - 1


class DIServerErrorView(View):
    """An answer that is an error."""

    success: bool
    code: int
    """1."""
    message: str
    """What is wrong."""
    data: None


class DIServerDoneView(View):
    """An answer with nothing to tell but that it is done."""

    success: bool
    code: int
    """0."""
    message: str
    data: None


class DIServerReplicasView(View):
    success: bool
    code: int
    """0."""
    message: str
    data: list[str]
    """host:port of each replica at the index of its global rank, "" where there is none or it has no address yet."""


class DIServerProfilingsView(View):
    success: bool
    code: int
    """0."""
    message: str
    data: dict[str, Any]
    """The object that was posted last, empty before."""


class ReplicasRequest(SpecModel):
    """The body of both changes of size."""

    replicas: Annotated[int, Field(ge=1, le=_MAX_INT32)]
    """How many more, or fewer."""
    task: Annotated[str | None, Field(max_length=63)] = None
    """Of which task; without it the collector, or the only task that may change."""


def _errors(*codes: int | str) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": DIServerErrorView, "description": _DESCRIPTIONS[code]} for code in codes}


def _body(schema: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {JSON: {"schema": schema, "example": example}}}


_DESCRIPTIONS: Final = {
    400: "The job id or the body is not acceptable.",
    401: "No token, or not that of a job of this name, whether there is one or not.",
    404: "The job is not a DIJob, or its namespace is not served here.",
    409: "The job has ended, or its size cannot become that.",
    413: "The body is too large.",
    503: "The database does not answer; repeat it.",
    "default": "Any other error.",
}
_READS: Final = _errors(400, 401, 404, 503, "default")
_WRITES: Final = _errors(400, 401, 404, 409, 413, 503, "default")
_SECURITY: Final[dict[str, Any]] = {"security": [{"jobToken": []}]}
_RESIZING: Final = _SECURITY | {
    "requestBody": _body(ReplicasRequest.model_json_schema(), {"replicas": 1, "task": "collector"})
}
_PROFILING: Final = _SECURITY | {"requestBody": _body({"type": "object"}, {"collector": {"fps": 120.5}})}

router = APIRouter(prefix=f"{BASE}job/{{job_id}}", tags=[TAG], dependencies=[Depends(refuse_unknown_query)])


async def _job(
    request: Request,
    job_id: Annotated[str, Path(description="`<namespace>.<name>` of the DIJob.", max_length=127)],
) -> JobRow:
    """The job that is asked for, which is also the caller.

    Raises:
        InvalidParameter, Unauthenticated, NotFound.
    """
    services = api_of(request).services
    namespace, _, name = job_id.partition(".")
    if names.dns_label(name):  # a DIJob's Service is named after it, so that its name has no dot
        detail = "must be in namespace.name format"
        raise refuse_parameter("path", "job_id", "InvalidName", detail, "<namespace>.<name>")
    check_namespace(namespace)
    job = await services.di_server.identify(namespace, name, request.headers.get("authorization"))
    if namespace not in services.namespaces:
        raise NotFound("this namespace is not served here")
    return job


async def _server(request: Request) -> DiServer:
    return api_of(request).services.di_server


JobDep = Annotated[JobRow, Depends(_job)]
ServerDep = Annotated[DiServer, Depends(_server)]


@router.get(
    "/replicas",
    response_model=None,
    responses={200: {"model": DIServerReplicasView}, **_READS},
    openapi_extra=_SECURITY,
)
async def get_di_job_replicas(job: JobDep, server: ServerDep) -> Response:
    """Where the job's replicas are now."""
    return _answer("successfully get replicas", await server.addresses(job))


@router.post(
    "/replicas", response_model=None, responses={200: {"model": DIServerDoneView}, **_WRITES}, openapi_extra=_RESIZING
)
async def add_di_job_replicas(request: Request, job: JobDep, server: ServerDep) -> Response:
    """Grow the job; the cluster has yet to carry it out."""
    asked = await _read_replicas(request)
    await server.resize(job, asked.replicas, asked.task)
    return _answer("successfully add replicas")


@router.delete(
    "/replicas", response_model=None, responses={200: {"model": DIServerDoneView}, **_WRITES}, openapi_extra=_RESIZING
)
async def delete_di_job_replicas(request: Request, job: JobDep, server: ServerDep) -> Response:
    """Shrink the job by its highest ranks; the cluster has yet to carry it out."""
    asked = await _read_replicas(request)
    await server.resize(job, -asked.replicas, asked.task)
    return _answer("successfully delete replicas")


@router.get(
    "/profilings",
    response_model=None,
    responses={200: {"model": DIServerProfilingsView}, **_READS},
    openapi_extra=_SECURITY,
)
async def get_di_job_profilings(job: JobDep) -> Response:
    """What the job has reported last."""
    return _answer("successfully get profilings", job.reported or {})


@router.post(
    "/profilings",
    response_model=None,
    responses={200: {"model": DIServerDoneView}, **_WRITES},
    openapi_extra=_PROFILING,
)
async def report_di_job_profilings(request: Request, job: JobDep, server: ServerDep) -> Response:
    """Keep this object, instead of the one before, as the job's profilings."""
    await server.report(job, await _read_object(request))
    return _answer("successfully report profilings")


def _answer(message: str, data: object = None) -> Response:
    return Response(succeeded(message, data), media_type=JSON, headers={"Cache-Control": "no-store"})


async def _read_replicas(request: Request) -> ReplicasRequest:
    return await fields_of(await _read_object(request), ReplicasRequest)


async def _read_object(request: Request) -> dict[str, Any]:
    """The body, whatever its Content-Type: upstream's server never looked at it."""
    if len(await request.body()) > MAX_BODY_BYTES:
        raise TooLarge(f"the body is larger than {MAX_BODY_BYTES} bytes")
    value = await read_json(request)
    if not isinstance(value, dict):
        raise InvalidManifest("the body must be one object")
    return value
