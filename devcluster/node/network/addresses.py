"""The addresses of pods. Each node of this machine has a block of its own, which it holds with a file lock.

A block is 127.<block>.0.0/16, or a part of 198.18.0.0/15. The latter needs a route; the proxy of a real API server
refuses the former.
"""

import contextlib
import errno
import fcntl
import os
import socket
import tempfile
from pathlib import Path
from zlib import crc32

from devcluster.node.network.routes import add_local_route, remove_local_route

# 127.0 and 127.1 are left to other programs.
FIRST_BLOCK, BLOCKS = 2, 250
SHARED = "127.0.0.1"
# A number becomes a third octet (number // 250) and a fourth; these are the last that stay inside the block.
LAST_NUMBER, LAST_ROUTED_NUMBER = 63_999, 499


class AddressBlock:
    """Assigns an address to each pod uid. The kernel releases the lock with the process, so a crash frees the block."""

    def __init__(self, name: str, folder: Path | None = None, *, routed: bool = False) -> None:
        self._folder = folder or Path(tempfile.gettempdir()) / "jobgate-dev-addresses"
        self._taken: dict[str, str] = {}
        self._used: set[str] = set()
        self._next = 0
        # The search begins at a number derived from the name, so a node usually gets the same block at each start.
        self._lock, self._block = self._take_block(crc32(name.encode()) % BLOCKS)
        self._network = ""
        if routed and self._block is not None:
            self._remove_dead_routes()
            network = _routed_network(self._block)
            self._network = network if add_local_route(network) else ""

    def _take_block(self, start: int) -> tuple[int | None, int | None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):
            # Agents of several users share the folder.
            self._folder.chmod(0o1777)
        for i in range(BLOCKS):
            block = FIRST_BLOCK + (start + i) % BLOCKS
            # A system such as macOS has only 127.0.0.1.
            if not _can_bind(f"127.{block}.0.1"):
                break
            if (lock := _try_lock(self._folder / str(block))) is not None:
                return lock, block
        return None, None

    def _remove_dead_routes(self) -> None:
        """Remove the routes of agents that were killed: those whose locks are free."""
        for path in self._folder.glob("[0-9]*"):
            if (lock := _try_lock(path)) is not None:
                remove_local_route(_routed_network(int(path.name)))
                os.close(lock)

    @property
    def distinct(self) -> bool:
        """Return whether pods have addresses of their own. Without a block, as on macOS, all pods share 127.0.0.1."""
        return self._block is not None

    @property
    def size(self) -> int:
        """The number of pods that can have addresses of their own."""
        return LAST_ROUTED_NUMBER if self._network else LAST_NUMBER

    def acquire(self, uid: str) -> str:
        """Return the address of the pod: the shared one if no other is free, as for a pod that the node rejects."""
        if uid in self._taken or not self.distinct or len(self._used) == self.size:
            return self._taken.get(uid, SHARED)
        while True:
            # Addresses are reused as late as possible, so that a late client does not reach another pod.
            self._next = self._next % self.size + 1
            address = self._address(self._next)
            if address not in self._used:
                break
        self._used.add(address)
        self._taken[uid] = address
        return address

    def _address(self, number: int) -> str:
        if self._network:
            first, second, third, _ = self._network.split(".")
            return f"{first}.{second}.{int(third) + number // 250}.{number % 250 + 1}"
        return f"127.{self._block}.{number // 250}.{number % 250 + 1}"

    def release(self, uid: str) -> None:
        self._used.discard(self._taken.pop(uid, ""))

    def close(self) -> None:
        if self._network:
            remove_local_route(self._network)
            self._network = ""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _routed_network(block: int) -> str:
    return f"198.{18 + block // 128}.{block % 128 * 2}.0"


def _can_bind(address: str) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _try_lock(path: Path) -> int | None:
    try:
        # O_CLOEXEC: a process of a container must not keep the lock.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    # The file belongs to another user, whose agent may hold the block.
    except PermissionError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return None
        raise
    return descriptor
