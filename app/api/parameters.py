"""Query parameters that several routes share, and the refusal of those that a route does not know."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Header, Path, Query, Request
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from app.api.errors import MOMENT, refuse_parameter
from app.domain.errors import shorten
from app.domain.kubernetes import names

_NO_NUL: Final = r"^[^\x00]+$"

Namespace = Annotated[str, Path(description="The namespace of the cluster.", max_length=63)]
Name = Annotated[
    str,
    Path(description="Its name: what has the name, else the newest that had it.", max_length=253, pattern=_NO_NUL),
]
NamespaceFilter = Annotated[list[str] | None, Query(description="Only these namespaces.", max_length=100)]
PageSize = Annotated[int | None, Query(alias="pageSize", ge=1, description="At most this many items; 500 at most.")]
PageToken = Annotated[str | None, Query(alias="pageToken", description="The nextPageToken of the page before.")]
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match", description="Answer 304 if the ETag is still this.")]
IfMatch = Annotated[str | None, Header(alias="If-Match", description="Answer 412 unless the ETag is still this.")]
Prefer = Annotated[
    list[str] | None,
    Header(description="`wait=N`: with If-None-Match, wait up to N (60 at most) seconds for a change."),
]
IdempotencyKeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="Repeating the request with the same key within 24 hours has no further effect.",
    ),
]
Moment = Annotated[datetime | None, Query(description="RFC 3339, with an offset.")]


# By path and name of the route: names of its query parameters, and of those that may be given more than once.
_known: dict[tuple[str, str], tuple[frozenset[str], frozenset[str]]] = {}


def _parameters(route: APIRoute) -> tuple[frozenset[str], frozenset[str]]:
    key = (route.path, route.name)
    if key not in _known:
        fields = list(_query_fields(route.dependant))
        many = frozenset(field.alias for field in fields if "list" in str(field.field_info.annotation))
        _known[key] = (frozenset(field.alias for field in fields), many)
    return _known[key]


def _query_fields(dependant: Dependant) -> Iterator[ModelField]:
    yield from dependant.query_params
    for inner in dependant.dependencies:
        yield from _query_fields(inner)


def refuse_unknown_query(request: Request) -> None:
    """A misspelt filter would show everything: better to say so.

    Raises:
        InvalidParameter.
    """
    if not request.scope["query_string"]:
        return
    route: Any = request.scope["route"]
    known, many = _parameters(route)
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name not in known:
            accepted = "one of " + ", ".join(sorted(known)) if known else "no query parameters"
            raise refuse_parameter("query", shorten(name), "UnknownParameter", "there is no such parameter", accepted)
        if name in seen and name not in many:
            raise refuse_parameter("query", name, "RepeatedParameter", "is given more than once", "one value")
        seen.add(name)


def aware(name: str, moment: datetime | None) -> datetime | None:
    """A moment without an offset means another one to everybody."""
    if moment is not None and moment.tzinfo is None:
        raise refuse_parameter("query", name, "InvalidTime", "has no offset", MOMENT)
    return moment


def check_namespace(namespace: str) -> None:
    if wrong := names.dns_label(namespace):
        raise refuse_parameter("path", "namespace", "InvalidName", wrong, "an RFC 1123 label")
