"""The address of a client behind proxies, from X-Forwarded-For. Only proxies that an operator trusts are believed.

Each proxy appends the address of its peer, and a client may send any beginning. So the list is read from its end, and
the first address that no trusted proxy has is that of the client.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_FORWARDED_FOR: Final = b"x-forwarded-for"
_MAX_PROXIES: Final = 16
# Some proxies add the port: 192.0.2.1:4711, [2001:db8::1]:4711.
_WITH_PORT: Final = re.compile(r"\[(?P<v6>[^\]]+)\](:\d+)?|(?P<v4>[0-9.]+):\d+")
# The smallest IPv6 network of a site, whose devices choose their addresses themselves (RFC 4291, 2.5.1).
_SITE_PREFIX: Final = 64


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The networks of proxies whose X-Forwarded-For is believed; by default none."""

    networks: Sequence[Network] = ()

    def client_of(self, peer: str, fields: Iterable[tuple[bytes, bytes]]) -> str:
        """Return the address of the client of a request from this peer with these header fields."""
        address = _read(peer)
        if address is None or not self._has(address):
            return peer
        listed = b",".join(value for name, value in fields if name == _FORWARDED_FOR).decode("latin-1").split(",")
        for text in islice(reversed(listed), _MAX_PROXIES):
            forwarded = _read(text.strip())
            if forwarded is None:
                break
            address = forwarded
            if not self._has(address):
                break
        return str(address)

    def _has(self, address: _Address) -> bool:
        return any(address in network for network in self.networks)


NO_PROXIES: Final = TrustedProxies()


def site_of(address: str) -> str:
    """Return what one client controls: an IPv4 address, or the /64 network of an IPv6 address."""
    read = _read(address)
    if isinstance(read, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(read), _SITE_PREFIX), strict=False))
    return address if read is None else str(read)


def _read(text: str) -> _Address | None:
    """Return the address. An IPv4 address in IPv6 notation is an IPv4 address."""
    found = _WITH_PORT.fullmatch(text)
    try:
        address = ipaddress.ip_address((found["v6"] or found["v4"]) if found else text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or ipaddress.IPv6Address(int(address))  # without a zone
    return address
