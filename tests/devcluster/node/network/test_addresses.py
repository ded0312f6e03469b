"""Each node has a block of addresses of its own; what a route would need is tried, not presumed."""

import ipaddress
import socket
from pathlib import Path

import pytest

from devcluster.node.network import addresses, routes
from devcluster.node.network.addresses import AddressBlock
from tests.support.machine.routes import require_routes


def test_pods_have_addresses_of_their_own_until_they_are_gone(tmp_path: Path) -> None:
    block = AddressBlock("n", tmp_path)
    try:
        first, second = block.acquire("a"), block.acquire("b")
        assert first != second or not block.distinct
        assert block.acquire("a") == first
        assert ipaddress.ip_address(first).is_loopback
        block.release("a")
        assert block.acquire("c") != first or not block.distinct
    finally:
        block.close()


def test_without_a_free_address_a_pod_has_the_shared_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "LAST_NUMBER", 2)
    block = AddressBlock("n", tmp_path)
    try:
        first = block.acquire("a")
        block.acquire("b")
        assert block.acquire("c") == addresses.SHARED
        block.release("a")
        assert block.acquire("c") == first
    finally:
        block.close()


@pytest.mark.parametrize("routed", [False, True])
def test_no_address_is_outside_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, routed: bool) -> None:
    monkeypatch.setattr(addresses, "add_local_route", lambda *_: True)
    monkeypatch.setattr(addresses, "remove_local_route", lambda *_: True)
    block, found = AddressBlock("n", tmp_path, routed=routed), set()
    try:
        # More often than the block has addresses.
        for _ in range(600 if routed else 65_000):
            found.add(block.acquire("pod"))
            block.release("pod")
    finally:
        block.close()
    network = ipaddress.ip_network(f"{min(found)}/{routes.ROUTED_BITS if routed else 16}", strict=False)
    assert all(ipaddress.ip_address(address) in network for address in found)


def test_two_agents_share_no_address(tmp_path: Path) -> None:
    blocks = [AddressBlock("same", tmp_path, routed=True) for _ in range(2)]
    try:
        found = [block.acquire("a") for block in blocks]
        assert found[0] != found[1] or not blocks[0].distinct
    finally:
        for block in blocks:
            block.close()


def test_a_routed_address_can_be_listened_on_for_as_long_as_its_block_is_held(tmp_path: Path) -> None:
    require_routes()
    block = AddressBlock("routed", tmp_path, routed=True)
    try:
        addresses = [block.acquire(str(number)) for number in range(300)]
        assert len(set(addresses)) == 300
        assert all(ipaddress.ip_address(address) in ipaddress.ip_network("198.18.0.0/15") for address in addresses)
        for address in (addresses[0], addresses[-1]):
            with socket.create_server((address, 0)) as server, socket.create_connection(server.getsockname()):
                pass
    finally:
        block.close()
    with pytest.raises(OSError), socket.socket() as late:  # noqa: PT011 - which one is the system's to say
        late.bind((addresses[0], 0))
