"""Whether this process may add a route, which pods need for addresses that a real API server reaches."""

from pathlib import Path

import pytest

_NET_ADMIN = 1 << 12
_NO_USER_NAMESPACE = ["0", "0", "4294967295"]


def require_routes() -> None:
    """Skip the test if this process may not add a route. It does not try, because that is what the tests test."""
    process = Path("/proc/self")
    if not (process / "uid_map").exists():
        pytest.skip("pods have routed addresses on Linux only")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    # In a user namespace, a process can have the capability and still not own the network.
    owns_network = (process / "uid_map").read_text().split() == _NO_USER_NAMESPACE
    if not int(status["CapEff"], 16) & _NET_ADMIN or not owns_network:
        pytest.skip("this process may not add a route: run the test as root, in a container with --cap-add NET_ADMIN")
