"""The response with the logs of several replicas: JSON lines, or text with the replica before each line."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Final

import msgspec
from typing_extensions import override

from app.api.long_requests.responses import LongResponse
from app.api.long_requests.streams import line_type
from app.api.requests.dependencies import Caller
from app.domain.errors import DomainError
from app.fairness.share import next_slice
from app.services.limits.long_requests import EndReason, LongRequestKind
from app.services.logs.merged import MergedRequest
from app.services.logs.order import MergedLine

LEFT_OUT: Final = "Jobgate-Log-Left-Out"
"""The header that names the replicas whose logs are not in the response."""


class _JsonLine(msgspec.Struct, frozen=True):
    """A line as JSON. The line that says why a log ends early belongs to no replica."""

    task: str | None
    rank: int | None
    attempt: int | None
    at: str | None
    line: str


class MergedLogResponse(LongResponse):
    """Merged logs. If the response ends early, its last line gives the reason, and it has no last chunk."""

    is_cut_short = True

    def __init__(self, caller: Caller, request: MergedRequest, *, with_times: bool) -> None:
        lines = line_type(caller.request.headers.get("accept", ""))
        self.media_type = lines or "text/plain"
        self._is_json = lines is not None
        self._with_times = with_times
        self._request = request
        super().__init__(caller, LongRequestKind.LOG)

    @override
    async def open(self) -> AsyncGenerator[bytes, None]:
        merged = await self._caller.services.merged_logs.open(self._request, self.reserve_logs)
        self.headers.update({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        if merged.selection.left_out:
            self.headers[LEFT_OUT] = _ranges(merged.selection.left_out)
        return self._pieces(merged.batches())

    @override
    def final_piece(self, ending: EndReason | None, error: DomainError) -> bytes:
        text = f"[jobgate] the log is cut off here: {error.message}"
        if self._is_json:
            line = _JsonLine(task=None, rank=None, attempt=None, at=None, line=text)
            return msgspec.json.encode(line) + b"\n"
        return f"\n{text}\n".encode()

    async def _pieces(self, batches: AsyncGenerator[Sequence[MergedLine], None]) -> AsyncGenerator[bytes, None]:
        form = _json if self._is_json else self._text
        async with aclosing(batches):
            async for batch in batches:
                await next_slice()
                yield b"".join(map(form, batch))

    def _text(self, line: MergedLine) -> bytes:
        at = f"{line.at} " if self._with_times and line.at else ""
        return f"{line.key} {at}".encode() + line.text + b"\n"


def _json(line: MergedLine) -> bytes:
    text = line.text.decode(errors="replace")
    shown = _JsonLine(task=line.key.task, rank=line.key.rank, attempt=line.attempt, at=line.at or None, line=text)
    return msgspec.json.encode(shown) + b"\n"


def _ranges(left_out: Mapping[str, tuple[int, int]]) -> str:
    """Return the replicas as text: `worker[64-99]`, or `worker[64]` for a single one."""
    ranges = {task: f"{first}" if first == last else f"{first}-{last}" for task, (first, last) in left_out.items()}
    return ", ".join(f"{task}[{ranks}]" for task, ranks in ranges.items())
