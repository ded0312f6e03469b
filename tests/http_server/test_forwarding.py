"""The address of a client behind proxies."""

from ipaddress import ip_network

import pytest

from app.http_server.forwarding import NO_PROXIES, TrustedProxies, site_of

PROXIES = TrustedProxies((ip_network("10.0.0.0/8"), ip_network("fd00::/8"), ip_network("127.0.0.1")))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", ["192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", ["203.0.113.9, 192.0.2.7"], "192.0.2.7"),  # the client has sent the first one
        ("10.0.0.1", ["203.0.113.9", "192.0.2.7, 10.0.0.2"], "192.0.2.7"),
        ("fd00::1", ["2001:db8::7"], "2001:db8::7"),
        ("::ffff:10.0.0.1", ["::ffff:192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", ["192.0.2.7:4711"], "192.0.2.7"),
        ("10.0.0.1", ["[2001:db8::7]:4711"], "2001:db8::7"),
        ("10.0.0.1", ["[2001:db8::7]"], "2001:db8::7"),
        ("10.0.0.1", ["10.0.0.9"], "10.0.0.9"),  # a client inside of the trusted network
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.7, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.7, \xff"], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.7" + ", 10.0.0.2" * 40], "10.0.0.2"),
        ("192.0.2.1", ["203.0.113.9"], "192.0.2.1"),  # not a trusted proxy
        ("testclient", ["203.0.113.9"], "testclient"),
    ],
)
def test_the_last_address_that_no_trusted_proxy_has(peer: str, forwarded: list[str], client: str) -> None:
    fields = [(b"host", b"x"), *((b"x-forwarded-for", each.encode("latin-1")) for each in forwarded)]
    assert PROXIES.client_of(peer, fields) == client
    assert NO_PROXIES.client_of(peer, fields) == peer


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_what_one_client_controls(address: str, site: str) -> None:
    assert site_of(address) == site
