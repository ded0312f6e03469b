"""Query, path and header parameters that several routes share, and the refusal of unknown query parameters."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Final, get_args, get_origin

from fastapi import Depends, Header, Path, Query, Request
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticKnownError

from app.api.answers.conditional import TAGS_PATTERN, wait_seconds
from app.api.answers.errors import TIMESTAMP_FORMAT, parameter_error
from app.api.requests.paging import MAX_TOKEN, utc
from app.domain.errors import shorten
from app.domain.kubernetes import names
from app.domain.kubernetes.names import DNS_LABEL_MAX, DNS_LABEL_PATTERN

NO_NUL: Final = r"^[^\x00]*$"  # PostgreSQL stores no NUL character in text


def json_schema(**keywords: Any) -> dict[str, Any]:
    """Return the argument that adds JSON schema keywords to a parameter in the OpenAPI document.

    They describe a check that the gateway makes itself, because its error is more precise than that of a pattern.
    """
    return {"json_schema_extra": keywords}


MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1  # the format of integers without other bounds in the OpenAPI document
_IS_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# An offset such as +02:00 after the decoding of a query in which the + was not encoded.
_LOST_PLUS: Final = re.compile(r":\d\d(\.\d+)? \d\d:?\d\d$")
_NAMESPACE: Final = json_schema(pattern=DNS_LABEL_PATTERN, maxLength=DNS_LABEL_MAX)
_TAGS: Final = json_schema(pattern=TAGS_PATTERN)

Namespace = Annotated[str, Path(description="A namespace of the cluster.", max_length=DNS_LABEL_MAX, **_NAMESPACE)]
Name = Annotated[
    str,
    Path(
        description="Name of the object: of the live object with this name, else of the newest one that had it.",
        min_length=1,
        max_length=253,
        pattern=NO_NUL,
    ),
]
NamespaceFilter = Annotated[
    list[Annotated[str, Field(**_NAMESPACE)]] | None,
    Query(description="Only objects of these namespaces.", max_length=100),
]
PageSize = Annotated[
    int | None,
    Query(alias="pageSize", ge=1, le=MAX_INT64, description="Maximum number of items on the page. The limit is 500."),
]
PageToken = Annotated[
    str | None,
    Query(
        alias="pageToken",
        description="The nextPageToken of the previous page.",
        **json_schema(pattern="^[A-Za-z0-9_-]*$", maxLength=MAX_TOKEN),
    ),
]
TaskFilter = Annotated[str | None, Query(max_length=253, pattern=NO_NUL, description="Only the replicas of this task.")]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="ETags, or *. The answer is 412 unless one of them is the object's current ETag.",
        **_TAGS,
    ),
]
IdempotencyKeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="A key chosen by the client. A repeated request with the same key has no further effect and gets "
        "the first answer again, as long as the installation keeps keys: 24 hours by default.",
    ),
]


def _refuse_number(value: object) -> object:
    """Refuse a number, which pydantic would accept as the seconds or milliseconds since 1970, and name a lost +."""
    if isinstance(value, str) and not _IS_DATE.match(value):
        raise PydanticKnownError("datetime_parsing", {"error": "it does not begin with a date"})
    if isinstance(value, str) and _LOST_PLUS.search(value):
        raise PydanticKnownError("datetime_parsing", {"error": "the + of its offset is a space in a query: send %2B"})
    return value


Timestamp = Annotated[
    datetime | None, BeforeValidator(_refuse_number), Query(description="RFC 3339 time with an offset.")
]


def _require_date(value: object) -> object:
    """Refuse what is not written as a date. pydantic would accept some numbers and times too."""
    if isinstance(value, str) and not _IS_DATE.fullmatch(value):
        raise PydanticKnownError("date_parsing", {"error": "it is not written as a date"})
    return value


Day = Annotated[date | None, BeforeValidator(_require_date)]


@dataclass(frozen=True, slots=True)
class PollOptions:
    """How a client polls: the ETag that it has, and the seconds that it waits for another one (0: not at all)."""

    if_none_match: str | None
    wait: int


IfNoneMatch = Annotated[
    str | None,
    Header(
        alias="If-None-Match",
        description="ETags. The answer is 304 while one of them is the current ETag.",
        **_TAGS,
    ),
]


async def _poll_options(
    request: Request,
    if_none_match: IfNoneMatch = None,
    prefer: Annotated[
        str | None,
        Header(description="`wait=N`: with If-None-Match, wait up to N seconds for a change. The limit is 60."),
    ] = None,
) -> PollOptions:
    # The parameter is one string, because generators drop operations with a list in a header. A request may still
    # repeat the header, as RFC 7240 permits.
    del if_none_match, prefer
    return poll_options(request)


def poll_options(request: Request) -> PollOptions:
    """Return how the client of this request polls."""
    headers = request.headers
    known = headers.get("if-none-match")
    return PollOptions(known, 0 if known is None else wait_seconds(headers.getlist("prefer")))


PollDep = Annotated[PollOptions, Depends(_poll_options)]

# By path and name of the route: the names of its query parameters, and of those that a request may repeat.
_known: dict[tuple[str, str], tuple[frozenset[str], frozenset[str]]] = {}


def _parameters(route: APIRoute) -> tuple[frozenset[str], frozenset[str]]:
    key = (route.path, route.name)
    if key not in _known:
        fields = list(_query_fields(route.dependant))
        repeatable = frozenset(field.alias for field in fields if _is_list(field.field_info.annotation))
        _known[key] = (frozenset(field.alias for field in fields), repeatable)
    return _known[key]


def _is_list(annotation: object) -> bool:
    """Return whether the type is a list, or a list or None."""
    return get_origin(annotation) is list or any(get_origin(member) is list for member in get_args(annotation))


def _query_fields(dependant: Dependant) -> Iterator[ModelField]:
    yield from dependant.query_params
    for inner in dependant.dependencies:
        yield from _query_fields(inner)


async def refuse_unknown_query(request: Request) -> None:
    """Refuse query parameters that the route does not have, because a misspelt filter would show everything.

    Raises:
        InvalidParameter: a parameter is unknown, or given more than once without being a list.
    """
    if not request.scope["query_string"]:
        return
    route: Any = request.scope["route"]
    known, repeatable = _parameters(route)
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name not in known:
            accepted = "one of " + ", ".join(sorted(known)) if known else "no query parameters"
            raise parameter_error("query", shorten(name), "UnknownParameter", "there is no such parameter", accepted)
        if name in seen and name not in repeatable:
            raise parameter_error("query", name, "RepeatedParameter", "is given more than once", "one value")
        seen.add(name)


def require_utc(name: str, timestamp: datetime | None) -> datetime | None:
    """Return the timestamp of the query parameter `name` in UTC.

    Raises:
        InvalidParameter: the timestamp has no offset, so its meaning would depend on the time zone of the server, or
            it is in no year from 1 to 9999 in UTC.
    """
    if timestamp is None:
        return None
    if timestamp.tzinfo is None:
        raise parameter_error("query", name, "InvalidTime", "has no offset", TIMESTAMP_FORMAT)
    in_utc = utc(timestamp)
    if in_utc is None:
        accepted = f"{TIMESTAMP_FORMAT}, in the years 1 to 9999 in UTC"
        raise parameter_error("query", name, "InvalidTime", "is out of range", accepted)
    return in_utc


def check_namespace(namespace: str, location: str = "path") -> None:
    """Raise InvalidParameter unless a namespace is an RFC 1123 label; `location` is as in `parameter_error`."""
    if wrong := names.dns_label(namespace):
        raise parameter_error(location, "namespace", "InvalidName", wrong, "an RFC 1123 label")
