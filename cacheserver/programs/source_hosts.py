"""The addresses of a sync: those that its hosts have when it starts.

The controller checks names. Which address a name has, only the resolver of the pod knows: it also takes a short name
for that of a Service. juicefs resolves the name again and follows redirects, which only a NetworkPolicy can confine.
"""

import contextlib
import ipaddress
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from app.domain.cache.source_limits import (
    LOCAL,
    NETWORK_STORAGES,
    Address,
    SourceLimits,
    hosts_of,
    is_named,
    literal_address,
    wrong_address,
    wrong_host,
)
from app.domain.cache.worker_hosts import worker_hosts
from cacheserver.errors import JobFailed
from cacheserver.options import SyncRequest

# The node of the pod, and the API server of the cluster.
_NODE_VARIABLES: Final = ("NODE_ADDRESS", "KUBERNETES_SERVICE_HOST")
# Without keys, the SDKs of these clouds would take those of the node from the metadata service.
NO_METADATA_KEYS: Final[Mapping[str, str]] = {"AWS_EC2_METADATA_DISABLED": "true", "GCE_METADATA_HOST": "127.0.0.1:9"}

Resolve: TypeAlias = Callable[..., Sequence[tuple[Any, ...]]]


def check_hosts(options: SyncRequest, resolve: Resolve = socket.getaddrinfo) -> None:
    """Check every host that a sync names, and its addresses. It blocks, because it resolves names.

    Raises:
        JobFailed: the limits of the sync forbid a host or an address.
    """
    scheme = options.source.partition("://")[0].lower()
    if scheme != LOCAL and scheme not in NETWORK_STORAGES:
        raise JobFailed(f"there is no storage {scheme}")
    of_source = [] if scheme == LOCAL else hosts_of(scheme + options.source[len(scheme) :])
    for host in (*of_source, *worker_hosts(options.worker), *worker_hosts(options.manager)):
        why = wrong_host(host, options.limits) or _wrong_addresses(host, options.limits, resolve)
        if why:
            raise JobFailed(f"the host {host} is refused: it {why}")


def _wrong_addresses(host: str, limits: SourceLimits, resolve: Resolve) -> str | None:
    named, node = is_named(host, limits), _node_addresses()
    # The first label of a name may be that of a bucket.
    bare = host.partition(".")[2]
    for name in (host, bare) if "." in bare and literal_address(host) is None else (host,):
        for canonical, address in _resolve(name, resolve):
            if why := wrong_address(address, limits, is_named=named, inside=node):
                return f"{why}: {address}"
            if canonical and not named and (why := wrong_host(canonical, limits)):
                return f"{why}: {canonical}"
    return None


def _resolve(name: str, resolve: Resolve) -> Iterator[tuple[str, Address]]:
    """Return the canonical name, if known, and the addresses of a name; nothing if it has none."""
    try:
        found = resolve(name, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    except (OSError, UnicodeError):
        return
    for _, _, _, canonical, place in found:
        yield canonical, ipaddress.ip_address(str(place[0]).partition("%")[0])


def _node_addresses() -> list[Address]:
    found = []
    for name in _NODE_VARIABLES:
        # The API server may have a name.
        with contextlib.suppress(ValueError):
            found.append(ipaddress.ip_address(os.environ.get(name, "")))
    return found
