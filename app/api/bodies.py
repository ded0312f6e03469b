"""Request bodies: which format they are in, and their bytes as plain values."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from fastapi import Request

from app.domain.decoding import JsonValue, decode_json, decode_yaml, lists
from app.domain.dialects.spec_model import SpecModel, read_spec
from app.domain.errors import FieldError, InvalidManifest, MalformedDocument, Problems, UnsupportedMediaType
from app.offload import offloaded, offloaded_if_large

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
YAML_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml")
# Bytes that are decoded within 20 ms whatever they are; a thread would cost more than it saves.
_SHORT_JSON: Final = 16 * 1024
_SHORT_YAML: Final = 4 * 1024
_MANIFEST_TYPES: Final = (JSON, *YAML_TYPES)

_Model = TypeVar("_Model", bound=SpecModel)


async def read_manifest(request: Request) -> dict[str, Any]:
    """The one manifest that the body holds, as JSON or YAML.

    Raises:
        UnsupportedMediaType, MalformedDocument, InvalidManifest.
    """
    documents = await _documents(request)
    if len(documents) != 1:
        error = FieldError(
            pointer="", code="TooManyDocuments", detail=f"there are {len(documents)} documents", accepted="exactly one"
        )
        raise MalformedDocument("the body holds one manifest", errors=[error])
    return _an_object(documents[0])


async def read_submission(request: Request) -> dict[str, Any] | list[dict[str, Any]]:
    """One manifest, or those of a List or of several YAML documents. It raises what `read_manifest` raises."""
    documents = await _documents(request)
    if len(documents) > 1:
        return lists.checked(documents)
    document = _an_object(documents[0])
    return lists.items_of(document) if lists.is_list(document) else document


async def _documents(request: Request) -> Sequence[JsonValue]:
    media_type = _media_type(request, _MANIFEST_TYPES)
    body = await request.body()
    if media_type == JSON:
        return (await _decoded_json(body),)
    soon = len(body) <= _SHORT_YAML and b"*" not in body  # an alias makes more of a body than its length shows
    return decode_yaml(body) if soon else await offloaded(decode_yaml, body)


async def read_json(request: Request) -> JsonValue:
    """The body, which is JSON whatever its Content-Type says. It raises MalformedDocument."""
    return await _decoded_json(await request.body())


async def _decoded_json(body: bytes) -> JsonValue:
    return decode_json(body) if len(body) <= _SHORT_JSON else await offloaded(decode_json, body)


async def read_merge_patch(request: Request) -> dict[str, Any]:
    _media_type(request, (MERGE_PATCH,))
    return _an_object(await read_json(request))


async def read_options(request: Request, model: type[_Model]) -> _Model:
    """The body of an action: JSON, and it may be absent.

    An empty body may have any Content-Type if the request has an Authorization header, which no web page can add to a
    form that it sends to another site.
    """
    body = await request.body()
    if body or ("content-type" in request.headers and "authorization" not in request.headers):
        _media_type(request, (JSON,))
    if not body:
        return model()
    return await fields_of(_an_object(await _decoded_json(body)), model)


async def fields_of(body: dict[str, Any], model: type[_Model]) -> _Model:
    """The decoded body as a value of this type.

    Raises:
        InvalidManifest: with every error there is.
    """
    return await offloaded_if_large(body, _fields, body, model)


def _fields(body: dict[str, Any], model: type[_Model]) -> _Model:
    problems = Problems()
    options = read_spec(model, body, "", problems)
    problems.raise_if_any("the body is not valid")
    assert options is not None, "without problems there is a value"
    return options


def _media_type(request: Request, accepted: tuple[str, ...]) -> str:
    _refuse_encoding(request)
    content_type = request.headers.get("content-type")
    choice = " or ".join(accepted)
    if content_type is None:
        raise UnsupportedMediaType(f"the request has no Content-Type: send {choice}", errors=[_type_error(choice)])
    media_type, _, parameters = content_type.partition(";")
    media_type = media_type.strip().lower()
    charset = parameters.strip().lower().replace('"', "")
    if media_type not in accepted or (charset.startswith("charset=") and charset not in _UTF8):
        raise UnsupportedMediaType(f"this Content-Type is not read here: send {choice}", errors=[_type_error(choice)])
    return media_type


def _refuse_encoding(request: Request) -> None:
    """Compressed bodies would grow beyond the limit of their size: said here, not as bytes that are no UTF-8."""
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("identity", ""):
        return
    error = FieldError(
        pointer="/header/Content-Encoding",
        code="UnsupportedMediaType",
        detail="encoded bodies are not read here",
        accepted="identity, or leave it out",
    )
    raise UnsupportedMediaType("the body must come as it is, without a Content-Encoding", errors=[error])


_UTF8: Final = ("charset=utf-8", "charset=utf8", "charset=us-ascii")


def _type_error(accepted: str) -> FieldError:
    return FieldError(
        pointer="/header/Content-Type",
        code="UnsupportedMediaType",
        detail="missing or not supported",
        accepted=accepted,
    )


def _an_object(value: JsonValue) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    error = FieldError(pointer="", code="InvalidType", detail="the document is not an object", accepted="an object")
    raise InvalidManifest("the body must be one object", errors=[error])
