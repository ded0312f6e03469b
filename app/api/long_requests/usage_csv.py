"""The response with the usage of all groups as CSV. It reads pages of groups as JSON does, each after the client has
taken the one before, so neither its length nor a slow client adds to the memory that it holds.
"""

import csv
import io
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from typing import Final

from typing_extensions import override

from app.api.answers.responses import NO_STORE
from app.api.long_requests.responses import LongResponse
from app.api.requests.dependencies import Caller
from app.base.offload import offload
from app.domain.errors import DomainError
from app.domain.usage.pages import Cursor, before_all
from app.domain.usage.prices import Prices
from app.domain.usage.query import UsageQuery
from app.domain.usage.report import HELD, ShownUsage
from app.fairness.share import begin_sending, next_slice, release
from app.services.limits.long_requests import EndReason, LongRequestKind

PAGE: Final = 2000
"""Groups that are read at once. Each page finds its groups among all that follow, so few large pages read less."""
# Seconds for which a page is asked for again before an overload cuts the CSV off, which cannot continue.
_PATIENCE: Final = 60.0
# Bytes that are sent at once: as many as the server buffers.
_PIECE: Final = 64 * 1024
# A spreadsheet takes a text that begins like this for a formula. The last ones are wide forms of the first.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


class UsageCsv(LongResponse):
    """Usage as CSV. If the response ends early, it has no last chunk, and nothing says so in the CSV."""

    media_type = "text/csv"
    is_cut_short = True

    def __init__(self, caller: Caller, query: UsageQuery) -> None:
        self._query = query
        self._usage = caller.services.usage
        super().__init__(caller, LongRequestKind.CSV)
        self.headers.update(NO_STORE)

    @override
    async def open(self) -> AsyncGenerator[bytes, None]:
        # The first page is read before the answer begins, so that its failure is answered in place of a CSV.
        header = csv_text([csv_header(self._query.by, self._usage.prices)])
        text, end = await self._read(before_all(self._query))
        return self._pieces(header + text, end)

    @override
    def final_piece(self, ending: EndReason | None, error: DomainError) -> bytes:
        return b""

    async def _pieces(self, text: bytes, end: Cursor | None) -> AsyncGenerator[bytes, None]:
        while True:
            for begin in range(0, len(text), _PIECE):
                await next_slice()
                yield text[begin : begin + _PIECE]
            if end is None:
                return
            # The next page waits for room, which it must not do while it holds some.
            text = b""
            release()
            text, end = await self._read(end, _PATIENCE)

    async def _read(self, behind: Cursor, patience: float = 0.0) -> tuple[bytes, Cursor | None]:
        caller = self._caller.principal.id
        found, end = await self._usage.page(self._query, behind, PAGE, caller, patience=patience)
        text = await offload(_text_of, found)
        begin_sending(len(text))
        return text, end


def _text_of(found: Sequence[ShownUsage]) -> bytes:
    return csv_text(line for usage in found for line in csv_lines(usage))


def csv_text(lines: Iterable[Sequence[str]]) -> bytes:
    """Return lines of CSV as RFC 4180 has them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(lines)
    return text.getvalue().encode()


def csv_header(by: Sequence[str], prices: Prices | None) -> list[str]:
    cost = [_cell(f"cost_{prices.currency}")] if prices is not None else []
    return [*by, "queued_seconds", "resource", *(f"{use}_seconds" for use in HELD), *cost]


def csv_lines(usage: ShownUsage) -> Iterator[list[str]]:
    """Yield a line for each resource of a group, with exact seconds. The cost is that of the whole group."""
    key = [_cell(value or "") for value in usage.key]
    total = [f"{sum(usage.cost.values()):f}"] if usage.cost is not None else []
    for resource, uses in usage.resources.items() or [("", dict.fromkeys(HELD, 0))]:
        yield [*key, f"{usage.queued:f}", _cell(resource), *(f"{uses[use]:f}" for use in HELD), *total]


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
