"""The proxy subresource of pods: forwards HTTP requests to a port of a pod."""

import aiohttp
from aiohttp import web
from yarl import URL

from devcluster.errors import StatusError, bad_request
from devcluster.formats.objects import Object, spec, status
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.server.addressing import ProxyTarget

_CONNECT_SECONDS = 5.0
# Headers that belong to one connection (RFC 9110, section 7.6.1).
_HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
    "upgrade", "host",
})  # fmt: skip
_CONSUMED = frozenset({"authorization"})
"""Headers that are not forwarded: the credentials are for this server, not for the pod."""


class PodPortProxy:
    """Forwards requests to pods and streams the answers back."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def serve(self, request: web.Request, address: ObjectAddress, target: ProxyTarget) -> web.StreamResponse:
        pod = self._registry.get(ObjectAddress(address.resource, address.namespace, address.name)).object
        url = f"{target.scheme}://{_host(pod)}:{target.port or _first_port(pod)}/{target.path}"
        if request.query_string:
            url += f"?{request.rel_url.raw_query_string}"
        headers = {
            name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP | _CONSUMED
        }
        body = request.content if request.can_read_body else None
        # The pod must receive the path exactly as the client sent it, so the URL is not normalized.
        exact = URL(url, encoded=True)
        try:
            answer = await self._client().request(
                request.method, exact, headers=headers, data=body, allow_redirects=False
            )
        except (aiohttp.ClientError, OSError) as error:
            raise StatusError(503, "ServiceUnavailable", f"error trying to reach service: {_words(error)}") from error
        async with answer:
            return await _relay(request, answer)

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
            connector = aiohttp.TCPConnector(ssl=False, limit=0)
            # The body is forwarded as the pod encoded it, together with its Content-Encoding.
            self._session = aiohttp.ClientSession(timeout=timeout, connector=connector, auto_decompress=False)
        return self._session


async def _relay(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, reason=answer.reason)
    for name, value in answer.headers.items():
        if name.lower() not in _HOP_BY_HOP | {"content-length"}:
            response.headers.add(name, value)
    response.content_length = answer.content_length
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response


def _words(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"dial tcp {error.host}:{error.port}: connect: {(error.os_error.strerror or str(error)).lower()}"
    return str(error)


def _host(pod: Object) -> str:
    found = status(pod).get("podIP")
    if not found:
        raise bad_request("address not allowed")
    return str(found)


def _first_port(pod: Object) -> int:
    for container in spec(pod).get("containers") or []:
        for port in container.get("ports") or []:
            return int(port["containerPort"])
    return 80
