"""Which proxy the requests to a gateway pass, as the variables of the environment say. Pure.

The rules are those of curl and of Go: HTTPS_PROXY and HTTP_PROXY apply to a scheme, ALL_PROXY to both, and NO_PROXY
lists hosts without a proxy. A gateway on loopback never has one, as in Go, because it is on this machine.
"""

import importlib.util
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from jobgate.client.errors import InvalidProxyError

_HTTP: Final = frozenset({"http", "https"})
_SOCKS: Final = frozenset({"socks5", "socks5h"})
_SOCKS_PACKAGE: Final = "socksio"
_ACCEPTED: Final = "accepted: http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT"
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy and the variable that names it."""

    url: str
    variable: str

    @property
    def shown(self) -> str:
        """The address without the user and the password, for messages."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    @property
    def described(self) -> str:
        return f"the proxy {self.shown} of {self.variable}"


def proxy_of(url: str, environment: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for a gateway; None if its requests pass none.

    Raises:
        InvalidProxyError: the variable names no proxy that this client can use.
    """
    gateway = urlsplit(url)
    variable, value = _variable(gateway.scheme, environment)
    if not value or _is_loopback(gateway.hostname or "") or _is_excepted(gateway, environment):
        return None
    proxy = Proxy(value if "://" in value else f"http://{value}", variable)
    _check(proxy)
    return proxy


def _variable(scheme: str, environment: Mapping[str, str]) -> tuple[str, str]:
    for name in (f"{scheme}_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            # A CGI script has what its client has sent as Proxy in HTTP_PROXY.
            if variable == "HTTP_PROXY" and "REQUEST_METHOD" in environment:
                continue
            if value := environment.get(variable, "").strip():
                return variable, value
    return "", ""


def _check(proxy: Proxy) -> None:
    from httpx2 import URL, InvalidURL  # noqa: PLC0415 - the help of a command does not need the HTTP library

    try:
        parts = urlsplit(proxy.url)
        is_address = bool(parts.hostname) and parts.port != 0
        URL(proxy.url)
    except (ValueError, InvalidURL):  # such as a port that is no number; the message must not show a password
        raise InvalidProxyError(f"{proxy.variable} is no address of a proxy; {_ACCEPTED}") from None
    if not is_address or parts.scheme not in _HTTP | _SOCKS:
        raise InvalidProxyError(f"{proxy.variable}: the proxy {proxy.shown} cannot be used; {_ACCEPTED}")
    if parts.scheme in _SOCKS and importlib.util.find_spec(_SOCKS_PACKAGE) is None:
        raise InvalidProxyError(
            f"{proxy.variable}: the proxy {proxy.shown} needs the package {_SOCKS_PACKAGE}, which is not installed; "
            "accepted without it: http://HOST:PORT or https://HOST:PORT"
        )


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _is_excepted(gateway: SplitResult, environment: Mapping[str, str]) -> bool:
    host, port = gateway.hostname or "", gateway.port or _PORTS.get(gateway.scheme)
    entries = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    return any(_covers(entry.strip().lower(), host, port) for entry in entries.split(",") if entry.strip())


def _covers(entry: str, host: str, port: int | None) -> bool:
    """Return whether an entry of NO_PROXY covers a host: `*`, a network, an address, or a name with its subdomains."""
    if entry == "*":
        return True
    if (address := _address(host)) is not None:
        try:
            return address in ipaddress.ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            pass
    name, colon, given = entry.rpartition(":")
    if colon and given.isdecimal():
        entry = name
        if int(given) != port:
            return False
    suffix = entry.strip("[]").removeprefix("*").removeprefix(".")
    return bool(suffix) and (host == suffix or host.endswith(f".{suffix}"))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
