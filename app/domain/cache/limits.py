"""What an installation accepts of sets and their jobs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLimits:
    """`namespace` is the manifest's; `secret_namespaces` are others whose Secrets may be named there.

    `cache_roots` are the nodes' directories in which caches may be; none: anywhere but in those of the system.
    """

    namespace: str
    secret_namespaces: frozenset[str] = frozenset()
    cache_roots: tuple[str, ...] = ()
    max_partitions: int = 1_000
