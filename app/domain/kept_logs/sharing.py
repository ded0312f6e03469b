"""Which of the processes that keep logs follows a pod: rendezvous hashing, which needs no agreement between them."""

from collections.abc import Iterable
from hashlib import blake2b


def owner_of(key: str, processes: Iterable[str]) -> str | None:
    """Return the process to which the key belongs; None without processes.

    When a process comes or goes, only its own share of the keys changes its owner.
    """
    return max(processes, key=lambda process: (_weight(key, process), process), default=None)


def _weight(key: str, process: str) -> bytes:
    return blake2b(f"{process}\0{key}".encode(), digest_size=8).digest()
