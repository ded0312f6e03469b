"""The verbs of the Kubernetes API, for any resource."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from app.domain.kubernetes.objects import Object
from app.k8s.codec import OBJECT, Codec, ListPage, decode_page, load_object
from app.k8s.resources import POD, KubeResource, resource_for
from app.k8s.session.latency import CallTimes
from app.k8s.session.limits import TransportLimits
from app.k8s.session.transport import READ_BUFFER, ClusterEndpoint, Params, Transport
from app.k8s.session.watch_events import WatchEvent, decode_event, lines_of

WATCH_GRACE = 30.0  # seconds after a watch's own timeout at which the client ends it

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRequest:
    """A request to a port of a pod. Its repr omits headers and body, which may hold secrets."""

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
    """How the garbage collector treats the dependents of a deleted object."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class KubeApi:
    """A cluster. `timeout` is in seconds for the whole call; without it the limits of the session apply."""

    def __init__(self, endpoint: ClusterEndpoint, limits: TransportLimits | None = None) -> None:
        self._transport = Transport(endpoint, limits or TransportLimits())
        self.url = endpoint.url

    @property
    def connections(self) -> int:
        """The number of connections opened so far. A new connection may reach another server than the one before."""
        return self._transport.connections

    @property
    def call_times(self) -> CallTimes:
        """How long the latest calls took."""
        return self._transport.call_times

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
        """Read an object with a quorum read, so that the result is current."""
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
        """Read one page of a consistent list. With `limit=0` the list has a single page."""
        params = _without_unset(
            {
                "labelSelector": label_selector,
                "fieldSelector": field_selector,
                "limit": str(limit) if limit else "",
                "continue": continue_token,
            }
        )
        answer = await self._transport.request(
            "GET", resource.path(namespace), params, timeout=timeout or self._transport.limits.listing, verb="list"
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
        """List all objects, page by page."""
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
        """Create an object in the namespace of its manifest. The server refuses unknown fields."""
        return await self.create_as(manifest, OBJECT, dry_run=dry_run, timeout=timeout)

    async def create_as(
        self,
        manifest: Mapping[str, Any],
        codec: Codec[T],
        *,
        dry_run: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport.request
        on_warning: Callable[[str], None] | None = None,
    ) -> T:
        """Do what `create` does, and decode the created object with the codec of its resource.

        `on_warning` gets the warnings of the server about the object.
        """
        resource = resource_for(manifest["apiVersion"], manifest["kind"])
        params = _without_unset({"fieldValidation": "Strict", "dryRun": "All" if dry_run else ""})
        path = resource.path(manifest["metadata"].get("namespace"))
        answer, warnings = await self._transport.post(path, params, msgspec.json.encode(manifest), timeout)
        if on_warning is not None:
            for warning in warnings:
                on_warning(warning)
        return codec.decode(answer)

    async def check_create(self, manifest: Mapping[str, Any]) -> list[str]:
        """Let the server check the creation of an object without creating it, and return its warnings.

        The server checks what it would check for `create`, and raises the same errors.
        """
        resource = resource_for(manifest["apiVersion"], manifest["kind"])
        params = {"fieldValidation": "Strict", "dryRun": "All"}
        path = resource.path(manifest["metadata"].get("namespace"))
        _, warnings = await self._transport.post(path, params, msgspec.json.encode(manifest))
        return warnings

    async def merge_patch(
        self,
        resource: KubeResource,
        name: str,
        namespace: str | None = None,
        *,
        patch: Mapping[str, Any],
        subresource: str | None = None,
        strategic: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport.request
    ) -> Object:
        """Apply a merge patch (RFC 7386), or one that changes lists of built-in types item by item (`strategic`).

        A resourceVersion in the patch is a precondition.
        """
        kind = "application/strategic-merge-patch+json" if strategic else "application/merge-patch+json"
        return await self._patch(resource.path(namespace, name, subresource), patch, kind, timeout)

    async def json_patch(
        self,
        resource: KubeResource,
        name: str,
        namespace: str | None = None,
        *,
        patch: Sequence[Mapping[str, Any]],
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport.request
    ) -> Object:
        """Apply a JSON patch (RFC 6902). If a `test` fails, nothing changes and KubeInvalid is raised."""
        return await self._patch(resource.path(namespace, name), patch, "application/json-patch+json", timeout)

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
            headers={"Content-Type": content_type},
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
    ) -> bytes:
        """Delete the object with this uid. A grace period of 0 seconds deletes a pod by force.

        Returns the answer: the object as the deletion leaves it, or a Status without one.

        Raises:
            KubeConflict: another object has the name now.
        """
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": _without_unset({"uid": uid, "resourceVersion": resource_version}),
            "propagationPolicy": propagation.value,
        }
        if grace_period is not None:
            options["gracePeriodSeconds"] = grace_period
        return await self._transport.request(
            "DELETE", resource.path(namespace, name), body=msgspec.json.encode(options), timeout=timeout
        )

    async def get_raw(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport.request
    ) -> dict[str, Any]:
        """Read a path that is not a resource, such as /version or /apis."""
        return load_object(await self._transport.request("GET", path, timeout=timeout))

    async def ask_pod(
        self,
        request: PodRequest,
        *,
        most: int,
        timeout: float,  # noqa: ASYNC109 - see Transport.request
    ) -> bytes:
        """Send a request to a pod through the API server, and return the first `most` bytes of the answer.

        A status of 300 or more raises KubeStatusError. Its reason is Unknown if the pod sent the answer.
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
            verb="proxy",
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
        """Watch the changes after `resource_version`, with bookmarks, until the server ends the watch.

        `opened` is called when the server has accepted the watch, before the first event.
        An ERROR event is raised as the KubeStatusError that it holds, and a malformed line as BrokenAnswer.
        """
        params = _without_unset(
            {
                "watch": "1",
                "allowWatchBookmarks": "true",
                "resourceVersion": resource_version,
                "timeoutSeconds": str(timeout_seconds),
                "labelSelector": label_selector,
            }
        )
        total = timeout_seconds + WATCH_GRACE
        path = resource.path(namespace)
        async with self._transport.stream(path, params, verb="watch", idle=idle, total=total) as pieces:
            opened()
            async for line in lines_of(pieces):
                yield decode_event(line, codec)

    async def stream(
        self, path: str, params: Params, *, idle: float, total: float | None = None, buffer: int = READ_BUFFER
    ) -> AsyncGenerator[bytes, None]:
        """Read a log in pieces as they arrive."""
        async with self._transport.stream(path, params, verb="log", idle=idle, total=total, buffer=buffer) as pieces:
            async for piece in pieces:
                yield piece


def _without_unset(params: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in params.items() if value}
