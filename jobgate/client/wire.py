"""Requests as values. Nothing here does I/O: the synchronous and the asynchronous client send the same requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, Literal, TypeVar
from urllib.parse import quote

import msgspec

from jobgate.client.errors import InvalidArgumentError, UnreadableAnswerError
from jobgate.client.types import Problem

T = TypeVar("T")

JSON: Final = "application/json"
YAML: Final = "application/yaml"
MERGE_PATCH: Final = "application/merge-patch+json"
API: Final = "/api/v1"
# Whether the cluster checks the objects of a dry run too, or only the gateway checks the manifest.
DryRunMode = Literal["All", "Local"]
# Text of a manifest in JSON or YAML, or its content.
Manifest = str | bytes | Mapping[str, Any]
# Text of several manifests (YAML documents, or a List), or the content of each.
Manifests = str | bytes | Sequence[Mapping[str, Any]]
# Values of query parameters; None is left out, and a sequence is repeated.
QueryValue = str | int | bool | datetime | Sequence[str] | None


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True, rename="camel"):
    """One page of a list. `next_page_token` is None on the last page."""

    items: list[T]
    next_page_token: str | None = None


class BatchItem(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """The result of one manifest of several: the stored object, or the problem.

    `status` is the status that the answer to a submission of only this manifest would have had.
    """

    status: int
    object: T | None
    problem: Problem | None


class Change(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One change of an object, as a watch reports it. `object` is the status after the change."""

    type: str
    at: datetime
    object: T


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request. `answer` is the type of the body of a successful answer.

    A repeatable call has the same effect if it is sent twice, so it may be sent again when its answer was lost.
    """

    method: str
    path: str
    answer: type[T]
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    is_repeatable: bool = True


def query_of(**values: QueryValue) -> tuple[tuple[str, str], ...]:
    """Return query parameters under their names of the wire, such as pageSize for page_size."""
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        first, *rest = name.rstrip("_").split("_")
        wire_name = first + "".join(word.title() for word in rest)
        if value is None:
            continue
        if isinstance(value, list | tuple | set | frozenset):
            pairs += [(wire_name, str(item)) for item in value]
        elif isinstance(value, bool):
            pairs.append((wire_name, "true" if value else "false"))
        elif isinstance(value, datetime):
            pairs.append((wire_name, value.isoformat()))
        else:
            pairs.append((wire_name, str(value)))
    for _, text in pairs:
        encode(text)
    return tuple(pairs)


def encode(text: str) -> bytes:
    """Return the text in UTF-8.

    Raises:
        InvalidArgumentError: it has a surrogate, as an argument of a command has for a byte that is not UTF-8.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{text!r} is not valid text; accepted: UTF-8") from None


def segment(text: str) -> str:
    """Return a name as a segment of a path.

    Raises:
        InvalidArgumentError: it is not valid text, or a path would end before it or above it.
    """
    if text in {"", ".", ".."}:
        raise InvalidArgumentError(f"{text!r} is no name; accepted: letters, digits, - and .")
    return quote(encode(text), safe="")


def json_content(value: Any) -> bytes:
    """Return the JSON of a value.

    Raises:
        InvalidArgumentError: a text in it is not valid.
    """
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{error.object!r} is not valid text; accepted: UTF-8") from None


def manifest_content(manifest: Manifest | msgspec.Struct) -> tuple[bytes, str]:
    """Return the body of a manifest and its media type. Text is sent unchanged, so that errors refer to it."""
    if isinstance(manifest, Mapping | msgspec.Struct):
        return json_content(manifest), JSON
    content = encode(manifest) if isinstance(manifest, str) else manifest
    return content, JSON if content.lstrip()[:1] in {b"{", b"["} else YAML


def manifests_content(manifests: Manifests) -> tuple[bytes, str]:
    """Return the body of several manifests and its media type."""
    if isinstance(manifests, str | bytes):
        return manifest_content(manifests)
    return manifest_content({"apiVersion": "v1", "kind": "List", "items": manifests})


def decode(body: bytes, answer: type[T]) -> T:
    if answer is bytes:
        return body  # type: ignore[return-value]
    try:
        return msgspec.json.decode(body, type=answer)
    except msgspec.MsgspecError as error:
        raise UnreadableAnswerError(f"the answer is not what this version of the client expects: {error}") from error
