"""Completes the OpenAPI document that FastAPI derives from the routes: request bodies, answers, schema names."""

import json
import threading
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from typing_extensions import override

from app.api.answers.errors import PROBLEM_TYPE
from app.api.answers.responses import JSON
from app.api.document import answer_examples, client_generators, manifests
from app.api.document.manifests import Bodies
from app.api.requests.parameters import NO_NUL
from app.api.resources.examples import PROBLEM, SCALES
from app.api.resources.resource import Resource
from app.api.routes import di_server
from app.api.views.problems import ProblemView
from app.domain.kubernetes.names import DNS_LABEL_MAX, DNS_SUBDOMAIN_PATTERN
from app.http_server.draining import PROBES


def tags(resources: Sequence[Resource]) -> list[dict[str, str]]:
    """Return the groups of operations, in the order in which documentation shows them."""
    return [
        *({"name": resource.name, "description": resource.description} for resource in resources),
        {"name": "actions", "description": "Scale, pause, resume, cancel and retry jobs."},
        {"name": "logs", "description": "Read and follow the logs of containers."},
        {"name": "watch", "description": "Streams of changes as server-sent events."},
        {
            "name": "autoscaler",
            "description": "Read the decisions of the autoscaler, and run it without changing anything.",
        },
        {"name": "queues", "description": "Read the queues of Kueue: their quota, and the jobs that wait in them."},
        {
            "name": "system",
            "description": "Accepted kinds, the caller, the state of the installation, health and metrics.",
        },
        {
            "name": di_server.TAG,
            "description": "The in-cluster API for the pods of DIJobs, with the paths and envelope of DI-orchestrator. "
            "A job accepts only the token in the environment variable DI_SERVER_TOKEN of its pods.",
        },
    ]


_METHODS: Final = ("get", "put", "post", "patch", "delete")
# A client calls the routes of the sign-in to get its first token.
_EXCHANGE: Final = "/api/v1/oidc/token"
_SIGN_IN: Final = frozenset({"/api/v1/oidc", _EXCHANGE})
_DESCRIPTIONS: Final = {
    "400": "The body cannot be decoded, or a parameter is not valid.",
    "401": "The request has no token, or the token is not valid.",
    "403": "The role of the token, or the pod policy, does not permit the request.",
    "404": "The object or namespace does not exist, or the token may not see it.",
    "409": "A name is in use, or the phase of the object does not permit the request.",
    "410": "The object existed, and its record was deleted when the time for which it is kept was over.",
    "412": "The object has changed: If-Match does not contain its current ETag.",
    "413": "The body exceeds the size limit.",
    "415": "The Content-Type or Content-Encoding of the body is not supported.",
    "422": "The manifest or another body is not valid. `errors` lists all errors.",
    "429": "The process or the token has too many streams, long polls, logs and CSVs. Retry after Retry-After seconds.",
    "503": "The database, or the cluster that the request needs, does not answer. Retry after Retry-After seconds.",
    "default": "Any other error.",
}
_BUSY: Final = "Too many sign-ins are in progress. Retry after Retry-After seconds."
_ALWAYS: Final = ("400", "401", "404", "503", "default")
_FOR_CHANGES: Final = ("403", "409", "412", "413", "415", "422")


def _text_header(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


_ETAG: Final = _text_header("Changes whenever the representation changes. Send it in If-None-Match or If-Match.")
_POLLED_HEADERS: Final = {
    "ETag": _ETAG,
    "Jobgate-Observed-At": _text_header("When the controller last heard from the cluster."),
    "Jobgate-Stale": _text_header(
        "`true` if that is too long ago, or if the controller reports lost contact; else `false`."
    ),
}
_LIST_HEADERS: Final = _POLLED_HEADERS | {
    "Jobgate-Feed-Position": _text_header(
        "The position of the feed before the read. A watch with this Last-Event-ID misses no later change."
    ),
}
_SIZE: Final = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_REASON: Final = {"type": "string", "maxLength": 1024, "pattern": NO_NUL}
_JOB_NAME: Final = {"type": "string", "maxLength": DNS_LABEL_MAX, "pattern": DNS_SUBDOMAIN_PATTERN}
_SCALE: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "replicas": _SIZE | {"description": "The number of replicas of `task`, or of the only scalable task."},
        "task": {
            "type": "string",
            "description": "The task that gets `replicas`. Required if the job has several scalable tasks.",
        },
        "tasks": {
            "type": "object",
            "additionalProperties": _SIZE,
            "description": "Numbers of replicas by task, instead of `replicas`. Other tasks keep their size.",
        },
        "reason": _REASON | {"description": "A reason for the job's history and scale records."},
    },
}


class DocumentedApp(FastAPI):
    """A FastAPI application with the completed OpenAPI document."""

    def __init__(self, resources: Sequence[Resource], **given: Any) -> None:
        super().__init__(**given)
        self._resources = resources
        self._bytes: bytes | None = None  # encoded at the first request
        # FastAPI's generator of the document must not run in two threads: it changes the filters of `warnings`.
        self._encoding = threading.Lock()

    @override
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = _complete(super().openapi(), self._resources)
        return self.openapi_schema

    def document_bytes(self) -> bytes:
        """Return the document as the gateway serves it. The first call takes about a second of CPU time."""
        with self._encoding:
            if self._bytes is None:
                self._bytes = msgspec.json.encode(self.openapi())
            return self._bytes


def text(app: FastAPI) -> str:
    """Return the document as it is committed in openapi/openapi.json."""
    return json.dumps(app.openapi(), indent=2, ensure_ascii=False) + "\n"


def _complete(found: dict[str, Any], resources: Sequence[Resource]) -> dict[str, Any]:
    found["info"]["description"] = (
        "Submit distributed training jobs in the formats of five systems to a Kubernetes cluster, and observe them."
    )
    found["info"]["contact"] = {"name": "jobgate"}
    found["info"]["license"] = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
    found["servers"] = [{"url": "/", "description": "The gateway that serves this document."}]
    found["security"] = [{"bearer": []}]
    components = found.setdefault("components", {})
    components["securitySchemes"] = {
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of `jobgate token create`, or of the OIDC issuer.",
        },
        "jobToken": {
            "type": "http",
            "scheme": "bearer",
            "description": "The token of one job, from the environment of its pods.",
        },
    }
    schemas = components.setdefault("schemas", {})
    # FastAPI documents 422 for invalid parameters; this API answers 400 with a problem.
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas.update(_schemas(ProblemView, *(resource.models.watch for resource in resources)))
    schemas.update(manifests.schemas(resources))
    bodies = manifests.request_bodies(resources)
    for path, item in found["paths"].items():
        for method in _METHODS:
            if method in item:
                _complete_operation(path, method, item[method], bodies)
    _name_schemas(found)
    # A copy without shared parts, because each place gets its own names, and parts are constants of modules.
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found))
    client_generators.adapt(document)
    answer_examples.add(document)
    return document


def _schemas(*models: type[BaseModel]) -> dict[str, Any]:
    _, definitions = models_json_schema(
        [(model, "serialization") for model in models], ref_template="#/components/schemas/{model}"
    )
    defined: dict[str, Any] = definitions["$defs"]
    return defined


def _complete_operation(path: str, method: str, operation: dict[str, Any], bodies: Bodies) -> None:
    if path in PROBES | _SIGN_IN:
        operation["security"] = []
    if path in PROBES:
        operation["responses"].pop("422", None)
        operation["responses"]["400"] = _problem_response("400")
        return
    if path.startswith(di_server.BASE):
        operation["responses"].pop("422", None)
        return
    if (body := bodies.get((path, method))) is not None:
        operation["requestBody"] = body
    elif method == "post" and "requestBody" not in operation:
        operation["requestBody"] = _action_body(path)
    responses = operation["responses"]
    responses.pop("422", None)
    for code in _codes(path, method, operation):
        responses[code] = _problem_response(code)
    if path == _EXCHANGE:
        responses["429"]["description"] = _BUSY
    parameters = {parameter["name"] for parameter in operation.get("parameters", ())}
    if method == "get" and "If-None-Match" in parameters:
        headers = _LIST_HEADERS if "labelSelector" in parameters else _POLLED_HEADERS
        responses["200"]["headers"] = headers
        responses["304"] = {
            "description": "The object or list still has the ETag of If-None-Match.",
            "headers": headers,
        }
    if "201" in responses:
        responses["201"]["headers"] = {"Location": _text_header("Path of the new object."), "ETag": _ETAG}
        responses["200"]["headers"] = {
            "Idempotency-Replayed": _text_header(
                "`true` if this repeats the answer to an earlier request with the same key."
            )
        }


def _codes(path: str, method: str, operation: dict[str, Any]) -> Sequence[str]:
    """Return the statuses of problems that the operation can answer with."""
    if path in _SIGN_IN and method == "get":
        return ("400", "503", "default")
    codes = _ALWAYS if method == "get" else (*_ALWAYS, *_FOR_CHANGES)
    if "{uid}" in path:
        codes = (*codes, "410")
    return (*codes, "403", "429") if _is_long_running(operation) or path == _EXCHANGE else codes


def _is_long_running(operation: dict[str, Any]) -> bool:
    """Return whether the operation is a stream, a log, or possibly a long poll or a CSV."""
    parameters = {parameter["name"].lower() for parameter in operation.get("parameters", ())}
    streams = "text/event-stream" in operation["responses"]["200"].get("content", {})
    return streams or bool(parameters & {"prefer", "follow", "format"})


def _problem_response(code: str) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": {"$ref": "#/components/schemas/ProblemView"}}
    if code == "422":
        content["example"] = PROBLEM
    return {"description": _DESCRIPTIONS[code], "content": {PROBLEM_TYPE: content}}


def _action_body(path: str) -> dict[str, Any]:
    if path.endswith("/scale"):
        return {"required": True, "content": {JSON: {"schema": _SCALE, "examples": SCALES}}}
    properties = (
        {"name": _JOB_NAME | {"description": "Name of the new job. By default the old name with a random suffix."}}
        if path.endswith("/retry")
        else {"reason": _REASON | {"description": "A reason for the job's history."}}
    )
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return {"required": False, "content": {JSON: {"schema": schema}}}


def _name_schemas(found: dict[str, Any]) -> None:
    """Rename the schemas `JobView` to `Job` and so on, because the suffix has a meaning only inside this code base."""
    schemas = found["components"]["schemas"]
    names = {name: name.removesuffix("View") for name in schemas}
    found["components"]["schemas"] = {names[name]: schema for name, schema in sorted(schemas.items())}
    _rename(found, {f"#/components/schemas/{old}": f"#/components/schemas/{new}" for old, new in names.items()})


def _rename(value: Any, references: dict[str, str]) -> None:
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            value["$ref"] = references[reference]
        for child in value.values():
            _rename(child, references)
    elif isinstance(value, list):
        for child in value:
            _rename(child, references)
