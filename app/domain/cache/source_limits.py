"""Which storages, hosts and local directories a source may name.

A server inside the cluster reads a source. Without these limits, a tenant could read through it what only the server
can reach: files of its container, services of the cluster, and the metadata service of the cloud.
"""

import ipaddress
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import unquote

STORAGES: Final = (
    "bos",
    "s3",
    "hdfs",
    "gs",
    "wasb",
    "oss",
    "cos",
    "ks3",
    "ufile",
    "qingstor",
    "jss",
    "qiniu",
    "b2",
    "space",
    "obs",
    "oos",
    "scw",
    "minio",
    "scs",
    "ibmcos",
    "wasabi",
    "mss",
    "nos",
    "eos",
    "speedy",
    "ceph",
    "swift",
    "webdav",
    "redis",
    "tikv",
    "file",
)
LOCAL: Final = "file"
NETWORK_STORAGES: Final = tuple(storage for storage in STORAGES if storage != LOCAL)
# Storages whose URI begins with a host even if it has no dot. For the others, such a name is that of a bucket.
_HOSTED: Final = frozenset({"hdfs", "minio", "swift", "webdav", "redis", "tikv"})
# Names of the machine itself, of its cloud, and of Services. `svc` is also a label before a cluster's own domain.
_INTERNAL_SUFFIXES: Final = frozenset({"localhost", "local", "localdomain", "internal", "svc"})
_OF_MACHINE: Final = ("localhost", "metadata.google.internal")
_SERVICE: Final = "svc"
_API_SERVER: Final = ["kubernetes", "default"]
# Services of clouds for their machines, which are not all private: AWS, Alibaba, Oracle, Azure.
_METADATA: Final = tuple(
    map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"))
)
# IPv6 networks whose last 32 bits are an IPv4 address: NAT64, IPv4-translated and IPv4-compatible addresses.
_LAST_BITS: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96")))
# Networks that Python takes for global: NAT64 within a network (RFC 8215), and the former site-local addresses.
_LOCAL_NETWORKS: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b:1::/48", "fec0::/10")))
_END_OF_AUTHORITY: Final = re.compile(r"[/?#\\]")
_NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?", re.ASCII)
_NUMERIC: Final = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*", re.ASCII)
_IPV4_LABELS: Final = 4

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLimits:
    """What sources may name.

    `hosts` are those inside the network that they may name besides the hosts of the internet: names, `*.suffix`,
    addresses, and networks as 10.1.0.0/16. `directories` are those of a server's container in which `file://` sources
    may be; without any, there are no such sources.
    """

    schemes: frozenset[str] = frozenset(NETWORK_STORAGES)
    hosts: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()

    @property
    def accepted_hosts(self) -> str:
        return ", ".join(["a host of the internet", *self.hosts])


INTERNET_ONLY: Final = SourceLimits()
"""The limits of an installation without settings for them."""


def wrong_host_entry(entry: str) -> str | None:
    """Return what is wrong with an element of `SourceLimits.hosts`, or None."""
    if _network(entry) is not None or _NAME.fullmatch(entry.removeprefix("*.")):
        return None
    return f'"{entry}" is neither a name, nor *.suffix, nor an address or network'


def hosts_of(uri: str) -> list[str]:
    """Return the hosts in the URI of a source. A storage may have several, separated by commas.

    The first label of a host may be that of a bucket.
    """
    scheme, _, rest = uri.partition("://")
    authority = _END_OF_AUTHORITY.split(rest.lstrip("/"), maxsplit=1)[0].rpartition("@")[2]
    return [
        without_port(host)
        for host in authority.split(",")
        # Otherwise a name without a dot and a port is that of a bucket.
        if scheme in _HOSTED or "." in host or ":" in host or host.lower() == "localhost"
    ]


def without_port(host: str) -> str:
    """Return a host without its port, and an IPv6 address without brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


def wrong_host(host: str, limits: SourceLimits) -> str | None:
    """Return why a source may not name this host, or None. It is the name that counts, not what it resolves to."""
    literal = literal_address(host)
    if literal is not None:
        return wrong_address(literal, limits)
    if not _NAME.fullmatch(host):
        return "is not the name of a host"
    if is_named(host, limits):
        return None
    names = list(_without_bucket(host))
    # The resolver of a pod takes such names for those of Services.
    if "." not in host.rstrip(".") or any(_is_internal(name) for name in names):
        return "is inside the cluster or its network"
    if any(_NUMERIC.fullmatch(name.rpartition(".")[2]) for name in names):
        return "is an address in a form that is not accepted"
    return None


def wrong_address(
    address: Address, limits: SourceLimits, *, is_named: bool = False, inside: Container[Address] = ()
) -> str | None:
    """Return why a source may not use this address, or None.

    The host of the address `is_named` in the limits: then it may be inside the network, but not that of the machine
    itself or of a metadata service, which only the address itself can allow. `inside` has public addresses that are
    inside the network too.
    """
    plain = _embedded_address(address)
    networks = [network for entry in limits.hosts if (network := _network(entry)) is not None]
    if any(plain.version == network.version and plain in network for network in networks):
        return None
    if plain in _METADATA or plain.is_link_local or plain.is_loopback or plain.is_unspecified or plain.is_multicast:
        return "is an address of the machine itself or of a metadata service"
    is_local = not plain.is_global or plain in inside or any(plain in network for network in _LOCAL_NETWORKS)
    if is_local and not is_named:
        return "is an address inside the cluster or its network"
    return None


def is_of_machine(host: str, limits: SourceLimits) -> bool:
    """Return whether a host is the machine itself or a metadata service, without the consent of the limits."""
    literal = literal_address(host)
    if literal is not None:
        return wrong_address(literal, limits, is_named=True) is not None
    return host.lower().rstrip(".").endswith(_OF_MACHINE) and not is_named(host, limits)


def is_named(host: str, limits: SourceLimits) -> bool:
    """Return whether the limits name a host, with or without a bucket as its first label."""
    return any(
        name == entry.lower() or (entry.startswith("*.") and name.endswith(entry[1:].lower()))
        for name in _without_bucket(host)
        for entry in limits.hosts
    )


def wrong_directory(uri: str, limits: SourceLimits) -> str | None:
    """Return why a `file://` source may not be where it is, or None. The server also checks where links lead."""
    written = uri.partition("://")[2]
    for path in (written, unquote(written)):
        if ".." in path.split("/") or not any(is_inside(path, directory) for directory in limits.directories):
            return "is in no directory for file:// sources"
    return None


def is_inside(path: str, directory: str) -> bool:
    """Return whether an absolute path is in a directory, or the directory itself."""
    parts, above = ([part for part in each.split("/") if part not in ("", ".")] for each in (path, directory))
    return path.startswith("/") and parts[: len(above)] == above


def _without_bucket(host: str) -> Iterator[str]:
    """Return the name, and the name without its first label, which may be that of a bucket."""
    name = host.lower().rstrip(".")
    yield name
    if "." in name:
        yield name.partition(".")[2]


def _is_internal(name: str) -> bool:
    labels = name.split(".")
    return labels[-1] in _INTERNAL_SUFFIXES or _SERVICE in labels[1:] or labels == _API_SERVER


def literal_address(host: str) -> Address | None:
    """Return the address that a host is, or that follows the label of a bucket, or None for a name."""
    labels = host.rstrip(".").split(".")
    for text in (host, ".".join(labels[-_IPV4_LABELS:])):
        try:
            # A zone selects an interface of the machine, and is no part of the address.
            return ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            continue
    return None


def _embedded_address(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if not (address.is_loopback or address.is_unspecified) and any(address in network for network in _LAST_BITS):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return None


def first_wrong_host(hosts: Sequence[str], limits: SourceLimits) -> tuple[str, str] | None:
    """Return the first host that a source may not name, and why, or None."""
    return next(((host, why) for host in hosts if (why := wrong_host(host, limits))), None)
