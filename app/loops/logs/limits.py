"""How much of logs is kept, and what a process may use for that."""

from dataclasses import dataclass
from typing import Final

UNLIMITED: Final = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """The limits of kept logs.

    Args:
        followed: most logs that a process reads at once. With more, logs take turns.
        memory: bytes of text that wait in a process until they are a chunk.
        flush_after: seconds after which a chunk ends although it is small.
        job_bytes: most bytes of text that are kept of a job.
        namespace_bytes: most bytes of text that are kept of the jobs of a namespace.
        session: seconds after which a process that does not announce itself counts as gone.
    """

    followed: int = 1000
    memory: int = 64 * 1024 * 1024
    flush_after: float = 120.0
    job_bytes: int = UNLIMITED
    namespace_bytes: int = UNLIMITED
    session: float = 15.0
