"""Every change of jobs, as server-sent events."""

from collections.abc import Sequence
from typing import Final

from fastapi import APIRouter, Response

from app.api.broadcast import Told
from app.api.dependencies import CallerDep
from app.api.parameters import Name, Namespace, NamespaceFilter
from app.api.rendering import status_view
from app.api.streaming import LastEventId, LastEventIdQuery, documented, stream
from app.api.views import WatchEventView
from app.db.feed import FeedEvent
from app.services.access import Verb
from app.services.gateway import Services
from app.services.reading import Address
from app.services.watching import Interest

router = APIRouter(tags=["watch"])

_DOCUMENTED: Final = documented("job", WatchEventView.__name__)


@router.get("/api/v1/watch", response_model=None, responses=_DOCUMENTED)
async def watch_jobs(
    caller: CallerDep,
    namespace: NamespaceFilter = None,
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
) -> Response:
    """Hear of every change of the jobs that you may see."""
    interest = Interest(namespaces=caller.narrowed(namespace))
    return await stream(caller, interest, last_event_id or last_event_id_query, _tell)


@router.get("/api/v1/namespaces/{namespace}/jobs/{name}/watch", response_model=None, responses=_DOCUMENTED)
async def watch_job(
    namespace: Namespace,
    name: Name,
    caller: CallerDep,
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
) -> Response:
    """Hear of every change of one job."""
    caller.require(Verb.READ, namespace)
    version = await caller.services.reading.version(Address(namespace=namespace, name=name))
    return await stream(caller, Interest(job_uid=version.uid), last_event_id or last_event_id_query, _tell)


async def _tell(services: Services, events: Sequence[FeedEvent]) -> list[Told]:
    """Each event with its job as it is now."""
    jobs = await services.reading.summaries({event.job_uid for event in events})
    views = {uid: status_view(job) for uid, job in jobs.items()}
    return [
        Told(event.seq, "job", WatchEventView(type=event.type, at=event.at, job=views[event.job_uid]))
        for event in events
        if event.job_uid in views
    ]
