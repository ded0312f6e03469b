"""Reads the log of a container as raw bytes."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime

from app.k8s.api import KubeApi
from app.k8s.resources import POD

FOLLOW_IDLE = 600.0  # seconds; a container can be silent for long, but a dead connection must end
READ_IDLE = 15.0
READ_TOTAL = 120.0
BUFFER = 64 * 1024  # bytes; twice as many wait in memory for a slow reader
SMALL_BUFFER = 16 * 1024  # for a process that follows thousands of logs


async def read_log(  # noqa: PLR0913 - the parameters of the API's own call
    api: KubeApi,
    namespace: str,
    pod: str,
    container: str,
    *,
    previous: bool = False,
    tail_lines: int | None = None,
    limit_bytes: int | None = None,
    since_time: datetime | None = None,
    timestamps: bool = False,
    follow: bool = False,
    buffer: int = BUFFER,
) -> AsyncGenerator[bytes, None]:
    """Yield the log in pieces of any size, as raw bytes.

    KubeBadRequest means that the container has not started or has no previous run. A followed log without output for
    ten minutes ends with SilentStream; continue with `since_time`.
    """
    params = {"container": container, "previous": _flag(previous), "timestamps": _flag(timestamps)}
    if tail_lines is not None:
        params["tailLines"] = str(tail_lines)
    if limit_bytes is not None:
        params["limitBytes"] = str(limit_bytes)
    if since_time is not None:
        params["sinceTime"] = since_time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    params["follow"] = _flag(follow)
    path = POD.path(namespace, pod, "log")
    idle, total = (FOLLOW_IDLE, None) if follow else (READ_IDLE, READ_TOTAL)
    async with aclosing(api.stream(path, params, idle=idle, total=total, buffer=buffer)) as pieces:
        async for piece in pieces:
            yield piece


def _flag(value: bool) -> str:  # noqa: FBT001 - it renders a flag
    return "true" if value else "false"
