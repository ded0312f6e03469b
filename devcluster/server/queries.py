"""The query parameters of lists, watches and writes, with the error messages of a real API server. Pure."""

from collections.abc import Mapping

from devcluster.errors import FieldCause, StatusError, bad_request, forbidden_field
from devcluster.formats.numbers import whole_number
from devcluster.formats.selectors import Selector, parse_fields, parse_labels
from devcluster.registry.operations import ObjectAddress

_TRUE = ("1", "t", "T", "true", "TRUE", "True")


def flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "") in _TRUE


def selector(address: ObjectAddress, query: Mapping[str, str]) -> Selector:
    resource = address.resource
    return Selector(
        parse_labels(query.get("labelSelector", "")),
        parse_fields(
            query.get("fieldSelector", ""), resource.selectable, resource.refuse_field, dict(resource.field_aliases)
        ),
    )


def version(query: Mapping[str, str]) -> int | None:
    text = query.get("resourceVersion", "")
    if not text:
        return None
    number = whole_number(text)
    if number is None:
        raise bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing '
            f'"{text}": invalid syntax'
        )
    return number


def watch_version(query: Mapping[str, str]) -> int | None:
    try:
        return version(query)
    except StatusError as error:
        message = error.message.removeprefix("invalid resource version: ")
        # A real API server answers a watch this way, and a list with 400.
        raise StatusError(500, "", message) from error


def too_large(asked: int, current: int) -> StatusError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], "retryAfterSeconds": 1}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return StatusError(504, "Timeout", message, details=details, retry_after=1)


def number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def check_initial_events(query: Mapping[str, str]) -> None:
    if not flag(query, "sendInitialEvents") or query.get("resourceVersionMatch") == "NotOlderThan":
        return
    why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    raise _invalid_options("ListOptions", forbidden_field("resourceVersionMatch", why))


def _invalid_options(kind: str, cause: FieldCause) -> StatusError:
    details = {"group": "meta.k8s.io", "kind": kind, "causes": [cause.as_dict()]}
    message = f'{kind}.meta.k8s.io "" is invalid: {cause.field}: {cause.message}'
    return StatusError(422, "Invalid", message, details=details)


def dry_run(query: Mapping[str, str], options_kind: str) -> bool:
    value = query.get("dryRun")
    if value is None:
        return False
    if value == "All":
        return True
    allowed = f'Unsupported value: ["{value}"]: supported values: "All"'
    raise _invalid_options(options_kind, FieldCause("FieldValueNotSupported", allowed, "dryRun"))
