"""Connects to the cluster of a kubeconfig, or to the cluster of the surrounding pod.

kubernetes_asyncio reads the files, merges them, runs exec plugins and refreshes tokens.
"""

import asyncio
import os
import ssl
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from app.base.clock import Clock, SystemClock
from app.base.configured_files import check_file
from app.k8s.api import KubeApi
from app.k8s.errors import ClusterNotConfigured, KubeUnauthorized
from app.k8s.session.limits import TransportLimits
from app.k8s.session.transport import Anonymous, ClusterCredentials, ClusterEndpoint

DEFAULT_KUBECONFIG = "~/.kube/config"
TOKEN_CHECK = 60.0  # seconds between checks of a token; kubelets rotate service account tokens after an hour
IN_CLUSTER = "KUBERNETES_SERVICE_HOST"


async def connect(*, kubeconfig: str | None, context: str | None, limits: TransportLimits | None = None) -> KubeApi:
    """Return a client of the configured cluster, without sending a request.

    Looked for, in this order: `kubeconfig` (or several, joined by the path separator), $KUBECONFIG,
    ~/.kube/config, the service account of a pod.
    """
    endpoint = await load_endpoint(kubeconfig=kubeconfig, context=context, clock=SystemClock())
    return KubeApi(endpoint, limits)


async def load_endpoint(*, kubeconfig: str | None, context: str | None, clock: Clock) -> ClusterEndpoint:
    """Return the address and credentials of the configured cluster. Raises ClusterNotConfigured if there is none."""
    paths = _paths(kubeconfig)
    if paths is None and IN_CLUSTER not in os.environ:
        raise ClusterNotConfigured(
            f"no cluster is configured: no kubeconfig was given, $KUBECONFIG is not set, {DEFAULT_KUBECONFIG} does "
            f"not exist, and ${IN_CLUSTER} is not set, as it would be inside a pod"
        )
    library = await asyncio.to_thread(kubernetes_library)
    config, configuration = library.config, library.client.Configuration()
    where = paths or "the service account of this pod"
    try:
        if paths is None:
            read_pod = partial(_read_service_account, config, configuration)
            await read_pod(again=False)
            return _endpoint(configuration, BearerToken(read_pod, clock))
        loader = await config.load_kube_config(config_file=paths, context=context, client_configuration=configuration)
        if "BearerToken" not in configuration.api_key:
            return _endpoint(configuration, Anonymous())
        return _endpoint(configuration, BearerToken(partial(_read_user, loader, configuration), clock))
    except Exception as error:  # a malformed kubeconfig can raise any exception in the loader
        raise ClusterNotConfigured(f"{where} leads to no cluster: {str(error) or type(error).__name__}") from error


def kubernetes_library() -> Any:
    """Return the package kubernetes_asyncio."""
    # Its models take 220 ms of CPU time and 35 MiB, which commands and processes without a cluster do not need.
    import kubernetes_asyncio  # noqa: PLC0415

    return kubernetes_asyncio


async def _read_service_account(config: Any, configuration: Any, *, again: bool) -> str:
    """Read the token of the pod, which the kubelet rotates. A retry only reads the file again."""
    del again
    config.load_incluster_config(client_configuration=configuration)
    return str(configuration.api_key["BearerToken"])


async def _read_user(loader: Any, configuration: Any, *, again: bool) -> str:
    """Return the token of the kubeconfig's user, read again from its source if it is about to expire or if `again`."""
    by_plugin = "exec" in loader._user  # noqa: SLF001 - the loader's own refresh_token() reads it too
    expires = hasattr(loader, "exec_plugin_expiry")
    if by_plugin and again and expires:
        del loader.exec_plugin_expiry
    # A plugin that states no expiry would run for every request. Its token is used until it is refused.
    if not by_plugin or again or expires:
        await loader.load_and_set(configuration)
    return str(configuration.api_key["BearerToken"])


def _paths(kubeconfig: str | None) -> str | None:
    """Return the kubeconfig files to merge, or None to use the service account of the pod."""
    given = kubeconfig or os.environ.get("KUBECONFIG")
    if not given:
        default = Path(DEFAULT_KUBECONFIG).expanduser()
        return str(default) if default.is_file() else None
    named = "kubeconfig" if kubeconfig else "$KUBECONFIG"
    try:
        # As with kubectl, some of several files may be missing.
        existing = [path for part in given.split(os.pathsep) if part and (path := Path(part).expanduser()).exists()]
        for path in existing:
            check_file(path)
    except (OSError, RuntimeError) as error:  # a file or directory that cannot be read; a home of no user
        raise ClusterNotConfigured(f"no cluster is configured: {named} names {given}: {error}") from error
    if not existing:
        raise ClusterNotConfigured(f"no cluster is configured: {named} names {given}, which is no file")
    return given


def _endpoint(configuration: Any, credentials: ClusterCredentials) -> ClusterEndpoint:
    url = str(configuration.host)
    return ClusterEndpoint(
        url=url,
        tls=_tls(configuration) if url.startswith("https") else None,
        server_name=configuration.tls_server_name,
        proxy=configuration.proxy,
        credentials=credentials,
    )


def _tls(configuration: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    # The CAs of many clusters lack the key identifiers that strict verification needs. Go's clients accept them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class ReadToken(Protocol):
    """Reads the value of the header. `again` is True if the last value was refused."""

    async def __call__(self, *, again: bool) -> str: ...


class BearerToken:
    """An Authorization header that is read again after TOKEN_CHECK seconds, and when it was refused."""

    def __init__(self, read: ReadToken, clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._lock = asyncio.Lock()
        self._value: str | None = None
        self._due = 0.0

    async def authorization(self) -> str | None:
        if self._value is None or self._due <= self._clock.monotonic():
            await self._refresh(refused=None)
        return self._value

    async def renew(self) -> bool:
        refused = self._value
        await self._refresh(refused=refused)
        return self._value != refused

    async def _refresh(self, *, refused: str | None) -> None:
        """Read the token again if it is due or was refused: once for all requests that need it at the same time."""
        async with self._lock:
            due = self._value is None or self._due <= self._clock.monotonic()
            # Another request has read a newer token meanwhile.
            if not due and self._value != refused:
                return
            try:
                self._value = _header(await self._read(again=refused is not None))
            except Exception as error:  # a plugin can raise any exception; the old token may still be valid
                if self._value is None or refused is not None:
                    raise KubeUnauthorized(401, "Unauthorized", f"no token could be read: {error}") from error
            # Also after a failure, so that a plugin that fails does not run for every request.
            self._due = self._clock.monotonic() + TOKEN_CHECK


def _header(value: str) -> str:
    """Return the header without the newline at the end of token files."""
    return " ".join(value.split())
