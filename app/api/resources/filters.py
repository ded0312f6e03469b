"""The filters of lists as query parameters. All routes that select objects of a resource have them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import GenericAlias
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Depends, Query
from pydantic import Field

from app.api.answers.errors import parameter_error
from app.api.requests.dependencies import CallerDep
from app.api.requests.parameters import NO_NUL, Timestamp, json_schema, require_utc
from app.api.resources.resource import Resource
from app.domain.access.actors import Actor, is_identity
from app.domain.errors import InvalidManifest
from app.domain.kubernetes.selectors import MAX_SELECTOR_LENGTH, SELECTOR_PATTERN, Requirement, parse_selector
from app.domain.listing import Criteria

_MAX_UIDS: Final = 100
_ME: Final = "me"
_TEXT: Final[dict[str, Any]] = {"min_length": 1, "max_length": 253, "pattern": NO_NUL}


async def _common_filters(  # noqa: PLR0913 - one argument for each query parameter
    caller: CallerDep,
    *,
    kind: Annotated[
        list[Annotated[str, Field(**json_schema(pattern=NO_NUL))]] | None,
        Query(description="Only objects of these kinds.", max_length=20),
    ] = None,
    name: Annotated[str | None, Query(description="Only objects with this name.", **_TEXT)] = None,
    prefix: Annotated[str | None, Query(description="Only objects with names that start with this.", **_TEXT)] = None,
    search: Annotated[str | None, Query(description="Only objects with names that contain this.", **_TEXT)] = None,
    uid: Annotated[
        list[UUID] | None,
        Query(description="Only objects with these uids, deleted ones included.", **json_schema(maxItems=_MAX_UIDS)),
    ] = None,
    label_selector: Annotated[
        str | None,
        Query(
            alias="labelSelector",
            description="A label selector as in kubectl, such as `team=vision,tier!=test`.",
            **json_schema(pattern=SELECTOR_PATTERN, maxLength=MAX_SELECTOR_LENGTH),
        ),
    ] = None,
    created_by: Annotated[
        str | None,
        Query(
            alias="createdBy",
            description="Only objects that this token or user submitted: a `createdById`, a name, or `me` for the "
            "caller. Several may have the same name.",
            **{**_TEXT, "max_length": 2048},
        ),
    ] = None,
    created_after: Annotated[Timestamp, Query(alias="createdAfter")] = None,
    created_before: Annotated[Timestamp, Query(alias="createdBefore")] = None,
    finished_after: Annotated[Timestamp, Query(alias="finishedAfter")] = None,
    finished_before: Annotated[Timestamp, Query(alias="finishedBefore")] = None,
    deleted: Annotated[bool, Query(description="Also deleted objects.")] = False,
) -> Criteria:
    if uid and len(uid) > _MAX_UIDS:
        raise parameter_error("query", "uid", "TooMany", f"is given {len(uid)} times", f"at most {_MAX_UIDS} times")
    creator_name, creator_id = _creator(created_by, caller.actor)
    return Criteria(
        kinds=_without_nul(kind),
        name=name,
        prefix=prefix,
        search=search,
        uids=uid or (),
        labels=_requirements(label_selector),
        creator_name=creator_name,
        creator_id=creator_id,
        created_after=require_utc("createdAfter", created_after),
        created_before=require_utc("createdBefore", created_before),
        finished_after=require_utc("finishedAfter", finished_after),
        finished_before=require_utc("finishedBefore", finished_before),
        deleted=deleted,
    )


CommonFilters = Annotated[Criteria, Depends(_common_filters)]
"""The filters that all resources have."""


def set_filter(resource: Resource) -> Any:
    """Return the dependency for the query parameter `set`, if the resource has it."""
    return _set_filter if resource.is_about_set else _no_set_filter


async def _set_filter(
    set_name: Annotated[
        str | None,
        Query(alias="set", description="Only objects that concern the SampleSet of this name.", **_TEXT),
    ] = None,
) -> str | None:
    return set_name


async def _no_set_filter() -> None:
    """Stand in for `_set_filter` in resources that concern no SampleSet, so that `set` is an unknown parameter."""


def job_filters(resource: Resource) -> Any:
    """Return the dependency for the query parameters `stillRunning` and `queue`, if the resource has them."""
    return _job_filters if resource.has_replicas else _no_job_filters


async def _job_filters(
    *,
    still_running: Annotated[
        bool, Query(alias="stillRunning", description="Only jobs that have ended, and of which replicas still run.")
    ] = False,
    queue: Annotated[str | None, Query(description="Only jobs with the queue of this name.", **_TEXT)] = None,
) -> Mapping[str, Any]:
    return {"still_running": still_running, "queue": queue}


async def _no_job_filters() -> Mapping[str, Any]:
    """Stand in for `_job_filters` in resources without replicas, so that these are unknown parameters."""
    return {}


def phase_filter(resource: Resource) -> Any:
    """Return the dependency for the query parameter `phase`, whose values are the phases of the resource."""

    async def phases(phase: Any = None) -> Sequence[str]:
        return phase or ()

    query = Query(description="Only objects in one of these phases.")
    phases.__annotations__["phase"] = Annotated[GenericAlias(list, (resource.phases,)) | None, query]
    return phases


def filters(resource: Resource) -> Any:
    """Return the dependency for the filter of a request, without its namespaces. It raises InvalidParameter."""

    async def all_filters(
        common: CommonFilters,
        phases: Annotated[Sequence[str], Depends(phase_filter(resource))],
        set_name: Annotated[str | None, Depends(set_filter(resource))],
        of_jobs: Annotated[Mapping[str, Any], Depends(job_filters(resource))],
    ) -> Criteria:
        return replace(common, phases=phases, set_name=set_name, **of_jobs)

    return all_filters


def _creator(text: str | None, caller: Actor) -> tuple[str | None, str | None]:
    """Return the name or the identity that a filter names."""
    if text == _ME:
        return None, caller.id
    return (None, text) if text is not None and is_identity(text) else (text, None)


def _requirements(label_selector: str | None) -> tuple[Requirement, ...]:
    if label_selector is None:
        return ()
    try:
        return parse_selector(label_selector, "/query/labelSelector")
    except InvalidManifest as error:
        first = error.errors[0]
        raise parameter_error("query", "labelSelector", first.code, first.detail, first.accepted) from error


def _without_nul(kinds: list[str] | None) -> list[str]:
    """Return the kinds. Raises InvalidParameter for a NUL character, which PostgreSQL does not accept in text."""
    if kinds and any("\0" in kind for kind in kinds):
        raise parameter_error("query", "kind", "InvalidParameter", "contains a NUL character", "the name of a kind")
    return kinds or []
