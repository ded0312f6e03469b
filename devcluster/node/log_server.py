"""The part of the HTTPS API of a kubelet that an API server needs: container logs."""

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web

from devcluster import clock
from devcluster.formats.numbers import whole_number
from devcluster.formats.objects import container_named
from devcluster.node.containers.logs import LogOptions, read_log

# Seconds between two reads of a log that is followed.
FOLLOW_PAUSE = 0.1
PULL_WORDS = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class PodSource(Protocol):
    """Provides the pods of the node and their log files."""

    def find(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return the pod with its current status, or None."""

    def log_file(self, uid: str, container: str, restart: int) -> Path: ...


class LogUnavailableError(Exception):
    """There is no such log. The message is the one of a kubelet."""


def choose_restart(pod: Mapping[str, Any], container: str, *, previous: bool) -> tuple[int, bool]:
    """Return the number of the instance whose log is requested, and whether that instance is running.

    Raises:
        LogUnavailableError: the instance does not exist yet, or does not exist any more.
    """
    name = pod["metadata"]["name"]
    spec = pod["spec"]
    if container_named([*spec["containers"], *(spec.get("initContainers") or [])], container) is None:
        raise LogUnavailableError(f'container "{container}" not found in pod "{name}"')
    status = pod.get("status") or {}
    statuses = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    found = container_named(statuses, container) or {}
    state, last, count = found.get("state") or {}, found.get("lastState") or {}, found.get("restartCount", 0)
    if previous:
        if "terminated" not in last:
            raise LogUnavailableError(f'previous terminated container "{container}" in pod "{name}" not found')
        # Until the next instance starts, the restart count is still that of the last instance.
        return (count - 1 if count and not _is_of(last, count) else count), False
    if "running" in state or "terminated" in state:
        return count, "running" in state
    if "terminated" in last:
        return (count if _is_of(last, count) else count - 1), False
    reason = (state.get("waiting") or {}).get("reason", "ContainerCreating")
    words = PULL_WORDS.get(reason, reason)
    raise LogUnavailableError(f'container "{container}" in pod "{name}" is waiting to start: {words}')


def _is_of(state: Mapping[str, Any], restart: int) -> bool:
    # The id of a container ends in the number of its restart.
    return str(state["terminated"].get("containerID", "")).endswith(f"/{restart}")


def log_options(query: Mapping[str, str], now: datetime) -> LogOptions:
    """Read the query parameters of `GET /containerLogs/…`.

    Raises:
        ValueError: a parameter is malformed. The message names it.
    """
    since = clock.parse(query["sinceTime"]) if query.get("sinceTime") else None
    if seconds := _number(query, "sinceSeconds"):
        since = now - timedelta(seconds=seconds)
    return LogOptions(
        follow=_flag(query, "follow"),
        timestamps=_flag(query, "timestamps"),
        tail_lines=_number(query, "tailLines"),
        limit_bytes=_number(query, "limitBytes"),
        since=since,
    )


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in ("1", "t", "true")


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    number = whole_number(text)
    if number is None:
        raise ValueError(f"{name}: expected a whole number, not {text!r}")
    return number


class KubeletServer:
    """Serves container logs as an aiohttp application."""

    def __init__(self, pods: PodSource) -> None:
        self._pods = pods

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        application.router.add_get("/healthz", self._healthz)
        return application

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        container = request.match_info["container"]
        pod = self._pods.find(namespace, name)
        if pod is None:
            return web.Response(status=404, text=f'pod "{name}" not found\n')
        try:
            options = log_options(request.query, clock.now())
            restart, _ = choose_restart(pod, container, previous=_flag(request.query, "previous"))
        except (LogUnavailableError, ValueError) as error:
            return web.Response(status=400, text=str(error))
        path = self._pods.log_file(pod["metadata"]["uid"], container, restart)
        if not path.exists():
            return web.Response(text="")
        return await self._stream(request, pod["metadata"], container, restart, options)

    async def _stream(
        self,
        request: web.Request,
        metadata: Mapping[str, Any],
        container: str,
        restart: int,
        options: LogOptions,
    ) -> web.StreamResponse:
        def is_live() -> bool:
            pod = self._pods.find(metadata["namespace"], metadata["name"])
            if pod is None or pod["metadata"]["uid"] != metadata["uid"]:
                return False
            try:
                return choose_restart(pod, container, previous=False) == (restart, True)
            except LogUnavailableError:
                return False

        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        path = self._pods.log_file(metadata["uid"], container, restart)
        # A client that disconnects is no error.
        with contextlib.suppress(ConnectionResetError):
            await response.prepare(request)
            async for data in read_log(path, options, is_live=is_live, pause=lambda: asyncio.sleep(FOLLOW_PAUSE)):
                await response.write(data)
            await response.write_eof()
        return response
