"""The REST API of DI-orchestrator's server for the pods of a DIJob, with upstream's paths and envelope.

The caller is a job. The token in the environment of its pods gives access to this job and to nothing else. No other
token, not even one of the role admin, gives access to these routes.
"""

from typing import Annotated, Any, Final

from fastapi import Depends, Path, Request, Response
from pydantic import Field

from app.api.answers.errors import parameter_error
from app.api.answers.responses import JSON, NO_STORE
from app.api.layers.envelope import envelope
from app.api.requests.bodies import read_json, validate_body
from app.api.requests.dependencies import api_of
from app.api.requests.parameters import check_namespace, json_schema, refuse_unknown_query
from app.api.routers import new_router
from app.api.views.base import View
from app.db.jobs.rows import JobRow
from app.domain.errors import InvalidManifest, NotFound, TooLarge
from app.domain.kinds.spec.model import SpecModel
from app.domain.kubernetes import names
from app.domain.kubernetes.names import DNS_LABEL_PATTERN
from app.services.di_server import DiServer, actor_of
from app.telemetry.log_fields import note_actor, note_job

TAG: Final = "di-server"
BASE: Final = "/v2alpha1/"
MAX_BODY_BYTES: Final = 64 * 1024  # profilings are part of the job's native status, which every poll returns
_JOB_ID: Final = rf"{DNS_LABEL_PATTERN[:-1]}\.{DNS_LABEL_PATTERN[1:]}"
_MAX_INT32: Final = 2**31 - 1  # replicas is an int32 in Kubernetes and upstream


class DIServerErrorView(View):
    """The answer to a request that has failed."""

    success: bool
    code: int
    """Always 1."""
    message: str
    """What is wrong."""
    data: dict[str, Any] | None
    """Always null."""


class DIServerDoneView(View):
    """The answer to a request that the server has carried out, without data."""

    success: bool
    code: int
    """Always 0."""
    message: str
    data: dict[str, Any] | None
    """Always null."""


class DIServerReplicasView(View):
    """The addresses of the replicas of the job."""

    success: bool
    code: int
    """Always 0."""
    message: str
    data: list[str]
    """`host:port` of each replica, at the index of its global rank. Empty if the replica has no address at present."""


class DIServerProfilingsView(View):
    """The profilings that the pods of the job have reported."""

    success: bool
    code: int
    """Always 0."""
    message: str
    data: dict[str, Any]
    """The last reported object; empty before the first report."""


class ReplicasRequest(SpecModel):
    """The body of a request to add or delete replicas."""

    replicas: Annotated[int, Field(ge=1, le=_MAX_INT32)]
    """Number of replicas to add or delete."""
    task: Annotated[str | None, Field(max_length=63)] = None
    """The task. By default the collector, or the only scalable task."""


def _errors(*codes: int | str) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": DIServerErrorView, "description": _DESCRIPTIONS[code]} for code in codes}


def _body(schema: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {JSON: {"schema": schema, "example": example}}}


_DESCRIPTIONS: Final = {
    400: "The job id or the body is not valid.",
    401: "The request has no token, or not the token of the present job of this name. A job that does not exist is not "
    "distinguished.",
    404: "The job is not a DIJob, or the gateway does not serve its namespace.",
    409: "The job has ended, or the new size is out of bounds.",
    413: "The body exceeds 64 KiB.",
    503: "The database does not answer. Repeat the request.",
    "default": "Any other error.",
}
_READS: Final = _errors(400, 401, 404, 503, "default")
_WRITES: Final = _errors(400, 401, 404, 409, 413, 503, "default")
_SECURITY: Final[dict[str, Any]] = {"security": [{"jobToken": []}]}
_RESIZING: Final = _SECURITY | {
    "requestBody": _body(ReplicasRequest.model_json_schema(), {"replicas": 1, "task": "collector"})
}
_PROFILING: Final = _SECURITY | {
    "requestBody": _body({"type": "object", "additionalProperties": True}, {"collector": {"fps": 120.5}})
}

router = new_router(TAG, prefix=f"{BASE}job/{{job_id}}", dependencies=[Depends(refuse_unknown_query)])


async def _job(
    request: Request,
    job_id: Annotated[
        str, Path(description="`<namespace>.<name>` of the DIJob.", max_length=127, **json_schema(pattern=_JOB_ID))
    ],
) -> JobRow:
    """Return the job of the path, after a check that the request has its token.

    Raises:
        InvalidParameter: the job id is not valid.
        Unauthenticated: the token is not that of a job of this name, or there is no such job.
        NotFound: the job is not a DIJob, or the gateway does not serve its namespace.
    """
    services = api_of(request).services
    namespace, _, name = job_id.partition(".")
    if names.dns_label(name):  # DIJobs give their name to a Service, so it has no dot
        detail = "is not a namespace and the name of a DIJob, separated by a dot"
        raise parameter_error("path", "job_id", "InvalidName", detail, "<namespace>.<name>")
    check_namespace(namespace)
    job = await services.di_server.identify(namespace, name, request.headers.get("authorization"))
    # After the check of the token, so that the answer reveals nothing to other callers.
    if namespace not in services.namespaces:
        raise NotFound("this gateway does not serve the namespace of the job")
    actor = actor_of(job)
    note_actor(actor.name, actor.id)
    note_job(str(job.uid))
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
    """Return the addresses of the job's replicas."""
    return _response("successfully get replicas", await server.addresses(job))


@router.post(
    "/replicas", response_model=None, responses={200: {"model": DIServerDoneView}, **_WRITES}, openapi_extra=_RESIZING
)
async def add_di_job_replicas(request: Request, job: JobDep, server: ServerDep) -> Response:
    """Scale up a task of the job. The controller carries the change out after the answer."""
    wanted = await _read_replicas(request)
    await server.resize(job, wanted.replicas, wanted.task)
    return _response("successfully add replicas")


@router.delete(
    "/replicas", response_model=None, responses={200: {"model": DIServerDoneView}, **_WRITES}, openapi_extra=_RESIZING
)
async def delete_di_job_replicas(request: Request, job: JobDep, server: ServerDep) -> Response:
    """Scale down a task of the job: its highest ranks are removed. The controller carries it out after the answer."""
    wanted = await _read_replicas(request)
    await server.resize(job, -wanted.replicas, wanted.task)
    return _response("successfully delete replicas")


@router.get(
    "/profilings",
    response_model=None,
    responses={200: {"model": DIServerProfilingsView}, **_READS},
    openapi_extra=_SECURITY,
)
async def get_di_job_profilings(job: JobDep) -> Response:
    """Return the profilings that the job reported last."""
    return _response("successfully get profilings", job.reported or {})


@router.post(
    "/profilings",
    response_model=None,
    responses={200: {"model": DIServerDoneView}, **_WRITES},
    openapi_extra=_PROFILING,
)
async def report_di_job_profilings(request: Request, job: JobDep, server: ServerDep) -> Response:
    """Store an object as the job's profilings, in place of the previous one."""
    await server.report(job, await _read_object(request))
    return _response("successfully report profilings")


def _response(message: str, data: object = None) -> Response:
    return Response(envelope(message, data), media_type=JSON, headers=NO_STORE)


async def _read_replicas(request: Request) -> ReplicasRequest:
    return await validate_body(await _read_object(request), ReplicasRequest)


async def _read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object of the body. Its Content-Type is ignored, as upstream's server ignores it."""
    # A layer bounds every body, but permits larger ones for manifests.
    if len(await request.body()) > MAX_BODY_BYTES:
        raise TooLarge(f"the body is larger than {MAX_BODY_BYTES} bytes")
    value = await read_json(request)
    if not isinstance(value, dict):
        raise InvalidManifest("the body must be a JSON object")
    return value
