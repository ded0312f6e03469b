"""The first reconcile of each live job in a term. Until all are done, a stored status can be that of an older term."""

import asyncio
from collections.abc import Iterable


class FirstPass:
    """The jobs whose status has not been compared with the cluster since the first list of a term."""

    def __init__(self) -> None:
        self._left: set[str] = set()
        self._begun = False
        self._over = asyncio.Event()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def begin(self, uids: Iterable[str]) -> None:
        self._left.update(uids)
        self._begun = True
        self._end_if_done()

    def done(self, uid: str) -> None:
        """Note that the status of this job is current, or that it cannot be found out: one job delays no others."""
        self._left.discard(uid)
        self._end_if_done()

    async def wait(self) -> None:
        await self._over.wait()

    def _end_if_done(self) -> None:
        if self._begun and not self._left:
            self._over.set()
