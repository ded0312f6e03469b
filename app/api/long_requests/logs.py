"""The response with the log of one container: as text, or as JSON lines."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from uuid import UUID

import msgspec
from typing_extensions import override

from app.api.long_requests.responses import LongResponse
from app.api.long_requests.streams import line_type
from app.api.requests.dependencies import Caller
from app.domain.errors import DomainError
from app.fairness.share import next_slice
from app.services.limits.long_requests import EndReason, LongRequestKind
from app.services.logs.containers import LogRequest
from app.services.logs.opening import LogStream
from app.services.logs.selecting import LogLines
from app.services.logs.text import LogBytes, TextLog, render_lines
from app.services.logs.times import time_text
from app.services.logs.whole import LogPart, MissingPart
from app.services.reading.jobs import ReplicaHistory


class JsonLogLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of a log as JSON, or what is missing there.

    `offset` is its first byte and `number` its number, both from the beginning of the log. `continues` marks the
    rest of a line that is too long for one object.
    """

    offset: int | None
    number: int | None
    at: str | None
    line: str
    continues: bool = False
    missing: str | None = None


class JsonLog:
    """Renders a log as JSON lines. `has_places` says whether its lines have places in the whole log."""

    def __init__(self, *, has_places: bool) -> None:
        self._has_places = has_places

    def render(self, part: LogPart | bytes) -> Iterator[bytes]:
        assert not isinstance(part, bytes)
        if isinstance(part, MissingPart):
            yield missing_line(part.text, part.code, part.offset, part.line)
            return
        yield from render_lines(part, self._line)

    def _line(self, part: LogLines, index: int, begin: int, end: int) -> bytes:
        time = part.times[index]
        number = part.first_line - part.continues + index
        shown = JsonLogLine(
            offset=part.start + begin if self._has_places else None,
            number=number if self._has_places else None,
            at=time_text(time) if time else None,
            line=part.text[begin:end].removesuffix(b"\n").decode(errors="replace"),
            continues=part.continues and index == 0,
        )
        return msgspec.json.encode(shown) + b"\n"


def missing_line(text: str, code: str, offset: int | None = None, number: int | None = None) -> bytes:
    """Return the JSON line that says what is missing."""
    return msgspec.json.encode(JsonLogLine(offset, number, None, text, missing=code)) + b"\n"


class LogResponse(LongResponse):
    """A log. If it ends early, its last line gives the reason unless it is raw, and the response has no last chunk."""

    media_type = "text/plain"
    is_cut_short = True

    def __init__(self, caller: Caller, uid: UUID, story: ReplicaHistory, number: int, request: LogRequest) -> None:
        lines = line_type(caller.request.headers.get("accept", ""))
        self.media_type = lines or "text/plain"
        self._is_json = lines is not None
        self._uid = uid
        self._story = story
        self._number = number
        self._request = request
        super().__init__(caller, LongRequestKind.LOG)

    @override
    async def open(self) -> AsyncGenerator[bytes, None]:
        request = self._request
        log = await self._caller.services.logs.open(self._uid, self._story, self._number, request)
        self.headers.update(
            {
                "Jobgate-Log-Attempt": str(self._number),
                "Jobgate-Newest-Attempt": str(self._story.stored.replica.attempt.number),
                "Jobgate-Log-Container": request.container,
                "Jobgate-Log-Source": log.source,
                "Jobgate-Log-Truncated": "true" if log.truncated else "false",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
            }
        )
        # The place of the last lines is known once they are read, as is that of lines of a time.
        if request.tail_lines is None and not request.selection.has_times:
            self.headers["Jobgate-Log-Offset"] = str(request.selection.begin)
        if log.kept is not None:
            self.headers["Jobgate-Log-Size"] = str(log.kept.text_bytes)
            self.headers["Jobgate-Log-Run"] = str(log.kept.run)
        if log.missing:
            self.headers["Jobgate-Log-Missing"] = log.missing
        return self._pieces(log)

    async def _pieces(self, log: LogStream) -> AsyncGenerator[bytes, None]:
        form = self._form(log)
        async with aclosing(log.parts) as parts:
            async for part in parts:
                for piece in form.render(part):
                    await next_slice()
                    yield piece

    def _form(self, log: LogStream) -> JsonLog | LogBytes | TextLog:
        if self._is_json:
            return JsonLog(has_places=log.kept is not None or self._request.tail_lines is None)
        return LogBytes() if self._request.is_raw else TextLog(has_times=self._request.timestamps)

    @override
    def final_piece(self, ending: EndReason | None, error: DomainError) -> bytes:
        if self._request.is_raw:
            return b""
        text = f"[jobgate] the log is cut off here: {error.message}"
        return missing_line(text, "interrupted") if self._is_json else f"\n{text}\n".encode()
