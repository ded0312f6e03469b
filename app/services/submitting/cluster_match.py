"""Refuses new objects while the database and the cluster do not belong together.

An operator may then replace the database by a newer backup, which would lose what this one has accepted.
"""

from collections.abc import Sequence
from typing import Final

from app.db.objects import idempotency
from app.db.objects.idempotency import KeyId
from app.db.postgres.engine import Database
from app.domain.errors import Unavailable
from app.services.reading.freshness import FreshnessReader

_WRONG: Final = "WrongCluster"


class ClusterMismatch(Unavailable):
    """The controller reports that its cluster is not the one of this database. Nothing was stored."""

    default_code = _WRONG


class ClusterMatch:
    """Checks what the controller last reported. Reads, edits and cancels of known objects do not need this check."""

    def __init__(self, db: Database, freshness: FreshnessReader) -> None:
        self._db = db
        self._freshness = freshness

    async def require(self, keys: Sequence[KeyId]) -> None:
        """Raise ClusterMismatch, unless a request with one of these idempotency keys has a stored answer."""
        beat = await self._freshness.heartbeat()
        if beat is None or beat.state != _WRONG or (keys and await idempotency.any_known(self._db, keys)):
            return
        raise ClusterMismatch(
            "no new object is accepted, because the controller finds that the cluster is not the one of this database, "
            "or that the database is older than the cluster: an operator must decide which is right"
        )
