"""The client of the runtime servers of SampleSets, with two ways to reach a server.

    pod proxy     jobgate ──▶ API server ──▶ pod      from anywhere; needs the permission for pods/proxy
    pod address   jobgate ──▶ pod                     from inside the cluster's network; plain HTTP

Reads never raise: a server without a valid answer is in an unknown state. Posts raise, because the caller must retry.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import aiohttp
import msgspec
import yarl

from app.domain.cache.manifests.service import PORT
from app.domain.cache.reconcile.cache_status import ServerReport
from app.domain.cache.reconcile.progress import ServerProgress
from app.domain.cache.reconcile.values import ServerAnswer
from app.domain.cache.vocabulary import JobType, ServerJobState
from app.k8s.api import KubeApi, PodRequest
from app.k8s.errors import KubeError, KubeStatusError
from app.k8s.session.transport import read_beginning
from app.k8s.text import clean_text

TOKEN_HEADER: Final = "X-Jobgate-Token"  # noqa: S105  a header's name
FILENAME: Final = "filename"
MAX_ANSWER: Final = 2**20  # bytes of a result or a report; real ones are far smaller
MAX_MESSAGE: Final = 4_000  # characters of a server's message that are kept
CONNECT_SECONDS: Final = 3.0  # a pod on a lost node does not refuse connections
_REFUSAL_LENGTH: Final = 300  # characters of a refusal in an error message
# The reason of a KubeStatusError without a Status in its body: the pod answered, not the API server.
_FROM_A_POD: Final = "Unknown"


class NoAnswer(Exception):  # noqa: N818 - not always an error
    """A server was not reached or refused a request. The message has the reason and contains no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeServer:
    """One runtime server. `pod`, `node` and `address` are those of its pod."""

    index: int
    namespace: str
    pod: str
    node: str = ""
    address: str = ""
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes


class PodAccess(Protocol):
    """A way to send a request to a port of a pod."""

    async def send(self, request: PodRequest, seconds: float) -> Reply:
        """Send a request and return the answer, whatever its status.

        Raises:
            NoAnswer: there is no answer.
        """
        ...

    async def close(self) -> None: ...


class PodProxyAccess:
    """Sends requests through the pod proxy of the API server."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    async def send(self, request: PodRequest, seconds: float) -> Reply:
        try:
            return Reply(200, await self._api.ask_pod(request, most=MAX_ANSWER, timeout=seconds))
        except KubeStatusError as error:
            if error.reason != _FROM_A_POD:
                raise NoAnswer(str(error)) from error
            return Reply(error.status, error.message.encode())
        except KubeError as error:
            raise NoAnswer(str(error)) from error

    async def close(self) -> None:
        """Do nothing: the API client belongs to the caller."""


class PodAddressAccess:
    """Sends requests directly to the address of the pod. Proxy settings of the environment do not apply."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: PodRequest, seconds: float) -> Reply:
        if not request.address:
            raise NoAnswer(f"the pod {request.pod} has no address yet")
        host = f"[{request.address}]" if ":" in request.address else request.address
        url = yarl.URL(f"http://{host}:{request.port}/{request.path}", encoded=True)
        limit = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        try:
            async with self._open().request(
                request.method,
                url.update_query(request.params) if request.params else url,
                data=request.body,
                headers=request.headers,
                timeout=limit,
                allow_redirects=False,  # a redirect would carry the token elsewhere
            ) as answer:
                return Reply(answer.status, await read_beginning(answer, MAX_ANSWER))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer(f"{request.pod}: {str(error) or type(error).__name__}") from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers={"Accept-Encoding": "identity", "User-Agent": "jobgate"},
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


class _Result(msgspec.Struct):
    status: str
    message: str = ""
    progress: Any = None


_RESULT: Final = msgspec.json.Decoder(_Result)
_STATUSES: Final[Mapping[str, ServerJobState]] = {
    status.value: status for status in (ServerJobState.RUNNING, ServerJobState.SUCCESS, ServerJobState.FAIL)
}
_FIGURES: Final = {
    "total_size": "totalSize",
    "total_files": "totalFiles",
    "cached_size": "cachedSize",
    "disk_size": "diskSize",
    "disk_used": "diskUsed",
    "disk_avail": "diskAvail",
    "error_message": "errorMassage",
}


class RuntimeServers:
    """Asks and instructs runtime servers; `timeout` is in seconds for each request."""

    def __init__(self, access: PodAccess, *, timeout: float) -> None:
        self._access = access
        self.timeout = timeout

    async def answers(self, servers: Sequence[RuntimeServer], kind: JobType, job: str) -> tuple[ServerAnswer, ...]:
        """Return the state of the job with this name on each server."""
        return tuple(await asyncio.gather(*(self._answer(server, kind, job) for server in servers)))

    async def reports(self, servers: Sequence[RuntimeServer]) -> list[ServerReport | None]:
        """Return the cache report of each server, or None for a server without a valid answer."""
        return list(await asyncio.gather(*(self._report(server) for server in servers)))

    async def post(self, server: RuntimeServer, kind: JobType, job: str, options: bytes) -> None:
        """Post a job to the server unless it has the job already.

        Raises:
            NoAnswer: the server may or may not have received the job.
        """
        known = await self._get(server, f"{kind}Options/{job}")
        if known.status == 200:
            return
        reply = await self._send(server, "POST", f"upload/{kind}Options", name=job, body=options)
        _require_done(server, reply)

    async def terminate(self, server: RuntimeServer) -> None:
        """End the running job and the queued jobs of the server, and return when they have ended.

        Raises:
            NoAnswer: they may or may not have ended; a repeated request finds them ended.
        """
        path, params = "upload/clearOptions", {"terminate": "true"}
        reply = await self._send(server, "POST", path, name="terminate", params=params, body=b"{}")
        _require_done(server, reply)

    async def _answer(self, server: RuntimeServer, kind: JobType, job: str) -> ServerAnswer:
        unknown = ServerAnswer(index=server.index, status=ServerJobState.UNKNOWN)
        try:
            result = await self._get(server, f"{kind}Result/{job}")
            # A result implies the options, so one request is usually enough.
            if result.status != 404:
                return _read_result(server.index, result) or unknown
            options = await self._get(server, f"{kind}Options/{job}")
        except NoAnswer:
            return unknown
        states = {200: ServerJobState.WAITING, 404: ServerJobState.NOT_POSTED}
        return ServerAnswer(index=server.index, status=states.get(options.status, ServerJobState.UNKNOWN))

    async def _report(self, server: RuntimeServer) -> ServerReport | None:
        try:
            reply = await self._get(server, "cacheStatus/cacheInfo.json")
        except NoAnswer:
            return None
        return _read_report(server.node, reply)

    async def _get(self, server: RuntimeServer, path: str) -> Reply:
        return await self._send(server, "GET", path)

    async def _send(
        self,
        server: RuntimeServer,
        method: str,
        path: str,
        *,
        name: str = "",
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Reply:
        headers = {TOKEN_HEADER: server.token}
        if name:
            headers |= {FILENAME: name, "Content-Type": "application/json"}
        request = PodRequest(
            method=method,
            namespace=server.namespace,
            pod=server.pod,
            address=server.address,
            port=PORT,
            path=path,
            params=params or {},
            headers=headers,
            body=body,
        )
        return await self._access.send(request, self.timeout)


def _require_done(server: RuntimeServer, reply: Reply) -> None:
    if reply.status != 200:
        message = clean_text(reply.body[:_REFUSAL_LENGTH]).strip()
        raise NoAnswer(f"the runtime server {server.pod} answered {reply.status}: {message}")


def _read_result(index: int, reply: Reply) -> ServerAnswer | None:
    if reply.status != 200:
        return None
    try:
        result = _RESULT.decode(reply.body)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    status = _STATUSES.get(result.status)
    message, progress = clean_text(result.message)[:MAX_MESSAGE], _read_progress(result.progress)
    return None if status is None else ServerAnswer(index=index, status=status, message=message, progress=progress)


def _read_progress(value: Any) -> ServerProgress | None:
    """Return the progress in a result. Without a valid one, the result is valid nevertheless."""
    if value is None:
        return None
    try:
        return msgspec.convert(value, ServerProgress)
    except msgspec.ValidationError:
        return None


def _read_report(node: str, reply: Reply) -> ServerReport | None:
    if reply.status != 200:
        return None
    try:
        figures = msgspec.json.decode(reply.body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError):
        return None
    texts = {name: figures.get(key, "") for name, key in _FIGURES.items()}
    kept = {name: clean_text(text)[:MAX_MESSAGE] for name, text in texts.items() if isinstance(text, str)}
    return ServerReport(node=node, **kept)
