"""A client of the Kubernetes API with the operations that a node needs."""

import asyncio
import base64
import ssl
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec
import yaml

from devcluster.errors import StatusError

MERGE_PATCH = "application/merge-patch+json"
# Seconds. A node must notice a lost API server before its Lease expires.
REQUEST_TIMEOUT = 15.0
# The server ends a watch after this time, which bounds how long a broken connection stays unnoticed.
WATCH_SECONDS = 120
WATCH_SLACK = 15.0
NO_ANSWER = 0
"""The code of a StatusError whose request got no valid answer."""
RETRY_BASE, RETRY_MAX = 0.1, 5.0  # seconds


def retry_delay(failures: int) -> float:
    """Return the seconds to wait after this many failures in a row; they double up to a maximum."""
    delay: float = min(RETRY_MAX, RETRY_BASE * 2 ** min(failures, 10))
    return delay


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCredentials:
    """The address of an API server, and the credentials for it."""

    server: str
    tls: ssl.SSLContext | None
    token: str | None


def load_kubeconfig(path: Path) -> ApiCredentials:
    """Read server, certificate authority and credentials of the current context.

    Raises:
        ValueError: the file is incomplete, or uses a login plug-in.
    """
    config = yaml.safe_load(path.read_text())
    if not isinstance(config, dict):
        raise ValueError(f"{path}: not a kubeconfig")  # noqa: TRY004
    context = _find_named(config, "contexts", "context", config.get("current-context"), path)
    cluster = _find_named(config, "clusters", "cluster", context.get("cluster"), path)
    user = _find_named(config, "users", "user", context.get("user"), path) if context.get("user") else {}
    if "exec" in user or "auth-provider" in user:
        raise ValueError(f"{path}: the node agent takes a token or a client certificate, not a login plug-in")
    token = user.get("token")
    if not token and user.get("tokenFile"):
        token = (path.parent / user["tokenFile"]).read_text().strip()
    server = str(cluster["server"]).rstrip("/")
    tls = _tls_context(cluster, user, path.parent) if server.startswith("https:") else None
    return ApiCredentials(server=server, tls=tls, token=token)


def _find_named(config: Mapping[str, Any], plural: str, singular: str, name: object, path: Path) -> dict[str, Any]:
    for entry in config.get(plural) or []:
        if entry.get("name") == name:
            return dict(entry.get(singular) or {})
    raise ValueError(f"{path}: no {singular} named {name!r} under {plural}")


def _tls_context(cluster: Mapping[str, Any], user: Mapping[str, Any], folder: Path) -> ssl.SSLContext:
    authority = _material(cluster, "certificate-authority", folder)
    # With a CA of its own, the context does not load those of the system, which takes time.
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = (_material(user, f"client-{part}", folder) for part in ("certificate", "key"))
    if certificate and key:
        # OpenSSL reads client keys from files only.
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(certificate + b"\n" + key)
            pair.flush()
            context.load_cert_chain(pair.name)
    return context


def _material(section: Mapping[str, Any], field: str, folder: Path) -> bytes | None:
    if inline := section.get(f"{field}-data"):
        return base64.b64decode(inline)
    if section.get(field):
        return (folder / str(section[field])).read_bytes()
    return None


class KubeClient:
    """Sends requests over one HTTP session. Each request has a deadline."""

    def __init__(self, credentials: ApiCredentials) -> None:
        self.server = credentials.server
        self._tls: ssl.SSLContext | bool = credentials.tls or True
        self._headers = {"Authorization": f"Bearer {credentials.token}"} if credentials.token else {}
        self._session: aiohttp.ClientSession | None = None
        self._cut_until = 0.0

    def cut_off(self, seconds: float) -> None:
        """Fail all requests for this many seconds, as without a network. Pod scripts use this to play a lost node."""
        self._cut_until = time.monotonic() + seconds

    def _check_line(self, what: str) -> None:
        if time.monotonic() < self._cut_until:
            raise StatusError(NO_ANSWER, "CutOff", f"{what}: this node plays a lost node")

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=64, ssl=self._tls)
        self._session = aiohttp.ClientSession(connector=connector, headers=self._headers, auto_decompress=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session:
            await self._session.close()

    async def get(self, path: str, **params: str) -> dict[str, Any]:
        return await self.request("GET", path, params=params)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self.request("POST", path, body=body)

    async def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self.request("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def delete(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self.request("DELETE", path, body=body)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        """Send one request and return the decoded answer.

        Raises:
            StatusError: the API server refused the request, or did not answer in time.
        """
        self._check_line(f"{method} {path}")
        headers = {"Content-Type": content_type} if body is not None else {}
        data = msgspec.json.encode(body) if body is not None else None
        try:
            async with (
                asyncio.timeout(REQUEST_TIMEOUT),
                self._open().request(method, self.server + path, params=params, data=data, headers=headers) as response,
            ):
                raw = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise StatusError(NO_ANSWER, "Unreachable", f"{method} {path}: {error!r}") from error
        if response.status >= 400:
            raise _refusal(response.status, raw)
        return decode_object(raw)

    async def list_all(self, path: str, **params: str) -> tuple[list[dict[str, Any]], str]:
        """Return the items of all pages of a list, and the version to watch from."""
        items: list[dict[str, Any]] = []
        # The page size of client-go.
        page = await self.get(path, limit="500", **params)
        while True:
            items += page.get("items") or []
            metadata = page["metadata"]
            if not metadata.get("continue"):
                return items, metadata["resourceVersion"]
            page = await self.get(path, limit="500", **params, **{"continue": metadata["continue"]})

    async def watch(self, path: str, version: str, **params: str) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events after `version`, until the server ends the watch or goes silent.

        Raises:
            StatusError: the watch was refused or broken. After code 410 a new list is necessary.
        """
        self._check_line(f"watch {path}")
        query = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version}
        query |= {"timeoutSeconds": str(WATCH_SECONDS), **params}
        # The server ends the watch within this time, so a longer silence means a broken connection.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=WATCH_SECONDS + WATCH_SLACK)
        try:
            async with self._open().get(self.server + path, params=query, timeout=timeout) as response:
                if response.status >= 400:
                    raise _refusal(response.status, await response.read())
                async for line in _lines(response.content):
                    # An open watch must fall silent too while the node plays a lost one.
                    self._check_line(f"watch {path}")
                    yield _watch_event(line)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise StatusError(NO_ANSWER, "Unreachable", f"watch {path}: {error!r}") from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("KubeClient is used outside its `async with`")
        return self._session


async def _lines(content: aiohttp.StreamReader) -> AsyncGenerator[bytes, None]:
    rest = b""
    # readline would refuse a line beyond its limit, and a large object is one line.
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line.strip():
                yield line


def _watch_event(line: bytes) -> dict[str, Any]:
    event = decode_object(line)
    if event.get("type") == "ERROR":
        status = event.get("object") or {}
        raise StatusError(int(status.get("code") or 500), str(status.get("reason")), str(status.get("message")))
    return event


def decode_object(raw: bytes) -> dict[str, Any]:
    """Decode a JSON object.

    Raises:
        StatusError: the bytes are not a JSON object.
    """
    try:
        value = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise StatusError(NO_ANSWER, "InvalidAnswer", f"{error}: {raw[:200]!r}") from error
    if not isinstance(value, dict):
        raise StatusError(NO_ANSWER, "InvalidAnswer", f"not an object: {raw[:200]!r}")
    return value


def _refusal(status: int, raw: bytes) -> StatusError:
    try:
        answer = decode_object(raw)
    except StatusError:
        return StatusError(status, "Unknown", raw[:500].decode(errors="replace"))
    return StatusError(status, str(answer.get("reason", "Unknown")), str(answer.get("message", "")))
