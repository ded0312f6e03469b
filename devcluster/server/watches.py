"""Watch streams: the changes of a resource, filtered by namespace and selectors."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import msgspec

from devcluster.errors import StatusError, expired
from devcluster.formats.selectors import Selector
from devcluster.registry.operations import ObjectAddress
from devcluster.registry.store import Change, ChangeLog, ChangeType, ObjectStore, Record, WindowPassedError
from devcluster.server import queries
from devcluster.server.tables import Tables

# A real API server ends a watch after 30 to 60 minutes.
_DEFAULT_TIMEOUT = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    address: ObjectAddress
    selector: Selector
    since: int | None
    bookmarks: bool
    initial_events: bool
    timeout: float
    tables: Tables | None


def parse(address: ObjectAddress, query: Mapping[str, str], *, tables: bool) -> WatchRequest:
    since = queries.watch_version(query)
    queries.check_initial_events(query)
    return WatchRequest(
        address=address,
        selector=queries.selector(address, query),
        since=since,
        bookmarks=queries.flag(query, "allowWatchBookmarks"),
        initial_events=queries.flag(query, "sendInitialEvents"),
        timeout=float(queries.number(query, "timeoutSeconds") or _DEFAULT_TIMEOUT),
        tables=Tables(address.resource, query) if tables else None,
    )


class WatchStream:
    """One watch. `lines()` yields one event with its newline at a time."""

    def __init__(self, store: ObjectStore, request: WatchRequest, bookmark_seconds: float) -> None:
        self._store = store
        self._request = request
        self._log: ChangeLog = store.logs[request.address.resource.key]
        self._bookmark_seconds = bookmark_seconds
        self._headers_due = True

    async def lines(self) -> AsyncIterator[bytes]:
        deadline = asyncio.get_running_loop().time() + self._request.timeout
        try:
            position = self._start()
            # The position precedes the list, and nothing is awaited in between, so that no change is missed.
            for line in self._initial():
                yield line
            while True:
                changes = self._log.read(position)
                position += len(changes)
                for change in changes:
                    line = self._line(change)
                    if line:
                        yield line
                if not await self._wait(position, deadline):
                    if asyncio.get_running_loop().time() >= deadline:
                        return
                    # A change may have come as the wait ran out. A bookmark must not be newer than what was not sent.
                    if self._request.bookmarks and position == self._log.end:
                        yield self._bookmark()
        # The version is too old, or the client reads too slowly. It must list again.
        except WindowPassedError:
            yield error_line(expired(f"too old resource version: {self._request.since or 0} ({self._log.compacted})"))

    async def _wait(self, position: int, deadline: float) -> bool:
        """Wait for a change beyond the position; return False if a bookmark or the end is due first."""
        left = deadline - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(min(left, self._bookmark_seconds), 0)):
                await self._log.wait_beyond(position)
        except TimeoutError:
            return False
        return True

    def _wants_state(self) -> bool:
        return not self._request.since or self._request.initial_events

    def _start(self) -> int:
        since = self._request.since
        return self._log.end if self._wants_state() or since is None else self._log.position_after(since)

    def _initial(self) -> list[bytes]:
        """Return the current state as ADDED events, if the client did not request changes since a version."""
        if not self._wants_state():
            return []
        address = self._request.address
        lines = [
            self._event(ChangeType.ADDED, record)
            for record in self._store.list_records(address.resource, address.namespace)
            if self._request.selector.matches(record.object)
        ]
        if self._request.initial_events and self._request.bookmarks:
            lines.append(self._bookmark(initial_end=True))
        return lines

    def _line(self, change: Change) -> bytes:
        namespace = self._request.address.namespace
        if namespace and change.record.namespace != namespace:
            return b""
        selector = self._request.selector
        if not selector:
            return self._event(change.type, change.record)
        before = change.previous is not None and selector.matches(change.previous.object)
        after = change.type is not ChangeType.DELETED and selector.matches(change.record.object)
        if after:
            return self._event(ChangeType.MODIFIED if before else ChangeType.ADDED, change.record)
        # To a client with a selector, an object that stops matching is deleted.
        if before and change.previous is not None:
            return self._event(ChangeType.DELETED, _last_seen(change, change.previous))
        return b""

    def _event(self, kind: ChangeType, record: Record) -> bytes:
        tables = self._request.tables
        if tables is None:
            return event_line(kind, record.full_body())
        metadata = {"resourceVersion": record.object["metadata"]["resourceVersion"]}
        return event_line(kind, tables.document(metadata, [record], headers=self._take_headers()))

    def _take_headers(self) -> bool:
        """Return True at the first call only: only the first table of a watch has column definitions."""
        due, self._headers_due = self._headers_due, False
        return due

    def _bookmark(self, *, initial_end: bool = False) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(self._store.version)}
        if initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        tables = self._request.tables
        if tables is not None:
            return event_line("BOOKMARK", tables.document(metadata, [], headers=self._take_headers()))
        body = self._request.address.resource.prefix + msgspec.json.encode({"metadata": metadata})[1:]
        return event_line("BOOKMARK", body)


def _last_seen(change: Change, previous: Record) -> Record:
    """Return an object that no longer matches as it last matched, with the version of the change."""
    if change.type is ChangeType.DELETED:
        return change.record
    obj = previous.fresh()
    obj["metadata"]["resourceVersion"] = str(change.version)
    return Record.of(previous.resource, previous.namespace, previous.name, obj, change.version)


def event_line(kind: str, body: bytes) -> bytes:
    return b"".join((b'{"type":"', kind.encode(), b'","object":', body, b"}\n"))


def error_line(error: StatusError) -> bytes:
    return event_line("ERROR", msgspec.json.encode(error.body()))
