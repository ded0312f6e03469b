"""The objects in memory, their version counter, and the change logs that watches read.

    put/remove ─▶ database (disk) ─▶ objects ─▶ log of that resource ─▶ watches
                                            └─▶ feeds of the controllers
Objects in the store are never changed in place: a writer changes a copy, from `Record.fresh()`, and puts it back.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

import msgspec

from devcluster.formats.objects import Object, owner_uids, uid
from devcluster.registry.database import Row, SqliteDatabase
from devcluster.resources import ApiResource, Catalog

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Object)


class ChangeType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """One version of one object. `body` is its JSON without kind and apiVersion."""

    resource: ApiResource
    namespace: str
    name: str
    version: int
    object: Object
    body: bytes

    @classmethod
    def of(cls, resource: ApiResource, namespace: str, name: str, obj: Object, version: int = 0) -> Self:
        return cls(resource, namespace, name, version, obj, _encoder.encode(obj))

    def fresh(self) -> Object:
        """Return a copy of the object, which the caller may change."""
        return _decoder.decode(self.body)

    def full_body(self) -> bytes:
        return self.resource.prefix + self.body[1:]


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    type: ChangeType
    record: Record
    previous: Record | None

    @property
    def version(self) -> int:
        return self.record.version


class WindowPassedError(Exception):
    """The log no longer contains the requested changes."""


class ChangeLog:
    """The last changes of one resource, by position. A reader that is too slow gets WindowPassedError."""

    def __init__(self, window: int, compacted: int) -> None:
        self._window = window
        self._changes: list[Change] = []
        self._base = 0
        self._waiters: set[asyncio.Future[None]] = set()
        self.compacted = compacted

    @property
    def end(self) -> int:
        return self._base + len(self._changes)

    def append(self, change: Change) -> None:
        self._changes.append(change)
        # Compacting at twice the window amortizes the deletion from the front of the list.
        if len(self._changes) >= 2 * self._window:
            self.compact(len(self._changes) - self._window)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def compact(self, count: int) -> None:
        """Forget the oldest `count` changes."""
        if count <= 0:
            return
        self.compacted = self._changes[count - 1].version
        del self._changes[:count]
        self._base += count

    def compact_all(self) -> None:
        self.compact(len(self._changes))

    def position_after(self, version: int) -> int:
        if version < self.compacted:
            raise WindowPassedError
        return self._base + bisect_right(self._changes, version, key=lambda change: change.version)

    def read(self, position: int) -> list[Change]:
        if position < self._base:
            raise WindowPassedError
        return self._changes[position - self._base :]

    async def wait_beyond(self, position: int) -> None:
        while self.end <= position:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            try:
                await waiter
            finally:
                self._waiters.discard(waiter)


RecordsByName = dict[str, Record]


class ObjectStore:
    """Holds the current version of each object, and publishes every change in the order of versions."""

    def __init__(self, catalog: Catalog, path: Path | None, window: int) -> None:
        self.catalog = catalog
        self._database = SqliteDatabase(path)
        # Version 0 has a special meaning in lists and watches.
        self.version = max(self._database.version(), 1)
        self._objects: dict[str, dict[str, RecordsByName]] = {row.key: {} for row in catalog.rows}
        self._by_uid: dict[str, Record] = {}
        self._dependents: dict[str, set[str]] = {}
        # Changes from before a start are not kept, so older versions get a 410, as after the restart of a real server.
        self.logs = {row.key: ChangeLog(window, self.version) for row in catalog.rows}
        self._feeds: list[asyncio.Queue[Change]] = []
        self._load()

    def _load(self) -> None:
        for row in self._database.rows():
            resource = self.catalog.by_key.get(row.resource)
            if resource is not None:
                obj = _decoder.decode(row.body)
                self._remember(Record(resource, row.namespace, row.name, row.version, obj, row.body))

    def close(self) -> None:
        self._database.close()

    def feed(self) -> asyncio.Queue[Change]:
        """Return a queue that receives every change from now on."""
        queue: asyncio.Queue[Change] = asyncio.Queue()
        self._feeds.append(queue)
        return queue

    def get(self, resource: ApiResource, namespace: str, name: str) -> Record | None:
        return self._objects[resource.key].get(namespace, {}).get(name)

    def by_uid(self, wanted: str) -> Record | None:
        return self._by_uid.get(wanted)

    def dependents(self, owner: str) -> list[Record]:
        found = (self._by_uid.get(dependent) for dependent in self._dependents.get(owner, ()))
        return [record for record in found if record is not None]

    def iterate(self, resource: ApiResource, namespace: str = "") -> Iterator[Record]:
        """Yield the records of one namespace, or of all namespaces, in no particular order."""
        spaces = self._objects[resource.key]
        if namespace:
            yield from spaces.get(namespace, {}).values()
            return
        for names in spaces.values():
            yield from names.values()

    def list_records(self, resource: ApiResource, namespace: str = "") -> list[Record]:
        return sorted(self.iterate(resource, namespace), key=lambda record: (record.namespace, record.name))

    def put(self, resource: ApiResource, namespace: str, name: str, obj: Object) -> Record:
        """Store the object with the next version, which is set in its metadata."""
        previous = self.get(resource, namespace, name)
        record = self._next(resource, namespace, name, obj)
        # The disk comes first: a change that is visible must survive a SIGKILL.
        self._database.put(Row(resource.key, namespace, name, record.version, record.body))
        if previous is not None:
            self._forget(previous)
        self._remember(record)
        self._publish(Change(ChangeType.MODIFIED if previous else ChangeType.ADDED, record, previous))
        return record

    def remove(self, record: Record) -> Record:
        """Delete the object, and return its last state, which has a version of its own."""
        final = self._next(record.resource, record.namespace, record.name, record.fresh())
        self._database.remove(Row(record.resource.key, record.namespace, record.name, final.version, b""))
        self._forget(record)
        self._publish(Change(ChangeType.DELETED, final, record))
        return final

    def _next(self, resource: ApiResource, namespace: str, name: str, obj: Object) -> Record:
        # A version that cannot be stored is skipped, and never used again.
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        return Record.of(resource, namespace, name, obj, self.version)

    def _remember(self, record: Record) -> None:
        self._objects[record.resource.key].setdefault(record.namespace, {})[record.name] = record
        own = uid(record.object)
        self._by_uid[own] = record
        for owner in owner_uids(record.object):
            self._dependents.setdefault(owner, set()).add(own)

    def _forget(self, record: Record) -> None:
        names = self._objects[record.resource.key][record.namespace]
        del names[record.name]
        if not names:
            del self._objects[record.resource.key][record.namespace]
        own = uid(record.object)
        self._by_uid.pop(own, None)
        for owner in owner_uids(record.object):
            siblings = self._dependents.get(owner, set())
            siblings.discard(own)
            if not siblings:
                self._dependents.pop(owner, None)

    def _publish(self, change: Change) -> None:
        self.logs[change.record.resource.key].append(change)
        for queue in self._feeds:
            queue.put_nowait(change)
