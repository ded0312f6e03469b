"""Answers list requests of the embedded API server, complete or in pages (`limit`, `continue`).

All pages of a list show the state at the time of the first page, which keeps the records for the others.
"""

import base64
import json
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from devcluster.errors import bad_request, expired
from devcluster.formats.selectors import Selector
from devcluster.registry.operations import ObjectAddress
from devcluster.registry.store import ObjectStore, Record
from devcluster.resources import ApiResource
from devcluster.server import queries

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter."
)
# Older tokens expire, which bounds the memory. A real server keeps five minutes of history.
_SNAPSHOTS = 64
_Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class ResourceList:
    """A part of a list, or a complete list, with the metadata of the list."""

    metadata: dict[str, Any]
    items: list[Record]


class Lister:
    """Lists resources. Keeps the records of the last lists that were requested in pages."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._snapshots: OrderedDict[_Key, list[Record]] = OrderedDict()

    def forget(self) -> None:
        """Invalidate all continue tokens."""
        self._snapshots.clear()

    def page(self, address: ObjectAddress, query: Mapping[str, str]) -> ResourceList:
        selector = queries.selector(address, query)
        asked = queries.version(query)
        limit = queries.number(query, "limit") or 0
        token = query.get("continue", "")
        if token:
            version, start, records = self._resume(address, token)
        else:
            version, start, records = (
                self._store.version,
                0,
                self._store.list_records(address.resource, address.namespace),
            )
            if asked is not None and asked > version:
                raise queries.too_large(asked, version)
            # A real API server answers resourceVersion=0 from its cache, without pages.
            if asked == 0:
                limit = 0
        items, end = _page(records, start, limit, selector)
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if end < len(records):
            self._remember((address.resource.key, address.namespace, version), records)
            last = records[end - 1]
            metadata["continue"] = _encode(version, last)
            # With a selector, a real server does not know the number of remaining items.
            if not selector:
                metadata["remainingItemCount"] = len(records) - end
        return ResourceList(metadata, items)

    def _remember(self, key: _Key, records: list[Record]) -> None:
        self._snapshots[key] = records
        self._snapshots.move_to_end(key)
        while len(self._snapshots) > _SNAPSHOTS:
            self._snapshots.popitem(last=False)

    def _resume(self, address: ObjectAddress, token: str) -> tuple[int, int, list[Record]]:
        version, after = _decode(token)
        records = self._snapshots.get((address.resource.key, address.namespace, version))
        if records is None:
            raise expired(_EXPIRED)
        start = bisect_right(records, after, key=lambda record: (record.namespace, record.name))
        return version, start, records


def _page(records: list[Record], start: int, limit: int, selector: Selector) -> tuple[list[Record], int]:
    """Return up to `limit` matching records from `start`, and the index at which the next page begins."""
    if not limit and not selector and not start:
        return records, len(records)
    found: list[Record] = []
    for index in range(start, len(records)):
        if selector.matches(records[index].object):
            if limit and len(found) == limit:
                return found, index
            found.append(records[index])
    return found, len(records)


def document(resource: ApiResource, page: ResourceList) -> bytes:
    """Render a page as JSON, in the list type of its resource."""
    bodies = [item.full_body() for item in page.items] if resource.custom else [item.body for item in page.items]
    head = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.group_version}","metadata":'.encode()
    return b"".join((head, msgspec.json.encode(page.metadata), b',"items":[', b",".join(bodies), b"]}"))


def _encode(version: int, last: Record) -> str:
    body = {"v": "meta.k8s.io/v1", "rv": version, "start": f"{last.namespace}/{last.name}"}
    return base64.urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("=")


def _decode(token: str) -> tuple[int, tuple[str, str]]:
    try:
        body = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, _, name = body["start"].partition("/")
        return int(body["rv"]), (namespace, name)
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
