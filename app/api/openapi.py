"""The OpenAPI document: what FastAPI derives from the routes, made true and fit for generators."""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from typing_extensions import override

from app.api import openapi_manifests
from app.api.bodies import JSON
from app.api.errors import PROBLEM_TYPE
from app.api.openapi_examples import PROBLEM, SCALES
from app.api.openapi_manifests import Bodies
from app.api.resources import Resource
from app.api.routes import di_server
from app.api.views import ProblemView


def tags(resources: Sequence[Resource]) -> list[dict[str, str]]:
    """The groups of operations, in the order in which documentation shows them."""
    return [
        *({"name": resource.name, "description": resource.about} for resource in resources),
        {"name": "actions", "description": "Scale, pause, resume, cancel and retry jobs."},
        {"name": "logs", "description": "What containers wrote."},
        {"name": "watch", "description": "Server-sent events."},
        {"name": "autoscaler", "description": "What it decided, and what it would do."},
        {"name": "system", "description": "Kinds, health and metrics."},
        {
            "name": di_server.TAG,
            "description": "The in-cluster API of DIJobs, for their own pods: DI-orchestrator's paths and its "
            "envelope. Each job takes the token that its pods find as DI_SERVER_TOKEN, and no other.",
        },
    ]


_METHODS: Final = ("get", "put", "post", "patch", "delete")
_OPEN: Final = frozenset({"/livez", "/readyz", "/metrics"})
_DESCRIPTIONS: Final = {
    "400": "The request cannot be read, or a parameter is not acceptable.",
    "401": "No token, or an unknown one.",
    "403": "The token's role, or the pod policy, does not allow it.",
    "404": "There is no such thing, or none that the token may see.",
    "409": "A name is in use, or the phase does not allow it.",
    "412": "It has changed since it was read.",
    "413": "The body is too large.",
    "415": "The body's format is not read here.",
    "422": "The manifest is not valid; all errors are listed.",
    "429": "Too many streams, long polls and logs are open here; come again after Retry-After.",
    "503": "The database, or the cluster where it is needed, does not answer; repeat it.",
    "default": "Any other error.",
}
_ALWAYS: Final = ("400", "401", "404", "503", "default")
_WITH_CHANGE: Final = ("403", "409", "412", "413", "415", "422")


def _text_header(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


_ETAG: Final = _text_header("Changes with everything that the answer shows.")
_POLLED_HEADERS: Final = {
    "ETag": _ETAG,
    "Jobgate-Observed-At": _text_header("When the controller last had contact with the cluster."),
    "Jobgate-Stale": _text_header("true when that is too long ago, or the controller says that it is out of touch."),
}
_SIZE: Final = {"type": "integer", "minimum": 0}
_SCALE: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "replicas": _SIZE | {"description": "The size of the one task that can be scaled, or of `task`."},
        "task": {"type": "string", "description": "Whose size it is; needed where more than one can be scaled."},
        "tasks": {
            "type": "object",
            "additionalProperties": _SIZE,
            "description": "Instead of replicas: sizes by task; what is left out keeps its size.",
        },
        "reason": {"type": "string", "description": "For the job's history and its scale records."},
    },
}


class Documented(FastAPI):
    """An app whose document is the one below."""

    def __init__(self, resources: Sequence[Resource], **given: Any) -> None:
        super().__init__(**given)
        self._resources = resources
        self._bytes: bytes | None = None

    @override
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = _finished(super().openapi(), self._resources)
        return self.openapi_schema

    def document_bytes(self) -> bytes:
        """The document as it is served; the first call takes about a second."""
        if self._bytes is None:
            self._bytes = msgspec.json.encode(self.openapi())
        return self._bytes


def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def text(app: FastAPI) -> str:
    """The document as it is committed in openapi/openapi.json."""
    return json.dumps(document(app), indent=2, ensure_ascii=False) + "\n"


def _finished(found: dict[str, Any], resources: Sequence[Resource]) -> dict[str, Any]:
    found["info"]["description"] = (
        "Submit distributed jobs in the formats of five systems, and follow them to their end."
    )
    found["info"]["license"] = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
    found["servers"] = [{"url": "/", "description": "The gateway that serves this document."}]
    found["security"] = [{"bearer": []}]
    components = found.setdefault("components", {})
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "A token made by `jobgate token create`."},
        "jobToken": {"type": "http", "scheme": "bearer", "description": "A job's own token, of its pods' environment."},
    }
    schemas = components.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas.update(_schemas(ProblemView, *(resource.models.watch for resource in resources)))
    schemas.update(openapi_manifests.schemas(resources))
    bodies = openapi_manifests.request_bodies(resources)
    for path, item in found["paths"].items():
        for method in _METHODS:
            if method in item:
                _finish_operation(path, method, item[method], bodies)
    _name_schemas(found)
    return found


def _schemas(*models: type[BaseModel]) -> dict[str, Any]:
    _, definitions = models_json_schema(
        [(model, "serialization") for model in models], ref_template="#/components/schemas/{model}"
    )
    defined: dict[str, Any] = definitions["$defs"]
    return defined


def _finish_operation(path: str, method: str, operation: dict[str, Any], bodies: Bodies) -> None:
    if path in _OPEN:
        operation["security"] = []
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
    codes = _ALWAYS if method == "get" else (*_ALWAYS, *_WITH_CHANGE)
    lasting = ("403", "429") if _lasts(operation) else ()
    for code in (*codes, *lasting):
        responses[code] = _problem_response(code)
    if method == "get" and any(name["name"] == "If-None-Match" for name in operation.get("parameters", ())):
        responses["200"]["headers"] = _POLLED_HEADERS
        responses["304"] = {"description": "It is still what the ETag says.", "headers": _POLLED_HEADERS}
    if "201" in responses:
        responses["201"]["headers"] = {"Location": _text_header("Where it is."), "ETag": _ETAG}
        responses["200"]["headers"] = {"Idempotency-Replayed": _text_header("true for a repeated request.")}


def _lasts(operation: dict[str, Any]) -> bool:
    """Whether this is a stream, a log or a request that can be a long poll."""
    parameters = {parameter["name"].lower() for parameter in operation.get("parameters", ())}
    streams = "text/event-stream" in operation["responses"]["200"].get("content", {})
    return streams or bool(parameters & {"prefer", "follow"})


def _problem_response(code: str) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": {"$ref": "#/components/schemas/ProblemView"}}
    if code == "422":
        content["example"] = PROBLEM
    return {"description": _DESCRIPTIONS[code], "content": {PROBLEM_TYPE: content}}


def _action_body(path: str) -> dict[str, Any]:
    if path.endswith("/scale"):
        return {"required": True, "content": {JSON: {"schema": _SCALE, "examples": SCALES}}}
    retry = path.endswith("/retry")
    name, about = ("name", "The new job's name.") if retry else ("reason", "For the job's history.")
    properties = {name: {"type": "string", "description": about}}
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return {"required": False, "content": {JSON: {"schema": schema}}}


def _name_schemas(found: dict[str, Any]) -> None:
    """Clients get `Job` and `Problem`: the suffix tells our layers apart and means nothing to them."""
    schemas = found["components"]["schemas"]
    names = {name: name.removesuffix("View") for name in schemas}
    found["components"]["schemas"] = {names[name]: schema for name, schema in sorted(schemas.items())}
    for name, schema in found["components"]["schemas"].items():
        schema["title"] = name
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
