"""What jobs have used, by namespace, user, queue, kind, label and day."""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Response

from app.api.answers.errors import InvalidParameter, parameter_error
from app.api.answers.responses import JSON, PRIVATE, json_bytes
from app.api.long_requests.usage_csv import UsageCsv
from app.api.requests import paging
from app.api.requests.dependencies import Caller, CallerDep
from app.api.requests.parameters import NO_NUL, Day, NamespaceFilter, PageSize, PageToken
from app.api.routers import new_router
from app.api.views.usage import UsagePage, page_view
from app.domain.errors import shorten
from app.domain.usage.pages import Cursor, before_all, is_cursor
from app.domain.usage.query import (
    LABEL,
    MOST_DAYS,
    MOST_DIMENSIONS,
    Dimension,
    UsageQuery,
    is_dimension,
    label_keys,
)

router = new_router("usage")

DEFAULT_DAYS: Final = 30
_NAMES: Final = {"max_length": 100}

_Text = Annotated[str, Query(max_length=253, pattern=NO_NUL)]


class UsageFormat(StrEnum):
    """The format of an answer: JSON in pages, or CSV with all groups."""

    JSON = "json"
    CSV = "csv"


async def _query(
    by: Annotated[
        str | None,
        Query(
            max_length=2000,
            description=f"By what the usage is added up: up to {MOST_DIMENSIONS} of {', '.join(Dimension)} and "
            f"{LABEL}<key>, separated by commas. Without, it is one sum.",
        ),
    ] = None,
    first: Annotated[
        Day,
        Query(alias="from", description=f"The first day, in UTC. By default {DEFAULT_DAYS} days until `to`."),
    ] = None,
    last: Annotated[Day, Query(alias="to", description="The last day, in UTC. By default today.")] = None,
    user: Annotated[list[_Text] | None, Query(**_NAMES, description="Only jobs of these users.")] = None,
    queue: Annotated[list[_Text] | None, Query(**_NAMES, description="Only jobs of these queues.")] = None,
    kind: Annotated[list[_Text] | None, Query(**_NAMES, description="Only jobs of these kinds.")] = None,
    resource: Annotated[list[_Text] | None, Query(**_NAMES, description="Only these resources.")] = None,
) -> dict[str, Any]:
    return {
        "by": _dimensions(by),
        "first": first,
        "last": last,
        "users": tuple(user or ()),
        "queues": tuple(queue or ()),
        "kinds": tuple(kind or ()),
        "resources": tuple(resource or ()),
    }


def _dimensions(text: str | None) -> tuple[str, ...]:
    names = tuple(item.strip() for item in (text or "").split(",") if item.strip())
    wrong = next((name for name in names if not is_dimension(name)), None)
    accepted = _accepted_dimensions(f"{LABEL}<key>")
    if wrong is not None:
        raise _by_error(f"there is no dimension {shorten(wrong)}", accepted)
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise _by_error(f"{repeated} is repeated", accepted)
    if len(names) > MOST_DIMENSIONS:
        raise _by_error(f"it names {len(names)} dimensions", accepted)
    return names


async def _check_labels(by: Sequence[str], caller: Caller) -> None:
    """Refuse labels of which no sum has or will have a value.

    Raises:
        InvalidParameter: with the labels that are accepted.
    """
    keys = label_keys(by)
    known = await caller.services.usage.labels(keys, caller.principal.id)
    wrong = next((key for key in keys if key not in known), None)
    if wrong is None:
        return
    accepted = _accepted_dimensions(*(LABEL + key for key in sorted(known)))
    detail = f"usage is not added up by the label {shorten(wrong)}"
    raise _by_error(detail, accepted if known else f"{accepted}; operators set labels with JOBGATE_USAGE_LABELS")


def _accepted_dimensions(*labels: str) -> str:
    return f"up to {MOST_DIMENSIONS} different ones of {', '.join([*Dimension, *labels])}"


def _by_error(detail: str, accepted: str) -> InvalidParameter:
    return parameter_error("query", "by", "InvalidParameter", detail, accepted)


def _days(first: date | None, last: date | None, today: date) -> tuple[date, date]:
    last = last or today
    # No day is before that with the number 1.
    first = first or date.fromordinal(max(1, last.toordinal() - DEFAULT_DAYS + 1))
    if first > last:
        raise parameter_error("query", "from", "InvalidParameter", f"{first} is after {last}", "a day until `to`")
    if (last - first).days >= MOST_DAYS:
        detail, accepted = f"these are {(last - first).days + 1} days", f"up to {MOST_DAYS} days until `to`"
        raise parameter_error("query", "from", "InvalidParameter", detail, accepted)
    return first, last


@router.get("/api/v1/usage", response_model=None, responses={200: {"model": UsagePage}})
async def get_usage(
    caller: CallerDep,
    wanted: Annotated[dict[str, Any], Depends(_query)],
    namespace: NamespaceFilter = None,
    answer: Annotated[UsageFormat, Query(alias="format", description="`csv` has all groups, without pages.")] = (
        UsageFormat.JSON
    ),
    page_size: PageSize = None,
    page_token: PageToken = None,
) -> Response:
    """Return what jobs of the namespaces that you may see have used.

    Jobs that still run or wait are counted until now. Days are those of UTC. A CSV is sent while it is read:
    if it cannot be completed, the connection is closed without a last chunk.
    """
    if answer is UsageFormat.CSV and page_token:
        raise parameter_error("query", "pageToken", "InvalidParameter", "a CSV has all groups", "none with format=csv")
    await _check_labels(wanted["by"], caller)
    usage, now = caller.services.usage, caller.services.clock.now()
    asked = {**wanted, "namespaces": caller.select_namespaces(namespace)}
    digest = paging.query_digest(["usage", asked])
    start = paging.decode(page_token, paging.UsageStart, digest) if page_token else None
    first, last = _days(asked["first"], asked["last"], now.date()) if start is None else (start.first, start.last)
    query = UsageQuery(**{**asked, "first": first, "last": last})
    if answer is UsageFormat.CSV:
        return UsageCsv(caller, query)
    behind = before_all(query) if start is None else _cursor(start, query)
    shown, end = await usage.page(query, behind, paging.page_size(page_size), caller.principal.id)
    token = None
    if end is not None:
        token = paging.encode(paging.UsageStart(query=digest, first=first, last=last, cursor=end))
    return Response(json_bytes(page_view(query, shown, token, now, usage.prices)), media_type=JSON, headers=PRIVATE)


def _cursor(start: paging.UsageStart, query: UsageQuery) -> Cursor:
    """Return the cursor behind which a page begins. A client may have made the token up."""
    if not is_cursor(start.cursor, query) or not 0 <= (start.last - start.first).days < MOST_DAYS:
        raise paging.invalid_token()
    return start.cursor
