"""Reads request bodies: checks their media type and decodes them into plain values."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from fastapi import Request

from app.api.answers.responses import JSON
from app.base.offload import offload, offload_if_large
from app.domain.decoding import DEFAULT_LIMITS, JsonValue, decode_json, decode_yaml, lists
from app.domain.errors import FieldError, InvalidManifest, MalformedDocument, Problems, UnsupportedMediaType
from app.domain.kinds.spec.model import SpecModel, read_spec
from app.domain.plan import Manifest
from app.fairness.byte_budget import UNCOUNTED_BYTES
from app.services.limits.turns import room_for
from app.services.reading.objects import DECODED

MERGE_PATCH: Final = "application/merge-patch+json"
YAML_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml")
# Bytes that are decoded within 20 ms whatever they contain. Below this size a thread costs more than it saves.
_SHORT_JSON: Final = 16 * 1024
_SHORT_YAML: Final = 4 * 1024
_MANIFEST_TYPES: Final = (JSON, *YAML_TYPES)
_FORM: Final = "application/x-www-form-urlencoded"
_CURL_YAML: Final = f"add -H 'Content-Type: {YAML_TYPES[0]}', and --data-binary @FILE in place of -d @FILE"
# No JSON document begins like this.
_YAML_START: Final = re.compile(rb"\s*(?:#|---|[A-Za-z]+:)")

_Model = TypeVar("_Model", bound=SpecModel)


async def read_manifest(request: Request) -> dict[str, Any]:
    """Return the one manifest of a JSON or YAML body.

    Raises:
        UnsupportedMediaType: the Content-Type is not JSON or YAML, or the body has a Content-Encoding.
        MalformedDocument: the body cannot be decoded, or has several documents.
        InvalidManifest: the document is not an object.
    """
    documents = await (await receive_manifests(request)).documents()
    if len(documents) != 1:
        error = FieldError(
            pointer="",
            code="TooManyDocuments",
            detail=f"the body has {len(documents)} documents",
            accepted="one document",
        )
        raise MalformedDocument("the body must contain one manifest", errors=[error])
    return _require_object(documents[0])


Submission: TypeAlias = Manifest | list[Manifest]
"""One manifest, or several that are stored together."""


@dataclass(frozen=True, slots=True)
class ManifestBody:
    """A body of manifests that has arrived. The request has the memory for its values."""

    media_type: str
    content: bytes

    async def submission(self) -> Submission:
        """Return one manifest, or the manifests of a List or of several YAML documents.

        Raises:
            MalformedDocument, InvalidManifest: as `read_manifest`.
        """
        documents = await self.documents()
        if len(documents) > 1:
            return lists.check_items(documents)
        document = _require_object(documents[0])
        return lists.items_of(document) if lists.is_list(document) else document

    async def documents(self) -> Sequence[JsonValue]:
        if self.media_type == JSON:
            if _is_yaml_mapping(self.content):
                raise _yaml_as_json()
            return (await _decode_json_body(self.content),)
        is_short = len(self.content) <= _SHORT_YAML and not _may_repeat(self.content)
        return decode_yaml(self.content) if is_short else await offload(decode_yaml, self.content)


async def receive_manifests(request: Request) -> ManifestBody:
    """Return the body when it has arrived and there is memory for its values.

    Decode it only when the request has its turn: many short bodies may wait, and their values take much more memory.

    Raises:
        UnsupportedMediaType: as `read_manifest`.
        Overloaded: other requests use the memory for too long.
    """
    media_type = _media_type(request, _MANIFEST_TYPES)
    content = await request.body()
    repeated = DEFAULT_LIMITS.max_repeated if media_type != JSON and _may_repeat(content) else 0
    await _room_for_values(len(content) + repeated)
    return ManifestBody(media_type, content)


def _may_repeat(yaml: bytes) -> bool:
    """Return whether a body may have an alias (*) of an anchor (&), which can expand it to many values."""
    return b"&" in yaml and b"*" in yaml


async def read_json(request: Request) -> JsonValue:
    """Decode the body as JSON, without regard to its Content-Type. Raises MalformedDocument."""
    body = await request.body()
    await _room_for_values(len(body))
    return await _decode_json_body(body)


async def _decode_json_body(body: bytes) -> JsonValue:
    return decode_json(body) if len(body) <= _SHORT_JSON else await offload(decode_json, body)


async def _room_for_values(size: int) -> None:
    """Wait for the memory of the values that a body of this size is decoded to. The request holds it to its end.

    A short body takes none, as in the budget of bodies: answers that nobody reads do not delay ordinary submissions.

    Raises:
        Overloaded: other requests use the memory for too long.
    """
    if size > UNCOUNTED_BYTES:
        await room_for(size * DECODED)


async def read_merge_patch(request: Request) -> dict[str, Any]:
    """Return the merge patch (RFC 7396) of the body.

    Raises:
        UnsupportedMediaType, MalformedDocument, InvalidManifest: as `read_manifest`.
    """
    _media_type(request, (MERGE_PATCH,))
    return _require_object(await read_json(request))


async def read_options(request: Request, model: type[_Model]) -> _Model:
    """Return the options of an action from its JSON body, or their defaults if the body is empty.

    An empty body may have any Content-Type if the request has an Authorization header: a web page cannot add
    that header to a form that it sends to another site.

    Raises:
        UnsupportedMediaType: the Content-Type is not JSON, or the body has a Content-Encoding.
        MalformedDocument, InvalidManifest: the body is not valid; the error lists all errors of its fields.
    """
    body = await request.body()
    if body or ("content-type" in request.headers and "authorization" not in request.headers):
        _media_type(request, (JSON,))
    if not body:
        return model()
    return await validate_body(_require_object(await read_json(request)), model)


async def validate_body(body: dict[str, Any], model: type[_Model]) -> _Model:
    """Return the decoded body as a value of `model`. A large body is validated in another thread.

    Raises:
        InvalidManifest: the body is not valid; the error lists all errors of its fields.
    """
    return await offload_if_large(body, _validate, body, model)


def _validate(body: dict[str, Any], model: type[_Model]) -> _Model:
    problems = Problems()
    options = read_spec(model, body, "", problems)
    problems.raise_if_any("the body is not valid")
    assert options is not None, "read_spec returns a value or adds problems"
    return options


def _media_type(request: Request, accepted: tuple[str, ...]) -> str:
    _refuse_encoding(request)
    content_type = request.headers.get("content-type")
    choice = " or ".join(accepted)
    if content_type is None:
        raise _type_error("the request has no Content-Type", choice)
    media_type, _, parameters = content_type.partition(";")
    media_type = media_type.strip().lower()
    charset = parameters.strip().lower().replace('"', "")
    if media_type == _FORM and YAML_TYPES[0] in accepted:
        choice += f"; curl sends {_FORM} by default: {_CURL_YAML}"
    if media_type not in accepted or (charset.startswith("charset=") and charset not in _UTF8):
        raise _type_error("this route does not accept the Content-Type of the request", choice)
    return media_type


def _is_yaml_mapping(body: bytes) -> bool:
    """Return whether a body that is declared as JSON surely is YAML: it begins with a comment, a marker or a key."""
    return _YAML_START.match(body) is not None


def _yaml_as_json() -> MalformedDocument:
    error = FieldError(
        pointer="",
        code="MalformedJson",
        detail=f"the body is YAML, but its Content-Type is {JSON}",
        accepted=f"one JSON document, or YAML with the Content-Type {YAML_TYPES[0]}",
    )
    return MalformedDocument("the document cannot be read", errors=[error])


def _refuse_encoding(request: Request) -> None:
    """Refuse a Content-Encoding, because a compressed body would exceed the size limit once it is decoded."""
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("identity", ""):
        return
    error = FieldError(
        pointer="/header/Content-Encoding",
        code="UnsupportedMediaType",
        detail="compressed bodies are not supported",
        accepted="identity, or no Content-Encoding",
    )
    raise UnsupportedMediaType("the body must not have a Content-Encoding", errors=[error])


_UTF8: Final = ("charset=utf-8", "charset=utf8", "charset=us-ascii")


def _type_error(detail: str, accepted: str) -> UnsupportedMediaType:
    error = FieldError(
        pointer="/header/Content-Type",
        code="UnsupportedMediaType",
        detail="missing or not supported",
        accepted=accepted,
    )
    return UnsupportedMediaType(f"{detail}: send {accepted}", errors=[error])


def _require_object(value: JsonValue) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    error = FieldError(pointer="", code="InvalidType", detail="the body is not an object", accepted="an object")
    raise InvalidManifest("the body must be an object", errors=[error])
