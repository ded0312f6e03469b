"""The limits of an installation for SampleSets and SampleJobs."""

from dataclasses import dataclass
from typing import Final

from app.domain.cache.source_limits import INTERNET_ONLY, SourceLimits

# One directory in memory, as upstream, and one on the disk of the node. Both hold nothing but caches.
DEFAULT_CACHE_ROOTS: Final = ("/dev/shm/jobgate", "/var/cache/jobgate")  # noqa: S108  not for temporary files
# Any directory of a node except system directories, for machines with a single user, who submits the sets.
ANY_CACHE_ROOTS: Final = ("/", "/dev/shm")  # noqa: S108  upstream's default directory


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLimits:
    """What a manifest in `namespace` may refer to.

    `secret_namespaces` are other namespaces whose Secrets it may name. Caches must be in one of `cache_roots`, which
    are directories of the nodes. A directory inside a system directory such as /etc needs a root that is inside it too.
    `sources` limits the sources of syncs; `stored_source` is the one that an edited set has, which may stay.
    """

    namespace: str
    secret_namespaces: frozenset[str] = frozenset()
    cache_roots: tuple[str, ...] = DEFAULT_CACHE_ROOTS
    max_partitions: int = 1_000
    sources: SourceLimits = INTERNET_ONLY
    stored_source: str = ""
