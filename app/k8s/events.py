"""Reads the newest Events about an object.

The API server lists Events by name and not by time. client-go ends the name of an Event with the time of its first
occurrence, so the first page of a list has the oldest Events of an object.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from app.domain.kubernetes.objects import Event
from app.k8s.api import KubeApi
from app.k8s.codec import EVENT as EVENT_CODEC
from app.k8s.resources import EVENT

PAGE = 500
MAX_PAGES = 10  # any client with the right to create Events can add some about any object
MAX_PAGES_OF_NAMESPACE = 100
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


async def newest_events(
    api: KubeApi,
    namespace: str,
    field_selector: str,
    *,
    most: int,
    timeout: float,  # noqa: ASYNC109 - see Transport.request
) -> list[Event]:
    """Return at most `most` Events in the order of their last occurrence. `timeout` is seconds for each request."""
    newest: list[Event] = []
    token = ""
    for _ in range(MAX_PAGES):
        page = await api.list_page(
            EVENT,
            namespace,
            codec=EVENT_CODEC,
            field_selector=field_selector,
            limit=PAGE,
            continue_token=token,
            timeout=timeout,
        )
        newest = sorted([*newest, *page.items], key=_last_seen)[-most:]
        token = page.continue_token
        # Not the length of the page: with a selector, a page can have fewer objects than the limit.
        if not token:
            break
    return newest


async def newest_events_of(
    api: KubeApi,
    namespace: str,
    uids: Collection[str],
    *,
    most: int,
    timeout: float,  # noqa: ASYNC109 - see Transport.request
) -> Mapping[str, list[Event]]:
    """Return the newest Events of each of these objects by uid, at most `most`, the last one last.

    They come from one list of the Events of the namespace. Of more than PAGE * MAX_PAGES_OF_NAMESPACE, the Events whose
    names are last are not read.
    """
    found: dict[str, list[Event]] = {uid: [] for uid in uids}
    token = ""
    for _ in range(MAX_PAGES_OF_NAMESPACE):
        page = await api.list_page(
            EVENT, namespace, codec=EVENT_CODEC, limit=PAGE, continue_token=token, timeout=timeout
        )
        for event in page.items:
            if (of_object := found.get(event.involved_object.uid)) is not None:
                of_object.append(event)
                if len(of_object) >= 2 * most:
                    of_object[:] = sorted(of_object, key=_last_seen)[-most:]
        token = page.continue_token
        if not token:
            break
    return {uid: sorted(events, key=_last_seen)[-most:] for uid, events in found.items()}


def _last_seen(event: Event) -> datetime:
    return event.last_seen or _LONG_AGO
