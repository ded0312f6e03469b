"""The handlers of probes and lifecycle hooks: exec, httpGet, tcpSocket, grpc and sleep."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from devcluster.formats.numbers import whole_number
from devcluster.node.processes.process import Command, StartError, start

# The limit of a kubelet for the output of exec probes.
OUTPUT_LIMIT = 10 * 1024


class ActionError(Exception):
    """A handler failed; the message is the one that a kubelet reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerTarget:
    """The container that a handler acts on. `command` builds a process in the namespaces of the container."""

    container: Mapping[str, Any]
    pod_ip: str
    command: Callable[[tuple[str, ...]], Command]


async def perform(action: Mapping[str, Any], target: HandlerTarget, limit: float) -> None:
    """Run one handler, for at most `limit` seconds.

    Raises:
        ActionError: the handler failed or took too long.
    """
    try:
        async with asyncio.timeout(limit):
            await _dispatch(action, target)
    except TimeoutError as error:
        raise ActionError(
            f"command timed out after {limit:g}s" if "exec" in action else "context deadline exceeded"
        ) from error


def _dispatch(action: Mapping[str, Any], target: HandlerTarget) -> Coroutine[Any, Any, None]:
    if "exec" in action:
        return _exec(tuple(action["exec"].get("command") or ()), target)
    if "httpGet" in action:
        return _http(action["httpGet"], target)
    if "tcpSocket" in action:
        return _tcp(action["tcpSocket"], target)
    # The node has no gRPC client, so this probe only connects.
    if "grpc" in action:
        return _tcp(action["grpc"], target)
    if "sleep" in action:
        return asyncio.sleep(float(action["sleep"].get("seconds", 0)))
    raise ActionError("missing handler: expected exec, httpGet, tcpSocket, grpc or sleep")


async def _exec(argv: tuple[str, ...], target: HandlerTarget) -> None:
    output = bytearray()
    try:
        process = await start(target.command(argv), lambda _, data: output.extend(data))
    except StartError as error:
        raise ActionError(str(error)) from error
    try:
        code = await process.wait()
    # The command may have left processes, or the time limit may have passed.
    finally:
        process.kill()
    if code != 0:
        text = output[:OUTPUT_LIMIT].decode(errors="replace").strip()
        raise ActionError(text or f"command {' '.join(argv)!r} exited with {code}")


async def _http(spec: Mapping[str, Any], target: HandlerTarget) -> None:
    port = _port(spec["port"], target.container)
    host = spec.get("host") or target.pod_ip
    scheme = (spec.get("scheme") or "HTTP").lower()
    path = spec.get("path") or "/"
    url = f"{scheme}://{host}:{port}{path if path.startswith('/') else '/' + path}"
    headers = {h["name"]: h["value"] for h in spec.get("httpHeaders") or []}
    tls = ssl.create_default_context()
    # A kubelet does not verify the certificate either, since the container provides it itself.
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    try:
        async with (
            aiohttp.ClientSession(headers={"User-Agent": "kube-probe/1.36"} | headers) as session,
            session.get(url, ssl=tls, allow_redirects=False) as response,
        ):
            status = response.status
    except (aiohttp.ClientError, OSError) as error:
        raise ActionError(f'Get "{url}": {error}') from error
    if not 200 <= status < 400:
        raise ActionError(f"HTTP probe failed with statuscode: {status}")


async def _tcp(spec: Mapping[str, Any], target: HandlerTarget) -> None:
    host, port = spec.get("host") or target.pod_ip, _port(spec["port"], target.container)
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        raise ActionError(f"dial tcp {host}:{port}: {(error.strerror or str(error)).lower()}") from error
    writer.close()


def _port(port: int | str, container: Mapping[str, Any]) -> int:
    number = port if isinstance(port, int) else whole_number(port)
    if number is not None:
        return number
    for declared in container.get("ports") or []:
        if declared.get("name") == port:
            return int(declared["containerPort"])
    raise ActionError(f"couldn't find port: {port} in container {container['name']}")
