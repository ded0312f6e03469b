"""The events of a watch: one line of JSON for each."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Generic, TypeVar

import msgspec

from app.k8s.codec import Codec, load_json
from app.k8s.errors import BrokenAnswer
from app.k8s.session.answers import error_from_status

MAX_LINE = 2**23  # bytes of one watch event; etcd stores at most 1.5 MiB for an object

T = TypeVar("T")


@unique
class WatchEventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One line of a watch. A bookmark's object has little more than a resource version."""

    type: WatchEventType
    object: T


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_KNOWN_TYPES = {event_type.value: event_type for event_type in WatchEventType}


def decode_event(line: bytes, codec: Codec[T]) -> WatchEvent[T]:
    """Return the event of a line.

    Raises:
        KubeStatusError: the one that an ERROR event holds.
        BrokenAnswer: the line is malformed, or the type of the event is unknown.
    """
    try:
        envelope = _ENVELOPE.decode(line)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BrokenAnswer(f"not a watch event ({error}): {line[:100]!r}") from error
    event_type = _KNOWN_TYPES.get(envelope.type)
    if event_type is not None:
        return WatchEvent(event_type, codec.decode(envelope.object))
    if envelope.type == "ERROR":
        status = load_json(bytes(envelope.object))
        raise error_from_status(status if isinstance(status, dict) else {})
    # Not skipped: it could be a deletion, and a list finds every deletion.
    raise BrokenAnswer(f"a watch event of unknown type {envelope.type!r}")


async def lines_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield whole lines. If the stream ends within a line, this part comes last."""
    rest = bytearray()
    async for piece in pieces:
        # Only the new piece is searched, so that the time for a long line stays linear.
        if b"\n" not in piece:
            rest += piece
        else:
            first, *others = piece.split(b"\n")
            yield bytes(rest) + first
            rest = bytearray(others.pop())
            for line in others:
                yield line
        if len(rest) > MAX_LINE:
            raise BrokenAnswer(f"a watch event of more than {MAX_LINE} bytes")
    if rest:
        yield bytes(rest)
