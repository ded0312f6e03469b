"""From a kubeconfig, or from inside a pod, to a cluster.

kubernetes_asyncio reads the files, merges them, runs exec plugins and refreshes tokens. Importing it takes seconds
and tens of megabytes, so that is done when a cluster is wanted, and off the event loop.
"""

import asyncio
import os
import ssl
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from app.clock import Clock, SystemClock
from app.k8s.api import KubeApi
from app.k8s.errors import ClusterNotConfigured, KubeUnauthorized
from app.k8s.transport import Anonymous, ClusterCredentials, ClusterEndpoint, TransportLimits

DEFAULT_KUBECONFIG = "~/.kube/config"
TOKEN_CHECK = 60.0  # seconds between looks at whether a token is to be refreshed; kubelets rotate theirs after an hour
IN_CLUSTER = "KUBERNETES_SERVICE_HOST"


async def connect(
    *, kubeconfig: str | None, context: str | None, limits: TransportLimits | None = None, clock: Clock | None = None
) -> KubeApi:
    """The cluster that the arguments, the environment or the surrounding pod point to. Asks it nothing yet.

    Looked for, in this order: `kubeconfig` (or several, joined by the path separator), $KUBECONFIG,
    ~/.kube/config, the service account of a pod.
    """
    endpoint = await load_endpoint(kubeconfig=kubeconfig, context=context, clock=clock or SystemClock())
    return KubeApi(endpoint, limits)


async def load_endpoint(*, kubeconfig: str | None, context: str | None, clock: Clock) -> ClusterEndpoint:
    """Where the cluster is; ClusterNotConfigured says what was looked for."""
    paths = _paths(kubeconfig)
    if paths is None and IN_CLUSTER not in os.environ:
        raise ClusterNotConfigured(
            f"no cluster is configured: no kubeconfig was given, $KUBECONFIG is not set, {DEFAULT_KUBECONFIG} does "
            f"not exist, and ${IN_CLUSTER} is not set, as it would be inside a pod"
        )
    config = await asyncio.to_thread(import_module, "kubernetes_asyncio.config")
    configuration = import_module("kubernetes_asyncio.client").Configuration()
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
    except Exception as error:  # the loader asserts, subscripts and reads files: any exception may come of a bad one
        raise ClusterNotConfigured(f"{where} leads to no cluster: {str(error) or type(error).__name__}") from error


async def _read_service_account(config: Any, configuration: Any, *, again: bool) -> str:
    """The pod's token, which the kubelet rotates; reading the file is all there is to trying again."""
    del again
    config.load_incluster_config(client_configuration=configuration)
    return str(configuration.api_key["BearerToken"])


async def _read_user(loader: Any, configuration: Any, *, again: bool) -> str:
    """The kubeconfig user's token: its file, identity provider or plugin is asked when it is due, or `again`."""
    by_plugin = "exec" in loader._user  # noqa: SLF001 - the loader's own refresh_token() looks here too
    expires = hasattr(loader, "exec_plugin_expiry")
    if by_plugin and again and expires:
        del loader.exec_plugin_expiry
    # A plugin that names no expiry would be run every time; its token holds until it is refused.
    if not by_plugin or again or expires:
        await loader.load_and_set(configuration)
    return str(configuration.api_key["BearerToken"])


def _paths(kubeconfig: str | None) -> str | None:
    """The kubeconfig files to merge, or None for a pod's service account."""
    given = kubeconfig or os.environ.get("KUBECONFIG")
    if not given:
        default = Path(DEFAULT_KUBECONFIG).expanduser()
        return str(default) if default.is_file() else None
    if not any(Path(path).expanduser().is_file() for path in given.split(os.pathsep) if path):
        named = "kubeconfig" if kubeconfig else "$KUBECONFIG"
        raise ClusterNotConfigured(f"no cluster is configured: {named} names {given}, which does not exist")
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
    # Many clusters' own authorities lack the key identifiers that strictness asks for; Go's clients accept them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class ReadToken(Protocol):
    """Reads the header's present value; `again`, when the one it gave last was refused."""

    async def __call__(self, *, again: bool) -> str: ...


class BearerToken:
    """An Authorization header that is looked after: read again when it may have changed, and when it was refused."""

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
        """Reads it once, however many requests ask at the same time."""
        async with self._lock:
            due = self._value is None or self._due <= self._clock.monotonic()
            if not due and self._value != refused:
                return
            try:
                self._value = _header(await self._read(again=refused is not None))
            except Exception as error:  # a plugin or identity provider may fail in any way; the old token may still do
                if self._value is None or refused is not None:
                    raise KubeUnauthorized(401, "Unauthorized", f"no token could be had: {error}") from error
            self._due = self._clock.monotonic() + TOKEN_CHECK


def _header(value: str) -> str:
    """The header without the newline that token files end with."""
    return " ".join(value.split())
