"""The queues of Kueue, as the controller has recorded them."""

from typing import Annotated, Final

from fastapi import Path, Response
from pydantic import BaseModel

from app.api.answers.conditional import body_tag, matches_tag
from app.api.answers.responses import json_bytes, polled_response
from app.api.requests import paging
from app.api.requests.dependencies import CallerDep
from app.api.requests.paging import QueueStart
from app.api.requests.parameters import NO_NUL, IfNoneMatch, Namespace, NamespaceFilter, PageSize, PageToken
from app.api.routers import new_router
from app.api.views.queues import JobQueuePage, JobQueueView, page_view, queue_view
from app.db.queues import QueueKey
from app.services.access import Verb
from app.services.reading.freshness import Freshness

router = new_router("queues")

QueueName = Annotated[str, Path(description="Name of the LocalQueue.", min_length=1, max_length=253, pattern=NO_NUL)]
_FIRST: Final = QueueKey("", "")


@router.get("/api/v1/queues", response_model=None, responses={200: {"model": JobQueuePage}})
async def list_queues(
    caller: CallerDep,
    namespace: NamespaceFilter = None,
    page_size: PageSize = None,
    page_token: PageToken = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """List the queues of all namespaces that you may see, by namespace and name, each with its first pending jobs.

    `kueue` reports whether there are no queues, or jobgate cannot read them.
    """
    namespaces = caller.select_namespaces(namespace)
    query, size = paging.query_digest(["queues", namespaces]), paging.page_size(page_size)
    after = _FIRST
    if page_token:
        start = paging.decode(page_token, QueueStart, query)
        after = QueueKey(start.namespace, start.name)
    # One more queue than the page shows, to know whether another page follows.
    found = await caller.services.queues.page(namespaces, after, size + 1)
    shown = list(found.rows[:size])
    token = None
    if len(found.rows) > size:
        token = paging.encode(QueueStart(query=query, namespace=shown[-1].namespace, name=shown[-1].name))
    return _response(page_view(shown, found.kueue, token), found.freshness, if_none_match)


@router.get(
    "/api/v1/namespaces/{namespace}/queues/{name}", response_model=None, responses={200: {"model": JobQueueView}}
)
async def get_queue(
    namespace: Namespace, name: QueueName, caller: CallerDep, *, if_none_match: IfNoneMatch = None
) -> Response:
    """Return a queue: its quota, how much of it is in use, and the jobs that wait in their order."""
    caller.require(Verb.READ, namespace)
    found = await caller.services.queues.get(QueueKey(namespace, name))
    return _response(queue_view(found.rows[0]), found.freshness, if_none_match)


def _response(view: BaseModel, freshness: Freshness, if_none_match: str | None) -> Response:
    body = json_bytes(view)
    tag = body_tag(body)
    return polled_response(None if matches_tag(if_none_match, tag) else body, tag, freshness)
