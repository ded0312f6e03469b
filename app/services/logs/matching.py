"""Searches of logs. Callers take turns, because a search takes far more time for a byte than other reads."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from app.base.offload import offload
from app.fairness.share import caller
from app.services.limits.turns import Turns
from app.services.logs.search import LinePattern
from app.services.logs.selecting import ChunkLines, LogLines
from app.services.logs.whole import LogPart

_AT_ONCE: Final = 1  # of the two threads for long computations
_MOST_WAITING: Final = 10_000  # above the limit of open logs


class Searches:
    """The searches of one process."""

    def __init__(self) -> None:
        self._turns = Turns("log searches", at_once=_AT_ONCE, max_waiting=_MOST_WAITING)

    async def filter(
        self, parts: AsyncGenerator[LogPart, None], pattern: LinePattern | None
    ) -> AsyncGenerator[LogPart, None]:
        """Yield those lines of small parts that contain a match, and all gaps; without a pattern, everything."""
        async with aclosing(parts):
            async for part in parts:
                if pattern is None or not isinstance(part, LogLines):
                    yield part
                    continue
                async with self._turns.turn(caller()):
                    found = await offload(ChunkLines(part).find_matches, pattern)
                for lines in found:
                    yield lines
