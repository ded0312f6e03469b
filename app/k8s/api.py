"""The verbs of the Kubernetes API, for any resource."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import msgspec

from app.domain.objects import Object
from app.k8s.answers import error_from_status
from app.k8s.codec import OBJECT, Codec, ListPage, decode_page, load_json, load_object
from app.k8s.errors import BrokenAnswer
from app.k8s.resources import POD, KubeResource, resource_for
from app.k8s.transport import READ_BUFFER, ClusterEndpoint, Params, Transport, TransportLimits

MAX_LINE = 2**23  # bytes of one watch event: several times what etcd stores
WATCH_GRACE = 30.0  # seconds past a watch's own timeout after which we end it ourselves

T = TypeVar("T")


@unique
class WatchEventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One line of a watch. A bookmark's object has little more than a resource version."""

    type: WatchEventType
    object: T


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRequest:
    """HTTP to a pod's own port. Neither headers nor body are shown: they may hold what is secret."""

    method: str
    namespace: str
    pod: str
    address: str = ""
    port: int
    path: str
    params: Params = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)


@unique
class Propagation(StrEnum):
    """What becomes of the objects that a deleted object owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class KubeApi:
    """A cluster. `timeout` is in seconds, for the whole call; without it the session's limits hold."""

    def __init__(self, endpoint: ClusterEndpoint, limits: TransportLimits | None = None) -> None:
        self._transport = Transport(endpoint, limits or TransportLimits())
        self.url = endpoint.url

    @property
    def connections(self) -> int:
        """How many were opened so far. Behind a new one another server may answer than before."""
        return self._transport.connections

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def get(
        self,
        resource: KubeResource,
        name: str,
        namespace: str | None = None,
        *,
        codec: Codec[T],
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport.request
    ) -> T:
        """The object as it is now: a quorum read."""
        return codec.decode(await self._transport.request("GET", resource.path(namespace, name), timeout=timeout))

    async def list_page(
        self,
        resource: KubeResource,
        namespace: str | None = None,
        *,
        codec: Codec[T],
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport.request
    ) -> ListPage[T]:
        """One page of the newest list; `limit=0` asks for all of it at once."""
        params = _given(
            {
                "labelSelector": label_selector,
                "fieldSelector": field_selector,
                "limit": str(limit) if limit else "",
                "continue": continue_token,
            }
        )
        answer = await self._transport.request(
            "GET", resource.path(namespace), params, timeout=timeout or self._transport.limits.listing
        )
        return decode_page(answer, codec)

    async def list_all(
        self,
        resource: KubeResource,
        namespace: str | None = None,
        *,
        codec: Codec[T],
        label_selector: str = "",
        field_selector: str = "",
    ) -> list[T]:
        """Every object, page by page."""
        items: list[T] = []
        token = ""
        while True:
            page = await self.list_page(
                resource,
                namespace,
                codec=codec,
                label_selector=label_selector,
                field_selector=field_selector,
                continue_token=token,
            )
            items += page.items
            token = page.continue_token
            if not token:
                return items

    async def create(
        self,
        manifest: Mapping[str, Any],
        *,
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport.request
    ) -> Object:
        """Creates what the manifest says, in its namespace. Unknown fields are refused by the server."""
        resource = resource_for(manifest["apiVersion"], manifest["kind"])
        params = _given({"fieldValidation": "Strict", "dryRun": "All" if dry_run else ""})
        answer = await self._transport.request(
            "POST",
            resource.path(manifest["metadata"].get("namespace")),
            params,
            body=msgspec.json.encode(manifest),
            timeout=timeout,
        )
        return OBJECT.decode(answer)

    async def merge_patch(
        self,
        resource: KubeResource,
        name: str,
        namespace: str | None = None,
        *,
        patch: Mapping[str, Any],
        subresource: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport.request
    ) -> Object:
        """RFC 7386: objects merge, null removes, lists are replaced. A resourceVersion in it is a precondition."""
        return await self._patch(
            resource.path(namespace, name, subresource), patch, "application/merge-patch+json", timeout
        )

    async def json_patch(
        self,
        resource: KubeResource,
        name: str,
        namespace: str | None = None,
        *,
        patch: Sequence[Mapping[str, Any]],
        subresource: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport.request
    ) -> Object:
        """RFC 6902: operations in order; a `test` that fails is Invalid (422), and nothing is changed."""
        return await self._patch(
            resource.path(namespace, name, subresource), patch, "application/json-patch+json", timeout
        )

    async def _patch(
        self,
        path: str,
        patch: object,
        content_type: str,
        timeout: float | None,  # noqa: ASYNC109 - as above
    ) -> Object:
        answer = await self._transport.request(
            "PATCH",
            path,
            {"fieldValidation": "Strict"},
            body=msgspec.json.encode(patch),
            content_type=content_type,
            timeout=timeout,
        )
        return OBJECT.decode(answer)

    async def delete(
        self,
        resource: KubeResource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str,
        resource_version: str = "",
        grace_period: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport.request
    ) -> None:
        """Deletes this very object: Conflict when the name is another's by now. Grace 0 forces."""
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": _given({"uid": uid, "resourceVersion": resource_version}),
            "propagationPolicy": propagation.value,
        }
        if grace_period is not None:
            options["gracePeriodSeconds"] = grace_period
        await self._transport.request(
            "DELETE", resource.path(namespace, name), body=msgspec.json.encode(options), timeout=timeout
        )

    async def get_raw(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport.request
    ) -> dict[str, Any]:
        """A path that is no resource: /version, /apis."""
        return load_object(await self._transport.request("GET", path, timeout=timeout))

    async def ask_pod(
        self,
        request: PodRequest,
        *,
        most: int,
        timeout: float,  # noqa: ASYNC109 - see Transport.request
    ) -> bytes:
        """What a pod's port answers through the API server, its first `most` bytes.

        A status of 300 or more is a KubeStatusError, of the reason Unknown where it is the pod's own.
        """
        path = f"{POD.path(request.namespace, request.pod)}:{request.port}/proxy/{request.path}"
        return await self._transport.request(
            request.method,
            path,
            request.params,
            body=request.body,
            headers=request.headers,
            most=most,
            timeout=timeout,
        )

    async def watch(
        self,
        resource: KubeResource,
        namespace: str | None = None,
        *,
        codec: Codec[T],
        resource_version: str,
        timeout_seconds: int,
        idle: float,
        label_selector: str = "",
        opened: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """What happens after `resource_version`, with bookmarks, until the server ends it.

        `opened` is called when the server has accepted the watch, which it does without waiting for an event.
        An ERROR event is raised as the KubeStatusError that it holds, a line that is no event as BrokenAnswer.
        """
        params = _given(
            {
                "watch": "1",
                "allowWatchBookmarks": "true",
                "resourceVersion": resource_version,
                "timeoutSeconds": str(timeout_seconds),
                "labelSelector": label_selector,
            }
        )
        total = timeout_seconds + WATCH_GRACE
        async with self._transport.stream(resource.path(namespace), params, idle=idle, total=total) as pieces:
            opened()
            async for line in _lines(pieces):
                yield _event(line, codec)

    async def stream(
        self, path: str, params: Params, *, idle: float, total: float | None = None, buffer: int = READ_BUFFER
    ) -> AsyncGenerator[bytes, None]:
        """Any other stream, in pieces as they come."""
        async with self._transport.stream(path, params, idle=idle, total=total, buffer=buffer) as pieces:
            async for piece in pieces:
                yield piece


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_KNOWN_TYPES = {event_type.value: event_type for event_type in WatchEventType}


def _event(line: bytes, codec: Codec[T]) -> WatchEvent[T]:
    try:
        envelope = _ENVELOPE.decode(line)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BrokenAnswer(f"not a watch event ({error}): {line[:100]!r}") from error
    event_type = _KNOWN_TYPES.get(envelope.type)
    if event_type is not None:
        return WatchEvent(event_type, codec.decode(envelope.object))
    if envelope.type == "ERROR":
        status = load_json(bytes(envelope.object))
        raise error_from_status(status if isinstance(status, dict) else {})
    raise BrokenAnswer(f"a watch event of unknown type {envelope.type!r}")


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines; what the stream ends with, if it was cut within one, comes last."""
    rest = bytearray()
    async for piece in pieces:
        if b"\n" not in piece:
            rest += piece
        else:
            first, *others = piece.split(b"\n")
            yield bytes(rest) + first
            rest = bytearray(others.pop())
            for line in others:
                yield line
        if len(rest) > MAX_LINE:
            raise BrokenAnswer(f"a watch event of more than {MAX_LINE} bytes")
    if rest:
        yield bytes(rest)


def _given(params: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in params.items() if value}
