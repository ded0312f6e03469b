"""Which log is meant, and the names of its objects in the store."""

from typing import NamedTuple
from uuid import UUID

from app.domain.plan import Rank


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

    @property
    def replica(self) -> Rank:
        return Rank(self.task, self.rank)


def job_prefix(installation: str, job_uid: UUID) -> str:
    """Return the beginning of the names of all objects of a job."""
    return f"{installation}/{job_uid}/"


def chunk_name(installation: str, key: LogKey, offset: int, nonce: str) -> str:
    """Return the name of the object of a chunk.

    Two processes that write the same part of a log write two objects, because their nonces differ. Only one of them
    gets a row. Names of tasks and containers contain no slash.
    """
    _, task, rank, attempt, container, run = key
    where = f"{job_prefix(installation, key.job_uid)}{task}/{rank}/{attempt}/{container}/{run}"
    return f"{where}/{offset:016d}-{nonce}.zst"


def job_of_chunk(name: str) -> UUID | None:
    """Return the job to which the object of this name belongs; None if no chunk has such a name."""
    parts = name.split("/")
    try:
        return UUID(parts[1]) if len(parts) == 8 and name.endswith(".zst") else None
    except ValueError:
        return None
