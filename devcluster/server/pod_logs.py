"""Pod logs: the API server chooses the container, and streams the log from the node."""

from collections.abc import Mapping

import aiohttp
from aiohttp import web

from devcluster.errors import StatusError, bad_request, invalid, invalid_value, not_found
from devcluster.formats.objects import Object, spec, status
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.resources import NODES
from devcluster.server import queries

# The parameters that the kubelet evaluates.
_PASSED = ("follow", "tailLines", "sinceSeconds", "sinceTime", "timestamps", "previous", "limitBytes")
# The node is on this machine, so a connection takes milliseconds unless the node is gone.
_NODE_CONNECT_SECONDS = 5.0


def pick_container(pod: Object, asked: str) -> str:
    """Return the container whose log is requested.

    Raises:
        StatusError: the pod has no such container, or several and none is named.
    """
    name = pod["metadata"]["name"]
    containers = [item["name"] for item in spec(pod).get("containers") or []]
    init = [item["name"] for item in spec(pod).get("initContainers") or []]
    if asked:
        if asked not in containers + init:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(containers + init) == 1:
        return str(containers[0])
    names = " ".join(init + containers)
    raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{names}]")


def node_url(registry: Registry, pod: Object, container: str) -> str:
    """Return the URL of the log on the node, or an empty string for a pod without a node."""
    name = spec(pod).get("nodeName", "")
    if not name:
        return ""
    record = registry.store.get(NODES, "", name)
    if record is None:
        raise not_found("pods", name)
    addresses = {entry["type"]: entry["address"] for entry in status(record.object).get("addresses") or []}
    endpoint = (status(record.object).get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    host = addresses.get("InternalIP") or addresses.get("Hostname")
    if not host or not endpoint.get("Port"):
        raise StatusError(500, "InternalError", f"no preferred addresses found; known addresses: {list(addresses)}")
    metadata = pod["metadata"]
    path = f"{metadata['namespace']}/{metadata['name']}/{container}"
    return f"https://{host}:{endpoint['Port']}/containerLogs/{path}"


class LogProxy:
    """Streams container logs from nodes to clients."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def serve(self, request: web.Request, address: ObjectAddress) -> web.StreamResponse:
        pod = self._registry.get(ObjectAddress(address.resource, address.namespace, address.name)).object
        container = pick_container(pod, request.query.get("container", ""))
        for option in ("tailLines", "limitBytes", "sinceSeconds"):
            _check_positive(address.name, option, queries.number(request.query, option))
        url = node_url(self._registry, pod, container)
        if not url:
            return web.Response(status=204)
        query = {name: request.query[name] for name in _PASSED if name in request.query}
        return await self._stream(request, url, query)

    async def _stream(self, request: web.Request, url: str, query: Mapping[str, str]) -> web.StreamResponse:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_NODE_CONNECT_SECONDS)
            # Like a real API server without a configured authority, this one accepts any certificate of a kubelet. The
            # number of connections has no limit, since each client that follows a log needs one.
            self._session = aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(ssl=False, limit=0))
        try:
            answer = await self._session.get(url, params=query)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise StatusError(500, "InternalError", f'Get "{url}": {error}') from error
        async with answer:
            if answer.status != 200:
                raise _refusal(answer.status, (await answer.text()).strip())
            response = web.StreamResponse(headers={"Content-Type": "text/plain"})
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response


def _check_positive(name: str, option: str, value: int | None) -> None:
    # With tailLines=0, a client that follows the log gets only new lines.
    least = 0 if option == "tailLines" else 1
    if value is None or value >= least:
        return
    cause = invalid_value(option, value, f"must be greater than or equal to {least}")
    raise invalid("PodLogOptions", name, [cause])


def _refusal(code: int, text: str) -> StatusError:
    reasons = {400: "BadRequest", 404: "NotFound", 500: "InternalError", 503: "ServiceUnavailable"}
    return StatusError(code, reasons.get(code, ""), text or f"the node answered with HTTP {code}")
