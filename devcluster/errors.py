"""Failures as Kubernetes Status objects, with the messages of a real API server."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FieldCause:
    """One entry of details.causes of a Status."""

    reason: str
    message: str
    field: str

    def as_dict(self) -> dict[str, str]:
        return {"reason": self.reason, "message": self.message, "field": self.field}


class StatusError(Exception):
    """A failure as a Kubernetes API server reports it: HTTP code, reason and message of a Status object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def success(code: int | None = None, details: dict[str, Any] | None = None) -> dict[str, Any]:
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    if code is not None:
        status["code"] = code
    return status


def required(field: str, hint: str = "") -> FieldCause:
    return FieldCause("FieldValueRequired", f"Required value: {hint}" if hint else "Required value", field)


def invalid_value(field: str, value: object, why: str) -> FieldCause:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return FieldCause("FieldValueInvalid", f"Invalid value: {shown}: {why}", field)


def unsupported(field: str, value: str, allowed: tuple[str, ...]) -> FieldCause:
    names = ", ".join(f'"{name}"' for name in allowed)
    return FieldCause("FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {names}', field)


def duplicate(field: str, value: str) -> FieldCause:
    return FieldCause("FieldValueDuplicate", f'Duplicate value: "{value}"', field)


def duplicate_item(field: str, item: dict[str, str]) -> FieldCause:
    return FieldCause("FieldValueDuplicate", f"Duplicate value: {json.dumps(item, separators=(',', ':'))}", field)


def too_many(field: str, count: int, limit: int) -> FieldCause:
    return FieldCause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} items", field)


def unknown_reference(field: str, value: str) -> FieldCause:
    return FieldCause("FieldValueNotFound", f'Not found: "{value}"', field)


def forbidden_field(field: str, why: str) -> FieldCause:
    return FieldCause("FieldValueForbidden", f"Forbidden: {why}", field)


def _details(resource: str, name: str, group: str = "") -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": resource}
    return {key: value for key, value in details.items() if value}


def _qualify(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(resource: str, name: str, group: str = "") -> StatusError:
    message = f'{_qualify(resource, group)} "{name}" not found'
    return StatusError(404, "NotFound", message, details=_details(resource, name, group))


def already_exists(resource: str, name: str, group: str = "") -> StatusError:
    message = f'{_qualify(resource, group)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_details(resource, name, group))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(resource: str, name: str, why: str = MODIFIED, group: str = "") -> StatusError:
    message = f'Operation cannot be fulfilled on {_qualify(resource, group)} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_details(resource, name, group))


def precondition_failed(kind: str, name: str, why: str) -> StatusError:
    """Return a conflict that names the kind instead of the resource, as a real server does for preconditions."""
    message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_details(kind, name))


def forbidden(
    resource: str, name: str, why: str, *, group: str = "", causes: tuple[FieldCause, ...] = ()
) -> StatusError:
    details = _details(resource, name, group)
    if causes:
        details["causes"] = [cause.as_dict() for cause in causes]
    message = f'{_qualify(resource, group)} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, details=details)


def invalid(kind: str, name: str, causes: list[FieldCause], group: str = "") -> StatusError:
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _details(kind, name, group) | {"causes": [cause.as_dict() for cause in causes]}
    message = f'{_qualify(kind, group)} "{name}" is invalid: {listed}'
    return StatusError(422, "Invalid", message, details=details)


def denied(webhook: str, cause: FieldCause) -> StatusError:
    """Return the refusal by a validating webhook, which has no details."""
    why = f'admission webhook "{webhook}" denied the request: {cause.field}: {cause.message}'
    return StatusError(403, "Forbidden", why)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def unsupported_media_type(message: str) -> StatusError:
    return StatusError(415, "UnsupportedMediaType", message)


def unknown_resource() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})
