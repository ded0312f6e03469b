"""What an installation accepts of sets and their jobs."""

from dataclasses import dataclass
from typing import Final

# One in memory, as upstream, and one on the disk of the node. Nothing but caches is in either.
DEFAULT_CACHE_ROOTS: Final = ("/dev/shm/jobgate", "/var/cache/jobgate")  # noqa: S108  not for temporary files
# Any directory of a node except those of the system: for machines whose only user submits the sets.
ANY_CACHE_ROOTS: Final = ("/", "/dev/shm")  # noqa: S108  upstream's default directory


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLimits:
    """`namespace` is the manifest's; `secret_namespaces` are others whose Secrets may be named there.

    Caches must be in one of `cache_roots`, directories of the nodes. A directory of the system, as /etc, is only
    accepted in a root that is itself there.
    """

    namespace: str
    secret_namespaces: frozenset[str] = frozenset()
    cache_roots: tuple[str, ...] = DEFAULT_CACHE_ROOTS
    max_partitions: int = 1_000
