"""Which log is meant, and the names of its objects in the store."""

import re
from typing import Final, NamedTuple
from uuid import UUID

from app.domain.plan import Rank

_CHUNK: Final = re.compile(
    r"[^/]+/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/([^/]+)/(\d{1,9})/(\d{1,9})/([^/]+)/(\d{1,9})"
    r"/(\d{16})-[^/]+\.zst",
    re.ASCII,
)


class LogKey(NamedTuple):
    """Identifies a kept log: the whole output of one run of one container of one attempt.

    `run` is the restart count of the container: 0 for its first run, 1 after its first restart in place.
    """

    job_uid: UUID
    task: str
    rank: int
    attempt: int
    container: str
    run: int = 0

    def of_run(self, container: str, run: int) -> "LogKey":
        """Return the key of the log of another run of the same attempt."""
        return self._replace(container=container, run=run)

    @property
    def replica(self) -> Rank:
        return Rank(self.task, self.rank)


def job_prefix(installation: str, job_uid: UUID) -> str:
    """Return the beginning of the names of all objects of a job."""
    return f"{installation}/{job_uid}/"


def probe_prefix(installation: str) -> str:
    """Return the beginning of the names of the objects that only prove that the store can be written."""
    return f"{installation}/probes/"


def chunk_name(installation: str, key: LogKey, offset: int, nonce: str) -> str:
    """Return the name of the object of a chunk.

    Two processes that write the same part of a log write two objects, because their nonces differ. Only one of them
    gets a row. Names of tasks and containers contain no slash.
    """
    _, task, rank, attempt, container, run = key
    where = f"{job_prefix(installation, key.job_uid)}{task}/{rank}/{attempt}/{container}/{run}"
    return f"{where}/{offset:016d}-{nonce}.zst"


def place_of_chunk(name: str) -> tuple[LogKey, int] | None:
    """Return the log and the offset of the chunk whose object has this name; None if no chunk has such a name."""
    match = _CHUNK.fullmatch(name)
    if match is None:
        return None
    job, task, rank, attempt, container, run, offset = match.groups()
    return LogKey(UUID(job), task, int(rank), int(attempt), container, int(run)), int(offset)
